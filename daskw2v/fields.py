"""The state of dataclasses: their fields, and nothing of what is computed from these and kept beside them."""

from dataclasses import fields
from typing import Any


def held_fields(value: Any) -> dict[str, Any]:
    """Return the fields that an instance of a dataclass holds, by name."""
    held = vars(value)
    return {one.name: held[one.name] for one in fields(value) if one.name in held}


class PickledFields:
    """A base of dataclasses with cached properties: pickles and copies hold the fields alone."""

    def __getstate__(self) -> dict[str, Any]:
        return held_fields(self)
