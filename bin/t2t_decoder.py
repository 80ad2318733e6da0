"""t2t-decoder translates, or parses, with a trained run, by beam search.

A split of the data that the run was trained on, scored with sacrebleu:
  t2t-decoder --problem=wmt_ende --hparams_set=transformer_big --split=test
RUN/decodes/NAME.txt has the output, NAME.src the sources and NAME.ref the references
line by line (a parser's gold trees are NAME.gold), for t2t-bleu and t2t-evalb;
NAME.json has the scores, for t2t-report. NAME is SPLIT.STEP, with the checkpoint, if it
is not among the run's newest, and all options that are not the default:
test.9000.averaged.beam_size=8. --metrics, --tokenize and the flags beside them choose
other scores, and --reference adds references.

A file, one sentence per line; the output has a line for each, blank for blank lines and
those of more than 2,048 tokens, which are reported:
  t2t-decoder --output_dir=RUN --decode_from_file=in.txt --decode_to_file=out.txt
What is done is kept in the file out.txt.part. After an interruption the same
command decodes what is left, and out.txt is what it would have been. If lines of in.txt
were changed meanwhile, those around them are decoded again; with another checkpoint or
option, all are. So does --split.

A large file on many machines, with Apache Beam (pip install 't2tlite[beam]') and
folders that all of them see; the output is the same, and the same command resumes:
  t2t-decoder --output_dir=RUN --decode_from_file=in.txt --decode_to_file=out.txt \\
      --beam_runner=FlinkRunner --beam_options='--flink_master=HOST:8081 \\
      --environment_type=EXTERNAL --environment_config=localhost:50000'

Lines that are typed or arrive through a pipe; each output is written as soon as it is
done, and nothing else:
  t2t-decoder --output_dir=RUN --decode_interactive
  cat in.txt | t2t-decoder --output_dir=RUN --decode_from_file=- > out.txt

The scores of given translations, from a file of lines "source TAB target", as lines
"log_prob TAB score":
  t2t-decoder --output_dir=RUN --score_file=pairs.tsv

--decode_hparams=beam_size=4,alpha=0.6,return_beams=3 changes how it decodes; the flag's
help below lists all options. --prefixes reads lines "source TAB beginning of the
translation". --glossary=FILE names terms, a line "source TAB target" for each:
translations of sentences with the source have the target.

A translation has two values: log_prob, the natural log-probability of its tokens and
end-of-sentence token (EOS); and score = log_prob / ((5 + tokens) / 6)^alpha, EOS
counted, by which translations are ordered. --output_format
  text     the best translation of each line
  nbest    "line ||| translation ||| log_prob= -0.54 ||| -0.32", lines counted from 0
           and the score last, as in Moses
  jsonl    {"source": ..., "hypotheses": [{"text", "log_prob", "score", "tokens"}, ...]}
           for each line; --alignments adds "alignment": "0-0 2-1", pairs of source and
           target word from cross-attention
docs/decoding.md explains all of this.

Several runs of one problem and vocabulary, such as three that differ in --random_seed,
decode as an ensemble: in one search, the probability of each token is the mean of
theirs. It takes as long as all of them together:
  t2t-decoder --output_dir=RUN1,RUN2,RUN3 --split=test
--checkpoint_path=best, averaged or a step then chooses in each run. The files of a
split are in RUN1/decodes.

--engine=ctranslate2 decodes with CTranslate2 instead of TensorFlow, by tensor2tensor's
rules too; sampling, min_length, no_repeat_ngram_size, --prefixes, --glossary and
--alignments need TensorFlow.

A run that t2t-import made decodes as tensor2tensor's decoder did (t2t_rules=true):
batch_size counts sentences, extra_length is counted from the longest source of a batch,
a hypothesis without an EOS has its log-probability as score, a parser's output stays a
sequence, and --score_file gives the mean negative log-probability of a token. Since a
translation depends on its batch, a file, a split, or standard input (except with
--decode_interactive) is decoded as a whole, and again from its first line.

A run of a parsing problem takes words and punctuation separated by spaces, and gives
bracketed trees, one per line; --raw_text separates the punctuation itself. --split
scores trees as EVALB does. The repairs that made trees of the decoded sequences are
counted.
"""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from t2tlite.bin import groups
from t2tlite.bin.command import command, load_tensorflow
from t2tlite.bin.flags import flags_of, require
from t2tlite.checked_fields import checked_field, optional_field
from t2tlite.console import say
from t2tlite.decoding.engine import ALIGNMENTS, GLOSSARY, PREFIXES, TENSORFLOW
from t2tlite.decoding.glossary import open_glossary
from t2tlite.files import atomic_file, same_file, text_files
from t2tlite.files.compression import STANDARD_INPUT
from t2tlite.machine import decoding_threads
from t2tlite.metrics.corpus_metrics import OF_TASK, MetricOptions, Scoring
from t2tlite.programs.bulk import decode_file, decode_split, jobs, part
from t2tlite.programs.runs import load, translator
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.task import open_task

