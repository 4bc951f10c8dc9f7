"""What the kernels of a run read besides the tables, made once in a process."""

from functools import lru_cache
from typing import Any

from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run
from daskw2v.training.start.markets import markets_of


@lru_cache(maxsize=2)
def prepared_of(run: Run) -> Any:
    """Return what the objective prepares. Only a cache: a worker that lacks it makes it again."""
    objective, counts = find_objective(run.params.objective.name), run.vocabulary.read_counts()
    prepared = objective.prepare(run.params, counts)
    if run.markets is None or objective.with_markets is None:
        return prepared
    return objective.with_markets(prepared, counts, markets_of(run))
