"""/translate with a parser that tensor2tensor trained: trees of the labels that it
decoded, over the words sent.
"""

import dataclasses
import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from imported_model import lines
from running import Changed, running, served

from t2tlite.tasks.task import Output
from t2tlite.trees.tree import parse_tree


@pytest.fixture(scope="module")
def parser(parsing_translator):
    model = served(parsing_translator, "en", "tree")
    return dataclasses.replace(
        model, options=dataclasses.replace(model.options, beam_size=1)
    )


@pytest.fixture(scope="module")
def server(parser):
    with running([parser]) as running_server:
        yield running_server


def labels(tree):
    """What tensor2tensor decodes: `NP DT NN /NP`, with the label alone where a word is
    below.
    """
    if isinstance(tree.children[0], str):
        return [tree.label]
    below = map(labels, tree.children)
    return [tree.label, *itertools.chain(*below), f"/{tree.label}"]


def parse(server, q):
    """The sentence and the hypothesis of each segment, in each text of a list."""
    body = {"q": q, "target": "tree", "segments": True}
    response = server.post("/translate", body)
    assert response.status_code == 200, response.text
    segments = response.json()["segments"]
    if isinstance(q, list):
        segments = [segment for (segment,) in segments]
    parses = []
    for segment in segments:
        (hypothesis,) = segment["hypotheses"]
        parses.append((segment["source"], hypothesis))
    return parses


def test_trees_are_of_the_labels_that_tensor2tensor_decoded(server, parser, fixtures):
    trained = fixtures / "tensor2tensor" / "trained_wsj"
    sentences = lines(trained / "in.txt")
    decoded = np.load(trained / "model.npz")["decode/greedy/outputs"].reshape(
        len(sentences), -1
    )
    whole = 0  # sequences with as many tags as there are words
    for sentence, ids, (source, response) in zip(
        sentences, decoded, parse(server, sentences), strict=True
    ):
        assert source == sentence
        tree = parse_tree(response["text"])
        assert tree.words() == sentence.split()
        assert tree.label == "TOP"
        if not response["repairs"]:
            whole += 1
            encoder = parser.translator.target_encoder
            [below] = tree.children
            assert labels(below) == encoder.decode(ids.tolist()).split()
    assert whole


def test_brackets_and_drawing_are_the_same(server):
    ((_, response),) = parse(server, "A president saw A small dog .")
    assert response["text"] == (
        "(TOP (S (NP (DT A) (JJ president) (NN saw)) (VP (NP (DT A) (JJ small) (NN"
        " dog))) (. .)))"
    )
    drawn = [
        element.text
        for element in ElementTree.fromstring(response["svg"]).iter()
        if element.tag.endswith("text")
    ]
    assert sorted(drawn) == sorted(re.findall(r"[^\s()]+", response["text"]))


def test_a_text_is_split_and_a_blank_sentence_has_no_tree(server):
    text = "A president saw A small dog .\nThe old committee saw A committee ."
    sentences = text.split("\n")
    assert [source for source, _ in parse(server, text)] == sentences
    trees = [hypothesis["text"] for _, hypothesis in parse(server, sentences)]
    answer = server.post("/translate", {"q": text, "source": "en"}).json()
    assert answer == {"translatedText": "\n".join(trees)}
    source, blank = parse(server, [" ", "dogs"])[0]
    assert source == ""
    assert blank == {"text": "", "score": 0.0, "log_prob": 0.0}
    for fields, message in (
        ({"alternatives": 1}, "alternatives must be at most 0"),
        ({"glossary": {"dog": "cat"}}, "A glossary is for translations."),
    ):
        refused = server.post("/translate", {"q": text, **fields})
        assert refused.status_code == 400
        assert message in refused.json()["error"]


@pytest.mark.parametrize("depth", [200, 3000])
def test_tree_of_any_depth_is_answered(parsing_translator, depth):
    brackets = "(A " * (depth - 1) + "(NN dog)" + ")" * (depth - 1)
    parse_of = Output(brackets, -0.25, -1.5, tree=parse_tree(brackets))
    deep = Changed(parsing_translator, parse=lambda *_, **__: [parse_of])
    with running([served(deep, "en", "tree")]) as server:
        ((_, response),) = parse(server, ["dog"])
    assert response["text"] == brackets
    assert response["svg"].count("<text") == depth + 1


def test_a_parser_does_not_translate_and_is_no_language(server):
    response = server.post("/translate", {"q": "a", "target": "de"})
    assert response.status_code == 400
    assert "one of the pairs served: en-tree." in response.json()["error"]
    assert server.get("/languages").json() == []
