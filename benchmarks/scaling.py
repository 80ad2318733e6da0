"""The cost of training, decoding, the input pipeline and data generation as one size
grows.

    python benchmarks/scaling.py  # every sweep, then the plots
    python benchmarks/scaling.py --what batch length  # these alone
    python benchmarks/scaling.py --what datagen --values 36000000  # one more point
    python benchmarks/scaling.py --plot  # only draws what has been measured

Each point is measured by one of the programs beside this file, in a process of its own.
Results are kept in docs/performance/scaling.json, point by point; a point that is
measured again is replaced. From them come a plot and a table for each sweep, in the
block `scaling` of docs/performance.md.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import document
import program

from t2tlite.files.atomic_file import atomic_file

TRAIN = "train_throughput --steps=5 --warm=2"
DECODE = "decode_throughput --sentences=64 --steps=32"
TRAINED = {
    "seconds_per_step": "s/step",
    "tokens_per_second": "tokens/s",
    "peak_memory_mb": "peak memory, MB",
}
DECODED = {"sentences_per_second": "sentences/s", "peak_memory_mb": "peak memory, MB"}


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A size that grows, and the program that measures each point."""

    caption: str
    axis: str  # the size that grows
    values: tuple[int, ...]
    # the program that measures a {value}, and its arguments
    arguments: str
    shown: Mapping[str, str]  # keys of the program's RESULT, and their labels

    def arguments_of(self, value: int) -> list[str]:
        """Returns the program and its arguments for one value."""
        arguments = self.arguments.format(
            value=value, filter_size=4 * value, heads=value // 64, share=4096 // value
        )
        return arguments.split()


