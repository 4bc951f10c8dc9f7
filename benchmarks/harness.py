"""What each benchmark is made of: its options, a fresh folder, tables, turns, and the record of a run.

A benchmark is a module, or a package with a `__main__`, whose `BENCHMARK` says what it measures::

    BENCHMARK = Benchmark(__doc__, ("daskw2v/kernels",), Smoke({"parts": 0.1}, ("gensim",)), add_arguments, measure)

    if __name__ == "__main__":
        BENCHMARK.main()

Each has the options --json (rows for programs), --smoke (its smallest form, for `benchmarks.smoke`), --rows (what a run
that is killed has measured is kept) and --record (writes `benchmarks/results/NAME.json`, of which RESULTS.md and
PAPERS.md are made).
"""

import argparse
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self, TextIO, TypeVar

from benchmarks.machine import Machine, this_machine
from benchmarks.records import Record, commit_now, today
from benchmarks.tables import Keep, Spread, Table, keeper, plain

LEFT_OUT = "Left out: "  # begins a line that says what cannot be measured here, and why
Result = TypeVar("Result")


class Smoke(NamedTuple):
    """The smallest form of a benchmark, which still goes through all of its code.

    Parameters
    ----------
    values
        Of its options, by name, where they are not given.
    names
        What its output has to name: of each table, or of each kind of row.
    ways
        Arguments with which it is run, once each, of those that lead through other code; its output names them, too.
    """

    values: Mapping[str, Any]
    names: tuple[str, ...]
    ways: tuple[tuple[str, ...], ...] = ((),)


def alternate(runs: Mapping[str, Callable[[], Result]], times: int) -> dict[str, list[Result]]:
    """Call each run `times` times, one after the other in turn, so that a slow minute hits all of them."""
    results: dict[str, list[Result]] = {name: [] for name in runs}
    for _ in range(times):
        for name, run in runs.items():
            results[name].append(run())
    return results


@dataclass
class Session:
    """A run of a benchmark.

    Parameters
    ----------
    options
        Those of the command line.
    folder
        Empty; it is deleted after the run.
    out
        Where tables are printed.
    keep
        As in Table.

    Attributes
    ----------
    tables
        All tables so far.
    text
        What was trained on, in words, for the record.
    peers
        Settings of what ran beside ours, by its name, for the record: what it did differently.
    problems
        What a promise was broken by: the command then ends with exit code 1.
    notes
        Sentences below the tables, which records keep.
    """

    options: argparse.Namespace
    folder: Path
    out: TextIO
    keep: Keep | None = None
    tables: list[Table] = field(default_factory=list)
    text: str = ""
    peers: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, options: argparse.Namespace, folder: Path) -> Self:
        return cls(options, folder, sys.stderr if options.json else sys.stdout, keeper(options.rows))

    def table(self, title: str, columns: Sequence[str], form: str = ".3f") -> Table:
        """Begin a table."""
        found = Table(title, columns, self.out, form, keep=self.keep)
        self.tables.append(found)
        return found

    def note(self, text: str) -> None:
        """Print a sentence, and keep it."""
        self.notes.append(text)
        print(f"\n{text}", file=self.out, flush=True)

    def wrong(self, problem: str) -> None:
        """Tell what breaks a promise."""
        self.problems.append(problem)
        self.note(f"WRONG: {problem}")

    def fresh(self, name: str) -> Path:
        """Return a new empty folder."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))

    def measure(self, runs: Mapping[str, Callable[[], float]], times: int | None = None) -> dict[str, Spread]:
        """Call all in turn, as often as --times says; return medians and extremes."""
        results = alternate(runs, times or self.options.times)
        return {name: Spread.of(values) for name, values in results.items()}


class Benchmark(NamedTuple):
    """A command that measures.

    Parameters
    ----------
    about
        The module's docstring: the first sentence says what is measured; all of it is the command's help.
    code
        Files and folders of the repository that the figures speak of: a change there makes a record old.
    smoke
        Its smallest form.
    arguments
        Adds its options to a parser.
    measure
        Measures, and prints tables.
    session
        The kind of Session that it takes.
    """

    about: str
    code: tuple[str, ...]
    smoke: Smoke
    arguments: Callable[[argparse.ArgumentParser], None]
    measure: Callable[[Any], None]
    session: type[Session] = Session

    def parse(self, arguments: Sequence[str] | None = None) -> argparse.Namespace:
        """Add the options that every benchmark has, and parse."""
        parser = argparse.ArgumentParser(description=self.about, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.arguments(parser)
        parser.add_argument("--json", action="store_true", help="rows as JSON; the tables then go to stderr")
        parser.add_argument("--rows", type=Path, help="file to which each row is added at once, as a line of JSON")
        parser.add_argument("--record", metavar="NAME", help="write benchmarks/results/NAME.json")
        parser.add_argument(
            "--smoke",
            action="store_true",
            help="see whether all of it runs: least values of what is not given; such figures say nothing",
        )
        given, _ = parser.parse_known_args(arguments)
        if unknown := self.smoke.values.keys() - vars(given).keys():
            raise ValueError(f"--smoke sets what is no option: {', '.join(sorted(unknown))}")
        if given.smoke:
            if given.record:
                parser.error("--smoke measures nothing that is worth a --record")
            parser.set_defaults(**self.smoke.values)
        return parser.parse_args(arguments)

    def main(self, arguments: Sequence[str] | None = None) -> None:
        """Measure in a fresh folder; print the machine, and the rows as JSON if asked to; write the record."""
        options, machine = self.parse(arguments), this_machine()
        commit = commit_now() if options.record else ""  # before what is measured may change
        with tempfile.TemporaryDirectory() as name:
            session = self.session.of(options, Path(name))
            self.measure(session)
        print(f"\n{machine}", file=session.out)
        if options.json:
            rows = [vars(row) for table in session.tables for row in table.rows]
            print(json.dumps(rows, indent=1, default=plain))
        if options.record:
            self.record(session, machine, commit).write(options.record)
        if session.problems:
            sys.exit(1)

    def record(self, session: Session, machine: Machine, commit: str) -> Record:
        """Return what is kept of a run of a commit."""
        module = sys.modules["__main__"].__spec__
        name = module.name if module else ""
        command = shlex.join(["python", "-m", name.removesuffix(".__main__"), *sys.argv[1:]])
        return Record(
            what=self.about.partition("\n")[0],
            command=re.sub(r" --(record|cache|rows)[ =]\S+", "", command),  # paths are of this machine
            commit=commit,
            date=today(),
            machine=machine._asdict(),
            text=session.text,
            seeds=list(getattr(session.options, "seeds", None) or ()),
            threads=_numbers(getattr(session.options, "threads", ())),
            peers=session.peers,
            code=list(self.code),
            notes=session.notes,
            tables=[table.as_dict() for table in session.tables],
        )


def _numbers(value: Any) -> list[int]:
    return list(value) if isinstance(value, list | tuple) else [value]
