"""ORC: blocks are stripes."""

from collections.abc import Callable, Iterable
from typing import Any

from daskw2v.corpus.files import Source, TextBlock
from daskw2v.corpus.formats.columns import TextColumns, cut_evenly, get_checked_column, table_format
from daskw2v.extras import Extra

orc = Extra("pyarrow.orc", "arrow")


def _cut(file: Any, source: Source, block_bytes: int) -> list[TextBlock]:
    """Return the blocks of an open file: ranges of stripes of about `block_bytes`."""
    return cut_evenly(source, orc.ORCFile(file).nstripes, block_bytes)


def _open(file: Any, block: TextBlock) -> tuple[Any, Callable[[TextColumns], Iterable[Any]]]:
    """Return the schema of an open file, and a function that yields the stripes of a block.

    Each stripe must fit into memory.
    """
    table = orc.ORCFile(file)
    stripes = range(block.start, block.stop)
    return table.schema, lambda columns: (table.read_stripe(n, columns=columns.names) for n in stripes)


ORC = table_format("orc", "ORC", (".orc",), "stripe", _cut, _open, get_checked_column, expansion=2.0)
