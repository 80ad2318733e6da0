"""One training step against tensor2tensor's gradients, and an evaluation against
NumPy.
"""

import dataclasses
import math
from types import SimpleNamespace
from unittest import mock

import keras
import numpy as np
import pytest
import tensor2tensor_checkpoint
import tensorflow as tf
from numpy_softmax import log_softmax
from tiny_run import small
from tiny_training import GLOBAL_TOKENS, HPARAMS, make_model, part_of, random_store

from t2tlite.config import HParams
from t2tlite.data.batch_plan import evaluation_plan, training_plan
from t2tlite.data.input_pipeline import Part, load_part
from t2tlite.data.token_store import TokenStore
from t2tlite.training import loop
from t2tlite.training.evaluation import make_evaluation, report_left_out
from t2tlite.training.learning_rates import make_optimizer
from t2tlite.training.train_step import StepResult, make_train_step, make_trial

# A micro-batches, R rows, S source length, T target length


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> TokenStore:
    return random_store(tmp_path_factory.mktemp("data"))


def descent_step(model, part: Part, rate: float = 1.0) -> StepResult:
    """A step of descent, which at rate 1 takes the gradient itself off each weight."""
    optimizer = keras.optimizers.SGD(rate)
    step = make_train_step(tf.distribute.get_strategy(), model, optimizer)
    return step(iter([Part(*map(tf.constant, part))]))


@pytest.mark.parametrize(
    "name",
    [
        "postnorm_notse",
        pytest.param("prenorm", marks=pytest.mark.slow),
        "prenorm_unshared",
    ],
)
def test_loss_and_gradients_equal_tensor2tensors(t2t, eagerly, name):
    data, model = tensor2tensor_checkpoint.logits_fixture(t2t, name)
    assert model.hparams.label_smoothing == 0.1
    expected = tensor2tensor_checkpoint.load(
        model.hparams, tensor2tensor_checkpoint.variables_of(data, "grad")
    )
    before = model.get_weights()
    result = descent_step(model, part_of(data["inputs"], data["targets"]))
    loss = data["loss_numerator_ls0_1"] / data["loss_denominator"]
    np.testing.assert_allclose(result.loss, loss, rtol=1e-5)
    ids = np.concatenate([data["inputs"].ravel(), data["targets"].ravel()])
    assert result.tokens == np.count_nonzero(ids)
    gradients = np.concatenate([weight.ravel() for weight in expected.get_weights()])
    norm = np.linalg.norm(gradients.astype(np.float64))
    assert float(result.gradient_norm) == pytest.approx(norm, rel=1e-4)
    for old, new, gradient in zip(
        before, model.trainable_variables, expected.trainable_variables, strict=True
    ):
        np.testing.assert_allclose(old - new, gradient, atol=1e-5, err_msg=new.path)


def descent(
    hparams: HParams,
) -> tuple[list[np.ndarray], list[np.ndarray], list[str], float]:
    """Weights before a step, what descent at rate 1 takes off them, their paths, and
    the reported gradient norm.
    """
    model = make_model(hparams)
    before = model.get_weights()
    inputs = np.array([[3, 4, 5, 1], [6, 1, 0, 0]], np.int32)
    targets = np.array([[7, 8, 1], [9, 1, 0]], np.int32)
    norm = float(descent_step(model, part_of(inputs, targets)).gradient_norm)
    taken = [old - new for old, new in zip(before, model.get_weights(), strict=True)]
    return before, taken, [weight.path for weight in model.trainable_variables], norm


def test_weight_decay_is_tensor2tensors_l2_loss(eagerly):
    """Its gradient is decay x weight, but nothing for the biases of dense layers and
    normalisation.
    """
    before, plain, paths, _ = descent(HPARAMS)
    _, decayed, _, _ = descent(dataclasses.replace(HPARAMS, weight_decay=0.5))
    biases = ("inner/bias", "outer/bias", "norm/beta")
    count = 0
    for weight, ours, theirs, path in zip(before, decayed, plain, paths, strict=True):
        is_bias = path.endswith(biases)
        count += is_bias
        expected = theirs if is_bias else theirs + 0.5 * weight
        np.testing.assert_allclose(ours, expected, atol=1e-5)
    # two feed-forward layers; norms after 2 sublayers and 3
    assert count == 2 * 2 + 2 + 3


@pytest.mark.parametrize("share", [0.25, 4.0])
def test_clipped_gradients_have_the_global_norm(eagerly, share):
    """As tf.clip_by_global_norm: g * clip / max(clip, norm); the reported norm is that
    before.
    """
    _, plain, _, norm = descent(HPARAMS)
    _, clipped, _, reported = descent(
        dataclasses.replace(HPARAMS, clip_grad_norm=share * norm)
    )
    assert reported == pytest.approx(norm, rel=1e-5)
    for ours, theirs in zip(clipped, plain, strict=True):
        np.testing.assert_allclose(ours, theirs * min(share, 1.0), atol=1e-6)


