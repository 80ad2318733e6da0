"""Speed of tensor2tensor's subword vocabularies on one core: encoding and decoding.

    python benchmarks/subword_encoder.py --text train.en train.de \\
        --vocab_file=vocab.translate_ende.subwords

Text is encoded twice; the second time its words are in the cache. Times are the
process's own. Prints one line that begins RESULT.
"""

from __future__ import annotations

import time

import program

from t2tlite.files.text_files import read_lines
from t2tlite.vocabularies.subword_encoder import SubwordEncoder, tokenize


def main() -> None:
    """Measures and prints."""
    parser = program.argument_parser(__doc__)
    parser.add_argument(
        "--text", nargs="+", required=True, help="files, one sentence a line"
    )
    parser.add_argument("--vocab_file", required=True, help="a .subwords file")
    args = parser.parse_args()
    sentences = [line.strip() for path in args.text for line in read_lines(path)]
    words = sum(len(sentence.split()) for sentence in sentences)
    encoder = SubwordEncoder(args.vocab_file)
    tokens = set()
    for sentence in sentences:
        tokens.update(tokenize(sentence))
    encode_rates = []
    for _ in range(2):
        start = time.process_time()
        rows = encoder.encode_batch(sentences)
        encode_rates.append(len(sentences) / (time.process_time() - start))
    start = time.process_time()
    for row in rows:
        encoder.decode(row)
    decode_rate = len(sentences) / (time.process_time() - start)
    print(
        f"RESULT subwords: {len(sentences)} sentences of {words / len(sentences):.1f}"
        f" words, {len(tokens)} different tokens, vocabulary of"
        f" {encoder.vocab_size}; sentences/s encoded {encode_rates[0]:.0f},"
        f" with warm cache {encode_rates[1]:.0f}, decoded {decode_rate:.0f}"
    )


if __name__ == "__main__":
    main()
