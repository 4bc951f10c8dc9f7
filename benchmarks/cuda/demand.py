"""Bytes of a word: those that a kernel asks for, counted from the text, and what Nsight Compute counts (table 4).

Nsight Compute (ncu) runs a process of its own, which trains the text once: `python -m benchmarks.cuda.demand JSON`.
"""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.cuda.bench import Bench, drawn, has_gpu, modes_of
from benchmarks.cuda.launching import Launch
from benchmarks.cuda.speed import over_text
from benchmarks.papers.figures import Figures
from daskw2v.config.params import Params
from daskw2v.objectives.registry import OBJECTIVES, settled
from tests.support.cuda.cases import Windows
from tests.support.cuda.traffic import rows_of

METRICS = {"dram__bytes.sum": "DRAM", "lts__t_bytes.sum": "L2"}
PAPER = Figures("table 4", {"L1": 94.760, "L2": 88.723, "DRAM": 41.851})  # GB an epoch of text8
TEXT8 = 17.005207e6  # words


def counted(lines: Sequence[str]) -> dict[str, float]:
    """Return the metrics of the one kernel that Nsight Compute printed as CSV, in bytes."""
    rows = csv.DictReader(line for line in lines if line.startswith('"'))
    return {row["Metric Name"]: float(row["Metric Value"].replace(",", "")) for row in rows if row["Metric Name"]}


def profiled(program: str, what: dict[str, Any]) -> dict[str, float]:
    """Return what Nsight Compute counts in a process that trains once.

    Raises
    ------
    RuntimeError
        If it fails: not every machine lets it read the GPU's counters.
    """
    command = [
        program, "--csv", "--print-units", "base", "--clock-control", "none", "--launch-count", "1",
        "--metrics", ",".join(METRICS), sys.executable, "-m", "benchmarks.cuda.demand", json.dumps(what),
    ]  # fmt: skip
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    found = counted(answer.stdout.splitlines())
    if answer.returncode or not found.keys() >= METRICS.keys():
        raise RuntimeError(f"ncu failed: {answer.stdout[-2000:]}{answer.stderr[-2000:]}")
    return found


def demand(bench: Bench) -> None:
    """Print bytes of a trained word."""
    program, options = shutil.which("ncu") if has_gpu() else None, bench.options
    lacking = "no ncu" if has_gpu() else "no GPU"
    table = bench.table(
        "Bytes of a trained word, d=128, N=5, sample 0: asked for, counted from the text, and by ncu",
        ("asked for", *(f"ncu: {name}" for name in METRICS.values())), ",.0f",
    )  # fmt: skip
    for corpus, n_words in ((drawn(n, options.tokens), n) for n in options.vocabularies):
        for mode, how in modes_of(5).items():
            for objective in over_text():
                params = settled(Params(objective=objective, vector_size=128, sample=0, **how))
                segment, prepared = corpus.read(params).segment, OBJECTIVES[objective].prepare(params, corpus.counts)
                case = Windows(params, segment, 0, 0, [], prepared, [])
                asked = rows_of(params, segment, prepared, **case.waiting()).bytes_of(params)
                cells: list[Any] = [lacking] * len(METRICS)
                if program:
                    try:
                        found = profiled(
                            program, {"params": params.as_dict(), "words": n_words, "tokens": options.tokens}
                        )
                    except RuntimeError as error:  # it will not do better for others
                        bench.note(str(error))
                        program, lacking = None, "ncu failed"
                        cells = [lacking] * len(METRICS)
                    else:
                        cells = [found[name] / len(segment.tokens) for name in METRICS]
                table.row(f"{objective}, {corpus.name}, {mode}", asked, *cells)
    of_paper = ", ".join(f"{level} {1e9 * value / TEXT8:,.0f}" for level, value in PAPER.values.items())
    bench.note(f"FULL-W2V on a V100, bytes a word of text8 (paper 004, {PAPER.source}): {of_paper}.")


if __name__ == "__main__":
    trained = json.loads(sys.argv[1])
    Launch(Params(**trained["params"]), drawn(trained["words"], trained["tokens"])).seconds()
