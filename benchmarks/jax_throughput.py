"""Training and decoding speed under JAX, for machines that have a GPU and no
TensorFlow.

    python benchmarks/jax_throughput.py --hparams_sets transformer_base transformer_big

A training step is forward, backward and Adam on random sentences without padding.
Decoding is the cached beam search for exactly --decode_steps positions (EOS is masked).
XLA compiles both, which does not count; speeds are those of the median time.
Utilisation is the FLOPs of the model a second, by the formula in
t2tlite/training/cost.py, over those of a large matrix product on the same device.
Prints lines that begin RESULT. docs/performance.md says what to install.
"""

# B batch, T target length, V vocabulary

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np

import t2tlite.hparams  # noqa: F401  registers the sets
from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.decoding.beam_search import beam_search
from t2tlite.files.atomic_file import write_text
from t2tlite.models.transformer import Transformer
from t2tlite.training.cost import training_flops
from t2tlite.training.learning_rates import LearningRate
from t2tlite.types import EOS, PAD, DecodingCache, Tensor

CHAINS, PRODUCTS = (
    5,
    10,
)  # chains of matrix products that are timed, and products in each
Weights = list[jax.Array]


@dataclasses.dataclass(frozen=True)
class Training:
    """The cost of training steps."""

    hparams_set: str
    parameters: int
    batch: tuple[int, int]  # rows, and tokens of each on both sides
    compile_seconds: float
    step_seconds: list[float]
    losses: list[float]  # of each step, all on the same batch
    tokens_per_second: float  # source and target tokens, by the median step
    flops_per_step: float  # the model's, by formula
    utilisation: float  # FLOPs a second over those of the matrix product
    # of device memory since the program began; None if the device does not report it
    peak_bytes: int | None

    def __str__(self) -> str:
        rows, length = self.batch
        peak = (
            "not reported"
            if self.peak_bytes is None
            else f"{self.peak_bytes / 2**30:.1f} GiB"
        )
        return (
            f"train {self.hparams_set}: {self.parameters:,} parameters, {rows} rows of"
            f" {length} + {length} tokens, {statistics.median(self.step_seconds):.4f}"
            f" s/step (median of {len(self.step_seconds)}, {min(self.step_seconds):.4f}"
            f" to {max(self.step_seconds):.4f}), {self.tokens_per_second:,.0f}"
            f" source+target tokens/s, {self.flops_per_step / 1e12:.3g} TFLOP/step,"
            f" utilisation {self.utilisation:.1%}, peak memory {peak}, compiled in"
            f" {self.compile_seconds:.0f} s, loss {self.losses[0]:.3f} to"
            f" {self.losses[-1]:.3f}"
        )


