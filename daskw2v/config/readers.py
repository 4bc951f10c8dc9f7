"""Which objectives, strategies, devices and formats read a field: what others chose of it is refused, not ignored."""

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any, Protocol

from daskw2v.config.settings import Settings, default_of
from daskw2v.errors import ParameterError


class Reader(Protocol):
    """An objective, strategy, device or format."""

    @property
    def also_reads(self) -> tuple[str, ...]:
        """Fields that it reads though their `used_by` does not name it: a plug-in has no other way."""


def readers_of(f: "Field[Any]", registry: Mapping[str, Reader]) -> tuple[str, ...]:
    """Return the names in a registry that read a field: all of them, unless its `used_by` names some."""
    used_by = f.metadata["used_by"]
    if not any(name in used_by for name in registry):
        return tuple(registry)
    return tuple(name for name, reader in registry.items() if name in used_by or f.name in reader.also_reads)


def refuse_unread(settings: Settings, kind: str, name: str, registry: Mapping[str, Reader]) -> None:
    """Refuse what the chosen entry of a registry would not read.

    Parameters
    ----------
    settings
        Params or Resources.
    kind, name
        What was chosen, and as what.
    registry
        All there are of the kind, the chosen one among them.

    Raises
    ------
    ParameterError
        If a field that only others read is not as by default.
    """
    for f in fields(settings):  # type: ignore[arg-type]
        readers, value = readers_of(f, registry), getattr(settings, f.name)
        if name not in readers and value != default_of(f):
            raise ParameterError(
                f"{f.name}={value!r} changes nothing for {kind}={name!r}; it is for {', '.join(readers)}.",
                f"Leave {f.name} out, or choose another {kind}.",
            )
