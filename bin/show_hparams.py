"""--show_hparams: every field of an hparam set, its value, its meaning, and where the
set differs.
"""

from __future__ import annotations

import dataclasses
import inspect
import textwrap

from t2tlite import registry
from t2tlite.checked_fields import facts_of
from t2tlite.config import HParams

WIDTH = 110


def show_hparams(name: str, changes: str) -> str:
    """The fields of a set with `changes`, as in --hparams; `*` marks those that differ
    from transformer_base.
    """
    base, shown = HParams(), registry.get_hparams(name).override(changes)
    changed = f", changed by --hparams={changes}" if changes else ""
    lines = [f"{name}{changed}", ""]
    lines += textwrap.wrap(
        " ".join(inspect.cleandoc(registry.hparams_doc(name)).split()), WIDTH
    )
    lines += [
        "",
        (
            "`*` marks fields that differ from transformer_base, the paper's base"
            " model, whose value is in brackets."
        ),
        "",
    ]
    for field in dataclasses.fields(HParams):
        value = getattr(shown, field.name)
        usual = getattr(base, field.name)
        if value == usual:
            lines.append(f"  {field.name}={value}")
        else:
            lines.append(f"* {field.name}={value}  [{usual}]")
        meaning = textwrap.wrap(
            facts_of(field).meaning, WIDTH - 6, break_on_hyphens=False
        )
        lines += [f"      {line}" for line in meaning]
    return "\n".join(lines)
