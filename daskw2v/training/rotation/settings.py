"""Settings of the strategy `rotation`."""

from dataclasses import dataclass

from daskw2v.config.params import Params
from daskw2v.config.settings import integer, one_of, setting
from daskw2v.errors import ParameterError
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.sampling.settings import NegativeSampling, Partitioned


@dataclass(frozen=True, kw_only=True)
class Rotation(Partitioned):
    """Both tables are cut into partitions, and no two workers train the same row at the same time.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> params = daskw2v.Params(strategy=daskw2v.Rotation(n_partitions=64, n_groups=16))
    >>> params == daskw2v.Params(n_partitions=64, n_groups=16)
    True
    """

    name = "rotation"

    n_groups: int | None = setting(
        None,
        "groups of partitions that stay together, such as one a worker; when not given, chosen with n_partitions, or "
        "of four partitions or fewer",
        integer(1, 65536),
        stage="train",
    )
    copied_words: int | None = setting(
        None,
        "most frequent words that each partition has a copy of, so that none has more pairs than others; copies are "
        "averaged after each pass; when not given, chosen with n_partitions, or none",
        integer(0, 65536),
        stage="train",
    )
    passes_per_epoch: int | None = setting(
        None,
        "times an epoch that every two partitions meet, each time over another stretch of the text; when not given so "
        "many that all epochs together have 768 by the number of partitions, at least 24, but one a third of them",
        integer(1),
        stage="train",
        first=8,
        first_ended_for=("rotation",),
    )
    sent_dtype: str = setting(
        "float32",
        "type of the values of output partitions between tasks; bfloat16 takes half the bytes, and rounds by chance",
        one_of("float32", "bfloat16"),
        stage="train",
    )

    def check(self, settings: Params) -> None:
        """Raise a ParameterError for groups of unequal size, and for settings that kernels of buckets do not read."""
        super().check(settings)
        rule, objective = self.negative_rule, settings.objective
        if self.partitions % (self.n_groups or 1):
            raise ParameterError(
                f"n_groups={self.n_groups} does not divide n_partitions={self.partitions}.",
                "Give groups of equal size: n_partitions as a multiple of n_groups.",
            )
        if rule != "tns" and not isinstance(objective, NegativeSampling):
            raise ParameterError(
                f"negative_rule={rule!r} changes nothing for objective={objective.name!r}; it is for sgns.",
                "Leave negative_rule out, or choose another objective.",
            )
        if self.copied_words and (rule != "tns" or not isinstance(objective, NegativeSampling)):
            raise ParameterError(
                f"copied_words={self.copied_words} has no kernel for objective={objective.name!r} with "
                f"negative_rule={rule!r}.",
                "Leave copied_words out, or choose objective='sgns' with negative_rule='tns'.",
            )
        exponent = objective.ns_exponent if isinstance(objective, NegativeSampling) else None
        if self.copied_words and exponent is not None and exponent <= 0:
            raise ParameterError(
                f"copied_words={self.copied_words} needs an ns_exponent above 0; it is {exponent}.",
                "Leave copied_words out, or give another ns_exponent.",
            )
        if isinstance(objective, SharedNegatives) and objective.negative_sharing != "shared":
            raise ParameterError(
                f"negative_sharing={objective.negative_sharing!r} has no kernel for strategy='rotation'.",
                "Leave negative_sharing out (pairs of a bucket share negatives by eight), or choose "
                "strategy='averaging'.",
            )
