"""Event files: of resumed runs, damaged ones, and what is read of them."""

from __future__ import annotations

import re

import pytest
import tensorflow as tf
from tensorboard.compat.proto import event_pb2
from tensorboard.util.tensor_util import make_tensor_proto

from t2tlite.programs.report.events import read_history


def write_events(folder, name, metrics):
    """An event file with {tag: {step: value}}."""
    with tf.summary.create_file_writer(str(folder), filename_suffix=name).as_default():
        for tag, values in metrics.items():
            for step, value in values.items():
                tf.summary.scalar(tag, value, step=step)
    (path,) = folder.glob(f"*{name}")
    return path.rename(folder / f"events.out.tfevents.{name}")


def test_a_resumed_run_replaces_what_came_after_its_checkpoint(tmp_path):
    write_events(
        tmp_path,
        "1000",
        {"train/loss": {1: 9.0, 2: 8.0, 3: 7.0, 4: 6.0}, "dev/loss": {2: 5.0, 4: 4.0}},
    )
    write_events(tmp_path, "2000", {"train/loss": {3: 7.5, 5: 5.5}})
    history = read_history(tmp_path)
    assert history.metrics == {
        "train/loss": {1: 9.0, 2: 8.0, 3: 7.5, 5: 5.5},
        "dev/loss": {2: 5.0},
    }
    assert history.complaints == []


def test_repeated_evaluation_leaves_the_training_step_before_it(tmp_path):
    """Killed in the evaluation of step 4, the run resumes from checkpoint 4 and
    evaluates it first.
    """
    write_events(
        tmp_path,
        "1000",
        {"train/loss": {3: 7.0, 4: 6.0, 5: 5.0}, "dev/loss": {2: 5.0, 4: 4.5}},
    )
    write_events(
        tmp_path, "2000", {"dev/loss": {4: 4.0}, "train/loss": {5: 5.5, 6: 5.0}}
    )
    # the same again, at the last step
    write_events(tmp_path, "3000", {"dev/loss": {6: 3.0}})
    expected = {
        "train/loss": {3: 7.0, 4: 6.0, 5: 5.5, 6: 5.0},
        "dev/loss": {2: 5.0, 4: 4.0, 6: 3.0},
    }
    assert read_history(tmp_path).metrics == expected


def test_training_time_leaves_out_the_pause_between_two_starts(tmp_path):
    for name, times in {
        "1000": (1000.0, 1010.0, 1090.5),
        "5000": (5000.0, 5020.0),
    }.items():
        with tf.io.TFRecordWriter(
            str(tmp_path / f"events.out.tfevents.{name}")
        ) as writer:
            for step, time in enumerate(times):
                event = event_pb2.Event(wall_time=time, step=step)
                value = event.summary.value.add(
                    tag="train/loss", tensor=make_tensor_proto(2.0)
                )
                value.metadata.plugin_data.plugin_name = "scalars"
                writer.write(event.SerializeToString())
    assert read_history(tmp_path).seconds == 90.5 + 20


def test_only_scalars_are_read(tmp_path):
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        tf.summary.scalar("dev/bleu", 25.0, step=10)
        tf.summary.text("samples", ["source", "output"], step=10)
    history = read_history(tmp_path)
    assert history.metrics == {"dev/bleu": {10: 25.0}}
    assert history.complaints == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": -1}, "an event of step -1 at 1000.0 s"),
        ({"wall_time": float("nan")}, "an event of step 1 at nan s"),
        ({"wall_time": 1e300}, "an event of step 1 at 1e+300 s"),
        (b"\xff", "Error parsing message"),
    ],
)
def test_events_with_the_right_checksum_that_make_no_sense(tmp_path, change, message):
    with tf.io.TFRecordWriter(str(tmp_path / "events.out.tfevents.1")) as writer:
        event = event_pb2.Event(
            **{
                "wall_time": 1000.0,
                "step": 1,
                **(change if isinstance(change, dict) else {}),
            }
        )
        writer.write(change if isinstance(change, bytes) else event.SerializeToString())
    history = read_history(tmp_path)
    assert (history.metrics, history.seconds) == ({}, 0.0)
    (complaint,) = history.complaints
    assert complaint.startswith(f"events.out.tfevents.1 cannot be read: {message}")


@pytest.mark.parametrize("harm", ["cut", "changed", "no events"])
def test_damaged_events_count_up_to_the_damage(tmp_path, harm):
    path = write_events(
        tmp_path, "1000", {"train/loss": {step: float(step) for step in range(1, 101)}}
    )
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(
        {
            "cut": content[:middle],
            "changed": content[:middle] + b"\0\0\0\0" + content[middle + 4 :],
            "no events": b"hello, world",
        }[harm]
    )
    history = read_history(tmp_path)
    losses = history.metrics.get("train/loss", {})
    assert losses == {step: float(step) for step in range(1, len(losses) + 1)}
    assert (40 < len(losses) < 60) == (harm != "no events")
    (complaint,) = history.complaints
    assert re.match(
        r"events\.out\.tfevents\.1000 is damaged, cut short or still being written: the"
        r" last ",
        complaint,
    )
