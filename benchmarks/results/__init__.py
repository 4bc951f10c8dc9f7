"""Records of figures, a JSON file each (`benchmarks.records`), and the pages that are printed of them.

`python -m benchmarks.results` prints benchmarks/RESULTS.md and, of the five papers, benchmarks/PAPERS.md from all
records, and the figures of other pages, which stand between two marks, from the records that `front` names.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.records import ROOT, Record, age, cell_of, names
from benchmarks.results.front import claims, forecast_scaling, measured_scaling, methods, replica_quality
from benchmarks.tables import line_of
from daskw2v.errors import counted

RESULTS, PAPERS = ROOT / "benchmarks" / "RESULTS.md", ROOT / "benchmarks" / "PAPERS.md"
README, TRAINING = ROOT / "README.md", ROOT / "daskw2v/training/README.md"
OF_PAPERS = ("context_matrix", "papers")  # the beginnings of the names of records that PAPERS.md shows
HEAD = (
    "# {title}\n\n"
    "Printed on {day} at {commit} by `python -m benchmarks.results`, from the last record of each command in "
    "`benchmarks/results`. Speed is in raw in-vocabulary corpus words a second, before subsampling, where a table says "
    "nothing else. A cell is a median, or a mean of scores of several seeds, with the lowest and the highest. Machines "
    "are shared: trust ratios more than times.\n\n"
)
PRINTED = re.compile(r"Printed on (\S+) at (\S+) by")
MARKED = {  # parts of pages, by their marks
    README: {"figures": claims},
    TRAINING: {
        "measured scaling": measured_scaling,
        "forecast scaling": forecast_scaling,
        "replica quality": replica_quality,
    },
}


def pages(day: str, commit: str) -> dict[Path, str]:
    """Return RESULTS.md and PAPERS.md as of a day and a commit."""
    heads = {
        RESULTS: HEAD.format(title="Results", day=day, commit=commit) + "## The figures of README.md" + methods(),
        PAPERS: HEAD.format(title="The papers' tables, beside what was measured here", day=day, commit=commit),
    }
    return {page: head + _sections(page, day, commit) for page, head in heads.items()}


def _sections(page: Path, day: str, commit: str) -> str:
    shown = (name for name in names() if name.startswith(OF_PAPERS) == (page == PAPERS))
    sections = (_section(Record.read(name), day, commit) for name in shown)
    return "".join(f"{line}\n" for section in sections for line in section)


def with_figures(page: Path, text: str) -> str:
    """Return the text of a page of `MARKED` with the figures of the records between its marks."""
    for mark, made in MARKED[page].items():
        begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
        before, _, rest = text.partition(begin)
        text = before + begin + made() + end + rest.partition(end)[2]
    return text


def _section(record: Record, day: str, commit: str) -> Iterator[str]:
    """Yield a record's lines: no more of them are empty than Markdown asks for."""
    yield f"## {record.what}"
    days = counted(age(record.date, day), "day")
    aged = f"{record.date} ({days} old) at {record.commit}{_staleness(record, commit)}"
    yield " ".join((f"`{record.command}`, {aged}. {_conditions(record)}", *record.notes))
    for number, table in enumerate(record.tables):
        if number:
            yield ""
        yield line_of((f"**{table['title']}**", *table["columns"]), "")
        yield line_of(("---", *("---" for _ in table["columns"])), "")
        for name, cells in table["rows"].items():
            yield line_of((name, *map(cell_of, cells)), table["form"])


def _staleness(record: Record, commit: str) -> str:
    n = record.changes(commit)
    if n is None:
        return ", which git does not know"
    return f"; **older than its code, which {counted(n, 'commit')} changed since**" if n else ""


def _conditions(record: Record) -> str:
    """Return where and how a record was measured, in one line."""
    machine, parts = record.machine, [f"{record.text[:1].upper()}{record.text[1:]}"]
    parts.append(f"threads: {', '.join(map(str, record.threads))}" if record.threads else "")
    parts.append(f"seeds: {', '.join(map(str, record.seeds))}" if record.seeds else "")
    parts.append(
        f"{machine['cores']} cores {machine['processor']} ({machine['instructions']})"
        + (f", {machine['gpu']}" if machine.get("gpu") else "")
        + (f", load {machine['load']:.1f}" if machine.get("load") is not None else "")
    )
    parts += [f"{name}: {settings}" for name, settings in record.peers.items()]
    return "; ".join(part for part in parts if part) + "."
