"""Raw text becomes the words of the Penn Treebank."""

import pytest

from t2tlite.tasks.parsing import Parse, ParsingTask
from t2tlite.trees.tree import parse_tree
from t2tlite.trees.words import penn_words

# Sentences of the Treebank's first files, as printed and as in their trees; the last
# three follow its rules.
SENTENCES = {
    "Pierre Vinken, 61 years old, will join the board as a nonexecutive director Nov. 29.":
        "Pierre Vinken , 61 years old , will join the board as a nonexecutive director Nov. 29 .",
    '"We have no useful information on whether users are at risk," said Mr. Talcott of Boston\'s Institute.':
        "`` We have no useful information on whether users are at risk , '' said Mr. Talcott of Boston 's Institute .",
    "They cannot pay $1,000 (at 10:30), can they?": "They can not pay $ 1,000 ( at 10:30 ) , can they ?",
    "I don't -- we'll see... Why?": "I do n't -- we 'll see ... Why ?",
    'He said: “It’s the dogs\' bone.”': "He said : `` It 's the dogs ' bone . ''",
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), SENTENCES.items())
def test_words_are_those_of_the_treebank(text, words):
    assert penn_words(text) == words


@pytest.mark.parametrize(
    ("word", "warns"), [("sleeps.", True), ("U.S", False), ("...", False), (".", False)]
)
def test_last_words_that_end_in_punctuation_are_reported(word, warns):
    task, tree = ParsingTask(), parse_tree(f"(TOP (NN cat) (XX {word}))")
    summary = task.summary(
        task.tally([Parse(tree, 0.0, 0.0, type(task.tally([]))(), "")])
    )
    warning = (
        "Sentences whose last word ends in punctuation, which --raw_text would"
        " separate: 1"
    )
    assert summary.endswith(warning) == warns
