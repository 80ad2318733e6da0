"""One rule of text at every door: what differs in spaces and invisible characters gives
the same outputs, byte for byte, and the same scores.
"""

import dataclasses
import gzip
import json

import numpy as np
import pytest
from spellings import BLANK, SPELLINGS, TABS
from tiny_run import change_manifest
from tiny_task import TinyTask, sentences, write_subwords

from t2tlite.bin import t2t_datagen, t2t_decoder
from t2tlite.data.generate import generate
from t2tlite.files.atomic_file import file_sha256
from t2tlite.run_folder import RunFolder
from t2tlite.vocabularies.encoders import open_encoder
from t2tlite.vocabularies.sentencepiece_encoder import normalizer

SENTENCE = "red cat sees dog today"
# with letters that decompose, which the language does not have
PAIR = "red cat sees Zoë", "katze rot Zoë sieht"
EVERY = {**SPELLINGS, **TABS}


def ids(store):
    """The token ids of all sources and targets."""
    rows = np.arange(len(store))
    return store.sources(rows, 64).tolist(), store.targets(rows, 64).tolist()


def spelt(text, spellings=EVERY):
    return [text, *(spoil(text) for spoil in spellings.values())]


@pytest.fixture
def decoder(tiny_run, loaded_once, tmp_path):
    """Calls t2t-decoder on lines; returns those of its output."""

    def run(lines, *flags, source="--decode_from_file", name="in.txt"):
        path = tmp_path / name
        data = "".join(f"{line}\n" for line in lines).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        argv = [f"--t2t_usr_dir={tiny_run.package}", f"--output_dir={tiny_run.run}"]
        argv += [f"{source}={path}", f"--decode_to_file={tmp_path / 'out.txt'}"]
        assert t2t_decoder.main([*argv, *flags]) == 0
        return (tmp_path / "out.txt").read_text(encoding="utf-8").split("\n")[:-1]

    return run


def test_python(model):
    for text in (SENTENCE, PAIR[0]):
        outputs = model.n_best(spelt(text))
        assert all(_rounded(n_best) == _rounded(outputs[0]) for n_best in outputs)
    assert model.translate(BLANK) == [""] * len(BLANK)
    scores = model.score(spelt(PAIR[0]), [PAIR[1]] * len(spelt("a")))
    assert scores == pytest.approx([scores[0]] * len(scores), abs=1e-4)
    scores = model.score([PAIR[0]] * len(spelt("a")), spelt(PAIR[1]))
    assert scores == pytest.approx([scores[0]] * len(scores), abs=1e-4)


def _rounded(n_best):
    """Outputs but for the last bits, which the place in a batch changes."""
    return [(o.text, o.ids, pytest.approx(o.score, abs=1e-5)) for o in n_best]


def test_what_is_shown_is_what_was_written(model):
    """The words of alignments are those of the text, as white space separates them."""
    text = "red\u00a0cat  sees \u00addo\u00adg\ttoday "
    outputs = model.decode([SENTENCE, text], model.options())
    plain, spoilt = model.align([SENTENCE, text], outputs)
    assert spoilt == plain
    attention = model.attention(text)
    assert attention.source == text
    assert attention.source_words == model.attention(SENTENCE).source_words
    with pytest.raises(ValueError, match="needs words"):
        model.attention("\u200b\u00a0")


def test_files(decoder):
    lines = decoder([*spelt(SENTENCE), *BLANK])
    count = len(spelt(SENTENCE))
    assert len(set(lines[:count])) == 1
    assert lines[count:] == [""] * len(BLANK)
    assert decoder(spelt(SENTENCE), name="in.txt.gz") == lines[:count]


def test_sources_in_json_are_as_they_were_written(decoder):
    # what stands between two spaces counts as a word in alignments, seen or not
    spellings = {**EVERY}
    del spellings["zero-width character beside a space"]
    # a file may begin with a byte order mark, and so may each line of joined files
    del spellings["byte order mark"]
    written = spelt(SENTENCE, spellings)
    lines = decoder(written, "--output_format=jsonl", "--alignments")
    records = [json.loads(line) for line in lines]
    assert [record.pop("source") for record in records] == written
    assert all(_near(record) == _near(records[0]) for record in records)


