"""Who may import whom: the table below, held against every import statement of the
project.

An import inside a function counts as well: it is a dependency all the same, only a
later one. What gets loaded by importing a module, which is another matter, is asked of
Python itself at the end of the file.
"""

import ast
import graphlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {
    "t2tlite": "t2tlite",
    "problems": "t2tlite.problems",
    "hparams": "t2tlite.hparams",
    "bin": "t2tlite.bin",
}
ANYTHING = None

# The core is the paper: from text to a trained model and back to scored text. The
# programs around it use it; it imports none of them.
FOUNDATIONS = (
    "checked_fields", "config", "console", "machine", "registry", "schedules",
    "tensor2tensor_names", "texts", "types",
)  # fmt: skip
TEXT = {"files", "registry", "trees", "types", "vocabularies"}
CORE = TEXT | {
    *FOUNDATIONS, "data", "decoding", "layers", "metrics", "models", "run_folder", "run_records", "tasks", "training",
}  # fmt: skip

# The standard library is open to all, and so are a package's own modules. Below
# t2tlite, the longest name that fits a module counts. Modules that share a row may
# import one another. modules may import of t2tlite and of other people's packages
ROWS: dict[tuple[str, ...], tuple[set[str] | None, set[str] | None]] = {
    FOUNDATIONS:             (set(),                                    {"tqdm"}),
    ("files",):              (set(),                                    {"msgspec", "portalocker"}),
    ("vocabularies",):       ({"files", "types"},                       {"numpy", "sentencepiece", "tensorflow_text"}),
    ("vocabularies.normalisation",): (set(),                            set()),
    ("trees",):              ({"files", "vocabularies.normalisation"},  set()),
    ("metrics",):            ({"checked_fields", "registry", "texts", "vocabularies.normalisation"}, {"sacrebleu", "sacremoses"}),
    ("tasks",):              ({"metrics", "registry", "trees", "types", "vocabularies.normalisation",
                               "vocabularies.text_encoder"}, {"numpy"}),
    ("layers",):             ({"machine", "types"},                     {"keras", "numpy"}),
    ("layers.kv_cache",):    ({"types"},                                {"keras", "tensorflow"}),
    ("models",):             ({"config", "layers", "registry", "types"}, {"keras", "numpy"}),
    ("data",):               (TEXT | {"checked_fields", "config", "console", "machine", "texts"}, ANYTHING),
    ("run_folder", "run_records"):
                             (TEXT | {"config", "data.manifest"},       set()),
    ("decoding",):           (TEXT - {"trees"} | {"config", "console", "data", "machine", "tasks", "texts"}, ANYTHING),
    ("decoding.tensorflow_engine",): (TEXT - {"trees"} | {"config", "data", "decoding", "layers", "tasks"}, ANYTHING),
    ("decoding.beam_search", "decoding.constraints", "decoding.sampling", "decoding.slots", "decoding.terms"):
                             ({"decoding.rules", "tasks.bracketing", "types"}, {"keras"}),
    ("training",):           (TEXT | set(FOUNDATIONS) - {"quiet"} | {"data", "run_folder", "run_records", "tasks"}, ANYTHING),
    ("programs",):           (CORE,                                     ANYTHING),
    ("programs.documents",): ({"decoding.alignment", "vocabularies.normalisation"}, {"numpy", "sentencex"}),
    ("problems",):           (TEXT | {"console", "data", "tasks.task"},                         {"numpy", "sacremoses", "tensorflow_datasets"}),
    ("hparams",):            ({"config", "registry", "schedules", "programs.table3.rows"}, set()),
    ("bin",):                (ANYTHING,                                 ANYTHING),
}  # fmt: skip
RULES = {name: (ours | set(names) if ours is not ANYTHING else ANYTHING, others)
         for names, (ours, others) in ROWS.items() for name in names}  # fmt: skip

DESIGN = ROOT / "docs" / "design.md"
TABLE_START = (
    "<!-- imports: `python tests/test_import_direction.py` writes this table -->\n"
)
TABLE_END = "<!-- imports end -->"


def rules_as_markdown() -> str:
    """The table as docs/design.md shows it."""

    def shown(names: set[str] | None) -> str:
        if names is ANYTHING:
            return "anything"
        return ", ".join(f"`{name}`" for name in sorted(names)) or "nothing"

    rows = [
        f"| {shown(set(names))} | {shown(ours)} | {shown(others)} |"
        for names, (ours, others) in ROWS.items()
    ]
    head = "| module | may import of t2tlite | and of other packages |", "|---|---|---|"
    return "".join(f"{row}\n" for row in (*head, *rows))


# To import a module of these packages, or one of these modules, loads neither
# TensorFlow nor Keras, so that commands answer and data workers start at once.
LIGHT = {
    *FOUNDATIONS, "bin", "data.generate", "decoding.text_decoder", "files", "hparams", "metrics", "problems",
    "programs.bulk", "programs.documents", "programs.export.export", "programs.runs.load", "programs.runs.translator",
    "programs.serving", "programs.table3.rows", "programs.tensor2tensor.hparams", "programs.visualise", "run_folder",
    "run_records", "tasks", "trees", "vocabularies",
}  # fmt: skip


def modules() -> dict[str, Path]:
    """Every module of the project by the name it is installed under."""
    modules = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            inner = path.relative_to(ROOT / folder).with_suffix("").parts
            modules[".".join((package, *inner)).removesuffix(".__init__")] = path
    return modules


MODULES = modules()


