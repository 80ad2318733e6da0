"""The rows of the paper's Table 3 (t2tlite/table3/rows.py), applied to transformer_base, as sets `transformer_NAME`."""

from __future__ import annotations

from t2tlite.config import HParams
from t2tlite.hparams.transformer import transformer_base
from t2tlite.registry import register_hparams
from t2tlite.table3.rows import ROWS, Row


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
