"""Every command-line flag, once, and the frame in which every command runs.

A command names the flags it takes:

    FLAGS = ("problem", "data_dir", "tmp_dir")

    def run(args: flags.Args) -> None: ...

    def main(argv=None):
        return flags.run_command(__doc__, FLAGS, run, argv)

Each call of `run_command` has flag values of its own, so that several commands can run in one process (the tests do).
"""

from __future__ import annotations

import os
import signal
import sys
import textwrap
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from absl import flags as absl_flags

from t2tlite.quiet import quiet_stderr

Args = SimpleNamespace  # the flag values of one call, by name

# name -> (type, default, help). A default of None means "not given"; a list is comma-separated.
DEFINITIONS: dict[str, tuple[type, Any, str]] = {
    # what to work on
    "problem": (str, None, "Name of the problem; --registry_help lists them. NAME_rev swaps source and target."),
    "hparams_set": (str, None, "Name of the hparam set; --registry_help lists them."),
    "hparams": (str, "", "Changes to the hparam set: field=value,field=value. Example: batch_size=2048,num_heads=4"),
    "registry_help": (bool, False, "Print every problem and hparam set, a line each, and exit."),
    "t2t_usr_dir": (
        str,
        None,
        "A Python package (folder) of your own to import, so that it registers its problems and hparam sets.",
    ),
    "verbosity": (
        str,
        "warning",
        "What TensorFlow may print: debug, info, warning or error. At warning, the default, "
        "its start-up messages stay off the terminal.",
    ),
    # folders
    "data_dir": (str, None, "Folder of the data that t2t-datagen makes; each problem has its own folder in it."),
    "tmp_dir": (str, None, "Folder of raw files: where downloads go, and where files you already have are looked for."),
    "output_dir": (
        str,
        None,
        "Folder of one run: hparams, vocabulary, checkpoints, events. t2t-trainer makes it, t2t-table3 many in one.",
    ),
    # making data
    "generate_data": (bool, False, "Make the data first, as t2t-datagen does; nothing happens where it is complete."),
    "num_processes": (int, None, "Processes that encode text; by default one for each processor core."),
    "vocab_size": (int, None, "Pieces in the vocabulary that source and target share; by default the problem's."),
    "vocab_type": (
        str,
        None,
        "Kind of vocabulary to learn: sentencepiece (the default) or subwords, tensor2tensor's, of about vocab_size.",
    ),
    "vocab_file": (
        list,
        None,
        "Vocabulary to use instead of learning one: a .model or .subwords file, or source's and target's, "
        "comma-separated. A run's is RUN/vocab.model or RUN/vocab.subwords.",
    ),
    "max_length": (
        int,
        None,
        "Drop training pairs with a side longer than this many tokens; 0, the default, keeps all.",
    ),
    "max_length_ratio": (
        float,
        None,
        "Drop training pairs with one side this many times longer than the other; 0, the default, keeps all.",
    ),
    "train_source": (list, None, "parallel_text: source files to train on, comma-separated; plain text or .gz."),
    "train_target": (list, None, "parallel_text: target files, line by line the translations of --train_source."),
    "dev_source": (list, None, "parallel_text: source file to evaluate on while training."),
    "dev_target": (list, None, "parallel_text: its translation."),
    "test_source": (list, None, "parallel_text: source file of the final test."),
    "test_target": (list, None, "parallel_text: its translation."),
    "source_language": (str, None, "parallel_text: language code of the source, such as en; for scoring only."),
    "target_language": (str, None, "parallel_text: language code of the target, such as de; for scoring only."),
    "train_size": (int, None, "grammar problems: number of training pairs."),
    "linearisation": (
        str,
        None,
        "Parsing problems, how trees are written: normalised (the default: parts of speech as XX), tags (as they are), "
        "words (instead of tags; suits few trees) or t2t (tensor2tensor's form).",
    ),
    "fragments": (int, None, "Parsing problems: constituents of each tree to train on besides; 0, the default: none."),
    "extra_trees": (list, None, "wsj_parsing_semi: files of automatically parsed trees to train on besides."),
    # training
    "train_steps": (int, None, "Optimizer steps to train in all; by default the hparam set's train_steps."),
    "eval_steps": (int, 0, "Batches in each evaluation on dev; 0 means all of dev."),
    "local_eval_frequency": (int, 1000, "Steps between evaluations on dev; 0 means only at the end."),
    "eval_bleu": (
        bool,
        False,
        "Also decode dev at each evaluation and report BLEU, or F1 for parsing; the best checkpoint is the best by it.",
    ),
    "early_stopping_evals": (int, 0, "Stop after this many evaluations without a better one; 0 means never."),
    "save_checkpoints_secs": (int, 600, "Seconds between checkpoints; one is also saved at each evaluation."),
    "keep_checkpoint_max": (int, 20, "Checkpoints kept, the newest; the best by dev is kept besides."),
    "worker_gpu": (int, None, "Number of GPUs to use; by default all there are, or the processor where there is none."),
    "random_seed": (int, 1, "Seed of initial weights, batch order and dropout."),
    "warm_start_from": (
        str,
        None,
        "Run folder or checkpoint whose weights a new run starts from; without --hparams_set with its hparams, the "
        "learning rate lowered to where that run stopped.",
    ),
    "rows": (list, None, "t2t-table3: rows and groups (A to E) of Table 3, comma-separated; by default all but big."),
    "seeds": (list, "1", "t2t-table3: run each row once for each of these seeds, comma-separated."),
    "dry_run": (bool, False, "t2t-table3: train no row; print sizes and costs, and hours by a few timed steps."),
    # importing
    "t2t_checkpoint": (str, None, "tensor2tensor's run folder, or one of its checkpoints, DIR/model.ckpt-N."),
    "t2t_vocab": (list, None, "Its .subwords vocabulary; or source's and target's, comma-separated."),
    "t2t_hparams": (str, None, "Its hparams.json; by default the one beside the checkpoint, or above."),
    "target_space_id": (
        int,
        None,
        "Row of the target space embedding; by default the one that training moved, where the checkpoint tells, or 0.",
    ),
    # decoding
    "checkpoint_path": (str, None, "Checkpoint to use, RUN/model.ckpt-N; by default the newest of the run."),
    "decode_hparams": (str, "", "How to decode: beam_size=4,alpha=0.6,extra_length=50,batch_size=...,return_beams=..."),
    "decode_from_file": (str, None, "Text to translate, one sentence a line."),
    "decode_to_file": (str, None, "Where translations go; by default the terminal."),
    "decode_interactive": (bool, False, "Translate what is typed, a line at a time."),
    "score_file": (str, None, "File of source TAB target lines; prints each target's log-probability."),
    "split": (str, None, "Translate and score this split of the run's data: dev or test."),
    "n": (int, 5, "How many of the newest checkpoints to average."),
    "translation": (str, None, "File of translations, one a line."),
    "reference": (str, None, "File of reference translations, one a line."),
    "tokenize": (str, "13a", "How sacrebleu splits text into tokens: 13a, intl, zh, char or none."),
    "lowercase": (bool, False, "sacrebleu's BLEU without regard to case."),
    "compound_split": (bool, False, "Also print the paper's BLEU: tokenised as German, compounds split, case kept."),
    "gold": (str, None, "File of gold parse trees, one a line."),
    "predicted": (str, None, "File of predicted parse trees, one a line; blank where there is no parse."),
    "sentences": (bool, False, "Print EVALB's table too, with the scores of each sentence."),
    "prm": (str, None, "Parameter file of EVALB; by default the parameters of its COLLINS.prm."),
    "source": (str, None, "t2t-attention: the sentence to look at."),
    "target": (str, None, "t2t-attention: its translation; by default the model's own."),
    "kind": (
        list,
        None,
        "t2t-attention: encoder, decoder, cross, or several of them, comma-separated; by default all.",
    ),
    "layers": (
        list,
        None,
        "t2t-attention: layers counted from 1; by default all on a page, the last but one elsewhere.",
    ),
    "heads": (list, None, "t2t-attention: heads counted from 1; by default all."),
    "word": (str, None, "t2t-attention: draw what this word looks at, instead of heat maps."),
    "picture": (str, None, "t2t-attention: file of the picture, ending in .png or .svg."),
    "html": (str, None, "t2t-attention: file of the page."),
}

