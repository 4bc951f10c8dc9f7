"""Events and graphs as inputs of `train`, `retrain` and `build_corpus`: their sessions and walks are the text."""

from dataclasses import dataclass
from typing import ClassVar

from daskw2v.cluster.connecting import GetClient
from daskw2v.collections.kinds import Derived
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats.parquet import describe_parquet
from daskw2v.corpus.inputs import Inputs
from daskw2v.progress import Listener
from daskw2v.sequences.parts import write_sessions
from daskw2v.sequences.settings import EdgeList, Sessions, Walks, check_types
from daskw2v.sequences.walks import write_walks
from daskw2v.store.storage import Store


@dataclass(frozen=True)
class Events(Derived):
    """A log of events, whose sessions are sentences of items.

    All items of a session are contexts of each other, whatever their order. So windows are long by default, and do not
    shrink as they do for text, where near words say more.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of Parquet or CSV files.
    sessions
        The rules by which sessions are cut.

    Examples
    --------
    >>> events = daskw2v.Events("events.csv", daskw2v.Sessions(least=3))
    >>> vectors = daskw2v.train(events, vector_size=8, min_count=1, epochs=1, listener=None)
    >>> sorted(vectors)
    ['i0', 'i1', 'i2', 'i3', 'i4']
    """

    params: ClassVar[Params] = Params(window=100, shrink_windows=False, sample=1e-3)

    inputs: Inputs
    sessions: Sessions = Sessions()

    @property
    def has_markets(self) -> bool:
        """Whether events name the markets of items."""
        return self.sessions.market is not None

    def write(
        self, work: Store, params: Params, resources: Resources, client: GetClient, listener: Listener
    ) -> list[Source]:
        """Return the files of the sessions, which are written unless they exist; raises as `write_sessions` does."""
        return write_sessions(self.inputs, work, self.sessions, params, resources, client, listener)


@dataclass(frozen=True)
class Graph(Derived):
    """An edge list, whose random walks are sentences of nodes.

    By default every node has a vector, and no node is so frequent that it says nothing.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of the edges.
    edges
        Layout of edges in these files.
    walks
        Number and kind of walks.

    Raises
    ------
    ParameterError
        If there is a metapath, but edges have no types, or the other way round.

    Examples
    --------
    >>> graph = daskw2v.Graph("edges.txt", daskw2v.EdgeList(directed=True), daskw2v.Walks(length=20))
    >>> vectors = daskw2v.train(graph, vector_size=8, epochs=1, listener=None)
    >>> sorted(vectors)[:3]
    ['0', '1', '2']
    """

    params: ClassVar[Params] = Params(vector_size=128, window=10, min_count=1, sample=0)

    inputs: Inputs
    edges: EdgeList = EdgeList()
    walks: Walks = Walks()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_types(self.edges, self.walks)

    def write(
        self, work: Store, params: Params, resources: Resources, client: GetClient, listener: Listener
    ) -> list[Source]:
        """Return the files of the walks, which are written unless they exist; raises as `write_walks` does."""
        urls = write_walks(self.inputs, work, self.edges, self.walks, resources, client, listener, params.column)
        paths = [url.removeprefix(f"{work.url}/") for url in urls]
        return [describe_parquet(work, path, work.size(path) or 0) for path in paths]
