"""Every command-line flag, once: name, type, default, help text.

Flags that fill a dataclass are derived from its fields: the training loop's from `LoopConfig`, the options of
problems from the registered problems, those of the user's package (--t2t_usr_dir) included.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

from t2tlite import registry
from t2tlite.training.loop_config import LoopConfig

DATA_DIR = "data"  # --data_dir if it is not given
RUNS_DIR = "runs"  # holds the runs whose --output_dir is not given
PROBLEM_OPTIONS = "problem options"  # in the names of a command's flags: the options of all problems


class Flag(NamedTuple):
    """A command-line flag."""

    help: str
    kind: type = str  # or int, float, bool, or list: comma-separated
    default: Any = None  # if a flag that is not given has a value


switch = functools.partial(Flag, kind=bool, default=False)  # on or off

DEFINITIONS: dict[str, Flag] = {
    # names
    "problem": Flag("Name of the problem; --registry_help lists them. NAME_rev swaps source and target."),
    "hparams_set": Flag("Name of the hparam set; --registry_help lists them."),
    "hparams": Flag("Changes to the hparam set: field=value,... Example: batch_size=2048,num_heads=4", str, ""),
    "registry_help": switch("Print every problem and hparam set, one per line, and exit."),
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
    # training
    **{
        field.name: Flag(field.metadata["help"], int, None if field.default is dataclasses.MISSING else field.default)
        for field in dataclasses.fields(LoopConfig)
    },
    "eval_bleu": switch(
        "Also decode dev at each evaluation and report BLEU, or F1 for parsing, and choose the best checkpoint by it."
    ),
    "worker_gpu": Flag("Number of GPUs to use; by default all, or the CPU if there are none.", int),
    "warm_start_from": Flag(
        "Run folder or checkpoint whose weights a new run starts from. Without --hparams_set the new run also has its "
        "hparams, with the learning rate lowered to where that run stopped.",
    ),
    "rows": Flag("Rows and groups (A to E) of Table 3, comma-separated; by default all but big.", list),
    "seeds": Flag("Train each row once with each of these seeds, comma-separated.", list, "1"),
    "dry_run": switch("Train no row; print sizes and costs, and hours estimated from a few timed steps."),
    # importing
    "t2t_checkpoint": Flag("tensor2tensor's run folder, or one of its checkpoints, DIR/model.ckpt-N."),
    "t2t_vocab": Flag("Its .subwords vocabulary; or the source's and the target's, comma-separated.", list),
    "t2t_hparams": Flag("Its hparams.json; by default the one in the checkpoint's folder, or in the one above."),
    "target_space_id": Flag("Row of the target space embedding; by default the one seen to be trained, or 0.", int),
    # decoding
    "checkpoint_path": Flag("Checkpoint to use: RUN/model.ckpt-N, RUN/best or RUN/averaged; by default the newest."),
    "decode_hparams": Flag(
        "How to decode: beam_size=4,alpha=0.6,extra_length=50,batch_size=...,return_beams=...", str, ""
    ),
    "decode_from_file": Flag("Text to translate, one sentence per line."),
    "decode_to_file": Flag("File for the translations; by default the terminal."),
    "decode_interactive": switch("Translate what is typed, line by line."),
    "score_file": Flag("File of source TAB target lines; prints each target's log-probability."),
    "split": Flag("Decode and score this split of the run's data: dev or test."),
    "n": Flag("How many of the newest checkpoints to average.", int, 5),
    # scoring
    "translation": Flag("File of translations, one per line."),
    "reference": Flag("File of reference translations, one per line."),
    "tokenize": Flag("How sacrebleu splits text into tokens: 13a, intl, zh, char or none.", str, "13a"),
    "lowercase": switch("Compute sacrebleu's BLEU without regard to case."),
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
