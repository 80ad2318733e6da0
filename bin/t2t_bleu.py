"""Scores translations against a reference: BLEU, chrF and TER as sacrebleu computes
them.

    t2t-bleu --translation=out.de --reference=newstest2014.de

The files hold plain text in UTF-8, one sentence per line, which correspond line by
line. Neither is tokenised: sacrebleu does that. The command prints one line, such as

    BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 28.30 59.9/34.0...

In order: how the score was computed (the signature: one reference, cased, tokenised as
13a), the score from 0 to 100, the precisions of 1-grams to 4-grams in percent, the
brevity penalty, and both lengths in tokens. Always report the signature: scores with
different ones cannot be compared. --reference given twice scores against two references
of each sentence (nrefs:2). --tokenize=intl gives the score that tensor2tensor's
t2t-bleu printed, and with --lowercase its uncased score.

--metrics=bleu,chrf,ter prints a line for each: chrF counts character n-grams, TER edits
(lower is better).

Is the difference between two systems significant, or would other sentences have
reversed it?

    t2t-bleu --translation=new.de --compare=old.de \\
        --reference=newstest2014.de --metrics=bleu,chrf,ter

draws 1,000 test sets from the sentences, scores both systems on each (paired bootstrap
resampling), and prints both scores of each metric, the difference, and p: how often a
difference this large arises by chance alone. Below 0.05 it is called significant.
--seed=N draws other test sets.

With --compound_split a second line gives the BLEU that Attention Is All You Need
reports for English to German: on Moses's tokens, with hyphenated compounds split.
Compare it only with that paper's scores.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from t2tlite.bin import check_files, flags
from t2tlite.checked_fields import check_seed
from t2tlite.files.text_files import check_line_counts, read_lines

if TYPE_CHECKING:
    from t2tlite.metrics.corpus_metrics import Difference


@flags.command(
    __doc__,
    "translation reference metrics compare seed tokenize lowercase compound_split",
)
def main(args: flags.Args) -> None:
    """Prints the scores that the flags ask for."""
    from t2tlite.metrics import bleu, corpus_metrics

    flags.require(args, "translation", "reference", "metrics")
    if args.compare and args.compound_split:
        raise flags.CommandError(
            "--compound_split does not go with --compare. Leave one of them out."
        )
    check_seed("seed", args.seed)
    named = [("translation", args.translation), ("compare", args.compare)]
    named += [("reference", file) for file in args.reference]
    check_files.check_standard_output(named)
    files = [file for _, file in named if file]
    texts = {file: list(read_lines(file)) for file in files}
    check_line_counts(
        {file: len(lines) for file, lines in texts.items()},
        "Translate every line of the source, blank ones too, and use the reference that"
        " belongs to it.",
    )
    translations = texts[args.translation]
    references, *more = [texts[file] for file in dict.fromkeys(args.reference)]
    how = args.metrics, args.tokenize, args.lowercase
    if args.compare:
        differences = corpus_metrics.paired_bootstrap(
            texts[args.compare], translations, references, *how, args.seed, more
        )
        print(_comparison(args.compare, args.translation, differences))
        return
    for score in corpus_metrics.corpus_scores(translations, references, *how, more):
        print(score)
    if args.compound_split:
        print(bleu.compound_split_bleu(translations, references, *more))


def _comparison(baseline: str, system: str, differences: list[Difference]) -> str:
    """A table with a line for each metric, and notes on it."""
    names = [Path(path).name for path in (baseline, system)]
    names = names if len(set(names)) == 2 else [baseline, system]
    rows = [("metric", *names, "difference", "p", "")]
    for score in differences:
        row = (
            score.metric,
            _with_interval(score.baseline, score.baseline_interval),
            _with_interval(score.system, score.system_interval),
            f"{score.system - score.baseline:+.2f}",
            f"{score.p:.4f}",
            "significant" if score.is_significant else "not significant",
        )
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines.append(
        "In brackets: mean and 95% confidence interval over the resamples. Significant:"
        " p below 0.05."
    )
    return "\n".join(
        [*lines, *(f"{score.metric}|{score.signature}" for score in differences)]
    )


def _with_interval(score: float, interval: tuple[float, float]) -> str:
    mean, half = interval
    return f"{score:.2f} ({mean:.2f} ± {half:.2f})"


if __name__ == "__main__":
    raise SystemExit(main())
