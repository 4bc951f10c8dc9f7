"""A stand-in for a GPU, for dry runs: `python -m benchmarks.gpu.stand_in MODULE [ARGUMENT ...]`.

Runs a module with Numba's simulator, and with what the simulator lacks: a device's name, and its multiprocessors, few
enough for it. Compilation for a GPU is left out: tests do that without one. Beside it: programs that behave as NVIDIA's
do, and a text of a few words.
"""

import gzip
import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

TOPICS = (("king", "queen", "man", "woman"), ("Athens", "Greece", "Oslo", "Norway"))
SENTENCES = 80

_SANITIZER = """import subprocess, sys
start = sys.argv.index(sys.executable)
print("========= COMPUTE-SANITIZER")
code = subprocess.run([sys.executable, "-m", "benchmarks.gpu.stand_in", *sys.argv[start + 2:]]).returncode
if "racecheck" in sys.argv:
    print("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)")
else:
    print("========= ERROR SUMMARY: 0 errors")
sys.exit(code)
"""
_PROFILER = """import subprocess, sys
start = sys.argv.index(sys.executable)
print("==PROF== Connected to process 1")
code = subprocess.run([sys.executable, "-m", "benchmarks.gpu.stand_in", *sys.argv[start + 2:]]).returncode
print('"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"')
for name in sys.argv[sys.argv.index("--metrics") + 1].split(","):
    print(f'"0","run","{name}","byte","1,234"')
sys.exit(code)
"""
_QUERY = "print('stand-in, 0, 0 MiB, 0 MHz')"
_PROGRAMS = {"compute-sanitizer": _SANITIZER, "ncu": _PROFILER, "nvidia-smi": _QUERY}


def prepare(folder: Path) -> dict[str, str]:
    """Write programs and text into a folder; return the variables by which they are found."""
    programs, data = folder / "bin", folder / "data"
    programs.mkdir(parents=True, exist_ok=True)
    for name, code in _PROGRAMS.items():
        path = programs / name
        path.write_text(f"#!{sys.executable}\n{code}")
        path.chmod(0o755)
    write_data(data)
    return {"PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}", "DASKW2V_DATA": str(data)}


def write_data(folder: Path) -> None:
    """Write a text of two topics, and sets of two similarities and of two analogies."""
    wiki, sets = folder / "corpus" / "wiki", folder / "eval"
    wiki.mkdir(parents=True, exist_ok=True)
    sets.mkdir(parents=True, exist_ok=True)
    lines = [" ".join(TOPICS[n % 2][(n + k) * (1 + n % 3) % 4] for k in range(8)) for n in range(SENTENCES)]
    (wiki / "0.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    for name in ("ws353.tsv", "simlex999.tsv"):
        (sets / name).write_text("king\tqueen\t9.0\nking\tOslo\t1.0\nman\twoman\t8.0\n")
    (sets / "google_analogy.txt").write_text(": capitals\nAthens Greece Oslo Norway\nOslo Norway Athens Greece\n")


def install() -> None:
    """Give the simulator what it lacks, in this process."""
    from numba.cuda.simulator.cudadrv import devices

    from benchmarks.papers import gpu
    from daskw2v.objectives.cuda import pieces

    device = devices.FakeCUDADevice
    device.name, device.compute_capability, device.MULTIPROCESSOR_COUNT = "stand-in", (9, 0), 1
    # `room` asks the device how many warps there are, as on a GPU
    vars(pieces)["numba"] = SimpleNamespace(config=SimpleNamespace(ENABLE_CUDASIM=False))
    gpu.compiled_for_gpu = lambda kernel, vector_size: ("stand-in", "stand-in")


def main() -> None:
    del sys.argv[0]
    install()
    sys.path.insert(0, os.getcwd())
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
