"""Table 3 of the paper: its rows, each a change of a base model, with the paper's
results.

A change of a size is relative (hs256 halves the width, l2 has a third of the layers, h1
an eighth of the heads), so that the table keeps its meaning with a smaller base.
Dropout and label smoothing are absolute. Applied to transformer_base, each row is the
paper's.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from t2tlite.config import HParams
from t2tlite.registry import did_you_mean


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
    """A row of Table 3. Perplexity (per token) and BLEU are the paper's, on
    newstest2013.
    """

    group: str  # base, A to E, or big
    name: str  # tensor2tensor's name for it, without "transformer_"
    # fields of HParams with their values; a Fraction multiplies the base's value
    change: Mapping[str, Any]
    perplexity: float
    bleu: float
    parameters: int | None = None  # millions; None where the table has a blank

    def apply(self, base: HParams) -> HParams:
        """The row as a change of `base`; ValueError if a ratio gives no whole number,
        or hparams do not fit.
        """
        values = {}
        for name, value in self.change.items():
            if isinstance(value, Fraction):
                value = self._scaled(name, value, base)
            values[name] = value
        return dataclasses.replace(base, **values)

    def _scaled(self, name: str, factor: Fraction, base: HParams) -> int:
        """A field times a factor. A value of 0, which means another field's, stays 0
        if that field is scaled too.
        """
        old = getattr(base, name)
        if name == KEYS and "hidden_size" not in self.change:
            old = base.key_channels
        new = factor * old
        if new.denominator != 1:
            raise ValueError(
                f"Row {self.name} of Table 3 needs a multiple of"
                f" {factor.denominator} as {name}. Received: {old}."
            )
        return int(new)

    @property
    def label(self) -> str:
        """The group as the paper writes it, "(A)"; empty for base and big, which are in
        no group.
        """
        return f"({self.group})" if self.group != self.name else ""


F = Fraction
KEYS = "attention_key_channels"
DROPOUT = "layer_prepostprocess_dropout"
# N, in the encoder and in the decoder
LAYERS = ("num_hidden_layers", "num_encoder_layers", "num_decoder_layers")
# d_model, and with it d_k and d_v: the number of heads stays the same
WIDTH = ("hidden_size", KEYS, "attention_value_channels")
HALF_WIDTH = dict.fromkeys(WIDTH, F(1, 2))
DOUBLE_WIDTH = dict.fromkeys(WIDTH, F(2))
BIG = {
    **DOUBLE_WIDTH,
    "filter_size": F(2),
    "num_heads": F(2),
    "train_steps": F(3),
    DROPOUT: 0.3,
}
ROWS = (
    Row("base", "base", {}, 4.92, 25.8, 65),
    Row("A", "h1", {"num_heads": F(1, 8)}, 5.29, 24.9),
    Row("A", "h4", {"num_heads": F(1, 2)}, 5.00, 25.5),
    Row("A", "h16", {"num_heads": F(2)}, 4.91, 25.8),
    Row("A", "h32", {"num_heads": F(4)}, 5.01, 25.4),
    Row("B", "k128", {KEYS: F(1, 4)}, 5.16, 25.1, 58),
    Row("B", "k256", {KEYS: F(1, 2)}, 5.01, 25.4, 60),
    Row("C", "l2", dict.fromkeys(LAYERS, F(1, 3)), 6.11, 23.7, 36),
    Row("C", "l4", dict.fromkeys(LAYERS, F(2, 3)), 5.19, 25.3, 50),
    Row("C", "l8", dict.fromkeys(LAYERS, F(4, 3)), 4.88, 25.5, 80),
    Row("C", "hs256", HALF_WIDTH, 5.75, 24.5, 28),
    Row("C", "hs1024", DOUBLE_WIDTH, 4.66, 26.0, 168),
    Row("C", "ff1024", {"filter_size": F(1, 2)}, 5.12, 25.4, 53),
    Row("C", "ff4096", {"filter_size": F(2)}, 4.75, 26.2, 90),
    Row("D", "dr0", {DROPOUT: 0.0}, 5.77, 24.6),
    Row("D", "dr2", {DROPOUT: 0.2}, 4.95, 25.5),
    Row("D", "ls0", {"label_smoothing": 0.0}, 4.67, 25.3),
    Row("D", "ls2", {"label_smoothing": 0.2}, 5.47, 25.7),
    Row("E", "pos_learned", {"pos": "emb"}, 4.92, 25.7),
    Row("big", "big", BIG, 4.33, 26.4, 213),
)


def select(names: Sequence[str]) -> list[Row]:
    """Rows by name or by group letter, in the paper's order; ValueError if there is no
    such row or group.
    """
    known = set()
    for row in ROWS:
        known |= {row.name, row.group}
    for name in names:
        if name not in known:
            raise ValueError(
                "--rows takes rows of Table 3, and its groups A to E. Received:"
                f" {name!r}. {did_you_mean(name, known)}"
            )
    return [row for row in ROWS if row.name in names or row.group in names]
