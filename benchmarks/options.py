"""Options that every command has: --json, and --smoke, which runs all of it on next to nothing."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

LEFT_OUT = "Left out: "  # begins a line that says what cannot be measured here, and why


class Smoke(NamedTuple):
    """The smallest form of a command, which still goes through all of its code, but for what another's goes through.

    Parameters
    ----------
    values
        Of its options, by name, where they are not given.
    names
        What its output has to name: of each table, or of each kind of row.
    ways
        Arguments with which it is run, once each, of those that lead through other code; its output names them, too.
    """

    values: Mapping[str, Any]
    names: tuple[str, ...]
    ways: tuple[tuple[str, ...], ...] = ((),)


def parsed(parser: argparse.ArgumentParser, smoke: Smoke, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Add the options that every command has, and parse."""
    parser.add_argument("--json", action="store_true", help="rows as JSON; the lines then go to stderr")
    parser.add_argument(
        "--smoke", action="store_true",
        help="see whether all of it runs: least values of what is not given; such figures say nothing",
    )  # fmt: skip
    given, _ = parser.parse_known_args(arguments)
    if unknown := smoke.values.keys() - vars(given).keys():
        raise ValueError(f"--smoke sets what is no option: {', '.join(sorted(unknown))}")
    if given.smoke:
        parser.set_defaults(**smoke.values)
    return parser.parse_args(arguments)
