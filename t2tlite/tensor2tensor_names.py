"""What stands here for names of tensor2tensor's; docs/from-tensor2tensor.md says more.

Each table maps patterns of names to the answers to them.
"""

import re
from collections.abc import Mapping

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
PROBLEMS = {
    "translate_en(de|fr)_wmt32k(_rev)?": r"wmt_en\1\2",
    "translate_en(de|fr)_wmt8k(_rev)?": r"wmt_en\1\2 with --vocab_size=8000",
    "translate_.+": "parallel_text with the problem's text",
    "text2text_tmpdir.*": "parallel_text with --train_source=inputs.train.txt,"
    " --train_target=targets.train.txt, and so on",
}
HPARAM_SETS = {
    "transformer_(base|big|parsing)_.+": "transformer_base_t2t or transformer_big_t2t,"
    " with the --hparams in docs/from-tensor2tensor.md",
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
