"""The definition of every command-line flag: name, type, default, help text.

Flags that fill a dataclass are derived from its fields: the training loop's from `LoopConfig`, the options of
problems from the registered problems, those of the user's package (--t2t_usr_dir) included.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

from t2tlite import registry
from t2tlite.checked_fields import CheckedFields, default_of, facts_of
from t2tlite.config import DecodeHParams
from t2tlite.training.loop_config import LoopConfig

DATA_DIR = "data"  # --data_dir if it is not given
RUNS_DIR = "runs"  # holds the runs whose --output_dir is not given
TEXT_FLAGS = {"source", "target", "word"}  # text, in which `~` is not expanded to the home folder
RUNS = "runs"  # among the names of a command's flags: --output_dir, which can be given several times
PROBLEM_OPTIONS = "problem_options"  # among the names of a command's flags: the options of all problems


class Flag(NamedTuple):
    """A command-line flag."""

    help: str
    kind: type = str  # or int, float, bool, list (comma-separated) or tuple (given several times)
    default: Any = None  # the value if the flag is not given


switch = functools.partial(Flag, kind=bool, default=False)  # on or off


def field_flags(cls: type[CheckedFields]) -> dict[str, Flag]:
    """A flag of the same name for each field of a class, with its meaning as help text."""
    flags = {}
    for field in dataclasses.fields(cls):
        facts, default = facts_of(field), default_of(field)
        if facts.kind is tuple:
            flags[field.name] = Flag(facts.meaning, list, ",".join(default or ()) or None)
        else:
            flags[field.name] = Flag(facts.meaning, facts.kind, default)
    return flags


DEFINITIONS: dict[str, Flag] = {
    # names
    "problem": Flag("Name of the problem; --registry_help lists them. NAME_rev swaps source and target."),
    "hparams_set": Flag("Name of the hparam set; --registry_help lists them."),
    "hparams": Flag("Changes to the hparam set: field=value,... Example: batch_size=2048,num_heads=4", str, ""),
    "registry_help": switch("Print every problem and hparam set, one per line, and exit."),
    "show_hparams": Flag(
        "Print every field of this hparam set, with the changes of --hparams: its value, its meaning, and how it "
        "differs from the base model, and exit."
    ),
    "t2t_usr_dir": Flag(
        "Folder of a Python package of your own to import; it registers problems, tasks and hparam sets."
    ),
    "verbosity": Flag(
        "TensorFlow's log level: debug, info, warning or error. From warning on, its start-up messages are not shown.",
        default="warning",
    ),
    # folders
    "data_dir": Flag(
        "Folder of the data that t2t-datagen makes, with a folder for each problem. By default: data; to decode or "
        "report on a run, where its data was during training.",
    ),
    "tmp_dir": Flag("Folder of raw files: existing files are looked for here, and downloads are kept here."),
    "output_dir": Flag(
        "Folder of a run: hparams, vocabulary, checkpoints, events. By default: runs/PROBLEM-HPARAMS_SET, named after "
        "--problem and --hparams_set. t2t-table3 puts many runs in it, and has no default.",
    ),
    # making data
    "generate_data": switch("Make the data first, as t2t-datagen does; complete data is not made again."),
    "num_processes": Flag("Processes that encode text; by default one per CPU core.", int),
    "beam_runner": Flag(
        "Runner of an Apache Beam pipeline whose workers do the work: DirectRunner, DaskRunner, DataflowRunner, "
        "FlinkRunner, SparkRunner, ... They must see the folders under the same paths as this machine. Needs "
        "pip install 't2tlite[beam]', or 't2tlite[dask]' for Dask."
    ),
    "beam_options": Flag(
        "Options of Apache Beam, in quotes: '--direct_num_workers=8 --direct_running_mode=multi_processing'", str, ""
    ),
    # training
    **field_flags(LoopConfig),
    "global_batch_tokens": Flag(
        "Tokens per optimizer step on all GPUs together, padding counted, of the longer side: 25000 is the paper's "
        "25,000 source and 25,000 target tokens. Then any number of GPUs trains on the same batches; batch_size is the "
        "most that a GPU processes at a time, and accumulate_steps is derived. Sets the hparam of this name. By "
        "default batch_size x accumulate_steps x GPUs.",
        int,
    ),
    "eval_bleu": switch(
        "Also decode dev at each evaluation and report BLEU, or F1 for parsing, and choose the best checkpoint by it."
    ),
    "worker_gpu": Flag("Number of GPUs to use; by default all, or the CPU if there are none.", int),
    "cluster_resolver": Flag(
        "Where a worker reads the list of workers: tf_config, TensorFlow's variable TF_CONFIG, if it is set; slurm, "
        "the tasks of the job step that srun started.",
        default="tf_config",
    ),
    "warm_start_from": Flag(
        "Run folder or checkpoint whose weights a new run starts from; a resumed run does not need it. Without "
        "--hparams_set the new run also uses its hparams, with the learning rate lowered to where that run stopped.",
    ),
    "rows": Flag("Rows and groups (A to E) of Table 3, comma-separated; by default all but big.", list),
    "seeds": Flag("Train each row once with each of these seeds, comma-separated.", list, "1"),
    "dry_run": switch("Do not train; print the sizes and costs of the rows by formula."),
    "time": switch("With --dry_run: also time a few steps of each row, which takes minutes, and estimate hours."),
    # importing
    "t2t_checkpoint": Flag("tensor2tensor's run folder, or one of its checkpoints, DIR/model.ckpt-N."),
    "t2t_vocab": Flag("Its .subwords vocabulary; or the source's and the target's, comma-separated.", list),
    "t2t_hparams": Flag("Its hparams.json; by default the one in the checkpoint's folder, or in the one above."),
    "target_space_id": Flag(
        "Row of the target space embedding; by default the row that was trained if the checkpoint shows it, or 0.", int
    ),
    # decoding
    "checkpoint_path": Flag(
        "Checkpoint of the run: newest (the default), best (on dev), averaged, or a step, such as 2000; or the path of "
        "a checkpoint, DIR/model.ckpt-N or ./NAME."
    ),
    "decode_hparams": Flag(
        "How to decode: field=value,... Parsers have other defaults.\n"
        + "\n".join(
            f"{field.name}={field.default}: {facts_of(field).meaning}" for field in dataclasses.fields(DecodeHParams)
        ),
        str,
        "",
    ),
    "engine": Flag(
        "Decoding engine: tensorflow, or ctranslate2, which is faster on CPUs, starts sooner, and needs pip install "
        "'t2tlite[ctranslate2]'. In float32, its greedy translations and log-probabilities equal tensorflow's, and so "
        "do nearly all beam-search translations. The model is converted once, into RUN/ctranslate2.",
        default="tensorflow",
    ),
    "quantization": Flag(
        "How CTranslate2 stores the weights: float32 (the default), as they were trained; int8, which is smaller and "
        "faster and changes some translations; or float16, bfloat16, int16, int8_float32, int8_float16, int8_bfloat16."
    ),
    "decode_from_file": Flag("Text to translate, one sentence per line; - for standard input."),
    "decode_to_file": Flag("File for the translations, which may end in .gz; by default, or with -, standard output."),
    "decode_interactive": switch("Translate lines as they are typed, or as they arrive through a pipe."),
    "score_file": Flag("File of source TAB target lines, - for standard input; prints log_prob TAB score of each."),
    "output_format": Flag(
        "text, the best translation of each line; nbest, the return_beams best of each, with log_prob and score; or "
        "jsonl, an object for each line. By default text, or nbest if return_beams is above 1."
    ),
    "alignments": switch("Add word alignments to jsonl."),
    "prefixes": switch("Read lines source TAB prefix; the translation begins with the prefix."),
    "split": Flag("Decode and score this split of the run's data: dev or test."),
    "n": Flag("Average at most this many of the newest checkpoints; by default 5, or all of the steps given.", int),
    "from_step": Flag("Average only checkpoints of this step and later ones.", int),
    "to_step": Flag("Average only checkpoints of this step and earlier ones.", int),
    # exporting
    "export_dir": Flag("Folder of the export, which is created."),
    "format": Flag("Format of the export: saved_model, keras or ctranslate2."),
    "overwrite": switch("Replace an export in --export_dir; nothing else is ever replaced."),
    # scoring
    "translation": Flag("File of translations, one per line."),
    "reference": Flag("File of reference translations, one per line."),
    "metrics": Flag("Metrics to compute, comma-separated: bleu, chrf, ter.", list, "bleu"),
    "compare": Flag("File of another system's translations; tests whether the two differ significantly."),
    "seed": Flag("Random seed of the resampling of --compare.", int, 12345),
    "tokenize": Flag("How sacrebleu splits text into tokens for BLEU: 13a, intl, zh, char or none.", str, "13a"),
    "lowercase": switch("Ignore case in BLEU and chrF, as TER always does."),
    "compound_split": switch("Also print the paper's BLEU: tokenised as German, compounds split, cased."),
    "gold": Flag("File of gold parse trees, one per line."),
    "predicted": Flag("File of predicted parse trees, one per line; blank for a sentence without a parse."),
    "sentences": switch("Also print EVALB's table, with the scores of each sentence."),
    "prm": Flag("Parameter file of EVALB; by default the parameters of its COLLINS.prm."),
    # attention
    "source": Flag("The sentence whose attention is shown."),
    "target": Flag("Its translation; by default the model's own."),
    "kind": Flag("Kinds of attention, comma-separated: encoder, decoder, cross; by default all.", list),
    "layers": Flag("Layers, counted from 1; by default all on a page, and the last but one in a picture.", list),
    "heads": Flag("Heads, counted from 1; by default all.", list),
    "word": Flag("Draw the attention of this word as lines, instead of heat maps."),
    "picture": Flag("File of the picture, ending in .png or .svg."),
    "html": Flag("File of the page."),
    # serving
    PROBLEM_OPTIONS: Flag("The options of all problems."),
    RUNS: Flag("Folder of a run to serve; can be given several times.", tuple),
    "languages": Flag(
        "Language pair of each run, in the order of --output_dir, comma-separated: en-de,de-en. By default what the "
        "runs record.",
        list,
    ),
}


def problem_flags() -> dict[str, Flag]:
    """A flag for each option of the registered problems; its value is None if it is not given.

    The help text names the problems that have the option unless all have it, and states the default unless it differs
    between problems.
    """
    problems = registry.problem_classes()
    fields: dict[str, dict[str, dataclasses.Field[Any]]] = {}  # option -> problem -> field
    for problem, cls in problems.items():
        for field in registry.option_fields(cls):
            fields.setdefault(field.name, {})[problem] = field
    flags = {}
    for option, having in fields.items():
        defaults = [field.default for field in having.values()]
        kind: type = list if isinstance(defaults[0], tuple) else type(defaults[0])
        if kind not in (str, int, float, bool, list):
            continue  # an option that a command line cannot express
        default = defaults[0] if len(set(defaults)) == 1 else "the problem's"
        shown = "" if default in ("", ()) else f" (default: {default})"
        names = "" if len(having) == len(problems) else f"{', '.join(sorted(having))}: "
        flags[option] = Flag(names + _help([problems[problem] for problem in having], option) + shown, kind)
    return flags


def _help(classes: list[type], option: str) -> str:
    """The help text of an option, which a problem class may inherit from a base class."""
    bases = (base for cls in classes for base in cls.__mro__)
    fields = filter(None, (getattr(base, "__dataclass_fields__", {}).get(option) for base in bases))
    texts = filter(None, (facts_of(field).meaning for field in fields))
    return next(texts, f"Explained in {classes[0].__module__}.{classes[0].__name__}.")
