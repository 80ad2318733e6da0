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
    "eval_run_autoregressive": "t2t-trainer --eval_bleu",
    "gpu_automatic_mixed_precision": "--hparams=dtype_policy=mixed_float16",
    "xla_compile|xla_jit_level": "--hparams=jit_compile=true",
    "keep_checkpoint_every_n_hours": "a higher --keep_checkpoint_max",
    "gpu_order": "the variable CUDA_VISIBLE_DEVICES",
    "master|sync|worker_(job|id|replicas)|ps_(job|gpu|replicas)": "the variable"
    " TF_CONFIG",
    "export_saved_model": "t2t-export",
    "model_dir": "--output_dir",
    "num_concurrent_processes": "--num_processes",
    "only_list": "--registry_help",
    "max_cases": "parallel_text with the first lines",
    "decode_reference": "t2t-decoder --split, or t2t-bleu",
    "decode_shards": "--beam_runner, or split the file",
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
    "transformer_base_(v[123]|single_gpu|multistep8)": "transformer_base or"
    " transformer_base_t2t, with the --hparams in docs/from-tensor2tensor.md",
    "transformer_(big|parsing)_(single_gpu|dr[12]|base|big)": "transformer_base_t2t or"
    " transformer_big_t2t, with the --hparams in docs/from-tensor2tensor.md",
}
NAMES = {"problem": PROBLEMS, "hparam set": HPARAM_SETS}
# of a problem's class
ATTRIBUTES = {
    "generate_(samples|encoded_samples)": "pairs(split, tmp_dir), which yields"
    " (source, target), two strings, for each pair",
    "dataset_splits|is_generate_per_split": "splits(), which returns ('train', 'dev')"
    " or ('train', 'dev', 'test')",
    "approx_vocab_size": "the field vocab_size",
    "vocab_filename": "the field vocab_file",
    "additional_reserved_tokens": "symbols(tmp_dir)",
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
