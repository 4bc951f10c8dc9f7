"""The state of dataclasses: their fields, without values that are computed from the fields and cached."""

from dataclasses import fields
from typing import Any


def held_fields(value: Any) -> dict[str, Any]:
    """Return the fields that an instance of a dataclass holds, by name."""
    held = vars(value)
    return {field.name: held[field.name] for field in fields(value) if field.name in held}


class PickledFields:
    """A base of dataclasses with cached properties: pickles and copies hold the fields alone."""

    def __getstate__(self) -> dict[str, Any]:
        return held_fields(self)
