"""Models of every form that tensor2tensor's `transformer` takes are imported whole:
their logits are NumPy's.
"""

import json

import numpy as np
import pytest
from imported_model import imported
from numpy_transformer import (
    POST_NORM,
    SMALL,
    NumpyTransformer,
    check_logits,
    draw,
    shapes,
    shard_shapes,
    small_model,
)
from tensor2tensor_checkpoint import TARGET_SPACE, load, variables_of, write_model

import t2tlite
from t2tlite.programs.tensor2tensor.hparams import convert_hparams
from t2tlite.programs.tensor2tensor.variables import load_variables, model_variables
from t2tlite.run_folder import RunFolder

SPACE = "transformer/body/target_space_embedding/kernel"
QUERY = "transformer/body/encoder/layer_0/self_attention/multihead_attention/q/kernel"
SHARED = "transformer/symbol_modality_41_16/shared/weights_"


@pytest.mark.parametrize("name", ["postnorm_notse", "prenorm", "prenorm_unshared"])
def test_numpys_model_is_tensor2tensors(t2t, name):
    data = np.load(t2t / f"transformer_logits_{name}.npz")
    variables, hparams = variables_of(data), json.loads(str(data["hparams_json"]))
    sizes = (97, 53) if name == "prenorm_unshared" else (97, 97)
    unshared = [("input_emb", 97), ("target_emb", 53), ("softmax", 53)]
    wanted = shapes(
        hparams, unshared if name == "prenorm_unshared" else [("shared", 97)]
    )
    assert {name: value.shape for name, value in variables.items()} == wanted
    logits = NumpyTransformer(variables, hparams, sizes, TARGET_SPACE).logits(
        data["inputs"], data["targets"]
    )
    np.testing.assert_allclose(logits, data["logits"], atol=1e-4)


UNTIED = {"shared_embedding_and_softmax_weights": False}
SOFTMAX_APART = UNTIED | {"shared_embedding": True}
ONE_TABLE = [("shared", 41)]
THREE_TABLES = [("input_emb", 41), ("target_emb", 29), ("softmax", 29)]

# hparams, and embeddings (kind, vocabulary)
FORMS = {
    "pre_norm": ({}, ONE_TABLE),
    "post_norm": (POST_NORM, ONE_TABLE),
    "depths": ({"num_encoder_layers": 1, "num_decoder_layers": 2}, ONE_TABLE),
    "depths_of_post_norm": (
        {"num_encoder_layers": 2, "num_hidden_layers": 1, **POST_NORM},
        ONE_TABLE,
    ),
    "widths": (
        {"attention_key_channels": 6, "attention_value_channels": 24},
        ONE_TABLE,
    ),
    "no_target_space": ({"use_target_space_embedding": False}, ONE_TABLE),
    "no_positions_and_a_large_epsilon": (
        {"pos": "none", "norm_epsilon": 0.1},
        ONE_TABLE,
    ),
    "softmax_apart": (SOFTMAX_APART, [("shared", 41), ("softmax", 41)]),
    "none_shared": (UNTIED, [("input_emb", 41), ("target_emb", 41), ("softmax", 41)]),
    "shared_after_all": (UNTIED, ONE_TABLE),
    "two_vocabularies": (UNTIED, THREE_TABLES),
    "two_vocabularies_said_to_share": ({}, THREE_TABLES),
    "two_vocabularies_of_older_versions": ({}, [("shared", 41), ("shared", 29)]),
    "two_vocabularies_softmax_apart": (
        SOFTMAX_APART,
        [("shared", 41), ("shared", 29), ("softmax", 29)],
    ),
}


MORE_FORMS = (  # what the others try too, otherwise combined
    "depths_of_post_norm", "none_shared", "shared_after_all", "two_vocabularies_said_to_share",
    "two_vocabularies_of_older_versions", "no_target_space", "no_positions_and_a_large_epsilon", "softmax_apart",
    "two_vocabularies_softmax_apart", "depths", "widths",
)  # fmt: skip


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(form, marks=[pytest.mark.slow] * (form in MORE_FORMS))
        for form in FORMS
    ],
)
def test_logits_of_every_form(tmp_path, form):
    changes, tables = FORMS[form]
    hparams = SMALL | changes
    variables, sizes = (
        draw(shapes(hparams, tables)),
        tuple(dict.fromkeys(size for _, size in tables)),
    )
    run = imported(
        tmp_path / "run", *write_model(tmp_path / "t2t", variables, hparams, sizes)
    )
    check_logits(t2tlite.load(run).engine.model, variables, hparams, sizes)
    tied = tables == ONE_TABLE and hparams["shared_embedding_and_softmax_weights"]
    assert RunFolder(run).hparams().shared_embedding_and_softmax_weights is tied


