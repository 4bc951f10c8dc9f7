"""Commands that query and index a model."""

from dataclasses import asdict
from typing import Any

import click

from daskw2v.cli.opening import model_argument, open_once
from daskw2v.cli.options import storage_option
from daskw2v.cli.printing import json_option, print_json, print_neighbours
from daskw2v.cli.program import main
from daskw2v.models.index.build import build_index
from daskw2v.models.index.graph import CONNECTIVITY, EXPANSION
from daskw2v.models.index.kinds import KINDS
from daskw2v.models.index.product import PART_SIZE
from daskw2v.models.index.vectors import IndexedVectors
from daskw2v.models.stored.quantization import MOST_PART


@main.command(no_args_is_help=True)
@model_argument
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@click.option("--negative", multiple=True, metavar="WORD", help="Word with negative weight. Repeatable.")
@click.option("--topn", type=click.IntRange(1), default=10, show_default=True, help="How many words to show.")
@click.option("--approximate", is_flag=True, help="Search the index that `daskw2v index` has built.")
@json_option
@storage_option
def similar(
    model: str,
    words: tuple[str, ...],
    negative: tuple[str, ...],
    topn: int,
    approximate: bool,
    as_json: bool,
    storage_options: dict[str, Any],
) -> None:
    """Show the words nearest to the mean of all WORDs.

    MODEL is the work folder of train (for the served version) or the URL of one version.
    """
    vectors = (
        IndexedVectors.open(model, storage_options, in_memory=False)
        if approximate
        else open_once(model, storage_options)
    )
    print_neighbours(vectors.most_similar(positive=list(words), negative=list(negative), topn=topn), as_json)


@main.command(no_args_is_help=True)
@model_argument
@click.argument("a")
@click.argument("b")
@click.argument("c")
@click.option("--topn", type=click.IntRange(1), default=10, show_default=True, help="How many words to show.")
@json_option
@storage_option
def analogy(model: str, a: str, b: str, c: str, topn: int, as_json: bool, storage_options: dict[str, Any]) -> None:
    """Show the words that are to C as B is to A.

    For example: daskw2v analogy MODEL man king woman.
    """
    print_neighbours(open_once(model, storage_options).analogy(a, b, c, topn=topn), as_json)


@main.command(no_args_is_help=True)
@model_argument
@click.option("--kind", type=click.Choice([*KINDS]), default="hnsw", show_default=True, help="A graph or a table.")
@click.option(
    "--connectivity", type=click.IntRange(2), help=f"Links of a word in the graph.  [default: {CONNECTIVITY}]"
)
@click.option("--expansion", type=click.IntRange(1), help=f"Candidates for links.  [default: {EXPANSION}]")
@click.option("--part-size", type=click.IntRange(1, MOST_PART), help=f"Dimensions of a byte.  [default: {PART_SIZE}]")
@click.option("--threads", type=click.IntRange(0), default=0, help="Threads to build with; 0 uses all cores.")
@json_option
@storage_option
def index(
    model: str,
    kind: str,
    connectivity: int | None,
    expansion: int | None,
    part_size: int | None,
    threads: int,
    as_json: bool,
    storage_options: dict[str, Any],
) -> None:
    """Build an index of MODEL for nearest neighbours.

    The kind hnsw is a graph, which finds most of them, and is fastest in large models. The kind int8 is a table of a
    quarter of the vectors' size, which finds all of them. Tables of the kinds product, a 16th, and binary, a 32nd,
    find most.
    """
    summary = build_index(
        model, storage_options, kind=kind, connectivity=connectivity, expansion=expansion, part_size=part_size,
        threads=threads,
    )  # fmt: skip
    if as_json:
        print_json(asdict(summary))
    else:
        click.echo(f"{summary.recall:.1%} of the ten nearest words are found; {summary.size:,} bytes.")
