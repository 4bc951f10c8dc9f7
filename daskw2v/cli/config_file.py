"""The TOML file of commands and pipelines: settings, and tables that say what text is derived from."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from daskw2v.collections.kinds import TextInputs
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import Settings
from daskw2v.config.suggestions import suggest
from daskw2v.corpus.inputs import Inputs
from daskw2v.errors import ParameterError
from daskw2v.sequences.settings import EdgeList, Sessions, Walks
from daskw2v.sequences.sources import Events, Graph

T = TypeVar("T", bound=Settings)
_LARGEST = 1 << 20  # bytes

# Tables of inputs that are no text
EVENTS = "events"
GRAPH, WALKS = "graph", "walks"
TABLES = (EVENTS, GRAPH, WALKS)


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
    known = [*more, *Params.names(), *Resources.names()]
    if unknown := sorted(values.keys() - set(known)):
        raise ParameterError(
            f"{path} sets {', '.join(unknown)}, which is not a parameter.",
            " ".join([f"The names are: {', '.join(known)}.", *_meant(unknown)]),
        )
    return values


def make_inputs(names: Inputs, config: Mapping[str, Any], path: Path | None) -> TextInputs:
    """Return the inputs with these names: events or a graph, if the file has such a table; or else text.

    Raises
    ------
    ParameterError
        If it has tables of both, or walks on no graph; or if a table is wrong.
    """
    if WALKS in config and GRAPH not in config:
        raise ParameterError(
            f"{path} has a table [{WALKS}], but no table [{GRAPH}].", f"Write [{GRAPH}] if inputs are edges."
        )
    if EVENTS in config and GRAPH in config:
        raise ParameterError(f"{path} has tables [{EVENTS}] and [{GRAPH}].", "Leave one of them out.")
    if EVENTS in config:
        return Events(names, read_table(Sessions, config, EVENTS, path))
    if GRAPH in config:
        return Graph(names, read_table(EdgeList, config, GRAPH, path), read_table(Walks, config, WALKS, path))
    return names


def get_required(config: Mapping[str, Any], name: str, option: str | None = None) -> Any:
    """Return a value of the TOML file that was not set otherwise, such as by an option.

    Raises
    ------
    ParameterError
        If the file does not have it either.
    """
    if name not in config:
        given = "" if option is None else f"{option}, or "
        raise ParameterError(f"There is no {name}.", f"Give {given}{name} in the file of --config.")
    return config[name]


def read_table(
    cls: type[T], config: Mapping[str, Any], name: str, path: Path | None, given: Mapping[str, Any] | None = None
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
    if unknown := sorted(values.keys() - set(cls.names())):
        raise ParameterError(
            f"[{name}] of {path} sets {', '.join(unknown)}, which is not one of its fields.",
            f"The names are: {', '.join(cls.names())}.",
        )
    return make_settings(cls, {**values, **(given or {})})


def make_settings(cls: type[T], values: Mapping[str, Any], defaults: Any = None) -> T:
    """Make a dataclass from those values that are its fields, else from `defaults`; raises as the dataclass does."""
    given = {name: values[name] for name in cls.names() if name in values}
    return cls(**given) if defaults is None else defaults.replace(**given)


def _meant(names: Sequence[str]) -> list[str]:
    """Return suggestions for unknown names, as far as there are any."""
    known = {cls.__name__: cls.names() for cls in (Params, Resources)}
    found = {name: suggest(name, known, lambda _, field: field) for name in names}
    return [f"For {name}: {text}" for name, text in found.items() if text is not None]
