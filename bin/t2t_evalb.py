"""Scores parse trees against gold trees: labelled bracketing recall, precision and F1, as EVALB computes them.

    t2t-evalb --gold=wsj23.gold --predicted=out.trees

Both files hold bracketed trees in UTF-8, one a line; line N of the one parses the sentence of line N of the other:

    (TOP (S (NP (PRP It)) (VP (VBZ works)) (. .)))

A blank line, or (()), among the predicted trees is a sentence that the parser could not parse; EVALB skips those. A
sentence whose words are not those of gold is an error, reported with its line number on standard error. Neither counts
in the scores, so give both numbers with the F-measure where they are not 0. The command prints EVALB's summary, for all
sentences and for those of up to 40 words:

    === Summary ===

    -- All --
    Number of sentence        =   1832
    Number of Error sentence  =      0
    ...
    Bracketing FMeasure       =  89.55

With --sentences, EVALB's table with a line for each sentence comes first.

The parameters are those of COLLINS.prm, which published scores for English use: punctuation, traces and TOP are left
out, function tags cut off (NP-SBJ is NP), and ADVP equals PRT. Another file of this kind is given with --prm:

    t2t-evalb --gold=wsj23.gold --predicted=out.trees --prm=new.prm --sentences

A tree of the Penn Treebank has an outer bracket without a label, which COLLINS.prm counts. Call it TOP in both files.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from t2tlite.bin import flags

if TYPE_CHECKING:
    from t2tlite.trees.evalb import SentenceScore

FLAGS = ("gold", "predicted", "sentences", "prm")

TABLE_HEAD = """\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy"""
RULE = "=" * 76


def run(args: flags.Args) -> None:
    """Prints the scores.

    Raises:
        flags.CommandError: a file was not named.
        OSError, ValueError: a file is missing, not bracketed text, or not as long as the other.
    """
    from t2tlite.trees import evalb as parsing
    from t2tlite.trees import evalb_parameters

    flags.require(args, "gold", "predicted")
    parameters = evalb_parameters.read_parameters(args.prm) if args.prm else evalb_parameters.COLLINS
    gold, predicted = list(parsing.read_parses(args.gold)), list(parsing.read_parses(args.predicted))
    if len(gold) != len(predicted) or not gold:
        raise ValueError(
            f"Both files must have as many lines, and some. Received: {args.gold} with {len(gold)}, {args.predicted} "
            f"with {len(predicted)}. Write one tree a line, and a blank line for a sentence without a parse."
        )
    scores = [parsing.score_sentence(g, p, parameters) for g, p in zip(gold, predicted, strict=True)]
    for number, score in enumerate(scores, start=1):
        if score.message:
            print(f"{number} : {score.message}", file=sys.stderr)
    if args.sentences:
        print_table(scores)
    print(f"=== Summary ===\n\n-- All --\n{parsing.summarise(scores)}")
    print(f"\n-- len<={parameters.cutoff_length} --\n{parsing.summarise(scores, parameters.cutoff_length)}")


def print_table(scores: Sequence[SentenceScore]) -> None:
    """Prints EVALB's table: a line for each sentence, and their sums."""
    from t2tlite.trees import evalb as parsing

    print(TABLE_HEAD, RULE, sep="\n")
    for number, s in enumerate(scores, start=1):
        print(
            f"{number:4d}  {s.length:3d}    {s.status}  {s.recall:6.2f} {s.precision:6.2f}   {s.matched:3d}    "
            f"{s.gold:3d}  {s.predicted:3d}    {s.crossing:3d}   {s.words:4d}  {s.correct_tags:4d}   "
            f"{s.tagging_accuracy:6.2f}"
        )
    print(RULE)
    total = parsing.total_counts(scores)
    if total.gold and total.predicted:  # without brackets EVALB leaves this part out
        print(
            f"                {total.recall:6.2f} {total.precision:6.2f} {total.matched:6d} {total.gold:5d} "
            f"{total.predicted:5d}  {total.crossing:5d}",
            end="",
        )
    print(f"  {total.words:5d} {total.correct_tags:5d}   {total.tagging_accuracy:6.2f}")


def main(argv: Sequence[str] | None = None) -> int:
    """The command t2t-evalb; returns its exit status."""
    return flags.run_command(__doc__, FLAGS, run, argv)


if __name__ == "__main__":
    sys.exit(main())