@dataclasses.dataclass(frozen=True)
class Decoding:
    """The cost of beam search."""

    hparams_set: str
    batch: tuple[int, int]  # sentences, and tokens of each
    beam_size: int
    steps: int  # positions decoded
    compile_seconds: float
    seconds: list[float]  # of each search
    sentences_per_second: float  # by the median search

    def __str__(self) -> str:
        sentences, length = self.batch
        return (
            f"decode {self.hparams_set}: beam {self.beam_size}, {sentences} sentences"
            f" of {length} tokens, {self.steps} steps,"
            f" {statistics.median(self.seconds):.3f} s (median of {len(self.seconds)}),"
            f" {self.sentences_per_second:,.1f} sentences/s, compiled in"
            f" {self.compile_seconds:.0f} s"
        )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--hparams_sets", nargs="+", default=["transformer_base", "transformer_big"]
    )
    parser.add_argument(
        "--hparams",
        default="dtype_policy=mixed_bfloat16",
        help="changes to the sets, field=value,...",
    )
    parser.add_argument("--vocab_size", type=int, default=37_000)
    parser.add_argument(
        "--batch_tokens",
        type=int,
        default=25_000,
        help="tokens of each side of a training batch",
    )
    parser.add_argument(
        "--length",
        type=int,
        default=32,
        help="tokens of every sentence, source and target",
    )
    parser.add_argument(
        "--steps", type=int, default=20, help="training steps that count"
    )
    parser.add_argument(
        "--warm",
        type=int,
        default=3,
        help="training steps and searches before those that count",
    )
    parser.add_argument(
        "--decode_batches",
        type=int,
        nargs="*",
        default=[32, 128],
        help="sentences decoded together",
    )
    parser.add_argument(
        "--decode_steps",
        type=int,
        default=32,
        help="positions decoded of each sentence",
    )
    parser.add_argument(
        "--searches", type=int, default=5, help="searches that count, of each batch"
    )
    parser.add_argument("--beam_size", type=int, default=4)
    parser.add_argument(
        "--matmul_size",
        type=int,
        default=8192,
        help="rows and columns of the matrix product",
    )
    parser.add_argument("--json", help="file for all numbers")
    args = parser.parse_args()
    results: list[Training | Decoding] = []
    device, rates = jax.devices()[0], {}
    for name in args.hparams_sets:
        hparams = registry.get_hparams(name).override(args.hparams)
        model = Transformer.from_hparams(hparams, args.vocab_size, args.vocab_size)
        dtype = model.compute_dtype
        if dtype not in rates:
            rates[dtype] = matmul_flops(args.matmul_size, dtype)
            print(
                f"RESULT {device.device_kind}, jax {jax.__version__}, keras"
                f" {keras.__version__}: product of {dtype} matrices of"
                f" {args.matmul_size} x {args.matmul_size}, {rates[dtype] / 1e12:.3g}"
                " TFLOP/s",
                flush=True,
            )
        training, weights = measure_training(name, hparams, model, args, rates[dtype])
        results.append(training)
        print(f"RESULT {training}", flush=True)
        for sentences in args.decode_batches:
            results.append(measure_decoding(name, model, weights, sentences, args))
            print(f"RESULT {results[-1]}", flush=True)
    if args.json:
        record = {
            "device": device.device_kind,
            "versions": {"jax": jax.__version__, "keras": keras.__version__},
            "arguments": vars(args),
            "matmul_flops_per_second": rates,
            "results": [dataclasses.asdict(result) for result in results],
        }
        write_text(Path(args.json), json.dumps(record, indent=2) + "\n")


def matmul_flops(size: int, dtype: str) -> float:
    """Measures a square matrix product on the first device; returns the median of its
    floating-point operations per second.
    """
    keys = jax.random.split(jax.random.key(1))
    x = jax.random.normal(keys[0], (size, size), dtype)
    # keeps the standard deviation of x at 1
    matrix = jax.random.normal(keys[1], (size, size), dtype) * size**-0.5
    product = jax.jit(jax.numpy.matmul)

    def chain() -> Tensor:
        y = x
        for _ in range(PRODUCTS):
            y = product(y, matrix)
        return y

    return (
        2.0
        * size**3
        * PRODUCTS
        / statistics.median(seconds_of(chain, warm=1, repeats=CHAINS))
    )


