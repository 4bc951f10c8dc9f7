"""`daskw2v estimate`."""

from pathlib import Path
from typing import Any

import click

from daskw2v.cli.config_file import read_config
from daskw2v.cli.fields import choose, fields_of
from daskw2v.cli.options import config_option
from daskw2v.cli.printing import json_option, print_json, print_table, say
from daskw2v.cli.program import main
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.training.planning import estimate, plan


@main.command("estimate", no_args_is_help=True)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--types", type=click.IntRange(1), help="Distinct words of the text; estimated when not given.")
@click.option("--words", type=click.IntRange(1), help="Words in the vocabulary; estimated when not given.")
@click.option(
    "--network",
    metavar="RATE",
    help="Each worker is a machine of its own, with such a link to the others, as in 10Gbps, and the memory of "
    "--memory-limit.",
)
@click.option(
    "--work", envvar="DASKW2V_WORK", help="Folder or URL of a run: the words of text that it holds are counted."
)
@config_option
@json_option
@fields_of(Params, Resources)
@click.pass_context
def estimate_command(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    types: int | None,
    words: int | None,
    network: str | None,
    work: str | None,
    config: Path | None,
    as_json: bool,
    **_: Any,
) -> None:
    """Print the memory and time that training on INPUT needs, estimated from the sizes of the files.

    The options are those of `train`. With a scheduler, the estimate is for its workers; otherwise for a local cluster,
    which is not started. Words are counted where --work holds the text already. Time is that of training alone, by
    each strategy that can; a star marks the one that is trained with, which `--strategy auto` chooses. Steps are taken
    to be as fast as on the machine that they were measured on.
    """
    params, resources = choose(ctx, read_config(config))
    if work is None:
        found = estimate(inputs, params=params, resources=resources, types=types, words=words, network=network)
    elif (types, words, network) == (None, None, None):
        found = plan(inputs, work=work, params=params, resources=resources)
    else:
        raise click.UsageError("--work counts the words of a run: leave out --types, --words and --network.")
    if as_json:
        print_json(found.as_dict())
        return
    for kind in found.workers:
        print_table(kind.columns, kind.memory.rows())
        for note in (*found.notes(), *kind.memory.notes, kind.verdict):
            say(note)
    print_table(found.columns, found.rows())
