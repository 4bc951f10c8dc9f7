"""Kinds of input besides files, recognized by the names of types, so that no package of such a type is imported."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import chain
from typing import Any, ClassVar, NamedTuple, TypeGuard

from daskw2v.cluster.connecting import GetClient
from daskw2v.config.choice import Reader, refuse_unread
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.inputs import Inputs, list_names, refused, type_names
from daskw2v.errors import InputError, ParameterError
from daskw2v.progress import Listener
from daskw2v.store.storage import Store
from daskw2v.store.urls import refuse_secret

TextInputs = Any  # `Inputs`, or a type of a package that is not imported
_FUTURES = {("distributed", "Future")}
_TASKS = {("dask", "Delayed"), *_FUTURES}
_BAGS = {("dask", "Bag")}
DASK_TABLES = {("dask", "DataFrame")}
DASK_FRAMES = {*DASK_TABLES, ("dask", "Series")}
FRAMES = {("pandas", "DataFrame"), ("polars", "DataFrame")}
ARROW_TABLES = {("pyarrow", "Table"), ("pyarrow", "RecordBatch")}
ARROW_COLUMNS = {("pyarrow", "ChunkedArray"), ("pyarrow", "Array")}
POLARS_COLUMNS = {("polars", "Series")}
_TABLES = {("pandas", "Series"), *FRAMES, *ARROW_TABLES, *ARROW_COLUMNS, *POLARS_COLUMNS}
_COLUMNS = {("pandas", "Series"), ("dask", "Series"), *ARROW_COLUMNS, *POLARS_COLUMNS}
_DATASETS = {("datasets", "Dataset")}
_REFUSED = {("polars", "LazyFrame"), ("datasets", "DatasetDict"), ("datasets", "IterableDatasetDict")}
_REFUSED |= {("numpy", "ndarray"), ("dask", "Array"), ("daskw2v", "Vectors")}
_DATASET_ROWS = 1 << 16  # rows of a dataset read at once


class InputKind(NamedTuple):
    """A kind of input.

    Parameters
    ----------
    honours
        Fields of `Params` and `Resources` that are read with this kind, but not with all kinds (`honoured_by`).
    """

    honours: tuple[str, ...]


FILES, COLLECTIONS = "files", "collections"
_PHRASES = "phrases", "phrase_min_count", "phrase_threshold", "phrase_scoring", "phrase_delimiter"
_TEXT = "tokenizer", "column", "weight", "errors", "max_bad_blocks", *_PHRASES
KINDS: Mapping[str, Reader] = {
    FILES: InputKind((*_TEXT, "format", "delimiter", "filters")),
    COLLECTIONS: InputKind((*_TEXT, "keep_inputs")),
}


class Derived(ABC):
    """Text that is derived from other data: sessions of events, walks on a graph. Each subclass is a kind of input.

    Attributes
    ----------
    params
        Params of training on such text where a call passes none.
    honours
        Fields of `Params` and `Resources` that are read with this kind, but not with all kinds (`honoured_by`).
    """

    params: ClassVar[Params] = Params()
    honours: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]  # of a dataclass derived from this
            refuse_secret(f.name, getattr(self, f.name))

    @property
    def has_markets(self) -> bool:
        """Whether the data name a market, such as a city, for each word (`vocabulary.markets`)."""
        return False

    @abstractmethod
    def write(
        self, work: Store, params: Params, resources: Resources, client: GetClient, listener: Listener
    ) -> list[Source]:
        """Return the files of the text, in order; write them to the work directory unless they exist there.

        Parameters
        ----------
        work
            The work directory.
        params, resources
            The settings of the call; `params.column` names the files' column of text.
        client
            Returns the cluster.
        listener
            Called with the progress.
        """


def are_names(inputs: TextInputs) -> TypeGuard[Inputs]:
    """Return whether inputs are names of files: a name, or a list or tuple that begins with a name or is empty."""
    if isinstance(inputs, list | tuple):
        return not inputs or isinstance(inputs[0], str | os.PathLike)
    return isinstance(inputs, str | os.PathLike)


def default_params(inputs: TextInputs) -> Params:
    """Return the Params of training on inputs, for a call that passes none."""
    return inputs.params if isinstance(inputs, Derived) else Params()


def check_texts(inputs: TextInputs, params: Params, resources: Resources) -> None:
    """Refuse inputs that hold no text, and options that do not go with the inputs, before an input is read.

    Parameters
    ----------
    inputs
        As in `find_texts`.
    params, resources
        The settings of the call.

    Raises
    ------
    ParameterError
        If `inputs` are of a type that is neither names nor text; or an option is set that does not go with such inputs.
    InputError
        If the list of names is empty, or a DataFrame lacks the column of text or of weights.
    """
    column = params.column
    if are_names(inputs):
        list_names(inputs)
        kind = shown = FILES
    elif isinstance(inputs, Derived):
        kind = shown = type(inputs).__name__
    elif _is_refused(inputs):
        raise refused(inputs, "")
    else:
        kind, shown = COLLECTIONS, f"an input of type {type(inputs).__name__}"
    for settings in (params, resources):
        refuse_unread(settings, "input", kind, list_kinds(type(inputs)), shown)
    if kind != COLLECTIONS:
        return
    if isinstance(inputs, list | tuple) and is_one_of(inputs[0], _BAGS | DASK_FRAMES):
        problem = f"The input is a list of objects of the type {type(inputs[0]).__name__}."
        raise ParameterError(problem, "Give one: dask.bag.concat or dask.dataframe.concat makes it.")
    if params.weight == column:
        raise ParameterError(f"weight={column!r} is the column of the text.", "Name a column of integers.")
    columns = {"column": None if column == Params.column else column, "weight": params.weight}
    for field, name in columns.items():
        if name is not None and is_one_of(inputs, _COLUMNS):
            problem = f"{field}={name!r} is a column of tables, but the input is a {type(inputs).__name__}."
            raise ParameterError(problem, f"Give a table that has this column, or leave {field} out.")
    if is_one_of(inputs, FRAMES | DASK_TABLES):
        for name in (column, params.weight):
            if name is not None:
                check_column(name, list(inputs.columns))


def list_kinds(kind: type | None) -> Mapping[str, Reader]:
    """Return the kinds of input by name: those of `KINDS`, and `kind` if it is a subclass of `Derived`."""
    return {**KINDS, kind.__name__: kind} if kind is not None and issubclass(kind, Derived) else KINDS


def _is_refused(inputs: Any) -> bool:
    """Return whether inputs are of a type that is refused: they have no order, are no text, or are open files."""
    if isinstance(inputs, Derived) or is_one_of(inputs, _TASKS | DASK_FRAMES | _TABLES | _DATASETS | _BAGS):
        return False
    unordered = isinstance(inputs, set | frozenset | Mapping | bytes | bytearray)
    return unordered or is_one_of(inputs, _REFUSED) or hasattr(type(inputs), "read") or not isinstance(inputs, Iterable)


def check_column(column: str, present: list[Any]) -> str:
    """Return the name of the column of a table that a path begins with: the path, or "doc" for the path "doc.body".

    Parameters
    ----------
    column
        The path.
    present
        Names of the table's columns.

    Raises
    ------
    InputError
        If the table has no such column, or several of the name.
    """
    heads = (name for name in present if isinstance(name, str) and column.startswith(f"{name}."))
    root = column if column in present else max(heads, key=len, default=column)
    if (n := present.count(root)) != 1:
        problem = f"There {'are several columns' if n else 'is no column'} {column!r}."
        raise InputError(problem, f"Give column; the columns are: {', '.join(map(str, present))}.")
    return root


def dask_partitions(inputs: Any, column: str, weight: str | None = None) -> list[Any] | None:
    """Return the partitions of inputs that Dask computes, as Delayed objects or futures; None for other inputs.

    Parameters
    ----------
    inputs
        Checked by `check_texts`, and no names.
    column, weight
        Columns of text and of weights, to which a DataFrame is reduced.
    """
    if is_one_of(inputs, DASK_FRAMES):
        if inputs.ndim > 1:
            names = [column] if weight is None else [column, weight]
            inputs = inputs[list(dict.fromkeys(check_column(name, list(inputs.columns)) for name in names))]
        return list(inputs.to_delayed())
    if is_one_of(inputs, _BAGS):
        # Iterators are listed in the task that makes them, so that a retry makes them anew. Iterators that a cluster
        # holds already could be read only once
        has_futures = any(is_one_of(task, _FUTURES) for task in dict(inputs.dask).values())
        if has_futures:
            return list(inputs.to_delayed(optimize_graph=False))
        return list(inputs.map_partitions(list).to_delayed())
    if is_one_of(inputs, _TASKS):
        return [inputs]
    if isinstance(inputs, list | tuple) and all(is_one_of(member, _TASKS) for member in inputs):
        return list(inputs)
    return None


def is_table(value: Any) -> bool:
    """Return whether a value is a table of pandas, polars or Arrow, or a column of such a table."""
    return is_one_of(value, _TABLES)


def local_partitions(inputs: Any) -> Iterator[Any]:
    """Yield the partitions of inputs in this process: tables, columns, or iterables of sentences or records."""
    if is_one_of(inputs, _DATASETS):
        yield from inputs.with_format("arrow").iter(_DATASET_ROWS)
    elif is_table(inputs):
        yield inputs
    elif isinstance(inputs, list | tuple) and is_table(inputs[0]):
        yield from inputs
    else:
        yield _check_sentences(inputs)


def _check_sentences(inputs: Iterable[Any]) -> Iterator[Any]:
    """Yield the sentences of an iterable; refuse an iterable of tables or of names of files.

    Raises
    ------
    ParameterError
        If the first item is a path, the name of a file that exists, or a table.
    """
    sentences = iter(inputs)
    for first in sentences:
        if is_table(first):
            raise ParameterError(f"The input yields tables ({type(first).__name__}).", "Give list(tables).")
        if isinstance(first, os.PathLike) or (isinstance(first, str) and "\n" not in first and os.path.isfile(first)):
            problem = f"The input yields names of files, such as {os.fspath(first)!r}."
            raise ParameterError(problem, "Give list(names) to read these.")
        yield from chain([first], sentences)


def is_one_of(value: Any, kinds: set[tuple[str, str]]) -> bool:
    """Return whether a value is an instance of one of `kinds`, pairs of the package and the name of a type."""
    return any(kind in kinds for kind in type_names(value))
