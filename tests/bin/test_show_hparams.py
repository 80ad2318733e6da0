"""--show_hparams: every field of a set, with its meaning, and what differs from the
paper's base model.
"""

import dataclasses
import re

from run_command import said

from t2tlite.bin import t2t_trainer
from t2tlite.checked_fields import facts_of
from t2tlite.config import HParams


def rows(capsys, name: str, *more: str) -> dict[str, tuple[str, str, str]]:
    """What is printed of a set: field -> (mark, value and what stands behind it,
    meaning).
    """
    text = said(capsys, t2t_trainer, f"--show_hparams={name}", *more).out
    assert text.startswith(name)
    assert max(map(len, text.splitlines())) <= 120
    fields = {}
    for entry in re.findall(r"(?m)^[* ] \w+=.*\n(?: {6}.*\n?)+", text):
        title, *meaning = entry.splitlines()
        field, _, value = title[2:].partition("=")
        fields[field] = title[0], value, " ".join(map(str.strip, meaning))
    return fields


def test_every_field_has_value_and_meaning(capsys):
    expected = {}
    for field in dataclasses.fields(HParams):
        assert facts_of(field).meaning, field.name
        expected[field.name] = " ", str(field.default), facts_of(field).meaning
    assert rows(capsys, "transformer_base") == expected


def test_what_differs_from_the_base_model(capsys):
    """The big model of Table 3: 1024 wide, 4096 in the feed-forward layers, 16 heads,
    dropout 0.3, 300,000 steps.
    """
    actual = rows(capsys, "transformer_big")
    changed = {name: value for name, (mark, value, _) in actual.items() if mark == "*"}
    assert changed == {
        "hidden_size": "1024  [512]",
        "filter_size": "4096  [2048]",
        "num_heads": "16  [8]",
        "layer_prepostprocess_dropout": "0.3  [0.1]",
        "train_steps": "300000  [100000]",
    }
    changes = "--hparams=num_heads=8, batch_size=2048"
    actual = rows(capsys, "transformer_big", changes)
    assert actual["num_heads"][:2] == (" ", "8")
    assert actual["batch_size"][:2] == ("*", "2048  [4096]")
