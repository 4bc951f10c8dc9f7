"""Who reads a field: values of the axes that the field names in `honoured_by` say so by `honours`.

What was chosen of it for others is refused, not ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import Field
from typing import Any, Protocol

from daskw2v.config.choice import Choice, known_fields
from daskw2v.config.settings import AxisName, Settings, default_of
from daskw2v.errors import ParameterError


class Reader(Protocol):
    """An objective, strategy, device, format or kind of input."""

    @property
    def honours(self) -> tuple[str, ...]:
        """The fields that it reads and others of its axis do not."""


def honours(reader: Reader, axis: AxisName, f: "Field[Any]") -> bool:
    """Tell whether a value of an axis reads a field."""
    return axis not in f.metadata["honoured_by"] or f.name in reader.honours


def readers_of(f: "Field[Any]", axis: AxisName, registry: Mapping[str, Reader]) -> tuple[str, ...]:
    """Return the names of the values of an axis that read a field."""
    return tuple(name for name, reader in registry.items() if honours(reader, axis, f))


def unread_by(cls: type[Settings], axis: AxisName, reader: Reader) -> tuple[str, ...]:
    """Return the fields that a value of an axis does not read."""
    return tuple(name for name, f in known_fields(cls).items() if not honours(reader, axis, f))


def refuse_unread(
    settings: Settings, axis: AxisName, chosen: str | Sequence[str], registry: Mapping[str, Reader], shown: str = ""
) -> None:
    """Refuse what the chosen value of an axis would not read; of several, what none would.

    Parameters
    ----------
    settings
        Params or Resources.
    axis, chosen
        What was chosen, and of which axis.
    registry
        All values of the axis, the chosen among them.
    shown
        What was chosen, in words; `axis=name` by default.

    Raises
    ------
    ParameterError
        If a field that only others read is not as by default.
    """
    names = [chosen] if isinstance(chosen, str) else chosen
    shown = shown or " or ".join(f"{axis}={name!r}" for name in names)
    for f, value in settings.items():
        readers = readers_of(f, axis, registry)
        if not isinstance(value, Choice) and value != default_of(f) and not {*names} & {*readers}:
            raise ParameterError(
                f"{f.name}={value!r} changes nothing for {shown}; it is for {', '.join(readers)}.",
                f"Leave {f.name} out, or choose another {axis}.",
            )