# What each problem's options are called on the command line; given ones go to registry.problem(name, **options).
PROBLEM_OPTIONS = (
    *("vocab_size", "vocab_type", "vocab_file", "max_length", "max_length_ratio"),
    *("train_source", "train_target", "dev_source", "dev_target", "test_source", "test_target"),
    *("source_language", "target_language", "train_size", "linearisation", "fragments", "extra_trees"),
)


class CommandError(Exception):
    """A mistake of the user's that is neither a bad value nor a missing file, such as flags that do not go together."""


class Stopped(Exception):
    """A signal ended the command in good order."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number


def run_command(
    doc: str | None, names: Sequence[str], run: Callable[[Args], None], argv: Sequence[str] | None = None
) -> int:
    """Parses the command line, runs a command, and returns its exit status.

    A user's mistake (ValueError, OSError, CommandError) becomes one message without a traceback.

    Args:
        doc: the command's docstring: the first part of --help.
        names: the flags it takes, keys of DEFINITIONS.
        run: what to do with the flag values.
        argv: arguments without the program's name; by default those of this process.

    Returns:
        0; 1 after a mistake; 128 + the signal's number after a signal.
    """
    program = os.path.basename(sys.argv[0]) if argv is None else "t2tlite"
    argv = sys.argv[1:] if argv is None else list(argv)
    args = Args()
    try:
        if {"--help", "-h", "-help", "--helpfull", "-?"} & set(argv):
            print(help_text(doc, names), flush=True)
            return 0
        args = parse(names, argv)
        if "verbosity" in names and not getattr(args, "registry_help", False):
            import_tensorflow(args.verbosity)
        run(args)
    except absl_flags.Error as error:
        message = str(error).replace(" ?", "?")
        return _fail(program, f"{message}{'' if message[-1] in '.?' else '.'} --help lists the flags.")
    except BrokenPipeError:  # whoever reads the output, such as head, has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (ValueError, OSError, ArithmeticError, CommandError) as error:
        if getattr(args, "verbosity", "") == "debug":
            raise
        return _fail(program, str(error))
    except KeyboardInterrupt:
        return _fail(program, "Interrupted.", 128 + signal.SIGINT)
    except Stopped as stopped:
        return _fail(program, str(stopped), 128 + stopped.signal_number)
    return 0


def parse(names: Sequence[str], argv: Sequence[str]) -> Args:
    """Flag values by name.

    Raises:
        absl.flags.Error: an unknown flag (with a suggestion), a value of the wrong type, or an argument without `--`.
    """
    values = absl_flags.FlagValues()
    for name in names:
        kind, default, text = DEFINITIONS[name]
        define = {
            str: absl_flags.DEFINE_string,
            int: absl_flags.DEFINE_integer,
            float: absl_flags.DEFINE_float,
            bool: absl_flags.DEFINE_boolean,
            list: absl_flags.DEFINE_list,
        }[kind]
        define(name, default, text, flag_values=values)
    rest = values(["t2tlite", *argv])[1:]
    if rest:
        raise absl_flags.Error(f"Every argument is a flag, --name=value. Received: {' '.join(rest)!r}.")
    return Args(**{name: getattr(values, name) for name in names})


def help_text(doc: str | None, names: Sequence[str]) -> str:
    """The command's docstring, then its flags with their defaults."""
    lines = [(doc or "").strip(), "", "Flags:"]
    for name in names:
        kind, default, text = DEFINITIONS[name]
        shown = f"--[no]{name}" if kind is bool else f"--{name}"
        suffix = "" if default in (None, "", False) else f" (default: {default})"
        lines.append(f"  {shown}")
        lines += textwrap.wrap(text + suffix, width=100, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def problem_options(args: Args) -> dict[str, Any]:
    """The problem options given on the command line."""
    given = {name: getattr(args, name, None) for name in PROBLEM_OPTIONS}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in given.items() if v is not None}


