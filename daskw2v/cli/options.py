"""Options of the command line, and the command that reads and explains them."""

import json
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from daskw2v.config.suggestions import suggest

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

ALL = "all"  # value of --help-for
_DEBUG = "daskw2v.debug"  # key in the context's `meta`, which a command shares with its group


def decorated(function: Callable[..., Any], *decorators: Decorator) -> Callable[..., Any]:
    """Apply decorators to a function, the last one first, as if they stood above it; return the result."""
    return reduce(lambda inner, decorator: decorator(inner), reversed(decorators), function)


class Option(click.Option):
    """An option that the help shows under a heading; only by its name if `readers` names the values that read it."""

    def __init__(self, *args: Any, heading: str = "", readers: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heading, self.readers = heading, readers


class Many(Option):
    """An option that can be repeated, or followed by several values: `--similarity a.tsv b.tsv`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "multiple": True})


class Command(click.Command):
    """A command with `--debug`, whose `Many` options take all values up to the next option."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the declared parameters and `--debug`."""
        return [*super().get_params(ctx), _debug]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse `args` after expanding the `Many` options; the error for an unknown option suggests another."""
        names = {name for option in self.params if isinstance(option, Many) for name in option.opts}
        try:
            return super().parse_args(ctx, _repeat(args, names))
        except click.NoSuchOption as error:
            # For -size, as in word2vec.c and fastText, click reports -s
            word = next((word for word in args if word.startswith(error.option_name)), error.option_name)
            typed = word.partition("=")[0]
            known = [p.name for p in self.params if p.name and isinstance(p, click.Option)]
            suggestion = suggest(typed, {"": known}, lambda _, name: f"--{name.replace('_', '-')}")
            if suggestion is None:
                raise
            raise click.UsageError(f"No such option: {typed}. {suggestion}", ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help of the options that are always read, and the names of other options by their readers."""
        self._write_options(ctx, formatter, lambda option: not getattr(option, "readers", ()))
        readers: dict[str, list[str]] = {}
        for option in self.get_params(ctx):
            for name in getattr(option, "readers", ()):
                readers.setdefault(name, []).append(option.opts[0])
        if readers:
            with formatter.section("Options that only these read (--help-for NAME explains them)"):
                formatter.write_dl(list(_reader_rows(readers, formatter.width)))

    def help_for(self, ctx: click.Context, name: str, fields: Collection[str]) -> str:
        """Return the help of the options that `name` reads and others do not, and of the `fields`.

        `name` is a value or key in the `readers` of options, or `ALL` for all options.
        """
        formatter = ctx.make_formatter()

        def is_read(option: click.Option) -> bool:
            return name in (ALL, *getattr(option, "readers", ())) or option.name in fields

        self._write_options(ctx, formatter, is_read)
        return formatter.getvalue().strip() or f"{name} reads the options of --help, and no others."

    def _write_options(
        self, ctx: click.Context, formatter: click.HelpFormatter, is_shown: Callable[[click.Option], bool]
    ) -> None:
        """Write the help of options for which `is_shown` returns True, under their headings."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            if not isinstance(option, click.Option) or not is_shown(option):
                continue
            if (record := option.get_help_record(ctx)) is not None:
                sections.setdefault(getattr(option, "heading", "") or "Options", []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _reader_rows(readers: Mapping[str, Sequence[str]], width: int) -> Iterator[tuple[str, str]]:
    """Yield rows of a help text of `width` characters: the name of a reader, and a line of its options.

    After a reader's first row, the name is "". Lines are wrapped here, as click would break options at hyphens.
    """
    width -= max(map(len, readers)) + 6  # indentation, and the space between columns
    for name, options in readers.items():
        for number, line in enumerate(textwrap.wrap(", ".join(options), width, break_on_hyphens=False)):
            yield name if number == 0 else "", line


def _repeat(args: list[str], names: set[str]) -> list[str]:
    """Return arguments in which an option of `names` precedes each value: `--x a b` becomes `--x a --x b`."""
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


def help_for_option(
    names: Sequence[str], read_by: Callable[[str], Iterable[str]]
) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that adds `--help-for` to a command, which prints the help of options that one value reads.

    Parameters
    ----------
    names
        Names of values, such as objectives, and of keys, that `--help-for` takes besides `ALL`.
    read_by
        Function from such a name to names of fields whose options are shown in addition to options that have the name
        in their `readers`.
    """

    def show(ctx: click.Context, _: click.Parameter, name: str | None) -> None:
        if name is not None and isinstance(ctx.command, Command):
            click.echo(ctx.command.help_for(ctx, name, {*read_by(name)}))
            ctx.exit()

    return click.option(
        "--help-for",
        type=click.Choice([*names, ALL]),
        metavar="NAME",
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show the options that only one objective, strategy, device or format reads, such as rotation; or all.",
    )


def wants_traceback(ctx: click.Context) -> bool:
    """Return whether the command was called with `--debug`."""
    return bool(ctx.meta.get(_DEBUG))


def _parse_pair(pair: str) -> tuple[str, Any]:
    """Return key and value of KEY=VALUE, the value parsed as JSON or else as text, or raise a BadParameter."""
    key, separator, value = pair.partition("=")
    if not (key and separator):
        raise click.BadParameter("it is not KEY=VALUE.")  # not shown, as it may be a secret
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _parse_pairs(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any]:
    return dict(_parse_pair(pair) for pair in pairs)


def storage_option(function: CommandFunction, heading: str = "") -> CommandFunction:
    """Add the repeatable option `--storage-option KEY=VALUE` to a command, which gets the dict `storage_options`."""
    return click.option(
        "--storage-option",
        "storage_options",
        cls=Option,
        heading=heading,
        multiple=True,
        metavar="KEY=VALUE",
        callback=_parse_pairs,
        envvar="DASKW2V_STORAGE_OPTION",
        help="Option for fsspec (credentials, endpoints); VALUE is JSON or plain text. Repeatable.",
    )(function)


config_option = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="DASKW2V_CONFIG",
    help="TOML file with values for the options below, such as vector_size = 200.",
)
