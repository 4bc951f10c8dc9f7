"""Settings of strategies that cut the vocabulary into partitions."""

from dataclasses import dataclass

from daskw2v.config.choice import TrainingChoice
from daskw2v.config.settings import integer, one_of, setting


@dataclass(frozen=True, kw_only=True)
class Partitioned(TrainingChoice):
    """What sampling and kernels read of such a strategy; it is derived from this."""

    axis = "strategy"

    n_partitions: int = setting(
        8, "partitions of each table; as many tasks train in parallel", integer(1, 65536), stage="train"
    )
    negative_rule: str = setting(
        "tns",
        "where a pair's negatives are drawn: tns, in the partition of its center; sns, all in one drawn partition; "
        "bns, each in a drawn partition of its own",
        one_of("tns", "sns", "bns"),
        stage="train",
        used_by=("sgns",),
    )
