"""BLEU after the same training time: t2tlite, and OpenNMT-tf with the same model, text,
vocabulary and batches.

    python benchmarks/equal_time.py DATA --hparams_set=transformer_multi30k \\
        --minutes=40 --peers=FOLDER --output=RUNS

DATA is a folder that `t2t-datagen` made with one vocabulary for source and target. Each
program is stopped when the time since its start is over; then its last 5 checkpoints
are averaged and translate the test split, beam size 4, length penalty 0.6. OpenNMT-tf
has the hparams' size, dropout, label smoothing, learning rate and batch size; what they
do not say is its own default. FOLDER as for compare.py.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import document
import numpy as np
import program
from compare import PEERS, find_python

import t2tlite.hparams  # noqa: F401  registers the sets
from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.data.dataset import Dataset, open_dataset
from t2tlite.files.atomic_file import write_text
from t2tlite.files.checkpoint_paths import step_of
from t2tlite.files.text_files import read_lines, write_lines
from t2tlite.metrics.corpus_metrics import corpus_scores
from t2tlite.run_folder import RunFolder

AVERAGED = 5
KEPT = 10
MODEL = """import opennmt

model = lambda: opennmt.models.Transformer(
    num_layers={num_hidden_layers}, num_units={hidden_size},
    num_heads={num_heads}, ffn_inner_dim={filter_size},
    dropout={layer_prepostprocess_dropout}, pre_norm={pre_norm},
    share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
)
"""
CONFIG = """model_dir: {folder}/model
data:
  train_features_file: {folder}/train.source
  train_labels_file: {folder}/train.target
  source_vocabulary: {folder}/vocabulary
  target_vocabulary: {folder}/vocabulary
params:
  optimizer: Adam
  optimizer_params: {{beta_1: 0.9, beta_2: 0.98, epsilon: 1.0e-9}}
  learning_rate: {learning_rate_constant}
  decay_type: NoamDecay
  decay_params: {{model_dim: {hidden_size}, warmup_steps: {learning_rate_warmup_steps}}}
  label_smoothing: {label_smoothing}
  average_loss_in_time: true
  beam_width: 4
  length_penalty: 0.6
train:
  batch_size: {batch_size}
  batch_type: tokens
  length_bucket_width: 2
  maximum_features_length: {max_length}
  maximum_labels_length: {max_length}
  sample_buffer_size: -1
  save_summary_steps: 100
  save_checkpoints_steps: {frequency}
  keep_checkpoint_max: {kept}
  max_step: 1000000
infer:
  batch_size: 32
  length_bucket_width: 5
