"""Cuts events of users into sessions, in pandas.

Frames of events are pandas dataframes with the columns user, time (a number) and item, and weight, goal (a bool) and
market ("" for none) where `Sessions` names them. A part of the events is all files or, with `Sessions.per`, one file or
folder.
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
_OPTIONAL = ["weight", "goal", "market"]  # columns that events may have


class Cut(NamedTuple):
    """The rules by which sessions are cut, in the unit of times.

    Parameters
    ----------
    gap
        Time without an event that ends a session; None if nothing ends it.
    latest
        Time of the latest event of this and all earlier parts; None if no rule depends on it, or there is no event.
    half_life
        Age before `latest` at which an event counts half; None if all events count alike.
    window
        Greatest distance of a session's goal and an item whose context it is, as `Params.window`.
    """

    gap: float | None
    latest: float | None = None
    half_life: float | None = None
    window: int = 0


def split_ended(events: Any, sessions: Sessions, cut: Cut) -> tuple[Any, Any]:
    """Split a frame of events into events of ended sessions and events of open sessions, both sorted.

    A session is open if its last event is at most `cut.gap` before `cut.latest`: the next part may continue it. All
    sessions are ended where `sessions` carries none over.
    """
    events = _sort_events(events)
    if not sessions.carries or events.empty:
        return events, events[:0]
    session_numbers = _number_sessions(events, cut.gap)
    last = events["time"].groupby(session_numbers).transform("max")
    is_open = (cut.latest - last <= cut.gap).to_numpy()
    return events[~is_open], events[is_open]


def cut_sessions(events: Any, sessions: Sessions, cut: Cut) -> tuple[Any, Int64Array, Any]:
    """Cut the events of users into sessions of items; sessions of fewer than `sessions.least` events are dropped.

    Events of a user at the same time are sorted by their other columns: the result does not depend on their order.

    Parameters
    ----------
    events
        A frame of all events of one or more users.
    sessions, cut
        The rules by which sessions are cut.

    Returns
    -------
    items
        The items of all sessions, one session after the other, an Arrow array of integers or large_string.
    offsets
        Session i is items[offsets[i] : offsets[i + 1]], shape (sessions + 1,).
    markets
        Arrow table of how often each item is in each market in the sessions, without the copies of goals, with the
        columns of `vocabulary.markets`; empty where events have no column of markets.
    """
    events = _sort_events(events)
    session_numbers, rows = _number_sessions(events, cut.gap), np.arange(len(events))
    goals = _find_goals(events, session_numbers) if sessions.goal is not None else None
    if sessions.drop_repeats:
        rows = rows[_find_changes(session_numbers) | _find_changes(events["item"])]
    copies = _count_copies(events, cut)[rows]
    n_events = np.bincount(session_numbers[rows[copies > 0]], minlength=len(events))
    kept = n_events[session_numbers[rows]] >= sessions.least
    rows = np.repeat(rows[kept], copies[kept])
    lengths = np.bincount(session_numbers[rows], minlength=len(events))
    markets = _count_markets(events, rows)
    if goals is not None:
        rows, lengths = _add_goals(rows, lengths, goals, cut.window)
    items = to_arrow(events["item"].take(rows))
    if not pa.types.is_integer(items.type):
        items = items.cast(pa.large_string())
    return items, np.append(0, np.cumsum(lengths[lengths > 0])).astype(np.int64), markets


def to_arrow(values: Any) -> Any:
    """Return a pandas column as one Arrow array."""
    return pa.chunked_array(pa.array(values)).combine_chunks()


def _count_markets(events: Any, rows: Int64Array) -> Any:
    """Return an Arrow table of word, market and count: how often each item is in each market among rows.

    `rows` are indices of events; repeated ones count as often.
    """
    if "market" not in events:
        return add_up([])
    names = (to_arrow(events[name].take(rows)).cast(pa.large_string()) for name in ("item", "market"))
    return add_up([pa.table([*names, np.ones(len(rows), np.int64)], [WORD, MARKET, COUNT])])


def _sort_events(events: Any) -> Any:
    """Return events sorted by user, time, item and the optional columns, so that only their content decides."""
    return events.sort_values([*_ORDER, *(name for name in _OPTIONAL if name in events)], ignore_index=True)


def _number_sessions(events: Any, gap: float | None) -> Int64Array:
    """Return the number of the session of each event of sorted events, from 0 on, shape (events,)."""
    first = _find_changes(events["user"])
    if gap is not None:
        first = first | (events["time"].diff() > gap).to_numpy(bool)
    return np.cumsum(first) - 1


def _find_changes(values: Any) -> npt.NDArray[np.bool_]:
    """Return for each value of a column whether it differs from the value before; True for the first one."""
    codes, _ = pd.factorize(values)
    return np.append(np.ones(1, bool), codes[1:] != codes[:-1])[: len(codes)]


def _count_copies(events: Any, cut: Cut) -> Int64Array:
    """Return how often each event stands in its session, 0 or more, shape (events,).

    This is the event's weight, halved with each half-life of its age, and rounded up or down by a draw that the event's
    content alone decides.
    """
    weights = events["weight"].to_numpy(np.float64) if "weight" in events else np.ones(len(events))
    if cut.half_life is not None and cut.latest is not None:
        weights = weights * np.exp2((events["time"].to_numpy(np.float64) - cut.latest) / cut.half_life)
    if "weight" not in events and cut.half_life is None:
        return np.ones(len(events), np.int64)
    draws = pd.util.hash_pandas_object(events[_ORDER], index=False).to_numpy() >> np.uint64(11)
    return np.floor(weights + draws * 2.0**-53).astype(np.int64)


def _find_goals(events: Any, session_numbers: Int64Array) -> Int64Array:
    """Return for each session, by number, the row of its last event that is a goal, -1 without one; shape (events,)."""
    rows = np.flatnonzero(events["goal"])
    goals = np.full(len(events), -1)
    goals[session_numbers[rows]] = rows  # of several assignments the last one counts
    return goals


def _add_goals(rows: Int64Array, lengths: Int64Array, goals: Int64Array, window: int) -> tuple[Int64Array, Int64Array]:
    """Insert a session's goal once in 2 * window + 1 items, so that each window holds it; return rows and lengths.

    The first copy is at index `window` of the session. If the last window had none, one follows the last item. Sessions
    of at most window + 1 items do not change.

    Parameters
    ----------
    rows
        Indices of the events of all sessions, one session after the other, shape (items,).
    lengths
        Number of items of each session, by the session's number; 0 for a number without a session, shape (n,).
    goals
        Index of the event that is the goal of each session, or -1, shape (n,).
    window
        As `Cut.window`.
    """
    chosen = np.flatnonzero((lengths > window + 1) & (goals >= 0))
    starts = (np.cumsum(lengths) - lengths)[chosen]
    counts = 1 + (lengths[chosen] - window - 1) // (2 * window)  # of goals before items
    ranks = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    offsets = window + 2 * window * ranks
    last_goal = window + 2 * window * (counts - 1)
    ends = starts + lengths[chosen]
    lack_goal = (lengths[chosen] - last_goal > window) & (rows[ends - 1] != goals[chosen])
    indices = np.append(np.repeat(starts, counts) + offsets, ends[lack_goal])
    inserted = np.append(np.repeat(goals[chosen], counts), goals[chosen][lack_goal])
    lengths = lengths.copy()
    lengths[chosen] += counts + lack_goal
    return np.insert(rows, indices, inserted), lengths
