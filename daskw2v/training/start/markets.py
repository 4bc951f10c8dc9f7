"""`SharedNegatives.market_negative`: the markets of words, and how they reach the workers.

Markets come from a table, whose location and content settled Params name; or from the events that the text was made of,
whose sessions are written with the markets of their items. One task finds the market of each word of the vocabulary,
and writes it to the run's folder.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from daskw2v.collections.kinds import Derived, TextInputs
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import split_content
from daskw2v.errors import InputError, ParameterError, counted
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.sampling.run import Run
from daskw2v.sequences.parts import read_markets
from daskw2v.shards.layout import Corpus
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.durability import durable
from daskw2v.store.storage import Store
from daskw2v.store.threads import in_threads
from daskw2v.training.start.named_tables import find_table, is_settled, open_table
from daskw2v.types import Int32Array
from daskw2v.vocabulary.markets import MarketCounts, check_table, read_table

_MARKETS = "markets"


def check_markets(params: Params, inputs: TextInputs) -> None:
    """Raise a ParameterError for markets from two sources or read by no kernel, or market negatives without markets."""
    has_column, objective = isinstance(inputs, Derived) and inputs.has_markets, params.objective
    negative, table = 0, None
    if isinstance(objective, SharedNegatives):
        negative, table = objective.market_negative, objective.markets
    if has_column and not negative:
        raise ParameterError(
            "The markets of the events change nothing for market_negative=0.",
            "Give market_negative=1 or more, or leave out the column of their markets.",
        )
    if has_column and table is not None:
        raise ParameterError(
            f"markets={table!r}, and the events have a column of their markets.", "Leave one of the two out."
        )
    if negative and not has_column and table is None:
        raise _no_markets(negative)


def _no_markets(negative: int) -> ParameterError:
    """Return the error for `negative` market negatives without markets."""
    return ParameterError(
        f"market_negative={negative} has no markets to draw from.",
        "Give markets, the URL of a table; or events, and the column of their markets.",
    )


def with_market_table(params: Params, resources: Resources) -> Params:
    """Return Params that name their table of markets, if there is one, by location and content.

    Raises
    ------
    InputError, StoreError
        If the table cannot be read, or `check_table` refuses a file.
    """
    objective = params.objective
    if not isinstance(objective, SharedNegatives) or objective.markets is None or is_settled(objective.markets):
        return params
    name, sources = find_table(objective.markets, resources)
    in_threads(partial(check_table, options=resources.storage_options, timeout=resources.store_timeout), sources)
    return params.replace(markets=name)


@durable()
def write_markets(folder: Store, run: Run, resources: Resources) -> None:
    """Task: write the number of the market of each word of a run to a folder, -1 for words without a market.

    Raises
    ------
    ParameterError
        If the text was not made of events with markets, and there is no table.
    InputError
        If the table has changed since the Params were settled, or no word has a market.
    """
    counts, is_empty, settings = MarketCounts(run.vocabulary.load()), True, SharedNegatives.of(run.params)
    for rows in _read_rows(run, settings.markets, resources):
        counts.add(rows)
        is_empty = False
    if is_empty and settings.markets is None:
        raise _no_markets(settings.market_negative)
    markets = counts.markets()
    if not (markets >= 0).any():
        raise InputError(
            f"{split_content(settings.markets or 'The events')[0]} names the market of none of the "
            f"{counted(run.vocabulary.size, 'word')} of the vocabulary.",
            "Give the words as they are in the text.",
        )
    write_array(folder.create_group(), _MARKETS, markets)


def _read_rows(run: Run, table: str | None, resources: Resources) -> Iterator[Any]:
    """Yield Arrow batches of items and markets: from a table, or from the events that the text was made of."""
    if table is None:
        for markets in read_markets(run.work, Corpus.load(run.work, run.corpus).sources):
            yield from markets.to_batches()
    else:
        for source in open_table(table, resources, "markets"):
            yield from read_table(source, resources.storage_options, resources.store_timeout)


def read_word_markets(run: Run) -> Int32Array:
    """Return the number of each word's market, -1 for a word without a market, shape (V,) int32."""
    assert run.markets is not None
    return read_array(run.markets.open_group(), _MARKETS)
