"""The command line: `daskw2v train`, and what is done with a model afterwards."""

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
from distributed import Client
from rich.console import Console
from rich.table import Table

from daskw2v import demo as demo_corpus
from daskw2v.cluster import connect
from daskw2v.console import watching
from daskw2v.errors import Daskw2vError
from daskw2v.evaluation import evaluate
from daskw2v.models.export import export
from daskw2v.models.vectors import Vectors
from daskw2v.options import Command, Many, choose, fields_of, storage_option, wants_traceback
from daskw2v.params import Params, Resources
from daskw2v.train import train

_LONG = 4  # entries of a list that a table still shows


class Program(click.Group):
    """The group of all commands: errors become one line, and every command takes `--debug`."""

    command_class = Command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; leave with 2 after an error of ours or of the system, with 130 after Ctrl-C."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `daskw2v similar ... | head` is no error: click ends quietly
            raise
        except (Daskw2vError, OSError) as error:
            if wants_traceback(ctx):
                traceback.print_exc()
            else:
                click.echo(f"Error: {error}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("Interrupted. The same command goes on where it stopped.", err=True)
            ctx.exit(130)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="daskw2v")
def main() -> None:
    """Train word vectors on any Dask cluster, and use them."""


_model = click.argument("model")


def _print_table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> None:
    table = Table(*columns, box=None, pad_edge=False, show_header=any(columns))
    for row in rows:
        table.add_row(*row)
    # A pipe has no width: whatever reads it wants whole lines.
    width = None if sys.stdout.isatty() else 10_000
    Console(width=width, markup=False, highlight=False).print(table)


def _print_neighbours(neighbours: Iterable[tuple[str, float]]) -> None:
    _print_table(("word", "cosine"), ((word, f"{cosine:.4f}") for word, cosine in neighbours))


def _print_json(values: Mapping[str, Any]) -> None:
    click.echo(json.dumps(values, indent=1, ensure_ascii=False))


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Yield the leaves of nested mappings: {"a": {"b": 1}} gives ("a.b", "1")."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _brief(value)


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list) and len(value) > _LONG:
        return f"{len(value)} entries (shown by --json)"
    return str(value)


@contextmanager
def _cluster(resources: Resources) -> Iterator[Client]:
    """Connect so that Ctrl-C reaches this process only, which ends its local workers without tracebacks."""
    with ExitStack() as stack:
        before = signal.getsignal(signal.SIGINT)
        if resources.scheduler is None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited by the worker processes
        try:
            client = stack.enter_context(connect(resources))
        finally:
            signal.signal(signal.SIGINT, before)
        yield client


def _train(inputs: list[str], work: str, params: Params, resources: Resources) -> Vectors:
    """Train with progress on stderr, and say on stdout what came out."""
    console = Console(stderr=True, highlight=False)
    with _cluster(resources) as client, watching(console) as listener:
        vectors = train(inputs, work=work, params=params, resources=resources, client=client, listener=listener)
    for note in _notes(vectors.metadata):
        console.print(f"Note: {note}", markup=False, soft_wrap=True)
    _print_table(("", ""), _outcome(vectors))
    return vectors


def _outcome(vectors: Vectors) -> Iterator[tuple[str, str]]:
    """Yield what came out; models of earlier versions do not tell all of it."""
    corpus, metrics = vectors.metadata["corpus"], vectors.metadata["metrics"]
    known, loss = vectors.metadata.get("vocabulary", {}).get("total"), metrics["loss"]
    yield "model", str(vectors.url)
    yield "text", f"{corpus['tokens']:,} tokens" + (f", {known:,} of them in the vocabulary" if known else "")
    yield "size", f"{len(vectors):,} words x {vectors.vector_size}"
    yield "speed", f"{metrics['words_per_second']:,} words/s in {metrics['seconds']:,.1f} s"
    yield "loss", "none: no pair of words was left" if loss is None else f"{loss:.4f}"


