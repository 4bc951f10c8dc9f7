"""The group of all commands, and what several of them share."""

import traceback
from collections.abc import Mapping
from typing import Any

import click

from daskw2v.errors import Daskw2vError
from daskw2v.models.vectors import Vectors
from daskw2v.options import Command, wants_traceback


class Program(click.Group):
    """The group of all commands: errors become one line, and every command takes `--debug`."""

    command_class = Command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; leave with 2 after an error of ours or of the system, with 130 after Ctrl-C."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `daskw2v similar ... | head` is no error: click ends quietly
            raise
        except (Daskw2vError, OSError) as error:
            if wants_traceback(ctx):
                traceback.print_exc()
            else:
                click.echo(f"Error: {error}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("Interrupted. The same command goes on where it stopped.", err=True)
            ctx.exit(130)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="daskw2v")
def main() -> None:
    """Train word vectors on any Dask cluster, and use them."""


model_argument = click.argument("model")


def open_once(model: str, storage_options: Mapping[str, Any]) -> Vectors:
    """Open a model of which all is read once at most: to keep it in memory would only take longer."""
    return Vectors.open(model, storage_options, in_memory=False)
