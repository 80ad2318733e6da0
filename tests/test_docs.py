"""The documents name files, headings, make targets, commands, flags, problems and
hparam sets that exist.
"""

import importlib
import re
from collections.abc import Collection
from pathlib import Path

import pytest
from absl import flags as absl_flags
from documents import BLOCK, DOCUMENTS, ROOT, SCRIPTS, Command, blocks, commands, lines

from t2tlite import registry
from t2tlite.bin.flags import all_flags_of, parse

FOLDERS = ("t2tlite", "problems", "hparams", "bin", "tests", "docs", "benchmarks")
OTHERS = {"signal", "distribution", "quick"}  # flags of srun and of benchmarks
FOREIGN = ("from-tensor2tensor.md",)  # speaks of tensor2tensor's flags too


@pytest.fixture(scope="module", autouse=True)
def registered():
    """Our problems and hparam sets, under their names."""
    import t2tlite.hparams
    import t2tlite.problems  # noqa: F401


def anchors(document: Path) -> set[str]:
    """The addresses of a document's headings, by GitHub's rule, which the site
    follows.
    """
    headings = re.findall(
        r"^#+ (.+)$",
        re.sub(BLOCK, "", document.read_text(encoding="utf-8")),
        re.MULTILINE,
    )
    return {
        re.sub(r"[^\w -]", "", heading).replace(" ", "-").lower()
        for heading in headings
    }


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_and_headings_exist(document):
    text = document.read_text(encoding="utf-8")
    named = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)`", text)
    missing = [path for path in named if not (ROOT / path).exists()]
    for path, heading in re.findall(r"\]\(([\w./-]*)(?:#([^)]*))?\)", text):
        target = document.parent / path if path else document
        if not target.exists() or (heading and heading not in anchors(target)):
            missing.append(f"{path}#{heading}")
    assert missing == []


def test_names_in_the_design_are_those_of_the_code():
    """A file `x.py`, wherever it is, and each word of a name `x.y`."""
    pages = [ROOT / "docs" / name for name in ("design.md", "decisions.md")]
    design = "".join(page.read_text(encoding="utf-8") for page in pages)
    files = [
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in (".py", ".html")
    ]
    words = {
        word
        for path in files
        for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
    }
    ends = {
        "/".join(path.parts[-depth:])
        for path in [*files, *ROOT.glob("*.py")]
        for depth in range(1, 5)
    }
    spans = set(re.findall(r"`([\w./]*\w)`", re.sub(BLOCK, "", design)))
    named = {span for span in spans if span.endswith((".py", ".html"))}
    missing = {
        span for span in spans - named if not set(re.findall(r"\w+", span)) <= words
    }
    assert (named - ends) | missing == {"problems.py"}  # there must be no such module


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_nested_blocks_are_indented_for_the_site(document):
    """By four spaces: with fewer, the site's Markdown ends the list."""
    text = document.read_text(encoding="utf-8")
    assert re.findall(r"^ {1,3}(?:[-*] |```).*", text, re.MULTILINE) == []


def test_every_page_is_in_the_navigation_once():
    """mkdocs.yml lists each document; the README is the site's index."""
    navigation = (
        (ROOT / "mkdocs.yml")
        .read_text(encoding="utf-8")
        .partition("\nnav:\n")[2]
        .partition("\n\n")[0]
    )
    pages = sorted(re.findall(r": (\S+\.md)$", navigation, re.MULTILINE))
    names = {"README": "index"}
    assert pages == sorted(
        f"{names.get(document.stem, document.stem)}.md" for document in DOCUMENTS
    )


def mistake(command: Command, users: Collection[str] = ()) -> str:
    """What is wrong with a command line, or nothing. `users`: a user's problems and
    sets; their flags are not known.
    """
    program, words = command
    if "--help" in words:
        return ""
    try:
        flags = parse(importlib.import_module(SCRIPTS[program]).main.flags_class, words)
    except (absl_flags.Error, ValueError) as error:
        is_unknown = isinstance(error.__cause__, absl_flags.UnrecognizedFlagError)
        if is_unknown and any(word.startswith("--t2t_usr_dir") for word in words):
            return ""
        return str(error)
    known = {*users, *registry.list_problems(), *registry.list_hparams()}
    names = [getattr(flags, name, None) for name in ("problem", "hparams_set")]
    unknown = [
        name
        for name in filter(None, names)
        if name not in known and not re.fullmatch(r"[A-Z_.]+", name)
    ]
    return f"There is no {' and no '.join(unknown)}." if unknown else ""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_are_understood(document, tmp_path, monkeypatch):
    """Each command in a block has flags that its program takes, with values of their
    types.
    """
    (tmp_path / "flags.txt").write_text("")
    mistakes = []
    users: set[str] = set()  # problems and hparam sets of a package of the user's
    for block in blocks(document):
        for line in lines(block.text):
            line = re.sub(r"--flagfile=\S+", f"--flagfile={tmp_path}/flags.txt", line)
            line = line.replace("--port=%i", "--port=5000")  # systemd's
            for command in commands(line):
                if any(word.startswith("--t2t_usr_dir") for word in command.words):
                    users |= {word.partition("=")[2] for word in command.words}
                if wrong := mistake(command, users):
                    mistakes.append(
                        f"{document.name}, block at {block.line}: {line}: {wrong}"
                    )
    assert mistakes == []


