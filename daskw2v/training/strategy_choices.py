"""The classes of settings of the strategies that Params can name."""

from dataclasses import dataclass

from daskw2v.config.choice import Choices, TrainingChoice
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.columns.settings import Columns
from daskw2v.training.rotation.settings import Rotation


@dataclass(frozen=True, kw_only=True)
class Auto(TrainingChoice):
    """The strategy is chosen when the text is known (`training.preparation.choice`)."""

    name, axis, is_open = "auto", "strategy", True


STRATEGIES = Choices("strategy", "daskw2v.strategies", Auto, Averaging, Rotation, Columns)
