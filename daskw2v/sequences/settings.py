"""Settings of sequences: the layout of edges, random walks, and how events are cut into sessions."""

from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any

from daskw2v.config.settings import FLAG, TEXT, Constraint, Settings, integer, is_number, number, one_of, setting
from daskw2v.errors import ParameterError

_NUMBER = number(0, open_low=True)
_DURATION = Constraint(lambda v: TEXT.check(v) or _NUMBER.check(v), "a number > 0, or a duration such as '30 min'", str)


def _is_metapath(value: Any) -> bool:
    """Return whether a value is a list of types that can be repeated, or an empty list."""
    named = isinstance(value, list | tuple) and all(map(TEXT.check, value))
    return named and (not value or (len(value) > 1 and value[0] == value[-1]))


_METAPATH = Constraint(_is_metapath, "a list of two or more types, the last of which is the first", tuple, item="TYPE")
_POWERS = [1 << k for k in range(17)]
_POWER = Constraint(lambda v: is_number(v, Integral) and v in _POWERS, f"a power of two in 1..{_POWERS[-1]}", int)
_BIAS = number(1e-6, 1e6)
_TYPES = ("source_type", "target_type")


@dataclass(frozen=True, kw_only=True)
class EdgeList(Settings):
    """The layout of edges in files.

    Columns of Parquet have names, and so do columns of `.csv` and `.tsv` files, in the first row of each file. Other
    text files have no header: spaces or tabs separate the columns source, target and, as far as they are set, weight,
    source type and target type. Lines that begin with # or % are comments; further columns are ignored.

    Nodes are integers if they are in all columns and files. If one column of any file has strings, all nodes are
    strings, as written. Columns of CSV and other text count as integers, and with `strings` as strings.

    A type is an integer or a string, such as author, paper or venue. A node has the same one in all its edges. There
    are at most 64. Walks along a metapath read them, and other walks refuse them.

    Raises
    ------
    ParameterError
        If a value is outside its range, the message names field, value and range; if only one column of types is given,
        or two columns have one name.

    Examples
    --------
    >>> edges = daskw2v.EdgeList(source="author", target="paper", weight="citations", directed=True)
    >>> edges.columns
    ['author', 'paper', 'citations']
    """

    source: str = setting("source", "column of the node that an edge leaves", TEXT, heading="Graph")
    target: str = setting("target", "column of the node that it leads to", TEXT)
    weight: str | None = setting(
        None,
        "column of its weight, a number above 0; any name where text has no header; all weights are 1 when not given",
        TEXT,
    )
    directed: bool = setting(False, "edges lead only from source to target", FLAG)
    strings: bool = setting(False, "nodes in CSV and other text are strings, not integers; Parquet has a type", FLAG)
    source_type: str | None = setting(
        None, "column of the type of the source, for a metapath; any name where text has no header", TEXT
    )
    target_type: str | None = setting(None, "column of the type of the target", TEXT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.source_type is None) != (self.target_type is None):
            problem = f"source_type={self.source_type!r}, but target_type={self.target_type!r}."
            raise ParameterError(problem, "Name a column of types for both, or for none.")
        if len({*self.columns}) < len(self.columns):
            problem = f"Columns of edges have the names {', '.join(self.columns)}."
            raise ParameterError(problem, "Give each column a name of its own.")

    @property
    def roles(self) -> dict[str, str]:
        """The columns that are read, by what they hold, in the order of text without a header."""
        roles = "source", "target", "weight", *_TYPES
        return {role: column for role in roles if (column := getattr(self, role)) is not None}

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are read."""
        return list(self.roles.values())

    @property
    def described(self) -> dict[str, Any]:
        """The settings that change the graph, by name; columns of types only if they are set."""
        return {name: value for name, value in asdict(self).items() if name not in _TYPES or value is not None}


@dataclass(frozen=True, kw_only=True)
class Walks(Settings):
    """Number and kind of random walks.

    With p and q of 1 only the weights of edges count (DeepWalk, Perozzi et al. 2014); else a step also depends on the
    node before (node2vec, Grover and Leskovec 2016).

    With a metapath (metapath2vec, Dong, Chawla and Swami 2017, section 3.2) walks begin at the nodes of its first type.
    A step leads to a neighbour of the next type, by the weights of the edges to them; a walk ends at a node without
    one. The last type is the first of the next repetition. Types are columns of the edges (`EdgeList`).

    Raises
    ------
    ParameterError
        If a value is outside its range, the message names field, value and range; or if p or q is not 1 with a
        metapath.

    Examples
    --------
    >>> walks = daskw2v.Walks(number=5, length=20, p=0.5, q=2)
    >>> vectors = daskw2v.walks("edges.txt", walks=walks, vector_size=8, listener=None)
    >>> len(vectors)
    9
    """

    number: int = setting(10, "walks from each node where one begins", integer(1, 1 << 20), heading="Graph")
    length: int = setting(80, "most nodes of a walk; it ends early at a node without edges", integer(1, 1 << 20))
    p: float = setting(1.0, "a step back to the previous node has the bias 1/p", _BIAS)
    q: float = setting(1.0, "a step to a node without an edge from the previous one has the bias 1/q", _BIAS)
    metapath: tuple[str, ...] = setting(
        (), "types of the nodes of a walk, repeated: author paper author; any types when not given", _METAPATH
    )
    seed: int = setting(1, "seed of all draws", integer(0, 2**63 - 1))
    partitions: int | None = setting(
        None,
        "into how many partitions the graph is divided, which changes no walk; with 1 each worker holds all of it; as "
        "many as the workers' memory needs when not given",
        _POWER,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metapath and (self.p, self.q) != (1.0, 1.0):
            raise ParameterError(
                f"p={self.p:g} and q={self.q:g}, but steps along metapath={self.metapath} depend on weights alone.",
                "Leave out p and q, or the metapath.",
            )

    @property
    def described(self) -> dict[str, Any]:
        """The settings that change the walks, by name; the metapath only if it is set."""
        left_out = ("partitions",) if self.metapath else ("partitions", "metapath")
        return {name: value for name, value in asdict(self).items() if name not in left_out}


def check_types(edges: EdgeList, walks: Walks) -> None:
    """Check that edges have types if and only if walks have a metapath, which alone reads them.

    Raises
    ------
    ParameterError
        If there is a metapath without columns of types, or columns of types without a metapath.
    """
    if edges.source_type is not None and not walks.metapath:
        raise ParameterError(
            f"source_type={edges.source_type!r} and target_type={edges.target_type!r} change nothing without metapath.",
            "Give the metapath of the walks, or leave the types out.",
        )
    if edges.source_type is None and walks.metapath:
        problem = f"metapath={walks.metapath}, but the edges have no types."
        raise ParameterError(problem, "Name the columns of types by source_type and target_type.")


@dataclass(frozen=True, kw_only=True)
class Sessions(Settings):
    """The rules by which events are cut into sessions.

    Raises
    ------
    ParameterError
        If a value is outside its range, the message names field, value and range; or if `half_life` is given with
        `per`.

    Examples
    --------
    >>> sessions = daskw2v.Sessions(user="customer", item="product", gap="30 min")
    >>> sessions.roles
    {'user': 'customer', 'item': 'product', 'time': 'time'}
    """

    user: str = setting("user", "column of who was there", TEXT, heading="Events")
    item: str = setting("item", "column of items, integers or strings", TEXT)
    time: str = setting("time", "column of times, numbers, timestamps, dates or ISO 8601 text", TEXT)
    gap: str | None = setting(
        None,
        "time without an event that ends a session, in the unit of numeric times or such as '30 min'; nothing ends one "
        "when not given",
        _DURATION,
    )
    per: str | None = setting(
        None,
        "read each file, or each folder of files, once, in order of time: sessions that are open at its end go on in "
        "the next one, or end there without a gap; all files are read together when not given",
        one_of("file", "folder"),
    )
    least: int = setting(2, "fewest events of a session; shorter ones are dropped", integer(1))
    drop_repeats: bool = setting(False, "drop items that repeat the one before", FLAG)
    event_weight: str | None = setting(
        None, "column of how often an event counts; a part of one is a probability", TEXT
    )
    half_life: str | None = setting(
        None,
        "age, before the latest event, at which an event counts half, in the unit of numeric times or such as '30 "
        "days'; refused with per, whose parts are not read again",
        _DURATION,
    )
    goal: str | None = setting(
        None,
        "column that is true for what a session led to, such as a purchase: the last one is a context of all items of "
        "its session, however far",
        TEXT,
    )
    market: str | None = setting(
        None,
        "column of the market of the item, such as its city, for market_negative; an item of several markets is in "
        "that in which it is most often in sessions",
        TEXT,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.half_life is not None and self.per is not None:
            raise ParameterError(
                f"half_life={self.half_life!r} would change all sessions with each new {self.per}, but per reads each "
                "once.",
                "Leave one of the two out. A retraining forgets by Policy(old_share=...).",
            )

    @property
    def carries(self) -> bool:
        """Whether sessions go on from one part to the next."""
        return self.per is not None and self.gap is not None

    @property
    def roles(self) -> dict[str, str]:
        """The columns that are read, by what they hold."""
        columns = {"user": self.user, "item": self.item, "time": self.time, "weight": self.event_weight}
        columns |= {"goal": self.goal, "market": self.market}
        return {role: column for role, column in columns.items() if column is not None}
