"""The TOML file of commands and pipelines: settings, and tables of settings of events and graphs."""

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
_MAX_SIZE = 1 << 20  # bytes

# Tables of inputs that text is derived from
EVENTS = "events"
GRAPH, WALKS = "graph", "walks"
TABLES = (EVENTS, GRAPH, WALKS)


def read_config(path: Path | None, more: Sequence[str] = ()) -> dict[str, Any]:
    """Return the values in a TOML file by name, unchecked; empty if `path` is None.

    Valid names are the settings of `Params` and `Resources`, and `more`: further names that a command reads.

    Raises
    ------
    ParameterError
        If the file is not TOML, has more than 1 MiB, or names a setting that does not exist.
    """
    if path is None:
        return {}
    with path.open("rb") as file:
        content = file.read(_MAX_SIZE + 1)
    if len(content) > _MAX_SIZE:
        raise ParameterError(f"{path} has more than {_MAX_SIZE:,} bytes.", "Give a file of settings.")
    try:
        values = tomllib.loads(content.decode())
    except RecursionError:
        raise ParameterError(f"{path} is nested too deeply.", "Write lines such as vector_size = 200.") from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise ParameterError(f"{path} is not TOML: {error}.", "Write lines such as vector_size = 200.") from None
    known = [*more, *Params.names(), *Resources.names()]
    if unknown := sorted(values.keys() - set(known)):
        problem = f"{path} sets {', '.join(unknown)}, which is not a parameter."
        raise ParameterError(problem, " ".join([f"The names are: {', '.join(known)}.", *_suggest(unknown)]))
    return values


def make_inputs(names: Inputs, config: Mapping[str, Any], path: Path | None) -> TextInputs:
    """Return the inputs with these names of files: events or a graph, if the TOML file has their table; else text.

    Parameters
    ----------
    names
        Names of files. They are returned unchanged if the files are text.
    config, path
        The values of the TOML file, and its path, for errors.

    Raises
    ------
    ParameterError
        If the file has tables of both, or of walks without a graph; or if a table is wrong.
    """
    if WALKS in config and GRAPH not in config:
        problem = f"{path} has a table [{WALKS}], but no table [{GRAPH}]."
        raise ParameterError(problem, f"Write [{GRAPH}] if inputs are edges.")
    if EVENTS in config and GRAPH in config:
        raise ParameterError(f"{path} has tables [{EVENTS}] and [{GRAPH}].", "Leave one of them out.")
    if EVENTS in config:
        return Events(names, read_table(Sessions, config, EVENTS, path))
    if GRAPH in config:
        return Graph(names, read_table(EdgeList, config, GRAPH, path), read_table(Walks, config, WALKS, path))
    return names


def get_required(config: Mapping[str, Any], name: str, option: str | None = None) -> Any:
    """Return the value of this name in the TOML file; `option` is the argument or option that sets it, too.

    Raises
    ------
    ParameterError
        If the file does not have the value.
    """
    if name not in config:
        alternative = "" if option is None else f"{option}, or "
        raise ParameterError(f"There is no {name}.", f"Give {alternative}{name} in the file of --config.")
    return config[name]


def read_table(
    cls: type[T], config: Mapping[str, Any], name: str, path: Path | None, options: Mapping[str, Any] | None = None
) -> T:
    """Return settings of a class from the TOML file's table of this name, or with defaults without the table.

    Values of `options` take precedence. `path` is the file's, for errors.

    Raises
    ------
    ParameterError
        If the file has a value instead of the table, a field does not exist, or a value is out of range.
    """
    values = config.get(name, {})
    if not isinstance(values, dict):
        raise ParameterError(f"{path} sets {name}, which is a table.", f"Write [{name}] and its values below it.")
    if unknown := sorted(values.keys() - set(cls.names())):
        problem = f"[{name}] of {path} sets {', '.join(unknown)}, which is not one of its fields."
        raise ParameterError(problem, f"The names are: {', '.join(cls.names())}.")
    return make_settings(cls, {**values, **(options or {})})


def make_settings(cls: type[T], values: Mapping[str, Any], defaults: Any = None) -> T:
    """Return an object of a class of settings, with its fields from `values`, and other fields from `defaults`.

    Names in `values` that are no fields are ignored. If `defaults` is None, the class's defaults apply. Raises as the
    class does.
    """
    fields = {name: values[name] for name in cls.names() if name in values}
    return cls(**fields) if defaults is None else defaults.replace(**fields)


def _suggest(names: Sequence[str]) -> list[str]:
    """Return a sentence for each unknown name for which `suggest` has a remedy."""
    known = {cls.__name__: cls.names() for cls in (Params, Resources)}
    suggestions = {name: suggest(name, known, lambda _, field: field) for name in names}
    return [f"For {name}: {text}" for name, text in suggestions.items() if text is not None]
