"""Work beyond one machine: files that the workers of an Apache Beam pipeline make.

They are on a file system that this process and all workers see under the same paths;
the pipeline itself carries little more than these paths. A worker writes a file in one
step (files/atomic_file.py), so that a killed pipeline leaves no partial files, and a
worker that repeats a task does no harm.
"""

import dataclasses
import functools
import logging
import pickle
import shlex
import threading
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from t2tlite.files.atomic_file import remove_temporary_files, temporary_path

MakeFile = Callable[[Path, Any], None]  # from a task
# Beam knows other runners by their short names
RUNNERS = {"DaskRunner": "apache_beam.runners.dask.dask_runner.DaskRunner"}
DEFAULT_OPTIONS = [
    # of workers in other processes; Beam's default is INFO
    "--default_sdk_harness_log_level=ERROR",
    # otherwise the DirectRunner downloads and runs another runner, Prism
    "--allow_unsafe_triggers",
]


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """An Apache Beam runner and its options."""

    # DirectRunner on this machine, DaskRunner, DataflowRunner, FlinkRunner,
    # SparkRunner, ...
    runner: str
    # Beam's, as on a command line: "--direct_num_workers=2
    # --direct_running_mode=in_memory"
    options: str = ""

    def make_files(
        self, start: Callable[[], MakeFile], tasks: Iterable[tuple[Path, Any]]
    ) -> None:
        """Makes files, each from a task. Calls `start` in each thread of each worker,
        and the function that it returns with each file and its task, once or several
        times.

        Tasks wait in files beside those that are made of them. `start` and tasks must
        allow pickling. Raises ValueError as `check`, and ChildProcessError if a worker
        fails, or this machine does not see what the workers have made.
        """
        task_files = {}
        try:
            for path, task in tasks:
                path = path.absolute()  # workers have other current folders
                path.parent.mkdir(exist_ok=True)
                task_files[path] = temporary_path(path)
                task_files[path].write_bytes(pickle.dumps(task))
            if task_files:
                self._run(start, list(task_files.items()))
        finally:
            for folder in {path.parent for path in task_files}:
                # also those of workers that were killed while writing
                remove_temporary_files(folder)
        for path in task_files:
            if not path.exists():
                raise ChildProcessError(
                    "The workers of a pipeline need a file system that all share."
                    f" Received: no {path}."
                )

    def _run(
        self, start: Callable[[], MakeFile], files: list[tuple[Path, Path]]
    ) -> None:
        beam, pipeline = self._empty()
        make = functools.partial(_make, uuid.uuid4().hex, start)
        pipeline | beam.Create(files) | beam.Reshuffle() | beam.Map(make)
        try:
            pipeline.run().wait_until_finish()
        except Exception as error:
            # of any type, and often with a worker's whole traceback as its message
            reason = (str(error).strip() or repr(error)).splitlines()[-1]
            raise ChildProcessError(
                f"The pipeline of {self.runner} failed: {reason} The same command"
                " resumes."
            ) from error

    def check(self) -> None:
        """Raises ValueError if Beam cannot make such a pipeline, so that this shows
        before hours of work.
        """
        self._empty()

    def _empty(self) -> tuple[Any, Any]:
        """The module of Beam, and an empty pipeline."""
        # Beam warns of libraries that it does not need
        logging.disable(logging.WARNING)
        try:
            import apache_beam as beam
            from apache_beam.options.pipeline_options import PipelineOptions

            runner = RUNNERS.get(self.runner, self.runner)
            given = shlex.split(self.options)
            options = PipelineOptions([f"--runner={runner}", *DEFAULT_OPTIONS, *given])
            return beam, beam.Pipeline(options=options)
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(
                "--beam_runner and --beam_options must be Apache Beam's, which need pip"
                f" install 't2tlite[beam]', or 't2tlite[dask]'. Received: {error}"
            ) from error
        finally:
            logging.disable(logging.NOTSET)


# Of a thread of a worker: the `pipeline` that it started last, and its function `make`.
# Loading a model takes longer than many a task.
_started = threading.local()


def _make(
    pipeline: str, start: Callable[[], MakeFile], files: tuple[Path, Path]
) -> None:
    """Makes a file with the function that `start` returns. Calls `start` once for each
    pipeline and thread.

    Beam's own place for this, DoFn.setup, is called for each task by the Dask runner.
    """
    path, task_file = files
    if getattr(_started, "pipeline", "") != pipeline:
        _started.make = start()
        _started.pipeline = pipeline
    _started.make(path, pickle.loads(task_file.read_bytes()))
