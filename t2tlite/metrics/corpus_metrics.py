"""The metrics of whole test sets.

BLEU, chrF and TER are sacrebleu's, with the settings of its command line: chrF with
character 6-grams, beta 2 and no word n-grams; TER as TERCOM computes it, ignoring case.
`sequence_metrics.py` has those for outputs that are not translations. A metric is a
class in sacrebleu's form that `register_metric` makes known.

`compound_split_bleu` is the kind of BLEU that *Attention Is All You Need* reports for
English to German. On the same translations it differs from sacrebleu's BLEU, the score
to report, by a few tenths, so compare it only with the paper's.
"""

import contextlib
import dataclasses
import functools
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sacrebleu.metrics.base import Metric, Score
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from t2tlite.checked_fields import CheckedFields, checked_field
from t2tlite.registry import get_metric, register_metric
from t2tlite.texts import list_of_texts

TOKENIZERS = tuple(BLEU.TOKENIZERS)
BOOTSTRAP_SAMPLES = 1000
SACREBLEUS_SEED = 12345
# the only way to give sacrebleu a seed
_SEED_VARIABLE = "SACREBLEU_SEED"

# Moses's scripts read bytes here, so a non-breaking space is not white space to them:
# hence re.ASCII.
_HYPHEN = re.compile(r"(\S)-(\S)", re.ASCII)
_LAST_PERIOD = re.compile(r"(?<=[^\s.])\.$")


@dataclasses.dataclass(frozen=True)
class MetricOptions(CheckedFields):
    """How the metrics are computed."""

    called = "options of metrics"

    tokenize: str = checked_field(
        "13a",
        "How BLEU splits text: a tokeniser of sacrebleu's, such as zh; ja-mecab needs"
        " pip install 'sacrebleu[ja]', flores200 downloads a model.",
        choices=TOKENIZERS,
    )
    lowercase: bool = checked_field(
        False, "Ignore case in all metrics, as TER always does."
    )
    chrf_word_order: int = checked_field(
        0, "Longest word n-grams of chrF; 2 for chrF2++.", low=0, high=10
    )
    confidence: bool = checked_field(
        False,
        "Also the 95% confidence interval of each score, by bootstrap resampling.",
    )


DEFAULTS = MetricOptions()


class Scoring(NamedTuple):
    """What is scored with the outputs of a split, and how.

    Attributes:
        metrics: registered names; by default the task's own.
        options: how the metrics are computed.
        more_references: further references of the same sentences.
    """

    metrics: tuple[str, ...] = ()
    options: MetricOptions = DEFAULTS
    more_references: tuple[Sequence[str], ...] = ()


OF_TASK = Scoring()


class CorpusScore(NamedTuple):
    """A score and how it was computed. `str(score)` is the line that sacrebleu prints:

    chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 57.72

    Attributes:
        result: sacrebleu's score, with `name` and `score`.
        signature: in sacrebleu's notation.
    """

    result: Score
    signature: str

    @property
    def interval(self) -> float | None:
        """Half of the 95% confidence interval, or None if it was not computed."""
        # sacrebleu has no other name for it
        half = float(self.result._ci)
        return None if half < 0 else half

    def __str__(self) -> str:
        return self.result.format(signature=self.signature)


def corpus_scores(
    translations: Sequence[str],
    references: Sequence[str],
    metrics: Sequence[str] = ("bleu",),
    options: MetricOptions = DEFAULTS,
    more_references: Sequence[Sequence[str]] = (),
    seed: int = SACREBLEUS_SEED,
) -> list[CorpusScore]:
    """The scores of plain, detokenised text against one reference or several, a score
    for each of `metrics`.

    Translations and references are one sentence per line, in the same order;
    `more_references` are further references of the same sentences, `metrics` registered
    names, `seed` that of the resampling for `confidence`. Raises ValueError as
    `make_metrics`, and if there are no translations, or not as many as references.
    """
    translations, *all_references = checked_lines(
        translations, references, *more_references
    )
    draws = BOOTSTRAP_SAMPLES if options.confidence else 1
    # threads that train or decode may read the environment, which `seeded` changes
    resampling = seeded(seed) if options.confidence else contextlib.nullcontext()
    scores = []
    with resampling:
        for metric in make_metrics(metrics, options):
            result = metric.corpus_score(
                translations, all_references, n_bootstrap=draws
            )
            scores.append(CorpusScore(result, str(metric.get_signature())))
    return scores


def checked_lines(*texts: Sequence[str]) -> list[list[str]]:
    """The translations and each of their references as lists.

    Raises ValueError if there are no translations, or not as many as references.
    """
    all_lines = list(map(list_of_texts, texts))
    count, *others = map(len, all_lines)
    for other in others:
        if other != count or not count:
            raise ValueError(
                "Translations and references must be equally many, at least 1."
                f" Received: {count} and {other}."
            )
    return all_lines


