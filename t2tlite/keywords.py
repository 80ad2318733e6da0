"""The keyword arguments of the Python API, so that type checkers find a misspelt one.

Each class has the fields of the dataclasses that it names. A test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias, TypedDict

# the value of an option of several
Texts: TypeAlias = str | Path | Sequence[str | Path]


class DecodeOptions(TypedDict, total=False):
    """The fields of DecodeHParams: how sentences are decoded."""

    beam_size: int
    alpha: float
    extra_length: int
    batch_size: int
    return_beams: int
    t2t_rules: bool
    tree_constraint: bool
    min_length: int
    no_repeat_ngram_size: int
    sampling_method: str
    sampling_temp: float
    sampling_keep_top_k: int
    sampling_top_p: float
    sampling_seed: int


class LoopArguments(TypedDict, total=False):
    """The fields of LoopOptions, which are flags of t2t-trainer."""

    eval_steps: int
    local_eval_frequency: int
    early_stopping_evals: int
    save_checkpoints_secs: int
    keep_checkpoint_max: int
    random_seed: int


class HParamsChanges(TypedDict, total=False):
    """The fields of HParams: a model and its training."""

    model: str
    hidden_size: int
    filter_size: int
    num_hidden_layers: int
    num_encoder_layers: int
    num_decoder_layers: int
    num_heads: int
    attention_key_channels: int
    attention_value_channels: int
    self_attention_radius: int
    pos: str
    layer_preprocess_sequence: str
    layer_postprocess_sequence: str
    norm_epsilon: float
    shared_embedding_and_softmax_weights: bool
    use_target_space_embedding: bool
    layer_prepostprocess_dropout: float
    attention_dropout: float
    relu_dropout: float
    label_smoothing: float
    batch_size: int
    accumulate_steps: int
    global_batch_tokens: int
    corpus_weights: str
    max_length: int
    min_length_bucket: int
    length_bucket_step: float
    learning_rate_schedule: str
    learning_rate_constant: float
    learning_rate_warmup_steps: int
    optimizer_adam_beta1: float
    optimizer_adam_beta2: float
    optimizer_adam_epsilon: float
    clip_grad_norm: float
    weight_decay: float
    train_steps: int
    dtype_policy: str
    jit_compile: bool


class ProblemOptions(TypedDict, total=False):
    """The options of t2tlite's problems, which are flags of t2t-datagen."""

    vocab_size: int
    vocab_type: str
    vocab_file: Texts
    user_symbols: Texts
    normalization: str
    max_length: int
    max_length_ratio: float
    drop: Texts
    languages: Texts
    generalisation: str
    test_size: int
    linearisation: str
    fragments: int
    substitutions: int
    not_words: Texts
    extra_trees: Texts
    train_size: int
    text: str
    source_language: str
    target_language: str
    train_source: Texts
    train_target: Texts
    dev_source: Texts
    dev_target: Texts
    test_source: Texts
    test_target: Texts
    train_tsv: Texts
    dev_tsv: Texts
    test_tsv: Texts
    train_tmx: Texts
    dev_tmx: Texts
    test_tmx: Texts
