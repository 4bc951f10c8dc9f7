"""Checks of a table of features before any text is read, by the schemas of its files."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from daskw2v.corpus.files import Source
from daskw2v.corpus.hive import columns_of
from daskw2v.errors import InputError, counted
from daskw2v.extras import Extra
from daskw2v.features.table import kind_of, read_types
from daskw2v.store.threads import in_threads

pa = Extra("pyarrow", "arrow")


def check_table(
    place: str, sources: Sequence[Source], options: Mapping[str, Any], timeout: float, weights: Mapping[str, float]
) -> None:
    """Refuse files that are no table of features; of their rows, no more than the first block of CSV is read.

    Raises
    ------
    InputError
        If one cannot be read or lacks a column; if a column is of a type that is no feature, or of two kinds; if none
        has a weight above 0, one that has a weight is missing, or names of folders tell one; or if no file has a row.
    """
    found = in_threads(partial(read_types, options=options, timeout=timeout), sources)
    kinds = dict[str, tuple[Any, Any, str]]()  # of each column: what collects it, its type, and the first such file
    for source, (types, _) in zip(sources, found, strict=True):
        for name, type_ in types.items():
            if weights.get(name, 1.0) == 0 or pa.types.is_null(type_):  # all values are missing
                continue
            kind = kind_of(name, type_, source.url)
            before, its_type, url = kinds.setdefault(name, (kind, type_, source.url))
            if kind is not before:
                raise InputError(
                    f"Column {name!r} is {type_} in {source.url}, and {its_type} in {url}.",
                    "Give one type in all files: numbers such as 5.0, or categories.",
                )
    names = dict.fromkeys(name for types, _ in found for name in types)
    folders = _folders(sources) - names.keys()
    for name in weights.keys() - names.keys() - folders:
        raise InputError(
            f"{place} has no column {name!r}, which has a weight.", f"Its features are: {', '.join(names)}."
        )
    for name in sorted(folders):
        if weights.get(name, 1.0) != 0:
            raise InputError(
                f"Only names of folders tell {name!r} of the rows in {place}: it would be no feature.",
                f"Write it as a column, or leave it out: feature_weights={{{name!r}: 0}}.",
            )
    if all(weights.get(name, 1.0) == 0 for name in names):
        raise InputError(f"All columns of {place} weigh 0: {', '.join(names)}.", "Give one of them a weight above 0.")
    if all(empty for _, empty in found):
        raise InputError(f"{place} has no row, in {counted(len(sources), 'file')}.", "Write the table again.")


def _folders(sources: Sequence[Source]) -> set[str]:
    """Return the columns that names of folders tell, and that differ: a folder may hold the table of one day alone."""
    values = [set(columns_of(source.url).items()) for source in sources]
    return {name for some in values for name, _ in some ^ values[0]}
