"""`daskw2v estimate`."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from dask.utils import format_bytes

from daskw2v.cli.config_file import read_config
from daskw2v.cli.fields import choose, fields_of
from daskw2v.cli.options import config_option
from daskw2v.cli.printing import print_table
from daskw2v.cli.program import main
from daskw2v.cluster import connect, waits_for_workers
from daskw2v.cluster.console import show_progress
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import counted
from daskw2v.objectives.registry import check_options
from daskw2v.phrases.score import check_phrases
from daskw2v.training.memory.base import Workers
from daskw2v.training.memory.stages import estimate
from daskw2v.training.memory.text import Text, guess_text
from daskw2v.training.memory.workers import local_workers, workers_of
from daskw2v.training.strategies import check_strategy


@main.command("estimate", no_args_is_help=True)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--types", type=click.IntRange(1), help="Distinct words of the text; estimated when not given.")
@click.option("--words", type=click.IntRange(1), help="Words in the vocabulary; estimated when not given.")
@config_option
@fields_of(Params, Resources)
@click.pass_context
def estimate_command(
    ctx: click.Context, /, inputs: tuple[str, ...], types: int | None, words: int | None, config: Path | None, **_: Any
) -> None:
    """Print the memory that training on INPUT needs, estimated from the sizes of the files.

    The options are those of `train`. With a scheduler, the estimate is for its workers; otherwise for a local cluster,
    which is not started.
    """
    params, resources = choose(ctx, read_config(config))
    check_options(params)
    check_phrases(params)
    check_strategy(params, resources)
    sources = find_sources(inputs, params.format, resources.storage_options, resources.store_timeout)
    text = guess_text(sources, params, resources, types, words)
    for workers, limit in _workers(resources).items():
        found = estimate(params, resources, text, workers)
        print_table(("stage", "memory", "made of"), found.rows())
        for note in (*_guesses(text, types, words), *found.notes, _verdict(found.bytes, workers, limit)):
            click.echo(note)


def _workers(resources: Resources) -> Mapping[Workers, float]:
    if resources.scheduler is None:
        return local_workers(resources)
    with (
        show_progress() as listener,
        waits_for_workers(resources, listener),
        connect(resources) as client,
    ):
        return workers_of(client, resources.device)


def _guesses(text: Text, types: int | None, words: int | None) -> list[str]:
    """Return the assumptions about the text."""
    how = "estimated by Heaps' law with the constants of English Wikipedia"
    rest = "other text may have several times as many: give --types and --words if you know them"
    guessed = [
        f"{number:,} {what}"
        for number, what, given in ((text.types, "distinct words", types), (text.vocabulary, "words kept", words))
        if given is None
    ]
    return [f"{text.words:,} words, by the files' sizes"] + (
        [f"{' and '.join(guessed)}: {how}; {rest}"] if guessed else []
    )


def _verdict(need: int, workers: Workers, limit: float) -> str:
    which = f"{counted(workers.n, 'worker')} of {counted(workers.threads, 'thread')}"
    if math.isinf(limit):
        return f"{which} have no memory_limit"
    answer = "fits" if need <= limit else "does not fit"
    return f"{format_bytes(need)} {answer} into the memory_limit of {which}, {format_bytes(int(limit))} each"
