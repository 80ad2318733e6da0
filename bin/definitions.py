"""Every command-line flag, once: name, type, default, help text.

Flags that fill a dataclass are derived from its fields: the training loop's from `LoopConfig`, the options of
problems from the registered problems, those of the user's package (--t2t_usr_dir) included.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from t2tlite import registry
from t2tlite.training.loop_config import LoopConfig

DATA_DIR = "data"  # --data_dir if it is not given
RUNS_DIR = "runs"  # holds the runs whose --output_dir is not given
PROBLEM_OPTIONS = ("problem options",)  # in a command's FLAGS: the options of all problems


class Flag(NamedTuple):
    """A command-line flag."""

    kind: type  # str, int, float, bool, or list: comma-separated
    default: Any  # None if a flag that is not given has no value
    help: str


def text(default: str | None, help_text: str) -> Flag:
    """A flag that takes text."""
    return Flag(str, default, help_text)


def switch(help_text: str) -> Flag:
    """A flag that is on or off, by default off."""
    return Flag(bool, False, help_text)


DEFINITIONS: dict[str, Flag] = {
    # names
    "problem": text(None, "Name of the problem; --registry_help lists them. NAME_rev swaps source and target."),
    "hparams_set": text(None, "Name of the hparam set; --registry_help lists them."),
    "hparams": text("", "Changes to the hparam set: field=value,field=value. Example: batch_size=2048,num_heads=4"),
    "registry_help": switch("Print every problem and hparam set, one per line, and exit."),
    "t2t_usr_dir": text(None, "Folder of a Python package of yours to import; it registers problems and hparam sets."),
    "verbosity": text(
        "warning",
        "What TensorFlow may print: debug, info, warning or error. At warning its start-up messages are not shown.",
    ),
    # folders
    "data_dir": text(
        None,
        "Folder of the data that t2t-datagen makes, with a folder for each problem. By default: data; for a run that "
        "is decoded or reported on, where its data was in training.",
    ),
    "tmp_dir": text(None, "Folder of raw files: files you have are looked for here, and downloads are kept here."),
    "output_dir": text(
        None,
        "Folder of a run: hparams, vocabulary, checkpoints, events. By default: runs/PROBLEM-HPARAMS_SET, named after "
        "--problem and --hparams_set. t2t-table3 puts many runs in it, and has no default.",
    ),
    # making data
    "generate_data": switch("Make the data first, as t2t-datagen does; complete data is not made again."),
    "num_processes": Flag(int, None, "Processes that encode text; by default one for each CPU core."),
    # training
    **{
        field.name: Flag(int, None if field.default is dataclasses.MISSING else field.default, field.metadata["help"])
        for field in dataclasses.fields(LoopConfig)
    },
    "eval_bleu": switch(
        "Also decode dev at each evaluation and report BLEU, or F1 for parsing, and choose the best checkpoint by it."
    ),
    "worker_gpu": Flag(int, None, "Number of GPUs to use; by default all, or the CPU if there are none."),
    "warm_start_from": text(
        None,
        "Run folder or checkpoint whose weights a new run starts from. Without --hparams_set the new run also has its "
        "hparams, with the learning rate lowered to where that run stopped.",
    ),
    "rows": Flag(list, None, "Rows and groups (A to E) of Table 3, comma-separated; by default all but big."),
    "seeds": Flag(list, "1", "Train each row once with each of these seeds, comma-separated."),
    "dry_run": switch("Train no row; print sizes and costs, and hours estimated from a few timed steps."),
    # importing
    "t2t_checkpoint": text(None, "tensor2tensor's run folder, or one of its checkpoints, DIR/model.ckpt-N."),
    "t2t_vocab": Flag(list, None, "Its .subwords vocabulary; or the source's and the target's, comma-separated."),
    "t2t_hparams": text(None, "Its hparams.json; by default the one in the checkpoint's folder, or in the one above."),
    "target_space_id": Flag(
        int, None, "Row of the target space embedding; by default the one seen to be trained, or 0."
    ),
    # decoding
    "checkpoint_path": text(None, "Checkpoint to use, RUN/model.ckpt-N; by default the newest of the run."),
    "decode_hparams": text("", "How to decode: beam_size=4,alpha=0.6,extra_length=50,batch_size=...,return_beams=..."),
    "decode_from_file": text(None, "Text to translate, one sentence per line."),
    "decode_to_file": text(None, "File for the translations; by default the terminal."),
    "decode_interactive": switch("Translate what is typed, line by line."),
    "score_file": text(None, "File of source TAB target lines; prints each target's log-probability."),
    "split": text(None, "Decode and score this split of the run's data: dev or test."),
    "n": Flag(int, 5, "How many of the newest checkpoints to average."),
    # scoring
    "translation": text(None, "File of translations, one per line."),
    "reference": text(None, "File of reference translations, one per line."),
    "tokenize": text("13a", "How sacrebleu splits text into tokens: 13a, intl, zh, char or none."),
    "lowercase": switch("Compute sacrebleu's BLEU without regard to case."),
    "compound_split": switch("Also print the paper's BLEU: tokenised as German, compounds split, with case."),
    "gold": text(None, "File of gold parse trees, one per line."),
    "predicted": text(None, "File of predicted parse trees, one per line; blank for a sentence without a parse."),
    "sentences": switch("Also print EVALB's table, with the scores of each sentence."),
    "prm": text(None, "Parameter file of EVALB; by default the parameters of its COLLINS.prm."),
    # attention
    "source": text(None, "The sentence whose attention is shown."),
    "target": text(None, "Its translation; by default the model's own."),
    "kind": Flag(list, None, "encoder, decoder or cross, or several of them, comma-separated; by default all."),
    "layers": Flag(list, None, "Layers, counted from 1; by default all on a page, and the last but one in a picture."),
    "heads": Flag(list, None, "Heads, counted from 1; by default all."),
    "word": text(None, "Draw the attention of this word as lines, instead of heat maps."),
    "picture": text(None, "File of the picture, ending in .png or .svg."),
    "html": text(None, "File of the page."),
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
        flags[option] = Flag(kind, None, names + _help([problems[problem] for problem in having], option) + shown)
    return flags


def _help(classes: list[type], option: str) -> str:
    """The help text of an option that problems have, which a class may have inherited."""
    bases = (base for cls in classes for base in cls.__mro__)
    fields = filter(None, (getattr(base, "__dataclass_fields__", {}).get(option) for base in bases))
    texts = (field.metadata["help"] for field in fields if "help" in field.metadata)
    return next(texts, f"Explained in {classes[0].__module__}.{classes[0].__name__}.")
