"""t2t-attention shows what the heads of a trained model attend to while it translates a
sentence.

It makes a page to explore in a browser, in RUN/attention/ or the file that --html
names, and prints its path:
  t2t-attention --output_dir=RUN \\
      --source="The animal didn't cross the street because it was too tired."

With a translation of your own:
  t2t-attention --output_dir=RUN --source="..." --target="..." --html=cross.html

On the page, choose encoder or decoder (self-attention) or cross (from the decoder to
the source), layer and heads, which are counted from 1; point at a word to see the lines
from it to what it attends to, as in the paper's Figures 3 to 5; and save what is shown
as PNG or SVG. A page is one file, and opens without a network. What is chosen is part
of its address: #kind=cross&layer=4&heads=1,3.

The decoder reads its target shifted right by one. So a decoder position is labelled
with the token that it predicts where it is a query, and with the token that it has read
where it is a key: a row of cross-attention is what the model attended to when it wrote
that token.
"""

import dataclasses

from t2tlite.bin import groups
from t2tlite.bin.command import command, load_tensorflow
from t2tlite.checked_fields import optional_field, required_field
from t2tlite.console import say
from t2tlite.files.own_files import own
from t2tlite.files.same_file import check_not_overwritten
from t2tlite.programs.runs.load import load, run_files
from t2tlite.programs.visualise.attention import check_page


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionFlags(groups.TensorFlowFlags, groups.CheckpointFlags, groups.RunFlags):
    """Of which sentence attention is shown, and where."""

    source: str = required_field(str, "The sentence whose attention is shown.")
    target: str | None = optional_field(
        str, "Its translation; by default the model's own."
    )
    html: str | None = optional_field(str, "File of the page.")


@command
def main(flags: AttentionFlags) -> None:
    """Computes the weights, writes the page, and prints its path."""
    folder = groups.existing_run(flags)
    inputs = run_files([folder], flags.checkpoint_path)
    check_not_overwritten(flags.files("html"), inputs)
    if flags.html:
        check_page(flags.html)
    load_tensorflow()
    model = load(folder.path, flags.checkpoint_path)
    for note in model.notes:
        say(note)
    attention = model.attention(flags.source, flags.target)
    if flags.target is None:
        print(f"translation  {attention.target}")
    name = f"{model.step}-{attention.file_name()}.html"
    path = flags.html or own(folder.own("attention") / name)
    attention.save(path)
    print(f"page         {path}")


if __name__ == "__main__":
    raise SystemExit(main())
