"""The named sets against the paper's Table 3, by value and by number of parameters."""

from __future__ import annotations

import dataclasses
import inspect
import json

import pytest

import t2tlite.hparams
import t2tlite.problems  # noqa: F401  (registers the sets, and the problems)
from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.models.transformer import build_transformer

VOCABULARY = 37_000  # section 5.1: "about 37000 tokens"

SETS = sorted(name for name in registry.list_hparams() if registry._hparams[name].__module__.startswith("t2tlite."))


def parameters(hparams: HParams, vocabulary: int) -> int:
    """The number of weights, from the shapes that section 3 gives; one embedding matrix for all three uses.

    Biases in the feed-forward layers, none in attention projections; two vectors in each layer normalisation.
    """
    d, ff, keys, values = hparams.hidden_size, hparams.filter_size, hparams.key_channels, hparams.value_channels
    attention = 2 * d * keys + d * values + values * d
    feed_forward = d * ff + ff + ff * d + d
    norm = 2 * d
    encoder = hparams.encoder_layers * (attention + feed_forward + 2 * norm)
    decoder = hparams.decoder_layers * (2 * attention + feed_forward + 3 * norm)
    learned_positions = 2 * hparams.max_length * d if hparams.pos == "emb" else 0
    return vocabulary * d + encoder + decoder + learned_positions


@pytest.fixture
def base() -> HParams:
    return registry.hparams("transformer_base")


