"""Bytes of a word that a kernel asks for, counted from the text (paper 004, table 4)."""

from benchmarks.cuda.bench import Bench, drawn, modes_of
from benchmarks.cuda.speed import over_text
from benchmarks.papers.full_w2v import DEMAND
from daskw2v.config.params import Params
from daskw2v.objectives.registry import OBJECTIVES, settle_params
from tests.support.cuda.cases import Windows
from tests.support.cuda.traffic import rows_of

TEXT8 = 17.005207e6  # words


def demand(bench: Bench) -> None:
    """Print bytes of a trained word."""
    table = bench.table("Bytes of a trained word, d=128, N=5, sample 0", ("asked for",), ",.0f")
    for corpus in (drawn(n, bench.options.tokens) for n in bench.options.vocabularies):
        for mode, how in modes_of(5).items():
            for objective in over_text():
                params = settle_params(Params(objective=objective, vector_size=128, sample=0, **how))
                segment, prepared = corpus.read(params).segment, OBJECTIVES[objective].prepare(params, corpus.counts)
                case = Windows(params, segment, 0, 0, [], prepared, [])
                asked = rows_of(params, segment, prepared, **case.waiting()).bytes_of(params)
                table.row(f"{objective}, {corpus.name}, {mode}", asked)
    of_paper = ", ".join(f"{level} {1e9 * value / TEXT8:,.0f}" for level, value in DEMAND.values.items())
    bench.note(f"FULL-W2V on a V100, bytes a word of text8 (paper 004, {DEMAND.source}): {of_paper}.")
