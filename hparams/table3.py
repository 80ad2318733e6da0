"""Table 3 of the paper: variations of the base model, each a change of a base and registered as `transformer_NAME`.

A change is relative where the table's is a size (hs256 halves the width, l2 has a third of the layers, h1 an eighth of
the heads), so that a row can be applied to a smaller base and the table keeps its meaning. Dropout and label smoothing
are absolute. Applied to transformer_base, each row is the paper's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from t2tlite.config import HParams
from t2tlite.hparams.transformer import transformer_base
from t2tlite.registry import did_you_mean, register_hparams

Change = Callable[[HParams], HParams]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of Table 3. Perplexity (per token) and BLEU are the paper's, on newstest2013."""

    group: str  # base, A to E, or big
    name: str  # tensor2tensor's name for it, without "transformer_"
    change: Change
    setting: str  # the row in the paper's words
    perplexity: float
    bleu: float
    parameters: int | None = None  # millions; None where the table has a blank

    def apply(self, base: HParams) -> HParams:
        """The row as a change of `base`.

        Raises:
            ValueError: a ratio gives no whole number, or the hparams do not go together; the message names the row.
        """
        try:
            return self.change(base)
        except ValueError as error:
            raise ValueError(f"Row {self.name} of Table 3 does not fit this base: {error}") from error

    def fits(self, base: HParams) -> bool:
        """Whether the row can be applied to this base."""
        try:
            self.apply(base)
        except ValueError:
            return False
        return True


def times(**factors: Fraction | int) -> Change:
    """Multiplies fields; one that is 0 stays 0, which means that it follows another field."""

    def change(base: HParams) -> HParams:
        values: dict[str, Any] = {name: _scaled(base, name, factor) for name, factor in factors.items()}
        return dataclasses.replace(base, **values)

    return change


def to(**values: Any) -> Change:
    """Sets fields."""
    return lambda base: dataclasses.replace(base, **values)


def layers(factor: Fraction) -> Change:
    """N, in the encoder and in the decoder."""
    return times(num_hidden_layers=factor, num_encoder_layers=factor, num_decoder_layers=factor)


def width(factor: Fraction) -> Change:
    """d_model, and with it d_k and d_v: the number of heads stays."""
    return times(hidden_size=factor, attention_key_channels=factor, attention_value_channels=factor)


def keys(factor: Fraction) -> Change:
    """d_k alone: queries and keys get smaller, values do not."""
    smaller = times(attention_key_channels=factor)
    return lambda base: smaller(dataclasses.replace(base, attention_key_channels=base.key_channels))


def big(base: HParams) -> HParams:
    """The big model: twice as wide, with twice the heads, more dropout, and three times the steps."""
    larger = times(
        hidden_size=2, attention_key_channels=2, attention_value_channels=2, filter_size=2, num_heads=2, train_steps=3
    )
    return dataclasses.replace(larger(base), layer_prepostprocess_dropout=0.3)


def _scaled(base: HParams, name: str, factor: Fraction | int) -> int:
    value: Fraction | int = getattr(base, name) * factor
    if value != int(value):
        raise ValueError(
            f"{name} must be a multiple of {Fraction(factor).denominator}. Received: {name}={getattr(base, name)}. "
            "Choose another base, or other rows."
        )
    return int(value)


F = Fraction
ROWS = (  # the last column: million weights
    #   group   name           change                                 in the paper                 PPL   BLEU  10^6
    Row("base", "base",        times(),                               "base",                      4.92, 25.8, 65),
    Row("A",    "h1",          times(num_heads=F(1, 8)),              "h=1, d_k=d_v=512",          5.29, 24.9),
    Row("A",    "h4",          times(num_heads=F(1, 2)),              "h=4, d_k=d_v=128",          5.00, 25.5),
    Row("A",    "h16",         times(num_heads=2),                    "h=16, d_k=d_v=32",          4.91, 25.8),
    Row("A",    "h32",         times(num_heads=4),                    "h=32, d_k=d_v=16",          5.01, 25.4),
    Row("B",    "k128",        keys(F(1, 4)),                         "d_k=16",                    5.16, 25.1, 58),
    Row("B",    "k256",        keys(F(1, 2)),                         "d_k=32",                    5.01, 25.4, 60),
    Row("C",    "l2",          layers(F(1, 3)),                       "N=2",                       6.11, 23.7, 36),
    Row("C",    "l4",          layers(F(2, 3)),                       "N=4",                       5.19, 25.3, 50),
    Row("C",    "l8",          layers(F(4, 3)),                       "N=8",                       4.88, 25.5, 80),
    Row("C",    "hs256",       width(F(1, 2)),                        "d_model=256, d_k=d_v=32",   5.75, 24.5, 28),
    Row("C",    "hs1024",      width(F(2)),                           "d_model=1024, d_k=d_v=128", 4.66, 26.0, 168),
    Row("C",    "ff1024",      times(filter_size=F(1, 2)),            "d_ff=1024",                 5.12, 25.4, 53),
    Row("C",    "ff4096",      times(filter_size=2),                  "d_ff=4096",                 4.75, 26.2, 90),
    Row("D",    "dr0",         to(layer_prepostprocess_dropout=0.0),  "P_drop=0.0",                5.77, 24.6),
    Row("D",    "dr2",         to(layer_prepostprocess_dropout=0.2),  "P_drop=0.2",                4.95, 25.5),
    Row("D",    "ls0",         to(label_smoothing=0.0),               "eps_ls=0.0",                4.67, 25.3),
    Row("D",    "ls2",         to(label_smoothing=0.2),               "eps_ls=0.2",                5.47, 25.7),
    Row("E",    "pos_learned", to(pos="emb"),                         "learned positions",         4.92, 25.7),
    Row("big",  "big",         big,                                   "big",                       4.33, 26.4, 213),
)  # fmt: skip


def select(names: Sequence[str]) -> list[Row]:
    """Rows by name or by group letter, in the paper's order.

    Raises:
        ValueError: no such row or group.
    """
    known = {row.name for row in ROWS} | {row.group for row in ROWS}
    for name in names:
        if name not in known:
            raise ValueError(
                f"--rows takes names of rows of Table 3, and its groups A to E. Received: {name!r}. "
                f"{did_you_mean(name, known)}"
            )
    return [row for row in ROWS if row.name in names or row.group in names]


def _register(row: Row) -> None:
    def hparam_set() -> HParams:
        return row.apply(transformer_base())

    size = "" if row.parameters is None else f", {row.parameters} million parameters"
    hparam_set.__name__ = f"transformer_{row.name}"
    hparam_set.__doc__ = (
        f"Table 3, row ({row.group}), {row.setting}: perplexity {row.perplexity:.2f}, BLEU {row.bleu} on newstest2013 "
        f"after 100,000 steps{size}."
    )
    register_hparams(hparam_set)


for _row in ROWS:
    if _row.name not in ("base", "big"):  # these two are in transformer.py
        _register(_row)
