r"""tensor2tensor's subword vocabularies: its ids, its text, exact round trips, clear
errors.
"""

import json
import sys
import tracemalloc
import unicodedata

import pytest

from t2tlite.vocabularies.subword_encoder import (
    SubwordEncoder,
    join_tokens,
    tokenize,
    unescape_token,
)

MARKS = ["<pad>_", "<EOS>_"]
REAL = ["ende32k", "ende8k"]
BUILT = [(200, None), (200, 4), (1000, None), (1000, 4)]


def write_vocabulary(path, subtokens):
    path.write_bytes("".join(f"'{subtoken}'\n" for subtoken in subtokens).encode())
    return path


@pytest.fixture(scope="session")
def recorded(shared):
    return json.loads((shared / "t2t/subword.json").read_bytes())


@pytest.fixture(scope="session")
def encoded(fixtures):
    """Strings, their tokens, and their ids with the small vocabularies."""
    return json.loads((fixtures / "tensor2tensor/subword.json").read_bytes())


@pytest.fixture(scope="session")
def real(shared, recorded):
    """tensor2tensor's own two vocabularies."""
    folder = shared / "data/vocab"
    files = {name: entry["file"] for name, entry in recorded["vocabs"].items()}
    return {name: SubwordEncoder(folder / file) for name, file in files.items()}


@pytest.fixture
def small(tmp_path):
    """Few subtokens, so that nearly all is spelt in numbers."""
    letters = "\\_u;0123456789<pad>EOSwalkingthe."
    subtokens = dict.fromkeys([*MARKS, "walk", "ing_", "._", "the_", *letters])
    return SubwordEncoder(write_vocabulary(tmp_path / "small.subwords", subtokens))


@pytest.mark.parametrize("name", REAL)
def test_ids_and_text_are_tensor2tensors(recorded, real, name):
    expected, encoder = recorded["vocabs"][name], real[name]
    ids = list(map(encoder.token_ids, recorded["sentences"]))
    assert ids == expected["ids"]
    assert [encoder.pieces(row) for row in ids] == expected["subtokens"]
    assert [encoder.decode(row) for row in ids] == expected["decoded"]
    assert encoder.vocab_size == expected["vocab_size"]


@pytest.mark.parametrize(("target", "length"), BUILT)
def test_ids_with_small_vocabularies_are_tensor2tensors(
    fixtures, encoded, target, length
):
    folder = fixtures / "tensor2tensor"
    name = f"subword_built_{target}_{length}.subwords"
    encoder = SubwordEncoder(folder / name)
    ids = list(map(encoder.token_ids, encoded["strings"]))
    expected = encoded["vocabularies"][name]
    assert ids == expected["ids"]
    assert list(map(encoder.decode, ids)) == expected["decoded"]
    built = json.loads((folder / "subword_built.json").read_bytes())["built"]
    expected = built[f"target{target}_maxlen{length}"]
    corpus = (folder / "subword_corpus.txt").read_text(encoding="utf-8").split("\n")
    assert list(map(encoder.token_ids, corpus[:20])) == expected["ids_first20"]
    # Which 60 sentences these are is not recorded, but tensor2tensor gives each of them
    # back.
    sentences = [encoder.decode(row) for row in expected["ids_sentences60"]]
    assert list(map(encoder.token_ids, sentences)) == expected["ids_sentences60"]


def test_letters_and_numbers_are_unicodes():
    """Between two characters of categories L and N there is no boundary, between one of
    them and any other there is.
    """
    anything = map(chr, range(sys.maxunicode + 1))
    characters = [c for c in anything if unicodedata.category(c) not in ("Cn", "Co")]
    # of the unassigned and the private ones a few
    characters += "\ufffe\U0003fffd\ue000\U0010fffd"
    runs = []
    tokens = ["a"]
    joined = "a"
    was_in_word = None
    for character in characters:
        in_word = unicodedata.category(character)[0] in "LN"
        if in_word == was_in_word:
            runs[-1] += character
        else:
            runs.append(character)
        was_in_word = in_word
        tokens += [character, "a"]
        joined += f" {character} a" if in_word else f"{character}a"
    assert tokenize("".join(characters)) == runs
    assert join_tokens(tokens) == joined


