"""The attention weights of a sentence pair, shown as a page or a picture."""

from __future__ import annotations

import html
import warnings
from collections.abc import Sequence
from pathlib import Path

from t2tlite.programs.visualise import attention_page, attention_pictures
from t2tlite.programs.visualise.pair_attention import KINDS, PairAttention


class Attention(PairAttention):
    """Attention weights that a notebook shows as the page of attention_page.py, which `save` writes."""

    def save(
        self, path: str | Path, kinds: Sequence[str] = KINDS, layers: Sequence[int] = (), heads: Sequence[int] = ()
    ) -> None:
        """Writes a page (a path that ends in .html), or a picture of heat maps (.png or .svg; needs matplotlib).

        Kinds, layers and heads are as in `page` and `heat_maps`. Raises ValueError for another ending and as they do,
        and OSError if the file cannot be written. Warns if a picture lacks characters that no font here has.
        """
        if Path(path).suffix.lower() == ".html":
            attention_page.write_page(self, path, kinds=kinds, layers=layers, heads=heads)
            return
        attention_pictures.picture_ending(path)
        missing = attention_pictures.save_picture(attention_pictures.heat_maps(self, kinds, layers, heads), path)
        if missing:
            warnings.warn(f"No font here has {missing[:40]}. An .svg or .html can show these characters.", stacklevel=2)

    def _repr_html_(self) -> str:
        content = html.escape(attention_page.page(self))  # in a frame, so that its style and the notebook's stay apart
        frame = 'sandbox="allow-scripts allow-downloads" style="width:100%;height:820px;border:0" title="Attention"'
        return f'<iframe srcdoc="{content}" {frame}></iframe>'
