"""Commands that query, describe and index a model."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from daskw2v.cli.options import storage_option
from daskw2v.cli.printing import Output, neighbours_output, print_groups, prints_output
from daskw2v.cli.program import main
from daskw2v.config.choice import group_by_heading
from daskw2v.config.params import Params
from daskw2v.models.index.kinds import CONNECTIVITY, EXPANSION, KINDS, PART_SIZE
from daskw2v.models.index.vectors import IndexedVectors, build_index
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.quantization import MAX_PART_SIZE

_MAX_ENTRIES = 4  # of a list that are shown
_TITLES = {"corpus": "text", "metrics": "training", "resources": "trained on"}

Facts = list[tuple[str, str]]

model_argument = click.argument("model")


def open_on_disk(model: str, storage_options: Mapping[str, Any]) -> Vectors:
    """Open a model without loading its rows into memory, as a command reads each row at most once."""
    return Vectors.open(model, storage_options, in_memory=False)


@main.command(no_args_is_help=True)
@model_argument
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@click.option("--negative", multiple=True, metavar="WORD", help="Word with negative weight. Repeatable.")
@click.option("--topn", type=click.IntRange(1), default=10, show_default=True, help="How many words to show.")
@click.option("--approximate", is_flag=True, help="Search the index that `daskw2v index` has built.")
@prints_output
@storage_option
def similar(
    model: str,
    words: tuple[str, ...],
    negative: tuple[str, ...],
    topn: int,
    approximate: bool,
    storage_options: dict[str, Any],
) -> Output:
    """Show the words nearest to the mean of all WORDs.

    MODEL is the work folder of train (for the served version) or the URL of one version.
    """
    vectors = (IndexedVectors if approximate else Vectors).open(model, storage_options, in_memory=False)
    return neighbours_output(vectors.most_similar(positive=list(words), negative=list(negative), topn=topn))


@main.command(no_args_is_help=True)
@model_argument
@click.argument("a")
@click.argument("b")
@click.argument("c")
@click.option("--topn", type=click.IntRange(1), default=10, show_default=True, help="How many words to show.")
@prints_output
@storage_option
def analogy(model: str, a: str, b: str, c: str, topn: int, storage_options: dict[str, Any]) -> Output:
    """Show the words that are to C as B is to A.

    For example: daskw2v analogy MODEL man king woman.
    """
    return neighbours_output(open_on_disk(model, storage_options).analogy(a, b, c, topn=topn))


@main.command(no_args_is_help=True)
@model_argument
@click.option("--kind", type=click.Choice([*KINDS]), default="hnsw", show_default=True, help="A graph or a table.")
@click.option(
    "--connectivity", type=click.IntRange(2), help=f"Links of a word in the graph.  [default: {CONNECTIVITY}]"
)
@click.option("--expansion", type=click.IntRange(1), help=f"Candidates for links.  [default: {EXPANSION}]")
@click.option(
    "--part-size", type=click.IntRange(1, MAX_PART_SIZE), help=f"Dimensions of a byte.  [default: {PART_SIZE}]"
)
@click.option("--threads", type=click.IntRange(0), default=0, help="Threads to build with; 0 uses all cores.")
@prints_output
@storage_option
def index(model: str, storage_options: dict[str, Any], **options: Any) -> Output:
    """Build an index of MODEL for nearest neighbours.

    The kind hnsw is a graph, which finds most of them, and is fastest in large models. The kind int8 is a table of a
    quarter of the vectors' size, which finds all of them. Tables of the kinds product, a 16th, and binary, a 32nd,
    find most.
    """
    summary = build_index(model, storage_options, **options)
    text = f"{summary.recall:.1%} of the ten nearest words are found; {summary.size:,} bytes."
    return Output(asdict(summary), partial(click.echo, text))


@main.command(no_args_is_help=True)
@model_argument
@prints_output
@storage_option
def info(model: str, storage_options: dict[str, Any]) -> Output:
    """Show the metadata of MODEL: parameters, corpus, sizes, loss."""
    vectors = open_on_disk(model, storage_options)
    facts = {"words": len(vectors), "vector_size": vectors.vector_size, "url": vectors.url, **vectors.metadata}
    return Output(facts, lambda: print_groups(make_groups(vectors)))


def make_groups(vectors: Vectors) -> Iterator[tuple[str, Facts]]:
    """Yield the title and the rows of each group of a model's facts; a row is a name and a text.

    Empty groups are left out.
    """
    size = f"{len(vectors):,} words x {vectors.vector_size}"
    single = {name: value for name, value in vectors.metadata.items() if not isinstance(value, Mapping | list)}
    yield "model", [("url", str(vectors.url)), ("size", size), *_leaves(single)]
    for name, value in vectors.metadata.items():
        if name not in single and (rows := list(_params(value) if name == "params" else _leaves({"": value}))):
            yield _TITLES.get(name, name.replace("_", " ")), rows


def _params(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a row for each heading of Params: the heading, and one text of names and values; None is left out."""
    headings = {known.field.name: heading for heading, group in group_by_heading(Params).items() for known in group}
    set_names = [name for name, value in values.items() if value is not None]
    for heading in dict.fromkeys(headings.get(name, "others") for name in set_names):
        names = [name for name in set_names if headings.get(name, "others") == heading]
        yield heading.lower(), ", ".join(f"{name} {_format_value(values[name])}" for name in names)


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each leaf of nested mappings; None and empty lists are left out.

    A leaf's name is its path of keys, joined by spaces. A list of mappings has one leaf per mapping, of which only the
    first is named. Any other list is one leaf. A list of more than `_MAX_ENTRIES` entries is one leaf with its length.
    """
    for key, value in values.items():
        name = " ".join(part for part in (prefix, key.replace("_", " ")) if part)
        if isinstance(value, Mapping):
            yield from _leaves(value, name)
        elif isinstance(value, list) and len(value) > _MAX_ENTRIES:
            yield name, f"{len(value)} entries (shown by --json)"
        elif isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
            for number, entry in enumerate(value):
                yield name if number == 0 else "", _join(_leaves(entry))
        elif value is not None and value != []:
            yield name, _format_value(value)


def _join(rows: Iterable[tuple[str, str]]) -> str:
    """Return names and texts as one text: "name text, name text"."""
    return ", ".join(f"{name} {text}" for name, text in rows)


def _format_value(value: Any) -> str:
    """Return a value as short text for people."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.4g}"
        case list():
            return ", ".join(map(_format_value, value))
    return str(value)
