"""Vectors of what sequences are made of: items from events, and nodes from edges."""

from collections.abc import Sequence
from typing import Any

from distributed import Client

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.inputs import Inputs
from daskw2v.models.queries.vectors import Vectors
from daskw2v.progress import Watching
from daskw2v.sequences.settings import EdgeList, Sessions, Walks
from daskw2v.sequences.sources import Events, Graph
from daskw2v.store.urls import Location
from daskw2v.training.pipeline import train
from daskw2v.training.request import with_keywords
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


def walks(
    inputs: Inputs,
    *,
    work: Location | None = None,
    edges: EdgeList | None = None,
    walks: Walks | None = None,
    params: Params | None = None,
    resources: Resources | None = None,
    client: Client | None = None,
    listener: Watching = "show",
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> Vectors:
    """Train vectors of a graph's nodes on random walks.

    These are those of DeepWalk (Perozzi et al. 2014), node2vec (Grover and Leskovec 2016) or, along a metapath,
    metapath2vec (Dong, Chawla and Swami 2017). It is `train(Graph(inputs, edges, walks), ...)`.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of edge lists: Parquet, CSV, or text with columns separated by blanks.
    work, resources, client, listener, callbacks, **settings
        As in `train`.
    edges
        Columns of the edges and of types of nodes, and whether edges are directed.
    walks
        Number and kind of walks.
    params
        As in `train`; by default `Graph.params`, for which every node has a vector.

    Returns
    -------
    vectors
        The published model.

    Raises
    ------
    Daskw2vError
        As `train` and `write_walks` do.

    Examples
    --------
    >>> vectors = daskw2v.walks("edges.txt", vector_size=8, epochs=1, listener=None)
    >>> len(vectors)
    9
    """
    graph = Graph(inputs, EdgeList() if edges is None else edges, Walks() if walks is None else walks)
    params, resources = with_keywords("walks", graph.params if params is None else params, resources, settings)
    return train(
        graph, work=work, params=params, resources=resources, client=client, listener=listener, callbacks=callbacks
    )
