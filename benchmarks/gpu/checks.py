"""What is there, and whether it is right: packages and programs, tests marked gpu, and what compute-sanitizer says.

    python -m benchmarks.gpu.checks machine|tests|memcheck|racecheck|synccheck [--rows FILE] [--kernels sgns ...]

Ends with an error where a test fails, or a kernel does what it must not, or compute-sanitizer is there and does not
work. Where it is not there, a row says so.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from benchmarks.common import DATA, machine
from benchmarks.tables import Table, keeper
from daskw2v.errors import Daskw2vError
from daskw2v.kernels.cuda import check_gpu, load
from tests.support.cuda.compiling import KERNELS

ROOT = Path(__file__).parents[2]
TOOLS = ("memcheck", "racecheck", "synccheck")
PROGRAMS = ("nvidia-smi", "compute-sanitizer", "ncu", "nvdisasm")
PACKAGES = {
    "numba_cuda": "all", "cuda.bindings": "all", "pytest": "tests", "hypothesis": "tests", "greenlet": "a dry run",
    "torch": "subwords", "sklearn": "quality", "gensim": "full_w2v, beside it", "fasttext": "full_w2v, beside it",
}  # fmt: skip
_ERRORS = 9  # exit code of compute-sanitizer where it found some
_SECONDS = 90  # of a kernel under compute-sanitizer, its compilation included
_ENDS = "PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS"
_OUTCOME = re.compile(
    rf"^(?:\[gw\d+\] \[ *\d+%\] (?P<end>{_ENDS}) )?(?P<name>tests/\S+::.*?)(?: (?P<alone>{_ENDS})\b.*)?$"
)
_AT_ONCE = 4  # processes of tests: most of their time compiles kernels
_FOUND = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)")


def about_machine(table: Table) -> bool:
    """Print what is there; tell whether there is a GPU."""
    table.row("machine", machine())
    driver = ""
    for program in PROGRAMS:
        path = shutil.which(program)
        table.row(program, path or "not there")
        if path and program == "nvidia-smi":
            query = [path, "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader"]
            driver = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    table.row("nvidia-smi says", driver or "nothing")
    for module, use in PACKAGES.items():
        table.row(f"{module} (for {use})", _version(module))
    parts = len(list((DATA / "corpus" / "wiki").glob("*.txt.gz")))
    table.row("text", f"{parts} parts of Wikipedia, {'some' if (DATA / 'eval').is_dir() else 'no'} evaluation sets")
    try:
        check_gpu()
    except Daskw2vError as error:
        table.row("GPU", f"none: {error}")
        return False
    gpu = load("numba.cuda").get_current_device()
    capability = ".".join(map(str, gpu.compute_capability))
    table.row("GPU", f"{gpu.name}, compute capability {capability}, {gpu.MULTIPROCESSOR_COUNT} multiprocessors")
    return True


def _version(module: str) -> str:
    try:
        there = find_spec(module)
    except ModuleNotFoundError:
        there = None
    if there is None:
        return "not installed"
    names = metadata.packages_distributions().get(module.partition(".")[0], [])
    return ", ".join(f"{name} {metadata.version(name)}" for name in sorted(set(names))) or "there"


def files_of_tests() -> list[str]:
    """Return the files that hold tests marked gpu: no others are imported, which may need what is not there."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in files if "mark.gpu" in path.read_text()]


def tests(table: Table) -> bool:
    """Run the tests marked gpu, each with a row; tell whether none failed."""
    at_once = ["-n", str(_AT_ONCE)] if find_spec("xdist") and (os.cpu_count() or 1) >= 2 * _AT_ONCE else []
    # Where it is installed, pytest-benchmark warns of xdist, and a warning is an error
    without = [word for plugin in ("cacheprovider", "benchmark") for word in ("-p", f"no:{plugin}")]
    command = [
        sys.executable, "-m", "pytest", "-m", "gpu", "-v", "--durations=0", *without, *at_once, *files_of_tests(),
    ]  # fmt: skip
    outcomes = set()
    for line in _lines(command):
        name, outcome = outcome_of(line)
        if outcome:
            table.row(name, outcome)
            outcomes.add(outcome)
    return bool(outcomes) and not outcomes & {"failed", "error"}


def outcome_of(line: str) -> tuple[str, str]:
    """Return the test that a line of pytest -v tells the end of, by itself or with others, and how; "" for others."""
    found = _OUTCOME.match(line.rstrip())
    outcome = (found["end"] or found["alone"] or "").lower() if found else ""
    return (found["name"], outcome) if found and outcome else ("", "")


def _lines(command: list[str]) -> Iterator[str]:
    """Run a command; print what it says, and yield its lines."""
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=1
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            yield line


def sanitized(tool: str, table: Table, kernels: list[str], *, tiny: bool) -> bool:
    """Train each kernel a little under compute-sanitizer; tell whether it found nothing, where it is there."""
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.access(program, os.X_OK):
        table.row("all kernels", "no compute-sanitizer")
        return True
    good = True
    for name in kernels:
        # The driver refuses some calls by which Numba asks what it can do: no error of ours
        command = [
            program, "--tool", tool, "--error-exitcode", str(_ERRORS),
            *(["--report-api-errors", "no"] if tool == "memcheck" else []),
            sys.executable, "-m", "benchmarks.gpu.small", name, *(["--tiny"] if tiny else []),
        ]  # fmt: skip
        try:
            answer = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            table.row(name, f"longer than {_SECONDS} seconds")
            good = False
            continue
        if answer.returncode:
            print(answer.stdout[-4000:], answer.stderr[-4000:], flush=True)
        cell = found_by(answer.returncode, answer.stdout + answer.stderr)
        table.row(name, cell)
        good = good and cell == 0
    return good


def found_by(code: int, text: str) -> int | str:
    """Return how many errors compute-sanitizer found, or that it, or what it watched, failed otherwise."""
    found = _FOUND.search(text)
    if found is None or code not in (0, _ERRORS) or (code == _ERRORS and found[1] == "0"):
        return f"failed with exit code {code}"
    return int(found[1])


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("machine", "tests", *TOOLS))
    parser.add_argument("--rows", type=Path, help="file to which each row is added at once, as a line of JSON")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS), help="under compute-sanitizer")
    parser.add_argument("--tiny", action="store_true", help="as little text as there can be: for Numba's simulator")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse()
    columns = {"machine": ("what is there",), "tests": ("outcome",)}.get(options.what, (f"{options.what}: found",))
    table = Table("gpu", options.what, columns, sys.stdout, keep=keeper(options.rows))
    if options.what == "machine":
        good = about_machine(table)
    elif options.what == "tests":
        good = tests(table)
    else:
        good = sanitized(options.what, table, options.kernels, tiny=options.tiny)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
