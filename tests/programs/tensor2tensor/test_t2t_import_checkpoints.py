"""Which checkpoints t2t-import takes, from where, with which target space; and training
on from them.
"""

import random
from pathlib import Path

import numpy as np
import pytest
from imported_model import imported
from numpy_transformer import (
    SMALL,
    check_logits,
    draw,
    shapes,
    shard_shapes,
    small_model,
)
from run_command import run_command
from tensor2tensor_checkpoint import write_checkpoint, write_model

import t2tlite
from t2tlite.bin import t2t_datagen, t2t_trainer
from t2tlite.files.checkpoint_paths import list_checkpoints
from t2tlite.programs.tensor2tensor.variables import trained_target_space
from t2tlite.run_folder import RunFolder
from t2tlite.training.checkpoints import restore_weights

HPARAMS, VARIABLES = small_model()
SPACE = "transformer/body/target_space_embedding/kernel"


def check_checkpoints(
    run: Path, expected: dict[int, dict], hparams: dict, sizes=(41,), space: int = 0
) -> None:
    """A run has these checkpoints (step -> variables) and no other, and they compute
    what they stand for.
    """
    assert list_checkpoints(run) == [
        f"{run}/model.ckpt-{step}" for step in sorted(expected)
    ]
    translator = t2tlite.load(run)
    assert translator.step == max(expected)
    for step, variables in expected.items():
        restore_weights(translator.engine.model, f"{run}/model.ckpt-{step}")
        check_logits(translator.engine.model, variables, hparams, sizes, space)


def test_all_checkpoints_of_a_folder(tmp_path, capsys):
    """In the order of their numbers: 10 comes after 9."""
    steps, wanted = (
        (0, 9, 10, 250_000, 10**12),
        shapes(SMALL) | shard_shapes(41, 16, "shared", [41]),
    )
    models = {step: draw(wanted, seed) for seed, step in enumerate(steps)}
    for step in (250_000, 9, 10**12, 0):
        write_checkpoint(tmp_path / "t2t" / f"model.ckpt-{step}", models[step])
    run = imported(
        tmp_path / "run",
        *write_model(tmp_path / "t2t", models[10], SMALL, (41,), step=10),
    )
    check_checkpoints(run, models, SMALL)
    # one of the 32 rows of target spaces
    count = sum(value.size for value in models[10].values()) - 31 * 16
    message = ", ".join(f"model.ckpt-{step}" for step in steps)
    assert (
        f"Imported {message}: {count:,} parameters, target space 0. "
        in capsys.readouterr().out
    )


@pytest.mark.parametrize("ending", ["", ".index", ".meta", ".data-00000-of-00001"])
def test_a_checkpoint_by_the_name_of_any_of_its_files(tmp_path, ending):
    _, vocabulary = write_model(tmp_path / "t2t", VARIABLES, HPARAMS, (41,))
    write_checkpoint(tmp_path / "t2t" / "model.ckpt-8", {"other": np.float32(1)})
    checkpoint = f"--t2t_checkpoint={tmp_path}/t2t/model.ckpt-7{ending}"
    run = imported(tmp_path / "run", checkpoint, vocabulary)
    assert list_checkpoints(run) == [f"{run}/model.ckpt-7"]


@pytest.mark.slow
def test_hparams_above_an_average(tmp_path, monkeypatch):
    """Also as seen from the folder of the average."""
    _, vocabulary = write_model(
        tmp_path / "t2t", {"other": np.float32(1)}, HPARAMS, (41,)
    )
    average = write_checkpoint(
        tmp_path / "t2t" / "avg" / "model.ckpt-7", VARIABLES
    ).parent
    run = imported(tmp_path / "run", f"--t2t_checkpoint={average}", vocabulary)
    check_checkpoints(run, {7: VARIABLES}, HPARAMS)
    monkeypatch.chdir(average)
    run = imported(tmp_path / "run2", "--t2t_checkpoint=.", vocabulary)
    assert RunFolder(run).manifest().imported_from.folder == str(average)


def adam_slots(
    variables: dict, moved: tuple[int, ...], prefix: str = "training/"
) -> dict[str, np.ndarray]:
    """What Adam remembers: of the target space embedding, of these rows alone."""
    slots = {
        f"{prefix}{name}/{slot}": np.ones_like(v)
        for name, v in variables.items()
        for slot in ("Adam", "Adam_1")
    }
    moments = np.zeros_like(variables[SPACE])
    moments[list(moved)] = 1e-8
    return slots | {f"{prefix}{SPACE}/Adam_1": moments}


