"""Signals that ask a run to stop."""

import ctypes
import signal
import threading

import pytest

from t2tlite.training.signals import (
    STOPPING,
    Interrupted,
    Signals,
    keeping_handlers,
)

MESSAGE = (
    r"^Stopped by SIG[A-Z]+ at step 1,200; a checkpoint is saved\. The same command"
    r" continues\.$"
)


@pytest.mark.parametrize("number", STOPPING)
def test_the_first_is_recorded_and_the_next_is_handled_as_usual(number, capsys):
    usual = []
    before = signal.signal(number, lambda *args: usual.append(args[0]))
    try:
        with Signals() as signals:
            signals.check(1200)
            signal.raise_signal(number)
            assert (signals.caught, usual) == (number, [])
            with pytest.raises(Interrupted, match=MESSAGE) as raised:
                signals.check(1200)
            assert raised.value.signal_number == number
            with (
                pytest.raises(Interrupted, match=MESSAGE),
                signals.ending_at_once(1200),
            ):
                pytest.fail("the block has begun after a signal")
            signal.raise_signal(number)
            assert usual == [number]
        signal.raise_signal(number)
        assert usual == [number, number]
    finally:
        signal.signal(number, before)
    message = f"{number.name}: stopping, and saving what is trained; once more ends"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("step", "message"),
    [(0, r"before the first step\."), (1200, "at step 1,200")],
)
def test_an_evaluation_ends_at_once(step, message):
    with (
        Signals() as signals,
        pytest.raises(Interrupted, match=f"^Stopped by SIGTERM {message}"),
        signals.ending_at_once(step),
    ):
        signal.raise_signal(signal.SIGTERM)


def test_an_ignored_signal_stays_ignored():
    """As SIGHUP is under nohup."""
    ignored = STOPPING[-1]
    before = signal.signal(ignored, signal.SIG_IGN)
    try:
        with Signals() as signals:
            signal.raise_signal(ignored)
            assert signals.caught is None
        assert signal.getsignal(ignored) == signal.SIG_IGN
    finally:
        signal.signal(ignored, before)


def test_a_handler_that_tensorflow_replaces_is_set_again():
    """Python does not see what a library in C does to signals."""
    came = []
    before = signal.signal(signal.SIGTERM, lambda *args: came.append(args[0]))
    ignore = ctypes.c_void_p(int(signal.SIG_IGN))
    try:
        with keeping_handlers():
            ctypes.pythonapi.PyOS_setsig(signal.SIGTERM, ignore)
            signal.raise_signal(signal.SIGTERM)
            assert came == []
        signal.raise_signal(signal.SIGTERM)
        assert came == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_training_may_be_in_another_thread():
    """Python lets only the main thread set handlers."""
    stopped = []

    def work():
        with keeping_handlers(), Signals() as signals:
            stopped.append(signals.came)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert stopped == [False]
