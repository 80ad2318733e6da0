"""Scores translations against a reference: BLEU as sacrebleu computes it.

    t2t-bleu --translation=out.de --reference=newstest2014.de

Both files hold plain text in UTF-8, one sentence per line; line N of the one translates what line N of the other does.
Neither is tokenised: sacrebleu does that. The command prints one line, such as

    BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 28.30 59.9/34.0/21.8/14.4 (BP = 1.000 ...)

In order: how the score was computed (the signature: one reference, case counts, tokenised as 13a), the score from 0 to
100, the precisions of 1-grams to 4-grams in percent, the brevity penalty, and both lengths in tokens. Always give the
signature with the score; scores under different signatures cannot be compared. What tensor2tensor's t2t-bleu printed
is --tokenize=intl here, with --lowercase for its uncased score.

With --compound_split a second line gives the BLEU that Attention Is All You Need reports for English to German: on
Moses's tokens, with hyphenated compounds split. Compare it only with that paper's scores.
"""

from __future__ import annotations

from t2tlite.bin import flags
from t2tlite.files.text_files import check_line_counts, read_lines


@flags.command(__doc__, "translation", "reference", "tokenize", "lowercase", "compound_split")
def main(args: flags.Args) -> None:
    """Prints the scores that the flags ask for."""
    from t2tlite.metrics import bleu

    flags.require(args, "translation", "reference")
    translations, references = list(read_lines(args.translation)), list(read_lines(args.reference))
    check_line_counts(
        {args.translation: len(translations), args.reference: len(references)},
        "Translate every line of the source, blank ones too, and use the reference that belongs to it.",
    )
    print(bleu.corpus_bleu(translations, references, tokenize=args.tokenize, lowercase=args.lowercase))
    if args.compound_split:
        print(bleu.compound_split_bleu(translations, references))


if __name__ == "__main__":
    raise SystemExit(main())
