"""`daskw2v info`: a readable summary of a model's metadata, in groups; `--json` prints all of it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from daskw2v.cli.opening import model_argument, open_once
from daskw2v.cli.options import storage_option
from daskw2v.cli.printing import json_option, print_groups, print_json
from daskw2v.cli.program import main
from daskw2v.config.choice import by_heading
from daskw2v.config.params import Params
from daskw2v.models.queries.vectors import Vectors

_LONG = 4  # most entries of a list that are shown
_TITLES = {"corpus": "text", "metrics": "training", "resources": "trained on"}

Facts = list[tuple[str, str]]


@main.command(no_args_is_help=True)
@model_argument
@json_option
@storage_option
def info(model: str, as_json: bool, storage_options: dict[str, Any]) -> None:
    """Show the metadata of MODEL: parameters, corpus, sizes, loss."""
    vectors = open_once(model, storage_options)
    if as_json:
        print_json(_summary(vectors))
    else:
        print_groups(groups_of(vectors))


def _summary(vectors: Vectors) -> dict[str, Any]:
    return {"words": len(vectors), "vector_size": vectors.vector_size, "url": vectors.url, **vectors.metadata}


def groups_of(vectors: Vectors) -> Iterator[tuple[str, Facts]]:
    """Yield the title and the rows of each group that has any."""
    size = f"{len(vectors):,} words x {vectors.vector_size}"
    single = {name: value for name, value in vectors.metadata.items() if not isinstance(value, Mapping | list)}
    yield "model", [("url", str(vectors.url)), ("size", size), *_rows(single)]
    for name, value in vectors.metadata.items():
        if name not in single and (rows := list(_params(value) if name == "params" else _rows({"": value}))):
            yield _TITLES.get(name, name.replace("_", " ")), rows


def _params(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a row for each heading of Params, with the given values."""
    under = {known.field.name: heading for heading, of in by_heading(Params).items() for known in of}
    given = [name for name, value in values.items() if value is not None]
    for heading in dict.fromkeys(under.get(name, "others") for name in given):
        names = [name for name in given if under.get(name, "others") == heading]
        yield heading.lower(), ", ".join(f"{name} {_brief(values[name])}" for name in names)


def _rows(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaves of nested mappings and lists, without empty ones."""
    for key, value in values.items():
        name = " ".join(part for part in (prefix, key.replace("_", " ")) if part)
        if isinstance(value, Mapping):
            yield from _rows(value, name)
        elif isinstance(value, list) and len(value) > _LONG:
            yield name, f"{len(value)} entries (shown by --json)"
        elif isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
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
