"""What the kernels of a run read besides the tables, made once in a process."""

from functools import lru_cache
from typing import Any

from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run


@lru_cache(maxsize=2)
def prepared_of(run: Run) -> Any:
    """Return the result of the objective's `prepare`. Only a cache: a worker that lacks it makes it again."""
    return find_objective(run.params.objective).prepare(run.params, run.vocabulary.read_counts())
