"""The commands `train`, `items`, `walks` and `demo`, which train, and `estimate` and `warm-up`, about training."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from daskw2v.cli import demo as demo_corpus
from daskw2v.cli.config_file import EVENTS, GRAPH, WALKS, read_config, read_table
from daskw2v.cli.fields import choose_settings, explicit_values, setting_options
from daskw2v.cli.options import Decorator, config_option, decorated
from daskw2v.cli.printing import Output, cosine_facts, print_lines, print_table, prints_output
from daskw2v.cli.program import main
from daskw2v.cluster.console import show_progress
from daskw2v.collections.kinds import Derived, TextInputs
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import Settings
from daskw2v.corpus.tokenizers import is_import_path
from daskw2v.errors import counted
from daskw2v.evaluation import evaluate
from daskw2v.models.queries.vectors import Vectors
from daskw2v.safe_text import escaped
from daskw2v.sequences.settings import EdgeList, Sessions, Walks
from daskw2v.sequences.sources import Events, Graph
from daskw2v.training.pipeline import train
from daskw2v.training.preparation.before_reading import estimate, plan
from daskw2v.training.preparation.plan import automatic_choice
from daskw2v.training.warm_up import warm_up

# Function from the context, the names of files and the TOML file to inputs and settings
_ChooseInputs = Callable[[click.Context, list[str], Path | None], tuple[TextInputs, Params, Resources]]
_OF_EDGES = ("weight",)  # options that set a field of edges, not of rows of text


def training_command(
    metavar: str, *owners: type[Settings] | Settings, inputs: type[Derived] | None = None
) -> Callable[[_ChooseInputs], Callable[..., Any]]:
    """Return a decorator that makes a command which trains, from a function that returns inputs and settings.

    Parameters
    ----------
    metavar
        The help's name for a file.
    owners
        Settings whose fields are options; an instance has the options' defaults as values.
    inputs
        The class of inputs that the files are read as; None for text.
    """
    work_help = "Folder or URL for everything that the run writes; workers share it."
    parts: Sequence[Decorator] = (
        click.argument("inputs", nargs=-1, required=True, metavar=f"{metavar}..."),
        click.option("--work", required=True, envvar="DASKW2V_WORK", help=work_help),
        config_option,
        click.option("--report", metavar="URL", help="Write a report about the model to this URL: one HTML file."),
        prints_output,
        setting_options(*owners, inputs=inputs),
        click.pass_context,
    )

    def decorate(function: _ChooseInputs) -> Callable[..., Any]:
        @wraps(function)
        def command(
            ctx: click.Context, /, inputs: tuple[str, ...], config: Path | None, work: str, report: str | None, **_: Any
        ) -> Output:
            texts, params, resources = function(ctx, list(inputs), config)
            return train_on(texts, work, params, resources, report)

        return decorated(command, *parts)

    return decorate


def train_on(inputs: TextInputs, work: str, params: Params, resources: Resources, report: str | None) -> Output:
    """Train on inputs, write a report to the URL `report` unless it is None, and return the command's output."""
    append_current_folder(params)
    vectors, page = _train(inputs, work, params, resources), None
    facts = _facts(vectors)
    if report is not None:
        sets: dict[str, Any] = dict(resources.eval_sets)
        evaluation = evaluate(vectors, **sets, storage_options=resources.storage_options)
        page = write_report(vectors, report, evaluation=evaluation, storage_options=resources.storage_options)

    def show() -> None:
        print_table(("", ""), _rows(facts))
        if page is not None:
            print_lines(page)

    return Output({**facts, "report": page}, show)


def append_current_folder(params: Params) -> None:
    """Append the current folder to `sys.path` if the tokenizer is a package.module:function; not under `python -P`.

    Local workers inherit the path. The folder is searched last, so that its files replace no installed module.
    """
    folder = os.getcwd()
    if is_import_path(params.tokenizer) and not sys.flags.safe_path and folder not in sys.path:
        sys.path.append(folder)


def write_report(*args: Any, **options: Any) -> str:
    """Call `reports.page.report`, whose module takes half a second to import; return the URL of the report."""
    return str(import_module("daskw2v.reports.page").report(*args, **options))


@main.command("train", no_args_is_help=True)
@training_command("INPUT", Params, Resources)
def train_command(ctx: click.Context, files: list[str], config: Path | None) -> tuple[TextInputs, Params, Resources]:
    """Train vectors on text at INPUT (files, folders, patterns, URLs).

    If the command is interrupted, the same command resumes where it stopped. Options can also be set in
    the environment, such as DASKW2V_VECTOR_SIZE=200, or in a TOML file. The command line takes
    precedence, then the environment.
    """
    return files, *choose_settings(ctx, read_config(config))


