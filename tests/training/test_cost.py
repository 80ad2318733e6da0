"""What training costs by formula, against models that are built and TensorFlow's own
counters.
"""

import pytest
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import (
    convert_variables_to_constants_v2,
)

import t2tlite.hparams  # noqa: F401  (registers the sets)
from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.models.transformer import Transformer
from t2tlite.training.cost import (
    count_parameters,
    flops_per_step,
    largest_batch,
    training_flops,
)

SMALL = HParams(
    hidden_size=16, filter_size=24, num_hidden_layers=1, num_heads=2, max_length=20
)


def slow(changes):
    return pytest.param(changes, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "changes",
    [
        slow("num_hidden_layers=2,num_heads=8"),
        slow("attention_key_channels=6"),
        slow("attention_value_channels=40"),
        slow("pos=emb"),
        slow("use_target_space_embedding=true"),
        "pos=timing_halves,dtype_policy=mixed_bfloat16",
        (
            "num_encoder_layers=2,num_decoder_layers=3,attention_key_channels=4,attention_value_channels=8,pos=emb,"
            "shared_embedding_and_softmax_weights=false,layer_preprocess_sequence=n,layer_postprocess_sequence=da,"
            "use_target_space_embedding=true,self_attention_radius=3"
        ),
    ],
)
def test_parameters_are_those_of_the_built_model(changes):
    hparams = SMALL.override(changes)
    model = Transformer.from_hparams(hparams, 50, 50)
    sizes = [int(tf.size(variable)) for variable in model.weights]
    assert count_parameters(hparams, (50, 50)) == model.count_params() == sum(sizes)


@pytest.mark.parametrize(
    ("name", "millions", "share"),
    [("transformer_base", 65, 0.032), ("transformer_big", 213, 0.01)],
)
def test_parameters_of_the_papers_models(name, millions, share):
    """Table 3. The paper's vocabulary is "about 37000": 1,700 rows more would make its
    65 of base.
    """
    count = count_parameters(registry.get_hparams(name), (37_000, 37_000))
    assert count / 1e6 == pytest.approx(millions, rel=share)


def counted_by_tensorflow(
    hparams: HParams, sizes: tuple[int, int], source: int, target: int
) -> dict[str, int]:
    """Floating-point operations of a forward pass of one pair, by kind of operation."""
    model = Transformer.from_hparams(hparams, *sizes)
    shapes = [tf.TensorSpec((1, length), tf.int32) for length in (source, target)]
    concrete = tf.function(
        lambda inputs, targets: model(inputs, targets)
    ).get_concrete_function(*shapes)
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    options = tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
    options["output"] = "none"
    counted: dict[str, int] = {}
    with tf.Graph().as_default() as graph:
        tf.graph_util.import_graph_def(frozen.graph.as_graph_def(), name="")
        run = tf.compat.v1.RunMetadata()
        root = tf.compat.v1.profiler.profile(
            graph, run_meta=run, cmd="op", options=options
        )
        while root.children:
            root = root.children[0]
            counted[root.name] = root.float_ops
    return counted


@pytest.mark.parametrize(
    ("changes", "sizes", "source", "target"),
    [
        pytest.param(
            "num_encoder_layers=1,num_decoder_layers=2",
            (300, 300),
            40,
            15,
            marks=pytest.mark.slow,
        ),
        (
            "num_encoder_layers=2,num_decoder_layers=1,attention_key_channels=64,attention_value_channels=256",
            (300, 300),
            12,
            20,
        ),
        (
            "num_hidden_layers=1,shared_embedding_and_softmax_weights=false",
            (300, 500),
            40,
            15,
        ),
        (
            "num_encoder_layers=1,num_decoder_layers=2,self_attention_radius=7",
            (300, 300),
            40,
            15,
        ),
        ("num_hidden_layers=1,self_attention_radius=20", (300, 300), 40, 15),
    ],
)
def test_forward_flops_are_what_tensorflow_counts(changes, sizes, source, target):
    hparams = HParams().override(
        f"hidden_size=128,filter_size=512,num_heads=4,{changes}"
    )
    counted = counted_by_tensorflow(hparams, sizes, source, target)
    ours = training_flops(hparams, sizes[1], source, target) / 3
    products = sum(counted.get(kind, 0) for kind in ("MatMul", "BatchMatMulV2"))
    assert ours == products
    # the rest: softmax, normalisation, sums, biases
    assert products < sum(counted.values()) < 1.03 * ours


def test_base_model_by_hand():
    """6 + 6 layers, 512 wide, 2048 inside, a pair of 30 and 20 tokens; 2 operations for
    each multiplication.
    """
    s, t, square = 30, 20, 512 * 512
    # four projections, W1 and W2; scores and their use
    encoder = s * (4 * square + 8 * square) + 2 * s * s * 512
    self_attention = t * 4 * square + 2 * t * t * 512
    cross_attention = (2 * t + 2 * s) * square + 2 * t * s * 512
    decoder = self_attention + cross_attention + t * 8 * square
    pair = 2 * (6 * encoder + 6 * decoder + t * 512 * 37_000)
    assert training_flops(HParams(), 37_000, s, t) == 3 * pair
    pairs = 2 * 4096 / 30  # in a step of two micro-batches: the longer side counts
    of_step = flops_per_step(HParams(accumulate_steps=2), 37_000, (s, t))
    # backward is twice forward
    assert of_step == pytest.approx(3 * pair * pairs)


def test_the_largest_batch_needs_the_most_memory():
    shapes = [(120, 8, 8), (30, 16, 16), (60, 12, 4)]  # of two replicas

    def largest(shapes, steps=1):
        hparams = SMALL.override(f"accumulate_steps={steps}")
        return largest_batch(hparams, 50, shapes, 2)

    # as many tokens as 15 pairs of 16 + 16, and more logits than 30 of 12 + 4
    assert largest(shapes) == (60, 8, 8)
    assert largest(shapes, steps=2) == (30, 8, 8)
    assert largest([(120, 8, 8), (60, 16, 16)]) == (30, 16, 16)
    assert largest([(5, 8, 8)]) == (3, 8, 8)  # rounded up
