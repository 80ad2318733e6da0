"""Ids of the padding token and of the end-of-sentence token (EOS), the same in every
vocabulary.
"""

PAD = 0
EOS = 1
