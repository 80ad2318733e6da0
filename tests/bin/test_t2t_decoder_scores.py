"""How t2t-decoder --split scores: metrics, options and references that are chosen."""

import re
import subprocess
import sys

import pytest
from run_command import refusal, said
from tiny_run import change_manifest

from t2tlite.bin import t2t_decoder
from t2tlite.data.dataset import open_dataset
from t2tlite.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.fixture
def second_reference(tiny_run, tmp_path):
    """A file of other references for dev, a few of them equal to the first."""
    lines = open_dataset(tiny_run.data).store("dev").target_text()
    for i, line in enumerate(lines):
        if i % 3:
            lines[i] = " ".join(reversed(line.split()))
    path = tmp_path / "second.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_scores_are_those_of_sacrebleus_command(tiny_run, second_reference, capsys):
    flags = ["--metrics=chrf,bleu,ter", "--chrf_word_order=2", "--tokenize=char"]
    flags.append("--confidence")
    flags.append(f"--reference={second_reference}")
    run = f"--output_dir={tiny_run.run}"
    shown = said(capsys, t2t_decoder, run, "--split=dev", *flags).out
    written = tiny_run.run / "decodes" / "dev.120"
    files = [f"{written}.ref", second_reference, "-i", f"{written}.txt"]
    options = (
        "-m chrf bleu ter --chrf-word-order 2 --tokenize char --confidence -f text -w 2"
    )
    program = [sys.executable, "-m", "sacrebleu", *files, *options.split()]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    signatures = []
    for line in done.stdout.splitlines():
        signature, _, rest = line.strip().partition(" = ")
        signatures.append(signature)
        name = signature.partition("|")[0]
        value, half = re.match(r"([\d.]+)(?: \(.*± +([\d.]+)\))?", rest).groups()
        # sacrebleu does not show the interval of a perfect TER
        assert f"{name} {value} ± {half or '0.00'}" in shown
        assert signature in shown
    assert len(signatures) == 3
    assert all("|nrefs:2|" in signature for signature in signatures)
    record = RunFolder(tiny_run.run).decode_record("dev.120")
    assert list(record.scores) == [*record.intervals] == ["chrF2++", "BLEU", "TER"]


def test_a_problem_of_which_one_output_is_right(
    tiny_run, tiny_run_copy, eagerly, capsys
):
    change_manifest(tiny_run_copy, task="text_to_text")
    flags = f"--output_dir={tiny_run_copy}", "--split=dev", "--checkpoint_path=80"
    shown = said(capsys, t2t_decoder, *flags).out
    folder = RunFolder(tiny_run_copy)
    outputs, references = (
        folder.decoded_file("dev.80", ending).read_text(encoding="utf-8").splitlines()
        for ending in ("txt", "ref")
    )
    equal = sum(map(str.__eq__, outputs, references))
    assert 0 < equal < 40
    assert f"\nexact_match {100 * equal / 40:.2f} (token_accuracy " in shown
    assert "\nexact_match|nrefs:1|case:mixed|tok:white-space|version:" in shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--split=dev --metrics=rouge", "There is no metric 'rouge'."),
        ("--split=dev --reference={}/in.txt", "Received: the split dev with 40, {}/in.txt with 1. A reference"),
        ("--split=dev --reference={}/absent", "absent"),
        ("--decode_from_file={}/in.txt --metrics=bleu", "--metrics goes with --split."),
        ("--decode_from_file={}/in.txt --tokenize=zh", "--tokenize goes with --split."),
    ],
)  # fmt: skip
def test_what_is_refused_before_work(tiny_run, tmp_path, capsys, flags, message):
    (tmp_path / "in.txt").write_text("red cat\n", encoding="utf-8")
    given = flags.replace("{}", str(tmp_path)).split()
    stderr = refusal(capsys, t2t_decoder, f"--output_dir={tiny_run.run}", *given)
    assert message.replace("{}", str(tmp_path)) in stderr


def test_scores_of_a_parser_are_its_own(tiny_run_copy, capsys):
    change_manifest(tiny_run_copy, task="parsing")
    flags = f"--output_dir={tiny_run_copy}", "--split=dev", "--metrics=bleu"
    message = "Received: a model of trees."
    assert message in refusal(capsys, t2t_decoder, *flags)
