"""The group of all commands, and what several of them share."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from daskw2v.exits import one_sentence
from daskw2v.models.vectors import Vectors
from daskw2v.options import Command, wants_traceback

_MODULES = {
    "training": ("train", "demo"),
    "retraining": ("retrain",),
    "estimating": ("estimate",),
    "models": ("similar", "analogy", "export", "index", "info"),
    "versions": ("versions",),
    "scheduling": ("serve-schedule",),
    "evaluating": ("evaluate", "compare", "report", "datasets"),
}


class Program(click.Group):
    """The group of all commands: errors become one line, and every command takes `--debug`.

    A command's module is imported when the command is asked for: plots and classifiers take seconds to load.
    """

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of use."""
        return [name for names in _MODULES.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, whose module makes it one of `main`'s; None where there is none of that name."""
        for module, names in _MODULES.items():
            if cmd_name in names:
                import_module(f"daskw2v.cli.{module}")
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; leave with 2 after an error of ours or of the system, with 130 after Ctrl-C."""
        with one_sentence(lambda: wants_traceback(ctx)):
            return super().invoke(ctx)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="daskw2v")
def main() -> None:
    """Train word vectors on any Dask cluster, and use them."""


model_argument = click.argument("model")


def open_once(model: str, storage_options: Mapping[str, Any]) -> Vectors:
    """Open a model of which all is read once at most: to keep it in memory would only take longer."""
    return Vectors.open(model, storage_options, in_memory=False)


def import_from_here() -> None:
    """Let a tokenizer stand in the current directory, as with `python -m`; local workers inherit the path."""
    here = os.getcwd()
    if not sys.flags.safe_path and here not in sys.path:
        sys.path.insert(0, here)
