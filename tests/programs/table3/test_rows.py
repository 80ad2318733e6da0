"""The rows of Table 3: against the paper's table, and as changes of a smaller base."""

import pytest

import t2tlite.hparams  # noqa: F401  (registers the sets)
from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.hparams.transformer import transformer_base
from t2tlite.programs.table3.rows import ROWS, select
from t2tlite.training.cost import count_parameters

# The paper's Table 3, blanks filled in:
# row       N  d_model  d_ff   h  d_k  d_v  P_drop eps_ls  PPL   BLEU  params
PAPER = """
base        6   512  2048    8   64   64    0.1   0.1   4.92   25.8   65
h1          6   512  2048    1  512  512    0.1   0.1   5.29   24.9    -
h4          6   512  2048    4  128  128    0.1   0.1   5.00   25.5    -
h16         6   512  2048   16   32   32    0.1   0.1   4.91   25.8    -
h32         6   512  2048   32   16   16    0.1   0.1   5.01   25.4    -
k128        6   512  2048    8   16   64    0.1   0.1   5.16   25.1   58
k256        6   512  2048    8   32   64    0.1   0.1   5.01   25.4   60
l2          2   512  2048    8   64   64    0.1   0.1   6.11   23.7   36
l4          4   512  2048    8   64   64    0.1   0.1   5.19   25.3   50
l8          8   512  2048    8   64   64    0.1   0.1   4.88   25.5   80
hs256       6   256  2048    8   32   32    0.1   0.1   5.75   24.5   28
hs1024      6  1024  2048    8  128  128    0.1   0.1   4.66   26.0  168
ff1024      6   512  1024    8   64   64    0.1   0.1   5.12   25.4   53
ff4096      6   512  4096    8   64   64    0.1   0.1   4.75   26.2   90
dr0         6   512  2048    8   64   64    0.0   0.1   5.77   24.6    -
dr2         6   512  2048    8   64   64    0.2   0.1   4.95   25.5    -
ls0         6   512  2048    8   64   64    0.1   0.0   4.67   25.3    -
ls2         6   512  2048    8   64   64    0.1   0.2   5.47   25.7    -
pos_learned 6   512  2048    8   64   64    0.1   0.1   4.92   25.7    -
big         6  1024  4096   16   64   64    0.3   0.1   4.33   26.4  213
"""
LINES = [line.split() for line in PAPER.strip().splitlines()]
MODEL_ROWS = [row for row in ROWS if row.name not in ("base", "big")]


def applied(name: str, base: HParams) -> HParams:
    return next(row for row in ROWS if row.name == name).apply(base)


@pytest.mark.parametrize(("row", "line"), list(zip(ROWS, LINES, strict=True)))
def test_row_is_the_papers(row, line):
    name, *columns, parameters = line
    hparams = registry.get_hparams(f"transformer_{name}")
    heads = hparams.num_heads
    assert row.name == name
    assert row.apply(transformer_base()) == hparams
    names = "num_hidden_layers hidden_size filter_size num_heads".split()
    sizes = [getattr(hparams, name) for name in names]
    sizes += [hparams.key_channels / heads, hparams.value_channels / heads]
    rates = [hparams.layer_prepostprocess_dropout, hparams.label_smoothing]
    papers = [row.perplexity, row.bleu]
    assert [float(value) for value in columns] == sizes + rates + papers
    assert hparams.train_steps == (300_000 if name == "big" else 100_000)
    assert (hparams.pos == "emb") == (name == "pos_learned")
    assert str(row.parameters or "-") == parameters


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.parameters], ids=lambda row: row.name
)
def test_number_of_parameters_is_the_papers(row):
    """With the 40,700 rows of embedding that the paper's 65 million of the base model
    imply.
    """
    count = count_parameters(row.apply(transformer_base()), (40_700, 40_700))
    # rounded values; big is the farthest off
    assert count / 1e6 == pytest.approx(row.parameters, rel=0.025)


@pytest.mark.parametrize("row", MODEL_ROWS, ids=lambda row: row.name)
def test_registered_set_says_what_the_experiment_is(row):
    text = registry.list_hparams()[f"transformer_{row.name}"]
    assert text.startswith(f"Table 3, row ({row.group}), ")
    assert f"perplexity {row.perplexity:.2f}, BLEU {row.bleu:.1f} on news" in text


SMALL = "num_hidden_layers=3,hidden_size=256,filter_size=1024,train_steps=4000,layer_prepostprocess_dropout=0.3"
UNEVEN = "num_encoder_layers=3,num_decoder_layers=6,attention_key_channels=256,attention_value_channels=128"


@pytest.mark.parametrize(
    ("base", "name", "values"),
    [
        (SMALL, "l2", {"num_hidden_layers": 1}),
        (SMALL, "l8", {"num_hidden_layers": 4}),
        (SMALL, "h1", {"num_heads": 1}),
        (SMALL, "h32", {"num_heads": 32}),
        (SMALL, "ff1024", {"filter_size": 512}),
        (SMALL, "dr2", {"layer_prepostprocess_dropout": 0.2}),
        (SMALL, "ls0", {"layer_prepostprocess_dropout": 0.3}),
        (SMALL, "k128", {"key_channels": 64, "value_channels": 256, "num_heads": 8}),
        (SMALL, "hs256", {"key_channels": 128, "value_channels": 128, "num_heads": 8}),
        (SMALL, "big", {"hidden_size": 512, "filter_size": 2048, "train_steps": 12_000}),
        (UNEVEN, "l2", {"encoder_layers": 1, "decoder_layers": 2}),
        (UNEVEN, "k128", {"key_channels": 64, "value_channels": 128}),
        (UNEVEN, "hs256", {"key_channels": 128, "value_channels": 64}),
    ],
)  # fmt: skip
def test_rows_of_another_base_keep_their_meaning(base, name, values):
    hparams = applied(name, transformer_base().override(base))
    assert {field: getattr(hparams, field) for field in values} == values


def test_base_that_a_row_does_not_fit():
    message = r"Row l2 .* a multiple of 3 as num_hidden_layers\. Received: 4\."
    with pytest.raises(ValueError, match=message):
        applied("l2", transformer_base().override("num_hidden_layers=4"))
    message = r"attention_key_channels must be a"
    with pytest.raises(ValueError, match=message):
        applied("h32", transformer_base().override("hidden_size=48"))


def test_select_keeps_the_papers_order():
    names = [row.name for row in select(["big", "ls2", "B", "base", "k128"])]
    assert names == ["base", "k128", "k256", "ls2", "big"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hs265", r"Received: 'hs265'\. Did you mean 'hs256'"),
        ("F", r"groups A to E\. Received: 'F'\. Known: A, B, C"),
        ("", "Received: ''"),
    ],
)
def test_select_of_what_is_not_there(name, message):
    with pytest.raises(ValueError, match=message):
        select(["base", name])
