"""The definition of every command-line flag: name, type, default, help text.

Flags that fill a dataclass are derived from its fields: the training loop's from
`LoopConfig`, the options of problems from the registered problems, those of the user's
package (--t2t_usr_dir) included.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from t2tlite import registry
from t2tlite.checked_fields import CheckedFields, default_of, facts_of
from t2tlite.config import DecodeHParams
from t2tlite.training.loop_config import LoopConfig

DATA_DIR = "data"  # --data_dir if it is not given
RUNS_DIR = "runs"  # holds the runs whose --output_dir is not given
# among the names of a command's flags: --output_dir, which can be given several times
RUNS = "runs"
# among the names of a command's flags: the options of all problems
PROBLEM_OPTIONS = "problem_options"


class Flag(NamedTuple):
    """A command-line flag."""

    help: str
    # or int, float, bool, list (comma-separated) or tuple (given several times)
    kind: type = str
    default: Any = None  # the value if the flag is not given


def field_flags(cls: type[CheckedFields]) -> dict[str, Flag]:
    """A flag of the same name for each field of a class, with its meaning as help
    text.
    """
    flags = {}
    for field in dataclasses.fields(cls):
        facts, default = facts_of(field), default_of(field)
        if facts.kind is tuple:
            flags[field.name] = Flag(
                facts.meaning, list, ",".join(default or ()) or None
            )
        else:
            flags[field.name] = Flag(facts.meaning, facts.kind, default)
    return flags


DECODE_HELP = (
    "How to decode: field=value,... Parsers have other defaults.\n"
    + "\n".join(
        f"{field.name}={field.default}: {facts_of(field).meaning}"
        for field in dataclasses.fields(DecodeHParams)
    )
)


class Args(SimpleNamespace):
    """The flag values of a call, by name: those of the flags that its command takes.

    An annotation is the type of the value, the help text, and the default if that is
    not None (of a bool False). Flags without `| None` and default are None until
    `flags.require` has checked that they are given.
    """

    options: dict[str, Any]  # the problem options that were given

    # names
    problem: Annotated[
        str | None,
        "Name of the problem (--registry_help). NAME_rev swaps source and target.",
    ]
    hparams_set: Annotated[str | None, "Name of the hparam set (--registry_help)."]
    hparams: Annotated[
        str, "Changes to the hparam set, such as batch_size=2048,num_heads=4", ""
    ]
    registry_help: Annotated[
        bool, "Print every problem and hparam set, one per line, and exit."
    ]
    show_hparams: Annotated[
        str | None,
        "Print each field of this set, changed by --hparams, with meaning and base's"
        " value, and exit.",
    ]
    t2t_usr_dir: Annotated[
        str | None, "Folder of a Python package with problems, tasks and hparam sets."
    ]
    verbosity: Annotated[
        str,
        "TensorFlow's log level: debug or info, which show start-up messages; warning"
        " or error.",
        "warning",
    ]
    # folders
    data_dir: Annotated[
        str | None,
        "Folder of t2t-datagen's data, with a folder for each problem. By default:"
        " data; to decode, average or report on a run, where its data was during"
        " training.",
    ]
    tmp_dir: Annotated[
        str | None, "Folder of raw files, in which downloads are kept too."
    ]
    output_dir: Annotated[
        str | None,
        "Folder of a run, by default runs/PROBLEM-HPARAMS_SET, named after --problem"
        " and --hparams_set. t2t-table3 puts many runs in it, and has no default.",
    ]
    # making data
    generate_data: Annotated[
        bool, "Make the data first, as t2t-datagen does, unless it is complete."
    ]
    num_processes: Annotated[
        int | None, "Processes that encode text; by default one per CPU core."
    ]
    beam_runner: Annotated[
        str | None,
        "Runner of an Apache Beam pipeline whose workers do the work: DirectRunner,"
        " DaskRunner, DataflowRunner, FlinkRunner, SparkRunner, ... They must see the"
        " folders under the same paths as this machine. Needs pip install"
        " 't2tlite[beam]', or 't2tlite[dask]' for Dask.",
    ]
    beam_options: Annotated[
        str, "Options of Apache Beam, in quotes, such as '--direct_num_workers=8'", ""
    ]
    # training
    global_batch_tokens: Annotated[
        int | None,
        "Tokens per optimizer step on all GPUs together, padding counted, of the longer"
        " side: 25000 is the paper's. Then any number of GPUs trains on the same"
        " batches; batch_size is the most that a GPU processes at a time, and"
        " accumulate_steps is derived. Sets the hparam of this name. By default"
        " batch_size x accumulate_steps x GPUs.",
    ]
    eval_bleu: Annotated[
        bool,
        "Decode dev at each evaluation, and choose the best checkpoint by BLEU (or"
        " F1).",
    ]
    worker_gpu: Annotated[
        int | None,
        "Number of GPUs to use; by default all, or the CPU if there are none.",
    ]
    cluster_resolver: Annotated[
        str,
        "Where a worker reads the list of workers: tf_config, TensorFlow's variable"
        " TF_CONFIG, if it is set; slurm, the tasks of the job step that srun started.",
        "tf_config",
    ]
    warm_start_from: Annotated[
        str | None,
        "Run folder or checkpoint whose weights a new run starts from; a resumed run"
        " does not need it. Without --hparams_set the new run also uses its hparams,"
        " with the learning rate lowered to where that run stopped.",
    ]
    rows: Annotated[
        list[str] | None,
        "Rows and groups (A to E), comma-separated; by default all but big.",
    ]
    seeds: Annotated[
        list[str], "Train each row once with each of these seeds, comma-separated.", "1"
    ]
    dry_run: Annotated[
        bool, "Do not train; print the sizes and costs of the rows by formula."
    ]
    time: Annotated[
        bool, "With --dry_run: also time a few steps of each row, and estimate hours."
    ]
    # importing
    t2t_checkpoint: Annotated[
        str, "tensor2tensor's run folder, or one of its checkpoints, DIR/model.ckpt-N."
    ]
    t2t_vocab: Annotated[
        list[str],
        "Its .subwords vocabulary, or source's and target's, comma-separated.",
    ]
    t2t_hparams: Annotated[
        str | None,
        "Its hparams.json; by default beside the checkpoint, or in the folder above.",
    ]
    target_space_id: Annotated[
        int | None,
        "Row of the target space embedding; by default the one trained, or 0.",
    ]
    # decoding
    checkpoint_path: Annotated[
        str | None,
        "Checkpoint of the run: newest (the default), best (on dev), averaged, or a"
        " step; or the path of a checkpoint, DIR/model.ckpt-N or ./NAME.",
    ]
    decode_hparams: Annotated[str, DECODE_HELP, ""]
    engine: Annotated[
        str,
        "Decoding engine: tensorflow, or ctranslate2, which is faster on CPUs, starts"
        " sooner, and needs pip install 't2tlite[ctranslate2]'. In float32, its greedy"
        " translations and log-probabilities equal tensorflow's, and so do nearly all"
        " beam-search translations. The model is converted once, into RUN/ctranslate2.",
        "tensorflow",
    ]
    quantization: Annotated[
        str | None,
        "How CTranslate2 stores the weights: float32 (the default), as they were"
        " trained; int8, which is smaller and faster and changes some translations; or"
        " float16, bfloat16, int16, int8_float32, int8_float16, int8_bfloat16.",
    ]
    decode_from_file: Annotated[
        str | None, "Text to translate, one sentence per line; - for standard input."
    ]
    decode_to_file: Annotated[
        str | None,
        "File for the translations (also .gz, .xz, .bz2); by default, or -, standard"
        " output.",
    ]
    decode_interactive: Annotated[
        bool, "Translate lines as they are typed, or as they arrive through a pipe."
    ]
    score_file: Annotated[
        str | None,
        "File of lines source TAB target, or -; prints log_prob TAB score of each.",
    ]
    output_format: Annotated[
        str | None,
        "text, the best translation of each line; nbest, the return_beams best with"
        " their scores; or jsonl, an object for each line. By default text, or nbest if"
        " return_beams is above 1.",
    ]
    alignments: Annotated[bool, "Add word alignments to jsonl."]
    prefixes: Annotated[
        bool, "Read lines source TAB prefix; the translation begins with the prefix."
    ]
    raw_text: Annotated[
        bool,
        "Of a parser: separate punctuation from words first, as the Penn Treebank"
        " does.",
    ]
    split: Annotated[
        str | None, "Decode and score this split of the run's data: dev or test."
    ]
    n: Annotated[
        int | None,
        "Average this many newest checkpoints at most; by default 5, or all steps"
        " given.",
    ]
    from_step: Annotated[
        int | None, "Average only checkpoints of this step and later ones."
    ]
    to_step: Annotated[
        int | None, "Average only checkpoints of this step and earlier ones."
    ]
    # exporting
    export_dir: Annotated[str, "Folder of the export, which is created."]
    format: Annotated[str, "Format of the export: saved_model, keras or ctranslate2."]
    overwrite: Annotated[
        bool, "Replace an export in --export_dir; nothing else is ever replaced."
    ]
    # scoring
    translation: Annotated[str, "File of translations, one per line."]
    reference: Annotated[
        tuple[str, ...],
        "File of reference translations, one per line; can be given several times, for"
        " several references of each sentence.",
    ]
    metrics: Annotated[
        list[str], "Metrics to compute, comma-separated: bleu, chrf, ter.", "bleu"
    ]
    compare: Annotated[
        str | None,
        "Translations of another system; tests whether the two differ significantly.",
    ]
    seed: Annotated[int, "Random seed of the resampling of --compare.", 12345]
    tokenize: Annotated[
        str, "sacrebleu's tokenisation for BLEU: 13a, intl, zh, char or none.", "13a"
    ]
    lowercase: Annotated[bool, "Ignore case in BLEU and chrF, as TER always does."]
    compound_split: Annotated[
        bool,
        "Also print the paper's BLEU: tokenised as German, compounds split, cased.",
    ]
    gold: Annotated[str, "File of gold parse trees, one per line."]
    predicted: Annotated[
        str, "File of predicted parse trees, one per line; a sentence may have none."
    ]
    sentences: Annotated[
        bool, "Also print EVALB's table, with the scores of each sentence."
    ]
    prm: Annotated[
        str | None,
        "Parameter file of EVALB; by default the parameters of its COLLINS.prm.",
    ]
    # attention
    source: Annotated[str, "The sentence whose attention is shown."]
    target: Annotated[str | None, "Its translation; by default the model's own."]
    kind: Annotated[
        list[str] | None,
        "Kinds, comma-separated, of encoder, decoder, cross; by default all.",
    ]
    layers: Annotated[list[str] | None, "Layers, counted from 1; by default all."]
    heads: Annotated[list[str] | None, "Heads, counted from 1; by default all."]
    html: Annotated[str | None, "File of the page."]
    # serving
    languages: Annotated[
        list[str] | None,
        "Language pairs in the order of --output_dir: en-de,de-en; by default those"
        " recorded. One run can serve several by tags, which are put before each"
        " source: 'en-de:<2de>,en-fr:<2fr>'.",
    ]


def _flag(annotation: object) -> Flag:
    """The flag of an annotation of `Args`."""
    value_type, meaning, *default = get_args(annotation)
    if isinstance(value_type, UnionType):
        value_type = get_args(value_type)[0]
    kind = get_origin(value_type) or value_type
    return Flag(meaning, kind, *(default or ([False] if kind is bool else [])))


DEFINITIONS: dict[str, Flag] = {
    **{
        name: _flag(hint)
        for name, hint in get_type_hints(Args, include_extras=True).items()
        if name != "options"
    },
    **field_flags(LoopConfig),
    PROBLEM_OPTIONS: Flag("The options of all problems."),
    RUNS: Flag("Folder of a run to serve; can be given several times.", tuple),
}


def problem_flags() -> dict[str, Flag]:
    """A flag for each option of the registered problems; its value is None if it is not
    given.

    The help text names the problems that have the option unless all have it, and states
    the default unless it differs between problems.
    """
    problems = registry.problem_classes()
    # option -> problem -> field
    fields: dict[str, dict[str, dataclasses.Field[Any]]] = {}
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
        flags[option] = Flag(
            names + _help([problems[problem] for problem in having], option) + shown,
            kind,
        )
    return flags


def _help(classes: list[type], option: str) -> str:
    """The help text of an option, which a problem class may inherit from a base
    class.
    """
    bases = (base for cls in classes for base in cls.__mro__)
    fields = filter(
        None, (getattr(base, "__dataclass_fields__", {}).get(option) for base in bases)
    )
    texts = filter(None, (facts_of(field).meaning for field in fields))
    return next(texts, f"Explained in {classes[0].__module__}.{classes[0].__name__}.")
