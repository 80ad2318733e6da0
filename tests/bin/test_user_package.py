"""--t2t_usr_dir: a user's package with problems and hparam sets."""

import re
import sys

import pytest

from t2tlite import registry
from t2tlite.bin.command import import_user_package
from t2tlite.files.atomic_file import write_text

PACKAGE = '''"""A user's package."""
from . import tasks
'''
TASKS = '''
import dataclasses
from t2tlite import registry
from t2tlite.config import DecodeHParams, HParams
from t2tlite.data.problem import Problem

@registry.register_problem
@dataclasses.dataclass(frozen=True)
class SpellBackwards(Problem):
    """Spells backwards."""

@registry.register_hparams
def transformer_spelling():
    """For spelling."""
    return dataclasses.replace(HParams(), num_heads=2)
'''


@pytest.fixture
def user_package(tmp_path, monkeypatch):
    """Writes a package that registers a problem and an hparam set; forgets it
    afterwards.
    """
    monkeypatch.setattr(registry, "_problems", {})
    monkeypatch.setattr(registry, "_hparams", {})
    folder = tmp_path / "spelling_problems_of_mine"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    (folder / "tasks.py").write_text(TASKS, encoding="utf-8")
    yield folder
    for name, module in list(sys.modules.items()):
        if str(tmp_path) in str(getattr(module, "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("name", ["{0}", "{0}/", "{0.name}"])
def test_user_package(user_package, monkeypatch, name):
    path = list(sys.path)
    monkeypatch.chdir(user_package.parent)
    import_user_package(name.format(user_package))
    assert sys.path == path
    assert list(registry.list_problems()) == ["spell_backwards", "spell_backwards_rev"]
    assert registry.get_problem("spell_backwards").name() == "spell_backwards"
    assert registry.get_hparams("transformer_spelling").num_heads == 2
    # a second command in this process: nothing is registered twice
    import_user_package(str(user_package))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def broken(:", r": SyntaxError: invalid syntax \(__init__\.py, line 1\)"),
        ("\nimport none", r"__init__\.py, line 2\): ModuleNotFoundError: No module"),
        ("raise SystemExit(3)", r"__init__\.py, line 1\): SystemExit: 3"),
        (
            "from .tasks import gone",
            r"line 1\): ImportError: cannot import name 'gone'",
        ),
    ],
)
def test_user_package_with_a_mistake(user_package, code, message):
    """Nothing of it is left behind."""
    path = list(sys.path)
    (user_package / "__init__.py").write_text(code, encoding="utf-8")
    with pytest.raises(
        ValueError, match=f"--t2t_usr_dir=.* cannot be imported.*{message}"
    ):
        import_user_package(str(user_package))
    assert sys.path == path
    assert user_package.name not in sys.modules


def test_user_package_whose_name_is_not_an_identifier(user_package):
    import_user_package(str(user_package.rename(user_package.with_name("spelling-v2"))))
    assert "spell_backwards" in registry.list_problems()


@pytest.mark.parametrize("what", ["missing", "file.py", "folder", "json", "sys", "a.b"])
def test_user_package_that_is_none(tmp_path, what):
    (tmp_path / "file.py").touch()
    (tmp_path / "folder").mkdir()
    for name in ("json", "sys", "a.b"):  # names of other modules, one with a dot
        write_text(tmp_path / name / "__init__.py", "")
    message = "--t2t_usr_dir must be a folder with an __init__.py"
    for path in (str(tmp_path / what), ""):
        received = re.escape(f"Received: {path!r}.")
        with pytest.raises(ValueError, match=f"^{message}, .*{received}$"):
            import_user_package(path)
    import_user_package(None)
