"""Commands that import and export models in formats of other tools."""

from typing import Any

import click

from daskw2v.cli.models import model_argument, open_on_disk
from daskw2v.cli.options import storage_option
from daskw2v.cli.printing import Output, named_output, prints_output
from daskw2v.cli.program import main
from daskw2v.models.formats.export import WITH_NGRAMS, check_option, export, format_by_name
from daskw2v.models.formats.fasttext import PART_SIZE
from daskw2v.models.formats.importing import import_vectors
from daskw2v.models.queries.encoding import DEFAULT_SIF
from daskw2v.models.stored.quantization import MAX_PART_SIZE


@main.command("import", no_args_is_help=True)
@click.argument("file")
@click.argument("url")
@click.option("--format", help="Format of FILE; decided by its suffix when not given.")
@prints_output
@storage_option
def import_command(file: str, url: str, format: str | None, storage_options: dict[str, Any]) -> Output:
    """Write the vectors of FILE, from another tool, to URL: a folder, which is a MODEL.

    Formats: text (.txt, .vec) and binary (.bin) of word2vec and gensim; fasttext (.bin, .ftz), its model with n-grams;
    safetensors. A name may end in .gz. Where URL has a suffix of `export`, it is a file of that format.
    """
    import_vectors(file, format, storage_options).save(url, storage_options=storage_options)
    return named_output("url", url)


@main.command("export", no_args_is_help=True)
@model_argument
@click.argument("url")
@click.option("--format", help="Format to write; decided by the suffix of URL when not given.")
@click.option("--prefix", metavar="COLUMNS", type=int, help="Write the first columns alone, as a model by themselves.")
@click.option(
    "--sif",
    metavar="[A]",
    type=float,
    is_flag=False,
    flag_value=DEFAULT_SIF,
    help="For static: let a word of probability p count A / (A + p) in a text's mean; "
    f"{DEFAULT_SIF:g} without a number.",
)
@click.option(
    "--ngrams", type=click.IntRange(1), help="For fasttext and ftz: write this many n-grams, the most frequent."
)
@click.option(
    "--part-size",
    type=click.IntRange(1, MAX_PART_SIZE),
    help=f"For ftz: dimensions that a byte stands for, {PART_SIZE} by default; 1 for int8.",
)
@prints_output
@storage_option
def export_command(
    model: str, url: str, format: str | None, prefix: int | None, ngrams: int | None, **options: Any
) -> Output:
    """Write MODEL to URL in a format of another tool.

    Formats: text (.txt, .vec) and binary (.bin) of word2vec; fasttext, its model with n-grams; ftz, the same made
    small; parquet; safetensors; faiss, with the words in URL.words; lance; projector, for TensorBoard; static, for
    sentence-transformers, model2vec and the Hugging Face Hub.
    """
    written = format or format_by_name(url)
    if ngrams is not None and written is not None:
        check_option("--ngrams", f"--ngrams {ngrams}", written, *WITH_NGRAMS)
    storage_options = options.pop("storage_options")
    vectors = open_on_disk(model, storage_options)
    vectors = vectors if prefix is None else vectors.prefix(prefix)
    vectors = vectors if ngrams is None else vectors.prune(ngrams)
    export(vectors, url, format, storage_options, **options)
    return named_output("url", url)
