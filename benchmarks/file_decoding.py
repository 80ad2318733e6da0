"""A file translated by a trained model, as a whole command: t2t-decoder, and other
programs with the same weights.

    make demo
    python benchmarks/file_decoding.py runs/demo/grammar_ende --split=test \\
        --peers=FOLDER

Sentences end where the model ends them (free length). The weights of the run, which
must be pre-norm with one shared embedding, are copied into OpenNMT-tf's and Hugging
Face's model of the same architecture; outputs that differ from t2t-decoder's are
counted. The peers start from token ids and end with token ids, while t2t-decoder also
reads and writes text. Time is that of a process from start to end. FOLDER as for
compare.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import document
import keras
import numpy as np
import program
from compare import PEERS, find_python

from t2tlite import load
from t2tlite.files.text_files import read_lines, write_lines
from t2tlite.layers.embedding import sinusoid_halves, sinusoids
from t2tlite.programs.runs.load import run_dataset
from t2tlite.run_folder import RunFolder

MODULES = {"OpenNMT-tf": "peers.onmttf_file", "Hugging Face": "peers.hf_file"}
POSITIONS = 1024


def main() -> None:
    """Measures and prints."""
    parser = program.argument_parser(__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument(
        "--split", default="test", help="of the run's data (default: %(default)s)"
    )
    parser.add_argument(
        "--copies", type=int, default=1, help="how often the split is in the file"
    )
    parser.add_argument(
        "--batch", type=int, default=128, help="sentences that a peer decodes together"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", type=Path, help="folder of virtual environments")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(args, Path(folder))


def measure(args: argparse.Namespace, folder: Path) -> None:
    """Runs the programs in turn and prints a table."""
    source, job, output = folder / "source.txt", folder / "job.npz", folder / "output"
    sentences = (
        run_dataset(RunFolder(args.run)).store(args.split).source_text() * args.copies
    )
    write_lines(source, sentences)
    encoder = write_job(args.run, sentences, args.batch, job)
    flags = (
        f"--output_dir={args.run.absolute()}",
        f"--decode_from_file={source}",
        f"--decode_to_file={output}",
    )
    commands = {"t2tlite": [sys.executable, "-m", "t2tlite.bin.t2t_decoder", *flags]}
    for name, module in MODULES.items():
        python = find_python(PEERS[name][0], args.peers)
        if python:
            commands[name] = [python, "-m", module, str(job), str(output)]
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    outputs: dict[str, list[str]] = {}
    for _ in range(args.repeats):
        for name, command in commands.items():
            start = time.perf_counter()
            done = subprocess.run(
                command, cwd=program.FOLDER, capture_output=True, text=True
            )
            seconds[name].append(time.perf_counter() - start)
            if done.returncode:
                raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
            lines = list(read_lines(output))
            if name != "t2tlite":  # the others write ids
                lines = [encoder.decode(json.loads(line)) for line in lines]
            outputs[name] = lines
            print(f"{name}: {seconds[name][-1]:.1f} s", flush=True)
    ours = statistics.median(seconds["t2tlite"])
    rows = []
    for name, values in seconds.items():
        median = statistics.median(values)
        differing = sum(
            a != b for a, b in zip(outputs["t2tlite"], outputs[name], strict=True)
        )
        rows.append(
            [name, document.number(median), f"{median / ours:.2f}", f"{differing:,}"]
        )
    print(document.table(["", "s", "of t2tlite's", "outputs that differ"], rows))
    print(
        f"\n{len(sentences):,} sentences, median of {args.repeats},"
        f" {document.machine()}."
    )


def write_job(run: Path, sentences: Sequence[str], batch: int, path: Path):  # type: ignore[no-untyped-def]
    """Writes weights, sizes and token ids for the peers' programs. Returns the
    vocabulary that decodes their ids.
    """
    model = load(run)
    hparams = model.engine.model.hparams
    if not (hparams.pre_norm and hparams.shared_embedding_and_softmax_weights):
        raise ValueError(
            "The run must be pre-norm with one shared embedding, such as"
            " transformer_tiny's."
        )
    options = model.options()
    encoded = model.source_encoder.encode_batch(sentences)
    table = {"timing": sinusoids, "timing_halves": sinusoid_halves}[hparams.pos](
        keras.ops.arange(POSITIONS), hparams.hidden_size
    )
    settings = {
        "vocab_size": model.target_encoder.vocab_size,
        "hidden_size": hparams.hidden_size,
        "filter_size": hparams.filter_size,
        "layers": hparams.encoder_layers,
        "heads": hparams.num_heads,
        "beam_size": options.beam_size,
        "alpha": options.alpha,
        "extra_length": options.extra_length,
        "batch": batch,
    }
    weights = {
        f"w:{short_name(v.path)}": np.asarray(v)
        for v in model.engine.model.trainable_variables
    }
    rows = {
        f"s:{i}": np.array([*ids, program.EOS], np.int32)
        for i, ids in enumerate(encoded)
    }
    np.savez(
        path,
        settings=json.dumps(settings),
        positions=np.asarray(table),
        **weights,
        **rows,
    )
    return model.target_encoder


def short_name(path: str) -> str:
    """Returns a weight's name without the residual connection around it:
    encoder_0/self_attention/query/kernel.
    """
    parts = path.removeprefix("transformer/").split("/")
    inner = [part for part in parts if not part.endswith("_residual")]
    return "/".join(parts if "norm" in parts else inner)


if __name__ == "__main__":
    main()
