"""The comparison of two runs."""

import html
import json
import re
import shutil

import pytest
import sacrebleu
from run_command import run_command
from tiny_run import change_manifest
from written_report import SIGNATURE, record_decodes

from t2tlite.bin import t2t_bleu, t2t_report

SOURCES = ["a red dog", "two cats", "no dog"]
REFERENCES = ["ein roter Hund läuft", "zwei Katzen laufen weg", "kein Hund läuft weg"]
OLD = ["ein roter Hund läuft", "drei Katzen", "kein Hund läuft weg"]
NEW = ["ein Hund", "zwei Katzen laufen weg", "kein Hund läuft weg"]
RESAMPLED = SIGNATURE.replace("|case", "|bs:1000|seed:12345|case")
TEXTS = {"src": SOURCES, "ref": REFERENCES}


@pytest.fixture
def two_runs(tiny_run_copy):
    """Two copies of the run that nobody has decoded with."""
    shutil.rmtree(tiny_run_copy / "decodes", ignore_errors=True)
    other = tiny_run_copy.parent / "other <run>"
    shutil.copytree(tiny_run_copy, other)
    return tiny_run_copy, other


def compare(first, second):
    """The page."""
    run_command(t2t_report, f"--output_dir={first},{second}")
    return (first / f"report.{second.name}.html").read_text(encoding="utf-8")


def rows(page):
    """The cells of each row of its tables."""
    every = []
    for row in re.findall("<tr>(.*?)</tr>", page, re.DOTALL):
        cells = re.findall("<t[dh].*?>(.*?)</t[dh]>", row, re.DOTALL)
        every.append([re.sub("<.*?>", "", cell) for cell in cells])
    return every


def test_settings_and_curves(two_runs, capsys):
    first, second = two_runs
    hparams = json.loads((second / "hparams.json").read_text())
    changed = {**hparams, "label_smoothing": 0.25, "num_heads": 4}
    (second / "hparams.json").write_text(json.dumps(changed))
    flags = (second / "flags.txt").read_text()
    changed = re.sub("--random_seed=.*", "--random_seed=77", flags)
    # which Python does not record
    changed = re.sub("--(verbosity|cluster_resolver)=.*\n", "", changed)
    (second / "flags.txt").write_text(changed)
    page = compare(*two_runs)
    assert capsys.readouterr().out == f"{first}/report.{second.name}.html\n"
    settings = {name: values for _, name, *values in rows(page)[1:]}
    assert settings.keys() == {"num_heads", "label_smoothing", "random_seed"}
    assert settings["label_smoothing"] == ["0.1", "0.25"]
    assert settings["random_seed"][1] == "77"
    (label,) = re.findall(r'aria-label="(.*?)"', page)
    assert html.unescape(label) == f"Loss: {first}, {second} over steps"
    assert "No split was decoded with both runs." in page
    assert "<p><text" not in page


def test_scores_and_the_paired_test_of_a_split(two_runs, tmp_path, capsys):
    first, second = two_runs
    scores = {"BLEU": 50.0, "TER": 20.0, "chrF2": 60.0}
    fields = {"texts": TEXTS, "intervals": {"BLEU": 1.25}}
    record_decodes(first, OLD, scores=scores, **fields)
    record_decodes(first, NEW, step=130, other_checkpoints=["of an ensemble"], **fields)
    fields["signatures"] = {"BLEU": RESAMPLED, "chrF2": "nrefs:1|case:lc"}
    record_decodes(second, NEW, scores={"BLEU": 48.5, "chrF2": 61.0}, **fields)
    record_decodes(second, NEW, split="dev", **fields)
    every = rows(compare(first, second))
    assert ["BLEU", "50.00 ± 1.25", "48.50 ± 1.25", "-1.50"] in every
    assert ["TER", "20.00", "", ""] in every
    assert ["chrF2", "60.00", "61.00", "signatures differ"] in every
    for name, lines in {"old": OLD, "new": NEW, "ref": REFERENCES}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    capsys.readouterr()
    run_command(
        t2t_bleu,
        f"--translation={tmp_path}/new",
        f"--compare={tmp_path}/old",
        f"--reference={tmp_path}/ref",
        "--metrics=bleu,chrf,ter",
    )
    table = capsys.readouterr().out.splitlines()[2:5]
    assert [line.strip("| ").split(" | ") for line in table] == [
        row for row in every if row[-1].endswith("significant")
    ]
    gains = []
    for old, new, reference in zip(OLD[:2], NEW, REFERENCES, strict=False):
        before = sacrebleu.sentence_chrf(old, [reference]).score
        after = sacrebleu.sentence_chrf(new, [reference]).score
        gains.append(f"{abs(after - before):.2f}")
    changed = [row for row in every if row[0] in ("1", "2", "3")]
    assert changed == [
        ["2", gains[1], SOURCES[1], OLD[1], NEW[1], REFERENCES[1]],
        ["1", gains[0], SOURCES[0], OLD[0], NEW[0], REFERENCES[0]],
    ]


