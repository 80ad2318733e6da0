"""Models that tensor2tensor trained, imported by the command, do here what they did
there.
"""

import functools
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from imported_model import (
    WSJ_VOCABULARY,
    decoded,
    imported,
    lines,
    token_losses,
)
from tensor2tensor_checkpoint import (
    TARGET_SPACE,
    variables_of,
    write_checkpoint,
    write_model,
)

import t2tlite
from t2tlite.bin import t2t_avg_checkpoints
from t2tlite.programs.tensor2tensor.variables import model_variables

# fixture -> vocabulary sizes
LOGITS = {"postnorm_notse": (97,), "prenorm": (97,), "prenorm_unshared": (97, 53)}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name != "prenorm_unshared"))
        for name in LOGITS
    ],
)
def test_logits_and_losses(t2t, tmp_path, name):
    data = np.load(t2t / f"transformer_logits_{name}.npz")
    flags = write_model(
        tmp_path / "t2t", variables_of(data), str(data["hparams_json"]), LOGITS[name]
    )
    flags += [f"--target_space_id={TARGET_SPACE}"] if name != "postnorm_notse" else []
    model = t2tlite.load(imported(tmp_path / "run", *flags)).engine.model
    logits = np.asarray(model(data["inputs"], data["targets"]))
    np.testing.assert_allclose(logits, data["logits"], atol=1e-4)
    losses = token_losses(logits, data["targets"], smoothing=0.1)
    np.testing.assert_allclose(losses, data["token_loss_ls0_1"], atol=1e-4)
    np.testing.assert_allclose(
        token_losses(logits, data["targets"]).sum(),
        data["loss_numerator_ls0"],
        rtol=1e-5,
    )


# Two models that its trainer trained, each with a vocabulary and sentences to decode.
MT, WSJ = "checkpoints/mt_prenorm", "checkpoints/wsj"
VOCABULARIES = {
    MT: "vocab.translate_ende_multi30k_small.2048.subwords",
    WSJ: WSJ_VOCABULARY,
}
SENTENCES = {MT: "in200.en", WSJ: "in.txt"}
GREEDY, BEAM = (
    "beam_size=1,extra_length=50",
    "beam_size=4,alpha=0.6,extra_length=50,batch_size=32",
)
# model, folder of the checkpoint within the model's, decode_hparams, its decoder's
# output
DECODED = {
    "mt greedy": (MT, "", GREEDY, "last.greedy.txt"),
    "mt beam": (MT, "", BEAM, "last.beam4.txt"),
    "mt averaged greedy": (MT, "avg3", GREEDY, "avg3.greedy.txt"),
    "mt averaged beam": (MT, "avg3", BEAM, "avg3.beam4.txt"),
    "wsj": (WSJ, "", "extra_length=60", "out.txt"),
    "wsj averaged": (WSJ, "avg2", "extra_length=60", "avg2.out.txt"),
}


@pytest.fixture(scope="module")
def runs(shared, tmp_path_factory):
    """runs(model, checkpoint): the run imported from a folder of checkpoints; each is
    imported once.
    """

    @functools.cache
    def run(model: str, checkpoint: str = "") -> Path:
        folder = shared / "t2t" / model
        flags = [
            f"--t2t_checkpoint={folder / checkpoint}",
            f"--t2t_vocab={folder / VOCABULARIES[model]}",
        ]
        return imported(tmp_path_factory.mktemp("imported") / "run", *flags)

    return run


@pytest.mark.parametrize(
    ("model", "checkpoint", "options", "outputs"), DECODED.values(), ids=DECODED
)
def test_the_same_text(shared, runs, tmp_path, model, checkpoint, options, outputs):
    folder = shared / "t2t" / model
    flags = [
        f"--decode_from_file={folder / SENTENCES[model]}",
        f"--decode_hparams={options}",
    ]
    assert decoded(runs(model, checkpoint), tmp_path / "out.txt", *flags) == lines(
        folder / outputs
    )