FILE = "decode_from_file"
SPLIT = "split"
LINES = (FILE, "decode_interactive")
PAIRS = "score_file"
INPUTS = (FILE, SPLIT, "decode_interactive", PAIRS)
# a flag, or one value of it, and the flags of which it needs one
GOES_WITH = (
    ("output_format", (*LINES, PAIRS)),
    ("output_format=nbest", LINES),
    ("decode_to_file=-", (*LINES, PAIRS)),
    ("alignments", LINES),
    ("alignments", ("output_format=jsonl",)),
    ("prefixes", LINES),
    ("glossary", LINES),
    ("raw_text", LINES),
    ("beam_runner", (FILE,)),
    *((name, (SPLIT,)) for name in ("metrics", "reference", *flags_of(MetricOptions))),
)


@dataclasses.dataclass(frozen=True)
class DecoderFlags(
    MetricOptions,
    groups.TensorFlowFlags,
    groups.BeamFlags,
    groups.DataFlags,
    groups.EngineFlags,
    groups.RunFlags,
):
    """What is decoded or scored, with which run, and where the output goes."""

    output_dir: str | None = optional_field(
        str,
        "Folder of a run, by default runs/PROBLEM-HPARAMS_SET; or of several,"
        " comma-separated, which decode as an ensemble.",
    )
    decode_from_file: str | None = optional_field(
        str, "Text to translate, one sentence per line; - for standard input."
    )
    decode_to_file: str | None = optional_field(
        str,
        "File for the translations (also .gz, .xz, .bz2); - or none: standard output.",
    )
    split: str | None = optional_field(
        str, "Decode and score this split of the run's data: dev or test."
    )
    decode_interactive: bool = checked_field(
        False, "Translate lines as they are typed, or as they arrive through a pipe."
    )
    score_file: str | None = optional_field(
        str,
        "File of lines source TAB target, or -; prints log_prob TAB score of each.",
    )
    output_format: str | None = optional_field(
        str,
        "text (the default), nbest (the default if return_beams is above 1) or jsonl.",
        choices=("text", "nbest", "jsonl"),
    )
    alignments: bool = checked_field(False, "Add word alignments to jsonl.")
    prefixes: bool = checked_field(
        False, "Read lines source TAB prefix, with which the translation begins."
    )
    raw_text: bool = checked_field(
        False, "Of a parser: separate punctuation from words, as the Penn Treebank."
    )
    metrics: tuple[str, ...] = checked_field(
        (),
        "Metrics of --split, by default bleu,chrf,ter, or those of the problem's task;"
        " also exact_match, token_accuracy, wer, per.",
    )
    reference: tuple[str, ...] = checked_field(
        (), "File of further references for --split; can be given several times."
    )

    def __post_init__(self) -> None:
        """Raises ValueError unless exactly one input is given, and for flags that do
        not go together.
        """
        super().__post_init__()
        given = [word.removeprefix("--") for word in self.words()]
        given += [word.partition("=")[0] for word in given]
        inputs = [name for name in INPUTS if name in given]
        if len(inputs) != 1:
            raise ValueError(
                f"One of --{', --'.join(INPUTS)} must be given. Received:"
                f" {' and '.join(inputs) or 'none'}."
            )
        for name, needed in GOES_WITH:
            if name in given and not set(needed) & set(given):
                raise ValueError(f"--{name} goes with --{' or --'.join(needed)}.")
        if self.raw_text and self.prefixes:
            raise ValueError("--raw_text does not go with --prefixes.")
        if self.glossary == (self.decode_from_file or "-"):
            raise ValueError("--glossary needs another file than the input.")
        if self.beam_runner:
            require(decode_to_file=self.target)

    @property
    def target(self) -> str | None:
        """The path of --decode_to_file, or None for standard output."""
        return None if self.decode_to_file in ("", "-") else self.decode_to_file

    def scoring(self, sentences: int) -> Scoring:
        """Returns how a split of so many sentences is scored. Raises ValueError if a
        reference has another number of lines.
        """
        references = []
        counts = {f"the split {self.split}": sentences}
        for file in self.reference:
            lines = tuple(text_files.read_lines(file))
            references.append(lines)
            counts[file] = len(lines)
        text_files.check_line_counts(
            counts, "A reference has a line for each sentence of the split."
        )
        options = MetricOptions(**self.values_of(MetricOptions))
        return Scoring(self.metrics, options, tuple(references))


