"""Mutations: single tokens of the package are changed; which of the changes do its tests notice?

A mutation is another operator, comparison, number or truth value, `and` for `or`, `any` for `all`, a `not` that is left
out, or one too many where a function returns a bool. It is made in a copy of the checkout. Tests that are not marked
slow run until one fails, or has no end: the nearest, those elsewhere that import the module, those of its package.

Modules and mutations are drawn by the seed, two of a module, from all packages in turn. Kernels are left out, and what
needs a GPU. `mutations.json` lists mutations that nobody could notice, each with a reason: they are not counted.

    python -m benchmarks.mutations [--seed 1] [--number 58] [--files daskw2v/store/lease.py ...] [--stages 1]
"""

import argparse
import ast
import hashlib
import io
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.records import ROOT
from benchmarks.texts import DATA
from daskw2v.kernels.cache import kernel_sources

OTHERS = {
    "+": "-", "-": "+", "*": "//", "/": "//", "//": "*", "%": "//", "**": "//", "<<": ">>", ">>": "<<", "&": "|",
    "|": "&", "^": "&", "+=": "-=", "-=": "+=", "*=": "//=", "/=": "*=", "//=": "*=", "|=": "&=", "&=": "|=",
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "is": "is not", "in": "not in", "not": "",
    "and": "or", "or": "and", "True": "False", "False": "True", "any": "all", "all": "any", "min": "max", "max": "min",
    "break": "continue", "continue": "break", "return": "return not",
}  # fmt: skip
KNOWN = Path(__file__).with_suffix(".json")
OUTCOMES = ("killed", "survived", "equivalent", "not judged")
PYTEST = (*["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-m"], "not slow")
_NO_TESTS = 5  # pytest's exit code where all tests are slow
_OF_MODULE = 2  # mutations
_FEW = 10  # files that import a module: where more do, they are about something else
_TIMES, _MORE = 4, 30  # tests that take so many times as long as without a mutation, and seconds more, have no end


class Mutation(NamedTuple):
    """A token that is replaced: its file, line from 1 and column from 0, and the whole line."""

    file: str
    line: int
    column: int
    text: str
    old: str
    new: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is known by, wherever the line moves."""
        return self.file, self.text.strip(), f"{self.old} -> {self.new or 'nothing'}"

    def applied(self, source: str) -> str:
        lines = source.split("\n")
        lines[self.line - 1] = self.text[: self.column] + self.new + self.text[self.column + len(self.old) :]
        return "\n".join(lines)


def _other(token: tokenize.TokenInfo) -> str | None:
    if token.type == tokenize.NUMBER:
        value = ast.literal_eval(token.string)
        return str(value + 1 if isinstance(value, int) else 2 * value or 1.0)
    return OTHERS.get(token.string) if token.type in (tokenize.OP, tokenize.NAME) else None


def mutations_of(file: str, source: str) -> Iterator[Mutation]:
    """Yield the mutations of a file's text, but for types, decorators and strings; not all of them can be parsed."""
    lines, silent, answers, nested = source.split("\n"), list[ast.expr](), set[tuple[int, int]](), 0
    for node in ast.walk(ast.parse(source)):
        silent += getattr(node, "decorator_list", ())
        silent += filter(None, (getattr(node, name, None) for name in ("annotation", "returns")))
        if isinstance(returned := getattr(node, "returns", None), ast.Name) and returned.id == "bool":
            answers |= {(one.lineno, one.col_offset) for one in ast.walk(node) if isinstance(one, ast.Return)}
    spans = [((e.lineno, e.col_offset), (e.end_lineno, e.end_col_offset)) for e in silent]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line, column = token.start
        kind = tokenize.tok_name[token.type]  # before Python 3.12 a formatted string is one token
        nested += (kind == "FSTRING_START") - (kind == "FSTRING_END")
        at = line, len(lines[line - 1][:column].encode())  # as ast counts
        left_out = nested or (token.string == "return" and at not in answers) or any(a <= at < b for a, b in spans)
        if not left_out and (new := _other(token)) is not None:
            yield Mutation(file, line, column, lines[line - 1], token.string, new)