def recorded(program: str, args: Args) -> str:
    """What a run's flags.txt notes: the flags that were given, or have a default, a line each."""
    given = {name: value for name, value in vars(args).items() if value not in (None, "") and value is not False}
    lines = [f"--{name}={','.join(v) if isinstance(v, list) else v}" for name, v in given.items()]
    return "\n".join([program, *lines]) + "\n"


def require(args: Args, *names: str) -> None:
    """Raises CommandError naming those of the flags that were not given."""
    missing = [f"--{name}" for name in names if getattr(args, name) in (None, "", [])]
    if missing:
        raise CommandError(f"{' and '.join(missing)} must be given. --help says what for.")


def import_tensorflow(verbosity: str) -> None:
    """Imports TensorFlow; its start-up messages reach the terminal only at verbosity info or debug.

    Raises:
        ValueError: `verbosity` is no such level.
    """
    levels = {"debug": "0", "info": "0", "warning": "3", "error": "3"}
    if verbosity not in levels:
        raise ValueError(f"--verbosity must be one of {', '.join(levels)}. Received: {verbosity!r}.")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = levels[verbosity]
    with quiet_stderr():
        import tensorflow as tf
    tf.get_logger().setLevel(verbosity.upper())


def import_user_package(path: str | None) -> None:
    """Imports the package in folder `path`, which registers problems and hparam sets (--t2t_usr_dir).

    Raises:
        ValueError: it is no folder with an `__init__.py`.
    """
    if path is None:
        return
    import importlib

    folder = os.path.abspath(os.path.expanduser(path))
    if not os.path.isfile(os.path.join(folder, "__init__.py")):
        raise ValueError(f"--t2t_usr_dir must be a folder with an __init__.py. Received: {path}.")
    sys.path.insert(0, os.path.dirname(folder))
    try:
        importlib.import_module(os.path.basename(folder))
    finally:
        sys.path.pop(0)


def _fail(program: str, message: str, status: int = 1) -> int:
    print(f"{program}: {message}", file=sys.stderr)
    return status
