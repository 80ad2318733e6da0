"""The command t2t-bleu."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT
from run_command import refusal, said

from t2tlite import registry
from t2tlite.bin import t2t_bleu
from t2tlite.files.atomic_file import write_text
from t2tlite.metrics.comparison import paired_bootstrap


@pytest.fixture
def files(tmp_path: Path):
    """Writes a translation file and a reference file, and returns the flags that name
    them.
    """

    def write(translation: str, reference: str | bytes | None) -> list[str]:
        for name, content in (("translation", translation), ("reference", reference)):
            if content is not None:
                content = content.encode() if isinstance(content, str) else content
                (tmp_path / f"{name}.txt").write_bytes(content)
        names = "translation", "reference"
        return [f"--{name}={tmp_path}/{name}.txt" for name in names]

    return write


PAPERS = "compound-split BLEU, tokenised; compare only with the paper's scores|"


def test_prints_sacrebleus_score_with_its_signature(fixtures, capsys):
    path = f"{fixtures}/bleu/grammar_ende"
    files = f"--translation={path}.hyp", f"--reference={path}.ref"
    out = said(capsys, t2t_bleu, *files).out
    assert out.startswith("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert " = 55.88 " in out  # these three as in expected.json
    assert out.count("\n") == 1
    more = ["--tokenize=intl", "--lowercase", "--compound_split"]
    first, second = said(capsys, t2t_bleu, *files, *more).out.splitlines()
    assert "|case:lc|eff:no|tok:intl|" in first
    assert " = 64.62 " in first
    assert second.startswith(PAPERS)
    assert " = 55.97 83.2/62.8/49.4/39.3 " in second


def sacrebleus(*argv):
    """What sacrebleu's own command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *argv], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


METRICS = "--metrics=bleu,chrf,ter"


@pytest.mark.parametrize("language", ["ende", "enfr"])
def test_chrf_and_ter_are_those_of_sacrebleus_command(fixtures, capsys, language):
    hyp, ref = (f"{fixtures}/bleu/grammar_{language}.{end}" for end in ("hyp", "ref"))
    theirs = ["-m", "bleu", "chrf", "ter", "-f", "text", "-w", "2"]
    expected = sacrebleus(ref, "-i", hyp, *theirs)
    ours = said(capsys, t2t_bleu, f"--translation={hyp}", f"--reference={ref}", METRICS)
    lines = ours.out.splitlines()
    assert lines == [line.strip() for line in expected.splitlines()]  # aligned there
    assert [line.partition("|")[0] for line in lines] == ["BLEU", "chrF2", "TER"]


def test_confidence_intervals_are_sacrebleus(fixtures, capsys, monkeypatch):
    hyp, ref = (f"{fixtures}/bleu/grammar_ende.{end}" for end in ("hyp", "ref"))
    theirs = ["-m", "bleu", "chrf", "-f", "text", "-w", "2", "--confidence"]
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    expected = sacrebleus(ref, "-i", hyp, *theirs)
    monkeypatch.delenv("SACREBLEU_SEED")
    files = f"--translation={hyp}", f"--reference={ref}", "--seed=7"
    ours = said(capsys, t2t_bleu, *files, "--metrics=bleu,chrf", "--confidence")
    assert "|bs:1000|seed:7|" in expected
    assert ours.out.splitlines() == [line.strip() for line in expected.splitlines()]


