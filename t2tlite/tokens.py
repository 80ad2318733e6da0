"""The ids of the padding token and the end-of-sentence token (EOS), the same in every vocabulary."""

PAD, EOS = 0, 1
