"""Commands that evaluate a model, compare it with another, and write a report."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, get_args

import click

from daskw2v.cli.models import model_argument, open_on_disk
from daskw2v.cli.options import CommandFunction, Decorator, Many, storage_option
from daskw2v.cli.printing import Output, json_option, named_output, print_json, print_lines, print_table, prints_output
from daskw2v.cli.program import main
from daskw2v.evaluation import COLUMNS, Evaluation, evaluate
from daskw2v.evaluation.analogy import Method
from daskw2v.evaluation.datasets import datasets
from daskw2v.models.queries.vectors import Vectors
from daskw2v.reports.compare import compare
from daskw2v.reports.page import report
from daskw2v.reports.wordmap import LAYOUTS

_KINDS = {
    "similarity": "Word pairs with human scores.",
    "analogy": "Questions of four words on each line, or pairs of words, one relation in each file.",
    "categorization": "Words with their classes.",
    "classification": "Texts with labels; FILE,FILE,FILE for training, validation and test.",
    "outliers": "Folders of topics, each with words that belong to it and outliers.",
}

_METHODS = get_args(Method)


def _choices(flag: str, name: str, choices: Iterable[str], **options: Any) -> Decorator:
    """Return a decorator that adds an option with these choices to a command; the help shows the default."""
    return click.option(flag, name, type=click.Choice([*choices]), show_default=True, **options)


def _set_options(function: CommandFunction) -> CommandFunction:
    """Add an option for each kind of evaluation set to a command."""
    for kind, help in reversed(_KINDS.items()):
        function = click.option(f"--{kind}", cls=Many, metavar="FILE...", help=help)(function)
    return function


def _evaluate(vectors: Vectors, sets: dict[str, Any], storage_options: dict[str, Any]) -> Evaluation:
    """Return the evaluation of vectors on sets; `sets` has their URLs by kind."""
    return evaluate(vectors, **sets, storage_options=storage_options)


@main.command("evaluate", no_args_is_help=True)
@model_argument
@_set_options
@_choices("--method", "methods", _METHODS, default=_METHODS[:2], cls=Many, help="Methods for analogies.")
@click.option("--cnn", is_flag=True, help="Also classify texts with a convolutional network (needs PyTorch).")
@click.option("--restrict-vocab", type=click.IntRange(1), help="In analogies, use only so many frequent words.")
@json_option
@click.option("--markdown", is_flag=True, help="Print a table in Markdown.")
@storage_option
def evaluate_command(
    model: str,
    methods: tuple[Method, ...],
    cnn: bool,
    restrict_vocab: int | None,
    as_json: bool,
    markdown: bool,
    storage_options: dict[str, Any],
    **sets: Any,
) -> None:
    """Evaluate MODEL on published sets; `daskw2v datasets` lists them."""
    if not any(sets.values()):
        raise click.UsageError(f"Nothing to evaluate: give {' or '.join(f'--{kind} FILE...' for kind in _KINDS)}.")
    if as_json and markdown:
        raise click.UsageError("--json and --markdown cannot both be printed: give one of them.")
    if cnn and not sets["classification"]:
        raise click.UsageError("--cnn classifies texts: give --classification FILE... too, or leave it out.")
    if restrict_vocab is not None and not sets["analogy"]:
        raise click.UsageError("--restrict-vocab is for analogies: give --analogy FILE... too, or leave it out.")
    options: dict[str, Any] = {"analogy_methods": methods, "restrict_vocab": restrict_vocab}
    options["classification_methods"] = ("logistic", "cnn") if cnn else ("logistic",)
    evaluation = evaluate(Vectors.open(model, storage_options), **sets, **options, storage_options=storage_options)
    if as_json:
        print_json(evaluation.as_dict())
    elif markdown:
        print_lines(evaluation.as_markdown())
    else:
        print_table(COLUMNS, evaluation.cells())


@main.command("compare", no_args_is_help=True)
@click.argument("first")
@click.argument("second")
@click.option("--word", "words", cls=Many, metavar="WORD...", help="Words whose neighbours are shown.")
@_set_options
@click.option("--html", metavar="URL", help="Write a report about SECOND, compared with FIRST, to this URL.")
@prints_output
@storage_option
def compare_command(
    first: str, second: str, words: tuple[str, ...], html: str | None, storage_options: dict[str, Any], **sets: Any
) -> Output:
    """Show how the models FIRST and SECOND differ."""
    earlier, later = (open_on_disk(model, storage_options) for model in (first, second))
    before, after = (_evaluate(model, sets, storage_options) for model in (earlier, later))
    chosen = list(words) or None
    if html is not None:
        options: dict[str, Any] = {"evaluation": after, "other_evaluation": before, "words": chosen}
        return named_output("url", report(later, html, other=earlier, storage_options=storage_options, **options))
    comparison = compare(earlier, later, chosen, evaluations=(before, after))
    return Output(comparison.as_dict(), lambda: print_table(comparison.columns, comparison.rows()))


@main.command("report", no_args_is_help=True)
@model_argument
@click.argument("url")
@_set_options
@click.option("--other", metavar="MODEL", help="Model to compare with, such as the previous version.")
@click.option("--word", "words", cls=Many, metavar="WORD...", help="Words whose neighbours are shown.")
@_choices("--map", "map_method", LAYOUTS, default="graph", help="Method that lays out words in two dimensions.")
@prints_output
@storage_option
def report_command(
    model: str,
    url: str,
    other: str | None,
    words: tuple[str, ...],
    map_method: str,
    storage_options: dict[str, Any],
    **sets: Any,
) -> Output:
    """Write a report about MODEL to URL: one HTML file, which needs no network."""
    vectors = open_on_disk(model, storage_options)
    before = None if other is None else open_on_disk(other, storage_options)
    options: dict[str, Any] = {"words": list(words) or None, "map_method": map_method}
    options["evaluation"] = _evaluate(vectors, sets, storage_options)
    options["other_evaluation"] = None if before is None else _evaluate(before, sets, storage_options)
    return named_output("url", report(vectors, url, other=before, storage_options=storage_options, **options))


@main.command("datasets")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--folder", default="datasets", show_default=True, help="Folder or URL to download to.")
@prints_output
def datasets_command(names: tuple[str, ...], folder: str) -> Output:
    """List published evaluation sets, or download the sets NAME."""
    sets = datasets(*names, folder=folder)

    def show() -> None:
        if names:
            print_lines("\n".join(str(dataset.path) for dataset in sets.values()))
            return
        rows = ((name, d.kind, d.licence, d.url or f"by hand, from {d.page}") for name, d in sets.items())
        print_table(("name", "kind", "licence", "from"), rows)

    return Output({name: asdict(dataset) for name, dataset in sets.items()}, show)
