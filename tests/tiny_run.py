"""A language of twenty words, as a user's package, and the flags with which the commands learn to translate it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from t2tlite.bin import t2t_trainer

PROBLEM = "twenty_words"
PACKAGE = '''"""Problems and hparams of a user."""

import dataclasses
import random

from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.data.problem import Problem

NOUNS = {"cat": "katze", "dog": "hund", "mouse": "maus", "bird": "vogel", "fish": "fisch", "horse": "pferd"}
COLOURS = {"red": "rot", "green": "gruen", "blue": "blau", "white": "weiss", "black": "schwarz"}
VERBS = {"sees": "sieht", "hears": "hoert", "likes": "mag", "seeks": "sucht", "bites": "beisst"}
ADVERBS = {"today": "heute", "often": "oft", "never": "nie", "now": "jetzt"}
WORDS = {**NOUNS, **COLOURS, **VERBS, **ADVERBS}


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class TwentyWords(Problem):
    """A toy language: the colour goes behind its noun, and the verb to the end."""

    vocab_size: int = 500
    train_size: int = 1500
    source_language = "en"
    target_language = "de"

    def pairs(self, split, tmp_dir):
        draw = random.Random(split)
        for _ in range(self.train_size if split == "train" else 40):
            subject, object_ = draw.choice(list(NOUNS)), draw.choice(list(NOUNS))
            colours = draw.sample(list(COLOURS), draw.randint(0, 1))
            verb, adverbs = draw.choice(list(VERBS)), draw.sample(list(ADVERBS), draw.randint(0, 1))
            source = [*colours, subject, verb, object_, *adverbs]
            target = [subject, *colours, *adverbs, object_, verb]
            yield " ".join(source), " ".join(WORDS[word] for word in target)


@registry.register_hparams
def twenty_words_tiny():
    """Very small layers."""
    return HParams(
        hidden_size=32,
        filter_size=64,
        num_encoder_layers=1,
        num_decoder_layers=2,
        num_heads=2,
        batch_size=1024,
        max_length=32,
        learning_rate_constant=0.4,
        learning_rate_warmup_steps=60,
        train_steps=200,
    )
'''


def write_package(folder: Path) -> Path:
    """Writes the user's package into `folder`, for --t2t_usr_dir."""
    package = folder / "twenty_words_package"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    return package
