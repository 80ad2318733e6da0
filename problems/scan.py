"""SCAN: commands in simple English to sequences of actions, which test whether a model
generalises as the grammar of the commands does (Lake and Baroni, 2018).
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from t2tlite import registry
from t2tlite.data.problem import option
from t2tlite.data.splits import DEV, TEST, TRAIN
from t2tlite.files.text_files import read_lines
from t2tlite.problems.corpus import Corpus, FilePair
from t2tlite.vocabularies.sentencepiece_encoder import WORDS

SCAN = "github.com/brendenlake/SCAN"
LINE = re.compile(r"IN: (.+) OUT: (.+)")
DEV_SHARE = 20  # one pair of so many to train on is of dev


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class Scan(Corpus):
    """SCAN's commands to actions: `jump twice` to `I_JUMP I_JUMP`.

    `--tmp_dir` holds tasks_train_simple.txt, tasks_test_simple.txt and those of the
    other splits. A twentieth of the pairs to train on, always the same, is dev.
    """

    vocab_type: str = WORDS
    generalisation: str = option(
        "simple",
        "What the test asks for. simple: other commands of the same kind; length:"
        " longer sequences of actions; addprim_jump, addprim_turn_left: a word of"
        " which only the simplest commands were seen.",
        choices=("simple", "length", "addprim_jump", "addprim_turn_left"),
    )

    task: ClassVar[str] = "text_to_text"

    def corpora(self) -> dict[str, dict[str, str]]:
        train = {f"tasks_train_{self.generalisation}.txt": SCAN}
        test = {f"tasks_test_{self.generalisation}.txt": SCAN}
        return {TRAIN: train, DEV: train, TEST: test}

    def read(self, split: str, files: Sequence[FilePair]) -> Iterator[tuple[str, str]]:
        path, _ = files[0]
        chosen = random.Random(1)
        for number, line in enumerate(read_lines(path), start=1):
            pair = LINE.fullmatch(line)
            if pair is None:
                raise ValueError(
                    f"{path}, line {number}: IN: COMMANDS OUT: ACTIONS is required."
                    f" Received: {line!r:.80}."
                )
            of_dev = split != TEST and chosen.randrange(DEV_SHARE) == 0
            if of_dev == (split == DEV):
                yield pair[1], pair[2]
