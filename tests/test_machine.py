"""The settings chosen before TensorFlow loads, and what the CPU is known to have."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from t2tlite.machine import apply_settings, cpu_has_bfloat16

NAMES = ("TF_ENABLE_ONEDNN_OPTS", "TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB")


def test_importing_t2tlite_applies_them_before_tensorflow_loads():
    program = f"import t2tlite, os, sys; print([os.environ.get(n) for n in {NAMES}], 'tensorflow' in sys.modules)"
    without = {name: value for name, value in os.environ.items() if name not in NAMES}
    printed = subprocess.run([sys.executable, "-c", program], env=without, capture_output=True, text=True, check=True)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    assert printed.stdout.strip() == f"['1', 'true', '{memory}'] False"


def test_what_the_user_has_set_stays(monkeypatch):
    for name in NAMES:
        monkeypatch.setenv(name, "0")
    apply_settings()
    assert [os.environ[name] for name in NAMES] == ["0", "0", "0"]


@pytest.mark.parametrize(
    ("cpuinfo", "fast"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx2 avx512f avx512_bf16 sha\n", True),
        ("processor\t: 0\nflags\t\t: fpu avx512f amx_bf16 amx_tile\n", True),
        ("processor\t: 0\nflags\t\t: fpu avx2 fma avx512f avx512_vnni\n", False),
        ("model name\t: amx_bf16\nflags\t\t: fpu\n", False),
        ("", False),
    ],
)
def test_bfloat16_instructions(tmp_path, cpuinfo, fast):
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    assert cpu_has_bfloat16(tmp_path / "cpuinfo") is fast


def test_no_description_of_the_cpu(tmp_path):
    assert not cpu_has_bfloat16(tmp_path / "cpuinfo")
