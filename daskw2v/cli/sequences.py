"""`daskw2v items` and `daskw2v walks`: train on what is derived from other data than text."""

from pathlib import Path
from typing import Any

import click

from daskw2v.cli.config_file import read_config, table
from daskw2v.cli.derived import EVENTS, GRAPH, WALKS
from daskw2v.cli.fields import choose, spoken
from daskw2v.cli.program import main
from daskw2v.cli.training import train_on, trains
from daskw2v.config.resources import Resources
from daskw2v.sequences.settings import EdgeList, Sessions, Walks
from daskw2v.sequences.sources import Events, Graph

_OF_EDGES = ("weight",)  # not of rows of text


@main.command("items", no_args_is_help=True)
@trains("EVENTS", Sessions, Events.params, Resources, inputs=Events)
def items_command(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    work: str,
    config: Path | None,
    report: str | None,
    as_json: bool,
    **_: Any,
) -> None:
    """Train vectors of items on the sessions of users, from EVENTS (Parquet, or CSV).

    A row of EVENTS says which user was at which item when; CSV has a header. Options, the environment and the
    TOML file are as for train; the table [events] of the file has the options about events. The same command
    resumes an interrupted one.
    """
    values = read_config(config, (EVENTS,))
    sessions = table(Sessions, values, EVENTS, config, spoken(ctx))
    train_on(Events(list(inputs), sessions), work, *choose(ctx, values, Events.params), report, as_json)


@main.command("walks", no_args_is_help=True)
@trains("EDGES", EdgeList, Walks, Graph.params, Resources, inputs=Graph)
def walks_command(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    work: str,
    config: Path | None,
    report: str | None,
    as_json: bool,
    **_: Any,
) -> None:
    """Train vectors of nodes on random walks, from EDGES (Parquet, CSV, or text).

    A row of EDGES names two nodes; CSV has a header, other text has columns separated by blanks. Options, the
    environment and the TOML file are as for train; the tables [graph] and [walks] of the file have the options
    about edges and walks. --seed is that of walks and of training. The same command resumes an interrupted one.
    """
    values, given = read_config(config, (GRAPH, WALKS)), spoken(ctx)
    edges, walks = table(EdgeList, values, GRAPH, config, given), table(Walks, values, WALKS, config, given)
    train_on(Graph(list(inputs), edges, walks), work, *choose(ctx, values, Graph.params, _OF_EDGES), report, as_json)
