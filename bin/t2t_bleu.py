"""Scores translations against a reference: BLEU as sacrebleu computes it.

    t2t-bleu --translation=out.de --reference=newstest2014.de

Both files hold plain text in UTF-8, one sentence a line; line N of the one translates what line N of the other does.
Neither is tokenised: sacrebleu does that. The command prints one line, such as

    BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 28.30 59.9/34.0/21.8/14.4 (BP = 1.000 ...)

In order: how the score was computed (the signature: one reference, case counts, tokenised as 13a), the score from 0 to
100, the precisions of 1-grams to 4-grams in percent, the brevity penalty, and both lengths in tokens. Always give the
signature with the score; scores under different signatures cannot be compared. What tensor2tensor's t2t-bleu printed
is --tokenize=intl here, with --lowercase for its uncased score.

With --compound_split a second line gives the BLEU that Attention Is All You Need reports for English to German: on
Moses's tokens, with hyphenated compounds split. Compare it only with that paper's figures.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from t2tlite.bin import flags
from t2tlite.files.text_files import read_lines

FLAGS = ("translation", "reference", "tokenize", "lowercase", "compound_split")


def run(args: flags.Args) -> None:
    """Prints the scores that the flags ask for.

    Raises:
        flags.CommandError: a file was not named.
        OSError, ValueError: a file is missing, empty, not UTF-8, or not as long as the other.
    """
    from t2tlite.metrics import bleu

    flags.require(args, "translation", "reference")
    translations, references = read_pair(args.translation, args.reference)
    print(bleu.corpus_bleu(translations, references, tokenize=args.tokenize, lowercase=args.lowercase))
    if args.compound_split:
        print(bleu.compound_split_bleu(translations, references))


def read_pair(translation: str, reference: str) -> tuple[list[str], list[str]]:
    """The lines of both files.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is empty or not UTF-8, or one has more lines than the other.
    """
    translations, references = list(read_lines(translation)), list(read_lines(reference))
    for path, lines in ((translation, translations), (reference, references)):
        if not lines:
            raise ValueError(f"A file to score must have lines. Received: {path}, which is empty.")
    if len(translations) != len(references):
        raise ValueError(
            f"Both files must have as many lines. Received: {translation} with {len(translations)}, {reference} with "
            f"{len(references)}. Translate every line of the source, blank ones too, and use the reference that goes "
            "with it."
        )
    return translations, references


def main(argv: Sequence[str] | None = None) -> int:
    """The command t2t-bleu; returns its exit status."""
    return flags.run_command(__doc__, FLAGS, run, argv)


if __name__ == "__main__":
    sys.exit(main())
