"""SuPar's CRF constituency parser (Zhang, Zhou and Li, 2020: a BiLSTM over words and
characters, which scores spans), without pre-trained vectors: trained on the same trees
for a given time, for scores beside a parser of t2tlite.

    python -m peers.supar_parse FOLDER OUTPUT --minutes=90    # in the folder benchmarks

FOLDER has cleaned trees, one a line, in train.trees, dev.trees and test.trees.
OUTPUT/test.trees is what `t2t-evalb` scores: the trees of the epoch with the highest F1
on dev. SuPar copies the tags of its input, so that every sentence is scored. The time
is that of the CPU, of all threads together, and includes the evaluations on dev after
each epoch; so a busy machine only takes longer. The state is saved after each epoch and
every five minutes: the same command again continues from there.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

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
SAVE_SECONDS = 300.0


class State(NamedTuple):
    """How far a training is."""

    epoch: int = 1  # the current one
    batches: int = 0  # of this epoch that are done
    seconds: float = 0.0  # of the CPU, until now
    best: float = -1.0  # F1 on dev


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
    start = time.process_time()
    trees = parser.predict(
        str(options.folder / "test.trees"), str(options.output / "test.trees")
    )
    seconds = time.process_time() - start
    print(
        f"RESULT: {len(trees):,} sentences in {seconds:.1f} s of the CPU,"
        f" {len(trees) / seconds:.1f} sentences/s, reading and writing included"
    )


def train(
    parser: CRFConstituencyParser, folder: Path, output: Path, seconds: float
) -> None:
    """Trains for `seconds` in all, and keeps the weights with the best F1 on dev."""
    size = SETTINGS["batch_size"]
    parser.transform.train()
    data = Dataset(parser.transform, str(folder / "train.trees"))
    data.sentences[:] = [s for s in data.sentences if len(s.words) <= MAX_LENGTH]
    data.build(size, BUCKETS, True)
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
    state = restore(parser, output / "checkpoint")
    start = time.process_time() - state.seconds
    while time.process_time() - start < seconds:
        data.loader.batch_sampler.epoch = state.epoch
        for batch in itertools.islice(data.loader, state.batches, None):
            parser._train([batch])
            used = time.process_time() - start
            is_due = used - state.seconds > SAVE_SECONDS
            state = state._replace(batches=state.batches + 1)
            if used > seconds:
                break
            if is_due:
                state = state._replace(seconds=used)
                save_checkpoint(parser, state, output / "checkpoint")
        _, metric = parser._evaluate(dev.loader)
        f1 = 100 * metric.lf
        if f1 > state.best:
            save(parser.model.state_dict(), output / "best")
        used = time.process_time() - start
        print(
            f"epoch {state.epoch}, {state.batches} of {len(data.loader)} batches,"
            f" {used / 60:.1f} minutes: F1 on dev {f1:.2f}",
            flush=True,
        )
        state = State(state.epoch + 1, 0, used, max(f1, state.best))
        save_checkpoint(parser, state, output / "checkpoint")


def save_checkpoint(parser: CRFConstituencyParser, state: State, path: Path) -> None:
    """Saves all that continues a training."""
    content = {
        "state": tuple(state),
        "model": parser.model.state_dict(),
        "optimizer": parser.optimizer.state_dict(),
        "scheduler": parser.scheduler.state_dict(),
    }
    save(content, path)


def restore(parser: CRFConstituencyParser, path: Path) -> State:
    """Loads the checkpoint, if there is one, and returns its state."""
    if not path.exists():
        return State()
    content = torch.load(path)
    parser.model.load_state_dict(content["model"])
    parser.optimizer.load_state_dict(content["optimizer"])
    parser.scheduler.load_state_dict(content["scheduler"])
    return State(*content["state"])


def save(state: dict[str, Any], path: Path) -> None:
    """Writes a file in one step."""
    written = path.with_suffix(".part")
    torch.save(state, written)
    os.replace(written, path)


if __name__ == "__main__":
    main()
