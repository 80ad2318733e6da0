"""t2t-decoder translates, or parses, with a trained run, by beam search.

A split of the data that the run was trained on, scored with sacrebleu:
  t2t-decoder --problem=wmt_ende --hparams_set=transformer_big --split=test

A file, one sentence per line; the output has a line for each, in the same order, blank for blank lines:
  t2t-decoder --output_dir=RUN --decode_from_file=in.txt --decode_to_file=out.txt

What is typed:
  t2t-decoder --output_dir=RUN --decode_interactive

The log-probability of given translations, from a file of lines "source TAB target":
  t2t-decoder --output_dir=RUN --score_file=pairs.tsv

--decode_hparams=beam_size=4,alpha=0.6,extra_length=50,batch_size=1024,return_beams=1 changes how it decodes.
beam_size=1 is greedy search; alpha is the length penalty's exponent; a translation has at most extra_length tokens more
than its source; batch_size is in source tokens; return_beams=3 writes an n-best list, the three best of each sentence,
one per line: "line ||| translation ||| score", with lines counted from 0 as Moses does.

A run that t2t-import made decodes as tensor2tensor's decoder did (t2t_rules=true): batch_size counts sentences,
extra_length is counted from the longest source of a batch, a hypothesis without an end-of-sentence token (EOS) keeps
its log-probability as score, a parser's output stays a sequence, and --score_file gives the mean negative
log-probability of a token.

A run of a parsing problem takes words and punctuation separated by spaces, and gives bracketed trees, one per line;
--split scores them as EVALB does. The repairs that made trees of the decoded sequences are counted. A split's scores
are also written to RUN/decodes/SPLIT.STEP.json, for t2t-report.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from t2tlite.bin import flags
from t2tlite.files.text_files import read_lines, read_pairs, write_lines

if TYPE_CHECKING:
    from t2tlite.config import DecodeHParams
    from t2tlite.decoding.translator import Translator

MODES = ("decode_from_file", "split", "decode_interactive", "score_file")


@flags.command(
    __doc__,
    *("problem", "hparams_set", "output_dir", "decode_from_file", "decode_to_file", "split", "decode_interactive"),
    *("score_file", "decode_hparams", "checkpoint_path", "data_dir", "verbosity"),
)
def main(args: flags.Args) -> None:
    """Loads the run and does what was asked."""
    from t2tlite.decoding.translator import decode_options
    from t2tlite.runs import decode, load

    folder = flags.run_folder(args)
    asked = [mode for mode in MODES if getattr(args, mode)]
    if len(asked) != 1:
        modes, received = ", --".join(MODES), " and ".join(f"--{mode}" for mode in asked) or "none"
        raise flags.CommandError(f"One of --{modes} must be given. Received: {received}.")
    folder.hparams()  # is there a run?
    options = decode_options(folder.manifest(), args.decode_hparams)
    if args.decode_to_file and Path(args.decode_to_file).is_dir():  # known before hours of work, not after
        raise ValueError(f"--decode_to_file must be a file. Received: {args.decode_to_file}, which is a folder.")
    lines = list(read_lines(args.decode_from_file)) if args.decode_from_file else []
    pairs = list(read_pairs(args.score_file)) if args.score_file else []
    model = load.load(folder.path, args.checkpoint_path)
    if args.decode_interactive:
        _interactive(model, options)
    elif args.split:
        dataset = load.run_dataset(folder, Path(args.data_dir).expanduser() if args.data_dir else None)
        print(decode.decode_split(model, folder, dataset, args.split, options, args.decode_to_file))
    elif args.score_file:
        _write(args.decode_to_file, (f"{score:.6f}" for score in decode.score_pairs(model, pairs, options)))
    else:
        decoded, summary = decode.decode_text(model, lines, options)
        _write(args.decode_to_file, decoded)
        print(summary, file=sys.stderr)


def _interactive(model: Translator, options: DecodeHParams) -> None:
    print("Type a sentence; an empty line or Ctrl-D ends.")
    with contextlib.suppress(EOFError):  # Ctrl-D
        while (line := input("> ")).strip():
            try:
                for output in model.decode([line], options)[0]:
                    print(f"{output.score:8.3f}  {output.text}")
            except ValueError as error:
                print(error)
        return
    print()


def _write(path: str | None, lines: Iterable[str]) -> None:
    if path:
        write_lines(path, lines)
    else:
        for line in lines:
            print(line)


if __name__ == "__main__":
    raise SystemExit(main())
