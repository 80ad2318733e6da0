"""The documents' own commands and Python code, run one after the other on small files
with tiny models.

Blocks below a line `<!-- test: run -->` are run in the folder that `lay_out` makes. A
block below `<!-- test: paste FILE -->` is a file of the reader's. What makes commands
quick is appended to them (`quick`).
"""

import gzip
import importlib
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from documents import DOCUMENTS, SCRIPTS, Command, blocks, commands, lines
from fixture_files import FIXTURES
from imported_model import WSJ_VOCABULARY
from tensor2tensor_checkpoint import variables_of, write_checkpoint
from tiny_task import sentences

from t2tlite import registry
from t2tlite.files.atomic_file import write_text
from t2tlite.problems.sequence_transduction import LANGUAGES
from t2tlite.problems.translation import STEMS

pytestmark = pytest.mark.slow

TINY = "hidden_size=16,filter_size=16,num_heads=2,num_hidden_layers=1,train_steps=5,learning_rate_warmup_steps=2"
QUICK = {
    "t2t-datagen": {"num_processes": "1"},
    "t2t-trainer": {"hparams": TINY, "train_steps": "5", "local_eval_frequency": "1"},
    "t2t-decoder": {"decode_hparams": "beam_size=2,extra_length=3"},
}
LISTS = ("hparams", "decode_hparams")  # flags that hold field=value,...
RUN = [
    document for document in DOCUMENTS if any(block.test for block in blocks(document))
]


def texts(pairs: list[tuple[str, str]]) -> list[str]:
    """The file of the sources, and that of the targets."""
    return ["".join(f"{text}\n" for text in side) for side in zip(*pairs, strict=True)]


def write_pairs(path: Path, count: int, seed: int) -> None:
    """Files PATH.en and PATH.de of so many sentences and their translations."""
    for language, text in zip(("en", "de"), texts(sentences(count, seed)), strict=True):
        write_text(Path(f"{path}.{language}"), text)


def lay_out(folder: Path, run: Path) -> None:
    """The files that the documents' commands read, under the names that the documents
    give them.
    """
    for split, seed in (("train", 1), ("dev", 2), ("new", 3), ("in", 3), ("domain", 4)):
        write_pairs(folder / split, 200, seed)
    for name in ("train.2de", "train.2fr", "dev.2de", "new.BT"):
        split, _, tag = name.partition(".")
        text = (folder / f"{split}.en").read_text()
        (folder / name).write_text(
            "".join(f"<{tag}> {line}\n" for line in text.splitlines())
        )
    shutil.copy(folder / "train.de", folder / "train.fr")
    (folder / "pairs.tsv").write_text(
        "".join(f"{source}\t{target}\n" for source, target in sentences(5, 3))
    )

    units = ""
    for source, target in sentences(50, 5):
        units += (
            f'<tu><tuv xml:lang="en-US"><seg>{source}</seg></tuv>'
            f'<tuv xml:lang="de-DE"><seg>{target}</seg></tuv></tu>\n'
        )
    (folder / "memory.tmx").write_text(f"<tmx><body>{units}</body></tmx>")

    raw = folder / "multi30k" / "data" / "task1" / "raw"  # as the repository has them
    raw.mkdir(parents=True)
    for seed, stem in enumerate(STEMS.values()):
        write_pairs(raw.parent / "tok" / f"{stem}.lc.norm.tok", 100, seed)
        for language, text in zip(
            ("en", "de"), texts(sentences(100, seed)), strict=True
        ):
            (raw / f"{stem}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    for seed, name in enumerate(
        ("tatoeba", "europarl", "newstest2008-2012", "newstest2013", "newstest2014")
    ):
        write_pairs(folder / "news" / name, 200, seed)

    wmt = folder / "raw"  # as the archives of WMT unpack
    names = (
        "training/europarl-v7.de-en",
        "commoncrawl.de-en",
        "training/news-commentary-v9.de-en",
        "dev/newstest2013",
    )
    for seed, name in enumerate(names):
        write_pairs(wmt / name, 60, seed)
    for kind, language, text in zip(
        ("src", "ref"), ("en", "de"), texts(sentences(20, 9)), strict=True
    ):
        segments = "".join(
            f'<seg id="{n}">{line}</seg>\n'
            for n, line in enumerate(text.splitlines(), start=1)
        )
        path = wmt / "test-full" / f"newstest2014-deen-{kind}.{language}.sgm"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f'<{kind}set setid="newstest2014">\n<doc'
            f' docid="1">\n{segments}</doc>\n</{kind}set>\n'
        )

    # pronunciations and SCAN, as their repositories have them
    words = [f"{number:04};W AH" for number in range(2000)]
    write_text(wmt / "train_dataset.csv", "\n".join(words))
    write_text(wmt / "test_dataset.csv", "12;W AH\n")
    for split in ("train", "dev", "test"):
        write_text(wmt / f"tasks_{split}_length.txt", "IN: run OUT: I_RUN\n" * 200)
        for language in LANGUAGES.split():
            write_text(wmt / f"{language}_{split}.tsv", "chat\tʃ a\n" * 20)

    trees = (
        (FIXTURES / "evalb" / "gold.trees")
        .read_text(encoding="utf-8")
        .splitlines(keepends=True)
    )
    (folder / "treebank").mkdir()
    for split, part in (
        ("train", trees[:100]),
        ("dev", trees[100:120]),
        ("test", trees[120:130]),
    ):
        (folder / "treebank" / f"{split}.trees").write_text("".join(part))
    (folder / "gold.trees").write_text("".join(trees[130:140]))
    words = [" ".join(re.findall(r"([^()\s]+)\)", tree)) for tree in trees[130:140]]
    (folder / "words.txt").write_text("".join(f"{line}\n" for line in words))
    # a parser's output, which the parser overwrites
    shutil.copy(folder / "gold.trees", folder / "out.trees")

    # as the repository has them: trees over several lines, a document a file
    const = folder / "gum-corpus" / "const"
    const.mkdir(parents=True)
    splits = {
        "dev": ["GUM_bio_b", "GUM_reddit_x"],
        "test": ["GUM_bio_c"],
        "test2": ["GENTLE_d"],
        "train": ["GUM_news_a"],
    }
    sections = ("".join(f"  * {name}\n" for name in names) for names in splits.values())
    text = "\n".join(
        f"## {split}\n\n{section}"
        for split, section in zip(splits, sections, strict=True)
    )
    (const.parent / "splits.md").write_text(f"# Splits\n\nThe splits.\n\n{text}")
    for name, part in (
        ("bio_b", trees[:20]),
        ("bio_c", trees[20:30]),
        ("news_a", trees[30:130]),
    ):
        laid_out = (
            tree.replace("(TOP ", "(ROOT\n  ").replace("(NP ", "(NP-SBJ ")
            for tree in part
        )
        (const / f"GUM_{name}.ptb").write_text("\n".join(laid_out))
    (const / "GUM_reddit_x.ptb").write_text("(ROOT (NP (NN _)))\n")

    # a clone of CRAFT, an article a split
    penn = folder / "craft" / "structural-annotation" / "treebank" / "penn"
    ids = folder / "craft" / "articles" / "ids"
    penn.mkdir(parents=True)
    ids.mkdir(parents=True)
    for split, article, part in (
        ("train", "11319941", trees[:100]),
        ("dev", "17194222", trees[100:120]),
        ("test", "11604102", trees[120:130]),
    ):
        (ids / f"craft-ids-{split}.txt").write_text(f"{article}\n")
        text = "".join(tree.replace("(TOP ", "( ") for tree in part)
        (penn / f"{article}.tree").write_text(text)

    # what tensor2tensor left behind
    trained = FIXTURES / "tensor2tensor" / "trained_wsj"
    for name in ("ende", "translate_ende_wmt32k/transformer-transformer_base"):
        left = folder / "t2t_train" / name
        for step in range(300, 308):
            write_checkpoint(
                left / f"model.ckpt-{step}",
                variables_of(np.load(trained / "model.npz")),
            )
        shutil.copy(trained / "hparams.json", left)
    (folder / "t2t_data").mkdir()
    for path in (folder, folder / "t2t_data"):
        shutil.copy(
            trained / WSJ_VOCABULARY,
            path / "vocab.translate_ende_wmt32k.32768.subwords",
        )
    shutil.copytree(run, folder / "runs" / "mine")


