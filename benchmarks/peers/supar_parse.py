"""SuPar's CRF constituency parser (Zhang, Zhou and Li, 2020: a BiLSTM over words and
characters, which scores spans), without pre-trained vectors: trained on the same trees
for a given time, for scores beside a parser of t2tlite.

    python -m peers.supar_parse FOLDER OUTPUT --minutes=90    # in the folder benchmarks

FOLDER has cleaned trees, one a line, in train.trees, dev.trees and test.trees.
OUTPUT/test.trees is what `t2t-evalb` scores: the trees of the epoch with the highest F1
on dev. SuPar copies the tags of its input, so that every sentence is scored. The same
command again continues a training that was interrupted. The time includes the
evaluations on dev after each epoch.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from supar import CRFConstituencyParser
from supar.utils import Dataset
from torch.optim import Adam
from torch.optim.lr_scheduler import ExponentialLR

# those of SuPar's own configuration of this parser
SETTINGS = {
    "encoder": "lstm",
    "feat": ["char"],
    "embed": "",
    "min_freq": 2,
    "n_char_embed": 100,
    "lr": 2e-3,
    "mu": 0.9,
    "nu": 0.9,
    "eps": 1e-12,
    "weight_decay": 1e-5,
    "clip": 5.0,
    "decay": 0.75,
    "decay_steps": 5000,
    "batch_size": 5000,
    "update_steps": 1,
    "mbr": True,
    "prob": False,
    "delete": {"TOP", "S1", "-NONE-", ",", ":", "``", "''", ".", "?", "!", ""},
    "equal": {"ADVP": "PRT"},
    "verbose": True,
}
BUCKETS = 32
# words: the chart of a longer sentence of train needs gigabytes
MAX_LENGTH = 100


class TimedBatches:
    """The batches of an epoch, until a time."""

    def __init__(self, loader: Any, end: float) -> None:
        self.loader = loader
        self.end = end  # of time.monotonic

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.loader:
            if time.monotonic() > self.end:
                return
            yield batch


def main() -> None:
    """Trains, and parses test."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("output", type=Path)
    arguments.add_argument("--minutes", type=float, default=90.0)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    options.output.mkdir(parents=True, exist_ok=True)
    parser = CRFConstituencyParser.build(
        str(options.output / "model"),
        build=True,
        train=str(options.folder / "train.trees"),
        **SETTINGS,
    )
    train(parser, options.folder, options.output, 60 * options.minutes)
    best = torch.load(options.output / "best")
    parser.model.load_state_dict(best)
    start = time.monotonic()
    trees = parser.predict(
        str(options.folder / "test.trees"), str(options.output / "test.trees")
    )
    seconds = time.monotonic() - start
    print(
        f"RESULT: {len(trees):,} sentences in {seconds:.1f} s,"
        f" {len(trees) / seconds:.1f} sentences/s, reading and writing included"
    )


def train(
    parser: CRFConstituencyParser, folder: Path, output: Path, seconds: float
) -> None:
    """Trains for `seconds` in all, and keeps the weights with the best F1 on dev."""
    size = SETTINGS["batch_size"]
    parser.transform.train()
    batches = Dataset(parser.transform, str(folder / "train.trees"))
    batches.sentences[:] = [s for s in batches.sentences if len(s.words) <= MAX_LENGTH]
    batches.build(size, BUCKETS, True)
    dev = Dataset(parser.transform, str(folder / "dev.trees")).build(size, BUCKETS)
    parser.optimizer = Adam(
        parser.model.parameters(),
        SETTINGS["lr"],
        (SETTINGS["mu"], SETTINGS["nu"]),
        SETTINGS["eps"],
        SETTINGS["weight_decay"],
    )
    rate = SETTINGS["decay"] ** (1 / SETTINGS["decay_steps"])
    parser.scheduler = ExponentialLR(parser.optimizer, rate)
    epoch, used, best = restore(parser, output / "checkpoint")
    batches.loader.batch_sampler.epoch = epoch + 1
    while used < seconds:
        start = time.monotonic()
        parser._train(TimedBatches(batches.loader, start + seconds - used))
        _, metric = parser._evaluate(dev.loader)
        used += time.monotonic() - start
        epoch += 1
        f1 = 100 * metric.lf
        print(f"epoch {epoch}, {used / 60:.1f} minutes: F1 on dev {f1:.2f}", flush=True)
        if f1 > best:
            best = f1
            save(parser.model.state_dict(), output / "best")
        state = {
            "epoch": epoch,
            "seconds": used,
            "best": best,
            "model": parser.model.state_dict(),
            "optimizer": parser.optimizer.state_dict(),
            "scheduler": parser.scheduler.state_dict(),
        }
        save(state, output / "checkpoint")


def restore(parser: CRFConstituencyParser, path: Path) -> tuple[int, float, float]:
    """Loads the checkpoint if there is one. Returns its epoch, the seconds of training
    until then, and the best F1 on dev.
    """
    if not path.exists():
        return 0, 0.0, -1.0
    state = torch.load(path)
    parser.model.load_state_dict(state["model"])
    parser.optimizer.load_state_dict(state["optimizer"])
    parser.scheduler.load_state_dict(state["scheduler"])
    return state["epoch"], state["seconds"], state["best"]


def save(state: dict[str, Any], path: Path) -> None:
    """Writes a file in one step."""
    written = path.with_suffix(".part")
    torch.save(state, written)
    os.replace(written, path)


if __name__ == "__main__":
    main()
