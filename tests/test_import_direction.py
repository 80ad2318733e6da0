"""Who may import whom: the table below, held against every import statement of the project.

An import inside a function counts as well: it is a dependency all the same, only a later one. What gets loaded by
importing a module, which is another matter, is asked of Python itself at the end of the file.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"t2tlite": "t2tlite", "problems": "t2tlite.problems", "hparams": "t2tlite.hparams", "bin": "t2tlite.bin"}
ANYTHING = None
LIBRARY = {
    "config", "data", "decoding", "files", "metrics", "models", "registry", "tasks", "tokens", "training", "trees",
    "types", "visualise", "vocabularies",
}  # fmt: skip
TEXT = {"files", "registry", "tokens", "trees", "vocabularies"}

# The standard library is open to all, and so are a package's own modules. Below t2tlite, the longest name that fits
# a module counts.
# module                     may import of t2tlite                     and of other people's packages
RULES: dict[str, tuple[set[str] | None, set[str] | None]] = {
    "registry":             (set(),                                    set()),
    "machine":              (set(),                                    set()),
    "quiet":                (set(),                                    set()),
    "tokens":               (set(),                                    set()),
    "types":                (set(),                                    set()),
    "checked_fields":       ({"registry"},                             set()),
    "config":               ({"checked_fields"},                       set()),
    "files":                (set(),                                    {"msgspec"}),
    "vocabularies":         ({"files", "tokens"},                      {"numpy", "sentencepiece", "tensorflow_text"}),
    "trees":                ({"files"},                                set()),
    "metrics":              (set(),                                    {"sacrebleu", "sacremoses"}),
    "tasks":                ({"metrics", "registry", "trees"},         set()),
    "layers":               ({"tokens", "types"},                      {"keras", "numpy"}),
    "layers.kv_cache":      ({"types"},                                {"keras", "tensorflow"}),
    "models":               ({"config", "layers", "types"},            {"keras", "numpy"}),
    "data":                 (TEXT | {"config", "quiet"},               ANYTHING),
    "data.problem":         ({"registry"},                             set()),
    "decoding":             (TEXT - {"trees"} | {"config", "data", "tasks", "types"}, ANYTHING),
    "decoding.alignment":   ({"vocabularies"},                         {"numpy"}),
    "decoding.beam_search": ({"decoding.constraints", "tokens", "types"}, {"keras"}),
    "decoding.constraints": ({"tokens", "types"},                      {"keras"}),
    "decoding.sampling":    ({"decoding.beam_search", "decoding.constraints", "tokens", "types"}, {"keras"}),
    "decoding.translator":  ({"config", "data", "export", "tasks", "tokens", "visualise"}, {"numpy"}),
    "training":             (TEXT | {"config", "data", "machine", "runs.run_folder", "tasks", "types"}, ANYTHING),
    "training.cost":        ({"config"},                               set()),
    "training.learning_rates": ({"types"},                             {"keras"}),
    "export":               (LIBRARY | {"quiet"},                      ANYTHING),
    "runs":                 (LIBRARY | {"export", "quiet"},            ANYTHING),
    "runs.run_folder":      (TEXT | {"config", "data.manifest"},       set()),
    "table3":               (LIBRARY | {"runs"},                       ANYTHING),
    "table3.rows":          ({"config", "registry"},                   set()),
    "tensor2tensor":        (LIBRARY | {"runs"},                       {"numpy", "tensorflow"}),
    "tensor2tensor.hparams": ({"config"},                              set()),
    "tensor2tensor.variables": ({"config"},                            {"numpy"}),
    "visualise":            ({"files"},                                {"matplotlib", "numpy"}),
    "report":               ({"config", "data", "files", "runs", "tasks", "trees"},
                             {"google", "tensorboard", "tensorflow"}),
    "serving":              ({"config", "data", "decoding", "files", "quiet", "report.tree_drawing", "runs",
                              "trees", "visualise"},
                             {"fastapi", "numpy", "prometheus_client", "pydantic", "starlette", "uvicorn"}),
    "report.document":      (set(),                                    {"markdown_it", "tabulate"}),
    "report.line_chart":    (set(),                                    {"matplotlib", "numpy"}),
    "report.tree_drawing":  ({"trees"},                                set()),
    "problems":             (TEXT | {"data"},                          {"numpy", "tensorflow_datasets"}),
    "hparams":              ({"config", "registry", "table3.rows"},    set()),
    "bin":                  (ANYTHING,                                 ANYTHING),
}  # fmt: skip

DESIGN = ROOT / "docs" / "design.md"
TABLE_START = "<!-- imports: `python tests/test_import_direction.py` writes this table -->\n"
TABLE_END = "<!-- imports end -->"


def rules_as_markdown() -> str:
    """The table as docs/design.md shows it."""

    def shown(names: set[str] | None) -> str:
        return "anything" if names is ANYTHING else ", ".join(f"`{name}`" for name in sorted(names)) or "nothing"

    rows = [f"| `{module}` | {shown(own)} | {shown(others)} |" for module, (own, others) in RULES.items()]
    return "\n".join(["| module | may import of t2tlite | and of other packages |", "|---|---|---|", *rows]) + "\n"


# Importing these loads neither TensorFlow nor Keras, so that commands answer and data workers start at once.
LIGHT = [
    "t2tlite",
    "t2tlite.config",
    "t2tlite.registry",
    "t2tlite.tokens",
    "t2tlite.types",
    "t2tlite.data.generate",
    "t2tlite.data.problem",
    "t2tlite.vocabularies.encoders",
    "t2tlite.vocabularies.subword_builder",
    "t2tlite.vocabularies.sentencepiece_encoder",
    "t2tlite.files.text_files",
    "t2tlite.data.token_store",
    "t2tlite.trees.tree",
    "t2tlite.trees.linearise",
    "t2tlite.trees.restore",
    "t2tlite.metrics.bleu",
    "t2tlite.trees.evalb",
    "t2tlite.visualise",
    "t2tlite.decoding.text_decoder",
    "t2tlite.decoding.translator",
    "t2tlite.runs.decode_file",
    "t2tlite.runs.ctranslate2_run",
    "t2tlite.runs.checkpoint_choice",
    "t2tlite.tensor2tensor.hparams",
    "t2tlite.hparams",
    "t2tlite.table3.rows",
    "t2tlite.problems",
    "t2tlite.bin.flags",
    "t2tlite.serving.server",
]


def modules() -> dict[str, Path]:
    """Every module of the project by the name it is installed under."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            inner = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join((package, *inner)).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def imported(source: str, package: str) -> Iterator[str]:
    """Full names of what a source text imports; `package` is where its relative imports start."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            # `from t2tlite import registry` imports a module, `from t2tlite.registry import problem` a name from one.
            full_names = [f"{base}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else base for name in full_names)


def rule_of(module: str) -> str | None:
    """`data.problem` for t2tlite.data.problem, `data` for t2tlite.data.other, None where the table has no row."""
    parts = module.split(".")[1:]
    names = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((name for name in names if name in RULES), None)


def violations(module: str, source: str, is_package: bool = False) -> list[str]:
    """Each import of a source text that the table does not allow, as a message."""
    rule = rule_of(module)
    if rule is None:
        return [f"{module} has no row in the table of tests/test_import_direction.py. Add one."]
    own, others = RULES[rule]
    folder = rule.split(".")[0]
    messages = []
    for name in imported(source, module if is_package else module.rpartition(".")[0]):
        top, _, below = name.partition(".")
        if top in sys.stdlib_module_names or name == "t2tlite":
            continue
        if top == "t2tlite":
            target = below.split(".")[0]
            names = {".".join(below.split(".")[:end]) for end in range(1, below.count(".") + 2)}
            allowed = own is ANYTHING or bool(names & own) or (target == folder and rule != "decoding.beam_search")
        else:
            allowed = others is ANYTHING or top in others
        if not allowed:
            messages.append(f"{module} imports {name}, which {rule} may not.")
    return messages


@pytest.mark.parametrize("module", [name for name in MODULES if name != "t2tlite"])
def test_module_imports_only_what_the_table_allows(module):
    path = MODULES[module]
    assert violations(module, path.read_text(encoding="utf-8"), path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("t2tlite.layers.attention", "from t2tlite.models.transformer import Transformer"),
        ("t2tlite.layers.attention", "import tensorflow as tf"),
        ("t2tlite.training.loop", "def f():\n    from t2tlite import models"),
        ("t2tlite.training.loop", "from ..problems import grammar"),
        ("t2tlite.decoding.beam_search", "import t2tlite.decoding.decoder"),
        ("t2tlite.decoding.text_decoder", "from t2tlite.export.export import export_model"),
        ("t2tlite.data.generate", "import t2tlite.hparams.transformer"),
        ("t2tlite.runs", "from t2tlite.bin import flags"),
        ("t2tlite.metrics.bleu", "import tensorflow_text"),
        ("t2tlite.problems.grammar", "from t2tlite.training import trainer"),
        ("t2tlite.newcomer", "import os"),
    ],
)
def test_a_forbidden_import_is_found(module, source):
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("t2tlite.layers.attention", "import math\nfrom keras import ops\nfrom .dropout import Dropout"),
        ("t2tlite.data.generate", "import t2tlite\nfrom t2tlite import registry"),
        ("t2tlite.bin.t2t_trainer", "import t2tlite.problems, tensorflow"),
    ],
)
def test_an_allowed_import_is_not_reported(module, source):
    assert violations(module, source) == []


def test_importing_t2tlite_loads_only_the_settings_for_tensorflow():
    code = "import sys, t2tlite; print(*sorted(m for m in sys.modules if m.startswith('t2tlite.')))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.split() == ["t2tlite.machine"]


def test_light_modules_load_neither_tensorflow_nor_keras():
    heavy = "{'tensorflow', 'keras', 'tensorflow_text', 'tensorflow_datasets'}"
    code = (
        "import importlib, sys\n"
        f"for name in {LIGHT}:\n"
        "    importlib.import_module(name)\n"
        f"    loaded = {heavy} & set(sys.modules)\n"
        "    if loaded:\n"
        "        sys.exit(f'importing {name} loads {sorted(loaded)}')\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


def test_the_design_document_shows_the_table():
    """`python tests/test_import_direction.py` writes it anew."""
    shown = DESIGN.read_text(encoding="utf-8").partition(TABLE_START)[2].partition(TABLE_END)[0]
    assert shown == rules_as_markdown()


if __name__ == "__main__":
    before, _, rest = DESIGN.read_text(encoding="utf-8").partition(TABLE_START)
    after = rest.partition(TABLE_END)[2]
    DESIGN.write_text(f"{before}{TABLE_START}{rules_as_markdown()}{TABLE_END}{after}", encoding="utf-8")