def make_metrics(
    names: Sequence[str], options: MetricOptions = DEFAULTS
) -> list[Metric]:
    """The metrics of these names, each once. Raises ValueError if one is unknown, or
    needs a package or a file that is not there.
    """
    return [get_metric(name)(options) for name in dict.fromkeys(names)]


def counts_errors(metric: Metric) -> bool:
    """Whether lower is better."""
    return isinstance(metric, TER) or getattr(metric, "counts_errors", False)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Makes sacrebleu use this seed."""
    before = os.environ.copy()
    os.environ[_SEED_VARIABLE] = str(seed)
    try:
        yield
    finally:
        del os.environ[_SEED_VARIABLE]
        os.environ.update(before)


@register_metric
def bleu(options: MetricOptions) -> Metric:
    """Precision of 1-grams to 4-grams with a brevity penalty (Papineni, 2002)."""
    try:
        return BLEU(tokenize=options.tokenize, lowercase=options.lowercase)
    # sacrebleu ends the process if it cannot check a certificate
    except (ImportError, RuntimeError, OSError, SystemExit) as error:
        need = f"a model, which sacrebleu downloads once into ~/.sacrebleu: {error}"
        if options.tokenize.endswith("-mecab"):
            need = f"pip install 'sacrebleu[{options.tokenize[:2]}]'"
        raise ValueError(f"tokenize={options.tokenize} needs {need}") from error


@register_metric
def chrf(options: MetricOptions) -> Metric:
    """F-score of character n-grams (Popović, 2015)."""
    return CHRF(word_order=options.chrf_word_order, lowercase=options.lowercase)


@register_metric
def ter(options: MetricOptions) -> Metric:
    """Edits for each word of the reference (Snover et al., 2006); lower is better."""
    return TER()


def compound_split_bleu(
    translations: Sequence[str], *references: Sequence[str]
) -> CorpusScore:
    """The paper's BLEU: both sides tokenised by Moses's rules for German, split at
    hyphens, cased.

    The steps are those of tensor2tensor's `get_ende_bleu.sh`: Moses's
    replace-unicode-punctuation.perl and tokenizer.perl, one substitution at hyphens,
    multi-bleu.perl without smoothing. For one line they give:

        as written                   A-B-C-D „Anführung“ ist gut.
        replace_unicode_punctuation  A-B-C-D „Anführung" ist gut.
        moses_tokenize               A-B-C-D „ Anführung &quot; ist gut .
        split_hyphens                A ##AT##-##AT## B-C ##AT##-##AT## D „ Anführung ...

    That script expects a normalised and tokenised reference; here every step is applied
    to both sides, plain text with a sentence per line. Raises ValueError as
    `multi_bleu`.
    """
    sides = []
    for lines in checked_lines(translations, *references):
        side = []
        for line in lines:
            tokens = moses_tokenize(replace_unicode_punctuation(line))
            side.append(split_hyphens(tokens))
        sides.append(side)
    result, signature = multi_bleu(*sides)
    result.name = "compound-split BLEU, tokenised; compare only with the paper's scores"
    return CorpusScore(result, signature.replace("tok:none", "tok:moses-de+atat"))


def multi_bleu(translations: Sequence[str], *references: Sequence[str]) -> CorpusScore:
    """BLEU of the tokens between white space, as Moses's multi-bleu.perl computes it,
    without smoothing.

    Translations and references, of which there may be several, are tokenised in the
    same way, a sentence per line. Raises ValueError if there are no translations, or
    not as many as references.
    """
    translations, *all_references = checked_lines(translations, *references)
    # With force, sacrebleu does not warn that the text looks tokenised, as it should
    # be.
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    result = metric.corpus_score(translations, all_references)
    return CorpusScore(result, str(metric.get_signature()))


def replace_unicode_punctuation(line: str) -> str:
    """Typographic quotes (but „), ellipses, full-width punctuation and digits in ASCII,
    exactly as Moses.
    """
    return _moses()[0].replace_unicode_punct(line)


def moses_tokenize(line: str) -> str:
    """Tokens separated by single spaces, with &, quotes, brackets and | escaped:
    `tokenizer.perl -l de`.

    sacremoses keeps the period of a last word that could be an abbreviation ("usw.",
    "z.B."), where Moses always separates the last period of a line; this is corrected
    here.
    """
    return _LAST_PERIOD.sub(" .", _moses()[1].tokenize(line, return_str=True))


def split_hyphens(line: str) -> str:
    """`A-B` becomes `A ##AT##-##AT## B`.

    A character belongs to one match only, so that one-letter parts are split at every
    other hyphen (see `compound_split_bleu`). The published scores were computed this
    way.
    """
    return _HYPHEN.sub(r"\1 ##AT##-##AT## \2", line)


@functools.cache
def _moses() -> tuple[Any, Any]:
    # slow to import, and few users need it
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    return MosesPunctNormalizer(), MosesTokenizer(lang="de")
