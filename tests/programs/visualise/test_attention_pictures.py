"""Pictures of attention: what they draw, and text that a picture could take for
something else.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from random_attention import AWKWARD, attention_of

from t2tlite.programs import visualise

PNG = b"\x89PNG\r\n\x1a\n"


def test_heat_maps_draw_the_weights(attention):
    figure = visualise.heat_maps(attention, ["decoder"], layers=[2], heads=[3, 1])
    panels = [axes for axes in figure.axes if axes.images and axes.get_xlabel()]
    assert [axes.get_xlabel() for axes in panels] == ["head 3", "head 1"]
    assert [label.get_text() for label in panels[0].get_xticklabels()] == [
        "<start>",
        "·Die",
        "·Katz",
        "e",
        "·macht",
    ]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == [
        "·Die",
        "·Katz",
        "e",
        "·macht",
        "</s>",
    ]
    for axes, head in zip(panels, (2, 0), strict=True):
        drawn = axes.images[0].get_array()
        np.testing.assert_array_equal(drawn.data, attention.decoder[1][head])
        np.testing.assert_array_equal(drawn.mask, np.triu(np.ones((5, 5), bool), 1))


def test_word_lines_go_from_the_word_to_what_it_looks_at(attention):
    figure = visualise.word_lines(attention, "making", heads=[2])
    (axes,) = [axes for axes in figure.axes if axes.lines]
    weights = attention.encoder[1][1][[2, 3]]  # the last layer but one of three
    assert len(axes.lines) == (weights >= 0.01).sum()
    strengths = sorted(line.get_alpha() for line in axes.lines)
    np.testing.assert_allclose(
        strengths, np.sqrt(np.sort(weights[weights >= 0.01])), rtol=1e-6
    )
    bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
    assert bold == ["·mak", "ing"]


@pytest.mark.parametrize("ending", [pytest.param("png", marks=pytest.mark.slow), "svg"])
def test_awkward_text_in_pictures(tmp_path, ending):
    awkward = attention_of(AWKWARD, AWKWARD)
    for name, figure in {
        "maps": visualise.heat_maps(awkward),
        "lines": visualise.word_lines(awkward, "$x$"),
    }.items():
        path = tmp_path / f"{name}.{ending}"
        assert set(visualise.save_picture(figure, path)) <= {"猫"}
        if ending == "png":
            assert path.read_bytes().startswith(PNG)
            continue
        texts = {
            "".join(e.itertext())
            for e in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
        }
        shown = {
            piece.replace("▁", "·")
            .replace("\u202e", "\ufffd")
            .replace("\x07", "\ufffd")
            for piece in AWKWARD
        }
        assert shown <= texts


def test_a_picture_that_would_be_too_large():
    long = attention_of(["▁a"] * 120 + ["</s>"], ["▁b"] * 120 + ["</s>"], heads=16)
    with pytest.raises(
        ValueError, match=r"200 inches wide and high\. Received: one of .* Choose fewer"
    ):
        visualise.heat_maps(long)