def imported(source: str, package: str) -> Iterator[str]:
    """Full names of what a source text imports; `package` is where its relative imports
    start.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            # `from t2tlite import registry` imports a module, `from t2tlite.registry
            # import problem` a name from one.
            full_names = [f"{base}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else base for name in full_names)


def rule_of(module: str) -> str | None:
    """`data.problem` for t2tlite.data.problem, `data` for t2tlite.data.other, None
    where the table has no row.
    """
    parts = module.split(".")[1:]
    names = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((name for name in names if name in RULES), None)


def violations(module: str, source: str, is_package: bool = False) -> list[str]:
    """Each import of a source text that the table does not allow, as a message."""
    rule = rule_of(module)
    if rule is None:
        return [
            f"{module} has no row in the table of tests/test_import_direction.py. Add"
            " one."
        ]
    ours, others = RULES[rule]
    folder = rule.split(".")[0]
    messages = []
    for name in imported(source, module if is_package else module.rpartition(".")[0]):
        top, _, below = name.partition(".")
        if top in sys.stdlib_module_names or name == "t2tlite":
            continue
        if top == "t2tlite":
            parts = below.split(".")
            names = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
            is_own = parts[0] == folder and "." not in rule
            allowed = ours is ANYTHING or bool(names & ours) or is_own
        else:
            allowed = others is ANYTHING or top in others
        if not allowed:
            messages.append(f"{module} imports {name}, which {rule} may not.")
    return messages


@pytest.mark.parametrize("module", [name for name in MODULES if name != "t2tlite"])
def test_module_imports_only_what_the_table_allows(module):
    path = MODULES[module]
    is_package = path.name == "__init__.py"
    assert violations(module, path.read_text(encoding="utf-8"), is_package) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "t2tlite.layers.attention",
            "from t2tlite.models.transformer import Transformer",
        ),
        ("t2tlite.layers.attention", "import tensorflow as tf"),
        ("t2tlite.training.loop", "def f():\n    from t2tlite import models"),
        ("t2tlite.training.loop", "from ..problems import grammar"),
        ("t2tlite.decoding.beam_search", "import t2tlite.decoding.engine"),
        (
            "t2tlite.decoding.text_decoder",
            "from t2tlite.programs.export.export import export_model",
        ),
        ("t2tlite.data.generate", "import t2tlite.hparams.transformer"),
        ("t2tlite.programs.runs", "from t2tlite.bin import groups"),
        ("t2tlite.metrics.corpus_metrics", "import tensorflow_text"),
        ("t2tlite.problems.grammar", "from t2tlite.training import trainer"),
        ("t2tlite.decoding.engine", "from t2tlite.programs.export import plan"),
        ("t2tlite.run_folder", "from t2tlite.training import cost"),
        ("t2tlite.newcomer", "import os"),
    ],
)
def test_a_forbidden_import_is_found(module, source):
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "t2tlite.layers.attention",
            "import math\nfrom keras import ops\nfrom .dropout import Dropout",
        ),
        ("t2tlite.data.generate", "import t2tlite\nfrom t2tlite import registry"),
        ("t2tlite.bin.t2t_trainer", "import t2tlite.problems, tensorflow"),
    ],
)
def test_an_allowed_import_is_not_reported(module, source):
    assert violations(module, source) == []


def package_of(module: str) -> str:
    """The folder or top-level module that a module belongs to: t2tlite.data,
    t2tlite.programs.bulk, t2tlite.config.
    """
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[1:2] == ["programs"] else 2])


def imports_between(name_of: Callable[[str], str]) -> dict[str, set[str]]:
    """Whose code imports whose, by the name that `name_of` gives to a module."""
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        targets = {
            name
            for name in imported(path.read_text(encoding="utf-8"), package)
            if name in MODULES
        }
        graph.setdefault(name_of(module), set()).update(
            name_of(target) for target in targets - {"t2tlite"}
        )
    return {name: targets - {name} for name, targets in graph.items()}


@pytest.mark.parametrize("name_of", [str, package_of], ids=["modules", "packages"])
def test_nothing_imports_itself_through_others(name_of):
    # raises a CycleError that names the circle
    graphlib.TopologicalSorter(imports_between(name_of)).prepare()


def test_import_of_t2tlite_loads_only_settings_and_the_registry():
    code = (
        "import sys, t2tlite; print(*sorted(m for m in sys.modules if"
        " m.startswith('t2tlite.')))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert result.stdout.split() == [
        "t2tlite.machine",
        "t2tlite.registry",
        "t2tlite.tensor2tensor_names",  # which the registry's messages need
    ]


def test_light_modules_load_neither_tensorflow_nor_keras():
    heavy = (
        "{'tensorflow', 'keras', 'tensorflow_text', 'tensorflow_datasets',"
        " 'sacremoses'}"
    )
    names = [
        n
        for n in MODULES
        if {n.partition(".")[2], package_of(n).partition(".")[2]} & LIGHT
    ]
    assert len(names) > 80
    code = (
        "import importlib, sys\n"
        f"for name in {names}:\n"
        "    importlib.import_module(name)\n"
        f"    loaded = {heavy} & set(sys.modules)\n"
        "    if loaded:\n"
        "        sys.exit(f'importing {name} loads {sorted(loaded)}')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr


def test_the_design_document_shows_the_table():
    """`python tests/test_import_direction.py` writes it anew."""
    shown = (
        DESIGN.read_text(encoding="utf-8")
        .partition(TABLE_START)[2]
        .partition(TABLE_END)[0]
    )
    assert shown == rules_as_markdown()


if __name__ == "__main__":
    before, _, rest = DESIGN.read_text(encoding="utf-8").partition(TABLE_START)
    after = rest.partition(TABLE_END)[2]
    DESIGN.write_text(
        f"{before}{TABLE_START}{rules_as_markdown()}{TABLE_END}{after}",
        encoding="utf-8",
    )