def measure_training(
    name: str,
    hparams: HParams,
    model: Transformer,
    args: argparse.Namespace,
    matmul_rate: float,
) -> tuple[Training, Weights]:
    """Trains on one batch repeatedly. Also returns the trained weights."""
    adam = keras.optimizers.Adam(
        LearningRate.of(hparams),
        beta_1=hparams.optimizer_adam_beta1,
        beta_2=hparams.optimizer_adam_beta2,
        epsilon=hparams.optimizer_adam_epsilon,
    )
    adam.build(model.trainable_variables)
    rows = args.batch_tokens // args.length
    inputs, targets = (random_sentences(rows, args, seed) for seed in (1, 2))

    def train_step(
        weights: Weights,
        moments: Weights,
        inputs: Tensor,
        targets: Tensor,
        seed: Tensor,
    ) -> tuple[Weights, Weights, Tensor]:
        def loss_of(weights: Weights) -> Tensor:
            with with_weights(model, weights):
                return smoothed_cross_entropy(
                    model(inputs, targets, seed=seed), targets, hparams.label_smoothing
                )

        loss, gradients = jax.value_and_grad(loss_of)(weights)
        return *adam.stateless_apply(moments, gradients, weights), loss

    weights = [variable.value for variable in model.trainable_variables]
    moments = [variable.value for variable in adam.variables]
    state = weights, moments
    start = time.perf_counter()
    compiled = (
        jax.jit(train_step, donate_argnums=(0, 1))
        .lower(*state, inputs, targets, seed_of(0))
        .compile()
    )
    compile_seconds = time.perf_counter() - start
    losses = []

    def one_step() -> Tensor:
        nonlocal state
        *state, loss = compiled(*state, inputs, targets, seed_of(len(losses)))
        losses.append(loss)
        return state, loss

    seconds = seconds_of(one_step, args.warm, args.steps)
    median = statistics.median(seconds)
    flops = rows * training_flops(hparams, args.vocab_size, args.length, args.length)
    training = Training(
        hparams_set=f"{name} {hparams.dtype_policy}",
        parameters=model.count_params(),
        batch=(rows, args.length),
        compile_seconds=compile_seconds,
        step_seconds=seconds,
        losses=[float(loss) for loss in losses],
        tokens_per_second=2 * rows * args.length / median,
        flops_per_step=flops,
        utilisation=flops / median / matmul_rate,
        peak_bytes=(jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use"),
    )
    return training, state[0]


def measure_decoding(
    name: str,
    model: Transformer,
    weights: Weights,
    sentences: int,
    args: argparse.Namespace,
) -> Decoding:
    """Decodes one batch repeatedly."""
    inputs = random_sentences(sentences, args)
    forbidden = (
        jax.numpy.zeros(args.vocab_size).at[jax.numpy.array([PAD, EOS])].set(-1e9)
    )

    def decode_step(*arguments: Tensor) -> tuple[Tensor, DecodingCache]:
        logits, cache = model.decode_step(*arguments)
        return logits + forbidden, cache

    def search(weights: Weights, inputs: Tensor) -> Tensor:
        with with_weights(model, weights):
            start = functools.partial(model.start_decoding, inputs, args.beam_size)
            limits = jax.numpy.full(sentences, args.decode_steps, "int32")
            length, size = args.decode_steps, args.beam_size
            return beam_search(
                decode_step,
                start,
                max_lengths=limits,
                beam_size=size,
                length=length,
                alpha=0.6,
            )[0]

    start = time.perf_counter()
    compiled = jax.jit(search).lower(weights, inputs).compile()
    compile_seconds = time.perf_counter() - start
    seconds = seconds_of(lambda: compiled(weights, inputs), args.warm, args.searches)
    return Decoding(
        hparams_set=f"{name} {model.dtype_policy.name}",
        batch=(sentences, args.length),
        beam_size=args.beam_size,
        steps=int(np.count_nonzero(compiled(weights, inputs)[0, 0])),
        compile_seconds=compile_seconds,
        seconds=seconds,
        sentences_per_second=sentences / statistics.median(seconds),
    )


def smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, label_smoothing: float
) -> Tensor:
    """Returns the mean over target tokens of the loss of which
    t2tlite/training/train_step.py computes the sum in TensorFlow.

    Float32 [B, T, V] and int32 [B, T] to a float32 scalar. -sum_v p_v log q_v is
    computed as log Z - sum_v p_v z_v, which needs neither p nor log q in
    memory.
    """
    size = logits.shape[-1]
    high, low = 1.0 - label_smoothing, label_smoothing / (size - 1)
    p = low + (high - low) * jax.nn.one_hot(targets, size)  # [B, T, V]
    loss = jax.nn.logsumexp(logits, axis=-1) - (p * logits).sum(axis=-1)  # [B, T]
    if label_smoothing > 0.0:
        loss += high * math.log(high) + (size - 1) * low * math.log(low)
    return jax.numpy.mean(loss, where=targets != PAD)


def with_weights(model: Transformer, weights: Weights) -> keras.StatelessScope:
    """A context in which the model computes with these weights instead of its own."""
    return keras.StatelessScope(
        state_mapping=list(zip(model.trainable_variables, weights, strict=True))
    )


def random_sentences(rows: int, args: argparse.Namespace, seed: int = 1) -> Tensor:
    """int32 [rows, --length], each row ending in EOS. By Zipf's law, as in text, a few
    tokens make up most of it.
    """
    uniform = np.random.default_rng(seed).random((rows, args.length))
    # density 1 / (id - EOS), from EOS + 1 to the last id
    ids = EOS + (args.vocab_size - EOS - 1) ** uniform
    ids[:, -1] = EOS
    return jax.numpy.asarray(ids, "int32")


def seed_of(step: int) -> Tensor:
    """int32 [2], the seed of a step's dropout."""
    return jax.numpy.array([1, step], "int32")


def seconds_of(run: Callable[[], Any], warm: int, repeats: int) -> list[float]:
    """Returns the seconds of each run until its results are ready. The first `warm`
    runs do not count.
    """
    seconds = []
    for _ in range(warm + repeats):
        start = time.perf_counter()
        jax.block_until_ready(run())
        seconds.append(time.perf_counter() - start)
    return seconds[warm:]


if __name__ == "__main__":
    main()
