"""The paper's hparam sets and small ones: each is a diff from another, and its
docstring is the experiment.

The rows of Table 3 (t2tlite/programs/table3/rows.py) are the sets `transformer_NAME`.
"""

import dataclasses
from typing import Any

from t2tlite.config import HParams
from t2tlite.programs.table3.rows import ROWS, Row
from t2tlite.registry import register_hparams
from t2tlite.schedules import T2T_SCHEDULE

# changes: sublayers normalise their input, as tensor2tensor's do
PRE_NORM: dict[str, Any] = {
    "layer_preprocess_sequence": "n",
    "layer_postprocess_sequence": "da",
}


@register_hparams
def transformer_base() -> HParams:
    """The paper's base model: 6 layers, 512 wide, 8 heads, 100,000 steps (En-De
    newstest2014 BLEU 27.3).

    `t2t-trainer --problem=wmt_ende --hparams_set=transformer_base`; the paper trains
    batches of about 25,000 source and 25,000 target tokens on 8 GPUs for 12 hours, and
    averages the last 5 checkpoints.
    """
    return HParams()


@register_hparams
def transformer_big() -> HParams:
    """The paper's big model: 1024 wide, 16 heads, dropout 0.3, 300,000 steps (En-De
    newstest2014 BLEU 28.4).

    `t2t-trainer --problem=wmt_ende --hparams_set=transformer_big`; 3.5 days on 8 GPUs;
    averages the last 20.
    """
    return dataclasses.replace(
        transformer_base(),
        hidden_size=1024,
        filter_size=4096,
        num_heads=16,
        layer_prepostprocess_dropout=0.3,
        train_steps=300_000,
    )


@register_hparams
def transformer_big_enfr() -> HParams:
    """The paper's big model for English-French: dropout 0.1 (En-Fr newstest2014 BLEU
    41.8).

    `t2t-trainer --problem=wmt_enfr --hparams_set=transformer_big_enfr`; averages the
    last 20 checkpoints.
    """
    return dataclasses.replace(transformer_big(), layer_prepostprocess_dropout=0.1)


@register_hparams
def transformer_tiny() -> HParams:
    """2 layers, 128 wide, pre-norm: learns the embedded grammar in minutes on a CPU.

    `make demo` runs `t2t-trainer --generate_data --problem=grammar_ende
    --hparams_set=transformer_tiny`. After 1,000 steps with batches of 2,048 tokens,
    pre-norm has BLEU 92.4 on test, the paper's post-norm 83.6.
    """
    return dataclasses.replace(
        transformer_base(),
        hidden_size=128,
        filter_size=512,
        num_hidden_layers=2,
        num_heads=4,
        **PRE_NORM,
        batch_size=2048,
        max_length=64,
        learning_rate_constant=2.0,
        learning_rate_warmup_steps=400,
        train_steps=1000,
    )


@register_hparams
def transformer_small() -> HParams:
    """3 layers, 256 wide, dropout 0.3, post-norm: the paper's model, small.

    For files of your own, transformer_multi30k and transformer_news are pre-norm, learn
    faster, and were measured.
    """
    return dataclasses.replace(
        transformer_base(),
        hidden_size=256,
        filter_size=1024,
        num_hidden_layers=3,
        num_heads=4,
        layer_prepostprocess_dropout=0.3,
        learning_rate_constant=2.0,
        learning_rate_warmup_steps=2000,
        train_steps=10_000,
    )


@register_hparams
def transformer_multi30k() -> HParams:
    """transformer_tiny with 4 layers and dropout 0.3, for Multi30k En-De (29,000
    pairs): 12,000 steps.

    BLEU on test2016 39.9 with 5 checkpoints averaged (beam size 4, alpha 0.6) after
    about 70 minutes on one core that has bfloat16; docs/results.md has the commands. 3
    layers of twice the width reach 38.9 after as much computation: a small corpus needs
    a small model, as Wu et al. (2021) found too. On their lower-cased, tokenised text,
    with their batches, 41.0 (mean of three seeds; theirs 41.0).
    """
    return dataclasses.replace(
        transformer_tiny(),
        num_hidden_layers=4,
        layer_prepostprocess_dropout=0.3,
        max_length=256,
        learning_rate_constant=1.5,
        learning_rate_warmup_steps=1000,
        train_steps=12_000,
        dtype_policy="auto",
    )