def test_flags_behind_the_name_of_the_image_exist():
    (page,) = [path for path in DOCUMENTS if path.name == "operation.md"]
    server_lines = []
    for block in blocks(page):
        for line in lines(block.text):
            _, image, flags = line.partition(" t2tlite --")
            if image:
                server_lines.append(f"t2t-serve --{flags}")
    assert len(server_lines) == 1
    for line in server_lines:
        (command,) = commands(line)
        assert mistake(command) == ""


@pytest.mark.parametrize(
    "document",
    [d for d in DOCUMENTS if d.name not in FOREIGN],
    ids=lambda path: path.name,
)
def test_flags_in_sentences_exist(document):
    """`--flag` is one of some command, and that of `t2t-x --flag` one of t2t-x; X may
    stand for a value.
    """
    taken = {}
    for program, module in SCRIPTS.items():
        known_flags = all_flags_of(importlib.import_module(module).main.flags_class)
        taken[program] = {*known_flags, "flagfile", "help", "version"}
    anywhere = set().union(*taken.values())
    text = re.sub(
        r"^ *```.*?^ *```",
        "",
        document.read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    unknown = []
    for span in re.findall(r"`([^`]+)`", text):
        program = span.split()[0] if span.split() else ""
        if program in SCRIPTS or span.startswith("--"):
            known = taken.get(program, anywhere)
            used = set(re.findall(r"(?<!\S)--(\w+)(?![\w-])", span)) - known - OTHERS
            unknown += [span for flag in used if flag.removeprefix("no") not in known]
    assert unknown == []


@pytest.mark.parametrize("name", ["README.md", "own-data.md", "fine-tuning.md"])
def test_sets_for_files_of_your_own(name):
    """They are pre-norm, compute in bfloat16 where it is, and their time and score are
    stated.
    """
    (document,) = [path for path in DOCUMENTS if path.name == name]
    text = document.read_text(encoding="utf-8")
    problems = {"--problem=parallel_text", "--problem=parallel_text_rev"}
    for block in blocks(document):
        for line in lines(block.text):
            for _, words in commands(line):
                flag = next((w for w in words if w.startswith("--hparams_set=")), "")
                if not flag or not problems & set(words):
                    continue
                hparam_set = flag.partition("=")[2]
                hparams = registry.get_hparams(hparam_set)
                assert hparams.pre_norm, line
                assert hparams.dtype_policy == "auto", line
                assert re.search(rf"\| `{hparam_set}` \|.*\bBLEU \d.*\bcore", text)


def test_make_targets_and_scripts_exist():
    """`make X` in a block is a target, and `python X.py` a file."""
    targets = set(
        re.findall(
            r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    all_lines = [
        line
        for document in DOCUMENTS
        for block in blocks(document)
        for line in lines(block.text)
    ]
    tiny_run = {
        target for line in all_lines for target in re.findall(r"^make ([\w-]+)", line)
    }
    assert tiny_run - targets == set()
    assert tiny_run, "the documents have blocks"
    scripts = {
        path
        for line in all_lines
        for path in re.findall(r"\bpython (?:-m pytest (?:-q )?)?([\w/]+\.py)\b", line)
    }
    assert [path for path in sorted(scripts) if not (ROOT / path).exists()] == []
    assert scripts


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "t2t-trainer --problem=wmt_ende --beam_size=4",
            "Unknown command line flag 'beam_size'",
        ),
        (
            "TF_CONFIG={} t2t-trainer --train_steps=many",
            "--train_steps must be a whole number.",
        ),
        (
            "a | t2t-bleu --translation=x --references=y > z",
            "Unknown command line flag 'references'",
        ),
        (
            "t2t-decoder --output_dir=x; t2t-datagen --problem=wmt_enden",
            "There is no wmt_enden.",
        ),
        (
            "t2t-trainer --problem=wmt_ende --hparams_set=transformer_bas",
            "There is no transformer_bas.",
        ),
    ],
)
def test_a_wrong_command_is_found(line, message):
    wrong = " ".join(mistake(command) for command in commands(line))
    assert message in wrong


def test_commands_of_a_line():
    line = 'T=a srun --x t2t-trainer --data_dir=$D "--problem=p q"  # comment t2t-bleu'
    assert [*commands(line, {"D": "d"})] == [
        ("t2t-trainer", ["--data_dir=d", "--problem=p q"])
    ]
    assert lines("!t2t-a \\\n  --b\nc") == ["t2t-a   --b", "c"]