SWEEPS = {
    "input_pipeline": Sweep(
        "The input pipeline without a model: batches of 4,096 tokens, each pair 28"
        " tokens a side on average.",
        "training pairs",
        (3_000, 30_000, 300_000, 3_000_000),
        "input_throughput --pairs={value}",
        {
            "tokens_per_second": "tokens/s",
            "seconds_to_first_batch": "s to the first batch",
        },
    ),
    "datagen": Sweep(
        "Data generation, from text to token shards with a vocabulary of 8,000 pieces."
        " WMT's 36 million English-French pairs were not measured; each pair costs the"
        " same, so they should take about twelve times as long as 3 million. Memory"
        " holds a sample of the text, then a chunk of pairs, whatever the number of"
        " pairs.",
        "training pairs",
        (3_000, 30_000, 300_000, 3_000_000),
        "datagen_throughput --pairs={value}",
        {
            "seconds": "time, s",
            "pairs_per_second": "pairs/s",
            "peak_memory_mb": "peak memory, MB",
        },
    ),
    "batch": Sweep(
        "Training against the batch size in tokens of the longer side, padding"
        " counted.",
        "batch size, tokens",
        (512, 1024, 2048, 4096, 8192),
        TRAIN + " --hparams=batch_size={value}",
        TRAINED,
    ),
    "length": Sweep(
        "Training against the sentence length, 2,048 tokens a batch: all sentences of a"
        " corpus have this length.",
        "tokens of a sentence",
        (8, 16, 32, 64, 128, 256),
        TRAIN + " --mean_length={value} --spread=0 --hparams=batch_size=2048",
        TRAINED,
    ),
    "layers": Sweep(
        "Training against the number of layers of the encoder and of the decoder, 2,048"
        " tokens a batch.",
        "layers",
        (1, 2, 4, 6, 8),
        TRAIN + " --hparams=num_hidden_layers={value},batch_size=2048",
        TRAINED,
    ),
    "width": Sweep(
        "Training against the hidden size, 2,048 tokens a batch; the filter size is"
        " four times, a head 64 wide.",
        "hidden size",
        (128, 256, 512, 1024),
        TRAIN + " --hparams=hidden_size={value},filter_size={filter_size}"
        ",num_heads={heads},batch_size=2048",
        TRAINED,
    ),
    "vocabulary": Sweep(
        "Training against the size of the shared vocabulary, 2,048 tokens a batch.",
        "vocabulary size",
        (2000, 4000, 8000, 16_000, 32_000),
        TRAIN + " --vocab_size={value} --hparams=batch_size=2048",
        TRAINED,
    ),
    "beam": Sweep(
        "Decoding against the beam size, batches of 32 sentences, 32 positions each.",
        "beam size",
        (1, 2, 4, 8, 16),
        DECODE + " --beam_size={value}",
        DECODED,
    ),
    "decoding_batch": Sweep(
        "Decoding against the sentences decoded together, beam size 4, 32 positions"
        " each.",
        "sentences in a batch",
        (1, 4, 16, 32, 64),
        DECODE + " --batch={value}",
        DECODED,
    ),
    "replicas": Sweep(
        "Data-parallel training of a global batch of 4,096 tokens on logical devices of"
        " the CPU. They share its cores, so this shows what replicas cost beyond the"
        " work itself, not what more hardware would gain.",
        "replicas",
        (1, 2, 4),
        TRAIN + " --replicas={value} --hparams=batch_size={share}",
        TRAINED,
    ),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measures, and writes the plots and tables."""
    parser = program.argument_parser(__doc__)
    parser.add_argument(
        "--what",
        nargs="+",
        choices=SWEEPS,
        default=list(SWEEPS),
        help="sweeps (default: all)",
    )
    parser.add_argument(
        "--values", nargs="+", type=int, help="points of the sweep instead of its own"
    )
    parser.add_argument("--plot", action="store_true", help="measure nothing")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="tiny models, one point a sweep, to try this program",
    )
    parser.add_argument(
        "--docs",
        type=Path,
        default=document.DOCS,
        help="folder of performance.md (default: %(default)s)",
    )
    args = parser.parse_args(argv)
    results = document.read_results(args.docs, "scaling")
    if not args.plot:
        for name in args.what:
            for value in (
                args.values or SWEEPS[name].values[: 1 if args.quick else None]
            ):
                results.setdefault(name, {})[str(value)] = measure(
                    name, value, args.quick
                )
                document.write_results(args.docs, "scaling", results)
    for name, points in results.items():
        plot(args.docs / "performance" / f"{name}.svg", SWEEPS[name], points)
    document.replace_block(args.docs / "performance.md", "scaling", block(results))


def measure(name: str, value: int, quick: bool) -> dict[str, Any]:
    """Measures one point of a sweep."""
    arguments = SWEEPS[name].arguments_of(value)
    quick_arguments = program.QUICK[arguments[0]].split() if quick else []
    start = time.perf_counter()
    result = program.run(sys.executable, arguments + quick_arguments)
    print(
        f"{name} {value:,}: {result} in {time.perf_counter() - start:.0f} s", flush=True
    )
    return {
        "command": " ".join(arguments),
        "machine": document.machine(),
        "result": result,
    }


def series(
    sweep: Sweep, points: Mapping[str, Any], key: str
) -> list[tuple[int, float]]:
    """Returns the measured (value, result) pairs, ordered by value."""
    return sorted((int(value), point["result"][key]) for value, point in points.items())


def block(results: Mapping[str, Any]) -> str:
    """Returns plots and tables of all sweeps as Markdown. The machine is named once if
    all have the same, otherwise after each sweep.
    """
    machines = {}
    for name, points in results.items():
        used = {point["machine"] for point in points.values()}
        machines[name] = ". ".join(sorted(used))
    is_same = len(set(machines.values())) == 1
    parts = [f"All on {next(iter(machines.values()))}."] if is_same else []
    for name, sweep in SWEEPS.items():
        if name not in results:
            continue
        columns = [series(sweep, results[name], key) for key in sweep.shown]
        rows = []
        for cells in zip(*columns, strict=True):
            value, _ = cells[0]
            rows.append([f"{value:,}", *(document.number(y) for _, y in cells)])
        parts += [f"### {name.replace('_', ' ').capitalize()}", sweep.caption]
        parts += [
            f"![{name} by {sweep.axis}](performance/{name}.svg)",
            document.table([sweep.axis, *sweep.shown.values()], rows),
        ]
        if not is_same:
            parts += [f"On {machines[name]}."]
    return "\n\n".join(parts)


def plot(path: Path, sweep: Sweep, points: Mapping[str, Any]) -> None:
    """Draws the costs of a sweep on logarithmic scales. A straight line means a power
    of the size.
    """
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    with matplotlib.rc_context(
        {**document.STYLE, "svg.hashsalt": path.stem, "figure.facecolor": "white"}
    ):
        figure = Figure(figsize=(3 * len(sweep.shown), 2.4), layout="constrained")
        for axes, (key, label) in zip(
            figure.subplots(1, len(sweep.shown), squeeze=False)[0],
            sweep.shown.items(),
            strict=True,
        ):
            x, y = zip(*series(sweep, points, key), strict=True)
            axes.plot(x, y, color=document.COLOURS[0], marker="o", markersize=4)
            axes.set(
                title=label,
                xlabel=sweep.axis,
                xscale="log",
                yscale="log",
                ylim=(min(y) / 1.5, max(y) * 1.5),
            )
            axes.set_xticks(x, [f"{value:,}" for value in x])
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_minor_locator(NullLocator())
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            figure.savefig(
                file,
                format="svg",
                metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")),
            )


if __name__ == "__main__":
    main()
