"""Hparam sets for constituency parsing, section 6.3 of the paper: each is a change of
transformer_base.
"""

import dataclasses

from t2tlite.config import HParams
from t2tlite.hparams.transformer import PRE_NORM, transformer_base
from t2tlite.registry import register_hparams


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
