"""Checks the argument `inputs`: names of files are accepted; values of other types are refused without reading them."""

import os
import reprlib
from collections.abc import Iterator, Sequence
from typing import Any

from daskw2v.errors import InputError, ParameterError
from daskw2v.store.urls import Location, as_url

Inputs = Location | Sequence[Location]  # the sequence is a list or a tuple

_FILES = "Inputs are names of files, not text: "
_SENTENCES = "file.writelines(sentence + '\\n' for sentence in sentences)"
_TOKENS = "file.writelines(json.dumps({'text': tokens}) + '\\n' for tokens in sentences)"
_LISTS = f"write a line of JSON for each sentence, {_TOKENS}, and give the name of this .jsonl file."
_FRAME = "write {}, and give {} with column, the name of the column that holds text."
_TASKS = "let each task write a file, and give the names of the files once all are written."

# By package and name of a type, so that none of these packages is imported
_REMEDIES = {
    ("dask", "Bag"): "write bag.to_textfiles('text/*.txt'), and give 'text/*.txt'.",
    ("dask", "Delayed"): _TASKS,
    ("distributed", "Future"): _TASKS,
    ("dask", "DataFrame"): _FRAME.format("df.to_parquet('text')", "'text'"),
    ("dask", "Series"): _FRAME.format("series.to_frame('text').to_parquet('text')", "'text'"),
    ("pandas", "DataFrame"): _FRAME.format("df.to_parquet('text.parquet')", "'text.parquet'"),
    ("pandas", "Series"): _FRAME.format("series.to_frame('text').to_parquet('text.parquet')", "'text.parquet'"),
    ("polars", "DataFrame"): _FRAME.format("df.write_parquet('text.parquet')", "'text.parquet'"),
    ("polars", "LazyFrame"): _FRAME.format("df.sink_parquet('text.parquet')", "'text.parquet'"),
    ("polars", "Series"): _FRAME.format("series.to_frame('text').write_parquet('text.parquet')", "'text.parquet'"),
    ("pyarrow", "Table"): _FRAME.format("pyarrow.parquet.write_table(table, 'text.parquet')", "'text.parquet'"),
    ("datasets", "Dataset"): _FRAME.format("dataset.to_parquet('text.parquet')", "'text.parquet'"),
    ("datasets", "IterableDataset"): _FRAME.format("dataset.to_parquet('text.parquet')", "'text.parquet'"),
    ("datasets", "DatasetDict"): _FRAME.format("dataset['train'].to_parquet('text.parquet')", "'text.parquet'"),
    ("numpy", "ndarray"): "write numpy.savetxt('text.txt', array, fmt='%s'), and give 'text.txt'.",
}
_PACKAGES = {"dask_expr": "dask"}
_SHOWN = 120  # maximum characters of a value in a message


def list_names(inputs: Inputs) -> list[str]:
    """Return the names of files in the argument `inputs` of a call, in order, as URLs or paths.

    Parameters
    ----------
    inputs
        A URL, path or pattern, or a list or tuple of these.

    Raises
    ------
    ParameterError
        If `inputs` or one of its members has another type. The value is then neither iterated nor computed.
    InputError
        If `inputs` is empty.
    """
    if isinstance(inputs, str | os.PathLike):
        return [as_url(inputs, "input")]
    if not isinstance(inputs, list | tuple):
        raise refused(inputs)
    if not inputs:
        raise InputError("No input is named.", "Give at least one file, folder, URL or pattern.")
    for member in inputs:
        if not isinstance(member, str | os.PathLike):
            raise refused(member)
    return [as_url(member, "input") for member in inputs]


def refused(value: Any, rule: str = _FILES) -> ParameterError:
    """Return the error for an input that is no name, with a remedy that says how to write the value to files.

    Parameters
    ----------
    value
        The input.
    rule
        Text before the remedy; may be empty.
    """
    remedy = _choose_remedy(value)
    if remedy:
        remedy = f"{rule}{remedy}" if rule else f"{remedy[0].upper()}{remedy[1:]}"
    else:
        remedy = "Give text that is not empty, a pathlib.Path, or a list of these."
    return ParameterError(f"input={_shown(value)} is no URL or path.", remedy)


def type_names(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the package and the name of a value's type, and of the types that this type is derived from."""
    for kind in type(value).__mro__:
        package = kind.__module__.partition(".")[0]
        yield _PACKAGES.get(package, package), kind.__name__


def _choose_remedy(value: Any) -> str:
    """Return the advice for a value, such as how to write it to files, in lower case; "" if its type is not known."""
    for kind in type_names(value):
        if remedy := _REMEDIES.get(kind):
            return remedy
    if isinstance(value, list | tuple):
        return _LISTS
    if isinstance(value, set | frozenset):
        return "give sorted(names) if these are names, since a set has no order."
    if hasattr(type(value), "read"):
        return "give the name of the file, not the open file."
    if isinstance(value, Iterator):
        return f"give list(names) if it yields names; if sentences, write {_SENTENCES}, and give this file's name."
    return ""


def _shown(value: Any) -> str:
    """Return a shortened repr of a value, or only the value's type if a repr could be slow or compute something."""
    if type(value).__module__ != "builtins" or isinstance(value, Iterator):
        return f"<{type(value).__module__}.{type(value).__qualname__}>".replace("<builtins.", "<")
    return shorten(reprlib.repr(value))


def shorten(text: str) -> str:
    """Return a text, cut to the 120 characters that a value may have in a message."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
