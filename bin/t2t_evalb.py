"""Scores parse trees against gold trees as EVALB does: recall, precision and F1 of
labelled brackets.

    t2t-evalb --gold=wsj23.gold --predicted=out.trees

Both files hold bracketed trees in UTF-8, one per line; line N of both is a parse of the
same sentence:

    (TOP (S (NP (PRP It)) (VP (VBZ works)) (. .)))

A tree may also have several lines, as treebanks and NLTK print it: its further lines
begin with white space. Tree N of both files is then a parse of the same sentence.

A blank line, or brackets without words such as (()) or (TOP), among the predicted trees
is a sentence that could not be parsed, which EVALB skips. In a file whose trees have
several lines, blank lines separate trees. A sentence whose words differ from the gold
tree's is an error, reported with its line number on standard error. Neither counts in
the scores, so report both numbers with the F-measure if they are not 0. The command
prints EVALB's summary, for all sentences and for those of up to 40 words:

    === Summary ===

    -- All --
    Number of sentence        =   1832
    Number of Error sentence  =      0
    ...
    Bracketing FMeasure       =  89.55

With --sentences, EVALB's table with a line for each sentence comes first.

The parameters are those of COLLINS.prm, which published scores for English use:
punctuation, traces and TOP are left out, function tags are removed (NP-SBJ is NP), and
ADVP equals PRT. --prm reads another parameter file:

    t2t-evalb --gold=wsj23.gold --predicted=out.trees --prm=new.prm --sentences

A tag decides whether a word is punctuation: a sentence in which - is a hyphen in one
tree and a dash in the other is an error. --gold_tags gives the predicted words the gold
tags first, so that every sentence with the same words is scored, as for parsers that
read the tags. Say so beside the score.

--confidence adds the 95% confidence interval of the F-measure: how much other sentences
of the same kind would have changed it.

COLLINS.prm counts an outer bracket ROOT, S1 or, as in the Penn Treebank, without a
label. Call it TOP in both files.
"""

import dataclasses
from collections.abc import Sequence

from t2tlite.bin.command import command
from t2tlite.bin.flags import Flags
from t2tlite.checked_fields import checked_field, optional_field, required_field
from t2tlite.console import say
from t2tlite.files.text_files import check_line_counts
from t2tlite.trees import evalb
from t2tlite.trees.tree import read_parses

TABLE_HEAD = """\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy"""
TABLE_RULE = "=" * 76


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvalbFlags(Flags):
    """Which trees are scored, and how."""

    gold: str = required_field(str, "File of gold parse trees, one per line.")
    predicted: str = required_field(
        str, "File of predicted parse trees, one per line; a sentence may have none."
    )
    sentences: bool = checked_field(
        False, "Also print EVALB's table, with the scores of each sentence."
    )
    gold_tags: bool = checked_field(
        False,
        "Give the words of a predicted tree the tags of the gold tree before scoring.",
    )
    confidence: bool = checked_field(
        False, "Also print the 95% confidence interval of the F-measure."
    )
    prm: str | None = optional_field(
        str, "Parameter file of EVALB; by default the parameters of its COLLINS.prm."
    )


@command
def main(flags: EvalbFlags) -> None:
    """Prints the scores."""
    flags.check_standard_output("gold", "predicted", "prm")
    parameters = evalb.COLLINS
    if flags.prm:
        parameters = evalb.read_parameters(flags.prm)
    gold = read_parses(flags.gold)
    predicted = read_parses(flags.predicted)
    check_line_counts(
        {flags.gold: len(gold), flags.predicted: len(predicted)},
        "Write one tree per line, and a blank line for a sentence without a parse; in a"
        " file whose trees have several lines, write (()) for it.",
        "trees",
    )
    scores = []
    for number, pair in enumerate(zip(gold, predicted, strict=True), start=1):
        score = evalb.score_sentence(*pair, parameters, flags.gold_tags)
        scores.append(score)
        if score.message:
            say(f"{number} : {score.message}")
    if flags.sentences:
        print(format_table(scores))
    length = parameters.cutoff_length
    short = [score for score in scores if score.length <= length]
    print("=== Summary ===")
    sets = {"All": scores, f"len<={length}": short}
    for name, of_set in sets.items():
        print(f"\n-- {name} --\n{evalb.summarise(of_set)}")
    if flags.confidence:
        print(
            "\n-- 95% confidence interval of the F-measure,"
            f" {evalb.RESAMPLES:,} resamples (seed {evalb.SEED}) --"
        )
        for name, of_set in sets.items():
            low, high = evalb.f1_interval(of_set)
            print(f"{name:26}= {low:6.2f} to {high:6.2f}")


def format_table(scores: Sequence[evalb.SentenceScore]) -> str:
    """Formats EVALB's table, in its columns and with its spelling: a line for each
    sentence, then the sums.
    """
    lines = [TABLE_HEAD, TABLE_RULE]
    for i, s in enumerate(scores, start=1):
        lines.append(
            f"{i:4d}  {s.length:3d}    {s.status}  {s.recall:6.2f} {s.precision:6.2f}  "
            f" {s.matched:3d}    {s.gold:3d}  {s.predicted:3d}    {s.crossing:3d}  "
            f" {s.words:4d}  {s.correct_tags:4d}   {s.tagging_accuracy:6.2f}"
        )
    total = evalb.total_counts(scores)
    sums = ""
    if total.gold and total.predicted:  # without brackets EVALB leaves this part out
        sums = (
            f"                {total.recall:6.2f} {total.precision:6.2f}"
            f" {total.matched:6d} {total.gold:5d} {total.predicted:5d} "
            f" {total.crossing:5d}"
        )
    sums += (
        f"  {total.words:5d} {total.correct_tags:5d}   {total.tagging_accuracy:6.2f}"
    )
    return "\n".join([*lines, TABLE_RULE, sums])


if __name__ == "__main__":
    raise SystemExit(main())
