"""t2t-attention shows what the heads of a trained model attend to while it translates a
sentence.

A page to explore in a browser, and a picture of heat maps; their paths are printed:
  t2t-attention --output_dir=RUN \\
      --source="The animal didn't cross the street because it was too tired."

Lines from a word to what it attends to, as in the paper's Figures 3 to 5; a word of the
source shows the encoder's self-attention, a word of the target the decoder's and
cross-attention:
  t2t-attention --output_dir=RUN --source="..." --word=it --picture=it.svg

Cross-attention of two heads in layers 4 and 5, with a translation of your own:
  t2t-attention --output_dir=RUN --source="..." --target="..." \\
      --kind=cross --layers=4,5 --heads=1,3 --picture=c.png

The kinds are encoder and decoder (self-attention) and cross (from the decoder to the
source); layers and heads are counted from 1. A picture shows the last layer but one
unless --layers is given, the page all layers. Without --picture and --html both are
made, in RUN/attention/; with one of them, only that one.

The decoder reads its target shifted right by one. So a decoder position is labelled
with the token that it predicts where it is a query, and with the token that it has read
where it is a key: a row of cross-attention is what the model attended to when it wrote
that token.

Pictures need matplotlib (pip install 't2tlite[plots]'), the page does not. A page is
one file, and opens without a network. A PNG shows only characters in this machine's
fonts; SVG and page all that the viewer's has.
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
    from t2tlite.programs import visualise
    from t2tlite.programs.visualise.attention_pictures import picture_ending
    from t2tlite.programs.visualise.attention_weights import check_kinds

    flags.require(args, "source")
    folder = flags.run_folder(args)
    kinds = args.kind or visualise.KINDS
    check_kinds(kinds)
    layers = _numbers("layers", args.layers)
    heads = _numbers("heads", args.heads)
    if args.picture:
        picture_ending(args.picture)
    folder.hparams()  # raises if there is no run
    outputs: list[NamedFile] = [
        (f"--{name}={path}", path)
        for name, path in (("picture", args.picture), ("html", args.html))
        if path
    ]
    check_not_overwritten(outputs, check_files.files_of_run(args, folder))
    return Wanted(folder, kinds, layers, heads)


@flags.command(
    __doc__,
    "problem hparams_set output_dir source target kind layers heads word picture html"
    " checkpoint_path",
    "t2t_usr_dir verbosity",
    check=wanted_of,
)
def main(args: flags.Args) -> None:
    """Computes the weights, writes the picture and the page, and prints their paths."""
    from t2tlite.programs import visualise

    folder, kinds, layers, heads = wanted_of(args)
    chosen = {"layers": layers, "heads": heads}
    model = flags.load_run(folder, args.checkpoint_path)
    attention = model.attention(args.source, args.target)
    if args.target is None:
        print(f"translation  {attention.target}")
    default = folder.attention_folder / f"{model.step}-"
    if args.picture or not args.html:
        path = Path(args.picture or f"{default}{attention.file_name(args.word)}.png")
        try:
            if args.word is None:
                figure = visualise.heat_maps(attention, kinds, **chosen)
            else:
                figure = visualise.word_lines(
                    attention, args.word, args.kind or (), **chosen
                )
            missing = visualise.save_picture(figure, path)
            print(f"picture      {path}")
            if missing:
                print(
                    f"No font on this machine has {missing[:40]}. An .svg or the page"
                    " can show these characters."
                )
        except ImportError as error:
            if args.picture:
                raise flags.CommandError(str(error)) from error
            print("no picture: it needs matplotlib, pip install 't2tlite[plots]'")
    if args.html or not args.picture:
        path = Path(args.html or f"{default}{attention.file_name()}.html")
        write_text(path, visualise.page(attention, kinds, **chosen))
        print(f"page         {path}")


def _numbers(name: str, texts: list[str] | None) -> list[int]:
    """The numbers of a list flag."""
    for text in texts or []:
        if not text.strip().isdecimal():
            raise ValueError(
                f"--{name} must be numbers from 1 on, comma-separated. Received:"
                f" {text!r}."
            )
    return [int(text) for text in texts or []]


if __name__ == "__main__":
    raise SystemExit(main())
