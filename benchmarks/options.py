"""Options that every command has: --json, and --smoke, which runs all of it on next to nothing."""

import argparse
from collections.abc import Sequence

from benchmarks.harness import LEFT_OUT, Smoke  # noqa: F401


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