@main.command("items", no_args_is_help=True)
@training_command("EVENTS", Sessions, Events.params, Resources, inputs=Events)
def items_command(ctx: click.Context, files: list[str], config: Path | None) -> tuple[TextInputs, Params, Resources]:
    """Train vectors of items on the sessions of users, from EVENTS (Parquet, or CSV).

    A row of EVENTS says which user was at which item when; CSV has a header. Options, the environment and the
    TOML file are as for train; the table [events] of the file has the options about events. The same command
    resumes an interrupted one.
    """
    values = read_config(config, (EVENTS,))
    sessions = read_table(Sessions, values, EVENTS, config, explicit_values(ctx))
    return Events(files, sessions), *choose_settings(ctx, values, Events.params)


@main.command("walks", no_args_is_help=True)
@training_command("EDGES", EdgeList, Walks, Graph.params, Resources, inputs=Graph)
def walks_command(ctx: click.Context, files: list[str], config: Path | None) -> tuple[TextInputs, Params, Resources]:
    """Train vectors of nodes on random walks, from EDGES (Parquet, CSV, or text).

    A row of EDGES names two nodes; CSV has a header, other text has columns separated by blanks. Options, the
    environment and the TOML file are as for train; the tables [graph] and [walks] of the file have the options
    about edges and walks. --seed is that of walks and of training. The same command resumes an interrupted one.
    """
    values, options = read_config(config, (GRAPH, WALKS)), explicit_values(ctx)
    edges = read_table(EdgeList, values, GRAPH, config, options)
    walks = read_table(Walks, values, WALKS, config, options)
    return Graph(files, edges, walks), *choose_settings(ctx, values, Graph.params, _OF_EDGES)


@main.command()
@click.option("--work", default="demo-work", show_default=True, help="Folder for everything that the demo writes.")
@prints_output
def demo(work: str) -> Output:
    """Train on the text of Python's library, and show what was learned."""
    files = demo_corpus.write_text(Path(work) / "text")
    vectors = _train([str(path) for path in files], work, demo_corpus.PARAMS, Resources())
    facts = _facts(vectors)
    neighbours = {word: vectors.most_similar(positive=[word], topn=6) for word in demo_corpus.WORDS if word in vectors}

    def show() -> None:
        print_table(("", ""), _rows(facts))
        rows = ((word, ", ".join(neighbour for neighbour, _ in near)) for word, near in neighbours.items())
        print_table(("word", "its nearest words"), rows)
        program = "daskw2v" if shutil.which("daskw2v") else sys.argv[0]
        commands = f"similar {work} socket", f"info {work}", f"export {work} vectors.txt"
        tries = (f"  {program} {command}" for command in (*commands, "train YOUR_TEXT/*.txt --work my-work"))
        click.echo("\n".join(["\nNow try:", *tries]))

    return Output({**facts, "neighbours": {word: cosine_facts(near) for word, near in neighbours.items()}}, show)


@main.command("estimate", no_args_is_help=True)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--types", type=click.IntRange(1), help="Distinct words of the text; estimated when not given.")
@click.option("--words", type=click.IntRange(1), help="Words in the vocabulary; estimated when not given.")
@click.option(
    "--network",
    metavar="RATE",
    help="Each worker is a machine of its own, with such a link to the others, as in 10Gbps, and the memory of "
    "--memory-limit.",
)
@click.option("--work", help="Folder or URL of a run: the words of text that it holds are counted.")
@config_option
@prints_output
@setting_options(Params, Resources)
@click.pass_context
def estimate_command(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    types: int | None,
    words: int | None,
    network: str | None,
    work: str | None,
    config: Path | None,
    **_: Any,
) -> Output:
    """Print the memory and time that training on INPUT needs, estimated from the sizes of the files.

    The options are those of `train`. With a scheduler, the estimate is for its workers; otherwise for a local cluster,
    which is not started. Words are counted where --work holds the text already. Time is that of training alone, by
    each strategy that can; a star marks the one that is trained with, which `--strategy auto` chooses. Steps are
    assumed to be as fast as on the machine that they were measured on.
    """
    params, resources = choose_settings(ctx, read_config(config))
    if work is None:
        forecast = estimate(inputs, params=params, resources=resources, types=types, words=words, network=network)
    elif (types, words, network) == (None, None, None):
        forecast = plan(inputs, work=work, params=params, resources=resources)
    else:
        raise click.UsageError("--work counts the words of a run: leave out --types, --words and --network.")

    def show() -> None:
        for kind in forecast.workers:
            print_table(kind.columns, kind.memory.rows())
            for note in (*forecast.notes(), *kind.memory.notes, kind.verdict):
                print_lines(note)
        print_table(forecast.columns, forecast.rows())

    return Output(forecast.as_dict(), show)