def _near(record):
    """A record with its scores to four digits."""
    hypotheses = [
        {
            **output,
            "score": round(output["score"], 4),
            "log_prob": round(output["log_prob"], 4),
        }
        for output in record["hypotheses"]
    ]
    return record | {"hypotheses": hypotheses}


def test_scores(decoder):
    source, target = PAIR
    columns = spelt(target, SPELLINGS)
    lines = decoder([f"{source}\t{text}" for text in columns], source="--score_file")
    assert len(set(lines)) == 1
    columns = spelt(source, SPELLINGS)
    lines += decoder([f"{text}\t{target}" for text in columns], source="--score_file")
    assert len(set(lines)) == 1


@pytest.mark.parametrize("prefix", ["katze rot", "katze", "katze ro"])
def test_a_space_behind_a_prefix_does_not_count(model, decoder, prefix):
    spoilt = [
        prefix,
        f"{prefix} ",
        f"{prefix}\u00a0",
        f" {prefix}\u200b ",
        f"\ufeff{prefix}",
    ]
    outputs = model.translate([SENTENCE] * len(spoilt), prefix=spoilt)
    assert len(set(outputs)) == 1
    assert outputs[0].startswith(prefix)
    lines = [f"{SENTENCE}\t{text}" for text in spoilt]
    assert decoder(lines, "--prefixes") == outputs


def test_training_data(tmp_path):
    """Spoilt pairs give the vocabulary and the token ids of clean ones; dev sets keep
    their text as it is.
    """
    pairs = {"train": sentences(230, 1), "dev": sentences(len(SPELLINGS), 2)}
    clean = TinyTask(**{split: tuple(rows) for split, rows in pairs.items()})
    spoilt = {}
    for split, rows in pairs.items():
        spoils = list(SPELLINGS.values())
        chosen = [spoils[i % len(spoils)] for i in range(len(rows))]
        spoilt[split] = tuple(
            (spoil(source), spoil(target))
            for spoil, (source, target) in zip(chosen, rows, strict=True)
        )
    datasets = []
    for name, problem in (("a", clean), ("b", dataclasses.replace(clean, **spoilt))):
        datasets.append(generate(problem, tmp_path / name, num_processes=1).dataset)
    first, second = datasets
    for split in ("train", "dev"):
        assert ids(first.store(split)) == ids(second.store(split))
    assert first.encoders[0].path.read_bytes() == second.encoders[0].path.read_bytes()
    assert second.store("dev").source_text() == [source for source, _ in spoilt["dev"]]


def test_invisible_sides_are_empty(tmp_path):
    rows = (*sentences(50, 1), ("\u200b", "a"), ("a", "\u00a0\ufeff"))
    dataset = generate(TinyTask(train=rows), tmp_path, num_processes=1).dataset
    assert dataset.manifest.training.dropped["empty"] == 2


def without_rule(path):
    """Makes a vocabulary as it was before there was the rule."""
    field = normalizer("nfc")
    content = path.read_bytes()
    assert content.endswith(field)
    path.write_bytes(content[: -len(field)])


def test_a_vocabulary_made_before_stays(tiny_run, tiny_run_copy, tmp_path):
    vocabulary = tiny_run_copy / "vocab.model"
    without_rule(vocabulary)
    manifest = RunFolder(tiny_run_copy).manifest()
    entry = dataclasses.replace(
        manifest.vocabulary,
        bytes=vocabulary.stat().st_size,
        sha256=file_sha256(vocabulary),
    )
    options = dict(manifest.options)
    del options["normalization"]
    change_manifest(
        tiny_run_copy, vocabulary=dataclasses.asdict(entry), options=options
    )
    (tmp_path / "in.txt").write_text("red  cat\n")
    argv = [f"--t2t_usr_dir={tiny_run.package}", f"--output_dir={tiny_run_copy}"]
    argv += [f"--decode_from_file={tmp_path / 'in.txt'}"]
    assert t2t_decoder.main(argv) == 0
    encoder = open_encoder(vocabulary)
    assert encoder.decode(encoder.encode(" red  cat\u00ad ")) == " red  cat\u00ad "
    assert encoder.encode("red  cat") != encoder.encode("red cat")


