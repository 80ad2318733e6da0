"""Table 1 of the paper, measured: what one layer of each type costs over the length n
and the width d.

    python benchmarks/layer_complexity.py --quick
    python benchmarks/layer_complexity.py --document=docs/table1.md

A run is the forward and the backward pass of one sequence, in float32 on one core of a
CPU. Time is the process's own, which other work on the machine changes little, in the
fastest of two to six runs; memory is what the first run adds to what the process holds,
at its peak (needs glibc). Each layer of each size has a process of its own, since a
process does not give all memory back. Prints the tables; with --document also puts them
into the block `layer complexity` of that file, and draws them in an SVG of the same
name.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import document
import numpy as np
import program

from t2tlite.console import markdown_table
from t2tlite.files.atomic_file import atomic_file
from t2tlite.machine import quiet_stderr
from t2tlite.programs.table3.table import shown_versions

with quiet_stderr():
    import keras
    import tensorflow as tf

    from t2tlite.layers.attention import MultiHeadAttention

# of attention, convolution (k) and restricted self-attention (r)
HEADS, KERNEL, RADIUS = 8, 3, 32
# no further run after this many, or after this time
MAX_RUNS, MAX_SECONDS = 6, 3.0
FITTED = 3  # the largest sizes, to which an exponent is fitted


class Row(NamedTuple):
    """A row of the paper's Table 1."""

    complexity: str  # operations of a layer
    sequential: str  # operations that must follow one another
    path: str  # longest path between any two positions
    exponents: tuple[int, int]  # of n and d in `complexity`


TABLE_1 = {
    "self-attention": Row("O(n² d)", "O(1)", "O(1)", (2, 1)),
    "recurrent": Row("O(n d²)", "O(n)", "O(n)", (1, 2)),
    "convolutional": Row("O(k n d²)", "O(1)", "O(log_k n)", (1, 2)),
    "restricted self-attention": Row("O(r n d)", "O(1)", "O(n / r)", (1, 1)),
}


class Size(NamedTuple):
    """A layer and its size."""

    layer: str  # a key of TABLE_1
    n: int  # positions
    d: int  # width of input and output


class Cost(NamedTuple):
    """The cost of a forward and a backward pass."""

    milliseconds: float
    megabytes: float  # 10^6 bytes, at the peak


class Sweep(NamedTuple):
    """Sizes that differ in n alone, or in d alone."""

    of: str  # "n" or "d"
    values: Sequence[int]
    fixed: int  # the other of the two

    def sizes(self, layer: str) -> list[Size]:
        """Returns the sizes of a layer, the smallest first."""
        if self.of == "n":
            return [Size(layer, n, self.fixed) for n in self.values]
        return [Size(layer, self.fixed, d) for d in self.values]

    def __str__(self) -> str:
        return f"over {self.of}, {'d' if self.of == 'n' else 'n'} = {self.fixed}"


Costs = dict[Size, Cost]


def main() -> None:
    """Measures, prints and writes."""
    parser = program.argument_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="only small sizes")
    parser.add_argument(
        "--document",
        type=Path,
        help="Markdown file whose tables and plot are to be made again",
    )
    args = parser.parse_args()
    sweeps = [
        Sweep("n", [2**i for i in range(6, 13)], 256),
        Sweep("d", [2**i for i in range(6, 11)], 512),
    ]
    if args.quick:
        sweeps = [Sweep(of, [32, 64, 128], 32) for of in "nd"]
    all_sizes: dict[Size, None] = {}  # each once
    for sweep in sweeps:
        for layer in TABLE_1:
            all_sizes |= dict.fromkeys(sweep.sizes(layer))
    sizes = list(all_sizes)
    costs: Costs = {}
    processes = multiprocessing.get_context("forkserver")
    # TensorFlow is imported once for all
    processes.set_forkserver_preload([Path(__file__).stem])
    with processes.Pool(1, maxtasksperchild=1) as pool:
        for size, cost in zip(sizes, pool.imap(measure, sizes), strict=True):
            costs[size] = cost
            print(
                f"{size.layer}, n = {size.n}, d = {size.d}: {cost.milliseconds:.2f} ms,"
                f" {cost.megabytes:.1f} MB",
                flush=True,
            )
    text = tables(sweeps, costs)
    print(f"\n{text}")
    if args.document:
        document.replace_block(args.document, "layer complexity", text)
        draw(args.document.with_suffix(".svg"), sweeps, costs)


