"""Scores parse trees against gold trees as EVALB does: recall, precision and F1 of
labelled brackets.

    t2t-evalb --gold=wsj23.gold --predicted=out.trees

Both files hold bracketed trees in UTF-8, one per line; line N of both is a parse of the
same sentence:

    (TOP (S (NP (PRP It)) (VP (VBZ works)) (. .)))

A tree may also have several lines, as treebanks and NLTK print it: its further lines
begin with white space. Tree N of both files is then a parse of the same sentence.

A blank line, or (()), among the predicted trees is a sentence that could not be parsed,
which EVALB skips. In a file whose trees have several lines it is (()), and blank lines
separate trees. A sentence whose words differ from the gold tree's is an error,
reported with its line number on standard error. Neither counts in the scores, so report
both numbers with the F-measure if they are not 0. The command prints EVALB's summary,
for all sentences and for those of up to 40 words:

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

COLLINS.prm counts the outer bracket of the Penn Treebank, which has no label. Call it
TOP in both files.
"""

from __future__ import annotations

from t2tlite.bin import check_files, flags
from t2tlite.console import say
from t2tlite.files.text_files import check_line_counts
from t2tlite.trees import evalb, evalb_parameters
from t2tlite.trees.evalb_parses import read_parses


@flags.command(__doc__, "gold predicted sentences prm")
def main(args: flags.Args) -> None:
    """Prints the scores."""
    flags.require(args, "gold", "predicted")
    named = ("gold", args.gold), ("predicted", args.predicted), ("prm", args.prm)
    check_files.check_standard_output(named)
    parameters = (
        evalb_parameters.read_parameters(args.prm)
        if args.prm
        else evalb_parameters.COLLINS
    )
    gold = read_parses(args.gold)
    predicted = read_parses(args.predicted)
    check_line_counts(
        {args.gold: len(gold), args.predicted: len(predicted)},
        "Write one tree per line, and a blank line for a sentence without a parse; in a"
        " file whose trees have several lines, write (()) for it.",
        "trees",
    )
    scores = [
        evalb.score_sentence(g, p, parameters)
        for g, p in zip(gold, predicted, strict=True)
    ]
    for number, score in enumerate(scores, start=1):
        if score.message:
            say(f"{number} : {score.message}")
    if args.sentences:
        print(evalb.format_table(scores))
    print(f"=== Summary ===\n\n-- All --\n{evalb.summarise(scores)}")
    print(
        f"\n-- len<={parameters.cutoff_length}"
        f" --\n{evalb.summarise(scores, parameters.cutoff_length)}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
