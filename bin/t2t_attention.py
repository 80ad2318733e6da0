"""t2t-attention shows what the heads of a trained model look at while it translates a sentence.

A page to explore in a browser, and a picture of heat maps; their paths are printed:
  t2t-attention --output_dir=RUN --source="The animal didn't cross the street because it was too tired."

Lines from a word to what it looks at, as in the paper's Figures 3 to 5; a word of the source shows the encoder's
self-attention, a word of the target the decoder's and cross-attention:
  t2t-attention --output_dir=RUN --source="..." --word=it --picture=it.svg

Cross-attention of two heads of the layers 4 and 5, with a translation of your own:
  t2t-attention --output_dir=RUN --source="..." --target="..." --kind=cross --layers=4,5 --heads=1,3 --picture=4and5.png

The three kinds are encoder and decoder (self-attention) and cross (from the decoder to the source). Layers and heads
count from 1, as the paper counts. A picture shows the last layer but one unless --layers says otherwise, the page all
layers. Without --picture and --html both are made, in RUN/attention/; with one of them, only that.

The pages and pictures call a decoder position by the token that it predicts where it looks at others, and by the
token that it has read where others look at it. The decoder reads its target shifted right by one, so these differ. Read
this way, a row of cross-attention is what the model looked at to write that token.

The newest checkpoint is used; --checkpoint_path=RUN/best, RUN/averaged or RUN/model.ckpt-N names another. Pictures need
matplotlib (pip install 't2tlite[plots]'), the page does not. A page is one file, and opens without a network. PNG
pictures have only the characters of this machine's fonts; SVG and page show all that the reader's browser can.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2tlite.bin import flags

if TYPE_CHECKING:
    from t2tlite.decoding.translator import Translator
    from t2tlite.visualise import Attention

FLAGS = (
    "output_dir",
    "source",
    "target",
    "kind",
    "layers",
    "heads",
    "word",
    "picture",
    "html",
    "checkpoint_path",
    "verbosity",
)


def run(args: flags.Args) -> None:
    """Computes the weights, and writes what was asked for.

    Raises:
        flags.CommandError: a flag is missing, or matplotlib.
        ValueError: an unknown kind, layer or head, a word that is not there, or a file with another ending.
        OSError: there is no run, or a file cannot be written.
    """
    from t2tlite import runs, visualise
    from t2tlite.visualise.attention import check_kinds
    from t2tlite.visualise.attention_pictures import picture_ending

    flags.require(args, "output_dir", "source")
    check_kinds(args.kind or visualise.KINDS)  # what can be known before the model is loaded
    layers, heads = _numbers("layers", args.layers), _numbers("heads", args.heads)
    if args.picture:
        picture_ending(args.picture)
    folder = Path(args.output_dir).expanduser()
    model = runs.load(folder, args.checkpoint_path)
    attention = model.attention(args.source, args.target)
    if args.target is None:
        print(f"translation  {attention.target}")
    if args.picture or not args.html:
        _picture(args, attention, Path(args.picture or _default_path(folder, model, attention, args.word, "png")))
    if args.html or not args.picture:
        path = Path(args.html or _default_path(folder, model, attention, None, "html"))
        visualise.write_page(attention, path, kinds=args.kind or visualise.KINDS, layers=layers, heads=heads)
        print(f"page         {path}")


def _picture(args: flags.Args, attention: Attention, path: Path) -> None:
    """Draws heat maps, or with --word lines."""
    from t2tlite import visualise

    if not args.picture and importlib.util.find_spec("matplotlib") is None:
        print("no picture: it needs matplotlib, pip install 't2tlite[plots]'")
        return
    layers, heads = _numbers("layers", args.layers), _numbers("heads", args.heads)
    try:
        if args.word is not None:
            figure = visualise.word_lines(attention, args.word, args.kind, layers, heads)
        else:
            figure = visualise.heat_maps(attention, args.kind or visualise.KINDS, layers, heads)
    except ImportError as error:
        raise flags.CommandError(str(error)) from error
    missing = visualise.save_picture(figure, path)
    print(f"picture      {path}")
    if missing:
        print(f"No font of this machine has {missing[:40]}: boxes in the picture. An .svg or the page can show them.")


def _numbers(name: str, texts: list[str] | None) -> list[int] | None:
    """The numbers of a list flag.

    Raises:
        ValueError: one is no number.
    """
    for text in texts or []:
        if not text.strip().isdecimal():
            raise ValueError(f"--{name} must be numbers from 1 on, comma-separated. Received: {text!r}.")
    return [int(text) for text in texts] if texts else None


def _default_path(folder: Path, model: Translator, attention: Attention, word: str | None, ending: str) -> Path:
    """RUN/attention/STEP-the-first-words-DIGEST.ENDING: a name of its own for each sentence pair and word."""
    digest = hashlib.sha256(repr((attention.source, attention.target, word)).encode("utf-8")).hexdigest()[:6]
    words = "-".join(re.findall(r"\w+", attention.source.lower()))[:40].strip("-") or "sentence"
    return folder / "attention" / f"{model.step}-{words}-{digest}.{ending}"


def main(argv: Sequence[str] | None = None) -> int:
    """The command t2t-attention."""
    return flags.run_command(__doc__, FLAGS, run, argv)


if __name__ == "__main__":
    sys.exit(main())
