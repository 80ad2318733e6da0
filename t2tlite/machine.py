"""Settings that make TensorFlow fast on the machine at hand, chosen before it loads.

`import t2tlite` applies them, so they hold for the commands, the Python API, tests and
benchmarks. TensorFlow reads them once: import t2tlite before tensorflow. A variable
that the user has set is kept. The gains were measured in training transformer_base in
float32 on two cores (AVX2: a CPU with AVX-512, limited to AVX2):

  TF_ENABLE_ONEDNN_OPTS=1
      oneDNN's matrix products, which TensorFlow selects by default only for AVX512-VNNI
      and AMX: 1.16 times as fast with AVX2 (after the next setting)
  TF_CPU_ALLOCATOR_USE_BFC=true
      keeps freed memory. malloc returns every large tensor to the kernel, which clears
      the next one page by page: 1.12 times as fast with AVX2, no difference with
      AVX-512, where oneDNN has such an allocator of its own
  TF_CPU_BFC_MEM_LIMIT_IN_MB
      the memory limit of this allocator: the machine's, or that of a cgroup (a
      container, a SLURM job). TensorFlow's default is 64 GB. Beyond the limit t2tlite
      can report an error, rather than being killed by the kernel

Tried without a gain beyond the noise of 5 %, and left at their defaults: frozen
weights, a cache of oneDNN primitives (TF_MKL_OPTIMIZE_PRIMITIVE_MEMUSE=0), huge pages
(GLIBC_TUNABLES=glibc.malloc.hugetlb=1), numbers of threads (TF_NUM_INTEROP_THREADS,
TF_NUM_INTRAOP_THREADS). TensorFlow already flushes denormal numbers to zero.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# environment variable: the settings chosen here, "NAME=VALUE NAME=VALUE ..."
CHOSEN = "T2TLITE_SETTINGS"
_BFLOAT16 = {"avx512_bf16", "amx_bf16"}  # as Linux names them


def apply_settings() -> None:
    """Sets the environment variables that the user has not set.

    A child process inherits them, perhaps on another machine (`srun`), and so chooses
    anew those in CHOSEN.
    """
    settings = {"TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPU_ALLOCATOR_USE_BFC": "true"}
    if "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        memory = min([memory, *(limit for limit, _ in cgroup_memory())])
        settings["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(memory >> 20)
    chosen_by_parent = set(os.environ.get(CHOSEN, "").split())
    free = {
        name: value
        for name, value in settings.items()
        if name not in os.environ or f"{name}={os.environ[name]}" in chosen_by_parent
    }
    os.environ.update(free)
    os.environ[CHOSEN] = " ".join(f"{name}={value}" for name, value in free.items())


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that this process can still allocate without swapping, or None if the
    system is not Linux.

    `root` is where proc and sys/fs/cgroup are.
    """
    meminfo = root / "proc/meminfo"
    lines = meminfo.read_text().splitlines() if meminfo.is_file() else []
    available = [
        int(line.split()[1]) * 1024
        for line in lines
        if line.startswith("MemAvailable:")
    ]
    if not available:
        return None
    return min(
        available + [max(0, limit - used) for limit, used in cgroup_memory(root)]
    )


def cgroup_memory(root: Path = Path("/")) -> Iterator[tuple[int, int]]:
    """(limit, used) in bytes for this process's control group and each above it that
    limits memory.
    """
    groups = root / "proc/self/cgroup"
    for line in groups.read_text().splitlines() if groups.is_file() else []:
        _, controllers, name = line.split(":", 2)
        if controllers not in ("", "memory"):  # empty for version 2
            continue
        folder, limit, used = (
            "memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
        )
        if not controllers:
            folder, limit, used = ("", "memory.max", "memory.current")
        top = root / "sys/fs/cgroup" / folder
        below = top / name.lstrip("/")
        for group in (below, *below.parents):
            if not group.is_relative_to(top):
                break
            files = [group / file for file in (limit, used, "memory.stat")]
            if not all(file.is_file() for file in files):
                continue
            text, in_use, counters = (file.read_text() for file in files)
            cache = sum(
                int(line.split()[1])
                for line in counters.splitlines()
                if line.startswith("inactive_file ")
            )
            if text.strip() != "max":
                # the kernel frees the cache when needed
                yield int(text), int(in_use) - cache


def cpu_has_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the CPU multiplies matrices in bfloat16; without such instructions it is
    slower than float32.

    `cpuinfo` is Linux's description of the CPU; without it the result is False.
    """
    return not _BFLOAT16.isdisjoint(_cpu_flags(cpuinfo))


def cpu_ends_at_avx2(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the CPU has AVX2 and not AVX-512, for which oneDNN has other matrix
    products.

    `cpuinfo` is Linux's description of the CPU; without it the result is False.
    """
    flags = _cpu_flags(cpuinfo)
    return "avx2" in flags and "avx512f" not in flags


def _cpu_flags(cpuinfo: Path) -> set[str]:
    if not cpuinfo.is_file():
        return set()
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    return next(
        (
            set(line.partition(":")[2].split())
            for line in lines
            if line.startswith("flags")
        ),
        set(),
    )
