"""The words and tags of the Penn Treebank: from raw text, in trees, and which tag fits
which word.
"""

import pytest

from t2tlite.tasks.parsing import penn_words
from t2tlite.trees.linearise import T2T, TAGS
from t2tlite.trees.restore import PUNCTUATION_TAGS, fitting_tag

# Sentences of the Treebank's first files, as printed and as in their trees; the last
# four follow its rules.
SENTENCES = {
    "Pierre Vinken, 61 years old, will join the board as a nonexecutive director Nov. 29.":
        "Pierre Vinken , 61 years old , will join the board as a nonexecutive director Nov. 29 .",
    '"We have no useful information on whether users are at risk," said Mr. Talcott of Boston\'s Institute.':
        "`` We have no useful information on whether users are at risk , '' said Mr. Talcott of Boston 's Institute .",
    "They cannot pay $1,000 (at 10:30), can they?": "They can not pay $ 1,000 ( at 10:30 ) , can they ?",
    "I don't -- we'll see... Why?": "I do n't -- we 'll see ... Why ?",
    'He said: “It’s the dogs\' bone.”': "He said : `` It 's the dogs ' bone . ''",
    "the cafe\u0301's": "the café 's",
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), SENTENCES.items())
def test_words_are_those_of_the_treebank(text, words):
    assert penn_words(text) == words


def test_punctuation_tags_are_those_that_evalb_deletes(fixtures):
    lines = (fixtures / "evalb" / "COLLINS.prm").read_text().splitlines()
    deleted = {line.split()[1] for line in lines if line.startswith("DELETE_LABEL ")}
    assert deleted - {"TOP", "-NONE-"} == PUNCTUATION_TAGS


@pytest.mark.parametrize(
    ("tag", "fitting", "words"),
    [
        ("XX", ",", [","]),
        ("XX", ".", [".", "!", "?"]),
        ("XX", ":", [":", ";"]),
        ("NN", ":", ["--", "...", "—", "…"]),
        ("XX", "``", ["``", "“"]),
        ("XX", "''", ["''", "”", '"']),
        # not always punctuation
        ("XX", "XX", ["-", "'", "’", "/", "$", "%", "[", "-LRB-", "cat", "1"]),
        # another tag of punctuation is possible
        (".", ".", ["..."]),
        ("``", "``", ['"']),
        ("''", "''", ["'"]),
        (":", ":", ["-"]),
        (",", ",", ["."]),
        (":", ":", ["–", "•", "[...]"]),
        ("''", "''", ["’", "`"]),
        (":", ":", ["+"]),  # before an item of a list
        # symbols and brackets have other tags: NN, HYPH, SYM, CC, $, -LRB-
        (",", "XX", ["%", "/", "±", "=", "&", "$", "[", "]", "′", "−", "*"]),
        ("SYM", "SYM", ["--"]),
        ("HYPH", "HYPH", ["--"]),
        ("NFP", "NFP", ["--"]),
        ("NNS", "NNS", ['"']),  # 5 "
        # words are not punctuation, roots or traces
        (".", "XX", ["Mr.", "3", "é", "-LRB-", "x", "三"]),
        ("TOP", "XX", ["cat"]),
        ("-NONE-", "XX", ["cat"]),
        ("-NONE-", ",", [","]),
        ("-NONE-", "-NONE-", ["*", "*T*-1", "0"]),
    ],
)
def test_tags_that_fit_the_word(tag, fitting, words):
    for word in words:
        assert fitting_tag(word, tag) == fitting, word


@pytest.mark.parametrize("function", [TAGS.read, T2T.read])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], r"At least one word is required\. Received: none\."),
        (["a", ""], r"Words are text without white space\. Received: ''\."),
        (["a b"], r"Received: 'a b'"),
        ("a sentence", r"Received: ' '"),  # a string where a list belongs
    ],
)
def test_words_that_cannot_be_in_a_tree(function, words, message):
    with pytest.raises(ValueError, match=message):
        function("XX", words)