@pytest.fixture(scope="module")
def small():
    """hparams, variables, and a model that they fit."""
    hparams, variables = small_model()
    return hparams, variables, load(convert_hparams(hparams)[0], variables)


@pytest.mark.parametrize(
    "rows", [[41], [1, 9, 2, 4, 1, 1, 3, 7, 1, 2, 5, 1, 4], [1] * 41]
)
def test_shards_of_any_number_and_rows(small, rows):
    """weights_2 comes before weights_10."""
    hparams, _, model = small
    variables = draw(
        shapes(hparams) | shard_shapes(41, 16, "shared", rows), seed=len(rows)
    )
    load_variables(model, variables)
    check_logits(model, variables, hparams)


def test_weights_of_other_precision(small):
    hparams, variables, model = small
    half, double = (
        variables[QUERY].astype(np.float16),
        variables[f"{SHARED}3"].astype(np.float64),
    )
    stored = variables | {QUERY: half, f"{SHARED}3": double}
    load_variables(model, stored)
    check_logits(model, stored, hparams)


@pytest.mark.parametrize("row", [0, 21, 31])
def test_rows_of_the_target_space_embedding(small, row):
    hparams, variables, model = small
    load_variables(model, variables, row)
    check_logits(model, variables, hparams, space=row)


# what lies beside the model's variables: of the optimizer, of training's statistics, of
# mixed precision

OTHERS = """
global_step beta1_power beta2_power loss_scale good_steps bad_steps current_loss_scale
losses_avg/problem_0/total_loss train_stats/problem_0_steps training/iter
training/beta1_power
""".split()


@pytest.mark.parametrize("prefix", ["training/", ""])
@pytest.mark.parametrize(
    "slots",
    ["Adam Adam_1 Adam_2", "AdamW AdamW_1", "Adafactor Adafactor_1", "Momentum"],
)
def test_what_an_optimizer_remembers_is_no_part_of_the_model(slots, prefix):
    names = sorted(small_model()[1])
    slots = [f"{prefix}{name}/{slot}" for name in names for slot in slots.split()]
    assert model_variables({*names, *slots, *OTHERS}) == names


# variables that are not the model's


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({QUERY: None}, rf"{QUERY} is missing\."),
        ({f"{QUERY}_2": zeros(1)}, rf"{QUERY}_2 has no place in the model\."),
        ({"other/kernel": zeros(1)}, r"other/kernel has no place in the model\."),
        (
            {QUERY: zeros(16, 8)},
            rf"{QUERY} must have the shape \[16, 16\]\. Received: \[16, 8\]\.",
        ),
        (
            {f"{SHARED}0": None},
            rf"{SHARED}0 is missing\.\n  {SHARED}15 has no place in the model\.",
        ),
        (
            {f"{SHARED}15": None},
            rf"{SHARED}0 must have the shape \[41, 16\]\. Received: \[3, 16\], ",
        ),
        ({f"{SHARED}4": zeros(3, 8)}, r"\S* must have .*, \[3, 8\], "),
        ({f"{SHARED}4": np.float32(1)}, r"\S* must have .*, \[\], "),
        ({SPACE: None}, rf"{SPACE} is missing\."),
        (
            {SPACE: zeros(32, 8)},
            rf"{SPACE} must have the shape \[32, 16\]\. Received: \[32, 8\]\.",
        ),
        ({SPACE: np.float32(1)}, rf"{SPACE} must have .* Received: \[\]\."),
    ],
)
def test_variables_that_do_not_fit(small, changes, message):
    """None stands for a variable that is left out."""
    _, variables, model = small
    changed = {**variables, **changes}
    stored = {name: value for name, value in changed.items() if value is not None}
    before = [weight.copy() for weight in model.get_weights()]
    start = r"(?s)^hparams\.json and the vocabularies must be the checkpoint's\."
    with pytest.raises(ValueError, match=rf"{start}.*\n  {message}"):
        load_variables(model, stored)
    assert all(map(np.array_equal, before, model.get_weights()))
