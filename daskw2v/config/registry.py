"""Registries of named values: objectives, strategies, devices, merge rules, formats and tokenizers, and plug-ins."""

import os
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from daskw2v.errors import ParameterError

T = TypeVar("T")


class Registry(dict[str, T]):
    """The package's own values by name; `find` also finds values that installed distributions add.

    A distribution adds a value by an entry point, which is loaded when its name is first passed to `find`.

    Parameters
    ----------
    field
        The field of Params or Resources that names a value.
    group
        Group of the entry points.
    kind
        Class of the values.
    values
        The package's own values by name; a plug-in cannot replace them.
    """

    def __init__(self, field: str, group: str, kind: Any, values: Mapping[str, T]) -> None:
        super().__init__(values)
        self.field, self._group, self._kind = field, group, kind

    def names(self) -> tuple[str, ...]:
        """Return the names of all values, the package's own first; no plug-in is loaded."""
        return tuple(dict.fromkeys([*self, *sorted(entry.name for entry in _installed(self._group))]))

    def is_added(self, name: str) -> bool:
        """Return whether an installed distribution adds the value of this name."""
        # Installed distributions are not read for the package's own names
        return name not in self and name in self.names()

    def find(self, name: str) -> T:
        """Return the value of this name, the package's own or a plug-in's.

        Raises
        ------
        ParameterError
            If there is no such value, with a message that lists all names; or if a plug-in is broken, with a message
            that names its distribution.
        """
        return self[name] if name in self else self._load(name)

    def known(self, name: str) -> T | None:
        """Return the value of this name, or None if it does not exist in this process or is broken."""
        try:
            return self.find(name)
        except ParameterError:
            return None

    def including(self, name: str) -> dict[str, T]:
        """Return the package's own values, by name, and the value of this name; raises as `find` does."""
        return {**self, name: self.find(name)}

    def _load(self, name: str) -> T:
        """Return the value that a plug-in adds by this name, or raise a ParameterError."""
        setting, entries = f"{self.field}={name!r}", [entry for entry in _installed(self._group) if entry.name == name]
        if not entries:
            raise unknown(self.field, name, self.names())
        if len(entries) > 1:
            owners = " and ".join(map(_distribution, entries))
            raise ParameterError(f"{setting} is added by {owners}.", "Uninstall all but one of them.")
        (entry,) = entries
        remedy = f"Repair or uninstall {_distribution(entry)}, which adds it by {entry.value!r}."
        try:
            value = entry.load()
        except Exception as error:
            raise ParameterError(f"{setting} cannot be loaded ({type(error).__name__}: {error}).", remedy) from error
        if not isinstance(value, self._kind):
            kind = self._kind.__name__
            raise ParameterError(f"{setting} is of type {type(value).__name__}; it must be a {kind}.", remedy)
        if getattr(value, "name", name) != name:
            raise ParameterError(f"{setting} calls itself {value.name!r}; the names must be equal.", remedy)
        return value  # type: ignore[no-any-return]


def _installed(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group from all installed distributions; cached while folders do not change."""
    return _select_group(group, tuple((path, _modification_time(path)) for path in sys.path))


@lru_cache(maxsize=8)  # one of each group, all of the same folders
def _select_group(group: str, folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group; cached by the folders and their times of modification."""
    return tuple(_all_installed(folders).select(group=group))


@lru_cache(maxsize=1)  # reading entry points takes 5 to 20 ms
def _all_installed(folders: tuple[tuple[str, int], ...]) -> Any:
    """Return all entry points; cached by the folders and their times of modification."""
    return entry_points()  # of a type that Python 3.12 changed


def _modification_time(path: str) -> int:
    """Return the time, in ns, when a folder was last changed; 0 where there is no folder."""
    try:
        return os.stat(path or ".").st_mtime_ns
    except (OSError, ValueError):
        return 0


def _distribution(entry: EntryPoint) -> str:
    """Return name and version of the distribution of an entry point."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown distribution"


def unknown(kind: str, name: str, names: Iterable[str]) -> ParameterError:
    """Return the error for a name that does not exist, of a kind of values; the message lists `names`."""
    return ParameterError(f"{kind}={name!r} does not exist.", f"Choose one of: {', '.join(names)}.")


def find(registry: Mapping[str, T], kind: str, name: str) -> T:
    """Return the entry of this name; `kind` says for errors what the entries are.

    Raises
    ------
    ParameterError
        If there is no such entry; the message lists all names.
    """
    try:
        return registry[name]
    except KeyError:
        raise unknown(kind, name, registry) from None