@pytest.mark.parametrize(
    ("flags", "theirs"),
    [
        (["--metrics=chrf", "--chrf_word_order=2"], ["chrf", "--chrf-word-order", "2"]),
        (["--metrics=chrf", "--chrf_word_order=1", "--lowercase"],
         ["chrf", "--chrf-word-order", "1", "--chrf-lowercase"]),
        (["--tokenize=zh"], ["bleu", "--tokenize", "zh"]),
        (["--tokenize=char"], ["bleu", "--tokenize", "char"]),
    ],
    ids=["chrF2++", "chrF2+", "zh", "char"],
)  # fmt: skip
def test_options_are_those_of_sacrebleus_command(tmp_path, capsys, flags, theirs):
    texts = {
        "out": "Der Hund sieht einen Vogel.\n他们经常 sleep。\nKatzen schlafen.\n",
        "ref": "Ein Hund sieht Vögel.\n他们经常睡觉。\nDie Katze schläft, oft.\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    out, ref = str(tmp_path / "out"), str(tmp_path / "ref")
    expected = sacrebleus(ref, "-i", out, "-f", "text", "-w", "2", "-m", *theirs)
    assert t2t_bleu.main([f"--translation={out}", f"--reference={ref}", *flags]) == 0
    assert capsys.readouterr().out == expected
    assert re.search(r"chrF2\+\+?\|.*nw:[12]|tok:(zh|char)", expected)


@pytest.mark.parametrize(
    ("tokenize", "module", "extra"),
    [("ja-mecab", "ja_mecab", "ja"), ("ko-mecab", "ko_mecab", "ko")],
)
def test_missing_package_is_named(files, capsys, monkeypatch, tokenize, module, extra):
    monkeypatch.setattr(f"sacrebleu.tokenizers.tokenizer_{module}.MeCab", None)
    flags = [*files("a\n", "a\n"), f"--tokenize={tokenize}"]
    message = f"tokenize={tokenize} needs pip install 'sacrebleu[{extra}]'"
    assert message in refusal(capsys, t2t_bleu, *flags)


def test_model_that_cannot_be_downloaded(files, capsys, monkeypatch, tmp_path):
    def no_network(url, path):
        raise OSError("no network")

    spm = "sacrebleu.tokenizers.tokenizer_spm"
    monkeypatch.setattr(f"{spm}.SACREBLEU_DIR", str(tmp_path))
    monkeypatch.setattr(f"{spm}.download_file", no_network)
    flags = [*files("a\n", "a\n"), "--tokenize=flores200"]
    message = "needs a model, which sacrebleu downloads once into ~/.sacrebleu: no net"
    assert f"tokenize=flores200 {message}" in refusal(capsys, t2t_bleu, *flags)


@pytest.fixture
def two_references(tmp_path):
    """Paths of translations and of two references; the second has a blank line fewer,
    and a translation is like neither.
    """
    texts = {
        "out": "The dog sees a bird.\n\nWe cry.\nA cat sleeps there .\n",
        "other": "A dog sees birds.\n\nWe often cry.\nThe cat sleeps.\n",
        "ref1": "The dog sees a bird.\n\nWe cry often.\nThe cat is asleep here.\n",
        "ref2": "A dog sees a bird.\nSomething\nWe cry.\nA cat sleeps here.\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return [str(tmp_path / name) for name in texts]


def test_two_references_as_sacrebleus_command(two_references, capsys):
    out, _, *references = two_references
    metrics = ["-m", "bleu", "chrf", "ter", "-f", "text", "-w", "2"]
    expected = sacrebleus(*references, "-i", out, *metrics)
    given = [f"--translation={out}", *(f"--reference={path}" for path in references)]
    lines = said(capsys, t2t_bleu, *given, METRICS).out.splitlines()
    assert lines == [line.strip() for line in expected.splitlines()]
    assert "|nrefs:2|" in lines[0]
    # the same reference twice is one reference
    again = said(capsys, t2t_bleu, *given, given[1], METRICS).out
    assert again.splitlines() == lines
    paper = said(capsys, t2t_bleu, *given, "--compound_split").out.splitlines()[1]
    assert "|nrefs:2|case:mixed" in paper


@pytest.fixture
def systems(fixtures, tmp_path):
    """Paths of a reference, of a baseline's translations and of slightly better
    ones.
    """
    reference = fixtures / "bleu" / "grammar_ende.ref"
    old, new = tmp_path / "old.de", tmp_path / "new.de"
    old.write_bytes((fixtures / "bleu" / "grammar_ende.hyp").read_bytes())
    right, lines = reference.read_text().splitlines(), old.read_text().splitlines()
    new.write_text(
        "\n".join(right[i] if i % 20 == 0 else line for i, line in enumerate(lines))
        + "\n"
    )
    return str(reference), str(old), str(new)


def test_paired_bootstrap_is_that_of_sacrebleus_command(systems, monkeypatch):
    reference, old, new = systems
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    monkeypatch.setenv("NO_COLOR", "1")
    options = ["-m", "bleu", "chrf", "ter", "--paired-bs", "-f", "latex", "-w", "4"]
    shown = sacrebleus(reference, "-i", old, new, *options)
    expected = re.findall(
        r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)(?: \(p = ([\d.]+)\))?", shown
    )
    texts = [Path(path).read_text().splitlines() for path in (old, new, reference)]
    differences = paired_bootstrap(*texts, ("bleu", "chrf", "ter"), seed=7)
    assert [score.metric for score in differences] == ["BLEU", "chrF2", "TER"]
    baselines = [(score.baseline, *score.baseline_interval) for score in differences]
    assert [
        (*(f"{value:.4f}" for value in values), "") for values in baselines
    ] == expected[:3]
    systems = [(score.system, *score.system_interval, score.p) for score in differences]
    assert [
        tuple(f"{value:.4f}" for value in values) for values in systems
    ] == expected[3:]
    assert all("|bs:1000|seed:7" in score.signature for score in differences)
    assert os.environ["SACREBLEU_SEED"] == "7"


def test_compare_prints_a_table(systems, capsys):
    reference, old, new = systems
    argv = [f"--translation={new}", f"--compare={old}", f"--reference={reference}"]
    argv.append(METRICS)
    out = said(capsys, t2t_bleu, *argv).out
    table, *changes = out.split("\n\n")
    head, _, bleu, _, ter, note, *signatures = table.splitlines()
    assert head == "| metric | old.de | new.de | difference | p |  |"
    scores = r"BLEU \| 55\.88 \(55\.\d\d ± 3\.\d\d\) \| 57\.96 \(57\.\d\d ± 3\.\d\d\)"
    assert re.search(scores + r" \| \+2\.08 \| 0\.0\d{3} \| significant ", bleu)
    assert re.search(r" -\d\.\d\d \| 0\.\d{4} \| (not )?significant ", ter)
    assert note.startswith("In brackets: mean and 95% confidence interval over the")
    assert [line.partition("|")[0] for line in signatures] == ["BLEU", "chrF2", "TER"]
    assert said(capsys, t2t_bleu, *argv).out == out
    assert said(capsys, t2t_bleu, *argv, "--seed=1").out != out
    itself = f"--translation={old}", *argv[1:3]
    table = said(capsys, t2t_bleu, *itself).out
    assert table.startswith(f"| metric | {old} | {old} |")  # by path
    assert re.search(r" \+0\.00 \| 1\.0000 \| not significant \|\n", table)
    assert "\n\n" not in table  # no sentence differs from itself
    assert len(changes) == 5
    for change in changes:
        assert re.match(r"line \d+1, better by \d\d\.\d\d \(chrf\)\n", change)


def test_the_sentences_that_changed_most(files, tmp_path, capsys):
    """By hand: the share of right tokens of each line; the first line is equal."""
    old = ["a b", "a x", "a b", "x x"]
    new = ["a b", "a b", "a x", "a b"]
    flags = files("\n".join(new), "\n".join(["a b"] * 4))
    write_text(tmp_path / "old.txt", "\n".join(old))
    flags += [f"--compare={tmp_path}/old.txt", "--metrics=bleu,token_accuracy"]
    _, *changes = said(capsys, t2t_bleu, *flags).out.split("\n\n")
    assert [change.splitlines()[0] for change in changes] == [
        "line 4, better by 100.00 (token_accuracy)",
        "line 2, better by 50.00 (token_accuracy)",
        "line 3, worse by 50.00 (token_accuracy)",
    ]
    assert changes[0].splitlines()[1:] == [
        "reference        a b",
        "old.txt          x x",
        "translation.txt  a b",
    ]
    flags[-1] = "--metrics=per"  # of which less is better
    _, change, *_ = said(capsys, t2t_bleu, *flags).out.split("\n\n")
    assert change.startswith("line 4, better by 100.00 (per)\n")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--metrics=bleu,rouge"], "There is no metric 'rouge'. Known: bleu, chrf, "),
        (["--metrics="], "--metrics must be given."),
        (["--reference="], "--reference must be given"),
        (["--tokenize=14a"], "tokenize must be one of none, zh, 13a, intl,"),
        (["--chrf_word_order=-1"], "chrf_word_order must be at least 0"),
        (["--compare=SELF", "--seed=-1"], "seed must be at least 0 and at most 42949"),
        (["--seed=5000000000"], "at most 4294967295. Received: 5000000000."),
        (
            ["--translation=other"],
            "--translation must be given once. Received: FOLDER/",
        ),
    ],
)
def test_what_cannot_be_computed(files, tmp_path, capsys, more, message):
    argv = [*files("a\n", "a\n"), *more]
    flags = [flag.replace("SELF", f"{tmp_path}/translation.txt") for flag in argv]
    stderr = refusal(capsys, t2t_bleu, *flags)
    assert message.replace("FOLDER", str(tmp_path)) in stderr