@command
def main(flags: DecoderFlags) -> None:
    """Loads the run, and decodes or scores with it.

    All that can be wrong is checked before TensorFlow is loaded: flags, the run, the
    input, the checkpoint, and whether the output can be written.
    """
    folders = groups.run_folders(flags)
    folder = folders[0]
    folder.hparams()  # raises if there is no run
    pipeline = groups.beam_pipeline(flags)
    if pipeline:
        pipeline.check()
    if len(folders) > 1:
        if pipeline:
            raise ValueError("--beam_runner decodes with one run.")
        load.check_ensemble(folders, flags.checkpoint_path, flags.engine)
    manifest = folder.manifest()
    if flags.problem and flags.problem != manifest.name:
        raise ValueError(
            f"--problem must be the run's, {manifest.name}. Received: {flags.problem}."
        )
    options = translator.decode_options(manifest, flags.decode_hparams)
    features = PREFIXES, ALIGNMENTS, GLOSSARY
    used = [name for name in features if getattr(flags, name)]
    load.check_engine_options(flags.engine, options, *used)
    glossary = open_glossary(flags.glossary)
    _check_files(flags, folders)
    scoring = OF_TASK
    if flags.split:
        dataset = load.run_dataset(folder, flags.data_dir)
        decode_split.check_split(dataset, flags.split)
        scoring = flags.scoring(dataset.manifest.splits[flags.split].pairs)
        open_task(manifest.task, manifest.options).scored_by(scoring)
    if flags.engine == TENSORFLOW:
        load_tensorflow()  # other engines start sooner without it
    model = load.load(
        tuple(run.path for run in folders),
        flags.checkpoint_path,
        flags.engine,
        flags.quantization,
        threads=decoding_threads(),
    )
    for note in model.notes:
        say(note)
    line_format = jobs.LineFormat(
        flags.output_format or "",
        flags.alignments,
        flags.prefixes,
        flags.raw_text,
        glossary,
    )
    kind = jobs.ScoreJob if flags.score_file else jobs.DecodeJob
    job = kind(model, options, line_format)
    target = flags.decode_to_file or ""
    if flags.split:
        decode_split.decode_split(job, folder, dataset, flags.split, target, scoring)
    elif pipeline:
        files = flags.decode_from_file or "", target
        say(decode_file.decode_by_workers(job, folder.path, pipeline, *files))
    else:
        _decode_lines(flags, job)


def _decode_lines(flags: DecoderFlags, job: jobs.DecodeJob) -> None:
    """Decodes or scores a file or a stream. In a pipe, the speed is not printed."""
    source = Path(flags.decode_from_file or flags.score_file or STANDARD_INPUT)
    is_typed = source == STANDARD_INPUT and sys.stdin.isatty()
    if is_typed:
        say("Type sentences; Ctrl-D ends.")
    target = flags.target
    path = atomic_file.replaceable(target) if target else None
    if path:
        summary = decode_file.decode_file(job, source, path)
    else:
        interactive = flags.decode_interactive
        summary = decode_file.decode_stream(job, source, target, interactive)
    is_piped = source == STANDARD_INPUT and not is_typed
    if is_piped or not (target or sys.stdout.isatty()):
        _, _, summary = summary.partition("\n")  # what the outputs lack
    if summary:
        say(summary)


def _check_files(flags: DecoderFlags, folders: Sequence[RunFolder]) -> None:
    """Checks input and output, which would otherwise fail after hours of work: whether
    they can be read and written, and that the output is neither an input nor a file of
    a run.
    """
    source = flags.decode_from_file or flags.score_file
    if source and text_files.check_file(source).is_file():
        next(text_files.read_lines(source), None)  # finds archives and other encodings
    inputs = flags.files("decode_from_file", "score_file", "glossary", "reference")
    inputs.append(("standard input", same_file.STANDARD_INPUT_NUMBER))
    inputs += load.run_files(folders, flags.checkpoint_path)
    target = flags.target
    outputs = flags.files("decode_to_file")
    if target is None:
        outputs = [("standard output", same_file.STANDARD_OUTPUT_NUMBER)]
    elif replaced := atomic_file.replaceable(target):
        unfinished = part.part_file(replaced)
        outputs.append((f"{unfinished} (of --decode_to_file={target})", unfinished))
    same_file.check_not_overwritten(outputs, inputs)
    if target:
        atomic_file.check_writable(target)


if __name__ == "__main__":
    raise SystemExit(main())
