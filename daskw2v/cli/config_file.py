"""Reads the TOML file of commands and pipelines."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import Settings
from daskw2v.config.suggestions import suggest
from daskw2v.errors import ParameterError

T = TypeVar("T")
_LARGEST = 1 << 20  # bytes


def _names(cls: Any) -> list[str]:
    return [*cls.names()] if issubclass(cls, Settings) else [f.name for f in fields(cls)]


def read_config(path: Path | None, more: Sequence[str] = ()) -> dict[str, Any]:
    """Read fields of `Params` and `Resources` from a TOML file, and the further names `more` that a command knows.

    Raises
    ------
    ParameterError
        If the file is not TOML, or names a field that does not exist.
    """
    if path is None:
        return {}
    with path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ParameterError(f"{path} has more than {_LARGEST:,} bytes.", "Give a file of settings.")
    try:
        values = tomllib.loads(content.decode())
    except RecursionError:
        raise ParameterError(f"{path} is nested too deeply.", "Write lines such as vector_size = 200.") from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise ParameterError(f"{path} is not TOML: {error}.", "Write lines such as vector_size = 200.") from None
    known = [*more, *_names(Params), *_names(Resources)]
    if unknown := sorted(values.keys() - set(known)):
        raise ParameterError(
            f"{path} sets {', '.join(unknown)}, which is not a parameter.",
            " ".join([f"The names are: {', '.join(known)}.", *_meant(unknown)]),
        )
    return values


def _meant(names: Sequence[str]) -> list[str]:
    """Return suggestions for unknown names, as far as there are any."""
    known = {cls.__name__: _names(cls) for cls in (Params, Resources)}
    found = {name: suggest(name, known, lambda _, field: field) for name in names}
    return [f"For {name}: {text}" for name, text in found.items() if text is not None]


def required(config: Mapping[str, Any], name: str, option: str | None = None) -> Any:
    """Return a value of the TOML file that was not given otherwise, such as by an option.

    Raises
    ------
    ParameterError
        If the file does not have it either.
    """
    if name not in config:
        given = "" if option is None else f"{option}, or "
        raise ParameterError(f"There is no {name}.", f"Give {given}{name} in the file of --config.")
    return config[name]


def table(
    cls: type[T],
    config: Mapping[str, Any],
    name: str,
    path: Path | None,
    given: Mapping[str, Any] | None = None,
) -> T:
    """Make a dataclass from a table of the TOML file; without the table, with defaults. Values `given` take precedence.

    Raises
    ------
    ParameterError
        If the name is not of a table, a field does not exist, or a value is out of range.
    """
    values = config.get(name, {})
    if not isinstance(values, dict):
        raise ParameterError(f"{path} sets {name}, which is a table.", f"Write [{name}] and its values below it.")
    if unknown := sorted(values.keys() - set(_names(cls))):
        raise ParameterError(
            f"[{name}] of {path} sets {', '.join(unknown)}, which is not one of its fields.",
            f"The names are: {', '.join(_names(cls))}.",
        )
    return fields_in(cls, {**values, **(given or {})})


def fields_in(cls: type[T], values: Mapping[str, Any], defaults: Any = None) -> T:
    """Make a dataclass from those values that are its fields, else from `defaults`; raises as the dataclass does."""
    given = {name: values[name] for name in _names(cls) if name in values}
    return cls(**given) if defaults is None else defaults.replace(**given)