def test_long_tokens_are_not_kept_in_memory(small):
    tracemalloc.start()
    try:
        for letter in "abcd":
            small.encode(letter * 10_000)
        assert tracemalloc.get_traced_memory()[0] < 200_000
    finally:
        tracemalloc.stop()


def test_unescape():
    assert unescape_token(r"a\\b\uc\8364;\10;") == "a\\b_c€\n"
    assert unescape_token(r"\\u\\10;") == r"\u\10;"
    assert unescape_token("\\x\\12\\;\\") == "\\x\\12\\;\\"  # no escapes
    assert unescape_token(r"\0;\1114111;") == "\0\U0010ffff"


@pytest.mark.parametrize(
    "number", ["1114112", "99999999999999999999", "9" * 5000, "55296", "57343"]
)
def test_a_number_without_a_character(number):
    assert unescape_token(f"a\\{number};b") == "a\u3013b"


def test_worked_example(small):
    assert small.encode("walking.") == [2, 3, 4]
    assert small.decode([2, 3, 4, 1, 0, 0]) == "walking."
    assert small.pieces([0, 1, 2, 3]) == ["<pad>_", "<EOS>_", "walk", "ing_"]
    assert small.pieces(small.encode("the§_")) == ["the_", *"\\167;\\u_"]


def test_decode_of_what_a_model_may_say(small):
    assert small.decode([2]) == "walk"  # no end of a token
    assert small.decode([7, 7, 2]) == "walk"  # tokens without content
    assert small.decode([3, 4, 3, 3]) == "ing.ing ing"


def test_a_missing_character_is_named(tmp_path):
    path = write_vocabulary(tmp_path / "v.subwords", [*MARKS, "_", "ab", "\\"])
    encoder = SubwordEncoder(path)
    assert encoder.encode("ab") == [3, 2]
    message = r"subtoken of .*v\.subwords\. Received: 'b', of 'abb'\."
    with pytest.raises(ValueError, match=message):
        encoder.encode("ab abb")
    message = r"Received: '9', of 'abc'\."
    with pytest.raises(ValueError, match=message):
        encoder.encode("abc")


def test_quotes_and_line_ends(tmp_path):
    path = tmp_path / "v.subwords"
    subtoken_of = {
        "<pad>": "<pad>",
        '"<EOS>"': "<EOS>",
        "'''": "'",
        "'\"'": '"',
        "'\"a\"'": '"a"',
        "plain_  ": "plain_",
        "'\u00a0 _'": "\u00a0 _",
        "'\x85\u2028'": "\x85\u2028",
        "'a": "'a",
        "'\\u_'": "\\u_",
    }
    for line_end, last in (("\n", "\n"), ("\n", ""), ("\r\n", "\r\n")):
        path.write_bytes((line_end.join(subtoken_of) + last).encode())
        assert SubwordEncoder(path).pieces(range(10)) == list(subtoken_of.values())
        assert SubwordEncoder(path).vocab_size == 10


def test_empty_and_equal_lines(tmp_path):
    """As in tensor2tensor: the ids of the others stay what they are, and of equal lines
    the later one is used.
    """
    subtokens = [*MARKS, "a_", "", "b_", "a_", ""]
    encoder = SubwordEncoder(write_vocabulary(tmp_path / "v.subwords", subtokens))
    assert encoder.vocab_size == 7
    assert encoder.encode("a b") == [5, 4]
    assert encoder.decode([2, 3, 4, 5, 6]) == "a b a"


NO_SUBWORDS = r"v\.subwords must begin with '<pad>_' and '<EOS>_', .* Received: {}\."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"Received: .*v\.subwords, which does not exist"),
        (
            b"'<pad>_'\n'<EOS>_'\n'na\xefve_'\n",
            r"v\.subwords, line 3: text must be UTF-8\. Received: byte 0xef",
        ),
        (
            b"<pad>\n<EOS>\nword\nother\n",
            NO_SUBWORDS.format("'<pad>' and '<EOS>'"),
        ),
        (b"", NO_SUBWORDS.format("'' and ''")),
        (b"'<EOS>_'\n'<pad>_'\n'a'\n", NO_SUBWORDS.format("'<EOS>_' and '<pad>_'")),
    ],
)
def test_file_that_is_not_a_vocabulary(tmp_path, content, message):
    path = tmp_path / "v.subwords"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        SubwordEncoder(path)
