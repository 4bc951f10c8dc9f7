"""The state of dataclasses: the values of their fields, without cached values that are computed from them."""

from dataclasses import fields
from typing import Any


def held_fields(value: Any) -> dict[str, Any]:
    """Return the values of an instance's dataclass fields, by name, without cached properties."""
    held = vars(value)
    return {field.name: held[field.name] for field in fields(value) if field.name in held}


class PickledFields:
    """A base class of dataclasses with cached properties, whose pickles and copies have the fields alone."""

    def __getstate__(self) -> dict[str, Any]:
        return held_fields(self)
