"""BLEU of whole test sets.

`corpus_bleu` is sacrebleu's: the figure to report, comparable with everyone else's that carries the same signature.
`compound_split_bleu` is the kind of figure that Attention Is All You Need gives for English to German; on the same
translations it differs from sacrebleu's by a few tenths, so compare it only with the paper's.
`multi_bleu` scores tokens as they are, as Moses's multi-bleu.perl does.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.bleu import BLEUScore as SacrebleuScore

from t2tlite.metrics import compound_split

# sacrebleu's ways to split text into tokens that need neither a download nor another package.
TOKENIZERS = ("13a", "intl", "zh", "char", "none")

# multi-bleu.perl -lc lowercases bytes, so only A to Z.
_ASCII_LOWERCASE = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@dataclass(frozen=True)
class BleuScore:
    """A BLEU score and all that a reader needs to know what it is.

    `str(score)` is one line:
    BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 28.30 59.9/34.0/... (BP = 1.000 ratio = 1.026 ...)
    """

    score: float  # from 0 to 100
    precisions: tuple[float, float, float, float]  # of 1-grams to 4-grams, in percent
    brevity_penalty: float  # 1 where translations are at least as long as references
    translation_length: int  # in tokens, all lines together
    reference_length: int
    name: str  # which kind of BLEU
    signature: str  # how it was computed, in sacrebleu's notation

    @property
    def length_ratio(self) -> float:
        """Tokens in translations for each token in references; 0 where references are all blank."""
        return self.translation_length / self.reference_length if self.reference_length else 0.0

    def __str__(self) -> str:
        precisions = "/".join(f"{p:.1f}" for p in self.precisions)
        return (
            f"{self.name}|{self.signature} = {self.score:.2f} {precisions} "
            f"(BP = {self.brevity_penalty:.3f} ratio = {self.length_ratio:.3f} "
            f"hyp_len = {self.translation_length} ref_len = {self.reference_length})"
        )


def corpus_bleu(
    translations: Sequence[str], references: Sequence[str], tokenize: str = "13a", lowercase: bool = False
) -> BleuScore:
    """sacrebleu's BLEU of plain, detokenised text against one reference.

    Args:
        translations: one a line, in the order of `references`.
        references: plain text too; sacrebleu tokenises both.
        tokenize: "13a", the standard; "intl", which also splits at Unicode punctuation and symbols (what
            tensor2tensor's t2t-bleu used); "zh"; "char"; or "none" for text that is tokenised already.
        lowercase: compare without regard to case.

    Raises:
        ValueError: there are no translations, not as many as references, or `tokenize` is none of the above.
    """
    _check_counts(translations, references)
    if tokenize not in TOKENIZERS:
        raise ValueError(f"tokenize must be one of {', '.join(TOKENIZERS)}. Received: {tokenize!r}.")
    metric = BLEU(tokenize=tokenize, lowercase=lowercase)
    result = metric.corpus_score(translations, [references])
    return _score(result, "BLEU", str(metric.get_signature()))


def compound_split_bleu(translations: Sequence[str], references: Sequence[str], language: str = "de") -> BleuScore:
    """The paper's BLEU: both sides tokenised by Moses's rules and split at hyphens, case kept, no smoothing.

    These are the steps of tensor2tensor's `get_ende_bleu.sh`. That script expects a reference that is already
    normalised and tokenised; here the reference is plain text, so every step is applied to both sides.

    Args:
        translations: plain text, one a line, in the order of `references`.
        references: plain text.
        language: language code of both, for abbreviations and apostrophes.

    Raises:
        ValueError: there are no translations, or not as many as references.
    """
    _check_counts(translations, references)
    split = functools.partial(compound_split.compound_split, language=language)
    return _token_bleu(
        map(split, translations),
        map(split, references),
        "compound-split BLEU, tokenised; compare only with the paper's figures",
        f"nrefs:1|case:mixed|eff:no|tok:moses-{language}+atat|smooth:none",
    )


def multi_bleu(translations: Sequence[str], references: Sequence[str], lowercase: bool = False) -> BleuScore:
    """BLEU of the tokens between white space, as Moses's multi-bleu.perl computes it: no tokenisation, no smoothing.

    Args:
        translations: tokenised text, one a line, in the order of `references`.
        references: text tokenised in the same way.
        lowercase: lowercase A to Z on both sides first; other letters keep their case, as under `multi-bleu.perl -lc`.

    Raises:
        ValueError: there are no translations, or not as many as references.
    """
    _check_counts(translations, references)
    if lowercase:
        translations = [line.translate(_ASCII_LOWERCASE) for line in translations]
        references = [line.translate(_ASCII_LOWERCASE) for line in references]
    case = "lc" if lowercase else "mixed"
    return _token_bleu(translations, references, "multi-bleu", f"nrefs:1|case:{case}|eff:no|tok:none|smooth:none")


def _token_bleu(translations: Iterable[str], references: Iterable[str], name: str, signature: str) -> BleuScore:
    # force: sacrebleu would otherwise warn that the text looks tokenised, which it is meant to be.
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    return _score(metric.corpus_score(list(translations), [list(references)]), name, signature)


def _score(result: SacrebleuScore, name: str, signature: str) -> BleuScore:
    one, two, three, four = result.precisions
    return BleuScore(
        score=result.score,
        precisions=(one, two, three, four),
        brevity_penalty=result.bp,
        translation_length=result.sys_len,
        reference_length=result.ref_len,
        name=name,
        signature=signature,
    )


def _check_counts(translations: Sequence[str], references: Sequence[str]) -> None:
    if len(translations) != len(references):
        raise ValueError(
            f"Each translation needs one reference. Received: {len(translations)} translations and "
            f"{len(references)} references. Give both in the same order, a line each."
        )
    if not translations:
        raise ValueError("BLEU needs at least one translation. Received: none. Give translations and their references.")
