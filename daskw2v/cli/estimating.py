"""`daskw2v estimate`."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from dask.utils import format_bytes

from daskw2v.cli.fields import choose, fields_of
from daskw2v.cli.printing import print_table
from daskw2v.cli.program import main
from daskw2v.cluster import connect, waits_for_workers
from daskw2v.console import show_progress
from daskw2v.corpus.sources import find_sources
from daskw2v.estimate import Text, Workers, estimate, guess_text, local_workers, workers_of
from daskw2v.objectives import check_options
from daskw2v.options import config_option, read_config
from daskw2v.params import Params, Resources
from daskw2v.phrases.score import check_phrases
from daskw2v.strategies import check_strategy
from daskw2v.wording import counted


@main.command("estimate", no_args_is_help=True)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--types", type=click.IntRange(1), help="Distinct words of the text; guessed when not given.")
@click.option("--words", type=click.IntRange(1), help="Words that the vocabulary keeps; guessed when not given.")
@config_option
@fields_of(Params, Resources)
@click.pass_context
def estimate_command(
    ctx: click.Context, /, inputs: tuple[str, ...], types: int | None, words: int | None, config: Path | None, **_: Any
) -> None:
    """Print the memory that training on INPUT would take; of the text only the files' sizes are read.

    The options are those of `train`. Of a scheduler its workers are asked for; else a local cluster is meant, which is
    not started.
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
    """Return what was assumed of the text."""
    how = "guessed by Heaps' law with the constants of English Wikipedia"
    rest = "other text may have several times as many: say --types and --words where they are known"
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
