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

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from t2tlite.bin import groups
from t2tlite.bin.command import command
from t2tlite.bin.flag_fields import CommandError, named_files, text_flag
from t2tlite.checked_fields import optional_field
from t2tlite.files.atomic_file import write_text
from t2tlite.files.same_file import check_not_overwritten


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionFlags(
    groups.RunFlags, groups.CheckpointFlags, groups.PackageFlags, groups.TensorFlowFlags
):
    """Which attention is shown, and where."""

    source: str = text_flag(
        "The sentence whose attention is shown.", dataclasses.MISSING
    )
    target: str | None = text_flag("Its translation; by default the model's own.")
    kind: tuple[str, ...] | None = optional_field(
        tuple, "Kinds, comma-separated, of encoder, decoder, cross; by default all."
    )
    layers: tuple[str, ...] | None = optional_field(
        tuple, "Layers from 1; by default all on a page, the last but one in a picture."
    )
    heads: tuple[str, ...] | None = optional_field(
        tuple, "Heads, counted from 1; by default all."
    )
    word: str | None = text_flag(
        "Draw the attention of this word as lines, instead of heat maps."
    )
    picture: str | None = optional_field(
        str, "File of the picture, ending in .png or .svg."
    )
    html: str | None = optional_field(str, "File of the page.")


@command(AttentionFlags, __doc__)
def main(flags: AttentionFlags) -> None:
    """Computes the weights, writes the picture and the page, and prints their paths."""
    from t2tlite.programs import visualise
    from t2tlite.programs.visualise.attention_pictures import picture_ending
    from t2tlite.programs.visualise.attention_weights import check_kinds

    folder = flags.run_folder()
    kinds = flags.kind or visualise.KINDS
    check_kinds(kinds)
    layers = _numbers("layers", flags.layers)
    heads = _numbers("heads", flags.heads)
    if flags.picture:
        picture_ending(flags.picture)
    folder.hparams()  # raises if there is no run
    outputs = named_files(picture=flags.picture, html=flags.html)
    check_not_overwritten(outputs, flags.files_of_run(folder))
    flags.load_tensorflow()
    chosen = {"layers": layers, "heads": heads}
    model = flags.load_run(folder)
    attention = model.attention(flags.source, flags.target)
    if flags.target is None:
        print(f"translation  {attention.target}")
    default = folder.attention_folder / f"{model.step}-"
    if flags.picture or not flags.html:
        path = Path(flags.picture or f"{default}{attention.file_name(flags.word)}.png")
        try:
            if flags.word is None:
                figure = visualise.heat_maps(attention, kinds, **chosen)
            else:
                figure = visualise.word_lines(
                    attention, flags.word, flags.kind or (), **chosen
                )
            missing = visualise.save_picture(figure, path)
            print(f"picture      {path}")
            if missing:
                print(
                    f"No font on this machine has {missing[:40]}. An .svg or the page"
                    " can show these characters."
                )
        except ImportError as error:
            if flags.picture:
                raise CommandError(str(error)) from error
            print("no picture: it needs matplotlib, pip install 't2tlite[plots]'")
    if flags.html or not flags.picture:
        path = Path(flags.html or f"{default}{attention.file_name()}.html")
        write_text(path, visualise.page(attention, kinds, **chosen))
        print(f"page         {path}")


def _numbers(name: str, texts: Sequence[str] | None) -> list[int]:
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
