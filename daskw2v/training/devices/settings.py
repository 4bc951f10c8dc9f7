"""Settings of strategies that devices read, too."""

from dataclasses import dataclass

from daskw2v.config.choice import TrainingChoice
from daskw2v.config.settings import integer, setting


@dataclass(frozen=True, kw_only=True)
class Replicated(TrainingChoice):
    """A strategy that trains replicas of the model."""

    axis = "strategy"

    n_replicas: int = setting(1, "replicas of the model that train in parallel", integer(1, 65536), stage="train")
