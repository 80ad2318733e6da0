"""Text to learn vocabularies from, and text that breaks programs."""

import random

from t2tlite.vocabularies.normalisation import SPACE_MARK

SENTENCES = [
    "the cat sits on the mat",
    "die Katze sitzt auf der Matte",
    "größer als zuvor",
    "a cat, a mat",
] * 20
NASTY = [
    "",
    "   ",
    " leading",
    "trailing ",
    "  two  spaces   three  ",
    "\ttabs\t\there\t",
    "line\nfeeds\n\nand\r\nreturns\r",
    "no\u00a0break\u00a0\u00a0spaces\u00a0",
    "\ufeff\u200b\u2060\u2028\u2029\x85\x0b\x0c\x1c\u3000\ufeff",
    "\x00nul\x00 \x7f",
    "".join(map(chr, range(32))) + "\x7f\x80\x85",
    "_under__scores_ _ __",
    "back\\slashes\\\\ \\u \\\\u \\_ \\1234; \\\\10; \\; \\95;u_\\",
    "\\1114112; \\55296; 1;2;3",
    # composed, decomposed, marks alone, a compatibility character
    "caf\u00e9 cafe\u0301 \u0301\u0302a \u212b",
    # a family: emoji joined by zero-width joiners
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\ufe0f x\U0001f600y",
    "日本語 한국어 العربية עברית ไทย",
    "\U0010ffff\ufffd\ufffe\ue000",
    "<pad> <EOS> <pad>_ <EOS>_ '<EOS>_' \"x\" </s> <unk> <s> <0x41> ⁇ \u2585",
    "x²+½ Ⅷ ٣ 𝟘",
    "DON'T stop!? (1,234.50) -- \u201equoted\u201c",
]


def random_texts():
    draw = random.Random(0)
    codes = {*range(0x30000)} - {*range(0xD800, 0xE000), ord(SPACE_MARK)}
    anything = list(map(chr, sorted(codes)))
    frequent = list("\\\\\\__u;;0123456789ab  \t\n\u00a0\u0301é\U0001f600")
    texts = []
    for _ in range(2000):
        characters = draw.choice([anything, frequent])
        texts.append("".join(draw.choices(characters, k=draw.randrange(40))))
    return texts
