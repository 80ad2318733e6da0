"""TensorFlow's package for Linux registers its GPU kernels on any machine: each
operation that is run has one.

An operation without a kernel for its types would run on the CPU, and its tensors would
be copied there and back at each step. The test says nothing about speed, nor about what
runs in host memory on purpose, as 32-bit integers do.
"""

from collections.abc import Iterator

import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2
from tensorflow.python.framework import kernels

from t2tlite.config import DecodeHParams, HParams
from t2tlite.data.input_pipeline import Part
from t2tlite.decoding.tensorflow_engine import search
from t2tlite.models.transformer import Transformer
from t2tlite.training.learning_rates import make_optimizer
from t2tlite.training.train_step import make_gradients

TYPES = ("float32", "mixed_float16", "mixed_bfloat16")
ALL_SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in TYPES]
POLICIES = [*ALL_SLOW[:-1], "mixed_bfloat16"]
VOCAB_SIZE = 64
ON_GPU = {"GPU", "DEFAULT"}
# What TensorFlow itself handles: arguments and results of functions, control flow that
# it lowers, and calls.
NO_KERNEL_NEEDED = set(
    "_Arg _Retval Placeholder StatefulPartitionedCall PartitionedCall While If Assert".split()
)


def tiny(policy: str) -> Transformer:
    hparams = HParams().override(
        f"num_hidden_layers=1,hidden_size=32,filter_size=64,num_heads=4,dtype_policy={policy}"
    )
    return Transformer.from_hparams(hparams, VOCAB_SIZE, VOCAB_SIZE)


def nodes(function) -> Iterator[node_def_pb2.NodeDef]:
    """Every operation of a concrete function and of the functions that it calls, with
    the types filled in.
    """
    graph: graph_pb2.GraphDef = function.graph.as_graph_def()
    yield from graph.node
    for inner in graph.library.function:
        yield from inner.node_def


def without_kernel(function) -> set[str]:
    """The operations that have no GPU kernel for their types, as
    "name(attribute=type)".
    """
    missing = set()
    for node in nodes(function):
        if node.op in NO_KERNEL_NEEDED:
            continue
        registered = kernels.get_registered_kernels_for_op(node.op).kernel
        on_gpu = [kernel for kernel in registered if kernel.device_type in ON_GPU]
        if not any(accepts(kernel, node) for kernel in on_gpu):
            types = []
            for name, attr in sorted(node.attr.items()):
                if attr.type:
                    types.append(f"{name}={tf.as_dtype(attr.type).name}")
            missing.add(f"{node.op}({', '.join(types)})")
    return missing


def accepts(kernel, node: node_def_pb2.NodeDef) -> bool:
    """Whether a kernel is registered for the types of this operation."""
    for constraint in kernel.constraint:
        given = node.attr[constraint.name]
        types = set(given.list.type) or {given.type}
        if not types <= set(constraint.allowed_values.list.type):
            return False
    return True


def test_an_operation_without_a_gpu_kernel_is_noticed():
    strings = tf.function(lambda x: tf.strings.length(x) + 1).get_concrete_function(
        tf.TensorSpec((None,), tf.string)
    )
    assert without_kernel(strings) == {"StringLength()"}
    arg_max = tf.function(lambda x: tf.argmax(x, axis=-1)).get_concrete_function(
        tf.TensorSpec((None, 4), tf.int32)
    )
    assert without_kernel(arg_max) == {"ArgMax(T=int32, Tidx=int32, output_type=int64)"}


@pytest.mark.parametrize("policy", POLICIES)
def test_training_step(policy):
    model = tiny(policy)
    optimizer = make_optimizer(model)
    gradients = make_gradients(model, optimizer)

    @tf.function(autograph=False)
    def step(inputs, targets, tokens, seeds):
        loss, sums = gradients(Part(inputs, targets, tokens, seeds))
        optimizer.apply(sums, model.trainable_variables)
        return loss, tf.linalg.global_norm(sums)

    ids = tf.TensorSpec((1, None, None), tf.int32)
    traced = step.get_concrete_function(
        ids, ids, tf.TensorSpec((), tf.float32), tf.TensorSpec((1, 2), tf.int32)
    )
    assert without_kernel(traced) == set()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "options",
    [
        pytest.param("beam_size=1", marks=pytest.mark.slow),
        "beam_size=4,min_length=2,no_repeat_ngram_size=2",
        "sampling_method=random,sampling_keep_top_k=5",
    ],
)
def test_search(policy, options):
    model = tiny(policy)
    decode = DecodeHParams().override(options)
    whole_number = tf.TensorSpec((), tf.int32)
    specs = [
        tf.TensorSpec((None, None), tf.int32),  # sources
        tf.TensorSpec((None,), tf.int32),  # limits of length
        whole_number,  # length
        tf.TensorSpec((), tf.float32),  # alpha
        whole_number,  # outputs of a sentence
        {},
    ]
    if decode.samples:
        specs[-1] = {"uniforms": tf.TensorSpec((None, None, None), tf.float32)}

    @tf.function(autograph=False, input_signature=specs)
    def searched(*arguments):
        return search(model, decode, *arguments)

    assert without_kernel(searched.get_concrete_function()) == set()
