"""`daskw2v estimate`."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from dask.system import CPU_COUNT
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
from daskw2v.corpus.formats import check_formats
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import ParameterError, counted
from daskw2v.escapes import escaped
from daskw2v.objectives.registry import check_options
from daskw2v.phrases.score import check_phrases
from daskw2v.training.choice import Candidate, Machines, candidate_of, candidates, choose_in, hardware_of, machines_of
from daskw2v.training.features import with_feature_table
from daskw2v.training.markets import with_market_table
from daskw2v.training.memory.base import Workers
from daskw2v.training.memory.stages import estimate
from daskw2v.training.memory.text import Text, guess_text
from daskw2v.training.memory.workers import local_workers
from daskw2v.training.strategies import check_strategy


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
@config_option
@fields_of(Params, Resources)
@click.pass_context
def estimate_command(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    types: int | None,
    words: int | None,
    network: str | None,
    config: Path | None,
    **_: Any,
) -> None:
    """Print the memory and time that training on INPUT needs, estimated from the sizes of the files.

    The options are those of `train`. With a scheduler, the estimate is for its workers; otherwise for a local cluster,
    which is not started. Time is that of training alone, by each strategy that can; a star marks the one that is
    trained with, which `--strategy auto` chooses. Steps are taken to be as fast as on the machine that they were
    measured on.
    """
    params, resources = choose(ctx, read_config(config))
    check_options(params)
    check_phrases(params)
    check_strategy(params, resources)
    sources = find_sources(
        inputs, params.format, resources.storage_options, resources.store_timeout, filters=params.filters,
        errors=params.errors, listener=lambda progress: click.echo(f"Note: {escaped(progress.message)}"),
    )  # fmt: skip
    check_formats(sources, params)
    with_feature_table(with_market_table(params, resources), resources)  # refuses what `train` would
    text = guess_text(sources, params, resources, types, words)
    rate = None if network is None else parse_rate(network)
    place = _place(resources, machines=rate is not None)
    if rate is not None:
        place = place._replace(hardware=replace(place.hardware, network=rate, cores=math.inf))
    options, params = _options(params, resources, text, place)
    machines = place.hardware.nodes if rate is not None else 1 if resources.scheduler is None else None
    for workers, limit in place.kinds.items():
        found = estimate(params, resources, text, workers)
        print_table(("stage", "memory", "made of"), found.rows())
        for note in (*_guesses(text, types, words), *found.notes, _verdict(found.bytes, workers, limit)):
            click.echo(note)
    print_table(("", "training", *_TERMS, "seconds", "machine hours", "in memory"), _times(options, params, machines))


_TERMS = ("text", "store", "train", "copies", "handling", "travel", "waiting", "tasks")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])(?:bps|bit/s)", re.IGNORECASE)


def parse_rate(text: str) -> float:
    """Return the bytes/s of a link such as 10Gbps or 100 Mbit/s.

    Raises
    ------
    ParameterError
        If it is not written so.
    """
    found = _RATE.fullmatch(text.strip())
    rate = float(found[1]) * 1e3 ** (1 + "KMGT".index(found[2].upper())) / 8 if found else 0.0
    if not rate:
        raise ParameterError(f"network={text!r} is no rate above 0.", "Write bits a second, such as 10Gbps or 100Mbps.")
    return rate


def _place(resources: Resources, *, machines: bool) -> Machines:
    if resources.scheduler is None:
        kinds = local_workers(resources, machines=machines)
        return Machines(kinds, {}, hardware_of(kinds, math.inf, CPU_COUNT))
    with (
        show_progress() as listener,
        waits_for_workers(resources, listener),
        connect(resources) as client,
    ):
        return machines_of(client, resources)


def _options(params: Params, resources: Resources, text: Text, place: Machines) -> tuple[list[Candidate], Params]:
    """Return the ways to train, and the Params of the one that is taken: what was given, or what "auto" chooses."""
    if params.strategy.is_open:
        found = candidates(params, resources, text, place)
        return found, choose_in(found, place)[0].params
    others = candidates(params.replace(strategy="auto"), resources, text, place)
    given = candidate_of(params, resources, text, place)
    return [given, *(other for other in others if other.params != params)], params


def _times(options: Iterable[Candidate], chosen: Params, machines: int | None) -> Iterator[tuple[str, ...]]:
    """Yield what stands in a table: the way to train, seconds by term, all of them, and hours of all machines."""
    for option in options:
        mark, fits = "*" if option.params == chosen else "", "fits" if option.fits else "does not fit"
        if option.forecast is None:
            yield mark, str(option), *("" for _ in _TERMS), "not known", "", fits
            continue
        total = option.forecast.total
        hours = "" if machines is None else f"{total * machines / 3600:.3g}"
        terms = (f"{option.forecast.seconds[term]:,.1f}" for term in _TERMS)
        yield mark, str(option), *terms, f"{total:,.1f}", hours, fits


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
