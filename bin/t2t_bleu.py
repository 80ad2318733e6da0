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
(lower is better). --chrf_word_order=2 makes chrF2 chrF2++. For Chinese use
--tokenize=zh, for Japanese and Korean ja-mecab and ko-mecab.

--metrics=exact_match,token_accuracy is for outputs of which only one is right, such as
a sorted list: the share of lines equal to the reference, and of tokens in the right
position, tokens being what white space separates. --metrics=wer,per is for
pronunciations: the share of words that are wrong, and the phonemes to insert, leave out
or replace for each of the reference's. Here each line counts; t2t-decoder --split
counts a word with several pronunciations once, and any of them as right.

--confidence adds to each score the mean and half of the 95% confidence interval over
1,000 test sets drawn from the sentences, with replacement, as sacrebleu does: how much
other sentences of the same kind would have changed it.

    BLEU|nrefs:1|bs:1000|seed:12345|... = 28.30 (μ = 28.31 ± 0.52) 59.9/34.0...

Is the difference between two systems significant, or would other sentences have
reversed it?

    t2t-bleu --translation=new.de --compare=old.de \\
        --reference=newstest2014.de --metrics=bleu,chrf,ter

draws 1,000 test sets from the sentences, scores both systems on each (paired bootstrap
resampling), and prints both scores of each metric, the difference, and p: how often a
difference this large arises by chance alone. Below 0.05 it is called significant.
--seed=N draws other test sets, as it does for --confidence. Then it prints the
sentences that changed most, five that became better and five that became worse, by the
score of each sentence: that of the first metric other than bleu, by default chrf.

With --compound_split a second line gives the BLEU that Attention Is All You Need
reports for English to German: on Moses's tokens, with hyphenated compounds split.
Compare it only with that paper's scores.
"""

import dataclasses
from pathlib import Path

from t2tlite.bin.command import command
from t2tlite.bin.flags import require
from t2tlite.bin.groups import PackageFlags
from t2tlite.checked_fields import (
    MAX_SEED,
    checked_field,
    optional_field,
    required_field,
)
from t2tlite.console import markdown_table
from t2tlite.files.text_files import check_line_counts, read_lines
from t2tlite.metrics.comparison import (
    Change,
    Difference,
    largest_changes,
    paired_bootstrap,
)
from t2tlite.metrics.corpus_metrics import (
    SACREBLEUS_SEED,
    MetricOptions,
    compound_split_bleu,
    corpus_scores,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BleuFlags(MetricOptions, PackageFlags):
    """Which translations are scored, and how."""

    translation: str = required_field(str, "File of translations, one per line.")
    reference: tuple[str, ...] = required_field(
        tuple,
        "File of reference translations, one per line; can be given several times.",
    )
    metrics: tuple[str, ...] = checked_field(
        ("bleu",),
        "Metrics to compute, comma-separated: bleu, chrf, ter, exact_match,"
        " token_accuracy, wer, per, or one of --t2t_usr_dir.",
    )
    compare: str | None = optional_field(
        str,
        "Translations of another system; tests whether the two differ significantly.",
    )
    seed: int = checked_field(
        SACREBLEUS_SEED,
        "Random seed of the resampling of --compare and --confidence.",
        low=0,
        high=MAX_SEED,
    )
    compound_split: bool = checked_field(
        False,
        "Also print the paper's BLEU: tokenised as German, compounds split, cased.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(metrics=self.metrics)


@command
def main(flags: BleuFlags) -> None:
    """Prints the scores that the flags ask for."""
    flags.check_standard_output("translation", "compare", "reference")
    texts = {}
    for path in (flags.translation, flags.compare, *flags.reference):
        if path:
            texts[path] = list(read_lines(path))
    check_line_counts(
        {path: len(lines) for path, lines in texts.items()},
        "Translate every line of the source, blank ones too, and use the reference that"
        " belongs to it.",
    )
    translations = texts[flags.translation]
    references, *more = [texts[file] for file in dict.fromkeys(flags.reference)]
    if flags.compare:
        systems = texts[flags.compare], translations
        differences = paired_bootstrap(
            *systems, references, flags.metrics, flags, flags.seed, more
        )
        paths = flags.compare, flags.translation
        old, new = [Path(path).name for path in paths]
        if old == new:
            old, new = paths
        print(_comparison(old, new, differences))
        # BLEU is of whole texts
        metric = next((name for name in flags.metrics if name != "bleu"), "chrf")
        changes = largest_changes(
            texts[flags.compare], translations, references, metric, flags, more
        )
        for change in changes:
            direction = "better" if change.gain > 0 else "worse"
            gain = f"{direction} by {abs(change.gain):.2f} ({metric})"
            print(f"\nline {change.line}, {gain}")
            print(_texts(old, new, change))
    else:
        shown = corpus_scores(
            translations, references, flags.metrics, flags, more, flags.seed
        )
        print("\n".join(map(str, shown)))
    if flags.compound_split:
        print(compound_split_bleu(translations, references, *more))


def _comparison(baseline: str, system: str, differences: list[Difference]) -> str:
    """Returns a table with a line for each metric, and notes on it."""
    columns = ["metric", baseline, system, "difference", "p", ""]
    rows = []
    signatures = []
    for score in differences:
        verdict = "significant" if score.is_significant else "not significant"
        baseline = _with_interval(score.baseline, score.baseline_interval)
        system = _with_interval(score.system, score.system_interval)
        difference = f"{score.system - score.baseline:+.2f}"
        p = f"{score.p:.4f}"
        rows.append([score.metric, baseline, system, difference, p, verdict])
        signatures.append(f"{score.metric}|{score.signature}")
    table = markdown_table(columns, rows, labels=1)
    note = (
        "In brackets: mean and 95% confidence interval over the resamples."
        " Significant: p below 0.05."
    )
    return "\n".join([table + note, *signatures])


def _texts(baseline: str, system: str, change: Change) -> str:
    """Returns the reference and both translations of a sentence, a line for each."""
    names = ["reference", baseline, system]
    width = max(map(len, names))
    lines = []
    for name, text in zip(names, change[1:4], strict=True):
        lines.append(f"{name:{width}}  {text}")
    return "\n".join(lines)


def _with_interval(score: float, interval: tuple[float, float]) -> str:
    mean, half = interval
    return f"{score:.2f} ({mean:.2f} ± {half:.2f})"


if __name__ == "__main__":
    raise SystemExit(main())
