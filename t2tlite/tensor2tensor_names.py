"""What is here for flags of tensor2tensor's; docs/from-tensor2tensor.md says more."""

import re
from collections.abc import Mapping

# patterns of names
FLAGS = {
    "schedule": "leave it out: t2t-trainer trains, and evaluates as often as"
    " --local_eval_frequency says",
    "eval_early_stopping_steps": "--early_stopping_evals, counted in evaluations",
    "eval_use_test_set": "t2t-decoder --split=test",
    "gpu_automatic_mixed_precision": "--hparams=dtype_policy=mixed_float16",
    "xla_compile|xla_jit_level": "--hparams=jit_compile=true",
    "master|sync|worker_(job|id|replicas)|ps_(job|gpu|replicas)": "the variable"
    " TF_CONFIG",
    "export_saved_model": "t2t-export",
    "model_dir": "--output_dir",
    "decode_reference": "t2t-decoder --split, or t2t-bleu",
    "hp_(.+)": r"--hparams=\1=VALUE",
}


def answer(table: Mapping[str, str], name: str) -> str:
    """A sentence that says what stands here for a name of tensor2tensor's; empty if
    the table does not have it.
    """
    for pattern, ours in table.items():
        match = re.fullmatch(pattern, name)
        if match:
            return f"For tensor2tensor's {name}: {match.expand(ours)}."
    return ""
