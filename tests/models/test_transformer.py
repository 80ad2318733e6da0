"""The Transformer agrees with itself: what its masks hide, and step-by-step decoding
with the full forward pass.
"""

import functools

import keras
import numpy as np
import pytest
from tiny_transformer import (
    PRE_NORM,
    PRE_NORM_AND_EMB,
    SIZE,
    SOURCES,
    TARGETS,
    UNSHARED,
    VOCAB,
    make_transformer,
)

from t2tlite.config import HParams
from t2tlite.layers import sublayer
from t2tlite.layers.sublayer import Dropout
from t2tlite.models.transformer import Transformer

# B batch, T target length, V vocabulary, M hypotheses of a sentence, L positions

NO_DROPOUT = "layer_prepostprocess_dropout=0"
VARIANTS = {
    "paper": "",
    "pre_norm": PRE_NORM_AND_EMB,
    "narrow_keys": (
        "pos=timing_halves,attention_key_channels=6,attention_value_channels=20,num_decoder_layers=1"
    ),
    "unshared": f"pos=none,{UNSHARED},num_encoder_layers=1,{PRE_NORM}",
    "restricted": "self_attention_radius=3",
}
# Of the largest logit, which is 3 to 5. Another order of summation moves these models'
# logits by less than 1e-6 of it; a padding mask of -10 instead of -1e9 by 6e-5 or more,
# and a mask or a position that is off by one by 0.1 or more.
ROUNDING = 2e-5
make = functools.partial(make_transformer, layers=2)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            VARIANTS[name], id=name, marks=[pytest.mark.slow] * (name == "narrow_keys")
        )
        for name in VARIANTS
    ],
)
def model(request) -> Transformer:
    return make(",".join(filter(None, [NO_DROPOUT, request.param])))