def train(
    hparams: HParams, store: TokenStore, steps: int
) -> tuple[list[float], list[np.ndarray]]:
    """Losses and final weights of a few steps."""
    model = make_model(hparams)
    step = make_train_step(tf.distribute.get_strategy(), model, make_optimizer(model))
    plan = training_plan(
        hparams, store.source_lengths, store.target_lengths, replicas=1, seed=3
    )
    parts = [
        load_part(store, plan, k, 0, 1, hparams.accumulate_steps) for k in range(steps)
    ]
    assert all(len(part.inputs) == hparams.accumulate_steps for part in parts)
    batches = iter(parts)
    return [float(step(batches).loss) for _ in range(steps)], model.get_weights()


@pytest.mark.parametrize("micro_batches", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_accumulated_gradients_equal_one_big_batch(store, eagerly, micro_batches):
    losses, weights = train(HPARAMS, store, steps=3)
    hparams = dataclasses.replace(
        HPARAMS,
        accumulate_steps=micro_batches,
        batch_size=GLOBAL_TOKENS // micro_batches,
    )
    some_losses, some_weights = train(hparams, store, steps=3)
    np.testing.assert_allclose(some_losses, losses, rtol=1e-5)
    for ours, theirs in zip(some_weights, weights, strict=True):
        # weights move by 5e-3; Adam makes 2e-5 of rounding where gradients are small
        np.testing.assert_allclose(ours, theirs, atol=5e-5)


def test_trial_computes_every_gradient():
    """TensorFlow leaves out what no result needs."""
    strategy = tf.distribute.get_strategy()
    for broken in range(2):

        def gradients(part, broken=broken):
            values = [part.tokens, part.tokens]
            values[broken] = tf.debugging.check_numerics(
                values[broken] * np.nan, "this was computed"
            )
            return part.tokens, values

        with pytest.raises(tf.errors.InvalidArgumentError, match="this was computed"):
            make_trial(strategy, gradients, (3, 8, 10), 1)()


def test_too_little_memory_ends_before_the_first_step(
    tiny_run, tmp_path, monkeypatch, capsys
):
    too_large = tf.errors.ResourceExhaustedError(None, None, "OOM\nmore")
    trial = mock.Mock(side_effect=too_large)
    monkeypatch.setattr(loop, "make_trial", lambda *_: trial)
    assert small(tiny_run, tmp_path / "run", "--train_steps=1") == 1
    stderr = capsys.readouterr().err
    assert "Memory is too small (OOM). Lower batch_size" in stderr
    assert not list((tmp_path / "run").glob("model.ckpt-*"))


def test_trials_of_many_trainings_give_no_warning(caplog):
    strategy = tf.distribute.get_strategy()
    for _ in range(8):
        trial = make_trial(
            strategy, lambda part: (part.tokens, [part.tokens]), (3, 8, 10), 1
        )
        trial()
    assert "retracing" not in caplog.text


def test_rows_and_columns_of_padding_change_nothing(eagerly):
    # a row of padding is all zero, then
    hparams = dataclasses.replace(HPARAMS, pos="none")
    inputs = np.array([[5, 9, 3, 1], [8, 1, 0, 0]], np.int32)
    targets = np.array([[6, 2, 1], [3, 8, 1]], np.int32)
    model = make_model(hparams)
    start = model.get_weights()
    plain = descent_step(model, part_of(inputs, targets))
    weights = model.get_weights()
    model.set_weights(start)
    inputs = np.pad(inputs, ((0, 3), (0, 2)))
    targets = np.pad(targets, ((0, 3), (0, 4)))
    padded = descent_step(model, part_of(inputs, targets))
    assert float(padded.loss) == pytest.approx(float(plain.loss), rel=1e-5)
    assert plain.tokens == padded.tokens == 12
    for ours, theirs in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_dropout_follows_the_seeds_of_the_part(eagerly):
    hparams = dataclasses.replace(HPARAMS, layer_prepostprocess_dropout=0.3)
    inputs = np.array([[5, 9, 3, 1]], np.int32)
    targets = np.array([[6, 2, 1]], np.int32)
    model = make_model(hparams)
    losses = []
    for n in (1, 1, 2):
        part = part_of(inputs, targets, seed=(4, n))
        losses.append(float(descent_step(model, part, rate=0.0).loss))
    assert losses[0] == losses[1] != losses[2]


# Evaluation.


@pytest.fixture(scope="module")
def evaluated(store):
    """A model far from uniform, its evaluation, and (log-probability, hit) of each
    target token of each pair.
    """
    model = make_model(HPARAMS)
    random = np.random.default_rng(6)
    for variable in model.trainable_variables:
        variable.assign_add(0.3 * random.normal(size=variable.shape).astype(np.float32))
    every = np.arange(len(store))
    targets = store.targets(every, 16)
    logits = np.asarray(model(store.sources(every, 16), targets))  # [N, T, V]
    log_probs = log_softmax(logits)
    tokens = []
    for row, length in enumerate(store.target_lengths):
        at = np.arange(length)
        true = targets[row, :length]
        tokens.append(
            (log_probs[row, at, true], logits[row, :length].argmax(axis=-1) == true)
        )
    return model, tokens


def test_evaluation_equals_numpys(store, evaluated, eagerly):
    model, tokens = evaluated
    log_probs, hits = (np.concatenate(values) for values in zip(*tokens, strict=True))
    evaluation = make_evaluation(tf.distribute.get_strategy(), model, store)()
    assert evaluation.tokens == len(log_probs) == store.target_lengths.sum()
    assert evaluation.loss == pytest.approx(-log_probs.mean(), rel=1e-5)
    assert evaluation.accuracy == pytest.approx(hits.mean(), rel=1e-6)
    assert 0 < hits.sum() < len(hits)
    assert evaluation.perplexity == pytest.approx(math.exp(-log_probs.mean()), rel=1e-4)


def test_evaluation_of_some_batches(store, evaluated, eagerly):
    evaluation = make_evaluation(
        tf.distribute.get_strategy(), evaluated[0], store, max_batches=2
    )()
    assert 0 < evaluation.tokens < store.target_lengths.sum()


@pytest.mark.parametrize("limit", ["learned positions", "attention"])
def test_pairs_that_are_too_long_are_left_out(store, evaluated, eagerly, capsys, limit):
    """As many tokens as there are learned positions, or MAX_SENTENCE_TOKENS."""
    model, tokens = evaluated
    hparams = dataclasses.replace(HPARAMS, max_length=8)
    with pytest.MonkeyPatch.context() as patch:
        if limit == "learned positions":
            hparams = dataclasses.replace(hparams, pos="emb")
        else:
            patch.setattr("t2tlite.config.MAX_SENTENCE_TOKENS", 7)
        patch.setattr(model, "hparams", hparams)
        evaluation = make_evaluation(tf.distribute.get_strategy(), model, store)()
        report_left_out(hparams, store, "dev2 (talks.en)")
    longer = np.maximum(store.source_lengths, store.target_lengths)
    (too_long,) = np.nonzero(longer > 8)
    assert 0 < len(too_long) < len(store)
    kept = [tokens[i][0] for i in range(len(store)) if i not in too_long]
    assert evaluation.tokens == sum(map(len, kept))
    assert evaluation.loss == pytest.approx(-np.concatenate(kept).mean(), rel=1e-5)
    report_left_out(HPARAMS, store, "dev")  # nothing
    assert capsys.readouterr().err == (
        f"Longer than 7 tokens and left out of each evaluation: {len(too_long)} pairs"
        " of dev2 (talks.en).\n"
    )


def test_a_dev_set_of_long_pairs_alone_is_refused(store):
    hparams = dataclasses.replace(HPARAMS, pos="emb", max_length=1)
    with pytest.raises(ValueError, match=r"pairs of at most 1 tokens a side, "):
        make_evaluation(
            tf.distribute.get_strategy(), SimpleNamespace(hparams=hparams), store
        )


def test_batches_of_long_dev_pairs_are_bounded_in_squares():
    """Training's largest batch has 4096 / 256 = 16 pairs of 256 tokens, 16 x 256 x 256
    weights of attention: as many as 0.25 pairs of 2,048 tokens.
    """
    hparams = HParams(batch_size=4096, max_length=256)
    lengths = np.repeat([20, 256, 512, 2048], 64)
    plan = evaluation_plan(hparams, lengths, lengths, replicas=1)
    batches = [plan.batch(k) for k in range(plan.num_batches)]
    assert {batch.rows for batch in batches if batch.target_width == 2048} == {1}
    rows = [batch.rows for batch in batches if batch.target_width == 512]
    assert 1 < max(rows) <= 4
    rows = [batch.rows for batch in batches if batch.target_width == 256]
    assert 14 <= max(rows) <= 16
    for batch in batches:
        assert batch.rows == 1 or batch.rows * batch.target_width**2 <= 16 * 256**2
