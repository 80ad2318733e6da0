"""The named sets against the paper's Table 3, by value and by number of parameters."""

import dataclasses
import json

import pytest

import t2tlite.hparams
import t2tlite.problems  # noqa: F401  (registers the sets, and the problems)
from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.training.cost import count_parameters

VOCABULARY = 37_000  # section 5.1: "about 37000 tokens"

SETS = sorted(
    name
    for name in registry.list_hparams()
    if registry._hparams[name].__module__.startswith("t2tlite.")
)


@pytest.fixture
def base() -> HParams:
    return registry.get_hparams("transformer_base")


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
        # section 5.4 has dropout on sublayer outputs and embeddings alone
        "attention_dropout": 0.0,
        "relu_dropout": 0.0,
        "layer_preprocess_sequence": "none",  # section 3.1: LayerNorm(x + Sublayer(x))
        "layer_postprocess_sequence": "dan",
        "shared_embedding_and_softmax_weights": True,  # section 3.4
        "use_target_space_embedding": False,
    }
    assert {name: getattr(base, name) for name in paper} == paper
    assert base.key_channels == base.value_channels == 64 * base.num_heads


def test_big_is_the_papers(base):
    big = registry.get_hparams("transformer_big")
    assert {name: here for name, (here, _) in big.diff(base).items()} == {
        "hidden_size": 1024,  # Table 3, last row
        "filter_size": 4096,
        "num_heads": 16,
        "layer_prepostprocess_dropout": 0.3,
        "train_steps": 300_000,
    }
    # 6.1
    assert registry.get_hparams("transformer_big_enfr").diff(big) == {
        "layer_prepostprocess_dropout": (0.1, 0.3)
    }


def test_base_is_tensor2tensors_first_version(base, fixtures):
    """Its transformer_base_v1 is the paper's but for one row of embedding; where names
    are the same, so are values.
    """
    theirs = json.loads((fixtures / "tensor2tensor" / "hparams.json").read_text())[
        "transformer_base_v1"
    ]
    ours = dataclasses.asdict(base)
    same = sorted(set(ours) & set(theirs))
    assert len(same) >= 18
    differ = {
        name: (ours[name], theirs[name]) for name in same if ours[name] != theirs[name]
    }
    assert differ == {
        "use_target_space_embedding": (False, True),
        # its decay scheme is "noam": the same rates
        "learning_rate_schedule": ("noam", "legacy"),
    }


@pytest.mark.parametrize("heads", [1, 4, 16, 32])
def test_table_3_row_a_keeps_the_computation(base, heads):
    changed = base.override(f"num_heads={heads}")
    sizes = (VOCABULARY, VOCABULARY)
    assert count_parameters(changed, sizes) == count_parameters(base, sizes)
    # d_k in the table
    assert changed.key_channels // heads == {1: 512, 4: 128, 16: 32, 32: 16}[heads]


def test_parsers_are_the_papers(base):
    """Section 6.3: 4 layers, d_model 1024, 16K and 32K tokens; dropout and learning
    rate chosen on section 22.
    """
    parser = registry.get_hparams("transformer_parsing_wsj")
    semi = registry.get_hparams("transformer_parsing_semi")
    changes = {name: here for name, (here, _) in parser.diff(base).items()}
    assert (changes.pop("num_hidden_layers"), changes.pop("hidden_size")) == (4, 1024)
    # else "unchanged"
    assert set(changes) == {
        "layer_prepostprocess_dropout",
        "attention_dropout",
        "max_length",
    }
    assert (parser.num_heads, parser.filter_size) == (8, 2048)
    assert set(semi.diff(parser)) == {
        "layer_prepostprocess_dropout",
        "attention_dropout",
    }
    assert registry.get_problem("wsj_parsing").vocab_size == 16_000
    assert registry.get_problem("wsj_parsing_semi").vocab_size == 32_000


def test_dropouts_of_parsers_are_tensor2tensors(fixtures):
    theirs = json.loads((fixtures / "tensor2tensor" / "hparams.json").read_text())
    names = ("layer_prepostprocess_dropout", "attention_dropout", "max_length")
    sets = {"wsj": "transformer_parsing_base", "semi": "transformer_parsing_big"}
    for ours, name in sets.items():
        hparams = registry.get_hparams(f"transformer_parsing_{ours}")
        for field in names:
            assert getattr(hparams, field) == theirs[name][field]


def test_characters_are_wus(base):
    """The hparams of example/transformer/trm-g2p.sh in the repository
    shijie-wu/neural-transducer, of Wu, Cotterell and Hulden (2021).
    """
    hparams = registry.get_hparams("transformer_characters")
    theirs = {
        "hidden_size": 256,
        "filter_size": 1024,
        "num_hidden_layers": 4,
        "num_heads": 4,
        "label_smoothing": 0.1,
        "optimizer_adam_beta2": 0.98,
        "learning_rate_warmup_steps": 4000,
        "train_steps": 20_000,
    }
    assert {name: getattr(hparams, name) for name in theirs} == theirs
    # they give the highest rate itself
    highest = hparams.learning_rate_constant * (256 * 4000) ** -0.5
    assert highest == pytest.approx(0.001, rel=0.02)
    assert set(hparams.diff(base)) - set(theirs) == {
        "layer_preprocess_sequence",
        "layer_postprocess_sequence",
        "layer_prepostprocess_dropout",
        "attention_dropout",
        "relu_dropout",
    }


def test_every_set():
    values = set()
    for name in SETS:
        values.add(registry.get_hparams(name))
        assert registry.list_hparams()[name].endswith((".", ")"))
    assert len(values) == len(SETS) >= 5
