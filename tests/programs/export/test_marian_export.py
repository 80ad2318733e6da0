"""t2t-export --format=marian: Transformers translates as the run does, with the text
of its own tokenizer.

Transformers and PyTorch are not installed for the tests: `pip install '.[marian]'` in
an environment of its own, in which this file then runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import chain

import numpy as np
import pytest
from spellings import SPELLINGS, TABS
from tiny_run import change_manifest, last_of_each
from tiny_task import sentences

from t2tlite.bin import t2t_export
from t2tlite.config import DecodeHParams, HParams
from t2tlite.data.dataset import open_dataset
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.models.transformer import build_transformer
from t2tlite.programs.export.marian_model import MarianFormat
from t2tlite.programs.export.plan import ExportPlan
from t2tlite.programs.export.verification import opened_run
from t2tlite.run_folder import RunFolder
from t2tlite.vocabularies.sentencepiece_encoder import (
    SentencePieceEncoder,
    train_sentencepiece,
)

pytestmark = pytest.mark.usefixtures("loaded_once")


def export(run, target, *more) -> int:
    return t2t_export.main(
        last_of_each(
            f"--output_dir={run}", f"--export_dir={target}", "--format=marian", *more
        )
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--decode_hparams=min_length=2", "return_beams. Received: min_length=2."),
        ("--languages=en-de", "languages goes with format=argos. Received: languages="),
        ("--quantization=int8", "with format=marian, which keeps the weights"),
    ],
)
def test_refused(tiny_run, tmp_path, capsys, flags, message):
    assert export(tiny_run.run, tmp_path / "out", flags) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_vocabularies_of_tensor2tensor_are_refused(tiny_run_copy, tmp_path, capsys):
    (tiny_run_copy / "vocab.model").rename(tiny_run_copy / "vocab.subwords")
    entry = {"file": "vocab.subwords", "type": "subwords", "size": 500, "bytes": 1}
    change_manifest(tiny_run_copy, vocabulary=entry | {"sha256": "0" * 64})
    assert export(tiny_run_copy, tmp_path / "out") == 1
    assert "Received: vocab.subwords, one of subwords." in capsys.readouterr().err


def test_a_missing_package_is_one_message(tiny_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert export(tiny_run.run, tmp_path / "out") == 1
    assert "pip install 't2tlite[marian]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def transformers():
    pytest.importorskip("torch", reason="needs pip install '.[marian]'")
    return pytest.importorskip("transformers", reason="needs pip install '.[marian]'")


@pytest.fixture(scope="module")
def exported(tiny_run, load, transformers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian") / "out"
    return load(tiny_run.run, None).export(folder, "marian", alpha=0.0)


@pytest.fixture(scope="module")
def dev(tiny_run) -> list[str]:
    return open_dataset(tiny_run.data, "twenty_words").store("dev").source_text()


@pytest.fixture(scope="module")
def tokenizer(exported, transformers):
    return transformers.AutoTokenizer.from_pretrained(exported)


@pytest.mark.slow
def test_export_reports_equal_outputs(transformers, tiny_run, tmp_path, capsys):
    assert export(tiny_run.run, tmp_path / "out") == 0
    message = r"Equal to the run: 12 greedy and \d+ beam-search translations of 12"
    assert re.search(message, capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_are_the_runs(
    transformers, exported, tokenizer, tiny_run, load, dev, beam_size
):
    """Of a padded batch, without a length penalty, which the two define
    differently.
    """
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(exported)
    batch = tokenizer(dev, padding=True, return_tensors="pt")
    ids = model.generate(**batch, num_beams=beam_size, max_new_tokens=60)
    theirs = tokenizer.batch_decode(ids, skip_special_tokens=True)
    run = load(tiny_run.run, None)
    assert theirs == run.translate(dev, beam_size=beam_size, alpha=0.0)


@pytest.mark.slow
def test_text_becomes_the_tokens_of_the_run(tokenizer, tiny_run, load, dev):
    encoder = load(tiny_run.run, None).source_encoder
    texts = [spell(f"a Café {dev[0]}") for spell in (SPELLINGS | TABS).values()]
    texts += ["</s>", "<pad> a", "a <unk> b <id 0>", "<0x41>", "▁a", "ﬁ 😀‍🔥", "x\ny"]
    texts += ["Ａ “quote” – it’s 1,000 %", "e\u0323\u0302", "क्\u200dष", "\u2585"]
    for text in texts:
        assert tokenizer(text).input_ids == [*encoder.encode(text), 1], text


@pytest.mark.slow
def test_the_program_in_the_readme_translates(
    tiny_run, load, exported, dev, capsys, monkeypatch
):
    readme = (exported / "README.md").read_text()
    [program] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    monkeypatch.chdir(exported)
    exec(program.replace('["A sentence.", "Another one."]', repr(dev[:2])), {})
    expected = load(tiny_run.run, None).translate(dev[:2], alpha=0.0)
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.slow
def test_the_pipeline_translates(transformers, exported, tiny_run, load, dev):
    if transformers.__version__ >= "5":
        pytest.skip("Transformers 5 has no pipeline for translation")
    program = (
        "import sys, transformers\n"
        f"translate = transformers.pipeline('translation', model={str(exported)!r})\n"
        "for each in translate(sys.argv[1:]): print(each['translation_text'])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, *dev[:5]],
        env=os.environ | {"USE_TF": "0"},  # its code for TensorFlow needs Keras 2
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = run.stdout.splitlines()
    assert theirs == load(tiny_run.run, None).translate(dev[:5], alpha=0.0)


@pytest.mark.slow
def test_two_vocabularies_of_different_sizes(transformers, tiny_run, load, tmp_path):
    encoders = []
    for name, size in (("source", 330), ("target", 310)):
        path = tmp_path / f"{name}.model"
        train_sentencepiece(chain.from_iterable(sentences(200, 1)), size, path)
        encoders.append(SentencePieceEncoder(path))
    hparams = HParams().override(
        "hidden_size=32,filter_size=48,num_heads=2,num_hidden_layers=2,"
        "shared_embedding_and_softmax_weights=false"
    )
    model = build_transformer(hparams, *(each.vocab_size for each in encoders))
    manifest = load(tiny_run.run, None).manifest
    decoder = TextDecoder(TensorFlowEngine(model), encoders, manifest)
    plan = ExportPlan(
        run=RunFolder(tiny_run.run),
        checkpoint="",
        hparams=hparams,
        manifest=manifest,
        format=MarianFormat(),
        decoding=DecodeHParams(),
        quantization="",
        languages="",
        export_dir=tmp_path,
        overwrite=False,
    )
    plan.format.write(decoder, tmp_path, plan)
    sources, targets = zip(*sentences(8, 2), strict=True)
    theirs = plan.format.open(decoder, tmp_path, plan).score(sources, targets)
    ours = opened_run(decoder, plan.decoding).score(sources, targets)
    np.testing.assert_allclose(theirs, ours, atol=1e-4)
