"""Nightly retraining: a week of it, what a night costs, and nights that are killed.

    python -m benchmarks.nightly [--tables week cost crashes] [--json]
        week: text comes day by day, raw text too; then garbage, which gates must stop; then none; then a rollback.
            Each night stands beside a training from scratch on the same text:
            [--days 5] [--garbage letters spam shuffled]
        cost: a night where a tenth of the text is new against trainings from scratch: [--seeds 1 2 3]
        crashes: nights that are killed at each stage and at random moments, and called again:
            [--stages encode train] [--moments 6]
        week and cost: [--policy '{"old_share": 0.3}'] [--gates '{"min_stability": 0.3}'] [--share 1] [--threads 2]
        all: [--params '{"epochs": 3}']

Seconds of a night's stages begin where the one before ends: "encode" with all that comes before it, "judge" with
alignment, writing and publication. CPU seconds are those of the one process that all of it runs in. Megabytes read are
those of blocks of text that were encoded in that run. In the week versions are evaluated, by training and by the gates;
in costs they are not. Cosines and stability compare with the version that was served before.
"""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from distributed import Client

from benchmarks.common import ANALOGY, DATA, SIMILARITY, finish, first_lines, wiki_parts
from benchmarks.nightly.cost import cost
from benchmarks.nightly.crashes import STAGES, crashes
from benchmarks.nightly.garbage import GARBAGE
from benchmarks.nightly.nights import Report, Setting, unpacked, warm_up
from benchmarks.nightly.week import BAD_BYTES, week
from benchmarks.options import Smoke, parsed
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.retraining.gates import Gates
from daskw2v.retraining.policy import Policy

TABLES = ("week", "cost", "crashes")
CRASHING = {"tokenizer": "normalize", "workers": 1, "threads": 1, "checkpoint_seconds": 0.0}
FIRST, SECOND = 2_000_000, 500_000  # bytes of days that crash


SMOKE = Smoke(
    {
        "days": 3, "seeds": [1], "moments": 0, "stages": ["train"], "garbage": ["letters"], "share": 0.03,
        "params": {"epochs": 1}, "gates": {"max_drop": None},  # scores of so little text go up and down
    },
    ("A week", "What gates found", "Cost of a night", "over a training from scratch", "Nights that were killed"),
)  # fmt: skip


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--days", type=int, choices=range(2, 6), default=5, help="good ones of the week")
    parser.add_argument("--garbage", nargs="*", choices=GARBAGE, default=list(GARBAGE), help="kinds of bad days")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of the cost")
    parser.add_argument("--policy", type=json.loads, default={}, help="fields of Policy, as JSON")
    parser.add_argument("--params", type=json.loads, default={}, help="fields of Params, as JSON")
    parser.add_argument("--gates", type=json.loads, default={}, help="fields of Gates, as JSON")
    parser.add_argument("--share", type=float, default=1.0, help="of each file of text, and of a day of garbage")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES, help="at which nights are killed")
    parser.add_argument("--moments", type=int, default=6, help="random moments at which nights are killed")
    return parsed(parser, SMOKE)


def shares_of(files: Sequence[Path], folder: Path, share: float) -> list[Path]:
    """Return files of the first share of each; the same ones where that is all."""
    if share >= 1:
        return [*files]
    found = [folder / path.name.removesuffix(".gz") for path in files]
    for path, short in zip(files, found, strict=True):
        short.write_bytes(first_lines(unpacked(path), share))
    return found


def in_one_process(options: argparse.Namespace, folder: Path, report: Report) -> None:
    """Do the tables whose time is taken, on a cluster inside this process."""
    *parts, news = shares_of([*wiki_parts(), DATA / "corpus" / "wikinews-raw.txt.gz"], folder, options.share)
    resources = Resources(
        threads=options.threads, eval_similarity=tuple(map(str, SIMILARITY)), eval_analogy=tuple(map(str, ANALOGY))
    )
    params = Params(**{"tokenizer": "normalize", **options.params})
    with Client(processes=False, n_workers=1, threads_per_worker=options.threads, dashboard_address=":0") as client:
        setting = Setting(params, resources, client, Policy(**options.policy), Gates(**options.gates))
        warm_up(setting, unpacked(parts[0]), folder)
        if "week" in options.tables:
            days = [*[parts[:4], parts[4:6], parts[6:8], parts[8:]][: options.days - 1], [news]]
            week(folder / "week", days, setting, report, options.garbage, int(options.share * BAD_BYTES))
        if "cost" in options.tables:
            cost(folder / "cost", parts[:-1], parts[-1:], setting, options.seeds, report)


def main() -> None:
    options = parse()
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # commands are killed, and folders removed, however it ends
    report = Report(sys.stderr if options.json else sys.stdout)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if {"week", "cost"} & {*options.tables}:
            in_one_process(options, folder, report)
        if "crashes" in options.tables:
            text = unpacked(wiki_parts()[0])
            (folder / "crashes").mkdir()
            crashes(
                folder / "crashes",
                (text[:FIRST], text[FIRST : FIRST + SECOND]),
                {**CRASHING, **options.params},
                report,
                options.stages,
                options.moments,
            )
    for problem in report.problems:
        print(f"\nNot as it should be: {problem}", file=report.out)
    finish([row for table in report.tables for row in table.rows], report.out, as_json=options.json)
    if report.problems:
        sys.exit(1)


if __name__ == "__main__":
    main()