@pytest.mark.parametrize(
    ("translation", "reference", "messages"),
    [
        ("a\nb\n", "a\nb\nc\n", ["translation.txt with 2", "reference.txt with 3"]),
        ("", "a\n", ["at least 1", "translation.txt with 0"]),
        ("a\n", "", ["at least 1", "reference.txt with 0"]),
        (
            "gut\nschön\n",
            "gut\nschön\n".encode("latin-1"),
            ["reference.txt, line 2: text must be UTF-8"],
        ),
        ("a\n", None, ["reference.txt, which does not exist"]),
    ],
)
def test_refused_files(files, capsys, translation, reference, messages):
    stderr = refusal(capsys, t2t_bleu, *files(translation, reference))
    assert [message for message in messages if message not in stderr] == []


def test_metric_of_the_users_package(files, tmp_path, monkeypatch, capsys):
    """The example of CONTRIBUTING.md, and a name that ours has already."""
    monkeypatch.setattr(registry, "_metrics", dict(registry._metrics))
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    example = guide.partition("### A metric")[2].partition("```python\n")[2]
    package = tmp_path / "own_metrics"
    package.mkdir()
    write_text(package / "__init__.py", example.partition("```")[0])
    argv = [*files("a b\nc\n", "a c\nb\n"), f"--t2t_usr_dir={package}"]
    assert t2t_bleu.main([*argv, "--metrics=first_token,wer"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert (first[:12], first[-8:]) == ("first_token|", " = 50.00")
    assert second[-9:] == " = 100.00"
    with pytest.raises(ValueError, match="metric needs a name of its own"):
        registry.register_metric(type("Wer", (), {}))
