"""t2t-decoder translates, or parses, with a trained run, by beam search.

A split of the data that the run was trained on, scored with sacrebleu:
  t2t-decoder --problem=wmt_ende --hparams_set=transformer_big --split=test
RUN/decodes/NAME.txt has the output, NAME.src the sources and NAME.ref the references
line by line (a parser's gold trees are NAME.gold), for t2t-bleu and t2t-evalb;
NAME.json has the scores, for t2t-report. NAME is SPLIT.STEP, with the checkpoint, if it
is not among the run's newest, and all options that are not the default:
test.9000.averaged.beam_size=8.

A file, one sentence per line; the output has a line for each, blank for blank lines:
  t2t-decoder --output_dir=RUN --decode_from_file=in.txt --decode_to_file=out.txt
What is done is kept in the folder out.txt.windows. After an interruption the same
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
translation".

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

--engine=ctranslate2 decodes with CTranslate2 instead of TensorFlow, by tensor2tensor's
rules too; sampling, min_length, no_repeat_ngram_size, --prefixes and --alignments need
TensorFlow.

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

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2tlite.bin import check_files, flags
from t2tlite.console import say
from t2tlite.files.atomic_file import check_writable, replaceable
from t2tlite.files.same_file import (
    STANDARD_INPUT_NUMBER,
    STANDARD_OUTPUT_NUMBER,
    NamedFile,
    check_not_overwritten,
)
from t2tlite.files.text_files import STANDARD_INPUT, check_file, read_lines

if TYPE_CHECKING:
    from t2tlite.config import DecodeHParams
    from t2tlite.data.beam_pipeline import Pipeline
    from t2tlite.data.dataset import Dataset
    from t2tlite.programs.bulk.jobs import DecodeJob, LineFormat
    from t2tlite.run_folder import RunFolder

MODES = ("decode_from_file", "split", "decode_interactive", "score_file")


class Work(NamedTuple):
    """What is to be done."""

    folder: RunFolder
    line_format: LineFormat
    options: DecodeHParams
    pipeline: Pipeline | None
    dataset: Dataset | None  # of --split


def work_of(args: flags.Args) -> Work:
    """What the flags ask for. Raises what would otherwise be raised after TensorFlow is
    loaded or after hours of work: for wrong flags, a missing run, split, file or
    checkpoint, or an output that cannot be written.
    """
    from t2tlite.decoding.engine import ALIGNMENTS, PREFIXES
    from t2tlite.programs.bulk.decode_split import check_split
    from t2tlite.programs.bulk.jobs import LineFormat
    from t2tlite.programs.runs import load
    from t2tlite.programs.runs.translator import decode_options

    folder = flags.run_folder(args)
    _check_flags(args)
    line_format = LineFormat(
        args.output_format or "", args.alignments, args.prefixes, args.raw_text
    )
    folder.hparams()  # raises if there is no run
    options = decode_options(folder.manifest(), args.decode_hparams)
    features = [name for name in (PREFIXES, ALIGNMENTS) if getattr(args, name)]
    # before a model is converted for the engine
    load.check_engine_options(args.engine, options, *features)
    pipeline = flags.pipeline(args)
    _check_before_work(args, folder, pipeline)
    dataset = None
    if args.split:
        data_dir = Path(args.data_dir) if args.data_dir else None
        dataset = load.run_dataset(folder, data_dir)
        check_split(dataset, args.split)
    return Work(folder, line_format, options, pipeline, dataset)


@flags.command(
    __doc__,
    "problem hparams_set output_dir decode_from_file decode_to_file split"
    " decode_interactive score_file",
    "output_format alignments prefixes raw_text decode_hparams checkpoint_path engine"
    " quantization",
    "data_dir beam_runner beam_options t2t_usr_dir verbosity",
    check=work_of,
)
def main(args: flags.Args) -> None:
    """Loads the run, and decodes or scores with it."""
    from t2tlite.programs.bulk import decode_pipeline, decode_split, jobs

    folder, line_format, options, pipeline, dataset = work_of(args)
    model = flags.load_run(folder, args.checkpoint_path, args.engine, args.quantization)
    if args.score_file:
        return _decode_lines(
            args, jobs.ScoreJob(model, options, line_format), args.score_file
        )
    job = jobs.DecodeJob(model, options, line_format)
    if args.split and dataset is not None:
        decode_split.decode_split(job, folder, dataset, args.split, args.decode_to_file)
    elif pipeline and args.decode_from_file and args.decode_to_file:
        work = folder.path, pipeline, args.decode_from_file, args.decode_to_file
        say(decode_pipeline.decode_by_workers(job, *work))
    elif (
        args.decode_interactive
        and not args.decode_to_file
        and sys.stdin.isatty()
        and sys.stdout.isatty()
    ):
        _decode_typed(job)
    else:
        _decode_lines(args, job, args.decode_from_file or STANDARD_INPUT)


def _decode_lines(args: flags.Args, job: DecodeJob, source: str | Path) -> None:
    """Decodes or scores a file or a stream; a program in a pipe reports nothing."""
    from t2tlite.programs.bulk.decode_file import decode_file, decode_stream

    target = _target(args)
    path = replaceable(target) if target else None
    if path is None:
        summary = decode_stream(job, source, target, args.decode_interactive)
    else:
        summary = decode_file(job, source, path)
    is_piped = Path(source) == STANDARD_INPUT and not sys.stdin.isatty()
    if not is_piped and (target or sys.stdout.isatty()):
        say(summary)


def _decode_typed(job: DecodeJob) -> None:
    from t2tlite.programs.bulk.windows import Window

    print("Type a sentence; an empty line or Ctrl-D ends.")
    with contextlib.suppress(EOFError):  # Ctrl-D
        while (line := input("> ")).strip():
            try:
                sources, n_best = job.decode(Window([line]))
            except ValueError as error:
                print(error)
                continue
            if job.line_format.output_format:
                print("\n".join(job.lines(sources, n_best)))
            else:
                for output in n_best[0]:
                    print(
                        f"score {output.score:8.3f}  log_prob {output.log_prob:8.3f} "
                        f" {output.text}"
                    )
        return
    print()


def _target(args: flags.Args) -> str | None:
    """The path of --decode_to_file, or None for standard output."""
    return None if args.decode_to_file in (None, "", "-") else args.decode_to_file


def _check_not_overwritten(args: flags.Args, folder: RunFolder) -> None:
    """Raises ValueError if the output is a file that is read: the text or the run's."""
    from t2tlite.programs.bulk.window_folder import window_files

    inputs = check_files.files_of_run(args, folder)
    for name in ("decode_from_file", "score_file"):
        if source := getattr(args, name):
            is_stdin = Path(source) == STANDARD_INPUT
            file = STANDARD_INPUT_NUMBER if is_stdin else source
            inputs.append((f"--{name}={source}", file))
    if args.decode_interactive:
        inputs.append(("standard input", STANDARD_INPUT_NUMBER))
    target = _target(args)
    if target is None:
        outputs: list[NamedFile] = [("standard output", STANDARD_OUTPUT_NUMBER)]
    else:
        outputs = [(f"--decode_to_file={target}", target)]
        if path := replaceable(target):
            for file in window_files(path):
                outputs.append((f"{file} (of --decode_to_file={target})", file))
    check_not_overwritten(outputs, inputs)


