"""What a model is, for people: its metadata in groups; all of it, as it is, is for `--json`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from daskw2v.models.vectors import Vectors
from daskw2v.params import Params

_LONG = 4  # entries of a list that are still shown
_TITLES = {"corpus": "text", "metrics": "training", "resources": "trained on"}

Rows = list[tuple[str, str]]


def groups_of(vectors: Vectors) -> Iterator[tuple[str, Rows]]:
    """Yield the title and the rows of each group that has any."""
    size = f"{len(vectors):,} words x {vectors.vector_size}"
    single = {name: value for name, value in vectors.metadata.items() if not isinstance(value, Mapping | list)}
    yield "model", [("url", str(vectors.url)), ("size", size), *_rows(single)]
    for name, value in vectors.metadata.items():
        if name not in single and (rows := list(_params(value) if name == "params" else _rows({"": value}))):
            yield _TITLES.get(name, name.replace("_", " ")), rows


def _params(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a row for each heading of Params, with those that are given."""
    heading, under = "", dict[str, str]()
    for f in fields(Params):
        heading = f.metadata["heading"] or heading
        under[f.name] = heading
    given = [name for name, value in values.items() if value is not None]
    for heading in dict.fromkeys(under.get(name, "others") for name in given):
        names = [name for name in given if under.get(name, "others") == heading]
        yield heading.lower(), ", ".join(f"{name} {_brief(values[name])}" for name in names)


def _rows(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaves of nested mappings and lists; what is empty is left out."""
    for key, value in values.items():
        name = " ".join(part for part in (prefix, key.replace("_", " ")) if part)
        if isinstance(value, Mapping):
            yield from _rows(value, name)
        elif isinstance(value, list) and len(value) > _LONG:
            yield name, f"{len(value)} entries (shown by --json)"
        elif isinstance(value, list) and any(isinstance(entry, Mapping) for entry in value):
            for number, entry in enumerate(value):
                yield name if number == 0 else "", _joined(_rows(entry))
        elif value is not None and value != []:
            yield name, _brief(value)


def _joined(rows: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {text}" for name, text in rows)


def _brief(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.4g}"
        case list():
            return ", ".join(map(_brief, value))
    return str(value)
