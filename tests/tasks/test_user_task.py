"""A task that a user's package registers, through the commands."""

import sys

import pytest

import t2tlite.hparams
import t2tlite.problems  # noqa: F401  registered before the tests' package
from t2tlite import registry
from t2tlite.bin import t2t_datagen, t2t_decoder, t2t_trainer
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import Task, open_task

PACKAGE = '''
import dataclasses
import t2tlite.hparams
import t2tlite.problems  # noqa: F401  registered before the tests' package
from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.data.problem import Problem
from t2tlite.tasks.task import Output, Score, Task

@registry.register_task
class Spelling(Task):
    """Words, of which the longest hypothesis counts, in capitals; scored by their first letter."""

    name = "spelling"
    outputs = "spellings"
    references_ending = "letters"

    def hypotheses(self, wanted, beam_size):
        return beam_size

    def choose(self, source, hypotheses, wanted):
        best = sorted(hypotheses, key=lambda hypothesis: -len(hypothesis.text))[:wanted]
        shouted = []
        for hypothesis in best:
            text = hypothesis.text.upper()
            shouted.append(dataclasses.replace(hypothesis, text=text))
        return shouted

    def reference(self, source, target):
        return target.upper()

    def score(self, sources, references, outputs, slow_metrics=False):
        first = sum(a.text[:1] == b[:1] for a, b in zip(outputs, references))
        return Score("first letters", {"first letters": 100 * first / len(outputs)}, {"first letters": "mine"})

    def summary(self, tally):
        return "Spelt by example."

@registry.register_problem
@dataclasses.dataclass(frozen=True)
class SpellWords(Problem):
    """Spells words."""

    task = "spelling"
    decode_defaults = {"beam_size": 2, "alpha": 0.6, "extra_length": 2}
    vocab_size: int = 280

    def pairs(self, split, tmp_dir):
        words = ["abba", "bead", "cafe", "dada", "edda", "fade"]
        for i in range(12 if split == "train" else 3):
            yield words[i % 6], " ".join(words[i % 6])

@registry.register_hparams
def spell_words_tiny():
    """Too small to learn."""
    return HParams().override(
        "hidden_size=8,filter_size=8,num_heads=1,num_hidden_layers=1,batch_size=64,max_length=32,train_steps=2"
    )
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The package's folder; what it registers is forgotten afterwards."""
    for table in ("_problems", "_tasks", "_hparams"):
        monkeypatch.setattr(registry, table, dict(getattr(registry, table)))
    folder = tmp_path / "spelling_task_of_mine"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    yield folder
    sys.modules.pop(folder.name, None)


@pytest.mark.slow
def test_user_task_from_data_to_scores(package, tmp_path, capsys):
    user = f"--t2t_usr_dir={package}"
    names = [user, "--problem=spell_words", f"--data_dir={tmp_path}/data"]
    run = tmp_path / "run"
    assert t2t_datagen.main([*names, "--num_processes=1"]) == 0
    training = ["--hparams_set=spell_words_tiny", f"--output_dir={run}", "--eval_bleu"]
    assert t2t_trainer.main([*names, *training, "--local_eval_frequency=0"]) == 0
    assert "first letters" in capsys.readouterr().out
    assert t2t_decoder.main([user, f"--output_dir={run}", "--split=dev"]) == 0
    stdout, stderr = capsys.readouterr()
    assert "Spelt by example." in stdout + stderr
    decodes = run / "decodes"
    letters = (decodes / "dev.2.letters").read_text()
    assert letters == "A B B A\nB E A D\nC A F E\n"
    decoded = (decodes / "dev.2.txt").read_text()
    assert decoded == decoded.upper()
    assert '"first letters": ' in (decodes / "dev.2.json").read_text()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"name": "parsing"}, "Each task needs a name .* Received: 'parsing' from"),
        ({}, "Each task needs a name of its own, .* Received: '' from"),
    ],
)
def test_task_needs_a_name_of_its_own(attributes, message):
    with pytest.raises(ValueError, match=message):
        registry.register_task(type("Mine", (Task,), attributes))
    assert type(open_task("parsing", {})) is ParsingTask
