"""A stand-in for a GPU, for dry runs: `python -m benchmarks.gpu.stand_in MODULE [ARGUMENT ...]`.

Runs a module with Numba's simulator, a device's name and multiprocessors, programs that behave as NVIDIA's do, and a
text of a few words. Nothing is compiled for a GPU.
"""

import gzip
import os
import runpy
import sys
from pathlib import Path

TOPICS = (("king", "queen", "man", "woman"), ("Athens", "Greece", "Oslo", "Norway"))
SENTENCES = 80

_PROGRAM = """#!{python}
import subprocess, sys
start = sys.argv.index(sys.executable)
code = subprocess.run([sys.executable, "-m", "benchmarks.gpu.stand_in", *sys.argv[start + 2:]]).returncode
{says}
sys.exit(code)
"""
_SANITIZER = """
hazards = "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
print("=========", hazards if "racecheck" in sys.argv else "ERROR SUMMARY: 0 errors")
"""
_PROGRAMS = {
    "compute-sanitizer": _PROGRAM.format(python=sys.executable, says=_SANITIZER),
    "nvidia-smi": f"#!{sys.executable}\nprint('stand-in, 0, 0 MiB, 0 MHz')\n",
}


def prepare(folder: Path) -> dict[str, str]:
    """Write programs and text into a folder; return the variables by which they are found."""
    programs, data = folder / "bin", folder / "data"
    programs.mkdir()
    for name, code in _PROGRAMS.items():
        path = programs / name
        path.write_text(code)
        path.chmod(0o755)
    write_data(data)
    return {"PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}", "DASKW2V_DATA": str(data)}


def write_data(folder: Path) -> None:
    """Write a text of two topics, and sets of two similarities and of two analogies."""
    wiki, sets = folder / "corpus" / "wiki", folder / "eval"
    wiki.mkdir(parents=True)
    sets.mkdir(parents=True)
    lines = [" ".join(TOPICS[n % 2][(n + k) * (1 + n % 3) % 4] for k in range(8)) for n in range(SENTENCES)]
    (wiki / "0.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    for name in ("ws353.tsv", "simlex999.tsv"):
        (sets / name).write_text("king\tqueen\t9.0\nking\tOslo\t1.0\nman\twoman\t8.0\n")
    (sets / "google_analogy.txt").write_text(": capitals\nAthens Greece Oslo Norway\nOslo Norway Athens Greece\n")


def install() -> None:
    """Give the simulator what it lacks, in this process."""
    from numba.cuda.simulator.cudadrv import devices

    device = devices.FakeCUDADevice
    device.name, device.compute_capability, device.MULTIPROCESSOR_COUNT = "stand-in", (9, 0), 1


def main() -> None:
    del sys.argv[0]
    install()
    sys.path.insert(0, os.getcwd())
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
