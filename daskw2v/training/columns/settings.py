"""Settings of the strategy `columns`."""

from dataclasses import dataclass

from daskw2v.config.choice import TrainingChoice
from daskw2v.config.settings import FLAG, integer, setting


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

    gather_every: int = setting(
        64,
        "matrix columns to train one table on before switching to the other (1: the paper's update)",
        integer(1),
        stage="train",
    )
    centered: bool = setting(True, "subtract the mean of all rows from the finished vectors", FLAG, stage="train")
