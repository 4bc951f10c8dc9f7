"""The group of all commands."""

import atexit
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import click

from daskw2v.cli.exits import one_sentence, show_traceback
from daskw2v.cli.options import Command, wants_traceback


class Listed(NamedTuple):
    """A command before its module is imported: the module's name, and the first sentence of the command's help."""

    module: str
    help: str


# In the order of use
COMMANDS = {
    "train": Listed("training", "Train vectors on text at INPUT (files, folders, patterns, URLs)."),
    "items": Listed("training", "Train vectors of items on the sessions of users, from EVENTS (Parquet, or CSV)."),
    "walks": Listed("training", "Train vectors of nodes on random walks, from EDGES (Parquet, CSV, or text)."),
    "demo": Listed("training", "Train on the text of Python's library, and show what was learned."),
    "warm-up": Listed("training", "Compile all kernels for this processor, so that runs need not."),
    "retrain": Listed("retraining", "Train a new version on new text at INPUT, and serve it if it passes the gates."),
    "estimate": Listed(
        "training", "Print the memory and time that training on INPUT needs, estimated from the sizes of the files."
    ),
    "similar": Listed("models", "Show the words nearest to the mean of all WORDs."),
    "analogy": Listed("models", "Show the words that are to C as B is to A."),
    "import": Listed("formats", "Write the vectors of FILE, from another tool, to URL: a folder, which is a MODEL."),
    "export": Listed("formats", "Write MODEL to URL in a format of another tool."),
    "index": Listed("models", "Build an index of MODEL for nearest neighbours."),
    "info": Listed("models", "Show the metadata of MODEL: parameters, corpus, sizes, loss."),
    "versions": Listed("versions", "List, publish, roll back, tag, compare and delete versions of a model."),
    "evaluate": Listed("evaluating", "Evaluate MODEL on published sets; `daskw2v datasets` lists them."),
    "compare": Listed("evaluating", "Show how the models FIRST and SECOND differ."),
    "report": Listed("evaluating", "Write a report about MODEL to URL: one HTML file, which needs no network."),
    "datasets": Listed("evaluating", "List published evaluation sets, or download the sets NAME."),
}


class Program(click.Group):
    """The group of all commands: errors become one line, and every command takes `--debug`.

    A command's module is imported only when the command is used, not to list commands, because compilers, clusters and
    plots take seconds to load.
    """

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's module and return the command; None if there is no such command."""
        if cmd_name in COMMANDS:
            with _without_garbage_collection():
                import_module(f"daskw2v.cli.{COMMANDS[cmd_name].module}")
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of all commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with 2 after a Daskw2vError or OSError, with 130 after Ctrl-C."""
        with one_sentence(lambda: wants_traceback(ctx)):
            return super().invoke(ctx)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection in a block that imports modules, as nearly all of their objects stay."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="daskw2v")
def main() -> None:
    """Train word vectors on any Dask cluster, and use them."""


def run() -> None:
    """Run the command line as a program, whose child processes import nothing from the current folder.

    The variable PYTHONSAFEPATH, if it is set, takes precedence.
    """
    # Python would search the current folder first in processes that it starts with -c, such as workers
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    sys.excepthook = show_traceback  # for errors that are not the user's
    atexit.register(gc.freeze)  # a collection over all modules at the end takes a quarter of a second
    main()
