"""A sweep over data with a vocabulary for each language: sizes, costs, and the runs
that it refuses, resumes or leaves as they are.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from tiny_task import TinyTask, sentences

from t2tlite.config import HParams
from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import generate
from t2tlite.models.transformer import build_transformer
from t2tlite.problems import grammar
from t2tlite.problems.grammar import GrammarParsing
from t2tlite.programs.table3 import dry_run, results, sweep
from t2tlite.programs.table3.rows import ROWS, select
from t2tlite.programs.table3.sweep import Sweep
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.task import Score
from t2tlite.training.loop_config import LoopConfig
from t2tlite.vocabularies.sentencepiece_encoder import train_sentencepiece

BASE = HParams(
    hidden_size=8,
    filter_size=8,
    num_hidden_layers=1,
    num_heads=1,
    batch_size=512,
    max_length=64,
    train_steps=2,
    shared_embedding_and_softmax_weights=False,
)


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    """Vocabularies of the source, of the target, and another one of the target."""
    folder = tmp_path_factory.mktemp("vocabularies")
    sources, targets = zip(*sentences(200, 9), strict=True)
    for name, text, size in (
        ("a", sources, 300),
        ("b", sources + targets, 330),
        ("c", targets[:30], 300),
    ):
        train_sentencepiece(text, size, folder / f"{name}.model")
    return [str(folder / f"{name}.model") for name in "abc"]


@pytest.fixture(scope="module")
def folder(vocabularies, tmp_path_factory):
    """Data with the first two vocabularies."""
    folder = tmp_path_factory.mktemp("two_vocabularies")
    generate(TinyTask(vocab_file=tuple(vocabularies[:2])), folder, num_processes=1)
    return folder


@pytest.fixture(params=["tiny_task", "tiny_task_rev"])
def dataset(folder, request):
    return open_dataset(folder, request.param)


def sweep_of(dataset, output_dir, base=BASE):
    config = LoopConfig(train_steps=base.train_steps, local_eval_frequency=0)
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    return Sweep(dataset, base, output_dir, strategy, config, ["t2t-table3"])


def swept(dataset, output_dir, base=BASE):
    """The result of a sweep of one row, the base, in the table."""
    sweep_of(dataset, output_dir, base).run(select(["base"]), [1])
    table = json.loads((output_dir / "table3.json").read_text(encoding="utf-8"))
    (result,) = table["rows"][0]["results"]
    return result


@pytest.fixture(autouse=True)
def models_are_kept(monkeypatch):
    """Lets a sweep free no memory after a row, which takes seconds in a process of many
    tests.
    """
    monkeypatch.setattr(sweep, "forget_models", lambda: None)


@pytest.fixture
def decoder(monkeypatch):
    """A decoder whose translations of dev have BLEU 3; counts how often it decodes."""

    def decode_and_score(sources, *_):
        decoder.calls += 1
        if decoder.interrupted:
            raise KeyboardInterrupt
        score = Score("BLEU", {"BLEU": 3.0, "chrF2": 9.0}, {"BLEU": "signature"})
        return SimpleNamespace(best=[SimpleNamespace(text="a")], score=score)

    decoder = SimpleNamespace(
        calls=0, interrupted=False, decode_and_score=decode_and_score
    )
    train_run = sweep.train_run

    def train(*arguments):
        return train_run(*arguments)._replace(decoder=decoder)

    monkeypatch.setattr(sweep, "scored_text", lambda *_: (["a"], ["A"]))
    monkeypatch.setattr(sweep, "train_run", train)
    return decoder


@pytest.mark.slow
def test_dry_run_builds_and_counts_both_vocabularies(dataset, monkeypatch):
    built = []

    def build(hparams, *sizes):
        built.append(build_transformer(hparams, *sizes))
        return built[-1]

    monkeypatch.setattr(dry_run, "build_transformer", build)
    text = dry_run.cost_table(select(["base"]), BASE, dataset, 1)
    times = [
        *dry_run.timed_rows(
            select(["base"]), BASE, 1, dataset, tf.distribute.get_strategy()
        )
    ]
    (model,), (source, target) = (
        built,
        (encoder.vocab_size for encoder in dataset.encoders),
    )
    assert source != target
    assert model.source_embedding.weight.shape == (source, 8)
    assert (
        model.target_embedding.weight.shape
        == model.softmax_embedding.weight.shape
        == (target, 8)
    )
    assert f"| base | {model.count_params() / 1e6:.3g} | 65 |" in text
    assert f"Vocabulary: {source} and {target} pieces (paper: 37,000)." in text
    assert 0 < float(times[0].splitlines()[2].split(" | ")[1]) < 60  # seconds of a step


def test_cost_is_of_the_mean_lengths_in_its_direction(dataset):
    store = dataset.store("train")
    source, target = (
        float(lengths.mean())
        for lengths in (store.source_lengths, store.target_lengths)
    )
    d, size = 8, dataset.encoders[1].vocab_size
    # two operations a multiplication: a layer each, projections and feed-forward 6 d^2,
    # scores and their use 2 d
    encoder = source * 6 * d * d + 2 * source * source * d
    decoder = (
        target * (6 + 2) * d * d
        + source * 2 * d * d
        + 2 * (target * target + target * source) * d
    )
    pair = 2 * (encoder + decoder + target * d * size)
    pairs = 512 / max(source, target)
    assert results.cost_of(BASE, dataset).flops_per_step == pytest.approx(
        3 * pair * pairs
    )


@pytest.mark.usefixtures("decoder")
def test_result_is_identified_by_both_vocabularies(
    vocabularies, folder, tmp_path, fake_dev_losses
):
    dataset = open_dataset(folder, "tiny_task")
    fake_dev_losses += [2.0]
    result = swept(dataset, tmp_path / "sweep")
    entries = json.loads((dataset.folder / "manifest.json").read_text(encoding="utf-8"))
    both = [entries[name]["sha256"] for name in ("vocabulary", "target_vocabulary")]
    assert result["vocabulary_sha256"] == "+".join(both)
    assert result["parameters"] == results.cost_of(BASE, dataset).parameters
    problem = TinyTask(vocab_file=(vocabularies[0], vocabularies[2]))
    other = generate(problem, tmp_path / "other", num_processes=1).dataset
    with pytest.raises(
        ValueError, match=r"a run on tiny_task with this vocabulary and seed 1\."
    ):
        swept(other, tmp_path / "sweep")
    shutil.move(tmp_path / "sweep" / "base", tmp_path / "sweep" / "base.seed7")
    assert sweep_of(other, tmp_path / "sweep").table().results() == []
    with pytest.raises(ValueError, match=r"this vocabulary and seed 7\. .* seed 1\."):
        sweep_of(dataset, tmp_path / "sweep").run(select(["base"]), [7])


def test_row_resumes_where_it_was_interrupted(
    folder, tmp_path, decoder, fake_dev_losses, capsys
):
    """In the evaluation at the end of training, then while dev is decoded; a row with
    its records is not touched, even without its checkpoints.
    """
    dataset = open_dataset(folder, "tiny_task")
    fake_dev_losses += [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        swept(dataset, tmp_path)
    assert sweep_of(dataset, tmp_path).table().results() == []
    fake_dev_losses += [2.0]
    decoder.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        swept(dataset, tmp_path)
    assert "Evaluating step 2, which was not finished." in capsys.readouterr().err
    assert sweep_of(dataset, tmp_path).table().results() == []
    decoder.interrupted = False
    fake_dev_losses += [2.0]  # of a run that has nothing to train
    first = swept(dataset, tmp_path)
    assert "Nothing to train" in capsys.readouterr().err
    assert (first["loss"], first["bleu"], decoder.calls) == (2.0, 3.0, 2)
    for checkpoint in (tmp_path / "base").glob("model.ckpt-*"):
        checkpoint.unlink()
    assert swept(dataset, tmp_path) == first
    assert decoder.calls == 2
    changed = dataclasses.replace(BASE, learning_rate_constant=0.1)
    with pytest.raises(
        ValueError,
        match=r"a row of other hparams: learning_rate_constant \S+ -> 0\.1\. Use another",
    ):
        swept(dataset, tmp_path, changed)


def test_row_of_an_earlier_version_is_decoded_again(
    folder, tmp_path, decoder, fake_dev_losses
):
    """It had its result in a file result.json, and no record of dev."""
    dataset = open_dataset(folder, "tiny_task")
    fake_dev_losses += [2.0]
    first = swept(dataset, tmp_path)
    run = RunFolder(tmp_path / "base")
    run.decoded_file("dev.2", "json").rename(run.path / "result.json")
    fake_dev_losses += [2.0]
    assert swept(dataset, tmp_path) == first
    assert decoder.calls == 2


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("decodes/dev.2.json", "3.0", '"3"'),
        ("evaluations.json", '"step": 2', '"step": null'),
        ("training.json", '"replicas": 1', '"replicas": "1"'),
        ("hparams.json", '"hidden_size": 8', '"hidden_size": 0'),
    ],
)
def test_damaged_record(folder, tmp_path, decoder, fake_dev_losses, name, old, new):
    dataset = open_dataset(folder, "tiny_task")
    fake_dev_losses += [2.0]
    swept(dataset, tmp_path)
    path = tmp_path / "base" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{path.name} is damaged: "):
        swept(dataset, tmp_path)
    assert decoder.calls == 1


def test_two_processes_share_a_folder_and_its_table(
    folder, tmp_path, monkeypatch, decoder, fake_dev_losses
):
    dataset = open_dataset(folder, "tiny_task")
    train_run = sweep.train_run

    def run(row):
        sweep_of(dataset, tmp_path).run(select([row]), [1])

    def train(dataset, hparams, *arguments):
        if hparams == BASE:
            run("ff1024")  # what another process does meanwhile
        return train_run(dataset, hparams, *arguments)

    monkeypatch.setattr(sweep, "train_run", train)
    fake_dev_losses += [2.0, 2.5]
    run("base")
    assert decoder.calls == 2
    shown = (tmp_path / "table3.md").read_text(encoding="utf-8")
    assert "- 2 runs, " in shown
    assert (tmp_path / "table3.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("fake_dev_losses")
def test_full_disk_ends_the_sweep(folder, tmp_path, monkeypatch):
    """It is not taken for too little memory, with which the sweep would train the next
    row.
    """

    def full(*_, **__):
        raise tf.errors.ResourceExhaustedError(
            None, None, "model.ckpt-2_temp/part-0; No space left on device"
        )

    monkeypatch.setattr(tf.train.Checkpoint, "write", full)
    message = (
        r"^model\.ckpt-2 must fit on the disk of .* Received: .*; No space left on"
        r" device\."
    )
    with pytest.raises(OSError, match=message):
        swept(open_dataset(folder, "tiny_task"), tmp_path / "sweep")


def test_rows_that_do_not_fit_the_base_are_not_in_the_table(folder, tmp_path):
    rows = sweep_of(open_dataset(folder, "tiny_task"), tmp_path).table().rows
    assert {row.name for row in ROWS} - {row.name for row in rows} == {
        "h1",
        "h4",
        "l2",
        "l4",
        "l8",
    }


@pytest.mark.slow
def test_parser_is_scored_by_its_task(tmp_path, monkeypatch):
    for name, value in (("MAX_WORDS", 7), ("HELD_OUT_SIZE", 8)):
        monkeypatch.setattr(grammar, name, value)
    dataset = generate(
        GrammarParsing(train_size=200, vocab_size=1000),
        tmp_path / "data",
        num_processes=1,
    ).dataset
    base = dataclasses.replace(BASE, shared_embedding_and_softmax_weights=True)
    result = swept(dataset, tmp_path / "sweep", base)
    assert (result["metric"], result["bleu_signature"]) == (
        "F1",
        "EVALB, COLLINS.prm, all lengths",
    )
    assert 0 <= result["bleu"] <= 100
    trees = (
        (tmp_path / "sweep" / "base" / "decodes" / "dev.2.beam_size=4.txt")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    assert len(trees) == 8
    assert all(tree.startswith("(TOP ") for tree in trees)
    assert "F1 (dev)" in (tmp_path / "sweep" / "table3.md").read_text(encoding="utf-8")


def dev_of(longest):
    """Data whose longest side in dev has so many tokens, EOS included; another pair has
    9.
    """
    lengths = np.array([9, longest])
    store = SimpleNamespace(source_lengths=lengths, target_lengths=lengths)
    manifest = SimpleNamespace(
        split=lambda name: SimpleNamespace(longest_source=longest, longest_target=9),
        has_one_vocabulary=True,
    )
    return SimpleNamespace(manifest=manifest, store=lambda name: store)


def test_learned_positions_must_reach_what_other_rows_evaluate():
    """A line that no row evaluates decides nothing."""
    row_e = select(["pos_learned"])
    sweep.check_rows(row_e, BASE, dev_of(64))
    with pytest.raises(ValueError, match=r"max_length=64, but dev's longest .* has 65"):
        sweep.check_rows(row_e, BASE, dev_of(65))
    with pytest.raises(ValueError, match=r"max_length=64, .* has 2049"):
        sweep.check_rows(row_e, BASE, dev_of(2049))
    sweep.check_rows(row_e, BASE, dev_of(2050))
    sweep.check_rows(select(["base"]), BASE, dev_of(2049))


def test_two_vocabularies_are_not_shared(dataset):
    """Refused before the first row is trained."""
    shared = dataclasses.replace(BASE, shared_embedding_and_softmax_weights=True)
    with pytest.raises(ValueError, match="whose contents differ"):
        sweep.check_rows(select(["base"]), shared, dataset)
    sweep.check_rows(select(["base"]), BASE, dataset)
