"""`daskw2v train` and `daskw2v demo`."""

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from daskw2v.cli import demo as demo_corpus
from daskw2v.cli.config_file import read_config
from daskw2v.cli.fields import choose, fields_of
from daskw2v.cli.importing import import_from_here
from daskw2v.cli.options import CommandFunction, config_option
from daskw2v.cli.printing import print_table, say
from daskw2v.cli.program import main
from daskw2v.cluster.console import show_progress
from daskw2v.collections.kinds import Derived, TextInputs
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import Settings
from daskw2v.errors import counted
from daskw2v.escapes import escaped
from daskw2v.evaluation import evaluate
from daskw2v.models.vectors import Vectors
from daskw2v.training.pipeline import train
from daskw2v.training.plan import automatic_choice


def write_report(*args: Any, **options: Any) -> str:
    """Write a report, by the function of that name, whose plots are loaded only now: that takes half a second."""
    return str(import_module("daskw2v.reports.page").report(*args, **options))


def _train(inputs: TextInputs, work: str, params: Params, resources: Resources) -> Vectors:
    """Train with progress on stderr, and print the result on stdout."""
    console = Console(stderr=True, highlight=False)
    with show_progress(console) as listener:
        vectors = train(inputs, work=work, params=params, resources=resources, listener=listener)
    for note in _notes(vectors.metadata):
        console.print(f"Note: {escaped(note)}", markup=False, soft_wrap=True)
    print_table(("", ""), _outcome(vectors))
    return vectors


def _outcome(vectors: Vectors) -> Iterator[tuple[str, str]]:
    """Yield the rows of the result; metadata of models of earlier releases lacks some."""
    corpus, metrics = vectors.metadata["corpus"], vectors.metadata["metrics"]
    known, loss = vectors.metadata.get("vocabulary", {}).get("total"), metrics["loss"]
    yield "model", str(vectors.url)
    if choice := automatic_choice(vectors.metadata):
        yield "strategy", f"{choice['strategy']}, chosen by auto: {choice['why']}"
    yield "text", f"{corpus['tokens']:,} tokens" + (f", {known:,} of them in the vocabulary" if known else "")
    if phrases := vectors.metadata.get("phrases"):
        yield "phrases", ", then ".join(f"{found['n_phrases']:,}" for found in phrases)
    yield "size", f"{len(vectors):,} words x {vectors.vector_size}"
    compiling = metrics.get("compiling_seconds", 0.0)
    after = f", after compiling kernels for {compiling:,.1f} s" if compiling else ""
    yield "speed", f"{metrics['words_per_second']:,} words/s in {metrics['seconds'] - compiling:,.1f} s{after}"
    yield "loss", "none: no pair of words was left" if loss is None else f"{loss:.4f}"
    if held_out := vectors.metadata.get("held_out"):
        yield "held out", f"{held_out['tokens']:,} tokens, loss there {_shown(held_out['loss'])}"
    if stopped := vectors.metadata.get("stopped"):
        yield "stopped", f"after {counted(stopped['epochs'], 'epoch')}: {stopped['reason']}"


def _shown(loss: float | None) -> str:
    return "unknown" if loss is None else f"{loss:.4f}"


def _notes(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield notes about lines that were changed or skipped, and words that were not found."""
    report = metadata["corpus"]["report"]
    if count := report["replaced"]:
        yield f"{counted(count, 'line')} had invalid Unicode, which was replaced by U+FFFD."
    if count := report["skipped"]:
        yield f"{counted(count, 'line')} could not be read and {'was' if count == 1 else 'were'} left out."
    if report["first_offence"]:
        yield f"The first of them: {report['first_offence']}."
    if count := report["cut"]:
        yield f"Lines longer than 4 MiB were cut at whitespace, {counted(count, 'time')}."
    vocabulary = metadata.get("vocabulary", {})  # models of earlier releases have none
    if count := vocabulary.get("missing", 0):
        shown = ", ".join(vocabulary.get("missing_words", ()))
        yield f"{counted(count, 'word')} of the given vocabulary did not occur in the text, such as {shown}."


def trains(
    metavar: str, *owners: type[Settings] | Settings, inputs: type[Derived] | None = None
) -> Callable[[CommandFunction], CommandFunction]:
    """Give a command that trains its argument, the files, and its options.

    Parameters
    ----------
    metavar
        What the help calls a file.
    owners
        Settings whose fields are options; an instance has their defaults as values.
    inputs
        What the files are read as, if not as text.
    """
    parts: Sequence[Callable[[Any], Any]] = (
        click.argument("inputs", nargs=-1, required=True, metavar=f"{metavar}..."),
        click.option(
            "--work",
            required=True,
            envvar="DASKW2V_WORK",
            help="Folder or URL for everything that the run writes; workers share it.",
        ),
        config_option,
        click.option("--report", metavar="URL", help="Write a report about the model to this URL: one HTML file."),
        fields_of(*owners, inputs=inputs),
        click.pass_context,
    )
    return lambda function: reduce(lambda made, part: part(made), reversed(parts), function)


def train_on(inputs: TextInputs, work: str, params: Params, resources: Resources, report: str | None) -> None:
    """Train on inputs, print the result, and write a report to a URL if one is given."""
    import_from_here(params)
    vectors = _train(inputs, work, params, resources)
    if report is not None:
        sets: dict[str, Any] = dict(resources.eval_sets)
        evaluation = evaluate(vectors, **sets, storage_options=resources.storage_options)
        say(write_report(vectors, report, evaluation=evaluation, storage_options=resources.storage_options))


@main.command("train", no_args_is_help=True)
@trains("INPUT", Params, Resources)
def train_command(
    ctx: click.Context, /, inputs: tuple[str, ...], work: str, config: Path | None, report: str | None, **_: Any
) -> None:
    """Train vectors on text at INPUT (files, folders, patterns, URLs).

    If the command is interrupted, the same command resumes where it stopped. Options can also be set in
    the environment, such as DASKW2V_VECTOR_SIZE=200, or in a TOML file. The command line takes
    precedence, then the environment.
    """
    train_on(list(inputs), work, *choose(ctx, read_config(config)), report)


@main.command()
@click.option("--work", default="demo-work", show_default=True, help="Folder for everything that the demo writes.")
def demo(work: str) -> None:
    """Train on the text of Python's library, and show what was learned."""
    files = demo_corpus.write_text(Path(work) / "text")
    vectors = _train([str(path) for path in files], work, demo_corpus.PARAMS, Resources())
    rows = (
        (word, ", ".join(neighbour for neighbour, _ in vectors.most_similar(positive=[word], topn=6)))
        for word in demo_corpus.WORDS
        if word in vectors
    )
    print_table(("word", "its nearest words"), rows)
    program = "daskw2v" if shutil.which("daskw2v") else sys.argv[0]
    click.echo("\nNow try:")
    for command in (
        f"similar {work} socket",
        f"info {work}",
        f"export {work} vectors.txt",
        "train YOUR_TEXT/*.txt --work my-work",
    ):
        click.echo(f"  {program} {command}")
