"""Every command-line flag, once: name, type, default, help text.

Flags that fill a dataclass are derived from its fields: the training loop's from `LoopConfig`, the options of
problems from the registered problems, those of the user's package (--t2t_usr_dir) included.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

from t2tlite import registry
from t2tlite.config import DecodeHParams
from t2tlite.training.loop_config import LoopConfig

DATA_DIR = "data"  # --data_dir if it is not given
RUNS_DIR = "runs"  # holds the runs whose --output_dir is not given
TEXT_FLAGS = {"source", "target", "word"}  # in which `~` is not the home folder, as it is in paths
RUNS = "runs"  # in the names of a command's flags: --output_dir, which can be given several times
PROBLEM_OPTIONS = "problem options"  # in the names of a command's flags: the options of all problems


class Flag(NamedTuple):
    """A command-line flag."""

    help: str
    kind: type = str  # or int, float, bool, list: comma-separated, or tuple: given several times
    default: Any = None  # the value of a flag that is not given


switch = functools.partial(Flag, kind=bool, default=False)  # on or off

DEFINITIONS: dict[str, Flag] = {
    # names
    "problem": Flag("Name of the problem; --registry_help lists them. NAME_rev swaps source and target."),
    "hparams_set": Flag("Name of the hparam set; --registry_help lists them."),
    "hparams": Flag("Changes to the hparam set: field=value,... Example: batch_size=2048,num_heads=4", str, ""),
    "registry_help": switch("Print every problem and hparam set, one per line, and exit."),
    "show_hparams": Flag(
        "Print every field of this hparam set: its value, its meaning, and what differs from the base model, and exit. "
        "With --hparams, of the changed set."
    ),
    "t2t_usr_dir": Flag("Folder of a Python package of yours to import; it registers problems and hparam sets."),
    "verbosity": Flag(
        "What TensorFlow may print: debug, info, warning or error. At warning its start-up messages are not shown.",
        default="warning",
    ),
    # folders
    "data_dir": Flag(
        "Folder of the data that t2t-datagen makes, with a folder for each problem. By default: data; for a run that "
        "is decoded or reported on, where its data was in training.",
    ),
    "tmp_dir": Flag("Folder of raw files: files you have are looked for here, and downloads are kept here."),
    "output_dir": Flag(
        "Folder of a run: hparams, vocabulary, checkpoints, events. By default: runs/PROBLEM-HPARAMS_SET, named after "
        "--problem and --hparams_set. t2t-table3 puts many runs in it, and has no default.",
    ),
    # making data
    "generate_data": switch("Make the data first, as t2t-datagen does; complete data is not made again."),
    "num_processes": Flag("Processes that encode text; by default one for each CPU core.", int),
    "beam_runner": Flag(
        "Let the workers of an Apache Beam pipeline do the work: DirectRunner, DataflowRunner, FlinkRunner, "
        "SparkRunner, ... They must see the folders under the same paths as this machine. Needs pip install "
        "'t2tlite[beam]'."
    ),
    "beam_options": Flag(
        "Options of Apache Beam, in quotes: '--direct_num_workers=8 --direct_running_mode=multi_processing'", str, ""
    ),
    # training
    **{
        field.name: Flag(field.metadata["help"], int, None if field.default is dataclasses.MISSING else field.default)
        for field in dataclasses.fields(LoopConfig)
    },
    "global_batch_tokens": Flag(
        "Tokens of each optimizer step on all GPUs together, padding counted, of the longer side: 25000 is the paper's "
        "25,000 source and 25,000 target tokens. Then any number of GPUs trains on the same batches. batch_size is the "
        "most that a GPU processes at a time, and accumulate_steps is derived. The same as the hparam of this name. By "
        "default batch_size x accumulate_steps x GPUs.",
        int,
    ),
    "eval_bleu": switch(
        "Also decode dev at each evaluation and report BLEU, or F1 for parsing, and choose the best checkpoint by it."
    ),
    "worker_gpu": Flag("Number of GPUs to use; by default all, or the CPU if there are none.", int),
    "cluster_resolver": Flag(
        "Where a worker reads which workers train together: tf_config, TensorFlow's variable TF_CONFIG, if it is set; "
        "slurm, the tasks of the job step that srun started.",
        default="tf_config",
    ),
    "warm_start_from": Flag(
        "Run folder or checkpoint whose weights a new run starts from; a resumed run does not need it. Without "
        "--hparams_set the new run also has its hparams, with the learning rate lowered to where that run stopped.",
    ),
    "rows": Flag("Rows and groups (A to E) of Table 3, comma-separated; by default all but big.", list),
    "seeds": Flag("Train each row once with each of these seeds, comma-separated.", list, "1"),
    "dry_run": switch("Train no row; print the sizes and costs of all by formula."),
    "time": switch("With --dry_run: also time a few steps of each row, which takes minutes, and estimate hours."),
    # importing
    "t2t_checkpoint": Flag("tensor2tensor's run folder, or one of its checkpoints, DIR/model.ckpt-N."),
    "t2t_vocab": Flag("Its .subwords vocabulary; or the source's and the target's, comma-separated.", list),
    "t2t_hparams": Flag("Its hparams.json; by default the one in the checkpoint's folder, or in the one above."),
    "target_space_id": Flag("Row of the target space embedding; by default the one seen to be trained, or 0.", int),
    # decoding
    "checkpoint_path": Flag(
        "Checkpoint to use: newest (the default), best, the best by dev, averaged, or a step, such as 2000, all of the "
        "run; or the path of a checkpoint, DIR/model.ckpt-N or ./NAME."
    ),
    "decode_hparams": Flag(
        "How to decode: field=value,... Parsers have other defaults.\n"
        + "\n".join(
            f"{field.name}={field.default}: {field.metadata['meaning']}" for field in dataclasses.fields(DecodeHParams)
        ),
        str,
        "",
    ),
    "engine": Flag(
        "What computes: tensorflow, or ctranslate2, which is faster on CPUs and starts sooner; it needs pip install "
        "'t2tlite[ctranslate2]'. With float32, greedy search and log-probabilities are those of tensorflow, and so are "
        "nearly all translations of beam search. The model is converted once, into RUN/ctranslate2.",
        default="tensorflow",
    ),
    "quantization": Flag(
        "How CTranslate2 stores the weights: float32 (by default), as they were trained; int8, which is smaller and "
        "faster and changes some translations; or float16, bfloat16, int16, int8_float32, int8_float16, int8_bfloat16."
    ),
    "decode_from_file": Flag("Text to translate, one sentence per line; - for standard input."),
    "decode_to_file": Flag("File for the translations, .gz too; by default, or with -, standard output."),
    "decode_interactive": switch("Translate what is typed, line by line; in a pipe, what comes, as it comes."),
    "score_file": Flag("File of source TAB target lines, - for standard input; prints log_prob TAB score of each."),
    "output_format": Flag(
        "text, the best translation of each line; nbest, the return_beams best of each, with log_prob and score; or "
        "jsonl, an object for each line. By default text, or nbest if return_beams is above 1."
    ),
    "alignments": switch("Add word alignments to jsonl."),
    "prefixes": switch("Lines of the input are source TAB prefix, the text with which the translation begins."),
    "split": Flag("Decode and score this split of the run's data: dev or test."),
    "n": Flag("How many of the newest checkpoints to average, at most; by default 5, or all of the steps given.", int),
    "from_step": Flag("Average only checkpoints of this step and later ones.", int),
    "to_step": Flag("Average only checkpoints of this step and earlier ones.", int),
    # exporting
    "export_dir": Flag("Folder of the export, which is created."),
    "format": Flag("saved_model, keras or ctranslate2."),
    "overwrite": switch("Replace the export that is in --export_dir; nothing else is ever replaced."),
    # scoring
    "translation": Flag("File of translations, one per line."),
    "reference": Flag("File of reference translations, one per line."),
    "metrics": Flag("Metrics to compute, comma-separated: bleu, chrf, ter.", list, "bleu"),
    "compare": Flag("File of another system's translations: are the two significantly different?"),
    "seed": Flag("Seed of the resampling of --compare.", int, 12345),
    "tokenize": Flag("How sacrebleu splits text into tokens for BLEU: 13a, intl, zh, char or none.", str, "13a"),
    "lowercase": switch("Compute BLEU and chrF without regard to case, as TER always is."),
    "compound_split": switch("Also print the paper's BLEU: tokenised as German, compounds split, with case."),
    "gold": Flag("File of gold parse trees, one per line."),
    "predicted": Flag("File of predicted parse trees, one per line; blank for a sentence without a parse."),
    "sentences": switch("Also print EVALB's table, with the scores of each sentence."),
    "prm": Flag("Parameter file of EVALB; by default the parameters of its COLLINS.prm."),
    # attention
    "source": Flag("The sentence whose attention is shown."),
    "target": Flag("Its translation; by default the model's own."),
    "kind": Flag("encoder, decoder or cross, or several of them, comma-separated; by default all.", list),
    "layers": Flag("Layers, counted from 1; by default all on a page, and the last but one in a picture.", list),
    "heads": Flag("Heads, counted from 1; by default all.", list),
    "word": Flag("Draw the attention of this word as lines, instead of heat maps."),
    "picture": Flag("File of the picture, ending in .png or .svg."),
    "html": Flag("File of the page."),
    # serving
    RUNS: Flag("Folder of a run to serve; given again, of a further one.", tuple),
    "languages": Flag(
        "Language pair of each run, in the order of --output_dir, comma-separated: en-de,de-en. By default what the "
        "runs record.",
        list,
    ),
    "host": Flag("Address to listen at; 0.0.0.0 for all of this machine's.", default="127.0.0.1"),
    "port": Flag("Port to listen at; 0 for any free one.", int, 5000),
    "max_characters": Flag("Most characters of a request.", int, 20_000),
    "max_queue": Flag("Sentences that may wait; further requests are answered with 503.", int, 1000),
    "timeout_s": Flag("Seconds after which a request is answered with 504.", float, 60.0),
    "api_key": Flag("Key that requests must have: the field api_key, or Authorization: Bearer KEY.", str, ""),
    "cors_origins": Flag(
        "Web sites whose pages may send requests, comma-separated, such as https://example.org; * for all.", list
    ),
}

LOOP = tuple(field.name for field in dataclasses.fields(LoopConfig))  # the training loop's flags


def problem_flags() -> dict[str, Flag]:
    """A flag for each option of the registered problems; None if it is not given.

    The help text names the problems that have the option unless all have it, and states the default unless problems
    differ in it.
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
    """The help text of an option that problems have, which a class may have inherited."""
    bases = (base for cls in classes for base in cls.__mro__)
    fields = filter(None, (getattr(base, "__dataclass_fields__", {}).get(option) for base in bases))
    texts = (field.metadata["help"] for field in fields if "help" in field.metadata)
    return next(texts, f"Explained in {classes[0].__module__}.{classes[0].__name__}.")
