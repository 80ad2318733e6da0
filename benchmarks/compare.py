"""Speed and memory on this machine's CPU, of t2tlite and of the programs of other
projects that are installed.

    make bench PEERS=FOLDER
    python benchmarks/compare.py --peers=FOLDER --repeats=3 --docs=docs

FOLDER/NAME are virtual environments, one or several, of any name. A peer is run by its
script in benchmarks/peers with the first Python that can import its package; the one
that runs this file is tried last. Every program uses the same batches of token ids, the
same model size and as many threads as there are cores; they run in turn. Prints a
table: the median, and in brackets t2tlite's value divided by it. With --docs,
FOLDER/performance/comparison.json holds every value, and the table replaces the block
`comparison` of FOLDER/performance.md.
"""

from __future__ import annotations

import dataclasses
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import document
import program

OURS = "t2tlite"
PEERS = {  # the package to import, and how to install it
    "OpenNMT-tf": (
        "opennmt",
        "pip install OpenNMT-tf==2.32.0 tensorflow-cpu==2.13.1, with Python 3.10",
    ),
    "PyTorch": ("torch", "pip install torch"),
    "CTranslate2": ("ctranslate2", "pip install ctranslate2"),
    "Hugging Face": ("transformers", "pip install transformers torch"),
}


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A measurement, with the program and arguments of each project. t2tlite's program
    writes the job of the others.
    """

    title: str
    shown: Mapping[str, str]  # keys of a RESULT, and their units
    commands: Mapping[str, str]


TRAINED = {"tokens_per_second": "tokens/s", "peak_memory_mb": "peak memory, MB"}
DECODED = {"sentences_per_second": "sentences/s"}
BFLOAT16 = "--hparams=dtype_policy=mixed_bfloat16"
DECODE_32 = "decode_throughput --steps=32 --beam_size=4 --sentences=64 --batch=32"
DECODE_1 = "decode_throughput --steps=32 --beam_size=4 --sentences=12 --batch=1"
FLOAT32_DECODERS = {
    "OpenNMT-tf": "peers.onmttf_decode",
    "CTranslate2": "peers.ct2_decode --dtype=float32",
    "Hugging Face": "peers.hf_decode --dtype=float32",
}
FAST_DECODERS = {
    "CTranslate2": "peers.ct2_decode --dtype=int8",
    "Hugging Face": "peers.hf_decode --dtype=bfloat16",
}
MEASUREMENTS = (
    Measurement(
        "training, float32",
        TRAINED,
        {
            OURS: "train_throughput --steps=6 --warm=2",
            "OpenNMT-tf": "peers.onmttf_train",
            "PyTorch": "peers.torch_train --dtype=float32",
        },
    ),
    Measurement(
        "training, bfloat16",
        TRAINED,
        {
            OURS: f"train_throughput --steps=6 --warm=2 {BFLOAT16}",
            "PyTorch": "peers.torch_train --dtype=bfloat16",
        },
    ),
    Measurement(
        "decoding, 32 together, float32", DECODED, {OURS: DECODE_32, **FLOAT32_DECODERS}
    ),
    Measurement(
        "decoding, 32 together, bfloat16 (CTranslate2 int8)",
        DECODED,
        {OURS: f"{DECODE_32} {BFLOAT16}", **FAST_DECODERS},
    ),
    Measurement(
        "decoding, one by one, float32", DECODED, {OURS: DECODE_1, **FLOAT32_DECODERS}
    ),
    Measurement(
        "decoding, one by one, bfloat16 (CTranslate2 int8)",
        DECODED,
        {OURS: f"{DECODE_1} {BFLOAT16}", **FAST_DECODERS},
    ),
    Measurement(
        "input pipeline alone",
        {"tokens_per_second": "tokens/s"},
        {OURS: "input_throughput --batches=1000"},
    ),
)


def main(argv: Sequence[str] | None = None) -> None:
    """Measures and prints the table."""
    parser = program.argument_parser(__doc__)
    parser.add_argument("--peers", type=Path, help="folder of virtual environments")
    parser.add_argument(
        "--repeats",
        type=int,
        default=3,
        help="how often each program runs (default: %(default)s)",
    )
    parser.add_argument(
        "--docs", type=Path, help="folder of performance.md, to write the results there"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny models, to try this program"
    )
    args = parser.parse_args(argv)
    pythons = {OURS: sys.executable} | {
        peer: find_python(package, args.peers) for peer, (package, _) in PEERS.items()
    }
    measurements = [
        m for m in MEASUREMENTS if program.has_bfloat16() or "bfloat16" not in m.title
    ]
    results = {
        m.title: measure(m, pythons, args.repeats, args.quick) for m in measurements
    }
    text = summary(measurements, results, pythons, args.repeats)
    print(f"\n{text}")
    if args.docs:
        document.write_results(
            args.docs, "comparison", {"machine": document.machine(), "results": results}
        )
        document.replace_block(args.docs / "performance.md", "comparison", text)


def find_python(package: str, folder: Path | None) -> str | None:
    """Returns the first Python below `folder` that can import a package. The Python
    that runs this file comes last; None if no Python can.
    """
    code = (
        f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is"
        " None)"
    )
    environments = sorted(folder.absolute().glob("*/bin/python")) if folder else []
    for python in (*map(str, environments), sys.executable):
        if subprocess.run([python, "-c", code], cwd=program.FOLDER).returncode == 0:
            return python
    return None


def measure(
    measurement: Measurement,
    pythons: Mapping[str, str | None],
    repeats: int,
    quick: bool,
) -> dict[str, list[dict[str, Any]]]:
    """Measures every program that is installed; returns a result for each repeat."""
    results: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        job = str(Path(folder, "job.npz"))
        for _ in range(repeats):
            for name, command in measurement.commands.items():
                python = pythons[name]
                if python is None:
                    continue
                module, *arguments = command.split()
                if name != OURS:
                    arguments.insert(0, job)
                else:
                    arguments += program.QUICK[module].split() if quick else []
                    arguments += (
                        [f"--save_job={job}"] if len(measurement.commands) > 1 else []
                    )
                start = time.perf_counter()
                try:
                    result = program.run(
                        python, [module, *arguments], CUDA_VISIBLE_DEVICES="-1"
                    )
                except RuntimeError as error:
                    if name == OURS:
                        raise
                    print(
                        f"{measurement.title}: {name} left out, since {error}",
                        flush=True,
                    )
                    continue
                shown = ", ".join(
                    f"{document.number(result[key])} {unit}"
                    for key, unit in measurement.shown.items()
                )
                print(
                    f"{measurement.title}: {name} {shown}, in"
                    f" {time.perf_counter() - start:.0f} s",
                    flush=True,
                )
                results.setdefault(name, []).append(result)
    return results


def summary(
    measurements: Sequence[Measurement],
    results: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]],
    pythons: Mapping[str, str | None],
    repeats: int,
) -> str:
    """Returns the table, the machine, and how to install what is missing."""
    names = [name for name, python in pythons.items() if python]
    rows = []
    for measurement in measurements:
        runs = results[measurement.title]
        for key, unit in measurement.shown.items():
            ours = statistics.median(run[key] for run in runs[OURS])
            row = [f"{measurement.title}: {unit}"]
            for name in names:
                if name not in runs:
                    row.append("")
                    continue
                median = statistics.median(run[key] for run in runs[name])
                cell = document.number(median)
                row.append(cell if name == OURS else f"{cell} ({ours / median:.2f})")
            rows.append(row)
    versions = sorted(
        {
            run["program"]
            for runs in results.values()
            for many in runs.values()
            for run in many
        }
        - {OURS}
    )
    notes = f"Median of {repeats}; in brackets, t2tlite's value divided by it. "
    notes += f"{', '.join([*versions, document.machine()])}."
    missing = [
        f"{name}: not installed; {PEERS[name][1]}."
        for name, python in pythons.items()
        if python is None
    ]
    return "\n\n".join([document.table(["", *names], rows), notes, *missing])


if __name__ == "__main__":
    main()
