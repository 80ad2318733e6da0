"""Beam search: sentences a second.

    python benchmarks/decode_throughput.py --sentences=256 --batch=32 --steps=32
    python benchmarks/decode_throughput.py --source=test.en --target=test.de \\
        --vocab_files train.en train.de

Every sentence is decoded for exactly --steps positions (EOS is forbidden), so that
untrained weights cost what trained ones do. A first batch (tracing) does not count.
Prints one line that begins RESULT.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import corpus
import numpy as np
import program

from t2tlite.machine import quiet_stderr

with quiet_stderr():
    import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.decoding.beam_search import beam_search
from t2tlite.decoding.tensorflow_engine import cast_values, scope_of
from t2tlite.layers.few_rows import prepared_once
from t2tlite.layers.sublayer import forward_only
from t2tlite.models.transformer import Transformer
from t2tlite.training.strategy import make_strategy, with_choices
from t2tlite.types import EOS, DecodingCache, Tensor


def main(argv: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    parser = program.argument_parser(__doc__)
    corpus.add_arguments(parser)
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument(
        "--batch", type=int, default=32, help="sentences decoded together"
    )
    parser.add_argument(
        "--steps", type=int, default=32, help="positions decoded of each sentence"
    )
    parser.add_argument("--beam_size", type=int, default=4)
    parser.add_argument(
        "--save_job", help="file for the batches, for a program of another project"
    )
    parser.add_argument(
        "--profile", help="folder for a TensorFlow profile of one more batch"
    )
    args = parser.parse_args(argv)
    hparams = with_choices(corpus.read_hparams(args), make_strategy(), train_steps=0)
    with tempfile.TemporaryDirectory() as folder:
        store = corpus.make_store(args, Path(folder))
        rows = np.argsort(-store.source_lengths[: args.sentences], kind="stable")
        indices = [
            rows[first : first + args.batch]
            for first in range(0, len(rows), args.batch)
        ]
        batches = [
            store.sources(index, int(store.source_lengths[index].max()))
            for index in indices
        ]
    pairs = [(inputs, inputs[:, :0]) for inputs in (batches[-1], *batches)]
    job = corpus.make_job(
        args, hparams, 1, pairs, beam_size=args.beam_size, steps=args.steps
    )
    search = make_search(hparams, job)
    program.measure_decoding("t2tlite", hparams.dtype_policy, job, search)
    if args.profile:
        with tf.profiler.experimental.Profile(args.profile):
            search(batches[0])


def make_search(hparams: HParams, job: program.Job) -> Callable[[np.ndarray], int]:
    """Makes a function that translates sources [R, S] with untrained weights and
    returns the length of the best result.
    """
    model = Transformer.from_hparams(hparams, job.vocab_size, job.vocab_size)
    weights = cast_values(model)
    kernels: dict[int, Tensor] = {}
    forbidden = tf.one_hot(EOS, job.vocab_size, on_value=-1e9, off_value=0.0)

    def decode_step(*arguments: Tensor) -> tuple[Tensor, DecodingCache]:
        logits, cache = model.decode_step(*arguments)
        return logits + forbidden, cache

    def search(inputs: Tensor, length: Tensor) -> Tensor:
        limits = tf.ones_like(inputs[:, 0]) * length
        how = {
            "max_lengths": limits,
            "beam_size": job.beam_size,
            "length": length,
            "alpha": 0.6,
        }
        if not hparams.jit_compile:
            how["resize_cache"] = model.resize_cache
        # as the engine of a run does
        arranged = prepared_once(kernels, tf.init_scope)
        with scope_of(weights), arranged, forward_only():
            return beam_search(
                decode_step,
                functools.partial(model.start_decoding, inputs, job.beam_size),
                **how,
            )[0]

    if hparams.jit_compile:  # static shapes: one program for each
        compiled, length = (
            tf.function(search, autograph=False, jit_compile=True),
            job.steps,
        )
    else:
        is_single = all(len(inputs) == 1 for inputs, _ in job.batches)
        ids = tf.TensorSpec((1 if is_single else None, None), tf.int32)
        specs = (ids, tf.TensorSpec((), tf.int32))
        compiled, length = (
            tf.function(search, autograph=False, input_signature=specs),
            np.int32(job.steps),
        )
    return lambda inputs: np.count_nonzero(compiled(inputs, length).numpy()[0, 0])


if __name__ == "__main__":
    main()
