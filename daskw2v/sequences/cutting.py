"""Cuts events of users into sessions, in pandas.

Frames of events have the columns user, time (a number) and item, and weight, goal and market where `Sessions` names
them.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.extras import Extra
from daskw2v.sequences.settings import Sessions
from daskw2v.types import Int64Array
from daskw2v.vocabulary.markets import COUNT, MARKET, add_up
from daskw2v.vocabulary.word_tables import WORD

pd, pa = Extra("pandas", "events"), Extra("pyarrow", "events")

_ORDER = ["user", "time", "item"]
_MORE = ["weight", "goal", "market"]  # if events have them


class Cut(NamedTuple):
    """The rules by which sessions are cut, in the unit of times.

    Parameters
    ----------
    gap
        Time without an event that ends a session; None if nothing ends it.
    latest
        Time of the latest of all events.
    half_life
        Time after which an event counts half; None if it never does.
    window
        Most items between the goal of a session and an item that sees it, as `Params.window`.
    """

    gap: float | None
    latest: float | None = None
    half_life: float | None = None
    window: int = 0


def divide(events: Any, sessions: Sessions, cut: Cut) -> tuple[Any, Any]:
    """Return the events of ended sessions, and the events of open sessions, to which later events may belong."""
    events = _sorted(events)
    if not sessions.carries or events.empty:
        return events, events[:0]
    session = _sessions(events, cut.gap)
    last = events["time"].groupby(session).transform("max")
    is_open = (cut.latest - last <= cut.gap).to_numpy()
    return events[~is_open], events[is_open]


def sessions_of(events: Any, sessions: Sessions, cut: Cut) -> tuple[Any, Int64Array, Any]:
    """Return the items of all sessions as an Arrow array, the bounds of the sessions in it, and items by market.

    Items by market are a table of Arrow: how often each item is in each market in the sessions. Goals, which are
    repeated, do not count; the table is empty where events have no market.

    Events of a user at the same time are sorted by their other columns: the result does not depend on their order.

    Parameters
    ----------
    events
        All events of one or more users.
    sessions, cut
        How to cut sessions.
    """
    events = _sorted(events)
    session, rows = _sessions(events, cut.gap), np.arange(len(events))
    goals = _goals(events, session) if sessions.goal is not None else None
    if sessions.drop_repeats:
        rows = rows[_changes(session) | _changes(events["item"])]
    copies = _copies(events, cut)[rows]
    events_of = np.bincount(session[rows[copies > 0]], minlength=len(events))
    kept = events_of[session[rows]] >= sessions.least
    rows = np.repeat(rows[kept], copies[kept])
    lengths = np.bincount(session[rows], minlength=len(events))
    markets = _market_counts(events, rows)
    if goals is not None:
        rows, lengths = _with_goals(rows, lengths, goals, cut.window)
    items = arrow_array(events["item"].take(rows))
    if not pa.types.is_integer(items.type):
        items = items.cast(pa.large_string())
    return items, np.append(0, np.cumsum(lengths[lengths > 0])).astype(np.int64), markets


def arrow_array(values: Any) -> Any:
    """Return a column of pandas as an Arrow array."""
    return pa.chunked_array(pa.array(values)).combine_chunks()


def _market_counts(events: Any, rows: Int64Array) -> Any:
    """Return how often each item is in each market among rows, as `vocabulary.markets` reads it."""
    if "market" not in events:
        return add_up([])
    names = (arrow_array(events[name].take(rows)).cast(pa.large_string()) for name in ("item", "market"))
    return add_up([pa.table([*names, np.ones(len(rows), np.int64)], [WORD, MARKET, COUNT])])


def _sorted(events: Any) -> Any:
    """Return events in an order that their content alone decides."""
    return events.sort_values([*_ORDER, *(name for name in _MORE if name in events)], ignore_index=True)


def _sessions(events: Any, gap: float | None) -> Int64Array:
    """Return the number of the session of each event."""
    first = _changes(events["user"])
    if gap is not None:
        first = first | (events["time"].diff() > gap).to_numpy(bool)
    return np.cumsum(first) - 1


def _changes(values: Any) -> npt.NDArray[np.bool_]:
    """Return for each value whether it differs from the one before."""
    codes, _ = pd.factorize(values)
    return np.append(np.ones(1, bool), codes[1:] != codes[:-1])[: len(codes)]


def _copies(events: Any, cut: Cut) -> Int64Array:
    """Return how often each event counts: its weight, rounded up or down by a draw that its content alone decides."""
    weights = events["weight"].to_numpy(np.float64) if "weight" in events else np.ones(len(events))
    if cut.half_life is not None and cut.latest is not None:
        weights = weights * np.exp2((events["time"].to_numpy(np.float64) - cut.latest) / cut.half_life)
    if "weight" not in events and cut.half_life is None:
        return np.ones(len(events), np.int64)
    draws = pd.util.hash_pandas_object(events[_ORDER], index=False).to_numpy() >> np.uint64(11)
    return np.floor(weights + draws * 2.0**-53).astype(np.int64)


def _goals(events: Any, session: Int64Array) -> Int64Array:
    """Return the row of the last goal of each session, -1 without one."""
    rows = np.flatnonzero(events["goal"])
    goals = np.full(len(events), -1)
    goals[session[rows]] = rows  # the last one stays
    return goals


def _with_goals(rows: Int64Array, lengths: Int64Array, goals: Int64Array, window: int) -> tuple[Int64Array, Int64Array]:
    """Repeat the goal of each session once in 2 * window + 1 items, so that each window holds one goal.

    The first goal is at index `window`. If the last window had no goal, one follows the last item. Sessions that a
    window holds are left as they are.
    """
    long = np.flatnonzero((lengths > window + 1) & (goals >= 0))
    starts = (np.cumsum(lengths) - lengths)[long]
    counts = 1 + (lengths[long] - window - 1) // (2 * window)  # of goals before items
    nth = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    within = window + 2 * window * nth
    last = window + 2 * window * (counts - 1)
    ends = starts + lengths[long]
    bare = (lengths[long] - last > window) & (rows[ends - 1] != goals[long])
    at = np.append(np.repeat(starts, counts) + within, ends[bare])
    added = np.append(np.repeat(goals[long], counts), goals[long][bare])
    lengths = lengths.copy()
    lengths[long] += counts + bare
    return np.insert(rows, at, added), lengths
