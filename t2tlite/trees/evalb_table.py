"""EVALB's table: a line for each sentence, and their sums, in its columns."""

from __future__ import annotations

from collections.abc import Sequence

from t2tlite.trees.evalb import SentenceScore, total_counts

HEAD = """\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy"""
RULE = "=" * 76


def format_table(scores: Sequence[SentenceScore]) -> str:
    """The table as EVALB prints it, its headings' spelling included."""
    lines = [HEAD, RULE]
    for number, s in enumerate(scores, start=1):
        lines.append(
            f"{number:4d}  {s.length:3d}    {s.status}  {s.recall:6.2f} {s.precision:6.2f}   {s.matched:3d}    "
            f"{s.gold:3d}  {s.predicted:3d}    {s.crossing:3d}   {s.words:4d}  {s.correct_tags:4d}   "
            f"{s.tagging_accuracy:6.2f}"
        )
    total, sums = total_counts(scores), ""
    if total.gold and total.predicted:  # without brackets EVALB leaves this part out
        sums = (
            f"                {total.recall:6.2f} {total.precision:6.2f} {total.matched:6d} {total.gold:5d} "
            f"{total.predicted:5d}  {total.crossing:5d}"
        )
    sums += f"  {total.words:5d} {total.correct_tags:5d}   {total.tagging_accuracy:6.2f}"
    return "\n".join([*lines, RULE, sums])