@pytest.mark.parametrize(
    "prefix", ["training/", pytest.param("", marks=pytest.mark.slow)]
)
def test_adam_tells_the_target_space(tmp_path, capsys, prefix):
    stored = (
        VARIABLES | adam_slots(VARIABLES, (21,), prefix) | {"global_step": np.int64(7)}
    )
    run = imported(
        tmp_path / "run", *write_model(tmp_path / "t2t", stored, HPARAMS, (41,))
    )
    check_checkpoints(run, {7: VARIABLES}, HPARAMS, space=21)
    assert "target space 21." in capsys.readouterr().out


@pytest.mark.parametrize("moved", [(), (3, 4), tuple(range(32))])
def test_adam_does_not_tell(moved):
    variables = small_model()[1]
    assert trained_target_space(variables | adam_slots(variables, moved)) == 0
    other_shape = {f"training/{SPACE}/Adam_1": np.float32(1)}
    assert trained_target_space(variables | other_shape) == 0


def test_a_target_space_of_choice(tmp_path, capsys):
    flags = write_model(
        tmp_path / "t2t", VARIABLES | adam_slots(VARIABLES, (5,)), HPARAMS, (41,)
    )
    run = imported(tmp_path / "run", *flags, "--target_space_id=31")
    check_checkpoints(run, {7: VARIABLES}, HPARAMS, space=31)
    assert "target space 31." in capsys.readouterr().out


def parallel_text(folder: Path) -> list[str]:
    """Files of a few words that every vocabulary here has, and the flags that name
    them.
    """
    draw = random.Random(1)
    flags = []
    for split, count in (("train", 60), ("dev", 5)):
        for side in ("source", "target"):
            words = draw.choices(["word1", "word5", "word12"], k=6 * count)
            lines = [" ".join(words[i : i + 6]) for i in range(0, len(words), 6)]
            (folder / f"{split}.{side}").write_text("\n".join(lines) + "\n")
            flags.append(f"--{split}_{side}={folder}/{split}.{side}")
    return flags


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tables", "names"),
    [
        ({"shared": 41}, ["vocab.subwords"]),
        (
            {"input_emb": 41, "target_emb": 29, "softmax": 29},
            ["vocab.source.subwords", "vocab.target.subwords"],
        ),
    ],
)
def test_a_new_run_starts_from_its_weights(tmp_path, capsys, tables, names):
    """With its vocabularies and hparams. The first update has rate 0 there, so it
    leaves the weights as they were.
    """
    hparams = SMALL | {"shared_embedding_and_softmax_weights": len(tables) == 1}
    variables = draw(shapes(hparams, list(tables.items())))
    sizes = tuple(dict.fromkeys(tables.values()))
    given = write_model(tmp_path / "t2t", variables, hparams, sizes)
    run = imported(tmp_path / "run", *given)
    data = f"--data_dir={tmp_path / 'data'}"
    vocabularies = ",".join(str(run / name) for name in names)
    make = ["--problem=parallel_text", f"--vocab_file={vocabularies}", data]
    run_command(t2t_datagen, *make, "--num_processes=1", *parallel_text(tmp_path))
    folders = [f"--output_dir={tmp_path / 'new'}", f"--warm_start_from={run}", data]
    run_command(t2t_trainer, *folders, "--train_steps=3", "--local_eval_frequency=1")
    assert f"from the weights of {run}/model.ckpt-7." in capsys.readouterr().err
    new = t2tlite.load(tmp_path / "new", "model.ckpt-1")
    check_logits(new.engine.model, variables, hparams, sizes)
    before = new.engine.model.get_weights()
    restore_weights(new.engine.model, f"{tmp_path}/new/model.ckpt-3")
    assert not any(map(np.array_equal, before, new.engine.model.get_weights()))
    hparams = RunFolder(run).hparams().override("jit_compile=false")  # as on a CPU
    assert RunFolder(tmp_path / "new").hparams() == hparams
    manifest = RunFolder(tmp_path / "new").manifest()
    assert (manifest.problem, manifest.imported_from) == ("parallel_text", None)
    for name in names:
        assert (tmp_path / "new" / name).read_bytes() == (run / name).read_bytes()