def test_the_test_splits_text_as_the_scores_do(two_runs):
    signatures = {"BLEU": SIGNATURE.replace("13a", "zh")}
    for run, outputs in zip(two_runs, (["我爱她。"], ["我爱你。"]), strict=True):
        texts = {"src": ["I love you."], "ref": ["我爱你。"]}
        record_decodes(run, outputs, signatures=signatures, texts=texts)
    page = compare(*two_runs)
    assert "BLEU|nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:zh|" in page


GOLD = "(TOP (S (NP (NN Rain)) (VP (VBZ falls))))"
FLAT = "(TOP (S (NN Rain) (VP (VBZ falls))))"


@pytest.mark.parametrize(
    ("task", "texts", "old", "new", "scores", "change"),
    [
        # matched brackets: 5 of 6 and of 5; in the first sentence 2 of 3 and of 2
        ("parsing", {"src": ["a"] * 2, "gold": [GOLD] * 2}, [FLAT, GOLD], [GOLD] * 2, ["f1", "90.91", "100.00"], ["1", "20.00", "a", FLAT, GOLD, GOLD]),
        # tensor2tensor's decoder leaves sequences as they are
        ("parsing", {"src": ["a"] * 2, "ref": ["S N", "S V"]}, ["S N"] * 2, ["S N", "S V"], ["exact_match", "50.00", "100.00"], ["2", "100.00", "a", "S N", "S V", "S V"]),
        # a word with two pronunciations counts once
        ("pronunciation", {"src": [*"aac"], "ref": [*"ABC"]}, [*"AAC"], [*"BBD"], ["exact_match", "100.00", "50.00"], ["3", "100.00", *"cCDC"]),
    ],
)  # fmt: skip
def test_runs_are_compared_by_task(two_runs, task, texts, old, new, scores, change):
    for run, outputs in zip(two_runs, (old, new), strict=True):
        change_manifest(run, task=task)
        record_decodes(run, outputs, {"t2t_rules": "ref" in texts}, texts)
    every = rows(compare(*two_runs))
    first = next(row for row in every if row[-1].endswith("significant"))
    assert [cell.partition(" ")[0] for cell in first[:3]] == scores
    assert change in every


def test_other_sentences_are_not_compared(two_runs):
    for run, source in zip(two_runs, ("a red dog", "a red cat"), strict=True):
        record_decodes(run, OLD, texts={**TEXTS, "src": [source, *SOURCES[1:]]})
    page = compare(*two_runs)
    assert "The outputs for test cannot be compared. Their sentences differ." in page
    assert ["BLEU", "38.29", "38.29", ""] in rows(page)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("three", "--output_dir must be one run, or two. Received: "),
        ("no run", "The run must be a folder that t2t-trainer made."),
        ("other problem", "Two runs to compare must be of one problem. Received: RUNS,"
         " which differ in problem (twenty_words, mine). Name others."),
        (
            "nothing",
            "Two runs to compare need evaluations, or a split that both have decoded."
            " Received: RUNS. Decode with --split=test.",
        ),
    ],
)  # fmt: skip
def test_refusals(two_runs, capsys, case, message):
    first, second = two_runs
    runs = f"{first},{second}"
    if case == "three":
        runs += f",{first}"
    elif case == "no run":
        (second / "hparams.json").unlink()
    elif case == "other problem":
        change_manifest(second, problem="mine")
    else:
        (second / "evaluations.json").unlink()
    assert t2t_report.main([f"--output_dir={runs}"]) == 1
    stderr = capsys.readouterr().err
    assert message.replace("RUNS", f"{first} and {second}") in stderr
