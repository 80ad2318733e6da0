"""t2t-attention shows what the heads of a trained model attend to while it translates a
sentence.

It makes a page to explore in a browser, in RUN/attention/ or the file that --html
names, and prints its path:
  t2t-attention --output_dir=RUN \\
      --source="The animal didn't cross the street because it was too tired."

Cross-attention of two heads in layers 4 and 5, with a translation of your own:
  t2t-attention --output_dir=RUN --source="..." --target="..." \\
      --kind=cross --layers=4,5 --heads=1,3 --html=cross.html

The kinds are encoder and decoder (self-attention) and cross (from the decoder to the
source); layers and heads are counted from 1. On the page, point at a word to see the
lines from it to what it attends to, as in the paper's Figures 3 to 5, and save what is
shown as PNG or SVG. A page is one file, and opens without a network.

The decoder reads its target shifted right by one. So a decoder position is labelled
with the token that it predicts where it is a query, and with the token that it has read
where it is a key: a row of cross-attention is what the model attended to when it wrote
that token.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2tlite.bin import check_files, flags
from t2tlite.files.atomic_file import write_text
from t2tlite.files.same_file import NamedFile, check_not_overwritten

if TYPE_CHECKING:
    from t2tlite.run_folder import RunFolder


class Wanted(NamedTuple):
    """What is shown of which run."""

    folder: RunFolder
    kinds: Sequence[str]
    layers: list[int]
    heads: list[int]


def wanted_of(args: flags.Args) -> Wanted:
    """What the flags ask for. Raises for wrong flags, a missing run or checkpoint, or a
    file that is read.
    """
    from t2tlite.programs.visualise.attention import KINDS, check_kinds

    flags.require(args, "source")
    folder = flags.run_folder(args)
    kinds = args.kind or KINDS
    check_kinds(kinds)
    layers = _numbers("layers", args.layers)
    heads = _numbers("heads", args.heads)
    folder.hparams()  # raises if there is no run
    outputs: list[NamedFile] = []
    if args.html:
        outputs.append((f"--html={args.html}", args.html))
    check_not_overwritten(outputs, check_files.files_of_run(args, folder))
    return Wanted(folder, kinds, layers, heads)


@flags.command(
    __doc__,
    "problem hparams_set output_dir source target kind layers heads html"
    " checkpoint_path",
    "t2t_usr_dir verbosity",
    check=wanted_of,
)
def main(args: flags.Args) -> None:
    """Computes the weights, writes the page, and prints its path."""
    from t2tlite.programs.visualise.attention import page

    folder, kinds, layers, heads = wanted_of(args)
    model = flags.load_run(folder, args.checkpoint_path)
    attention = model.attention(args.source, args.target)
    if args.target is None:
        print(f"translation  {attention.target}")
    name = f"{model.step}-{attention.file_name()}.html"
    path = Path(args.html or folder.attention_folder / name)
    write_text(path, page(attention, kinds, layers, heads))
    print(f"page         {path}")


def _numbers(name: str, texts: list[str] | None) -> list[int]:
    """The numbers of a list flag."""
    numbers = []
    for text in texts or []:
        if not text.strip().isdecimal():
            raise ValueError(
                f"--{name} must be numbers from 1 on, comma-separated. Received:"
                f" {text!r}."
            )
        numbers.append(int(text))
    return numbers


if __name__ == "__main__":
    raise SystemExit(main())
