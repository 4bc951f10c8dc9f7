"""What is there, and whether it is right: packages and programs, tests marked gpu, and what compute-sanitizer says.

    python -m benchmarks.gpu.checks machine|tests|memcheck|racecheck|synccheck [--only EXPRESSION] [--ways rotation ...]

Ends with an error where a test fails, or a training does what it must not, or compute-sanitizer is not there.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from benchmarks.gpu.trainings import WAYS
from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.machine import this_machine
from benchmarks.records import ROOT
from benchmarks.texts import DATA
from daskw2v.errors import Daskw2vError
from daskw2v.kernels.cuda import load

TOOLS = ("memcheck", "racecheck", "synccheck")
PROGRAMS = ("nvidia-smi", "compute-sanitizer")
PACKAGES = ("numba_cuda", "pytest", "hypothesis", "xdist", "torch", "sklearn", "gensim", "fasttext")  # of some pieces
_ERRORS = 9  # exit code of compute-sanitizer where it found some
_SECONDS = 120  # of a training under compute-sanitizer, its compilation included
_ENDS = "PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS"
_OUTCOME = re.compile(
    rf"^(?:\[gw\d+\] \[ *\d+%\] (?P<end>{_ENDS}) )?(?P<name>tests/\S+::.*?)(?: (?P<alone>{_ENDS})\b.*)?$"
)
_AT_ONCE = 4  # processes of tests: most of their time compiles kernels
_FOUND = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)")


def about_machine(session: Session) -> bool:
    """Print what is there; tell whether there is a GPU."""
    table, parts = session.table("Machine", ("what is there",)), len(list((DATA / "corpus").glob("wiki*/*.txt.gz")))
    table.row("machine", str(this_machine()))
    for program in PROGRAMS:
        table.row(program, shutil.which(program) or "not there")
    if asked := shutil.which("nvidia-smi"):
        query = [asked, "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader"]
        told = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
        table.row("nvidia-smi says", told or "nothing")
    table.row("not installed", ", ".join(name for name in PACKAGES if find_spec(name) is None) or "nothing")
    table.row("text", f"{parts} parts of Wikipedia, {'some' if (DATA / 'eval').is_dir() else 'no'} evaluation sets")
    try:
        gpu = load("numba.cuda").get_current_device()
    except Daskw2vError as error:
        table.row("GPU", f"none: {error}")
        return False
    capability = ".".join(map(str, gpu.compute_capability))
    table.row("GPU", f"{gpu.name}, compute capability {capability}, {gpu.MULTIPROCESSOR_COUNT} multiprocessors")
    return True


def files_of_tests() -> list[str]:
    """Return the files that hold tests marked gpu: no others are imported, which may need what is not there."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in files if "mark.gpu" in path.read_text()]


def tests(session: Session) -> bool:
    """Run the tests marked gpu, each with a row; tell whether none failed."""
    table = session.table("Tests marked gpu", ("outcome",))
    at_once = ["-n", str(_AT_ONCE)] if find_spec("xdist") and (os.cpu_count() or 1) >= 2 * _AT_ONCE else []
    # Where it is installed, pytest-benchmark warns of xdist, and a warning is an error
    without = [word for plugin in ("cacheprovider", "benchmark") for word in ("-p", f"no:{plugin}")]
    command = [
        sys.executable, "-m", "pytest", "-m", "gpu", "-k", session.options.only, "-v", "--durations=0", *without,
        *at_once, *files_of_tests(),
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


def sanitized(session: Session) -> bool:
    """Train a little in each way under compute-sanitizer; tell whether it is there and found nothing."""
    options, tool, good = session.options, session.options.what, True
    table = session.table(f"compute-sanitizer, {tool}", ("found",))
    program = shutil.which("compute-sanitizer", path=f"{os.environ['PATH']}{os.pathsep}/usr/local/cuda/bin")
    if program is None:
        table.row("all ways", "no compute-sanitizer")
        return False
    # The driver refuses some calls by which Numba asks what it can do: no error of ours
    checking = [program, "--tool", tool, "--error-exitcode", str(_ERRORS)]
    checking += ["--report-api-errors", "no"] if tool == "memcheck" else []
    how = ["--parts", str(options.parts), "--size", str(options.size), "--epochs", "1", "--times", "0"]
    for way in options.ways:
        command = [*checking, sys.executable, "-m", "benchmarks.gpu.trainings", *how, "--ways", way]
        try:
            answer = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            found: int | str = f"longer than {_SECONDS} seconds"
        else:
            found = found_by(answer.returncode, answer.stdout + answer.stderr)
            if answer.returncode:
                print(answer.stdout[-4000:], answer.stderr[-4000:], flush=True)
        table.row(way, found)
        good = good and found == 0
    return good


def found_by(code: int, text: str) -> int | str:
    """Return how many errors compute-sanitizer found, or that it, or what it watched, failed otherwise."""
    found = _FOUND.search(text)
    if found is None or code not in (0, _ERRORS) or (code == _ERRORS and found[1] == "0"):
        return f"failed with exit code {code}"
    return int(found[1])


def measure(session: Session) -> None:
    if not {"machine": about_machine, "tests": tests}.get(session.options.what, sanitized)(session):
        sys.exit(1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("machine", "tests", *TOOLS))
    parser.add_argument("--only", default="", metavar="EXPRESSION", help="tests: as pytest -k")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="under compute-sanitizer")
    parser.add_argument("--parts", type=float, default=0.1, help="of 10 MB, under compute-sanitizer")
    parser.add_argument("--size", type=int, default=128, help="of vectors, under compute-sanitizer")


BENCHMARK = Benchmark(__doc__, ("daskw2v/kernels/cuda", "tests"), Smoke({}, ()), add_arguments, measure)

if __name__ == "__main__":
    BENCHMARK.main()