def measure(size: Size) -> Cost:
    """Runs in a process of its own."""
    with quiet_stderr():
        tf.config.set_visible_devices([], "GPU")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    layer, call = make_layer(size)
    call(tf.zeros((1, 2, size.d)))  # makes the weights

    @tf.function(input_signature=[tf.TensorSpec((1, None, size.d))])
    def run(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = call(x)
        return tape.gradient(output, [x, *layer.trainable_variables])

    x = tf.constant(
        np.random.default_rng(1).standard_normal((1, size.n, size.d), np.float32)
    )
    run(x[:, :8])  # traces the function and starts TensorFlow's threads
    # returns freed memory to the system, so that its reuse counts
    ctypes.CDLL(None).malloc_trim(0)
    before, peaks, seconds = program.memory_mb("VmRSS"), [], []
    # resets the peak, VmHWM
    Path("/proc/self/clear_refs").write_text("5")
    while len(seconds) < 2 or (len(seconds) < MAX_RUNS and sum(seconds) < MAX_SECONDS):
        start = time.process_time()
        run(x)
        seconds.append(time.process_time() - start)
        peaks.append(program.memory_mb("VmHWM"))
    return Cost(1e3 * min(seconds), peaks[0] - before)


def make_layer(size: Size) -> tuple[Any, Callable[[Any], Any]]:
    """Makes a layer, and a function that calls it with [1, n, d]."""
    if size.layer == "recurrent":
        layer = keras.layers.LSTM(size.d, return_sequences=True)
        return layer, layer
    if size.layer == "convolutional":
        layer = keras.layers.Conv1D(size.d, KERNEL, padding="same")
        return layer, layer
    radius = RADIUS if size.layer == "restricted self-attention" else 0
    layer = MultiHeadAttention(
        size.d, HEADS, size.d, size.d, dropout=0.0, radius=radius
    )
    return layer, lambda x: layer(
        x, x, keras.ops.zeros((1, 1, 1, keras.ops.shape(x)[1]))
    )


def exponent(sizes: Sequence[Size], costs: Costs, of: str, field: str) -> float:
    """Fits the exponent of n or d with which a cost grows, at the largest sizes."""
    points = [
        (math.log(getattr(size, of)), math.log(getattr(costs[size], field)))
        for size in sizes[-FITTED:]
    ]
    return float(np.polyfit(*zip(*points, strict=True), deg=1)[0])


def tables(sweeps: Sequence[Sweep], costs: Costs) -> str:
    """Returns, in Markdown, the paper's table beside the measured exponents, and every
    measurement.
    """
    rows = []
    for layer, (complexity, sequential, path, papers) in TABLE_1.items():
        of_time = []
        of_memory = []
        for sweep, theirs in zip(sweeps, papers, strict=True):
            time_field, memory_field = Cost._fields
            sizes = sweep.sizes(layer)
            ours = exponent(sizes, costs, sweep.of, time_field)
            of_time.append(f"{ours:.2f} ({theirs})")
            of_memory.append(f"{exponent(sizes, costs, sweep.of, memory_field):.2f}")
        rows.append([layer, complexity, sequential, path, *of_time, *of_memory])
    measured = []
    for what in ("time", "memory"):
        measured += [f"{what}: {sweep.of}^" for sweep in sweeps]
    text = markdown_table(
        ["layer", "operations", "sequential", "longest path", *measured], rows, labels=4
    )
    for sweep in sweeps:
        for field in Cost._fields:
            text += f"\n{field.capitalize()} {sweep}:\n\n"
            lines = []
            for layer in TABLE_1:
                line = [layer]
                for size in sweep.sizes(layer):
                    line.append(document.number(getattr(costs[size], field)))
                lines.append(line)
            text += markdown_table(
                ["", *(f"{sweep.of} = {x:,}" for x in sweep.values)], lines, labels=1
            )
    return f"{text}\n{HEADS} heads, k = {KERNEL}, r = {RADIUS}. {shown_versions()}.\n"


def draw(path: Path, sweeps: Sequence[Sweep], costs: Costs) -> None:
    """Draws time and memory over n and over d, on logarithmic scales."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**document.STYLE, "svg.hashsalt": "table1"}):
        figure = Figure(figsize=(8, 5.6), layout="constrained")
        panels = [(field, sweep) for field in Cost._fields for sweep in sweeps]
        for axes, (field, sweep) in zip(
            figure.subplots(2, 2).flat, panels, strict=True
        ):
            for colour, layer in zip(document.COLOURS, TABLE_1, strict=True):
                values = [getattr(costs[size], field) for size in sweep.sizes(layer)]
                axes.plot(
                    sweep.values,
                    values,
                    color=colour,
                    marker="o",
                    markersize=3,
                    linewidth=1.3,
                    label=layer,
                )
            axes.set(
                xscale="log", yscale="log", xlabel=sweep.of, title=f"{field} {sweep}"
            )
            axes.set_xticks(sweep.values, [f"{x:,}" for x in sweep.values])
            axes.yaxis.set_major_formatter("{x:,g}")
            axes.minorticks_off()
        figure.axes[0].legend()
        with atomic_file(path) as file:
            figure.savefig(
                file, format="svg", facecolor="white", metadata={"Date": None}
            )


if __name__ == "__main__":
    main()
