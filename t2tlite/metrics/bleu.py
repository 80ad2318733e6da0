"""BLEU of whole test sets.

`corpus_bleu` is sacrebleu's: the score to report, comparable with all others of the same signature.
`compound_split_bleu` is the kind of BLEU that Attention Is All You Need reports for English to German; on the same
translations it differs from sacrebleu's by a few tenths, so compare it only with the paper's.
`multi_bleu` scores the given tokens, as Moses's multi-bleu.perl does.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sacrebleu.metrics.bleu import BLEU, BLEUScore

if TYPE_CHECKING:
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

TOKENIZERS = ("13a", "intl", "zh", "char", "none")  # those of sacrebleu that need no download and no other package
_ASCII_LOWERCASE = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)  # multi-bleu.perl lowercases bytes
# Moses's scripts read bytes here, so a non-breaking space is not white space to them: hence re.ASCII.
_HYPHEN = re.compile(r"(\S)-(\S)", re.ASCII)
_LAST_PERIOD = re.compile(r"(?<=[^\s.])\.$")


class Bleu(NamedTuple):
    """A BLEU score and how it was computed. `str(bleu)` is one line:

    BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 28.30 59.9/34.0/... (BP = 1.000 ratio = 1.026 ...)
    """

    result: BLEUScore  # sacrebleu's: `score` from 0 to 100, `precisions` of 1-grams to 4-grams in percent, ...
    signature: str  # in sacrebleu's notation

    def __str__(self) -> str:
        return self.result.format(signature=self.signature)


def corpus_bleu(
    translations: Sequence[str], references: Sequence[str], tokenize: str = "13a", lowercase: bool = False
) -> Bleu:
    """sacrebleu's BLEU of plain, detokenised text against one reference.

    Translations and references are plain text, one per line, in the same order. `tokenize` is "13a", the standard;
    "intl", which also splits at Unicode punctuation and symbols, as tensor2tensor's t2t-bleu does; "zh"; "char"; or
    "none" for text that is already tokenised. `lowercase` compares without regard to case.

    Raises ValueError if `tokenize` is another value, and as `multi_bleu`.
    """
    return _score(bleu_metric(tokenize, lowercase), translations, references, "BLEU")


def bleu_metric(tokenize: str = "13a", lowercase: bool = False) -> BLEU:
    """sacrebleu's metric of these settings; ValueError if `tokenize` is not one of TOKENIZERS."""
    if tokenize not in TOKENIZERS:
        raise ValueError(f"tokenize must be one of {', '.join(TOKENIZERS)}. Received: {tokenize!r}.")
    return BLEU(tokenize=tokenize, lowercase=lowercase)


def compound_split_bleu(translations: Sequence[str], references: Sequence[str]) -> Bleu:
    """The paper's BLEU: both sides tokenised by Moses's rules for German, split at hyphens, case kept, no smoothing.

    These are the steps of tensor2tensor's `get_ende_bleu.sh`: Moses's replace-unicode-punctuation.perl and
    tokenizer.perl, one substitution at hyphens, multi-bleu.perl. What each step here makes of one line:

        A-B-C-D „Anführung“ ist gut.                                   as written
        A-B-C-D „Anführung" ist gut.                                   replace_unicode_punctuation
        A-B-C-D „ Anführung &quot; ist gut .                           moses_tokenize
        A ##AT##-##AT## B-C ##AT##-##AT## D „ Anführung &quot; ...     split_hyphens

    That script expects a reference that is already normalised and tokenised; here both sides are plain text, one per
    line, and every step is applied to both. Raises ValueError as `multi_bleu`.
    """

    def prepared(lines: Sequence[str]) -> list[str]:
        return [split_hyphens(moses_tokenize(replace_unicode_punctuation(line))) for line in lines]

    result = multi_bleu(prepared(translations), prepared(references)).result
    result.name = "compound-split BLEU, tokenised; compare only with the paper's scores"
    return Bleu(result, "nrefs:1|case:mixed|eff:no|tok:moses-de+atat|smooth:none")


def multi_bleu(translations: Sequence[str], references: Sequence[str], lowercase: bool = False) -> Bleu:
    """BLEU of the tokens between white space, as Moses's multi-bleu.perl computes it: no tokenisation, no smoothing.

    Both sides are tokenised in the same way, one sentence per line. `lowercase` lowercases A to Z on both sides first;
    other letters keep their case, as in `multi-bleu.perl -lc`. Raises ValueError if there are no translations, or not
    as many as references.
    """
    if lowercase:
        translations = [line.translate(_ASCII_LOWERCASE) for line in translations]
        references = [line.translate(_ASCII_LOWERCASE) for line in references]
    # With force, sacrebleu does not warn that the text looks tokenised, as it should be.
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    signature = f"nrefs:1|case:{'lc' if lowercase else 'mixed'}|eff:no|tok:none|smooth:none"
    return _score(metric, translations, references, "multi-bleu", signature)


def _score(
    metric: BLEU, translations: Sequence[str], references: Sequence[str], name: str, signature: str = ""
) -> Bleu:
    """The score by a metric of sacrebleu; without a signature, it has sacrebleu's own."""
    check_lines(translations, references)
    result = metric.corpus_score(translations, [references])
    result.name = name
    return Bleu(result, signature or str(metric.get_signature()))


def check_lines(translations: Sequence[str], references: Sequence[str]) -> None:
    """Raises ValueError if there are no translations, or not as many as references."""
    if len(translations) != len(references):
        raise ValueError(
            f"Each translation needs one reference. Received: {len(translations)} translations and "
            f"{len(references)} references. Give both in the same order, one per line."
        )
    if not translations:
        raise ValueError(
            "A score needs at least one translation. Received: none. Give translations and their references."
        )


def replace_unicode_punctuation(line: str) -> str:
    """Typographic quotes (but „), the ellipsis, and full-width punctuation and digits in ASCII, exactly as in Moses."""
    return _moses()[0].replace_unicode_punct(line)


def moses_tokenize(line: str) -> str:
    """Tokens separated by single spaces, with &, quotes, brackets and | escaped: Moses's `tokenizer.perl -l de`.

    sacremoses keeps the period of a last word that could be an abbreviation ("usw.", "z.B."), where Moses always
    separates the last period of a line; this is corrected here.
    """
    return _LAST_PERIOD.sub(" .", _moses()[1].tokenize(line, return_str=True))


def split_hyphens(line: str) -> str:
    """`A-B` becomes `A ##AT##-##AT## B`.

    A character belongs to one match only, so that one-letter parts are split at every other hyphen (see
    `compound_split_bleu`). The published scores were computed this way.
    """
    return _HYPHEN.sub(r"\1 ##AT##-##AT## \2", line)


@functools.cache
def _moses() -> tuple[MosesPunctNormalizer, MosesTokenizer]:
    from sacremoses import MosesPunctNormalizer, MosesTokenizer  # slow to import, and few users need it

    return MosesPunctNormalizer(), MosesTokenizer(lang="de")