@register_hparams
def transformer_news() -> HParams:
    """transformer_small, pre-norm, for 203,000 pairs En-De: 9,100 steps, two hours on
    two cores that have bfloat16.

    BLEU on newstest2014 10.6 and on held-out pairs of Tatoeba 36.4, with 3 checkpoints
    averaged: with two replicas of 2,048 tokens, weights of the corpora, and a lower
    learning rate for the last 1,486 steps, by the commands in docs/results.md.
    """
    return dataclasses.replace(
        transformer_small(),
        **PRE_NORM,
        layer_prepostprocess_dropout=0.2,
        learning_rate_constant=1.0,
        learning_rate_warmup_steps=1000,
        train_steps=9100,
        dtype_policy="auto",
    )


@register_hparams
def transformer_iwslt_de_en() -> HParams:
    """The paper's base model with 4 heads, a filter of 1,024 and dropout 0.3, for
    IWSLT 2014 De-En (160,000 pairs): 50,000 steps.

    The sizes and the schedule are those of fairseq's set of the same name, with which
    34 to 35 BLEU of tokenised text in lower case are reported (beam size 5). Not
    measured here: it needs the task's files and a GPU.
    """
    return dataclasses.replace(
        transformer_base(),
        filter_size=1024,
        num_heads=4,
        layer_prepostprocess_dropout=0.3,
        # the highest rate is 0.0005
        learning_rate_constant=0.7155,
        learning_rate_warmup_steps=4000,
        batch_size=4096,
        train_steps=50_000,
    )


@register_hparams
def transformer_characters() -> HParams:
    """4 layers, 256 wide, pre-norm, with more dropout, for words letter by letter:
    pronunciations, inflections, spellings.

    `t2t-trainer --problem=g2p_cmudict --hparams_set=transformer_characters`. Sizes,
    label smoothing, warm-up, steps and the highest rate, 0.001, are those of Wu,
    Cotterell and Hulden (2021), "Applying the Transformer to Character-level
    Transduction". They found that batches must be large: theirs have 400 words, and
    4,096 tokens are 446 words of CMUdict. Their dropout is 0.3. On the fifteen
    languages of g2p_sigmorphon2020, 15.2% of test's words are wrong, by the commands in
    docs/beyond-translation.md.
    """
    return dataclasses.replace(
        transformer_base(),
        hidden_size=256,
        filter_size=1024,
        num_hidden_layers=4,
        num_heads=4,
        **PRE_NORM,
        layer_prepostprocess_dropout=0.25,
        attention_dropout=0.1,
        relu_dropout=0.1,
        train_steps=20_000,
    )


# Constituency parsing, section 6.3 of the paper.


@register_hparams
def transformer_parsing_wsj() -> HParams:
    """The paper's parser, WSJ only: 4 layers, 1024 wide (section 6.3: F1 91.3 on
    section 23).

    `t2t-trainer --problem=wsj_parsing --hparams_set=transformer_parsing_wsj`, with its
    16K vocabulary. All else is the base model's except dropout, attention dropout and
    the learning rate, which the paper tuned on section 22 but does not report. The
    dropouts here are tensor2tensor's (transformer_parsing_base), the learning rate is
    formula (3).
    """
    return dataclasses.replace(
        transformer_base(),
        num_hidden_layers=4,
        hidden_size=1024,
        layer_prepostprocess_dropout=0.2,
        attention_dropout=0.2,
        # a tree's sequence is about three times as long as its sentence
        max_length=512,
    )


@register_hparams
def transformer_parsing_semi() -> HParams:
    """The paper's semi-supervised parser: dropout 0.1 (section 6.3: F1 92.7 on section
    23).

    `t2t-trainer --problem=wsj_parsing_semi --hparams_set=transformer_parsing_semi`,
    with its 32K vocabulary. Dropout is the base model's, since there is far more
    training data.
    """
    return dataclasses.replace(
        transformer_parsing_wsj(),
        layer_prepostprocess_dropout=0.1,
        attention_dropout=0.1,
    )