def _notes(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was not as the user might think: lines that were changed, words that were not found."""
    report = metadata["corpus"]["report"]
    if count := report["replaced"]:
        yield f"{_count(count, 'line')} held invalid Unicode, which U+FFFD now stands for."
    if count := report["skipped"]:
        yield f"{_count(count, 'line')} could not be read and {'was' if count == 1 else 'were'} left out."
    if report["first_offence"]:
        yield f"The first of them: {report['first_offence']}."
    if count := report["cut"]:
        yield f"Lines longer than 4 MiB were cut at whitespace, {_count(count, 'time')}."
    vocabulary = metadata.get("vocabulary", {})  # models of earlier versions have none
    if count := vocabulary.get("missing", 0):
        shown = ", ".join(vocabulary.get("missing_words", ()))
        yield f"{_count(count, 'word')} of the given vocabulary did not occur in the text, such as {shown}."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _import_from_here() -> None:
    """Let a tokenizer stand in the current directory, as with `python -m`; local workers inherit the path."""
    here = os.getcwd()
    if not sys.flags.safe_path and here not in sys.path:
        sys.path.insert(0, here)


def _open_once(model: str, storage_options: Mapping[str, Any]) -> Vectors:
    """Open a model of which all is read once at most: to keep it in memory would only take longer."""
    return Vectors.open(model, storage_options, in_memory=False)


def _summary(vectors: Vectors) -> dict[str, Any]:
    return {"words": len(vectors), "vector_size": vectors.vector_size, "url": vectors.url, **vectors.metadata}


@main.command("train", no_args_is_help=True)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "--work",
    required=True,
    envvar="DASKW2V_WORK",
    help="Folder or URL where everything is kept; workers share it.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="DASKW2V_CONFIG",
    help="TOML file with values for the options below, such as vector_size = 200.",
)
@fields_of(Params, Resources)
@click.pass_context
def train_command(ctx: click.Context, /, inputs: tuple[str, ...], work: str, config: Path | None, **_: Any) -> None:
    """Train vectors on text at INPUT (files, patterns, URLs).

    Stopped at any point, the same command goes on where it stopped. Options may also stand in the
    environment, such as DASKW2V_VECTOR_SIZE=200, or in a TOML file; the command line wins, then the
    environment.
    """
    params, resources = choose(ctx, config)
    _import_from_here()
    _train(list(inputs), work, params, resources)


@main.command(no_args_is_help=True)
@_model
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
    vectors = _open_once(model, storage_options)
    _print_neighbours(vectors.most_similar(positive=list(words), negative=list(negative), topn=topn))


@main.command(no_args_is_help=True)
@_model
@click.argument("a")
@click.argument("b")
@click.argument("c")
@click.option("--topn", type=click.IntRange(1), default=10, show_default=True, help="How many words to show.")
@storage_option
def analogy(model: str, a: str, b: str, c: str, topn: int, storage_options: dict[str, Any]) -> None:
    """Show the words that are to C as B is to A.

    For example: daskw2v analogy MODEL man king woman.
    """
    _print_neighbours(_open_once(model, storage_options).analogy(a, b, c, topn=topn))


@main.command("evaluate", no_args_is_help=True)
@_model
@click.option("--similarity", cls=Many, metavar="FILE...", help="Word pairs with human scores.")
@click.option("--analogy", cls=Many, metavar="FILE...", help="Questions of four words a line.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@storage_option
def evaluate_command(
    model: str,
    similarity: tuple[str, ...],
    analogy: tuple[str, ...],
    as_json: bool,
    storage_options: dict[str, Any],
) -> None:
    """Measure MODEL on word similarity and analogy files."""
    if not (similarity or analogy):
        raise click.UsageError("Nothing to measure: give --similarity FILE..., --analogy FILE... or both.")
    vectors = Vectors.open(model, storage_options)
    report = evaluate(vectors, list(similarity), list(analogy), storage_options)
    if as_json:
        _print_json(report)
    else:
        _print_table(("measure", "value"), _flat(report))


@main.command("export", no_args_is_help=True)
@_model
@click.argument("url")
@click.option("--format", help="Format to write; by the ending of URL when not given.")
@storage_option
def export_command(model: str, url: str, format: str | None, storage_options: dict[str, Any]) -> None:
    """Write MODEL to URL in a format that other tools read.

    text (.txt, .vec) and binary (.bin) are word2vec's; parquet, safetensors; projector is TensorBoard's.
    """
    export(_open_once(model, storage_options), url, format, storage_options)
    click.echo(url)


@main.command(no_args_is_help=True)
@_model
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@storage_option
def info(model: str, as_json: bool, storage_options: dict[str, Any]) -> None:
    """Show what MODEL is: parameters, corpus, sizes, loss."""
    vectors = _open_once(model, storage_options)
    if as_json:
        _print_json(_summary(vectors))
    else:
        _print_table(("", ""), _flat(_summary(vectors)))


@main.command()
@click.option("--work", default="demo-work", show_default=True, help="Folder where everything is kept.")
def demo(work: str) -> None:
    """Train on the text of Python's library, and show what was learned."""
    files = demo_corpus.write_text(Path(work) / "text")
    vectors = _train([str(path) for path in files], work, demo_corpus.PARAMS, Resources())
    rows = (
        (word, ", ".join(neighbour for neighbour, _ in vectors.most_similar(positive=[word], topn=6)))
        for word in demo_corpus.WORDS
        if word in vectors
    )
    _print_table(("word", "its nearest words"), rows)
    program = "daskw2v" if shutil.which("daskw2v") else sys.argv[0]
    click.echo("\nNow try:")
    for command in (
        f"similar {work} socket",
        f"info {work}",
        f"export {work} vectors.txt",
        "train YOUR_TEXT/*.txt --work my-work",
    ):
        click.echo(f"  {program} {command}")


if __name__ == "__main__":
    main()