def _parses(source: str) -> bool:
    with suppress(SyntaxError):
        return bool(ast.parse(source))
    return False


def modules() -> list[str]:
    """Return what is mutated, as paths from the repository's root."""
    paths = sorted({*(ROOT / "daskw2v").rglob("*.py")} - {*kernel_sources()})
    return [name for path in paths if not re.search("cuda|gpu", name := path.relative_to(ROOT).as_posix())]


def choose(seed: int, number: int, files: Sequence[str]) -> list[Mutation]:
    """Draw mutations; what is changed elsewhere in the code changes few of them."""

    def draw(*what: object) -> str:
        return hashlib.blake2b(repr((seed, *what)).encode()).hexdigest()

    turns, of_package = list[tuple[int, list[Mutation]]](), Counter[tuple[str, ...]]()
    each = max(_OF_MODULE, -(-number // len(files)))
    for file in sorted(files, key=draw):
        source = (ROOT / file).read_text()
        drawn = sorted(mutations_of(file, source), key=lambda one: draw(*one.key, one.column))
        if some := [*itertools.islice((one for one in drawn if _parses(one.applied(source))), each)]:
            package = Path(file).parts[:-1][1:2]
            turns.append((of_package[package], some))
            of_package[package] += 1
    turns.sort(key=lambda turn: turn[0])
    return [one for _, some in turns for one in some][:number]


def known() -> dict[tuple[str, str, str], str]:
    """Return the reasons of mutations that change nothing, by their keys."""
    return {(one["file"], one["line"], one["change"]): one["reason"] for one in json.loads(KNOWN.read_text())}


@cache
def _imported(test: Path) -> frozenset[str]:
    """Return what a file imports from modules: these, and the names, with dots."""
    nodes = [node for node in ast.walk(ast.parse(test.read_bytes())) if isinstance(node, ast.ImportFrom)]
    return frozenset(f"{node.module}{end}" for node in nodes for end in ("", *(f".{one.name}" for one in node.names)))


def stages(file: str) -> list[tuple[str, ...]]:
    """Return the tests of a module: the nearest, those elsewhere, those of its package."""
    module, tests = Path(file), sorted((ROOT / "tests").rglob("test_*.py"))
    dotted, folder = ".".join(module.with_suffix("").parts).removesuffix(".__init__"), f"tests/{module.parts[1]}"
    every = {path.relative_to(ROOT).as_posix(): dotted in _imported(path) for path in tests}
    near = [name for name, imports in every.items() if imports and name.startswith(f"{folder}/")]
    far = [name for name, imports in every.items() if imports and name not in near]
    named = [name for name in every if name.startswith(folder) and name.endswith(f"/test_{module.stem}.py")]
    nearest = dict.fromkeys((*named, *(near if len(near) <= _FEW else ())))
    whole = [folder] if (ROOT / folder).is_dir() else far[:_FEW]  # of a module in no package: some that import it
    groups = nearest, far if len(far) <= _FEW else (), whole
    return [*dict.fromkeys(tuple(group) for group in groups if group)]


class Ended(NamedTuple):
    """How tests ended: the exit code, None where they had no end; what failed first; seconds."""

    code: int | None
    failed: str
    seconds: float


class Checkout:
    """A copy of this checkout, in which mutations are made and tests run."""

    def __init__(self, session: Session) -> None:
        self._session, self._root, self._number = session, session.fresh("checkout"), itertools.count(1)
        self._passed = dict[tuple[str, ...], float | None]()
        files = subprocess.check_output(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, text=True)
        for name in filter(None, files.split("\0")):
            if (ROOT / name).is_file():  # not deleted
                (self._root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self._root / name)

    def run(self, tests: Sequence[str], seconds: float | None = None) -> Ended:
        """Run tests until one fails, or for so many seconds, and end all processes that they started."""
        folder, began = self._session.fresh("tests"), time.perf_counter()
        own = {"PYTHONPATH": str(self._root), "DASKW2V_DATA": str(DATA.resolve()), "TMPDIR": str(folder)}
        with (folder / "out").open("w+") as out:
            process = subprocess.Popen(
                [sys.executable, *PYTEST, *tests], cwd=self._root, env={**os.environ, **own},
                stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
            try:
                code, failed = process.wait(seconds), ""
            except subprocess.TimeoutExpired:
                code, failed = None, f"no end within {seconds:.0f} s"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            if code:
                out.seek(0)
                found = re.search(r"^(?:FAILED|ERROR) (\S+)", said := out.read(), re.MULTILINE)
                failed = found[1] if found else " ".join(said.split()[-20:])
        shutil.rmtree(folder, ignore_errors=True)
        return Ended(code, failed, time.perf_counter() - began)

    def passes(self, tests: tuple[str, ...]) -> float | None:
        """Return the seconds that tests take without a mutation; None if there are none that pass."""
        if tests not in self._passed:
            ended = self.run(tests)
            self._passed[tests] = None if ended.code else ended.seconds
            if ended.code not in (0, _NO_TESTS):
                self._session.note(f"{' '.join(tests)}: left out, as without a mutation fails {ended.failed}")
        return self._passed[tests]

    def judge(self, mutation: Mutation, tests: Sequence[tuple[str, ...]]) -> tuple[str, str, float]:
        """Return what became of a mutation, who noticed it, or did not, and the seconds that it took."""
        path, unaware, took = self._root / mutation.file, list[str](), 0.0
        for stage in tests:
            if (usual := self.passes(stage)) is None:
                continue
            path.write_text(mutation.applied((ROOT / mutation.file).read_text()))
            os.utime(path, 2 * (next(self._number),))  # bytecode is known by its source's size and second
            ended = self.run(stage, _TIMES * usual + _MORE)
            shutil.copy2(ROOT / mutation.file, path)
            took += ended.seconds
            if ended.code != 0:
                return OUTCOMES[0], ended.failed, took
            unaware += stage
        return (OUTCOMES[1], " ".join(unaware), took) if unaware else (OUTCOMES[3], "no tests that pass", took)


def measure(session: Session) -> None:
    options, reasons, outcomes = session.options, known(), Counter[str]()
    checkout, session.text = Checkout(session), "the package's own code"
    table = session.table("Mutations", ("line", "mutation", "outcome", "by", "seconds"), ".1f")
    for mutation in choose(options.seed, options.number, options.files or modules()):
        if reason := reasons.get(mutation.key):
            outcome, by, took = OUTCOMES[2], reason, 0.0
        else:
            outcome, by, took = checkout.judge(mutation, stages(mutation.file)[: options.stages])
        outcomes[outcome] += 1
        table.row(f"{mutation.file}:{mutation.line}:{mutation.column + 1}", *mutation.key[1:], outcome, by, took)
    meaningful = outcomes["killed"] + outcomes["survived"]
    score = session.table("Score", (*OUTCOMES, "killed of those that mean anything"), ".0%")
    score.row("all", *(outcomes[name] for name in OUTCOMES), outcomes["killed"] / max(1, meaningful))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=58, help="mutations")
    parser.add_argument("--files", nargs="+", metavar="FILE", help="such as daskw2v/store/lease.py; all by default")
    parser.add_argument("--stages", type=int, default=3, help="of tests that are tried; 1: those nearest to the module")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v", "tests"),
    Smoke(
        {"number": 2, "files": ["daskw2v/safe_text.py"], "stages": 1}, ("Mutations", "Score", "daskw2v/safe_text.py")
    ),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
