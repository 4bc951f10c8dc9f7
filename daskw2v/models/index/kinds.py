"""The kinds of index."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from daskw2v.config.registry import find
from daskw2v.errors import ParameterError
from daskw2v.models.index.binary import BinaryIndex
from daskw2v.models.index.graph import CONNECTIVITY, EXPANSION, GraphIndex
from daskw2v.models.index.product import PART_SIZE, ProductIndex
from daskw2v.models.index.searcher import Searcher
from daskw2v.models.index.table import TableIndex


class IndexKind(NamedTuple):
    """A kind of index.

    Parameters
    ----------
    searcher
        Makes an empty index of a shape (words, dimensions), an effort and its options.
    options
        Defaults of the options that building one reads, by name.
    """

    searcher: Callable[..., Searcher]
    options: Mapping[str, int]


KINDS = {
    "hnsw": IndexKind(GraphIndex, {"connectivity": CONNECTIVITY, "expansion": EXPANSION}),
    "int8": IndexKind(TableIndex, {}),
    "binary": IndexKind(BinaryIndex, {}),
    "product": IndexKind(ProductIndex, {"part_size": PART_SIZE}),
}


def options_of(kind: str, values: Mapping[str, int | None]) -> dict[str, int]:
    """Return the options of an index; the kind's default for an option that is None.

    Raises
    ------
    ParameterError
        If there is no such kind, or it does not read an option that is not None.
    """
    defaults = find(KINDS, "kind", kind).options
    chosen = {name: value for name, value in values.items() if value is not None}
    for name in chosen.keys() - defaults.keys():
        readers = " or ".join(repr(other) for other, read in KINDS.items() if name in read.options)
        raise ParameterError(
            f"kind={kind!r} does not read {name}={chosen[name]}.", f"Leave it out, or give kind={readers}."
        )
    return {**defaults, **chosen}
