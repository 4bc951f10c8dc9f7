"""`daskw2v import`."""

from typing import Any

import click

from daskw2v.cli.options import storage_option
from daskw2v.cli.printing import json_option, print_named
from daskw2v.cli.program import main
from daskw2v.models.formats.importing import import_vectors


@main.command("import", no_args_is_help=True)
@click.argument("file")
@click.argument("url")
@click.option("--format", help="Format of FILE; decided by its suffix when not given.")
@json_option
@storage_option
def import_command(file: str, url: str, format: str | None, as_json: bool, storage_options: dict[str, Any]) -> None:
    """Write the vectors of FILE, from another tool, to URL: a folder, which is a MODEL.

    Formats: text (.txt, .vec) and binary (.bin) of word2vec and gensim; fasttext (.bin, .ftz), its model with n-grams;
    safetensors. A name may end in .gz. Where URL has a suffix of `export`, it is a file of that format.
    """
    import_vectors(file, format, storage_options).save(url, storage_options=storage_options)
    print_named("url", url, as_json)
