"""Registries of named values: objectives, strategies, devices, merge rules, formats and tokenizers.

A plug-in is a value that an installed distribution adds by an entry point.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from daskw2v.errors import ParameterError

T = TypeVar("T")


class Registry(dict[str, T]):
    """The package's own values by name, as a mapping; `find` also returns plug-ins, which it loads.

    Parameters
    ----------
    field
        The field of Params or Resources that names a value.
    group
        Group of the entry points.
    kind
        Class, or protocol, of what the entry points hold.
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
        """Return whether the value of this name is a plug-in, without loading it."""
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
        """Return the value of this name, or None if there is none in this process, or it is a broken plug-in."""
        try:
            return self.find(name)
        except ParameterError:
            return None

    def including(self, name: str) -> dict[str, T]:
        """Return the package's own values, by name, and the value of this name; raises as `find` does."""
        return {**self, name: self.find(name)}

    def _load(self, name: str) -> T:
        """Load the plug-in of this name and return its value, or raise a ParameterError."""
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
    """Return the entry points of a group in all distributions; cached while no folder of `sys.path` changes."""
    return _select_group(group, tuple((path, _modification_time(path)) for path in sys.path))


@lru_cache(maxsize=8)  # one of each group, all of the same folders
def _select_group(group: str, folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group; cached by `folders`, which are paths and times of modification."""
    return tuple(_all_installed(folders).select(group=group))


@lru_cache(maxsize=1)  # reading entry points takes 5 to 20 ms
def _all_installed(folders: tuple[tuple[str, int], ...]) -> Any:
    """Return all entry points; cached as in `_select_group`."""
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
    """Return the error for a name that no value of a kind has; the message lists `names`."""
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
