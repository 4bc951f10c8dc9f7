"""The machine and the software that figures were measured with."""

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import psutil

PACKAGES = ("daskw2v", "numpy", "numba", "numba-cuda", "zarr", "dask", "gensim", "fasttext")
_WIDEST = {"avx512f": "AVX-512", "avx2": "AVX2", "asimd": "NEON"}  # the first one that a processor has


class Machine(NamedTuple):
    """What a figure depends on beside the code.

    Parameters
    ----------
    processor, instructions, cores, memory_gb
        Model, widest vector instructions, logical cores and 10^9 bytes of memory.
    gpu
        Its name; None where there is none.
    load
        Mean number of running processes of the last minute, before the run.
    packages
        Versions by name, Python's among them.
    """

    processor: str
    instructions: str
    cores: int
    memory_gb: int
    gpu: str | None
    load: float
    packages: dict[str, str]

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.packages.items())
        where = f"{self.cores} cores, {self.processor} ({self.instructions}), {self.memory_gb} GB"
        return f"{where}{f', {self.gpu}' if self.gpu else ''}, load {self.load:.1f}; {versions}"


def this_machine() -> Machine:
    """Return what this process runs on."""
    about = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"^model name\s*:\s*(.+)$", about, re.MULTILINE)
    flags = set(about.split())
    return Machine(
        model[1] if model else platform.processor() or platform.machine(),
        next((name for flag, name in _WIDEST.items() if flag in flags), platform.machine()),
        os.cpu_count() or 1,
        round(psutil.virtual_memory().total / 1e9),
        _gpu(),
        os.getloadavg()[0],
        {"Python": platform.python_version(), **_versions()},
    )


def _gpu() -> str | None:
    try:
        words = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        names = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return names.partition("\n")[0].strip() or None


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
