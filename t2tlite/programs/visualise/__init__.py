"""Pictures and pages of a model's attention, from Python; t2t-attention makes them from
the command line.

    import t2tlite
    from t2tlite.programs import visualise

    attention = t2tlite.load("RUN").attention("A man rides a bicycle.")
    attention  # as the last line of a notebook's cell: the page itself
    attention.save("attention.html")  # the page in a file, or a picture: .png or .svg
    attention.save("cross.png", kinds=["cross"], layers=[5])
    figure = visualise.word_lines(attention, "bicycle", kinds=["encoder"])
    visualise.save_picture(figure, "bicycle.svg")

Layers and heads count from 1. Pictures need matplotlib: pip install 't2tlite[plots]'.
"""

from __future__ import annotations

from t2tlite.programs.visualise.attention import Attention
from t2tlite.programs.visualise.attention_page import page
from t2tlite.programs.visualise.attention_pictures import (
    heat_maps,
    save_picture,
    word_lines,
)
from t2tlite.programs.visualise.attention_weights import KINDS

__all__ = ["KINDS", "Attention", "heat_maps", "page", "save_picture", "word_lines"]
