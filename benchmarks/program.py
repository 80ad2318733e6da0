"""The parts that all measured programs share, t2tlite's and the peers': the job, the
timing, the RESULT line.

A job is a model size and batches of token ids. t2tlite's program saves it in a file,
which the peers read, so that all train on or decode the same ids. Needs NumPy alone, so
that it runs in the environment of any peer.
"""

# R rows, S source length, T target length

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent
CORES = len(os.sched_getaffinity(0))  # threads of each program
PAD, EOS = 0, 1
# arguments to add for a trial of t2tlite's programs in little time; the numbers mean
# nothing
QUICK = {
    "train_throughput": "--hparams_set=transformer_tiny --steps=2 --warm=1 --pairs=300",
    "decode_throughput": (
        "--hparams_set=transformer_tiny --sentences=4 --steps=3 --pairs=20"
    ),
    "input_throughput": "--batches=20",
    "datagen_throughput": "--vocab_size=300 --num_processes=1",
}
NOTABLE = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "amx_bf16",
    "amx_int8",
    "asimd",
    "i8mm",
    "bf16",
)


@dataclasses.dataclass(frozen=True)
class Job:
    """A Transformer and the batches that it trains on or decodes."""

    hidden_size: int
    filter_size: int
    num_layers: int  # of the encoder, and of the decoder
    num_heads: int
    vocab_size: int
    warm: int  # batches at the start that do not count: tracing, memory
    # int32 [R, S] and [R, T]; T is 0 in a job of decoding
    batches: Sequence[tuple[np.ndarray, np.ndarray]]
    beam_size: int = 0
    steps: int = 0  # positions decoded of each sentence


def save_job(path: str | Path, job: Job) -> None:
    """Writes a job as an .npz file."""
    settings = {
        field.name: getattr(job, field.name)
        for field in dataclasses.fields(job)
        if field.name != "batches"
    }
    arrays = {
        f"{side}_{i}": ids
        for i, batch in enumerate(job.batches)
        for side, ids in zip("st", batch, strict=True)
    }
    np.savez(path, settings=json.dumps(settings), **arrays)


def load_job(path: str | Path) -> Job:
    """Reads what `save_job` wrote."""
    with np.load(path) as file:
        batches = [
            (file[f"s_{i}"], file[f"t_{i}"]) for i in range(len(file.files) // 2)
        ]
        return Job(**json.loads(str(file["settings"])), batches=batches)


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """Makes a parser whose help shows a program's docstring unchanged."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def peer_arguments(description: str | None, dtypes: Sequence[str]) -> tuple[Job, str]:
    """Reads the job and the number format from a peer's command line."""
    parser = argument_parser(description)
    parser.add_argument(
        "job", help="the file that t2tlite's program wrote with --save_job"
    )
    parser.add_argument("--dtype", default=dtypes[0], choices=dtypes)
    args = parser.parse_args()
    return load_job(args.job), args.dtype


def measure_training(
    program: str, dtype: str, job: Job, step: Callable[[np.ndarray, np.ndarray], float]
) -> None:
    """Times `step`, which trains on a batch and returns its loss, and prints a line for
    each, then RESULT.
    """
    counted_tokens, counted_seconds = [], []
    for number, (inputs, targets) in enumerate(job.batches, 1):
        start = time.perf_counter()
        loss = step(inputs, targets)
        seconds = time.perf_counter() - start
        tokens = np.count_nonzero(inputs) + np.count_nonzero(targets)
        print(
            f"step {number} loss {loss:.3f} {seconds:.2f} s, {tokens / seconds:,.0f}"
            " tokens/s",
            flush=True,
        )
        if number > job.warm:
            counted_tokens.append(tokens)
            counted_seconds.append(seconds)
    report(
        program=program,
        dtype=dtype,
        # source and target, without padding
        tokens_per_second=sum(counted_tokens) / sum(counted_seconds),
        seconds_per_step=sum(counted_seconds) / len(counted_seconds),
        peak_memory_mb=memory_mb("VmHWM"),
    )


def measure_decoding(
    program: str, dtype: str, job: Job, decode: Callable[[np.ndarray], int]
) -> None:
    """Times `decode`, and prints RESULT. `decode` translates a batch of sources [R, S]
    and returns the number of its steps.

    Raises ValueError if that is not the job's number of steps.
    """
    for inputs, _ in job.batches[: job.warm]:
        steps = decode(inputs)
        if steps != job.steps:
            raise ValueError(
                f"Every sentence must be decoded for {job.steps} steps. Received:"
                f" {steps}."
            )
    start = time.perf_counter()
    for inputs, _ in job.batches[job.warm :]:
        decode(inputs)
    seconds = time.perf_counter() - start
    sentences = sum(len(inputs) for inputs, _ in job.batches[job.warm :])
    report(
        program=program,
        dtype=dtype,
        sentences_per_second=sentences / seconds,
        seconds=seconds,
        peak_memory_mb=memory_mb("VmHWM"),
    )


def memory_mb(field: str) -> float:
    """Returns this process's resident memory (VmRSS) or its peak (VmHWM), in MB of 10^6
    bytes.
    """
    return (
        int(
            re.findall(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())[
                0
            ]
        )
        * 1024
        / 1e6
    )


def cpu_features() -> list[str]:
    """Lists the instruction sets of this CPU on which speed depends, as Linux names
    them.
    """
    flags = re.findall(
        r"^(?:flags|Features)\s*:(.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE
    )
    return [name for name in NOTABLE if flags and name in flags[0].split()]


def has_bfloat16() -> bool:
    """Whether this CPU has bfloat16 instructions. Emulation is many times slower."""
    return any(name.endswith("bf16") for name in cpu_features())


def report(**values: Any) -> None:
    """Prints the line that `run` reads: RESULT and a JSON object."""
    for name, value in values.items():
        if isinstance(value, float):
            values[name] = float(f"{value:.4g}")
    print(f"RESULT {json.dumps(values)}", flush=True)


def run(python: str, arguments: Sequence[str], **environment: str) -> dict[str, Any]:
    """Runs one of these programs as `python -m ARGUMENTS` in a process of its own and
    returns its RESULT.

    Raises RuntimeError with the end of its error output if it fails.
    """
    done = subprocess.run(
        [python, "-m", *arguments],
        cwd=FOLDER,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(arguments)} failed with status"
            f" {done.returncode}:\n{done.stderr[-2000:]}"
        )
    return json.loads(done.stdout.rpartition("RESULT ")[2])
