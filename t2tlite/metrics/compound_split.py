"""Text as it was prepared for the BLEU scores of Attention Is All You Need: tokenised, hyphenated compounds split.

tensor2tensor's `get_ende_bleu.sh` has the steps: Moses's replace-unicode-punctuation.perl and tokenizer.perl, then one
substitution at hyphens, then multi-bleu.perl. What each step here makes of one line:

    A-B-C-D „Anführung“ ist gut.                                   as written
    A-B-C-D „Anführung" ist gut.                                   replace_unicode_punctuation
    A-B-C-D „ Anführung &quot; ist gut .                           moses_tokenize
    A ##AT##-##AT## B-C ##AT##-##AT## D „ Anführung &quot; ...     split_hyphens
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

# Moses's scripts read bytes here, so a non-breaking space is not white space to them: hence re.ASCII.
_HYPHEN = re.compile(r"(\S)-(\S)", re.ASCII)
_LAST_PERIOD = re.compile(r"(?<=[^\s.])\.$")


def compound_split(line: str) -> str:
    """The line after all three steps, whose tokens (between white space) the paper's BLEU counts."""
    return split_hyphens(moses_tokenize(replace_unicode_punctuation(line)))


def replace_unicode_punctuation(line: str) -> str:
    """Typographic quotes, the ellipsis, and full-width punctuation and digits, in ASCII.

    Equal to Moses's replace-unicode-punctuation.perl, which does not replace the opening quote „ either.
    """
    return _moses()[0].replace_unicode_punct(line)


def moses_tokenize(line: str) -> str:
    """Tokens separated by single spaces, with &, quotes, brackets and | escaped: Moses's `tokenizer.perl -l de`.

    sacremoses keeps the period of a last word that could be an abbreviation ("usw.", "z.B."), where Moses always
    separates the last period of a line; this is corrected here.
    """
    return _LAST_PERIOD.sub(" .", _moses()[1].tokenize(line, return_str=True))


def split_hyphens(line: str) -> str:
    """`A-B` becomes `A ##AT##-##AT## B`.

    A character belongs to one match only, so that one-letter parts are split at every other hyphen: `A-B-C-D` becomes
    `A ##AT##-##AT## B-C ##AT##-##AT## D`. The published scores were computed this way.
    """
    return _HYPHEN.sub(r"\1 ##AT##-##AT## \2", line)


@functools.cache
def _moses() -> tuple[MosesPunctNormalizer, MosesTokenizer]:
    from sacremoses import MosesPunctNormalizer, MosesTokenizer  # slow to import, and few users need it

    return MosesPunctNormalizer(), MosesTokenizer(lang="de")
