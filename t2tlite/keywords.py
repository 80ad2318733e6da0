"""The keyword arguments of decoding and of training in Python, so that type checkers
find a misspelt one.

Each class has the fields of the dataclass that it names. A test compares them.
"""

from typing import TypedDict


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
    sampling_seed: int


class LoopArguments(TypedDict, total=False):
    """The fields of LoopOptions, which are flags of t2t-trainer."""

    eval_steps: int
    local_eval_frequency: int
    early_stopping_evals: int
    save_checkpoints_secs: int
    keep_checkpoint_max: int
    random_seed: int
