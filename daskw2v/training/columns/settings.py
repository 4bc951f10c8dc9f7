"""Settings of the strategy `columns`."""

from dataclasses import dataclass

from daskw2v.config.choice import TrainingChoice
from daskw2v.config.settings import FLAG, integer, setting

_GATHER_EVERY = 64  # as good as 16, and faster, also on one worker; 256 lose analogies (benchmarks.context_matrix)


@dataclass(frozen=True, kw_only=True)
class Columns(TrainingChoice):
    """All words train the same columns of the word-context matrix, in parts.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> params = daskw2v.Params(objective="context_matrix", strategy=daskw2v.Columns(gather_every=1))
    >>> params.strategy.gather_every
    1
    """

    name, axis = "columns", "strategy"

    gather_every: int | None = setting(
        None,
        "matrix columns to train one table on before switching to the other (1: the paper's update); 64 when not given",
        integer(1),
        stage="train",
        first=16,
        first_ended_for=("columns",),
    )
    centered: bool = setting(True, "subtract the mean of all rows from the finished vectors", FLAG, stage="train")

    @property
    def columns_per_step(self) -> int:
        """Number of columns that one table is trained on before the other: `gather_every`, or its default."""
        return self.gather_every or _GATHER_EVERY