def quick(command: Command) -> list[str]:
    """The command's arguments, and those of QUICK, which count where both set a flag or
    a field.

    A vocabulary of a size that is asked for is small, as the text is. A warm start
    keeps the hparams of its run.
    """
    warm_start = any(word.startswith("--warm_start_from=") for word in command.words)
    added = (
        ["--vocab_size=400"]
        if any(word.startswith("--vocab_size=") for word in command.words)
        else []
    )
    for flag, value in QUICK.get(command.program, {}).items():
        if flag == "hparams" and warm_start:
            continue
        if flag in LISTS:
            given = [
                word.partition("=")[2]
                for word in command.words
                if word.startswith(f"--{flag}=")
            ]
            fields = dict(
                field.split("=") for field in ",".join([*given, value]).split(",")
            )
            value = ",".join(f"{name}={field}" for name, field in fields.items())
        added.append(f"--{flag}={value}")
    replaced = {word.partition("=")[0] for word in added}
    words = [word for word in command.words if word.partition("=")[0] not in replaced]
    return [*words, *added]


@pytest.mark.parametrize("document", RUN, ids=lambda path: path.name)
def test_blocks_run(document, tiny_run, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_metrics", dict(registry._metrics))
    lay_out(tmp_path, tiny_run.run)
    count = 0
    for block in blocks(document):
        where, variables = f"{document.name}, block at line {block.line}", {}
        if block.test.startswith("paste "):
            path = Path(block.test.removeprefix("paste "))
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.test == "run" and block.language == "python":
            exec(compile(block.text, where, "exec"), {})
        elif block.test == "run":
            for line in lines(block.text):
                if assigned := re.fullmatch(r"(\w+)=(\S+)", line):
                    variables[assigned[1]] = assigned[2]
                    continue
                line_commands = [*commands(line, variables)]
                assert len(line_commands) == bool(line), (
                    f"{where}: only commands of ours can be run. Received: {line}"
                )
                for command in line_commands:
                    status = importlib.import_module(SCRIPTS[command.program]).main(
                        quick(command)
                    )
                    assert status == 0, f"{where}: {line}\n{capsys.readouterr().err}"
                    count += 1
        else:
            assert not block.test, (
                f"{where}: `test: {block.test}` is neither run nor paste FILE"
            )
    assert count > 0


def test_what_is_run():
    """README, and the documents whose results can be reproduced."""
    expected = {
        "README",
        "CONTRIBUTING",
        "fine-tuning",
        "own-data",
        "results",
        "parsing",
        "reports",
        "decoding",
        "from-tensor2tensor",
        "beyond-translation",
    }
    assert expected <= {path.stem for path in RUN}
