"""Commands that ask a model, export it, or tell what it is."""

from dataclasses import asdict
from typing import Any

import click

from daskw2v.cli.facts import groups_of
from daskw2v.cli.printing import print_groups, print_json, print_neighbours
from daskw2v.cli.program import main, model_argument, open_once
from daskw2v.models.export import export
from daskw2v.models.index.build import build_index
from daskw2v.models.index.vectors import IndexedVectors
from daskw2v.models.vectors import Vectors
from daskw2v.options import storage_option


def _summary(vectors: Vectors) -> dict[str, Any]:
    return {"words": len(vectors), "vector_size": vectors.vector_size, "url": vectors.url, **vectors.metadata}


@main.command(no_args_is_help=True)
@model_argument
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@click.option("--negative", multiple=True, metavar="WORD", help="Word to be unlike. Repeatable.")
@click.option("--topn", type=click.IntRange(1), default=10, show_default=True, help="How many words to show.")
@click.option("--approximate", is_flag=True, help="Ask MODEL's index, which `daskw2v index` has built.")
@storage_option
def similar(
    model: str,
    words: tuple[str, ...],
    negative: tuple[str, ...],
    topn: int,
    approximate: bool,
    storage_options: dict[str, Any],
) -> None:
    """Show the words most like all WORDs together.

    MODEL is the work folder of train (its latest version counts) or the URL of one version.
    """
    vectors = (
        IndexedVectors.open(model, storage_options, in_memory=False)
        if approximate
        else open_once(model, storage_options)
    )
    print_neighbours(vectors.most_similar(positive=list(words), negative=list(negative), topn=topn))


@main.command(no_args_is_help=True)
@model_argument
@click.argument("a")
@click.argument("b")
@click.argument("c")
@click.option("--topn", type=click.IntRange(1), default=10, show_default=True, help="How many words to show.")
@storage_option
def analogy(model: str, a: str, b: str, c: str, topn: int, storage_options: dict[str, Any]) -> None:
    """Show the words that are to C as B is to A.

    For example: daskw2v analogy MODEL man king woman.
    """
    print_neighbours(open_once(model, storage_options).analogy(a, b, c, topn=topn))


@main.command("export", no_args_is_help=True)
@model_argument
@click.argument("url")
@click.option("--format", help="Format to write; by the ending of URL when not given.")
@storage_option
def export_command(model: str, url: str, format: str | None, storage_options: dict[str, Any]) -> None:
    """Write MODEL to URL in a format that other tools read.

    text (.txt, .vec) and binary (.bin) are word2vec's; parquet, safetensors; projector is TensorBoard's; static is
    what sentence-transformers and model2vec load.
    """
    export(open_once(model, storage_options), url, format, storage_options)
    click.echo(url)


@main.command(no_args_is_help=True)
@model_argument
@click.option("--connectivity", type=click.IntRange(2), default=16, show_default=True, help="Links of a word.")
@click.option("--expansion", type=click.IntRange(1), default=128, show_default=True, help="Candidates for links.")
@click.option("--threads", type=click.IntRange(0), default=0, help="To build with; all cores by default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@storage_option
def index(
    model: str, connectivity: int, expansion: int, threads: int, as_json: bool, storage_options: dict[str, Any]
) -> None:
    """Build an index of MODEL, which finds most of the nearest words in a fraction of the time."""
    summary = build_index(model, storage_options, connectivity=connectivity, expansion=expansion, threads=threads)
    if as_json:
        print_json(asdict(summary))
    else:
        click.echo(f"{summary.recall:.1%} of the ten nearest words are found; {summary.size:,} bytes.")


@main.command(no_args_is_help=True)
@model_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@storage_option
def info(model: str, as_json: bool, storage_options: dict[str, Any]) -> None:
    """Show what MODEL is: parameters, corpus, sizes, loss."""
    vectors = open_once(model, storage_options)
    if as_json:
        print_json(_summary(vectors))
    else:
        print_groups(groups_of(vectors))
