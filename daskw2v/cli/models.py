"""Commands that ask a model, export it, or tell what it is."""

from typing import Any

import click

from daskw2v.cli.printing import flat, print_json, print_neighbours, print_table
from daskw2v.cli.program import main, model_argument, open_once
from daskw2v.models.export import export
from daskw2v.models.vectors import Vectors
from daskw2v.options import storage_option


def _summary(vectors: Vectors) -> dict[str, Any]:
    return {"words": len(vectors), "vector_size": vectors.vector_size, "url": vectors.url, **vectors.metadata}


@main.command(no_args_is_help=True)
@model_argument
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@click.option("--negative", multiple=True, metavar="WORD", help="Word to be unlike. Repeatable.")
@click.option("--topn", type=click.IntRange(1), default=10, show_default=True, help="How many words to show.")
@storage_option
def similar(
    model: str, words: tuple[str, ...], negative: tuple[str, ...], topn: int, storage_options: dict[str, Any]
) -> None:
    """Show the words most like all WORDs together.

    MODEL is the work folder of train (its latest version counts) or the URL of one version.
    """
    vectors = open_once(model, storage_options)
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

    text (.txt, .vec) and binary (.bin) are word2vec's; parquet, safetensors; projector is TensorBoard's.
    """
    export(open_once(model, storage_options), url, format, storage_options)
    click.echo(url)


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
        print_table(("", ""), flat(_summary(vectors)))
