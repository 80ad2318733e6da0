"""What is made of CTranslate2's hypotheses: our scores, our length limits, our
order.
"""

from types import SimpleNamespace

import pytest

from t2tlite.config import DecodeHParams, HParams
from t2tlite.decoding.engine import Sentence
from t2tlite.programs.export import ctranslate2_engine
from t2tlite.programs.export.ctranslate2_engine import (
    CTranslate2Engine,
    check_computable,
    check_expressible,
    vocabulary_tokens,
)

TOKENS = ["<pad>", "</s>", "a", "b", "c"]


class Search:
    """Stands in for ctranslate2.Translator: gives each source the next of the results,
    and records what was asked.
    """

    def __init__(self, *results: list[tuple[str, float]]) -> None:
        self.results, self.asked = list(results), []

    def translate_batch(self, sources, **options):
        self.asked.append((sources, options["max_decoding_length"]))
        n_best = [self.results.pop(0) for _ in sources]
        return [
            SimpleNamespace(
                hypotheses=[text.split() for text, _ in row],
                scores=[score for _, score in row],
            )
            for row in n_best
        ]


VOCABULARY = SimpleNamespace(
    vocab_size=len(TOKENS), pieces=lambda ids: [TOKENS[i] for i in ids]
)


def decode(search, sources, batches=None, **options):
    """What the engine makes of the results of a search for sources of token ids."""
    engine = CTranslate2Engine(search, [VOCABULARY] * 2, "float32", None, 0, dict)
    sentences = [Sentence(ids) for ids in sources]
    return engine.decode(sentences, DecodeHParams(**options), batches=batches)


def test_hypotheses_are_ranked_by_our_length_penalty():
    """CTranslate2 divides a log-probability by length ** alpha, we by ((5 + length) /
    6) ** alpha, EOS counted.
    """
    search = Search(
        [("a b c a b c a b </s>", -3.0 / 9**0.5), ("a </s>", -2.0 / 2**0.5)]
    )
    options = {"beam_size": 2, "alpha": 0.5, "return_beams": 2}
    [[first, second]] = decode(search, [[2, 3]], **options)
    assert (first.ids, second.ids) == ([2], [2, 3, 4, 2, 3, 4, 2, 3])
    assert (first.log_prob, second.log_prob) == (
        pytest.approx(-2.0),
        pytest.approx(-3.0),
    )
    assert first.score == pytest.approx(-2.0 / (7 / 6) ** 0.5)  # -1.85
    assert second.score == pytest.approx(-3.0 / (14 / 6) ** 0.5)  # -1.96


def test_unfinished_hypotheses_count_only_where_none_is_finished():
    results = [("a b c", -0.1), ("a </s>", -5.0)], [("a b c", -0.1), ("b c a", -0.2)]
    options = {"beam_size": 2, "return_beams": 2, "extra_length": 2}
    finished, unfinished = decode(Search(*results), [[2], [3]], **options)
    assert [hypothesis.ids for hypothesis in finished] == [[2]]
    assert [hypothesis.ids for hypothesis in unfinished] == [[2, 3, 4], [3, 4, 2]]


def test_t2t_rules_leave_unfinished_and_greedy_without_penalty():
    options = {"alpha": 1.0, "t2t_rules": True, "extra_length": 1}
    search = Search([("a b c", -3.0 / 3)])
    [[unfinished]] = decode(search, [[2]], beam_size=2, **options)
    search = Search([("a b </s>", -3.0)])
    [[greedy]] = decode(search, [[2]], beam_size=1, **options)
    assert (unfinished.score, greedy.score) == (
        pytest.approx(-3.0),
        pytest.approx(-3.0),
    )


def test_what_exceeds_its_own_length_limit_is_decoded_again():
    """A batch has one limit in CTranslate2; ours is each source's length + extra_length
    + 1.
    """
    search = Search(
        [("a b a b a </s>", -1.0)],
        [("c c c c c c", -1.0)],
        [("b </s>", -1.0)],
        [("c c c c", -0.5)],
    )
    actual = decode(search, [[2, 3, 4], [4], [3]], beam_size=1, extra_length=2)
    assert search.asked == [([["a", "b", "c"], ["c"], ["b"]], 6), ([["c"]], 4)]
    assert [hypothesis[0].ids for hypothesis in actual] == [
        [2, 3, 2, 3, 2],
        [4, 4, 4, 4],
        [3],
    ]


def test_batch_too_large_is_halved_and_sentence_is_refused():
    class Small(Search):
        def translate_batch(self, sources, **options):
            if sum(map(len, sources)) > 3:
                raise RuntimeError("CUDA failed with error out of memory")
            return super().translate_batch(sources, **options)

    search = Small([("a </s>", -1.0)], [("b </s>", -1.0)])
    actual = decode(search, [[2, 2], [3, 3]], beam_size=1)
    assert [hypothesis[0].ids for hypothesis in actual] == [[2], [3]]
    with pytest.raises(
        ValueError,
        match=r"Memory is too small for 4 tokens with beam_size=1\. Split",
    ):
        decode(Small(), [[2, 2, 2, 2]], beam_size=1)


def test_another_failure_is_an_error_with_its_reason():
    class Broken(Search):
        def translate_batch(self, sources, **options):
            raise RuntimeError("cuBLAS failed")

    with pytest.raises(
        ValueError, match=r"CTranslate2 cannot decode a batch: cuBLAS failed\."
    ):
        decode(Broken(), [[2]])


def test_every_id_has_a_token_of_its_own():
    """tensor2tensor's vocabularies may hold equal lines, of which the later is used,
    and empty ones.
    """
    pieces = ["<pad>_", "<EOS>_", "a_", "", "b", "a_", "</s>"]
    encoder = SimpleNamespace(vocab_size=7, pieces=lambda ids: [pieces[i] for i in ids])
    assert vocabulary_tokens(encoder) == [
        "<pad>",
        "</s>",
        "<id 2>",
        "<id 3>",
        "b",
        "a_",
        "<id 6>",
    ]


def test_quantizations(monkeypatch):
    known = SimpleNamespace(
        get_cuda_device_count=lambda: 0,
        get_supported_compute_types=lambda device: {"int8", "int16"},
    )
    monkeypatch.setattr(ctranslate2_engine, "import_ctranslate2", lambda: known)
    check_computable("int8")
    for refused in ("float16", "int16"):
        message = rf"on this cpu must be one of int8\. Received: '{refused}'"
        with pytest.raises(ValueError, match=message):
            check_computable(refused)


def test_restricted_self_attention_is_refused_by_name():
    check_expressible(HParams())
    with pytest.raises(
        ValueError,
        match=r"self_attention_radius=0\. Received: .* and 8\.",
    ):
        check_expressible(HParams(self_attention_radius=8))
