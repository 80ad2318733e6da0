"""Options of decoding that are off cost nothing: the graph of the search is that of a
search without their code.
"""

import functools
import re
from collections import Counter

import pytest
import tensorflow as tf

from t2tlite.decoding import tensorflow_engine
from t2tlite.decoding.beam_search import beam_search

SPECS = (
    tf.TensorSpec((None, None), tf.int32),
    tf.TensorSpec((None,), tf.int32),
    tf.TensorSpec((), tf.int32),
)


@pytest.fixture(scope="module")
def plain(model) -> Counter[str]:
    """The operations of a search without any option."""
    return operations(graph(search_of(model, {})))


def graph(search, more=None) -> str:
    """The traced graph of search(inputs, max_lengths, length, more), with all functions
    that it calls, as text.
    """
    traced = tf.function(search, autograph=False).get_concrete_function(
        *SPECS, more or {}
    )
    graph_def = traced.graph.as_graph_def(add_shapes=True)
    texts = ["\n".join(map(str, graph_def.node)), *map(str, graph_def.library.function)]
    names = r"(while_(?:body|cond)_|CustomGradient-)\d+"  # numbers make names unique
    unnumbered = [re.sub(names, r"\1", text) for text in texts]
    return "\n".join(sorted(unnumbered))  # the functions have no order


def operations(text: str) -> Counter[str]:
    return Counter(re.findall(r'^ *op: "(\w+)"', text, re.MULTILINE))


def search_of(model, changes):
    options = model.options(**changes)

    def search(inputs, max_lengths, length, more):
        return tensorflow_engine.search(
            model.engine.model,
            options,
            inputs,
            max_lengths,
            length,
            options.alpha,
            options.return_beams,
            more,
        )

    return search


@pytest.mark.parametrize("beam_size", [1, 4])
def test_options_that_are_off_add_nothing_to_the_search(model, beam_size):
    """The reference is the beam search with the arguments that it has needed since
    before there were such options.
    """

    def without(inputs, max_lengths, length, more):
        return beam_search(
            model.engine.model.decode_step,
            functools.partial(model.engine.model.start_decoding, inputs, beam_size),
            max_lengths=max_lengths,
            beam_size=beam_size,
            length=length,
            alpha=0.6,
            resize_cache=model.engine.model.resize_cache,
        )

    off = {"sampling_method": "argmax", "min_length": 0, "no_repeat_ngram_size": 0}
    actual = graph(search_of(model, {"beam_size": beam_size, "alpha": 0.6, **off}))
    expected = graph(without)
    assert operations(actual) == operations(expected)
    assert actual == expected


ONE = {"prefixes": tf.TensorSpec((None, None), tf.int32)}
RANDOM = {"uniforms": tf.TensorSpec((None, None, None), tf.float32)}


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"min_length": 3}, {}),
        ({"no_repeat_ngram_size": 2}, {}),
        ({}, ONE),
        ({"sampling_method": "random"}, RANDOM),
    ],
    ids=str,
)
def test_options_that_are_on_are_in_the_graph(model, plain, changes, more):
    """So the tests above would notice them."""
    assert operations(graph(search_of(model, changes), more)) - plain, (
        "no operation is there more often"
    )
