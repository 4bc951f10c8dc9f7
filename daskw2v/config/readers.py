"""Which objectives, strategies, devices, formats and kinds of input read a field.

What was chosen of it for others is refused, not ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import Field
from typing import Any, Protocol

from daskw2v.config.choice import Choice, known_fields
from daskw2v.config.settings import Settings, default_of
from daskw2v.errors import ParameterError


class Reader(Protocol):
    """An objective, strategy, device, format or kind of input."""

    @property
    def also_reads(self) -> tuple[str, ...]:
        """Fields that it reads though their `used_by` does not name it: a plug-in has no other way."""


def readers_of(f: "Field[Any]", registry: Mapping[str, Reader]) -> tuple[str, ...]:
    """Return the names in a registry that read a field: all of them, unless its `used_by` names some."""
    used_by = f.metadata["used_by"]
    if not any(name in used_by for name in registry):
        return tuple(registry)
    return tuple(name for name, reader in registry.items() if name in used_by or f.name in reader.also_reads)


def unread_by(cls: type[Settings], name: str, registry: Mapping[str, Reader]) -> tuple[str, ...]:
    """Return the fields that the entry of a registry does not read, as only others do."""
    return tuple(n for n, f in known_fields(cls).items() if name not in readers_of(f, registry))


def refuse_unread(
    settings: Settings, kind: str, chosen: str | Sequence[str], registry: Mapping[str, Reader], shown: str = ""
) -> None:
    """Refuse what the chosen entry of a registry would not read; of several, what none would.

    Parameters
    ----------
    settings
        Params or Resources.
    kind, chosen
        What was chosen, and as what.
    registry
        All there are of the kind, the chosen among them.
    shown
        What was chosen, in words; `kind=name` by default.

    Raises
    ------
    ParameterError
        If a field that only others read is not as by default.
    """
    names = [chosen] if isinstance(chosen, str) else chosen
    shown = shown or " or ".join(f"{kind}={name!r}" for name in names)
    for f, value in settings.items():
        readers = readers_of(f, registry)
        if not isinstance(value, Choice) and value != default_of(f) and not {*names} & {*readers}:
            raise ParameterError(
                f"{f.name}={value!r} changes nothing for {shown}; it is for {', '.join(readers)}.",
                f"Leave {f.name} out, or choose another {kind}.",
            )
