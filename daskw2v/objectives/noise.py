"""The tables and random streams of negative sampling, on any device.

A word may belong to a market, such as the city of a listing. Windows may have further negatives, which are drawn from
the words of their target's market alone (Grbovic and Cheng 2018, "Real-time Personalization using Embeddings for Search
Ranking at Airbnb", section 3.1, equation 4).
"""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.alias import alias_tables, choose, slot_in
from daskw2v.kernels.jit import inline
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.sampling.hierarchy import make_word_table
from daskw2v.sampling.weights import word_weights
from daskw2v.types import Int32Array, Int64Array, UInt64Array

BATCH = 4  # windows, pairs or rows that are trained at once


class Markets(NamedTuple):
    """Alias tables of all words and of the words of each market; empty where no negative is drawn from a market.

    Parameters
    ----------
    slots
        The tables, that of all words first, shape (V + words with a market,) uint64. Aliases are numbers of slots.
    words
        The word of each slot, int32.
    spans
        Of each word, first slot (upper 32 bits) and number of slots (lower 32 bits) of the table of its market; of a
        word without market, those of the table of all words; shape (V,) uint64.
    """

    slots: UInt64Array
    words: Int32Array
    spans: UInt64Array


NO_MARKETS = Markets(np.empty(0, np.uint64), np.empty(0, np.int32), np.empty(0, np.uint64))


class Negatives(NamedTuple):
    """The negatives of an epoch, as kernels read them.

    Parameters
    ----------
    negative, market_negative
        As in Params: numbers of negatives from all words, and from the target's market.
    table
        Alias table of the words, shape (V,) uint64.
    key
        Key of the stream of this epoch's draws.
    markets
        The alias tables of markets.
    """

    negative: int
    table: UInt64Array
    key: np.uint64
    market_negative: int = 0
    markets: Markets = NO_MARKETS


class PreparedNoise(NamedTuple):
    """The Params, the alias table of the negatives, shape (V,) uint64, and the tables of markets."""

    params: Params
    noise: UInt64Array
    markets: Markets = NO_MARKETS


def prepare_noise(params: Params, counts: Int64Array) -> PreparedNoise:
    """Return the tables that negatives are drawn from, if no word has a market; `counts` has shape (V,)."""
    settings = SharedNegatives.of(params)
    prepared = PreparedNoise(params, make_word_table(counts, settings.ns_exponent))
    no_markets = np.full(len(counts), -1, np.int32)
    return with_markets(prepared, counts, no_markets) if settings.market_negative else prepared


def with_markets(prepared: PreparedNoise, counts: Int64Array, markets: Int32Array) -> PreparedNoise:
    """Return `prepared` with the tables of markets; `counts` and `markets` have the shape (V,).

    `markets` has the number of each word's market, int32, -1 for none.
    """
    weights, n_words = word_weights(counts, SharedNegatives.of(prepared.params).ns_exponent), len(counts)
    known = np.flatnonzero((markets >= 0) & (weights > 0))  # a word that is never drawn is never a center
    order = known[np.argsort(markets[known], kind="stable")]
    bounds = np.append(np.flatnonzero(np.diff(markets[order], prepend=-1)), len(order))
    slots = np.concatenate([prepared.noise, alias_tables(weights[order], bounds, n_words)])
    words = np.concatenate([np.arange(n_words, dtype=np.int32), order.astype(np.int32)])
    spans, sizes = np.full(n_words, n_words, np.uint64), np.diff(bounds)
    spans[order] = np.repeat(((n_words + bounds[:-1]) << 32) | sizes, sizes)
    return prepared._replace(markets=Markets(slots, words, spans))


def noise_bytes(params: Params, n_words: int) -> dict[str, int]:
    """Return the bytes of the tables of negatives and of markets, by their names, if all words have a market."""
    alone = {"table of negatives": 8 * n_words}
    return alone | {"tables of markets": (2 * (8 + 4) + 8) * n_words} if has_markets(params) else alone


def has_markets(params: Params) -> bool:
    """Return whether the settings draw negatives from markets."""
    return isinstance(params.objective, SharedNegatives) and params.objective.market_negative > 0


def word_table_rows(params: Params, n_words: int) -> dict[str, int]:
    """Return the number of rows of the input and output tables: one row for each word."""
    return {"input": n_words, "output": n_words}


def make_negatives(prepared: PreparedNoise, epoch: int) -> Negatives:
    """Return the negatives of an epoch in the form that kernels read."""
    settings, key = SharedNegatives.of(prepared.params), stream(prepared.params.seed, Purpose.NEGATIVE, epoch)
    return Negatives(settings.negative, prepared.noise, key, settings.market_negative, prepared.markets)


@inline
def pick_in_market(markets: Any, word: Any, bits: Any) -> Any:
    """Return the id of the word that 64 random bits choose from a word's market, or from all words if it has none."""
    slot = slot_in(markets.spans[word], bits)
    return markets.words[choose(slot, markets.slots[slot], bits)]