"""
USED = (
    "num_hidden_layers",
    "hidden_size",
    "num_heads",
    "filter_size",
    "layer_prepostprocess_dropout",
    "label_smoothing",
    "learning_rate_constant",
    "learning_rate_warmup_steps",
    "batch_size",
    "max_length",
)


class Result(NamedTuple):
    """The result of a program."""

    steps: int  # of the newest checkpoint
    bleu: float
    chrf: float
    decoding: float  # sentences a second, whole command
    memory: float  # GB, peak of training


def main() -> None:
    """Trains one program after the other and prints a table."""
    parser = program.argument_parser(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        help="a folder for all that is made, kept afterwards",
    )
    parser.add_argument("--hparams_set", default="transformer_multi30k")
    parser.add_argument(
        "--hparams", default="", help="changes to the set, field=value,..."
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=40,
        help="of training each program (default: %(default)s)",
    )
    parser.add_argument(
        "--frequency",
        type=int,
        default=500,
        help="steps between checkpoints (default: %(default)s)",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        default=[1],
        help="of t2tlite; OpenNMT-tf has the first",
    )
    parser.add_argument("--peers", type=Path, help="folder of virtual environments")
    args = parser.parse_args()
    args.output, args.data = args.output.absolute(), args.data.absolute()
    dataset = open_dataset(args.data)
    rows = []
    for seed in args.seeds:
        rows.append(row(f"t2tlite, seed {seed}", train_ours(args, dataset, seed)))
    python = find_python(PEERS["OpenNMT-tf"][0], args.peers)
    if python:
        rows.append(
            row(
                "OpenNMT-tf",
                train_onmt(args, dataset, Path(python).parent / "onmt-main"),
            )
        )
    columns = ["", "steps", "BLEU", "chrF", "decoding, sentences/s", "memory, GB"]
    print(document.table(columns, rows))
    print(f"\n{args.minutes:g} minutes of training each; {document.machine()}.")


def row(name: str, result: Result) -> list[str]:
    """Returns a line of the table, and prints it."""
    line = [
        name,
        f"{result.steps:,}",
        f"{result.bleu:.2f}",
        f"{result.chrf:.2f}",
        f"{result.decoding:.1f}",
    ]
    line.append(f"{result.memory:.2f}")
    print("RESULT", " | ".join(line), flush=True)
    return line


def train_ours(args: argparse.Namespace, dataset: Dataset, seed: int) -> Result:
    """t2t-trainer, t2t-avg-checkpoints, t2t-decoder."""
    run, output = args.output / f"t2tlite-{seed}", args.output / f"t2tlite-{seed}.out"

    def command(name: str, *flags: str) -> list[str]:
        return [
            sys.executable,
            "-m",
            f"t2tlite.bin.{name}",
            f"--output_dir={run}",
            *flags,
        ]

    flags = [
        f"--problem={dataset.manifest.problem}",
        f"--data_dir={args.data}",
        f"--hparams_set={args.hparams_set}",
    ]
    flags += [
        f"--hparams={args.hparams}",
        f"--random_seed={seed}",
        "--train_steps=1000000",
    ]
    flags += [
        f"--local_eval_frequency={args.frequency}",
        f"--keep_checkpoint_max={KEPT}",
    ]
    memory = stop_after(
        args.minutes, command("t2t_trainer", *flags), run.with_suffix(".log")
    )
    subprocess.run(command("t2t_avg_checkpoints", f"--n={AVERAGED}"), check=True)
    source = args.output / "test.text"
    write_lines(source, dataset.store("test").source_text())
    start = time.perf_counter()
    files = f"--decode_from_file={source}", f"--decode_to_file={output}"
    subprocess.run(
        command("t2t_decoder", "--checkpoint_path=averaged", *files), check=True
    )
    steps = max(map(step_of, RunFolder(run).checkpoints()))
    return scored(
        dataset, list(read_lines(output)), steps, time.perf_counter() - start, memory
    )


def train_onmt(args: argparse.Namespace, dataset: Dataset, onmt_main: Path) -> Result:
    """onmt-main train, average_checkpoints, infer, on files of token ids."""
    folder = args.output / "onmt"
    folder.mkdir(parents=True)
    encoder, other = dataset.encoders
    if encoder is not other:
        raise ValueError("Source and target must share a vocabulary.")
    write_lines(
        folder / "vocabulary",
        ["<blank>", "<s>", "</s>", *map(str, range(encoder.vocab_size))],
    )
    store = dataset.store("train")
    for side, rows, lengths in (
        ("source", store.sources, store.source_lengths),
        ("target", store.targets, store.target_lengths),
    ):
        table = rows(np.arange(len(store)), int(lengths.max()))
        # without EOS
        ids = [row[: length - 1] for row, length in zip(table, lengths, strict=True)]
        write_lines(folder / f"train.{side}", [" ".join(map(str, row)) for row in ids])
    sources = encoder.encode_batch(dataset.store("test").source_text())
    write_lines(folder / "test.source", [" ".join(map(str, row)) for row in sources])
    hparams = registry.get_hparams(args.hparams_set).override(args.hparams)
    for name, text in onmt_files(hparams, folder, args.frequency).items():
        write_text(folder / name, text)
    threads = [
        f"--{kind}_op_parallelism_threads={program.CORES}"
        for kind in ("intra", "inter")
    ]
    command = [
        str(onmt_main),
        "--model",
        str(folder / "model.py"),
        "--config",
        str(folder / "config.yml"),
        *threads,
    ]
    memory = stop_after(
        args.minutes,
        [*command, f"--seed={args.seeds[0]}", "train"],
        folder / "train.log",
    )
    checkpoints = sorted((folder / "model").glob("ckpt-*.index"), key=number_in)[
        -AVERAGED:
    ]
    averaged = folder / "averaged"
    average = [
        "average_checkpoints",
        f"--output_dir={averaged}",
        f"--max_count={AVERAGED}",
    ]
    subprocess.run([*command, *average], check=True, stderr=subprocess.DEVNULL)
    files = [
        f"--features_file={folder / 'test.source'}",
        f"--predictions_file={folder / 'test.out'}",
    ]
    start = time.perf_counter()
    subprocess.run(
        [*command, f"--checkpoint_path={averaged}", "infer", *files],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - start
    outputs = []
    for line in read_lines(folder / "test.out"):
        ids = [int(word) for word in line.split() if word.isdigit()]
        outputs.append(encoder.decode(ids))
    return scored(dataset, outputs, number_in(checkpoints[-1]), seconds, memory)


def onmt_files(hparams: HParams, folder: Path, frequency: int) -> dict[str, str]:
    """Returns OpenNMT-tf's model and configuration, by file name."""
    values = {field: getattr(hparams, field) for field in USED} | {
        "pre_norm": hparams.pre_norm
    }
    values |= {"folder": folder, "frequency": frequency, "kept": KEPT}
    return {"model.py": MODEL.format(**values), "config.yml": CONFIG.format(**values)}


def stop_after(minutes: float, command: Sequence[str], log: Path) -> float:
    """Runs a command for a time, then sends SIGTERM. Returns its peak memory in GB."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            process.wait(minutes * 60)
            raise RuntimeError(
                f"It must train until it is stopped, but ended before. Look into {log}."
            )
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 1e6  # kilobytes


def number_in(path: Path) -> int:
    """Returns the step in the name of OpenNMT-tf's checkpoint."""
    return int(path.stem.removeprefix("ckpt-"))


def scored(
    dataset: Dataset, outputs: Sequence[str], steps: int, seconds: float, memory: float
) -> Result:
    """Scores the translations of the test split."""
    bleu, chrf = corpus_scores(
        outputs, dataset.store("test").target_text(), ("bleu", "chrf")
    )
    print(bleu, chrf, sep="\n")
    return Result(
        steps, bleu.result.score, chrf.result.score, len(outputs) / seconds, memory
    )


if __name__ == "__main__":
    main()
