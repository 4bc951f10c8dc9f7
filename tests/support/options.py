"""Which fields of Params an objective reads."""

from daskw2v.config.choice import is_field_read, known_settings
from daskw2v.config.params import Params
from daskw2v.objectives.base import Objective


def reads_field(objective: Objective, field: str) -> bool:
    """Return whether an objective reads a field of Params."""
    known = known_settings(Params)[field]
    if known.choices and known.owner.axis == "objective":
        return field in objective.settings.names()
    return is_field_read(objective, "objective", known.field)
