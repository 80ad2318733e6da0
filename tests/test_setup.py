"""The project's own files agree with each other: commands, packages, requirements and
their lock.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
DISTRIBUTION = importlib.metadata.distribution("t2tlite")
COMMANDS = [
    entry for entry in DISTRIBUTION.entry_points if entry.group == "console_scripts"
]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = ("requirements.txt", "requirements-dev.txt")  # the second includes the first
DOCS = ("requirements-docs.txt",)


def locked(python: str, files: Sequence[str]) -> dict[str, str]:
    """Version by package that files of requirements install under a Python on Linux."""
    versions: dict[str, str] = {}
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.1",
        "platform_system": "Linux",
    }
    for name in files:
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if not line or line.startswith(("#", "-r")):
                continue
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate(environment):
                (pin,) = requirement.specifier
                assert pin.operator == "==", line
                assert canonicalize_name(requirement.name) not in versions, (
                    f"{line}, for Python {python}"
                )
                versions[canonicalize_name(requirement.name)] = pin.version
    return versions


@pytest.mark.parametrize("python", PYTHONS)
def test_lock_meets_every_requirement_of_the_project(python):
    versions = locked(python, TESTS)
    for text in DISTRIBUTION.requires or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate(
            {"extra": "dev", "python_version": python}
        ):
            assert requirement.specifier.contains(
                versions[canonicalize_name(requirement.name)]
            ), text


@pytest.mark.parametrize("python", PYTHONS)
def test_lock_of_the_site_agrees_with_that_of_the_checks(python):
    site, checks = locked(python, DOCS), locked(python, TESTS)
    assert {"mkdocs-material", "mkdocstrings-python"} <= set(site)
    # MkDocs does not import t2tlite, so the Markdown and dates of TensorFlow's packages
    # may be of other versions.
    shared = set(site) & set(checks) - {"markdown", "python-dateutil"}
    assert {name: site[name] for name in shared} == {
        name: checks[name] for name in shared
    }


def test_citation_and_changelog_name_the_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["cff-version"], citation["version"]) == (
        "1.2.0",
        DISTRIBUTION.version,
    )
    assert {"message", "title", "authors"} <= set(citation)
    assert f"\n## {DISTRIBUTION.version} " in (ROOT / "CHANGELOG.md").read_text(
        encoding="utf-8"
    )


def test_continuous_integration_runs_what_the_checkout_has():
    workflow = yaml.safe_load(
        (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    )
    commands = [
        step.get("run", "")
        for job in workflow["jobs"].values()
        for step in job["steps"]
    ]
    assert any(command.endswith(" .ci/run") for command in commands)
    (versions,) = [
        job["strategy"]["matrix"]["python-version"]
        for job in workflow["jobs"].values()
        if "python-version" in job.get("strategy", {}).get("matrix", {})
    ]
    promised = [
        line.rpartition(" ")[2]
        for line in DISTRIBUTION.metadata.get_all("Classifier") or []
        if line.startswith("Programming Language :: Python :: 3.")
    ]
    assert versions == promised == ["3.11", "3.12", "3.13", "3.14"]
    systems = workflow["jobs"]["systems"]
    assert systems["strategy"]["matrix"]["system"] == [
        "ubuntu-latest",
        "macos-latest",
        "windows-latest",
    ]
    assert systems["steps"][-1]["run"].endswith(
        'python -m pytest -m "not slow and not shared"'
    )
    hooks = yaml.safe_load(
        (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    )
    assert [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]] == [
        "make --no-print-directory check"
    ]


def test_a_release_is_tried_before_it_is_published():
    """The publishing job alone may ask for a token, and only after a person's tag."""
    workflow = yaml.safe_load(
        (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    )
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    assert (jobs["try"]["needs"], jobs["publish"]["needs"]) == ("build", "try")
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    checks = {step.get("run", "") for step in jobs["try"]["steps"]}
    assert {f"python .ci/try_wheel.py {what}" for what in ("commands", "modules")} <= (
        checks
    )


def test_issues_about_faults_need_a_version():
    form = yaml.safe_load(
        (ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml").read_text(encoding="utf-8")
    )
    fields = {field["id"]: field for field in form["body"]}
    assert "t2t-trainer --version" in fields["version"]["attributes"]["description"]
    assert fields["version"]["validations"]["required"]
    assert "flags.txt" in fields["flags"]["attributes"]["description"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_command_is_installed_from_the_file_of_its_name(command):
    assert command.value == f"t2tlite.bin.{command.name.replace('-', '_')}:main"
    assert (ROOT / "bin" / f"{command.name.replace('-', '_')}.py").is_file()


def test_every_command_file_is_installed():
    files = {path.stem for path in (ROOT / "bin").glob("t2t_*.py")}
    assert {command.name.replace("-", "_") for command in COMMANDS} == files


@pytest.mark.parametrize("folder", ["problems", "hparams", "bin"])
def test_no_module_takes_the_place_of_a_mapped_folder(folder):
    # An editable install would import t2tlite/problems.py, a wheel the folder
    # problems/.
    assert not (ROOT / "t2tlite" / f"{folder}.py").exists()
    assert not (ROOT / "t2tlite" / folder).exists()


def test_environment_shared_by_checkouts_is_not_emptied(tmp_path):
    for name in ("Makefile", "requirements.txt", "requirements-dev.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "kept").touch()
    (tmp_path / ".venv").symlink_to("shared")
    # a `make VENV=...` that runs this test hands its variables on in MAKEFLAGS
    alone = {name: text for name, text in os.environ.items() if "MAKE" not in name}
    result = subprocess.run(
        ["make", "install"], cwd=tmp_path, env=alone, capture_output=True, text=True
    )
    assert result.returncode != 0
    assert ".venv must be a folder of this checkout alone" in result.stderr
    assert (tmp_path / "shared" / "kept").exists()


def test_the_source_distribution_is_the_checkout(tmp_path):
    """Whoever builds from it can install the tested versions and run the tests."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a checkout")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tracked = set(listed.stdout.splitlines())
    checkout = tmp_path / "checkout"
    for name in tracked:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    build = "from setuptools import build_meta; print(build_meta.build_sdist('..'))"
    subprocess.run(
        [sys.executable, "-c", build], cwd=checkout, capture_output=True, check=True
    )
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
        root = archive.name.removesuffix(".tar.gz")
        page = packed.extractfile(f"{root}/PKG-INFO").read().decode()
    assert tracked <= names
    folders = {str(folder) for name in tracked for folder in Path(name).parents}
    others = names - tracked - {"", "PKG-INFO", "setup.cfg"} - folders
    assert all(name.startswith("t2tlite.egg-info") for name in others)
    # an index shows this page, and no file beside it
    assert "\n# t2tlite\n" in page
    assert not re.search(r"\]\((?!https:)|<(img|source)\b", page)


USER_SCRIPT = """\
import t2tlite
from t2tlite.hparams.transformer import transformer_tiny
from t2tlite.problems.parallel_text import ParallelText

model = t2tlite.load("RUN")
reveal_type(model.translate("a"))
reveal_type(model.translate(["a"]))
reveal_type(transformer_tiny().hidden_size)
reveal_type(ParallelText().reverse)
transformer_tiny().hiden_size
model.translate("a", beam_siz=2)
model.n_best(["a"], 2, alpha="high")
model.parse("a", raw_txt=True)
model.score("a", "b", batchsize=2)
data = t2tlite.prepare("parallel_text", train_source="a.en")
t2tlite.train(data, "transformer_tiny", "RUN", random_sed=2)
t2tlite.load("RUN", thread=2)
model.export("OUT", beamsize=2)
model.options(beamsize=2)
data = t2tlite.prepare("parallel_text", train_source=["a.en"], vocab_size=800)
t2tlite.train(data, {}, "RUN", train_steps=9, random_seed=2)
model.translate(iter(["a"]), beam_size=2, alpha=1, t2t_rules=True)
"""


def test_a_users_script_is_type_checked_after_make_install(tmp_path):
    """In an environment into which nothing is installed but the links of `make
    install`, from a checkout with a space in its path.
    """
    pytest.importorskip("mypy")
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    for name in ("Makefile", "t2tlite", "problems", "hparams", "bin"):
        (checkout / name).symlink_to(ROOT / name)
    environment = tmp_path / "environment"
    venv.create(environment)
    subprocess.run(
        ["make", "link-types", f"VENV={environment}"], cwd=checkout, check=True
    )
    (tmp_path / "script.py").write_text(USER_SCRIPT)
    python = environment / "bin" / "python"
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", python, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    *lines, summary = result.stdout.splitlines()
    assert lines[:4] == [
        f'script.py:{line}: note: Revealed type is "{kind}"'
        for line, kind in ((6, "str"), (7, "list[str]"), (8, "int"), (9, "bool"))
    ]
    errors = [line for line in lines if ": error: " in line]
    assert 'error: "HParams" has no attribute "hiden_size"' in errors[0]
    # misspelt keywords, and no others
    wrong = {int(line.split(":")[1]) for line in errors}
    assert wrong == {*range(10, 15), *range(16, 20)}, result.stdout
    assert summary.startswith(f"Found {len(errors)} errors in 1 file")
