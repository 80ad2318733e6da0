"""The settings chosen before TensorFlow loads, and what the CPU is known to have."""

import os
import subprocess
import sys

import pytest

from t2tlite.machine import (
    CHOSEN,
    apply_settings,
    available_memory,
    cgroup_memory,
    cpu_ends_at_avx2,
    cpu_has_bfloat16,
    has_nvidia_driver,
)

NAMES = (
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_CPU_ALLOCATOR_USE_BFC",
    "TF_CPU_BFC_MEM_LIMIT_IN_MB",
)


def test_import_applies_settings_before_tensorflow_loads():
    program = (
        f"import t2tlite, os, sys; print([os.environ.get(n) for n in {NAMES}],"
        " 'tensorflow' in sys.modules)"
    )
    without = {
        name: value
        for name, value in os.environ.items()
        if name not in (*NAMES, CHOSEN)
    }
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env=without,
        capture_output=True,
        text=True,
        check=True,
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    assert printed.stdout.strip() == f"['1', 'true', '{memory}'] False"


def test_child_process_chooses_anew_and_keeps_what_the_user_set(monkeypatch):
    """As under `srun`, where the variables come from a login node with another
    memory.
    """
    for name in (*NAMES, CHOSEN):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")  # by the user
    with monkeypatch.context() as patch:
        # 100 MB
        patch.setattr(
            os, "sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else 256 * 100
        )
        apply_settings()
    assert [os.environ[name] for name in NAMES] == ["0", "true", "100"]
    # by the user, before starting the child
    monkeypatch.setenv("TF_CPU_ALLOCATOR_USE_BFC", "false")
    apply_settings()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    memory = min([memory, *(limit >> 20 for limit, _ in cgroup_memory())])
    assert [os.environ[name] for name in NAMES] == ["0", "false", str(memory)]


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
def test_instructions_of_the_cpu(tmp_path, flags, fast, ends):
    path = tmp_path / "cpuinfo"
    assert not cpu_has_bfloat16(path)  # which does not exist
    path.write_text(f"processor\t: 0\n{flags}")
    assert (cpu_has_bfloat16(path), cpu_ends_at_avx2(path)) == (fast, ends)


def test_nvidia_driver(tmp_path):
    assert not has_nvidia_driver(tmp_path, str(tmp_path))
    program = tmp_path / "nvidia-smi"
    program.touch(0o755)
    assert has_nvidia_driver(tmp_path / "elsewhere", str(tmp_path))
    program.unlink()
    listed = tmp_path / "proc" / "driver" / "nvidia"
    listed.mkdir(parents=True)
    assert not has_nvidia_driver(tmp_path, str(tmp_path))
    (listed / "version").touch()
    assert has_nvidia_driver(tmp_path, str(tmp_path))


MEMINFO = (
    "MemTotal:       24000 kB\nMemFree:          900 kB\nMemAvailable:    9000 kB\n"
)


def control_group(folder, limit, used):
    """Files of a group: names and values of (limit, used), and 1,000 bytes of cache."""
    folder.mkdir(parents=True)
    for name, value in (
        limit,
        used,
        ("memory.stat", "active_file 7\ninactive_file 1000\ninactive_anon 9"),
    ):
        (folder / name).write_text(f"{value}\n")


def linux(root, groups):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(MEMINFO)
    (root / "proc/self/cgroup").write_text(groups)
    return root


def test_available_memory(tmp_path):
    assert available_memory(linux(tmp_path, "")) == 9000 * 1024
    assert available_memory(tmp_path / "absent") is None


def test_memory_of_a_container_with_control_groups_version_2(tmp_path):
    root = linux(tmp_path, "0::/job/step\n")
    control_group(
        root / "sys/fs/cgroup/job/step", ("memory.max", "max"), ("memory.current", 3000)
    )
    assert available_memory(root) == 9000 * 1024
    control_group(
        root / "sys/fs/cgroup/job/other", ("memory.max", 1), ("memory.current", 0)
    )
    (root / "sys/fs/cgroup/job/memory.max").write_text("5000000")
    (root / "sys/fs/cgroup/job/memory.current").write_text("2000000")
    (root / "sys/fs/cgroup/job/memory.stat").write_text("anon 5\n")
    assert list(cgroup_memory(root)) == [(5_000_000, 2_000_000)]
    assert available_memory(root) == 3_000_000


def test_memory_of_a_container_with_control_groups_version_1(tmp_path):
    root = linux(tmp_path, "12:cpu,cpuacct:/\n4:memory:/job\n0::/\n")
    names = "memory.limit_in_bytes", "memory.usage_in_bytes"
    control_group(
        root / "sys/fs/cgroup/memory/job", (names[0], 8_000_000), (names[1], 6_000_000)
    )
    control_group(root / "sys/fs/cgroup/memory/cpu", (names[0], 1), (names[1], 1))
    assert available_memory(root) == 2_001_000
    # it can be above for a moment
    (root / "sys/fs/cgroup/memory/job/memory.usage_in_bytes").write_text("9000000")
    assert available_memory(root) == 0
