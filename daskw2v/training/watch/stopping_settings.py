"""Settings of early stopping: the monitored value, and when a run ends."""

from dataclasses import dataclass
from typing import Any

from daskw2v.config.choice import Group
from daskw2v.config.params import Params
from daskw2v.config.settings import TEXT, integer, number, setting
from daskw2v.errors import ParameterError

HELD_OUT_LOSS = "held_out_loss"


@dataclass(frozen=True, kw_only=True)
class EarlyStopping(Group):
    """Ends a run when the monitored value no longer improves.

    Parameters
    ----------
    monitor
        The value that is watched after each epoch: "held_out_loss", or an evaluation set, such as "similarity/ws353".
    patience
        Number of epochs in a row without improvement after which training stops.
    min_delta
        Change of the best value that an improvement must exceed, 0 or more.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> from daskw2v import EarlyStopping, Params
    >>> params = Params(early_stopping=EarlyStopping("held_out_loss", patience=3), held_out=0.01)
    >>> params == Params(monitor="held_out_loss", patience=3, held_out=0.01)
    True
    """

    axis = "early_stopping"

    monitor: str | None = setting(
        None,
        "what early stopping watches at the end of each epoch: held_out_loss, or an evaluation set, such as "
        "similarity/ws353; all epochs are trained when not given",
        TEXT,
        stage="train",
        key=True,
    )
    patience: int = setting(
        2,
        "epochs in a row in which what is monitored may fail to get better before training stops",
        integer(1),
        stage="train",
    )
    min_delta: float = setting(
        0.0, "a change of what is monitored has to be larger than this to count as better", number(0), stage="train"
    )

    def check(self, settings: Any) -> None:
        """Raise a ParameterError if `monitor` is the held-out loss, and the Params `settings` hold out no text."""
        if self.monitor == HELD_OUT_LOSS and not settings.held_out:
            raise ParameterError(
                f"monitor={HELD_OUT_LOSS!r} is not measured with held_out=0.",
                "Give held_out, the share of the text to hold out, such as 0.01.",
            )


CLASSES = (EarlyStopping,)


def get_monitor(params: Params) -> str | None:
    """Return the name of the value that early stopping monitors; None without early stopping."""
    settings = EarlyStopping.find(params)
    return None if settings is None else settings.monitor