def test_base_is_the_papers(base):
    paper = {
        "hidden_size": 512,  # Table 3, row "base"
        "filter_size": 2048,
        "num_hidden_layers": 6,
        "num_heads": 8,
        "layer_prepostprocess_dropout": 0.1,
        "label_smoothing": 0.1,
        "train_steps": 100_000,
        "pos": "timing",  # section 3.5
        "optimizer_adam_beta1": 0.9,  # section 5.3
        "optimizer_adam_beta2": 0.98,
        "optimizer_adam_epsilon": 1e-9,
        "learning_rate_warmup_steps": 4000,
        "learning_rate_constant": 1.0,
        "attention_dropout": 0.0,  # section 5.4 has dropout on sublayer outputs and embeddings alone
        "relu_dropout": 0.0,
        "layer_preprocess_sequence": "none",  # section 3.1: LayerNorm(x + Sublayer(x))
        "layer_postprocess_sequence": "dan",
        "shared_embedding_and_softmax_weights": True,  # section 3.4
        "use_target_space_embedding": False,
    }
    assert {name: getattr(base, name) for name in paper} == paper
    assert (base.key_channels // base.num_heads, base.value_channels // base.num_heads) == (64, 64)  # d_k, d_v


def test_big_is_the_papers(base):
    big = registry.hparams("transformer_big")
    assert {name: here for name, (here, _) in big.diff(base).items()} == {
        "hidden_size": 1024,  # Table 3, last row
        "filter_size": 4096,
        "num_heads": 16,
        "layer_prepostprocess_dropout": 0.3,
        "train_steps": 300_000,
    }
    assert registry.hparams("transformer_big_enfr").diff(big) == {"layer_prepostprocess_dropout": (0.1, 0.3)}  # 6.1


def test_base_is_tensor2tensors_first_version(base, fixtures):
    """Its transformer_base_v1 is the paper's but for one row of embedding; where names are the same, so are values."""
    theirs = json.loads((fixtures / "tensor2tensor" / "hparams.json").read_text())["transformer_base_v1"]
    ours = dataclasses.asdict(base)
    same = sorted(set(ours) & set(theirs))
    assert len(same) >= 18
    differ = {name: (ours[name], theirs[name]) for name in same if ours[name] != theirs[name]}
    assert differ == {
        "use_target_space_embedding": (False, True),
        "learning_rate_schedule": ("noam", "legacy"),  # its decay scheme is "noam": the same rates
    }


@pytest.mark.parametrize(
    "changes",
    [
        "num_encoder_layers=1,num_decoder_layers=2",
        "num_hidden_layers=1,attention_key_channels=8,attention_value_channels=32,num_heads=4,pos=emb",
    ],
)
def test_count_of_models_that_are_built(base, changes):
    hparams = base.override(f"hidden_size=16,filter_size=24,max_length=16,{changes}")
    assert build_transformer(hparams, 50, 50).count_params() == parameters(hparams, 50)


def test_table_3_counts(base):
    # Table 3 says 65 million; 37,000 rows of embedding give 63.1, and about 40,700 would give 65.0.
    assert parameters(base, VOCABULARY) == pytest.approx(65e6, rel=0.032)
    assert parameters(registry.hparams("transformer_big"), VOCABULARY) == pytest.approx(213e6, rel=0.01)


@pytest.mark.parametrize(
    ("row", "changes", "millions"),
    [
        ("B, d_k 16", "attention_key_channels=128", 58),
        ("B, d_k 32", "attention_key_channels=256", 60),
        ("C, N 2", "num_hidden_layers=2", 36),
        ("C, N 4", "num_hidden_layers=4", 50),
        ("C, N 8", "num_hidden_layers=8", 80),
        ("C, d_ff 1024", "filter_size=1024", 53),
        ("C, d_ff 4096", "filter_size=4096", 90),
    ],
)
def test_table_3_rows_add_what_the_paper_says(base, row, changes, millions):
    """Rows of the same width as base: whatever the vocabulary, the difference to base is the paper's."""
    difference = parameters(base.override(changes), VOCABULARY) - parameters(base, VOCABULARY)
    assert difference / 1e6 == pytest.approx(millions - 65, abs=1.0), row  # both of its numbers are rounded


@pytest.mark.parametrize("heads", [1, 4, 16, 32])
def test_table_3_row_a_keeps_the_computation(base, heads):
    changed = base.override(f"num_heads={heads}")
    assert parameters(changed, VOCABULARY) == parameters(base, VOCABULARY)
    assert changed.key_channels // heads == {1: 512, 4: 128, 16: 32, 32: 16}[heads]  # d_k in the table


def test_parsers_are_the_papers(base):
    """Section 6.3: 4 layers, d_model 1024, 16K and 32K tokens; dropout and learning rate chosen on section 22."""
    parser = registry.hparams("transformer_parsing_wsj")
    semi = registry.hparams("transformer_parsing_semi")
    changes = {name: here for name, (here, _) in parser.diff(base).items()}
    assert (changes.pop("num_hidden_layers"), changes.pop("hidden_size")) == (4, 1024)
    assert set(changes) == {"layer_prepostprocess_dropout", "attention_dropout", "max_length"}  # else "unchanged"
    assert (parser.num_heads, parser.filter_size) == (8, 2048)
    assert set(semi.diff(parser)) == {"layer_prepostprocess_dropout", "attention_dropout"}
    assert registry.problem("wsj_parsing").vocab_size == 16_000
    assert registry.problem("wsj_parsing_semi").vocab_size == 32_000


def test_dropouts_of_parsers_are_tensor2tensors(fixtures):
    theirs = json.loads((fixtures / "tensor2tensor" / "hparams.json").read_text())
    names = ("layer_prepostprocess_dropout", "attention_dropout", "max_length")
    for ours, name in (("wsj", "transformer_parsing_base"), ("semi", "transformer_parsing_big")):
        hparams = registry.hparams(f"transformer_parsing_{ours}")
        assert {n: getattr(hparams, n) for n in names} == {n: theirs[name][n] for n in names}


@pytest.mark.parametrize("name", SETS)
def test_every_set(name):
    hparams = registry.hparams(name)
    assert isinstance(hparams, HParams)
    assert hparams == registry.hparams(name)
    assert HParams.from_json(hparams.to_json()) == hparams
    for field in dataclasses.fields(HParams):
        assert type(getattr(hparams, field.name)) is type(field.default), field.name
    text = inspect.getdoc(registry._hparams[name])
    assert text is not None
    assert text.split("\n")[0].endswith((".", ")"))


def test_sets_differ():
    assert len(SETS) >= 5
    jsons = [registry.hparams(name).to_json() for name in SETS]
    assert len(set(jsons)) == len(jsons)
