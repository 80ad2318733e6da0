"""A run directory's records: read, written, damaged."""

import dataclasses
import json
import re

import pytest
from tiny_run import change_manifest

from t2tlite.config import HParams
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.run_records import (
    CostFile,
    DecodeRecord,
    DevEvaluation,
    Environment,
    RunCost,
)

COST = RunCost(step=9, steps=9, seconds=2.5, device_seconds=5.0, tokens=700, flops=1e9)
DECODED = DecodeRecord(
    "dev", 9, "run/model.ckpt-9", 2, {"BLEU": 30.5}, {"BLEU": "sig"}, {"beam_size": 4}, 1.5, name="dev.9",
)  # fmt: skip

MANIFEST = {
    "format_version": 1,
    "problem": "parallel_text",
    "task": "translation",
    "t2tlite": "0.1.0",
    "options": {"vocab_size": 300},
    "languages": {"source": "en", "target": "de"},
    "decode_defaults": {"beam_size": 4, "alpha": 0.6, "extra_length": 50},
    "vocabulary": {"file": "vocab.model", "size": 300, "bytes": 5, "sha256": "a"},
    "splits": {
        "train": {
            "pairs": 10,
            "source_tokens": 40,
            "target_tokens": 60,
            "longest_source": 5,
            "longest_target": 8,
            "dropped": {"empty": 1},
            "shards": [
                {"file": "train-00000.arrow", "pairs": 10, "bytes": 7, "sha256": "b"}
            ],
        }
    },
    "made_from": [{"file": "train.en", "bytes": 3, "modified_ns": 1, "sha256": "c"}],
    "reverse": True,
    "data_dir": "/data",
}


