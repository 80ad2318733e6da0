"""Work beyond one machine: an Apache Beam pipeline whose workers call a function with
many tasks.

Input and output are files, on a file system that this process and all workers see under
the same paths; the pipeline itself carries little more than these paths. A worker
writes a file in one step (files/atomic_file.py), so that a killed pipeline leaves no
partial files, and a worker that repeats a task does no harm.
"""

import contextlib
import dataclasses
import functools
import importlib.util
import io
import logging
import shlex
import threading
import uuid
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

WorkerFunction = Callable[[Any], None]  # of a task
# of workers in other processes; Beam's default is INFO
QUIET = ["--default_sdk_harness_log_level=ERROR"]
DASK = "DaskRunner"  # Beam knows other runners by their short names
DASK_RUNNER = "apache_beam.runners.dask.dask_runner.DaskRunner"
DASK_PARTITIONS = ("--dask_partition_size", "--dask_npartitions")


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """An Apache Beam runner and its options."""

    # DirectRunner on this machine, DaskRunner, DataflowRunner, FlinkRunner,
    # SparkRunner, ...
    runner: str
    # Beam's, as on a command line: "--direct_num_workers=2
    # --direct_running_mode=in_memory"
    options: str = ""

    def run(self, start: Callable[[], WorkerFunction], tasks: Sequence[Any]) -> None:
        """Calls `start` in each thread of each worker, and the function that it returns
        with each task, once or several times.

        `start` and the tasks must allow pickling. Raises ValueError for an unknown
        runner or a bad option, or if Apache Beam is not installed, and
        ChildProcessError if a task fails.
        """
        beam, options = self._beam()
        call = functools.partial(_call, uuid.uuid4().hex, start)
        pipeline = beam.Pipeline(options=options)
        pipeline | beam.Create(tasks) | beam.Reshuffle() | beam.Map(call)
        try:
            result = pipeline.run()
            # Dask's connection
            with contextlib.closing(getattr(result, "client", io.BytesIO())):
                result.wait_until_finish()
        except Exception as error:
            # of any type, and often with a worker's whole traceback as its message
            reason = (str(error).strip() or repr(error)).splitlines()[-1]
            raise ChildProcessError(
                f"The pipeline of {self.runner} failed: {reason} Run the same command"
                " again; what is finished is kept."
            ) from error

    def check(self) -> None:
        """Raises as `run` does if the pipeline cannot run, so that this shows before
        hours of work.
        """
        self._beam()

    def _beam(self) -> tuple[ModuleType, Any]:
        """The module apache_beam, and its PipelineOptions."""
        beam = _import_beam()
        from apache_beam.options.pipeline_options import PipelineOptions, TypeOptions
        from apache_beam.runners.runner import create_runner

        runner = DASK_RUNNER if self.runner == DASK else self.runner
        defaults = QUIET
        if runner == DASK_RUNNER:
            if importlib.util.find_spec("distributed") is None:
                raise ValueError(
                    f"--beam_runner={self.runner} needs Dask. Install it with pip"
                    " install 't2tlite[dask]'."
                )
            if not any(name in self.options for name in DASK_PARTITIONS):
                # otherwise a worker gets 128 tasks, perhaps all
                defaults = [*QUIET, "--dask_partition_size=1"]
        try:
            create_runner(runner)
            given = shlex.split(self.options)
        except (ValueError, ImportError, AttributeError) as error:
            raise ValueError(
                "--beam_runner and --beam_options must be those of Apache Beam."
                f" Received: {error}"
            ) from error
        # ends the program for a bad value
        options = PipelineOptions([f"--runner={runner}", *defaults, *given])
        if self.runner == "DirectRunner":
            # otherwise it downloads and runs another runner, Prism
            options.view_as(TypeOptions).allow_unsafe_triggers = True
        all_given = options.get_all_options(retain_unknown_options=True)
        unknown = sorted({*all_given} - {*options.get_all_options()})
        if unknown:
            raise ValueError(
                "--beam_options must be options of Apache Beam. Received: unknown"
                f" options {', '.join(unknown)}."
            )
        return beam, options


def _import_beam() -> ModuleType:
    # it warns of libraries that it does not need
    logging.disable(logging.WARNING)
    try:
        import apache_beam
    except ImportError as error:
        raise ValueError(
            f"--beam_runner needs Apache Beam. Received: {error}. Install it with"
            " pip install 't2tlite[beam]'."
        ) from error
    finally:
        logging.disable(logging.NOTSET)
    module: ModuleType = apache_beam
    return module


# Of a thread of a worker: the `pipeline` that it started last, and its function `work`.
# Loading a model takes longer than many a task.
_started = threading.local()


def _call(pipeline: str, start: Callable[[], WorkerFunction], task: Any) -> None:
    """Does a task with the function that `start` returns. Calls `start` once for each
    pipeline and thread.

    Beam's own place for this, DoFn.setup, is called for each task by the Dask runner.
    """
    if getattr(_started, "pipeline", "") != pipeline:
        _started.work, _started.pipeline = start(), pipeline
    _started.work(task)
