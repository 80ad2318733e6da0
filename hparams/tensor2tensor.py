"""tensor2tensor's own hparam sets: its transformer_base and transformer_big since their
third version.

They differ from the paper in: normalisation before each sublayer and after each stack,
dropout also on attention weights and inside the feed-forward layers, twice the learning
rate with twice the warm-up, Adam's beta2 0.997, all sines before all cosines, and a
learned row, the target space, added to the source. The paper's models are
tensor2tensor's first version, and `transformer_base` and `transformer_big` here.

tensor2tensor's Adam is lazy, but embeddings have dense gradients, so that plain Adam
updates the same rows. tensor2tensor's sets have no number of steps; those here are the
paper's.
"""

import dataclasses

from t2tlite.config import HParams
from t2tlite.hparams.transformer import PRE_NORM, transformer_base
from t2tlite.registry import register_hparams
from t2tlite.schedules import T2T_SCHEDULE


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