def logits_of(
    model: Transformer, sources: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    return np.asarray(model(sources, targets))


def assert_same_logits(actual, expected, **options) -> None:
    np.testing.assert_allclose(
        actual, expected, rtol=0, atol=ROUNDING * np.abs(expected).max(), **options
    )


def widen(ids: np.ndarray, width: int) -> np.ndarray:
    return np.pad(ids, ((0, 0), (0, width - ids.shape[1])))


def test_a_later_target_changes_nothing_before_it(model):
    """Bit for bit: masked positions have the weight 0, and nothing else differs in what
    is computed before them.

    Hence one sentence at a time. In another row of a batch a CPU may sum in another
    order.
    """
    source, target = SOURCES[:1], TARGETS[1:2]
    before = logits_of(model, source, target)[0]  # [T, V]
    for t in range(target.shape[1]):
        changed = target.copy()
        changed[:, t:] = 1 + (target[:, t:] + 3) % (VOCAB - 1)
        after = logits_of(model, source, changed)[0]
        np.testing.assert_array_equal(after[: t + 1], before[: t + 1])
        assert (np.abs(after - before).max(axis=-1)[t + 1 :] > 0.01).all()


def test_every_source_token_matters_everywhere(model):
    source = SOURCES[2]
    sources = np.tile(source, (len(source) + 1, 1))
    np.fill_diagonal(sources[1:], 8)
    targets = np.tile(TARGETS[1], (len(sources), 1))
    before, *after = logits_of(model, sources, targets)
    for logits in after:
        assert (np.abs(logits - before).max(axis=-1) > 0.01).all()


def test_padding_and_other_sentences_change_nothing(model):
    wide = logits_of(model, widen(SOURCES, 11), widen(TARGETS, 9))
    lengths = (TARGETS != 0).sum(axis=1)
    for b in (0, 1):
        source = SOURCES[b : b + 1, : (SOURCES[b] != 0).sum()]
        alone = logits_of(model, source, TARGETS[b : b + 1, : lengths[b]])
        assert_same_logits(wide[b, : lengths[b]], alone[0])


@pytest.mark.parametrize("avx2", [False, True])
def test_step_by_step_equals_the_full_pass(model, monkeypatch, avx2):
    monkeypatch.setattr(sublayer, "cpu_ends_at_avx2", lambda: avx2)
    expected = logits_of(model, SOURCES, TARGETS)
    batch, length = TARGETS.shape
    cache = model.start_decoding(SOURCES, beam_size=1, length=length)
    for t in range(length):
        tokens = TARGETS[:, t - 1 : t] if t else np.zeros((batch, 1), np.int32)
        ancestors = np.zeros((batch, 1, length, 1), np.float32)
        ancestors[:, :, : t + 1] = 1
        logits, cache = model.decode_step(tokens, t, ancestors, cache)
        assert_same_logits(logits[:, 0], expected[:, t], err_msg=f"position {t}")


def test_a_radius_that_covers_the_sentence_changes_nothing():
    def of_radius(radius):
        model = make(f"{NO_DROPOUT},self_attention_radius={radius}")
        return logits_of(model, SOURCES, TARGETS)

    expected = of_radius(0)
    assert_same_logits(of_radius(7), expected)
    assert_same_logits(of_radius(20), expected)
    # [B, T]; position 0 is 6 away from the last one, 6
    same = np.abs(of_radius(6) - expected).max(axis=-1) < 1e-3
    assert same.tolist() == [[True] * 6 + [False]] * 3


def test_hypotheses_keep_their_past_through_any_reordering(model):
    """Hypotheses take random parents at each step: some die, some have several
    children.
    """
    batch, beam, length = len(SOURCES), 3, 6
    random = np.random.default_rng(2)
    cache = model.start_decoding(SOURCES, beam, length)
    prefixes = np.zeros((batch, beam, length), np.int32)
    ancestors = np.zeros((batch, beam, length, beam), np.float32)
    rows = np.arange(batch)[:, None]
    seen, stepwise = [], []
    for step in range(length):
        ancestors[:, range(beam), step, range(beam)] = 1
        tokens = prefixes[:, :, step - 1] if step else np.zeros((batch, beam), np.int32)
        logits, cache = model.decode_step(tokens, step, ancestors, cache)
        seen.append(prefixes.copy())
        stepwise.append(np.asarray(logits))  # [B, M, V]
        parents = random.integers(beam, size=(batch, beam))
        prefixes, ancestors = prefixes[rows, parents], ancestors[rows, parents]
        prefixes[:, :, step] = random.integers(1, VOCAB, size=(batch, beam))
    sources = np.tile(np.repeat(SOURCES, beam, axis=0), (length, 1))
    full = logits_of(model, sources, np.stack(seen).reshape(-1, length))
    full = full.reshape(length, batch, beam, length, VOCAB)
    for step in range(length):
        expected = full[step, :, :, step]
        assert_same_logits(stepwise[step], expected, err_msg=f"position {step}")


def test_shared_embeddings_need_one_vocabulary():
    with pytest.raises(ValueError, match=r"one vocabulary\. Received: sizes 13 and 11"):
        Transformer.from_hparams(HParams().override(SIZE), 13, 11)


@pytest.fixture(scope="module")
def dropping() -> Transformer:
    return make(
        "layer_prepostprocess_dropout=0.1,attention_dropout=0.2,relu_dropout=0.3"
    )


def seed_of(number: int):
    return keras.ops.array([7, number], "int32")


def test_dropout_is_where_the_paper_and_tensor2tensor_have_it(dropping, monkeypatch):
    seen = []  # (rate, seed, shape)

    def note(layer, x, seed=None):
        seen.append((layer.rate, tuple(np.asarray(seed).tolist()), tuple(x.shape)))
        return x

    monkeypatch.setattr(Dropout, "call", note)
    dropping(SOURCES, TARGETS, seed=seed_of(1))
    (batch, source), target = SOURCES.shape, TARGETS.shape[1]
    encoder, decoder = (batch, source, 16), (batch, target, 16)
    lengths = [(source, source), (target, target), (target, source)]
    expected = {
        # embeddings, sublayer outputs
        0.1: [encoder] * (1 + 2 * 2) + [decoder] * (1 + 2 * 3),
        # attention weights
        0.2: [(batch, 2, *pair) for pair in lengths] * 2,
        # inside the feed-forward layers
        0.3: [(batch, source, 24), (batch, target, 24)] * 2,
    }
    for rate, shapes in expected.items():
        of_rate = [shape for each, _, shape in seen if each == rate]
        assert sorted(of_rate) == sorted(shapes)
    # Each mask has a seed of its own, and always the same one: a resumed run must draw
    # the masks it would have drawn.
    encoder_seeds = [1000, *range(1011, 1015), *range(1021, 1025)]
    decoder_seeds = [2000, *range(2011, 2017), *range(2021, 2027)]
    assert sorted(seed for _, seed, _ in seen) == [
        (7 + number, 1) for number in encoder_seeds + decoder_seeds
    ]


def test_no_seed_no_dropout(dropping, monkeypatch):
    monkeypatch.setattr(
        keras.random, "uniform", lambda *_, **__: pytest.fail("dropout without a seed")
    )
    dropping(SOURCES, TARGETS)
