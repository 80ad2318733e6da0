"""Where sentences to parse end; the expected sentences are those of a reader."""

import time

import pytest

from t2tlite.programs.documents.sentences import parsed_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["He said : `` Stop ! ''", "She left ."],
        ["He said : `` I left . ''", "`` She stayed . ''"],
        ['He said : " Stop ! "', "She left ."],
        ["He left .", '" She stayed . "', "They came ."],
        ["He said : “ Stop ! ”", "She left ."],
        ["Er sagte : „ Halt ! “", "Sie ging ."],
        ["Er sagte : » Halt ! «", "Sie ging ."],
        ["Il dit : « Halte ! »", "« Non . »"],
        ["He said : ` Stop ! '", "She left ."],
        ["He said : `` She cried : ` No ! ' ''", "They left ."],
        ["He left ( at last . )", "She stayed ."],
        ["He left -LRB- at last . -RRB-", "She stayed ."],
        ["He left [ at last . ]", "She stayed ."],
        ["He said -LRB- `` Stop ! '' -RRB-", "She left ."],
        ["Stop ! ! !", "She left ."],
        ["`` Stop ! '' he said .", "She left ."],
        ["He said : `` Stop ! ''"],
        ["They left .", "The dogs ' tails moved ."],
    ],
)
def test_what_closes_a_sentence_belongs_to_it(sentences):
    assert parsed_sentences(" ".join(sentences)) == sentences


def test_white_space_of_any_kind_separates_words():
    text = "10\u00a0000 men left .\u3000She\u200b stayed ."
    assert parsed_sentences(text) == ["10 000 men left .", "She\u200b stayed ."]


def test_every_word_is_in_a_sentence():
    """Also those without a letter, on whatever side of a sentence."""
    texts = (
        "-- He left . -- She stayed . * * *",
        "# 5 ! '' ? -- \n * \n '' He left . '' \n\n -- She stayed .",
        "! ! !",
        "'' . '' . ''",
    )
    for text in texts:
        assert " ".join(parsed_sentences(text)).split() == text.split()


def test_lines_are_apart():
    assert parsed_sentences("He said : `` Stop !\n'' She left .") == [
        "He said : `` Stop !",
        "'' She left .",
    ]
    assert parsed_sentences(" \n ") == []
    assert parsed_sentences("'' She left .") == ["'' She left ."]


@pytest.mark.parametrize("piece", ["' ! ", "'' ", '" . ', "A ! ", "` . ' "])
def test_splitting_takes_time_in_proportion(piece):
    started = time.process_time()
    parsed_sentences((piece * 20_000)[:20_000])
    assert time.process_time() - started < 3