@register_hparams
def transformer_parsing_small() -> HParams:
    """For about 10,000 trees on a CPU: 256 wide, 4 encoder and 2 decoder layers,
    pre-norm, small batches.

    For problem wsj_parsing with --linearisation=words --fragments=2 --substitutions=4
    --vocab_size=4000. Trained on GUM's 10,224 trees, 138 minutes on one core that has
    bfloat16, it reaches F1 76.3 on GUM's test set (beam size 8, 5 checkpoints
    averaged). On CRAFT's 18,951 gold trees (problem craft_parsing), 110 minutes on one
    core, F1 is 76.8 on all of test. docs/results.md has the commands. Pre-norm with
    small batches learns much faster here than the paper's post-norm.
    """
    return dataclasses.replace(
        transformer_base(),
        hidden_size=256,
        filter_size=1024,
        num_heads=4,
        num_encoder_layers=4,
        num_decoder_layers=2,
        **PRE_NORM,
        batch_size=1024,
        max_length=400,
        learning_rate_warmup_steps=500,
        layer_prepostprocess_dropout=0.2,
        train_steps=35000,
        dtype_policy="auto",
    )


# The sets of tensor2tensor itself: its transformer_base and transformer_big since
# their third version.
#
# They differ from the paper in: normalisation before each sublayer and after each
# stack, dropout also on attention weights and inside the feed-forward layers, twice
# the learning rate with twice the warm-up, Adam's beta2 0.997, all sines before all
# cosines, and a learned row, the target space, added to the source. The paper's
# models are tensor2tensor's first version, and `transformer_base` and
# `transformer_big` here.
#
# tensor2tensor's Adam is lazy, but embeddings have dense gradients, so that plain
# Adam updates the same rows. tensor2tensor's sets have no number of steps; those here
# are the paper's.


@register_hparams
def transformer_base_t2t() -> HParams:
    """tensor2tensor's transformer_base: pre-norm, more dropout, 2 x formula (3) with
    8,000 steps of warm-up.

    `t2t-trainer --problem=wmt_ende --hparams_set=transformer_base_t2t`. As large as the
    paper's base model except for the last normalisation of each stack and the target
    space.
    """
    return dataclasses.replace(
        transformer_base(),
        **PRE_NORM,
        attention_dropout=0.1,
        relu_dropout=0.1,
        pos="timing_halves",
        use_target_space_embedding=True,
        # formula (3), but the first update has rate 0
        learning_rate_schedule=T2T_SCHEDULE,
        learning_rate_constant=2.0,
        learning_rate_warmup_steps=8000,
        optimizer_adam_beta2=0.997,
    )


@register_hparams
def transformer_big_t2t() -> HParams:
    """tensor2tensor's transformer_big: transformer_base_t2t 1024 wide, 16 heads,
    dropout 0.3, batches of 2,048 tokens.

    `t2t-trainer --problem=wmt_ende --hparams_set=transformer_big_t2t`. The batches of a
    replica have half the base model's size; --hparams=batch_size=4096 or
    accumulate_steps=2 makes them equal.
    """
    return dataclasses.replace(
        transformer_base_t2t(),
        hidden_size=1024,
        filter_size=4096,
        num_heads=16,
        layer_prepostprocess_dropout=0.3,
        batch_size=2048,
        train_steps=300_000,
    )


# The rows of Table 3.


def _register_row(row: Row) -> None:
    def hparam_set() -> HParams:
        return row.apply(transformer_base())

    size = "" if row.parameters is None else f", {row.parameters} million parameters"
    fields = ", ".join(hparam_set().changes(transformer_base()))
    hparam_set.__name__ = f"transformer_{row.name}"
    hparam_set.__doc__ = (
        f"Table 3, row ({row.group}), {fields}: perplexity {row.perplexity:.2f},"
        f" BLEU {row.bleu} on newstest2013 after 100,000 steps{size}."
    )
    register_hparams(hparam_set)


for _row in ROWS:
    if _row.name not in ("base", "big"):  # these two are above
        _register_row(_row)