def test_data_made_before_stays(tmp_path):
    problem = TinyTask(normalization="none")
    generate(problem, tmp_path, num_processes=1)
    path = tmp_path / "tiny_task" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    del manifest["options"]["normalization"]
    path.write_text(json.dumps(manifest))
    made = generate(TinyTask(), tmp_path, num_processes=1)
    assert made.already_there
    with pytest.raises(ValueError, match="normalization was nfc, now nfkc"):
        generate(TinyTask(normalization="nfkc"), tmp_path, num_processes=1)


def test_rules_that_a_vocabulary_would_not_have(tmp_path):
    with pytest.raises(
        ValueError, match=r"without normalization=nfkc\. Received: v\.model, nfkc\."
    ):
        generate(TinyTask(normalization="nfkc", vocab_file=("v.model",)), tmp_path)
    with pytest.raises(
        ValueError, match="normalization must be one of nfc, nfkc, none"
    ):
        TinyTask(normalization="nfd")


def test_subwords_ignore_white_space_at_the_ends_alone(tmp_path):
    rows = tuple(
        (f" {source} ", f"{target}\u00a0") for source, target in sentences(230, 1)
    )
    vocabulary = write_subwords(tmp_path / "v.subwords")
    clean = TinyTask(vocab_file=(str(vocabulary),), dev=tuple(sentences(20, 2)))
    spoilt = dataclasses.replace(
        clean, train=rows, dev=tuple((f"{s}\t", f" {t}") for s, t in clean.dev)
    )
    stores = [
        generate(problem, tmp_path / name, num_processes=1).dataset.store(
            "train", "dev"
        )
        for name, problem in (("a", clean), ("b", spoilt))
    ]
    assert ids(stores[0]) == ids(stores[1])
    encoder = open_encoder(tmp_path / "a" / "tiny_task" / "vocab.subwords")
    assert encoder.encode(" cat ") == encoder.encode("cat")
    assert encoder.encode("cat\u00a0dog") != encoder.encode("cat dog")


def test_the_flag(tmp_path, tiny_run, capsys):
    argv = [f"--t2t_usr_dir={tiny_run.package}", "--problem=twenty_words"]
    argv += [f"--data_dir={tmp_path}", "--train_size=60", "--normalization=nfkc"]
    assert t2t_datagen.main([*argv, "--num_processes=1"]) == 0
    encoder = open_encoder(tmp_path / "twenty_words" / "vocab.model")
    assert encoder.normalise("\uff23\uff21\uff34") == "CAT"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["saved_model", "ctranslate2"])
def test_exports(model, form, tmp_path):
    texts = spelt(PAIR[0])
    expected = model.translate(PAIR[0])
    folder = model.export(tmp_path / "out", form)
    if form == "ctranslate2":
        import ctranslate2
        import sentencepiece

        # without t2tlite, whose encoder is not needed for the rule
        vocabulary = str(folder / "vocab.model")
        processor = sentencepiece.SentencePieceProcessor(model_file=vocabulary)
        translator = ctranslate2.Translator(str(folder))
        tokens = processor.encode([PAIR[0], *texts], out_type=str)
        results = translator.translate_batch(tokens, beam_size=4, length_penalty=0.6)
        outputs = [processor.decode(result.hypotheses[0]) for result in results]
        assert len(set(outputs)) == 1
        return
    import tensorflow as tf

    loaded = tf.saved_model.load(str(folder / "1"))
    translations = loaded.translate(tf.constant([*texts, *BLANK]))["texts"].numpy()
    outputs = [text.decode() for text in translations[:, 0]]
    assert outputs == [expected] * len(texts) + [""] * len(BLANK)
