"""--show_hparams: every field of a set, with its meaning, and what differs from the
paper's base model.
"""

import dataclasses

import pytest

from t2tlite.bin import t2t_trainer
from t2tlite.checked_fields import facts_of
from t2tlite.config import HParams


@pytest.fixture
def shown(capsys):
    """shown("transformer_tiny", "--hparams=...") -> what is printed."""

    def show(name: str, *more: str) -> str:
        assert t2t_trainer.main([f"--show_hparams={name}", *more]) == 0
        return capsys.readouterr().out

    return show


def rows(text: str) -> dict[str, tuple[str, str, str]]:
    """Field -> (mark, value and what stands behind it, meaning)."""
    actual, name = {}, ""
    for line in text.splitlines():
        if line[:2] in ("* ", "  ") and line[2:3].strip():
            name, _, value = line[2:].partition("=")
            actual[name] = (line[0], value, "")
        elif line.startswith("      ") and name:
            actual[name] = (
                *actual[name][:2],
                f"{actual[name][2]} {line.strip()}".strip(),
            )
    return actual


def test_every_field_has_value_and_meaning(shown):
    actual = rows(shown("transformer_base"))
    assert list(actual) == [field.name for field in dataclasses.fields(HParams)]
    for field in dataclasses.fields(HParams):
        assert actual[field.name] == (" ", str(field.default), facts_of(field).meaning)
        assert facts_of(field).meaning, field.name


def test_what_differs_from_the_base_model(shown):
    """The big model of Table 3: 1024 wide, 4096 in the feed-forward layers, 16 heads,
    dropout 0.3, 300,000 steps.
    """
    text = shown("transformer_big")
    actual = rows(text)
    changed = {name: value for name, (mark, value, _) in actual.items() if mark == "*"}
    assert changed == {
        "hidden_size": "1024  [512]",
        "filter_size": "4096  [2048]",
        "num_heads": "16  [8]",
        "layer_prepostprocess_dropout": "0.3  [0.1]",
        "train_steps": "300000  [100000]",
    }
    assert text.startswith("transformer_big\n\n")
    assert max(map(len, text.splitlines())) <= 120


def test_changes(shown, capsys):
    actual = rows(shown("transformer_big", "--hparams=num_heads=8, batch_size=2048"))
    assert actual["num_heads"][:2] == (" ", "8")
    assert actual["batch_size"][:2] == ("*", "2048  [4096]")
    assert t2t_trainer.main(["--show_hparams=transformer_bigg"]) == 1
    assert (
        "There is no hparam set 'transformer_bigg'. Did you mean 'transformer_big'"
        in capsys.readouterr().err
    )
