"""What a job writes for a line: text, n-best lists, JSON with alignments; and lines
with prefixes.
"""

import json

import pytest

from t2tlite.programs.bulk.jobs import DecodeJob, LineFormat, ScoreJob
from t2tlite.programs.bulk.part import Window

SENTENCES = ["red cat sees dog", "", "horse bites bird today"]


def shown_pairs(pairs):
    return " ".join(f"{source}-{target}" for source, target in pairs)


@pytest.fixture
def written(model):
    """written(lines, ...): the lines that a job writes, given options and fields of its
    format.
    """

    def run(lines, kind=DecodeJob, return_beams=1, t2t_rules=False, **line_format):
        options = model.options(return_beams=return_beams, t2t_rules=t2t_rules)
        job = kind(model, options, LineFormat(**line_format))
        window = Window(lines)
        job.check(window)
        return list(job.lines(job.run(window)))

    return run


def test_text_and_nbest_whatever_return_beams_is(written, model):
    best = model.translate(SENTENCES)
    assert written(SENTENCES, return_beams=3, output_format="text") == best
    lines = [line.split(" ||| ") for line in written(SENTENCES, output_format="nbest")]
    assert [(line[0], line[1]) for line in lines] == [
        ("0", best[0]),
        ("1", ""),
        ("2", best[2]),
    ]
    hypotheses = model.decode(SENTENCES, model.options())
    for line, (output,) in zip(lines, hypotheses, strict=True):
        assert line[2:] == [f"log_prob= {output.log_prob:.6f}", f"{output.score:.6f}"]


@pytest.mark.parametrize("alignments", [False, True])
def test_jsonl(written, model, monkeypatch, alignments):
    if not alignments:
        monkeypatch.setattr(type(model), "align", None)  # not computed unless asked for
    lines = written(
        SENTENCES, return_beams=2, output_format="jsonl", alignments=alignments
    )
    n_best = model.decode(SENTENCES, model.options(return_beams=2))
    pairs = model.align(SENTENCES, n_best) if alignments else None
    assert len(lines) == 3
    for i, (line, source, outputs) in enumerate(
        zip(lines, SENTENCES, n_best, strict=True)
    ):
        expected = []
        for number, output in enumerate(outputs):
            tokens = model.target_encoder.pieces(output.ids)
            shown = {
                "text": output.text,
                "log_prob": pytest.approx(output.log_prob, abs=1e-4),
                "score": pytest.approx(output.score, abs=1e-4),
                "tokens": tokens,
            }
            expected.append(
                shown | ({"alignment": shown_pairs(pairs[i][number])} if pairs else {})
            )
            assert "".join(tokens).replace("▁", " ").strip() == output.text
        assert json.loads(line) == {"source": source, "hypotheses": expected}


def test_json_of_other_characters_is_one_line(written):
    (line,) = written(['kätzchen \u2028 "x" \\ \x0b'], output_format="jsonl")
    assert json.loads(line)["source"] == 'kätzchen \u2028 "x" \\ \x0b'
    assert "ä" in line


def test_scores_as_json_have_both_values(written, model):
    pairs = [("red cat sees dog", "katze rot hund sieht"), ("fish likes cat", "")]
    lines = written(
        ["\t".join(pair) for pair in pairs], kind=ScoreJob, output_format="jsonl"
    )
    for line, (source, target), log_prob in zip(
        lines, pairs, model.score(*zip(*pairs, strict=True)), strict=True
    ):
        tokens = len(model.target_encoder.encode(target)) + 1
        assert json.loads(line) == {
            "source": source,
            "target": target,
            "log_prob": pytest.approx(log_prob, abs=1e-4),
            "score": pytest.approx(log_prob / ((5 + tokens) / 6) ** 0.6, abs=1e-4),
        }
    (line,) = written(
        ["cat\tkatze"], kind=ScoreJob, t2t_rules=True, output_format="jsonl"
    )
    assert json.loads(line).keys() == {
        "source",
        "target",
        "negative_log_prob_per_token",
    }


def test_prefixes(written, model):
    lines = [
        "red cat sees dog\tkatze blau",
        "horse bites bird",
        "\tkatze",
        "fish likes mouse\t",
    ]
    translations = written(lines, prefixes=True)
    prefix = ["katze blau", "", "", ""]
    assert translations == model.translate(
        ["red cat sees dog", "horse bites bird", "", "fish likes mouse"], prefix=prefix
    )
    assert translations[0].startswith("katze blau")
    assert translations[2] == ""
