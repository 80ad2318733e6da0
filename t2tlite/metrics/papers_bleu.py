"""The kind of BLEU that *Attention Is All You Need* reports for English to German.

On the same translations it differs from sacrebleu's BLEU, the score to report, by a few
tenths, so compare it only with the paper's.
"""

import functools
import re
from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from t2tlite.metrics.corpus_metrics import CorpusScore, checked_lines

# Moses's scripts read bytes here, so a non-breaking space is not white space to them:
# hence re.ASCII.
_HYPHEN = re.compile(r"(\S)-(\S)", re.ASCII)
_LAST_PERIOD = re.compile(r"(?<=[^\s.])\.$")


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
