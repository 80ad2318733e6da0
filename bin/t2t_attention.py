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

import dataclasses
from pathlib import Path

from t2tlite.bin import groups
from t2tlite.bin.command import command, load_tensorflow
from t2tlite.bin.flag_fields import named_files
from t2tlite.checked_fields import optional_field, parse_value, required_field
from t2tlite.console import say
from t2tlite.files.atomic_file import write_text
from t2tlite.files.own_files import own
from t2tlite.files.same_file import check_not_overwritten


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionFlags(groups.TensorFlowFlags, groups.CheckpointFlags, groups.RunFlags):
    """Which attention is shown, and where."""

    source: str = required_field(str, "The sentence whose attention is shown.")
    target: str | None = optional_field(
        str, "Its translation; by default the model's own."
    )
    kind: tuple[str, ...] | None = optional_field(
        tuple, "Kinds, comma-separated, of encoder, decoder, cross; by default all."
    )
    layers: tuple[str, ...] | None = optional_field(
        tuple, "Layers, counted from 1; by default all."
    )
    heads: tuple[str, ...] | None = optional_field(
        tuple, "Heads, counted from 1; by default all."
    )
    html: str | None = optional_field(str, "File of the page.")


@command(AttentionFlags, __doc__)
def main(flags: AttentionFlags) -> None:
    """Computes the weights, writes the page, and prints its path."""
    from t2tlite.programs.runs.load import load, run_files
    from t2tlite.programs.visualise.attention import KINDS, check_kinds, page

    folder = groups.run_folder(flags)
    kinds = flags.kind or KINDS
    check_kinds(kinds)
    layers = [parse_value("--layers", text, int) for text in flags.layers or ()]
    heads = [parse_value("--heads", text, int) for text in flags.heads or ()]
    folder.hparams()  # raises if there is no run
    outputs = named_files(html=flags.html)
    check_not_overwritten(outputs, run_files([folder], flags.checkpoint_path))
    load_tensorflow()
    model = load(folder.path, flags.checkpoint_path)
    for note in model.notes:
        say(note)
    attention = model.attention(flags.source, flags.target)
    if flags.target is None:
        print(f"translation  {attention.target}")
    name = f"{model.step}-{attention.file_name()}.html"
    path = Path(flags.html or own(folder.own("attention") / name))
    write_text(path, page(attention, kinds, layers, heads))
    print(f"page         {path}")


if __name__ == "__main__":
    raise SystemExit(main())
