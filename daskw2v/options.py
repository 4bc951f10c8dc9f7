"""Options of the command line, made from the fields of `Params` and `Resources`.

A value comes from the command line, else from the environment (`DASKW2V_VECTOR_SIZE`), else from the TOML
file of `--config`, else from the field's default. The dataclasses check it, so that all meet the same rules.
"""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from daskw2v.errors import ParameterError
from daskw2v.params import Params, Resources

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

_DEBUG = "daskw2v.debug"  # key in the context's `meta`, which a command shares with its group
_SPOKEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
_LOCAL = ("workers", "memory_limit", "host")  # what describes a local cluster, and no other


class Many(click.Option):
    """An option that is repeated, or given several values at once: `--similarity a.tsv b.tsv`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "multiple": True})


class Command(click.Command):
    """A command with `--debug`, whose `Many` options take all values up to the next option."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the declared parameters and `--debug`."""
        return [*super().get_params(ctx), _debug]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse `args` after writing out the `Many` options."""
        names = {name for option in self.params if isinstance(option, Many) for name in option.opts}
        return super().parse_args(ctx, _repeat(args, names))


def _repeat(args: list[str], names: set[str]) -> list[str]:
    """Put its option before every value: `--x a b` becomes `--x a --x b`."""
    repeated: list[str] = []
    option = None
    for position, word in enumerate(args):
        if word == "--":
            return repeated + args[position:]
        if word.startswith("-"):
            option = word if word in names else None
        elif option is not None and repeated[-1] != option:
            repeated.append(option)
        repeated.append(word)
    return repeated


def _ask_for_traceback(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_DEBUG] = True


_debug = click.Option(
    ["--debug"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_ask_for_traceback,
    help="Show the traceback of an error.",
)


def wants_traceback(ctx: click.Context) -> bool:
    """Tell whether the command was called with `--debug`."""
    return bool(ctx.meta.get(_DEBUG))


def _read_pair(pair: str) -> tuple[str, Any]:
    key, separator, value = pair.partition("=")
    if not (key and separator):
        raise click.BadParameter("it is not KEY=VALUE.")  # it may be a secret
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _read_pairs(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any]:
    return dict(_read_pair(pair) for pair in pairs)


def storage_option(function: Function) -> Function:
    """Add the repeated option `--storage-option KEY=VALUE`, collected in `storage_options`."""
    return click.option(
        "--storage-option",
        "storage_options",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_read_pairs,
        envvar="DASKW2V_STORAGE_OPTION",
        help="Option for fsspec (credentials, endpoints); VALUE is JSON or plain text. Repeatable.",
    )(function)


def _kinds(hint: Any) -> set[Any]:
    """Return a hint's plain types: int and NoneType for `int | None`, Mapping for `Mapping[str, Any]`."""
    members = (hint,) if get_origin(hint) in (None, Mapping) else get_args(hint)
    return {get_origin(member) or member for member in members}


def _variable(name: str) -> str:
    """Return the environment variable of a field."""
    return f"DASKW2V_{name.upper()}"


def _add(f: "Field[Any]", hint: Any, function: Function) -> Function:
    """Add the option of one field."""
    kinds, name = _kinds(hint), f.name.replace("_", "-")
    help = f.metadata["help"][0].upper() + f.metadata["help"][1:] + "."
    if Mapping in kinds:
        return storage_option(function)
    if get_origin(hint) is tuple:
        return click.option(f"--{name}", f.name, cls=Many, metavar="FILE...", envvar=_variable(f.name), help=help)(
            function
        )
    kind = next((kind for kind in (bool, str, int, float) if kind in kinds), str)
    return click.option(
        f"--{name}/--no-{name}" if kind is bool else f"--{name}",
        f.name,
        type=kind,
        default=None if f.default is MISSING else f.default,
        show_default=f.default is not None,
        envvar=_variable(f.name),
        help=help,
    )(function)


def fields_of(*classes: type) -> Callable[[Function], Function]:
    """Add an option for each field of the dataclasses."""

    def decorate(function: Function) -> Function:
        for cls in reversed(classes):
            hints = get_type_hints(cls)
            for f in reversed(fields(cls)):
                function = _add(f, hints[f.name], function)
        return function

    return decorate


def _names(cls: type) -> list[str]:
    return [f.name for f in fields(cls)]


config_option = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="DASKW2V_CONFIG",
    help="TOML file with values for the options below, such as vector_size = 200.",
)


def read_config(path: Path | None, more: Sequence[str] = ()) -> dict[str, Any]:
    """Read fields of `Params` and `Resources` from a TOML file, and what else a command knows by the names `more`.

    Raises
    ------
    ParameterError
        If the file is not TOML, or names a field that does not exist.
    """
    if path is None:
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # not TOML, or not UTF-8
        raise ParameterError(f"{path} is not TOML: {error}.", "Write lines such as vector_size = 200.") from None
    known = [*more, *_names(Params), *_names(Resources)]
    if unknown := sorted(values.keys() - set(known)):
        raise ParameterError(
            f"{path} sets {', '.join(unknown)}, which is no parameter.", f"The names are: {', '.join(known)}."
        )
    return values


def required(config: Mapping[str, Any], name: str, option: str | None = None) -> Any:
    """Return what a TOML file says by a name, where nothing else says it, such as an option of the command line.

    Raises
    ------
    ParameterError
        If it says nothing either.
    """
    if name not in config:
        given = "" if option is None else f"{option}, or "
        raise ParameterError(f"There is no {name}.", f"Give {given}{name} in the file of --config.")
    return config[name]


def table(cls: type[T], config: Mapping[str, Any], name: str, path: Path | None) -> T:
    """Make a dataclass of the table of that name in a TOML file; of none, the default.

    Raises
    ------
    ParameterError
        If it is no table, names a field that does not exist, or a value is out of range.
    """
    values = config.get(name, {})
    if not isinstance(values, dict):
        raise ParameterError(f"{path} sets {name}, which is a table.", f"Write [{name}], and its lines below it.")
    if unknown := sorted(values.keys() - set(_names(cls))):
        raise ParameterError(
            f"[{name}] of {path} sets {', '.join(unknown)}, which is none of its fields.",
            f"The names are: {', '.join(_names(cls))}.",
        )
    return cls(**values)


def fields_in(cls: type[T], values: Mapping[str, Any]) -> T:
    """Make a dataclass of those values that are its fields; raises as it does."""
    return cls(**{name: values[name] for name in _names(cls) if name in values})


def choose(ctx: click.Context, config: Mapping[str, Any]) -> tuple[Params, Resources]:
    """Make `Params` and `Resources` from the command line, the environment and what the TOML file says.

    Raises
    ------
    ParameterError
        If a value is out of range, the file names an unknown field, or a local cluster is described although
        `scheduler` names one.
    """
    values = {**config}
    values |= {n: v for n, v in ctx.params.items() if ctx.get_parameter_source(n) in _SPOKEN}
    params, resources = fields_in(Params, values), fields_in(Resources, values)
    unread = [n for n in _LOCAL if n in values]
    if resources.scheduler is not None and unread:
        given = " and ".join(f"{n}={values[n]!r}" for n in unread)
        variables = " and ".join(map(_variable, unread))
        raise ParameterError(
            f"{given} would be ignored: the cluster of scheduler={resources.scheduler!r} has its workers already.",
            f"Leave out {' and '.join(unread)} (options, {variables}, the TOML file), or leave out scheduler.",
        )
    return params, resources
