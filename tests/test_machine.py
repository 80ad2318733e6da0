"""The settings chosen before TensorFlow loads, and what the CPU is known to have."""

import os
import platform
import subprocess
import sys

import pytest

from t2tlite import machine
from t2tlite.machine import (
    apply_settings,
    cpu_ends_at_avx2,
    cpu_has_bfloat16,
    has_nvidia_driver,
    memory_limits,
    nvidia_models,
)

NAMES = (
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_CPU_ALLOCATOR_USE_BFC",
    "TF_CPU_BFC_MEM_LIMIT_IN_MB",
)


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "LINUX_ROOT", tmp_path)
    return tmp_path


def test_import_applies_settings_before_tensorflow_loads():
    program = (
        f"import t2tlite, os, sys; print([os.environ.get(n) for n in {NAMES}],"
        " 'tensorflow' in sys.modules)"
    )
    without = {name: os.environ[name] for name in os.environ.keys() - set(NAMES)}
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env=without,
        capture_output=True,
        text=True,
        check=True,
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    assert printed.stdout.strip() == f"['1', 'true', '{memory}'] False"


def test_what_the_user_set_is_kept(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 25_600}  # 100 MB
    with monkeypatch.context() as patch:
        patch.setattr(os, "sysconf", pages.get)
        apply_settings()
    assert [os.environ[name] for name in NAMES] == ["0", "true", "100"]


@pytest.mark.parametrize(
    ("flags", "fast", "ends"),
    [
        ("flags\t\t: fpu avx2 avx512f avx512_bf16 sha\n", True, False),
        ("flags\t\t: fpu avx512f amx_bf16 amx_tile\n", True, False),
        ("flags\t\t: fpu avx2 fma avx512f avx512_vnni\n", False, False),
        ("flags\t\t: fpu avx2 fma\n", False, True),
        ("model name\t: amx_bf16\nflags\t\t: fpu avx\n", False, False),
        ("", False, False),
    ],
)
def test_instructions_of_the_cpu(root, flags, fast, ends):
    assert not cpu_has_bfloat16()  # without a description
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(f"processor\t: 0\n{flags}")
    assert (cpu_has_bfloat16(), cpu_ends_at_avx2()) == (fast, ends)


def test_nvidia_driver(root, monkeypatch):
    monkeypatch.setenv("PATH", str(root))
    assert not has_nvidia_driver()
    program = root / "nvidia-smi"
    program.touch(0o755)
    assert has_nvidia_driver()
    program.unlink()
    listed = root / "proc" / "driver" / "nvidia"
    listed.mkdir(parents=True)
    assert not has_nvidia_driver()
    (listed / "version").touch()
    assert has_nvidia_driver()


def test_nvidia_models(root):
    assert nvidia_models() == [platform.node()]
    for number, model in enumerate(["H100 PCIe", "A100", "A100"]):
        file = root / f"proc/driver/nvidia/gpus/0000:0{number}:00.0/information"
        file.parent.mkdir(parents=True)
        file.write_text(f"Model: \t\t NVIDIA {model}\nIRQ:   \t\t 42\n")
    models = [line.split() for line in nvidia_models()]
    assert models == [
        ["Model:", "NVIDIA", "A100"],
        ["Model:", "NVIDIA", "H100", "PCIe"],
    ]


def test_memory_of_a_container(root):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text("1:cpu:/other\n0::/job/step\n")
    for name, limit in (("job/step", "max"), ("job", "5000000"), ("other", "1")):
        path = root / "sys/fs/cgroup" / name / "memory.max"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{limit}\n")
    assert list(memory_limits()) == [5_000_000]
