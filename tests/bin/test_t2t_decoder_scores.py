"""How t2t-decoder --split scores: metrics, options and references that are chosen."""

import subprocess
import sys

import pytest
from tiny_run import change_manifest, last_of_each

from t2tlite.bin import t2t_decoder
from t2tlite.data.dataset import open_dataset
from t2tlite.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("loaded_once")


def decode(run, *more):
    return t2t_decoder.main(last_of_each(f"--output_dir={run}", *more))


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
    flags.append(f"--reference={second_reference}")
    assert decode(tiny_run.run, "--split=dev", *flags) == 0
    shown = capsys.readouterr().out
    written = tiny_run.run / "decodes" / "dev.120"
    done = subprocess.run(
        [sys.executable, "-m", "sacrebleu", f"{written}.ref", str(second_reference),
         "-i", f"{written}.txt", "-m", "chrf", "bleu", "ter", "--chrf-word-order", "2",
         "--tokenize", "char", "-f", "text", "-w", "2"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    signatures = []
    for line in done.stdout.splitlines():
        signature, _, rest = line.strip().partition(" = ")
        signatures.append(signature)
        name = signature.partition("|")[0]
        assert f"{name} {rest.split()[0]}" in shown
        assert signature in shown
    assert len(signatures) == 3
    assert all("|nrefs:2|" in signature for signature in signatures)
    record = RunFolder(tiny_run.run).decode_record("dev.120")
    assert list(record.scores) == ["chrF2++", "BLEU", "TER"]


def test_a_problem_of_which_one_output_is_right(
    tiny_run, tiny_run_copy, eagerly, capsys
):
    change_manifest(tiny_run_copy, task="text_to_text")
    assert decode(tiny_run_copy, "--split=dev", "--checkpoint_path=80") == 0
    folder = RunFolder(tiny_run_copy)
    outputs, references = (
        folder.decoded_file("dev.80", ending).read_text(encoding="utf-8").splitlines()
        for ending in ("txt", "ref")
    )
    equal = sum(map(str.__eq__, outputs, references))
    assert 0 < equal < 40
    shown = capsys.readouterr().out
    assert f"\nexact_match {100 * equal / 40:.2f} (token_accuracy " in shown
    assert "\nexact_match|nrefs:1|case:mixed|tok:white-space|version:" in shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--split=dev --metrics=rouge", "There is no metric 'rouge'."),
        ("--split=dev --reference={}/in.txt", "Received: the split dev with 40, {}/in.txt with 1. A reference"),
        ("--split=dev --reference={}/absent", "absent"),
        ("--decode_from_file={}/in.txt --metrics=bleu", "--metrics goes with --split. Received: --decode_from_file."),
        ("--decode_from_file={}/in.txt --tokenize=zh", "--tokenize goes with --split."),
    ],
)  # fmt: skip
def test_what_is_refused_before_work(tiny_run, tmp_path, capsys, flags, message):
    (tmp_path / "in.txt").write_text("red cat\n", encoding="utf-8")
    given = flags.replace("{}", str(tmp_path)).split()
    assert decode(tiny_run.run, *given) == 1
    assert message.replace("{}", str(tmp_path)) in capsys.readouterr().err


def test_scores_of_a_parser_are_its_own(tiny_run_copy, capsys):
    change_manifest(tiny_run_copy, task="parsing")
    assert decode(tiny_run_copy, "--split=dev", "--metrics=bleu") == 1
    message = "Received: a model whose outputs are trees. Leave the flags of the scores"
    assert message in capsys.readouterr().err
