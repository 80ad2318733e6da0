"""Batches that several threads decode at a time."""

import itertools
import threading
import time

import numpy as np
import pytest
import tensorflow as tf
from fake_engine import FakeEngine

import t2tlite
from t2tlite.config import DecodeHParams
from t2tlite.decoding import engine
from t2tlite.decoding.engine import Sentence, TokenHypothesis, batches_by_length
from t2tlite.machine import decoding_threads
from t2tlite.programs.runs import keras_run
from t2tlite.programs.runs.load import load

LENGTHS = [1, 3, 7, 7, 12, 25, 40, 100, 300, 2000] * 200


class Copying(FakeEngine):
    """Copies each sentence, and calls `wait` before each batch."""

    def __init__(self, threads, wait):
        super().__init__()
        self.threads = threads
        self.wait = wait

    def _decode_batch(self, sentences, limits, options):
        self.wait()
        return [[TokenHypothesis(list(each.ids), 0.0, 0.0)] for each in sentences]


def decode(copying, count, done=lambda count: None):
    """Decodes so many sentences, each a batch."""
    sentences = [Sentence([number + 2]) for number in range(count)]
    batches = [[number] for number in range(count)]
    n_best = copying.decode(sentences, DecodeHParams(), done, batches)
    return [hypothesis.ids for [hypothesis] in n_best]


def test_several_batches_are_decoded_at_a_time():
    # breaks if fewer than three batches wait for each other
    together = threading.Barrier(3, timeout=60)
    counts = []
    assert decode(Copying(3, together.wait), 9, counts.append) == [
        [number + 2] for number in range(9)
    ]
    assert counts == [1] * 9


def test_an_error_ends_what_has_not_begun():
    begun = []

    def fail():
        begun.append(True)
        time.sleep(0.01)
        raise ValueError("a batch that cannot be decoded")

    with pytest.raises(ValueError, match="cannot be decoded"):
        decode(Copying(2, fail), 1000)
    assert len(begun) < 1000


def test_pairs_are_scored_and_attended_to_by_threads():
    fake = FakeEngine()
    fake.threads = 2
    together = threading.Barrier(2, timeout=60)

    def score(sources, targets):
        together.wait()
        return [float(len(source)) for source in sources]

    def attend(sources, targets):
        together.wait()
        return np.zeros((len(sources), 9, 9))

    fake._score_batch, fake._attend_batch = score, attend
    lengths = [5] * 512 + [3] * 512
    ids = [[7] * length for length in lengths]
    options = DecodeHParams(batch_size=1024)
    assert fake.score(ids, ids, options) == lengths
    weights = dict(fake.cross_attention(ids, ids, options))
    assert [len(weights[number]) for number in range(1024)] == lengths


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_share_the_memory_and_get_several_batches(threads):
    batches = list(batches_by_length(LENGTHS, DecodeHParams(), threads))
    numbers = itertools.chain.from_iterable(batches)
    assert sorted(numbers) == list(range(len(LENGTHS)))
    assert len(batches) >= threads * engine.BATCHES_EACH
    for batch in batches:
        positions = len(batch) * 4 * (LENGTHS[batch[0]] + 50)
        assert positions * threads <= engine.BATCH_POSITIONS or len(batch) == 1


def test_threads_translate_as_one_does(tiny_run):
    sentences = []
    for animal in ("cat", "dog", "fish"):
        sentences += [f"red {animal} sees mouse", f"red {animal} sees dog today"] * 60
    alone = load(tiny_run.run)
    several = t2tlite.load(tiny_run.run, threads=3)
    assert several.engine.threads == 3
    assert several.translate(sentences) == alone.translate(sentences)


def test_threads_that_begin_together_do_not_make_tensorflow_warn(tiny_run, caplog):
    together = t2tlite.load(tiny_run.run, threads=8)
    sentences = ["red cat sees mouse"] * 800
    translations = together.translate(sentences)
    together.score(sentences, translations)
    assert "retracing" not in caplog.text


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"])
def test_the_number_of_threads_is_positive(tiny_run, threads):
    with pytest.raises(ValueError, match=r"threads must be (at least 1|of type int)"):
        t2tlite.load(tiny_run.run, threads=threads)


def test_one_batch_at_a_time_on_a_gpu(tiny_run, monkeypatch):
    monkeypatch.setattr(
        tf.config, "list_physical_devices", lambda kind: ["a GPU"] * (kind == "GPU")
    )
    monkeypatch.setattr(keras_run, "divide_cores", None)  # would fail
    assert load(tiny_run.run, threads=2).engine.threads == 1


def test_commands_decode_a_batch_on_each_core(tiny_run, monkeypatch):
    monkeypatch.setattr("t2tlite.machine.available_cores", lambda: 3)
    model = load(tiny_run.run, threads=decoding_threads())
    assert model.engine.threads == 3
    monkeypatch.setattr("t2tlite.machine.available_cores", lambda: 100)
    model = load(tiny_run.run, threads=decoding_threads())
    assert model.engine.threads == 8


@pytest.fixture
def settings(monkeypatch):
    """Where the numbers of cores for an operation are recorded; there are eight."""
    cores = []
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    monkeypatch.setattr("t2tlite.machine.available_cores", lambda: 8)
    monkeypatch.setattr(
        tf.config.threading, "set_intra_op_parallelism_threads", cores.append
    )
    return cores


def test_threads_divide_the_cores(settings, monkeypatch):
    keras_run.divide_cores(3)
    keras_run.divide_cores(9)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "5")  # the user's setting counts
    keras_run.divide_cores(2)
    assert settings == [2, 1]
