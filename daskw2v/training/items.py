"""Vectors of items, from events."""

from collections.abc import Sequence
from typing import Any

from distributed import Client

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.inputs import Inputs
from daskw2v.models.queries.vectors import Vectors
from daskw2v.progress import Watching
from daskw2v.sequences.settings import Sessions
from daskw2v.sequences.sources import Events
from daskw2v.store.urls import Location
from daskw2v.training.keywords import with_keywords
from daskw2v.training.pipeline import train
from daskw2v.training.watch.callbacks import Callback


def items(
    inputs: Inputs,
    *,
    work: Location | None = None,
    sessions: Sessions | None = None,
    params: Params | None = None,
    resources: Resources | None = None,
    client: Client | None = None,
    listener: Watching = "show",
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> Vectors:
    """Train vectors of items from events, whose sessions are the text (item2vec, Barkan and Koenigstein 2016).

    It is `train(Events(inputs, sessions), ...)`.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of Parquet or CSV files; each row is an event.
    work, resources, client, listener, callbacks, **settings
        As in `train`.
    sessions
        Columns of the events, and how sessions are cut.
    params
        As in `train`; by default `Events.params`, for which all items of a session are contexts of each other.

    Returns
    -------
    vectors
        The published model.

    Raises
    ------
    Daskw2vError
        As `train` and `write_sessions` do.

    Examples
    --------
    >>> vectors = daskw2v.items("events.csv", vector_size=8, min_count=1, epochs=1, listener=None)
    >>> len(vectors)
    5
    """
    events = Events(inputs, Sessions() if sessions is None else sessions)
    params, resources = with_keywords("items", events.params if params is None else params, resources, settings)
    return train(
        events, work=work, params=params, resources=resources, client=client, listener=listener, callbacks=callbacks
    )
