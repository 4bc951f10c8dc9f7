"""Settings of the strategy `averaging`."""

from dataclasses import dataclass

from daskw2v.config.settings import TEXT, integer, setting
from daskw2v.training.devices.settings import Replicated


@dataclass(frozen=True, kw_only=True)
class Averaging(Replicated):
    """Replicas of the model train apart, and are merged several times an epoch; with one, nothing is merged.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> params = daskw2v.Params(strategy=daskw2v.Averaging(n_replicas=4, merge="sequential"))
    >>> params == daskw2v.Params(strategy="averaging", n_replicas=4, merge="sequential")
    True
    """

    name = "averaging"

    rounds_per_epoch: int | None = setting(
        None,
        "rounds an epoch, which end with a merge of all rows; when not given, one of one replica, or more of "
        "long text, and of several as many as merges take",
        integer(1),
        stage="train",
    )
    merges_per_round: int | None = setting(
        None,
        "merges of the rows of the most frequent words a round; when not given at most 16, and 16 times n_replicas an "
        "epoch, but at most 64, or 128 of a single epoch, or 256 of long text with cbow_ns; 1 merges all rows together",
        integer(1),
        stage="train",
    )
    frequent_rows: int = setting(
        16384,
        "rows of each table, of the most frequent words, that are merged merges_per_round times a round; four times as "
        "many are merged a fourth as often, and so on",
        integer(1),
        stage="train",
    )
    merge: str | None = setting(
        None,
        "rule that merges replicas into one model; sequential when not given",
        TEXT,
        stage="train",
        first="momentum",
        first_ended_for=("n_replicas",),
    )