def _check_before_work(
    args: flags.Args, folder: RunFolder, pipeline: Pipeline | None
) -> None:
    """Raises what would otherwise be raised after hours of work: by files, or by a
    pipeline that cannot be run.
    """
    source = args.decode_from_file or args.score_file
    target = _target(args)
    if source:
        path = check_file(source)
        if path != STANDARD_INPUT and path.is_file():
            # finds archives, UTF-16 and most other encodings
            next(read_lines(path), None)
    _check_not_overwritten(args, folder)
    if target:
        parent = Path(target).parent
        if not parent.exists():
            say(f"Creating the folder {parent}.")
        check_writable(target)
    if pipeline is not None:
        if not (args.decode_from_file and target):
            raise flags.CommandError(
                "--beam_runner goes with --decode_from_file and --decode_to_file."
            )
        pipeline.check()


def _check_flags(args: flags.Args) -> None:
    """Raises CommandError unless one thing to do is given, or for flags that do not go
    together.
    """
    given = [mode for mode in MODES if getattr(args, mode)]
    if len(given) != 1:
        modes, received = (
            ", --".join(MODES),
            " and ".join(f"--{mode}" for mode in given) or "none",
        )
        raise flags.CommandError(
            f"One of --{modes} must be given. Received: {received}."
        )
    if args.split and (args.output_format or args.prefixes):
        raise flags.CommandError(
            "--output_format and --prefixes go with files and pipes. Received: --split"
            " as well."
        )
    if args.split and args.decode_to_file == "-":
        raise flags.CommandError(
            "--split prints its report. Received: --decode_to_file=- as well. Name a"
            " file."
        )
    if args.raw_text and not (args.decode_from_file or args.decode_interactive):
        raise flags.CommandError(
            "--raw_text goes with --decode_from_file or --decode_interactive."
        )
    if args.raw_text and args.prefixes:
        raise flags.CommandError(
            "--raw_text is for a parser, and --prefixes for translation. Received:"
            " both."
        )
    nbest = args.output_format == "nbest"
    refused = {
        "--output_format=nbest": nbest,
        "--alignments": args.alignments,
        "--prefixes": args.prefixes,
    }
    for flag, is_given in refused.items():
        if args.score_file and is_given:
            raise flags.CommandError(
                "--score_file writes text or jsonl, without alignments, and reads"
                f" pairs. Received: {flag} as well."
            )


if __name__ == "__main__":
    raise SystemExit(main())