def n_best(actual: list[str]) -> list[list[tuple[str, float]]]:
    """t2t-decoder's lines `number ||| text ||| log_prob= value ||| score`, by
    number.
    """
    rows: dict[int, list[tuple[str, float]]] = {}
    for line in actual:
        number, text, _, score = line.split(" ||| ")
        rows.setdefault(int(number), []).append((text, float(score)))
    return [rows[number] for number in sorted(rows)]


@pytest.mark.parametrize(
    ("model", "count", "options", "outputs"),
    [
        (MT, 50, f"{BEAM},return_beams=4", "last.beam4_scores50.txt"),
        (WSJ, None, "beam_size=2,return_beams=2", "outb.txt"),
    ],
    ids=["translator", "parser"],
)
def test_the_same_beams(shared, runs, tmp_path, model, count, options, outputs):
    sentences = lines(shared / "t2t" / model / SENTENCES[model])[:count]
    (tmp_path / "in.txt").write_text(
        "".join(f"{line}\n" for line in sentences), encoding="utf-8"
    )
    flags = [f"--decode_from_file={tmp_path / 'in.txt'}", f"--decode_hparams={options}"]
    actual = decoded(runs(model), tmp_path / "out.txt", *flags)
    for ours, line in zip(
        n_best(actual), lines(shared / "t2t" / model / outputs), strict=True
    ):
        cells = line.split("\t")  # text, score, text, score, ...
        assert [text for text, _ in ours] == cells[0::2]
        np.testing.assert_allclose(
            [score for _, score in ours],
            [float(score) for score in cells[1::2]],
            atol=0.0051,
        )


@pytest.mark.parametrize(
    ("model", "pairs", "scores"),
    [(MT, "score50.tsv", "last.ref_scores50.txt"), (WSJ, "score.tsv", "scores.txt")],
)
def test_the_same_scores_of_a_file(shared, runs, tmp_path, model, pairs, scores):
    actual = decoded(
        runs(model),
        tmp_path / "out.txt",
        f"--score_file={shared / 't2t' / model / pairs}",
    )
    expected = lines(shared / "t2t" / model / scores)
    np.testing.assert_allclose(
        np.array(actual, float), np.array(expected, float), atol=1e-5
    )


def test_several_checkpoints_are_averaged_as_its_averages_are(shared, tmp_path):
    """Two checkpoints a and b of which one average is known: b = 2 * average - a."""
    folder = shared / "t2t" / MT
    readers = [
        tf.train.load_checkpoint(str(path / "model.ckpt-2800"))
        for path in (folder, folder / "avg3")
    ]
    last, mean = (
        {n: r.get_tensor(n) for n in model_variables(r.get_variable_to_shape_map())}
        for r in readers
    )
    other = {name: 2 * mean[name] - last[name] for name in mean}
    for step, variables in ((2600, other), (2800, last)):
        write_checkpoint(tmp_path / "t2t" / f"model.ckpt-{step}", variables)
    (tmp_path / "t2t" / "hparams.json").write_bytes(
        (folder / "hparams.json").read_bytes()
    )
    run = imported(
        tmp_path / "run",
        f"--t2t_checkpoint={tmp_path / 't2t'}",
        f"--t2t_vocab={folder / VOCABULARIES[MT]}",
    )
    assert t2t_avg_checkpoints.main([f"--output_dir={run}", "--n=2"]) == 0
    actual = decoded(
        run,
        tmp_path / "out.txt",
        f"--checkpoint_path={run / 'averaged'}",
        f"--decode_from_file={folder / 'in200.en'}",
        f"--decode_hparams={GREEDY}",
    )
    assert actual == lines(folder / "avg3.greedy.txt")


def test_the_run_notes_where_it_comes_from(shared, runs):
    run = runs(WSJ)
    manifest = json.loads((run / "manifest.json").read_text())
    assert (manifest["problem"], manifest["task"]) == ("wsj_parsing", "parsing")
    assert manifest["imported_from"]["folder"] == str(shared / "t2t" / WSJ)
    assert (run / "vocab.subwords").read_bytes() == (
        shared / "t2t" / WSJ / WSJ_VOCABULARY
    ).read_bytes()
    flags = (run / "flags.txt").read_text()
    assert flags.startswith("# t2t-import\n")
    assert "\n--t2t_checkpoint=" in flags
