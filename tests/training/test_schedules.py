"""The learning rate against formula (3), and against what tensor2tensor used."""

import keras
import numpy as np
import pytest

from t2tlite.schedules import SCHEDULES, T2T_SCHEDULE
from t2tlite.training.learning_rates import LearningRate


def formula_3(step: int, hidden_size: int, warmup: int) -> float:
    """Section 5.3; the first update is step 1."""
    return hidden_size**-0.5 * min(step**-0.5, step * warmup**-1.5)


@pytest.mark.parametrize("warmup", [1, 400, 4000])
@pytest.mark.parametrize("hidden_size", [128, 512, 1024])
def test_formula_3(hidden_size, warmup):
    schedule = LearningRate("noam", hidden_size, warmup)
    for step in (1, 2, max(warmup - 1, 1), warmup, warmup + 1, 10 * warmup, 300_000):
        rate = schedule(step - 1)  # step - 1 updates are done
        np.testing.assert_allclose(
            rate, formula_3(step, hidden_size, warmup), rtol=1e-6
        )


# The schedule whose first update is this step.
BY_FIRST_STEP = {0: T2T_SCHEDULE, 1: "noam"}


# tensor2tensor's first sets count the first update as step 1, as the paper does. The
# later ones count it as step 0, so that it changes nothing.
@pytest.mark.parametrize("first_step", [0, 1])
def test_the_first_updates_use_the_first_steps(first_step):
    """Step 0, tensor2tensor's, changes nothing."""
    weight = keras.Variable([1.0])
    name = BY_FIRST_STEP[first_step]
    sgd = keras.optimizers.SGD(LearningRate(name, 64, 10, 5.0))
    expected = 0.0
    for step in (first_step, first_step + 1):
        sgd.apply([np.ones(1, np.float32)], [weight])
        expected += 5.0 * formula_3(step, 64, 10) if step else 0.0
        np.testing.assert_allclose(1.0 - weight.numpy()[0], expected, rtol=1e-4)


@pytest.mark.parametrize("name", SCHEDULES)
def test_saved_and_loaded(name):
    schedule = LearningRate(name, 1024, 123, 0.5)
    copy = keras.optimizers.schedules.deserialize(
        keras.optimizers.schedules.serialize(schedule)
    )
    assert isinstance(copy, LearningRate)
    assert copy.get_config() == {
        "schedule": name,
        "hidden_size": 1024,
        "warmup_steps": 123,
        "constant": 0.5,
    }
    assert float(copy(77)) == float(schedule(77))


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("step", [1, 50, 100, 101, 102, 900])
def test_a_warm_start_rises_only_to_the_last_rate(name, step):
    """A new run's highest rate, that of its update `warmup`, is the old run's last
    rate; if the old run was still warming up, it is the old run's highest.
    """
    warmup = 100
    schedule = SCHEDULES[name]
    last = step - 1 + schedule.first_step  # the number of the old run's last update
    expected = 2.0 * formula_3(max(last, warmup), 64, warmup)
    constant = schedule.continued_from(step, warmup, 2.0)
    assert constant * formula_3(warmup, 64, warmup) == pytest.approx(expected)
    assert schedule.rate(step - 1, 64, warmup, 2.0) == pytest.approx(
        2.0 * formula_3(last, 64, warmup) if last else 0.0
    )
