"""The attention of a model for one sentence pair, to look at or save;
`Translator.attention` makes one.
"""

from __future__ import annotations

import dataclasses
import html
import warnings
from collections.abc import Sequence
from pathlib import Path

from t2tlite.files.atomic_file import write_text
from t2tlite.programs.visualise import attention_page, attention_pictures
from t2tlite.programs.visualise.attention_weights import KINDS, PairAttention


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Attention(PairAttention):
    """The attention weights of a sentence pair, which a notebook shows as a page, and
    `save` writes as a page or a picture.
    """

    def save(
        self,
        path: str | Path,
        kinds: Sequence[str] = KINDS,
        layers: Sequence[int] = (),
        heads: Sequence[int] = (),
    ) -> None:
        """Writes a page (a path that ends in .html), or a picture of heat maps (.png or
        .svg, by matplotlib).

        `kinds` are of encoder, decoder and cross. `layers` and `heads` are counted from
        1: a page has by default all, a picture the last layer but one and all heads.
        Warns of characters that no font here has.
        """
        for name, numbers in (("layers", layers), ("heads", heads)):
            if not isinstance(numbers, Sequence) or not all(
                isinstance(number, int) for number in numbers
            ):
                raise ValueError(
                    f"{name} must be a list of numbers, counted from 1. Received:"
                    f" {numbers!r}."
                )
        if Path(path).suffix.lower() == ".html":
            write_text(Path(path), attention_page.page(self, kinds, layers, heads))
            return
        attention_pictures.picture_ending(path)
        picture = attention_pictures.heat_maps(self, kinds, layers, heads)
        missing = attention_pictures.save_picture(picture, path)
        if missing:
            warnings.warn(
                f"No font here has {missing[:40]}. An .svg or .html can show these"
                " characters.",
                stacklevel=2,
            )

    def _repr_html_(self) -> str:
        # in a frame, so that its style and the notebook's stay apart
        content = html.escape(attention_page.page(self))
        frame = (
            'sandbox="allow-scripts allow-downloads"'
            ' style="width:100%;height:820px;border:0" title="Attention"'
        )
        return f'<iframe srcdoc="{content}" {frame}></iframe>'
