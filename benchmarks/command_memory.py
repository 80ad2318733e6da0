"""The peak memory of t2t-datagen, t2t-trainer and t2t-decoder on 1, 10 and 36 million
sentence pairs, and their time.

    python benchmarks/command_memory.py --folder=/somewhere/large
    python benchmarks/command_memory.py --folder=/somewhere/large \\
        --millions 36 --commands trainer decoder

The text is a million random pairs, about 20 words a side, repeated. Without `datagen`,
the token shards of the first million are repeated instead, as hard links. t2t-trainer
trains transformer_tiny for 20 steps; another model needs memory of its own. t2t-decoder
translates the sources with that model, and is stopped after a thousand. Memory is that
of all processes of a command, sampled. Pages of mapped shards count, although the
system may take them back. Time is that of the whole command; t2t-trainer's grows with
the pairs only by the batch plan.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import operator
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import document
import program
from datagen_throughput import PeakMemory, RandomText

from t2tlite.data.manifest import MANIFEST, read_manifest
from t2tlite.files.atomic_file import atomic_file
from t2tlite.files.records import write_record

COMMANDS = ("datagen", "trainer", "decoder")
PROBLEM = "parallel_text"
SENTENCES = 1000  # sentences that t2t-decoder translates before it is stopped


def main(argv: Sequence[str] | None = None) -> None:
    """Measures and prints a table."""
    parser = program.argument_parser(__doc__)
    parser.add_argument(
        "--folder",
        type=Path,
        required=True,
        help="for text, data and runs: 20 GB for 36 million pairs",
    )
    parser.add_argument(
        "--millions",
        nargs="+",
        type=int,
        default=[1, 10, 36],
        help="sizes (default: 1 10 36)",
    )
    parser.add_argument(
        "--commands",
        nargs="+",
        choices=COMMANDS,
        default=list(COMMANDS),
        help="(default: all)",
    )
    parser.add_argument(
        "--pairs",
        type=int,
        default=1_000_000,
        help="instead of a million, to try this program",
    )
    parser.add_argument("--vocab_size", type=int, default=8000)
    args = parser.parse_args(argv)
    args.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for millions in args.millions:
        costs = measure(args, millions)
        rows.append(
            [
                f"{millions:,}",
                *(
                    document.number(value)
                    for name in args.commands
                    for value in costs[name]
                ),
            ]
        )
        print(f"{millions} million pairs: {costs}", flush=True)
    header = [f"t2t-{name}, {unit}" for name in args.commands for unit in ("MB", "s")]
    print(document.table(["million pairs", *header], rows))
    print(document.machine())


class Cost(NamedTuple):
    """The time and memory of a command."""

    peak_memory_mb: float
    seconds: float


def measure(args: argparse.Namespace, millions: int) -> dict[str, Cost]:
    """Measures each command on this many million pairs."""
    data, run = args.folder / f"data-{millions}", args.folder / f"run-{millions}"
    text = write_text(args.folder, "train", args.pairs, millions)
    costs = {}
    if "datagen" in args.commands:
        costs["datagen"] = datagen(args, data, text)
    else:
        first = args.folder / "data-1"
        if not first.exists():
            datagen(args, first, write_text(args.folder, "train", args.pairs, 1))
        if not data.exists():
            repeat_shards(first / PROBLEM, data / PROBLEM, millions)
    if "trainer" in args.commands:
        shutil.rmtree(run, ignore_errors=True)
        places = f"--data_dir={data}", f"--output_dir={run}"
        costs["trainer"] = cost(
            "trainer", "--hparams_set=transformer_tiny", "--train_steps=20", *places
        )
    if "decoder" in args.commands:
        flags = f"--output_dir={run}", f"--decode_from_file={text[0]}"
        costs["decoder"] = cost("decoder", *flags, lines=SENTENCES)
    return costs


def write_text(
    folder: Path, split: str, pairs: int, times: int = 1
) -> tuple[Path, Path]:
    """Writes the files of sources and targets: random pairs, repeated."""
    paths = folder / f"{split}-{times}.en", folder / f"{split}-{times}.de"
    if not paths[1].exists():
        for side, path in enumerate(paths):
            text = "".join(
                f"{pair[side]}\n"
                for pair in RandomText(train_size=pairs).pairs("train", None)
            )
            with atomic_file(path) as file:
                for _ in range(times):
                    file.write(text.encode())
    return paths


def datagen(args: argparse.Namespace, data: Path, text: tuple[Path, Path]) -> Cost:
    """Makes the data anew."""
    shutil.rmtree(data, ignore_errors=True)
    names = "train_source", "train_target", "dev_source", "dev_target"
    paths = *text, *write_text(args.folder, "dev", min(500, args.pairs))
    files = (f"--{name}={path}" for name, path in zip(names, paths, strict=True))
    flags = (
        f"--problem={PROBLEM}",
        f"--data_dir={data}",
        f"--vocab_size={args.vocab_size}",
    )
    return cost("datagen", *flags, *files)


def repeat_shards(source: Path, data: Path, times: int) -> None:
    """Makes data whose training shards repeat those of `source`, as hard links."""
    data.mkdir(parents=True)
    manifest = read_manifest(source)
    for entry in manifest.entries():
        os.link(source / entry.file, data / entry.file)
    parts = [manifest.splits["train"]]
    for copy in range(1, times):
        shards = [
            dataclasses.replace(shard, file=f"copy{copy}-{shard.file}")
            for shard in parts[0].shards
        ]
        for shard, original in zip(shards, parts[0].shards, strict=True):
            os.link(source / original.file, data / shard.file)
        parts.append(dataclasses.replace(parts[0], shards=tuple(shards)))
    splits = {**manifest.splits, "train": functools.reduce(operator.add, parts)}
    write_record(data / MANIFEST, dataclasses.replace(manifest, splits=splits))


def cost(command: str, *flags: str, lines: int | None = None) -> Cost:
    """Runs a command, if `lines` are given until it has printed these; the most memory
    of its processes, and its time.

    Raises RuntimeError with the end of its error output if it fails.
    """
    arguments = [sys.executable, "-m", f"t2tlite.bin.t2t_{command}", *flags]
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        with process, PeakMemory(process.pid) as memory:
            printed = sum(1 for _ in itertools.islice(process.stdout or (), lines))
            if printed == lines:
                process.terminate()
        if process.returncode and printed != lines:
            errors.seek(0)
            raise RuntimeError(
                f"t2t-{command} failed with status"
                f" {process.returncode}:\n{errors.read()[-2000:]}"
            )
    return Cost(memory.mb, time.perf_counter() - start)


if __name__ == "__main__":
    main()
