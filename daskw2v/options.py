"""What commands and pipelines read: options of the command line, and values of a TOML file."""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click

from daskw2v.errors import ParameterError
from daskw2v.meant import meaning
from daskw2v.params import Params, Resources

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

_DEBUG = "daskw2v.debug"  # key in the context's `meta`, which a command shares with its group


class Option(click.Option):
    """An option that the help shows under a heading."""

    def __init__(self, *args: Any, heading: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading


class Many(Option):
    """An option that is repeated, or given several values at once: `--similarity a.tsv b.tsv`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "multiple": True})


class Command(click.Command):
    """A command with `--debug`, whose `Many` options take all values up to the next option."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the declared parameters and `--debug`."""
        return [*super().get_params(ctx), _debug]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse `args` after writing out the `Many` options; of a name that is none, say which is meant."""
        names = {name for option in self.params if isinstance(option, Many) for name in option.opts}
        try:
            return super().parse_args(ctx, _repeat(args, names))
        except click.NoSuchOption as error:
            # word2vec.c and fastText write -size: click tells of -s
            given = next((word for word in args if word.startswith(error.option_name)), error.option_name)
            meant = meaning(given.partition("=")[0], {"": [p.name for p in self.params if p.name]}, _as_option)
            if meant is None:
                raise
            raise click.UsageError(f"No such option: {given.partition('=')[0]}. {meant}", ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each under its heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(option, "heading", "") or "Options", []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _as_option(_: str, name: str) -> str:
    return f"--{name.replace('_', '-')}"


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


def storage_option(function: Function, heading: str = "") -> Function:
    """Add the repeated option `--storage-option KEY=VALUE`, collected in `storage_options`."""
    return click.option(
        "--storage-option",
        "storage_options",
        cls=Option,
        heading=heading,
        multiple=True,
        metavar="KEY=VALUE",
        callback=_read_pairs,
        envvar="DASKW2V_STORAGE_OPTION",
        help="Option for fsspec (credentials, endpoints); VALUE is JSON or plain text. Repeatable.",
    )(function)


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
            f"{path} sets {', '.join(unknown)}, which is no parameter.",
            " ".join([f"The names are: {', '.join(known)}.", *_meant(unknown)]),
        )
    return values


def _meant(names: Sequence[str]) -> list[str]:
    """Return what names that are none mean, as far as that is known."""
    known = {cls.__name__: _names(cls) for cls in (Params, Resources)}
    found = {name: meaning(name, known, lambda _, field: field) for name in names}
    return [f"For {name}: {text}" for name, text in found.items() if text is not None]


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
