"""t2t-datagen on random text: time, and the most memory of all its processes together.

    python benchmarks/datagen_throughput.py --pairs=300000
    python benchmarks/datagen_throughput.py --pairs=36000000 --folder=/somewhere/large

Text is read, a vocabulary learned, and token shards written, as for a corpus in files.
Prints one line that begins RESULT. Memory is sampled; pages that processes share count
in each.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import corpus
import numpy as np
import program
import psutil

from t2tlite.data.generate import generate
from t2tlite.data.problem import Problem

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
LONGER = [a + b for a in SYLLABLES for b in SYLLABLES]
LONGEST = [a + a + b for a in SYLLABLES for b in SYLLABLES]
WORDS = SYLLABLES + LONGER + LONGEST
CHUNK = 10_000  # pairs drawn together
MEMORY_SECONDS = 0.05  # between two samples of memory


@dataclasses.dataclass(frozen=True)
class RandomText(Problem):
    """Pairs of unrelated sentences, of words that follow Zipf's law, about 20 each."""

    train_size: int = 3000

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields the pairs of a split: `train_size` to train on, otherwise 500."""
        size = self.train_size if split == "train" else 500
        random = np.random.default_rng([size, len(split)])
        for first in range(0, size, CHUNK):
            sources, targets = corpus.random_pairs(
                random, min(CHUNK, size - first), len(WORDS), 20, 0.5
            )
            for source, target in zip(sources, targets, strict=True):
                yield sentence(source), sentence(target)


def sentence(numbers: Iterable[int]) -> str:
    return " ".join([WORDS[number] for number in numbers])


class PeakMemory:
    """The peak resident memory of a process and its children together while the context
    is open, in `mb`.
    """

    mb = 0.0

    def __init__(self, pid: int | None = None) -> None:
        self._process = psutil.Process(pid)  # by default this process

    def __enter__(self) -> PeakMemory:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            total = 0
            with contextlib.suppress(psutil.NoSuchProcess):
                for process in (self._process, *self._process.children(recursive=True)):
                    total += process.memory_info().rss
            self.mb = max(self.mb, total / 1e6)
            if self._done.wait(MEMORY_SECONDS):
                return


def main(argv: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    parser = program.argument_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=30_000, help="training pairs")
    parser.add_argument("--vocab_size", type=int, default=8000, help="pieces to learn")
    parser.add_argument(
        "--num_processes", type=int, default=program.CORES, help="cores that encode"
    )
    parser.add_argument(
        "--folder",
        help=(
            "where the data lies until it is deleted (default: the system's for such"
            " files)"
        ),
    )
    args = parser.parse_args(argv)
    problem = RandomText(vocab_size=args.vocab_size, train_size=args.pairs)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        start = time.perf_counter()
        with PeakMemory() as memory:
            made = generate(problem, folder, num_processes=args.num_processes)
        seconds = time.perf_counter() - start
        size = sum(path.stat().st_size for path in made.dataset.folder.iterdir())
    program.report(
        program="t2tlite",
        pairs=args.pairs,
        seconds=seconds,
        pairs_per_second=args.pairs / seconds,
        peak_memory_mb=memory.mb,
        disk_mb=size / 1e6,
    )


if __name__ == "__main__":
    main()
