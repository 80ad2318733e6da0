"""The estimate of memory before training, and what is reported when there is too
little.
"""

import re

import pytest
import tensorflow as tf
from tiny_run import checkpoint_names, small
from tiny_training import HPARAMS

from t2tlite.training import loop, memory
from t2tlite.training.cost import memory_parts
from t2tlite.training.memory import MemoryNeed, device_memory

BIG = HPARAMS.override("batch_size=480")
SHAPES = [(120, 8, 8), (30, 16, 16), (60, 12, 4)]  # of a global batch for two replicas


def need(available=None, shapes=SHAPES, **changes):
    return MemoryNeed(
        BIG.override(",".join(f"{k}={v}" for k, v in changes.items())),
        (50, 50),
        shapes,
        2,
        available,
    )


def test_the_largest_batch_counts():
    # as many tokens as 15 pairs of 16 + 16, and more logits than 30 of 12 + 4
    assert need().shape == (60, 8, 8)
    assert need(accumulate_steps=2).shape == (30, 8, 8)
    wide = [(120, 8, 8), (60, 16, 16)]
    assert need(shapes=wide).shape == (30, 16, 16)
    parts = memory_parts(BIG, (50, 50), (16, 16), pairs=30)
    assert need(shapes=wide).bytes == sum(parts.values())
    assert need(shapes=[(5, 8, 8)]).shape == (3, 8, 8)  # rounded up


def test_what_is_available():
    size = need().bytes
    assert need(None).fits
    assert need(int(size) + 1).fits
    assert not need(int(size)).fits
    pattern = (
        r"Memory of a replica, estimated: \d MB in the largest batch, 60 pairs of 8 \+"
        r" 8 tokens \(.+ \d MB\)\."
    )
    assert re.fullmatch(pattern, str(need()))
    assert str(need(3_460_000_000)).endswith("; 3.5 GB are available.")


def test_advice_is_the_least_accumulation_that_fits():
    half, third = (need(accumulate_steps=n, batch_size=480 // n).bytes for n in (2, 3))
    assert half > third
    assert (
        need(half + 1).advice()
        == "Set batch_size=240 and accumulate_steps=2: the batches stay the same."
    )
    assert (
        need(half).advice()
        == "Set batch_size=160 and accumulate_steps=3: the batches stay the same."
    )
    # less is advised nevertheless: it is asked for after an error
    for available in (None, 10**12):
        assert (
            need(available)
            .advice()
            .startswith("Set batch_size=240 and accumulate_steps=2:")
        )


def test_advice_leaves_accumulation_to_the_global_batch():
    assert (
        need(global_batch_tokens=480).advice()
        == "Set batch_size=240: the batches stay the same."
    )


def test_advice_where_the_model_alone_is_too_large():
    expected = (
        "Lower batch_size and max_length, or hidden_size, filter_size and the number of"
        " layers."
    )
    assert need(1000).advice() == expected


def test_memory_of_a_cpu(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1234)
    assert device_memory(tf.distribute.MirroredStrategy(["CPU:0"])) == 1234


def test_a_run_says_what_it_needs_before_it_trains(tiny_run):
    assert re.search(
        r"Memory of a replica, estimated: \d+ MB in the largest batch, .* are"
        r" available\.\n",
        tiny_run.stderr,
    )


@pytest.mark.parametrize(
    "error",
    [tf.errors.ResourceExhaustedError(None, None, "OOM\nmore"), MemoryError("OOM.")],
)
def test_too_little_memory(tiny_run, tmp_path, monkeypatch, capsys, error):
    def too_large():
        raise error

    monkeypatch.setattr(loop, "make_trial", lambda *_: too_large)
    monkeypatch.setattr(
        "t2tlite.programs.runs.train.device_memory", lambda strategy: 1000
    )
    assert small(tiny_run, tmp_path / "run", "--train_steps=1") == 1
    warned, failed = capsys.readouterr().err.split("t2tlite: ")
    assert (
        "; 0 MB are available. This will not fit. Lower batch_size and max_length, or"
        " hidden_size" in warned
    )
    assert failed.startswith(
        "Training needs more memory than there is: OOM. Memory of a replica,"
        " estimated: "
    )
    assert "Traceback" not in failed
    assert not list((tmp_path / "run").glob("model.ckpt-*"))


def test_too_little_memory_in_an_evaluation(
    tiny_run, tmp_path, fake_dev_losses, capsys
):
    """The checkpoint is saved, so that the run resumes there with less."""
    fake_dev_losses.append(tf.errors.ResourceExhaustedError(None, None, "OOM"))
    assert small(tiny_run, tmp_path / "run", "--train_steps=1") == 1
    failed = capsys.readouterr().err.split("t2tlite: ")[1]
    assert failed.startswith("Training needs more memory than there is: OOM. Memory")
    assert checkpoint_names(tmp_path / "run") == ["model.ckpt-1"]
