"""What t2t-decoder writes for a line: text, n-best lists, JSON with alignments; and
lines with prefixes.
"""

import json

import pytest

from t2tlite.bin import t2t_decoder
from t2tlite.decoding.alignment import pharaoh

pytestmark = pytest.mark.usefixtures("loaded_once")

SENTENCES = ["red cat sees dog", "", "horse bites bird today"]


@pytest.fixture
def written(tiny_run, tmp_path):
    """written(lines, *flags): the lines that t2t-decoder writes."""

    def run(lines, *flags, mode="decode_from_file"):
        source, target = tmp_path / "in.txt", tmp_path / "out.txt"
        source.write_text("".join(f"{line}\n" for line in lines))
        command = [
            f"--output_dir={tiny_run.run}",
            f"--{mode}={source}",
            f"--decode_to_file={target}",
            *flags,
        ]
        assert t2t_decoder.main(command) == 0
        return target.read_text().splitlines()

    return run


def test_text_and_nbest_whatever_return_beams_is(written, model):
    best = model.translate(SENTENCES)
    assert (
        written(SENTENCES, "--output_format=text", "--decode_hparams=return_beams=3")
        == best
    )
    lines = [
        line.split(" ||| ") for line in written(SENTENCES, "--output_format=nbest")
    ]
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
    flags = ["--output_format=jsonl", "--decode_hparams=return_beams=2"]
    lines = written(SENTENCES, *flags, *(["--alignments"] if alignments else []))
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
                "log_prob": pytest.approx(output.log_prob, abs=1e-5),
                "score": pytest.approx(output.score, abs=1e-5),
                "tokens": tokens,
            }
            expected.append(
                shown | ({"alignment": pharaoh(pairs[i][number])} if alignments else {})
            )
            assert "".join(tokens).replace("▁", " ").strip() == output.text
        assert json.loads(line) == {"source": source, "hypotheses": expected}


def test_json_of_other_characters_is_one_line(written):
    (line,) = written(['kätzchen \u2028 "x" \\ \x0b'], "--output_format=jsonl")
    assert json.loads(line)["source"] == 'kätzchen \u2028 "x" \\ \x0b'
    assert "ä" in line


def test_scores_as_json_have_both_values(written, model):
    pairs = [("red cat sees dog", "katze rot hund sieht"), ("fish likes cat", "")]
    lines = written(
        ["\t".join(pair) for pair in pairs], "--output_format=jsonl", mode="score_file"
    )
    for line, (source, target), log_prob in zip(
        lines, pairs, model.score(*zip(*pairs, strict=True)), strict=True
    ):
        tokens = len(model.target_encoder.encode(target)) + 1
        assert json.loads(line) == {
            "source": source,
            "target": target,
            "log_prob": pytest.approx(log_prob, abs=1e-5),
            "score": pytest.approx(log_prob / ((5 + tokens) / 6) ** 0.6, abs=1e-5),
        }
    (line,) = written(
        ["cat\tkatze"],
        "--output_format=jsonl",
        "--decode_hparams=t2t_rules=true",
        mode="score_file",
    )
    assert json.loads(line).keys() == {
        "source",
        "target",
        "negative_log_prob_per_token",
    }


def test_scores_as_text_are_those_of_an_nbest_list(written, model):
    hypotheses = [
        line.split(" ||| ")
        for line in written(SENTENCES[:1], "--decode_hparams=return_beams=4")
    ]
    pairs = [f"{SENTENCES[0]}\t{text}" for _, text, *_ in hypotheses]
    expected = [
        (float(log_prob.split()[1]), float(score)) for *_, log_prob, score in hypotheses
    ]
    scores = [
        tuple(map(float, line.split("\t")))
        for line in written(pairs, mode="score_file")
    ]
    same_tokens = [
        tuple(model.target_encoder.encode(output.text)) == output.ids
        for output in model.n_best(SENTENCES[0])
    ]
    assert sum(same_tokens) >= 2
    for values, wanted, same in zip(scores, expected, same_tokens, strict=True):
        assert values == pytest.approx(wanted, abs=1e-4) or not same
    assert (
        len(
            written(
                ["cat\tkatze"], "--decode_hparams=t2t_rules=true", mode="score_file"
            )[0].split("\t")
        )
        == 1
    )


def test_prefixes(written, model):
    lines = [
        "red cat sees dog\tkatze blau",
        "horse bites bird",
        "\tkatze",
        "fish likes mouse\t",
    ]
    translations = written(lines, "--prefixes")
    prefix = ["katze blau", "", "", ""]
    assert translations == model.translate(
        ["red cat sees dog", "horse bites bird", "", "fish likes mouse"], prefix=prefix
    )
    assert translations[0].startswith("katze blau")
    assert translations[2] == ""
