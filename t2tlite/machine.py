"""Settings that make TensorFlow fast on the machine at hand, chosen before it loads;
and how it is loaded, quietly.

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

Tried in training without a gain beyond the noise of 5 %, and left at their defaults:
frozen weights, a cache of oneDNN primitives (TF_MKL_OPTIMIZE_PRIMITIVE_MEMUSE=0), huge
pages (GLIBC_TUNABLES=glibc.malloc.hugetlb=1), numbers of threads
(TF_NUM_INTEROP_THREADS, TF_NUM_INTRAOP_THREADS). TensorFlow already flushes denormal
numbers to zero. Decoding divides the cores (`divide_cores` in keras_run.py).
"""

import contextlib
import gc
import importlib
import os
import platform
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

MAX_DECODING_THREADS = 8  # each needs memory for its batch
LINUX_ROOT = Path("/")  # of the file system
_BFLOAT16 = {"avx512_bf16", "amx_bf16"}  # as Linux names them

_redirection = threading.Lock()  # file descriptor 2 is the process's
_computing_process = 0  # the id of the process that computes; 0: none does yet


def apply_settings() -> None:
    """Sets the environment variables that the user has not set; and if no temporary
    folder can be written, its name, which libraries ask for when they are imported.
    """
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):  # not on Windows
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        megabytes = min([memory, *memory_limits()]) >> 20
        os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", str(megabytes))
    try:
        tempfile.gettempdir()
    except FileNotFoundError:  # what needs a temporary file raises an OSError then
        tempfile.tempdir = os.path.abspath(os.environ.get("TMPDIR", "/tmp"))
        if not os.environ.get("MPLCONFIGDIR"):
            # Keras imports it, if it can; it needs a folder
            sys.modules.setdefault("matplotlib", None)  # type: ignore[arg-type]


def available_cores() -> int:
    """The CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def decoding_threads() -> int:
    """How many batches to decode at a time: one on each core, up to
    MAX_DECODING_THREADS, which share more cores.
    """
    return min(available_cores(), MAX_DECODING_THREADS)


def cores_each(threads: int) -> int:
    """The cores of each of so many threads that compute at a time."""
    return max(1, available_cores() // threads)


def memory_limits() -> Iterator[int]:
    """Yields the limit of memory in bytes of this process's control group (cgroup v2),
    and of each group above it that has one.
    """
    for line in _lines(LINUX_ROOT / "proc/self/cgroup"):
        if not line.startswith("0::"):
            continue
        group = LINUX_ROOT / "sys/fs/cgroup" / line.removeprefix("0::/")
        while group.name != "fs":
            for limit in _lines(group / "memory.max"):
                if limit != "max":
                    yield int(limit)
            group = group.parent


def has_nvidia_driver() -> bool:
    """Whether a driver of NVIDIA's GPUs is installed: Linux lists it in /proc, or its
    program nvidia-smi is in a folder of the variable PATH.
    """
    listed = (LINUX_ROOT / "proc/driver/nvidia/version").exists()
    return listed or shutil.which("nvidia-smi") is not None


def nvidia_models() -> list[str]:
    """The models of NVIDIA's GPUs that Linux lists in /proc; without a list, the name
    of the machine.
    """
    models: set[str] = set()
    for file in LINUX_ROOT.glob("proc/driver/nvidia/gpus/*/information"):
        models.update(line for line in _lines(file) if line.startswith("Model:"))
    return sorted(models) or [platform.node()]


def cpu_has_bfloat16() -> bool:
    """Whether the CPU has instructions for matrix products in bfloat16. Without them
    bfloat16 is slower than float32.
    """
    return not _BFLOAT16.isdisjoint(cpu_flags())


def cpu_ends_at_avx2() -> bool:
    """Whether the CPU has AVX2 but not AVX-512. oneDNN's matrix products differ between
    the two.
    """
    flags = cpu_flags()
    return "avx2" in flags and "avx512f" not in flags


def cpu_flags() -> set[str]:
    """The instruction sets and other features of the CPU, as Linux names them; none
    where there is no /proc.
    """
    for line in _lines(LINUX_ROOT / "proc/cpuinfo"):
        if line.startswith("flags"):
            return set(line.split())
    return set()


def _lines(file: Path) -> list[str]:
    if not file.is_file():
        return []
    return file.read_text(encoding="utf-8", errors="replace").splitlines()


def check_not_forked() -> None:
    """Raises RuntimeError in a fork of a process that has called this before.

    TensorFlow and CTranslate2 would wait forever for threads that a fork does not have.
    """
    global _computing_process
    _computing_process = _computing_process or os.getpid()
    if _computing_process != os.getpid():
        raise RuntimeError(
            "A model cannot compute in a fork of the process that loaded it. Use"
            " multiprocessing.get_context('spawn')."
        )


def import_tensorflow() -> None:
    """Imports TensorFlow without its start-up messages, about 0.3 s faster than `import
    tensorflow`, and Keras, which is to compute with it, whatever KERAS_BACKEND or
    keras.json says.

    The import makes about 400,000 objects that Python's garbage collector tracks, and
    they stay. The collector would look through them again and again while their number
    grows, so it pauses during the import.

    Raises ValueError if Keras was imported before with another backend.
    """
    os.environ["KERAS_BACKEND"] = "tensorflow"  # Keras reads it once
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with quiet_stderr():
            importlib.import_module("tensorflow")
            keras = importlib.import_module("keras")
    finally:
        if was_enabled:
            gc.enable()
    if keras.config.backend() != "tensorflow":
        raise ValueError(
            "Keras must have KERAS_BACKEND=tensorflow set before it is imported."
        )


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
    """Suppresses output to file descriptor 2 inside the block.

    TensorFlow writes its start-up messages there before any logging level takes effect.
    Nothing is suppressed if the environment asks for these messages, with a
    TF_CPP_MIN_LOG_LEVEL below 3. A block inside another, or beside it in another
    thread, leaves the descriptor to the one that began first.
    """
    is_asked_for = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") < "3"
    if is_asked_for or not _redirection.acquire(blocking=False):
        yield
        return
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        _redirection.release()