@main.command("warm-up")
@click.option("--processes", type=click.IntRange(1), help="Processes that compile; one for each core by default.")
@prints_output
def warm_up_command(processes: int | None) -> Output:
    """Compile all kernels for this processor, so that runs need not.

    The compiled kernels are stored in NUMBA_CACHE_DIR, or else in XDG_CACHE_HOME or ~/.cache.
    """
    result = warm_up(processes)
    for objective, strategy in result.skipped:
        click.echo(f"Note: {objective} with {strategy} is skipped: it needs a package that is not installed.", err=True)
    names, pairs = ("objective", "strategy"), (result.trained, result.skipped)
    compiled, skipped = ([dict(zip(names, pair, strict=True)) for pair in listed] for listed in pairs)
    text = "All kernels are compiled"
    if compiled:
        text = f"Kernels of {counted(len(compiled), 'combination')} were compiled in {result.seconds:.0f} s"
    facts = {"folder": str(result.folder), "compiled": compiled, "skipped": skipped, "seconds": result.seconds}
    return Output(facts, lambda: click.echo(f"{text}: {result.folder}"))


def _train(inputs: TextInputs, work: str, params: Params, resources: Resources) -> Vectors:
    """Train, as `train` does, with progress and notes on stderr; return the vectors."""
    console = Console(stderr=True, highlight=False)
    with show_progress(console) as listener:
        vectors = train(inputs, work=work, params=params, resources=resources, listener=listener)
    for note in _notes(vectors.metadata):
        console.print(f"Note: {escaped(note)}", markup=False, soft_wrap=True)
    return vectors


def _facts(vectors: Vectors) -> dict[str, Any]:
    """Return the facts of a trained model that commands print; None for facts that earlier releases did not write."""
    metadata = vectors.metadata
    metrics, compiling = metadata["metrics"], metadata["metrics"].get("compiling_seconds", 0.0)
    return {
        "url": vectors.url,
        "words": len(vectors),
        "vector_size": vectors.vector_size,
        "tokens": metadata["corpus"]["tokens"],
        "known_tokens": metadata.get("vocabulary", {}).get("total"),
        "phrases": [joined["n_phrases"] for joined in metadata.get("phrases") or ()],
        "words_per_second": metrics["words_per_second"],
        "seconds": metrics["seconds"] - compiling,
        "compiling_seconds": compiling,
        "loss": metrics["loss"],
        "choice": automatic_choice(metadata),
        **{name: metadata.get(name) for name in ("held_out", "stopped")},
    }


def _rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield rows of a name and a text for the table of the facts that `_facts` returns."""
    known, compiling, loss = facts["known_tokens"], facts["compiling_seconds"], facts["loss"]
    yield "model", str(facts["url"])
    if choice := facts["choice"]:
        yield "strategy", f"{choice['strategy']}, chosen: {choice['why']}"
    yield "text", f"{facts['tokens']:,} tokens" + (f", {known:,} of them in the vocabulary" if known else "")
    if facts["phrases"]:
        yield "phrases", ", then ".join(f"{number:,}" for number in facts["phrases"])
    yield "size", f"{facts['words']:,} words x {facts['vector_size']}"
    after = f", after compiling kernels for {compiling:,.1f} s" if compiling else ""
    yield "speed", f"{facts['words_per_second']:,} words/s in {facts['seconds']:,.1f} s{after}"
    yield "loss", "none: no pair of words was left" if loss is None else f"{loss:.4f}"
    if held_out := facts["held_out"]:
        there = "unknown" if held_out["loss"] is None else f"{held_out['loss']:.4f}"
        yield "held out", f"{held_out['tokens']:,} tokens, loss there {there}"
    if stopped := facts["stopped"]:
        yield "stopped", f"after {counted(stopped['epochs'], 'epoch')}: {stopped['reason']}"


def _notes(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield notes, from a model's metadata, about lines changed, skipped or cut, and listed words that do not occur."""
    report = metadata["corpus"]["report"]
    if count := report["replaced"]:
        yield f"{counted(count, 'line')} had invalid Unicode, which was replaced by U+FFFD."
    if count := report["skipped"]:
        yield f"{counted(count, 'line')} could not be read and {'was' if count == 1 else 'were'} left out."
    if report["first_offence"]:
        yield f"The first of them: {report['first_offence']}."
    if count := report["cut"]:
        yield f"Lines longer than 4 MiB were cut at whitespace, {counted(count, 'time')}."
    vocabulary = metadata.get("vocabulary", {})  # earlier releases wrote none
    if count := vocabulary.get("missing", 0):
        examples = ", ".join(vocabulary.get("missing_words", ()))
        yield f"{counted(count, 'word')} of the given vocabulary did not occur in the text, such as {examples}."