@pytest.fixture
def run(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    (tmp_path / "hparams.json").write_text('{"format_version": 1, "hidden_size": 64}')
    return RunFolder(tmp_path)


def test_manifest_is_read_in_the_runs_direction(run):
    manifest = run.manifest()
    expected = "parallel_text_rev", "translation", ("de", "en")
    assert (manifest.name, manifest.task, manifest.language_pair) == expected
    assert manifest.vocabulary_sizes == (300, 300)
    train = manifest.split("train")
    assert (train.source_tokens, train.longest_source, train.mean_lengths) == (
        60,
        8,
        (6.0, 4.0),
    )
    assert manifest.splits["train"].source_tokens == 40  # as the files have it
    assert manifest.imported_from is None


def test_what_is_written_is_read_again(run):
    environment = Environment(
        "0.1.0", "2.21.0", "3.15.1", "2.4.6", "3.11.7", "x86_64 CPU, 2 cores", 1
    )
    run.write(environment)
    flags = {"problem": "parallel_text_rev", "hparams_set": "transformer_tiny"}
    command = ["t2t-trainer", *[f"--{name}={value}" for name, value in flags.items()]]
    run.write_flags(command)
    costs = [COST, dataclasses.replace(COST, step=12)]
    run.write(CostFile(tuple(costs)))
    best = DevEvaluation(9, {"loss": 0.5, "bleu": 30.0})
    run.write(best)
    run.write_decode_record(DECODED)
    run.decoded_file("dev.9").write_text("eins\nzwei\n")
    assert run.read(Environment) == environment
    assert (run.command(), run.flags()) == (command, flags)
    assert run.costs() == costs
    written = json.loads((run.path / "cost.json").read_text())["costs"]
    assert [cost["step"] for cost in written] == [9, 12]
    assert run.best() == best
    assert run.decode_records() == ([DECODED], [])
    assert run.decoded_lines(DECODED) == ["eins", "zwei"]


def test_an_empty_directory(tmp_path):
    run = RunFolder(tmp_path)
    assert not run.exists()
    assert run.read(Environment) is run.best() is None
    assert run.costs() == run.checkpoints() == []
    assert (run.flags(), run.decode_records()) == ({}, ([], []))
    message = (
        r"^The run must be a folder that t2t-trainer made\. .* no hparams\.json\.$"
    )
    with pytest.raises(FileNotFoundError, match=message):
        run.hparams()
    with pytest.raises(FileNotFoundError, match=r"^A run needs its manifest\.json\."):
        run.manifest()


@pytest.mark.parametrize(
    ("checkpoint", "changes", "name"),
    [
        ("model.ckpt-9", [], "dev.9"),
        ("averaged/model.ckpt-9", [], "dev.9.averaged"),
        ("best/model.ckpt-7", ["beam_size=8", "alpha=1.0"], "dev.7.best.beam_size=8,alpha=1.0"),
        ("model.ckpt-9", ["alpha=0.0"], "dev.9.alpha=0.0"),
    ],
)  # fmt: skip
def test_decoding_name_has_checkpoint_and_options(run, checkpoint, changes, name):
    assert run.decode_name("dev", f"{run}/{checkpoint}", changes) == name
    run.write_decode_record(DECODED)
    other = dataclasses.replace(DECODED, name=name, scores={"BLEU": 99.0})
    run.write_decode_record(other)
    records, complaints = run.decode_records()
    assert complaints == []
    assert sorted(r.scores["BLEU"] for r in records) == (
        [99.0] if name == "dev.9" else [30.5, 99.0]
    )


def test_checkpoints_outside_the_run_have_own_records(run):
    folders = "best", "../other/best", "../another/best", "../other"
    names = [run.decode_name("dev", f"{run}/{name}/model.ckpt-9") for name in folders]
    assert [re.sub("-[0-9a-f]{8}$", "-HASH", name) for name in names] == [
        "dev.9.best", "dev.9.best-HASH", "dev.9.best-HASH", "dev.9.other-HASH",
    ]  # fmt: skip
    assert len(set(names)) == 4


def test_damaged_decode_record_is_reported_beside_the_others(run):
    run.write_decode_record(DECODED)
    (run.path / "decodes" / "test.3.json").write_text(
        '{"format_version": 1, "split": "test"}'
    )
    records, (complaint,) = run.decode_records()
    assert records == [DECODED]
    assert "test.3.json is damaged: Object missing required field `step`" in complaint


def test_hparams_are_a_record(run):
    hparams = HParams(hidden_size=48, pos="none")
    vocabulary = run.path / "learned"
    vocabulary.touch()
    run.create(hparams, run.manifest(), [vocabulary])
    written = json.loads((run.path / "hparams.json").read_text())
    assert written == {"format_version": 1, **dataclasses.asdict(hparams)}
    assert run.hparams() == hparams


def test_a_worker_other_than_the_chief_writes_nothing(run):
    before = sorted(run.path.rglob("*"))
    other = RunFolder(run.path, writes=False)
    other.create(HParams(), run.manifest(), [run.path / "absent"])
    other.write_flags(["t2t-trainer"])
    other.write(CostFile((COST,)))
    assert sorted(run.path.rglob("*")) == before
    assert other.hparams() == run.hparams()


def test_hparams_without_a_version_are_read(run):
    """Older versions of t2tlite wrote none."""
    (run.path / "hparams.json").write_text('{"hidden_size": 32}')
    assert run.hparams() == HParams(hidden_size=32)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format_version": 2, "hidden_size": 32}', r"hparams\.json must have format_version 1\. Received: 2\."),
        ('{"num_heads": 4', r"hparams\.json is damaged: Input data was truncated\."),
        (f'{{"num_heads": {"9" * 5000}}}', r"hparams\.json is damaged: "),
        ('{"num_heads": [4]}', r"is damaged: num_heads must be of type int\. Received: \[4\]"),
        ('{"num_head": 4}', r"is damaged: hparams has no field 'num_head'\."),
    ],
)  # fmt: skip
def test_damaged_hparams(run, text, message):
    (run.path / "hparams.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        run.hparams()


@pytest.mark.parametrize("folder", ["data", "data/twenty_words"])
def test_folder_that_holds_data_is_refused(tmp_path, folder):
    """Itself, or of several problems, as --data_dir names it; a folder with another
    run, or below the data, is not.
    """
    for path, manifest in (
        ("data/twenty_words", {"format_version": 1, "problem": "twenty_words"}),
        ("other/run", MANIFEST),
    ):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "manifest.json").write_text(json.dumps(manifest))
        (tmp_path / path).parent.joinpath("notes.txt").touch()
    for other in ("other", "data/twenty_words/new"):
        RunFolder(tmp_path / other).check_path()
    message = r"must be a folder of its own\. Received: \S+, which holds data\."
    with pytest.raises(ValueError, match=message):
        RunFolder(tmp_path / folder).check_path()


def test_the_run_of_a_checkpoint(run):
    for folder in (run.path, run.best_folder):
        folder.mkdir(exist_ok=True)
        (folder / "model.ckpt-3.index").touch()
        for path in (folder, folder / "model.ckpt-3"):
            assert run_of(path).path == run.path


@pytest.mark.parametrize(
    "changes",
    [
        {"problem": "../twenty_words"},
        {"problem": ""},
        {"languages": {"source": "en/../../x", "target": "de"}},
        {"languages": {"source": "en", "target": "de\n"}},
        {"splits": {"../train": {}}},
        {"vocabulary": {"file": "../vocab.model", "size": 1, "bytes": 1, "sha256": ""}},
    ],
)  # fmt: skip
def test_names_in_a_manifest_are_no_paths(tiny_run_copy, changes):
    """Files are named after them, in a run that somebody sends too."""
    change_manifest(tiny_run_copy, **changes)
    with pytest.raises(ValueError, match=r"is damaged: Expected `str` matching regex"):
        RunFolder(tiny_run_copy).manifest()


def test_a_run_of_tensor2tensor_is_named(tmp_path, fixtures):
    theirs = fixtures / "tensor2tensor" / "trained_wsj" / "hparams.json"
    (tmp_path / "hparams.json").write_bytes(theirs.read_bytes())
    message = r" is a run of tensor2tensor\. .* t2t-import --"
    with pytest.raises(ValueError, match=message):
        RunFolder(tmp_path).hparams()
