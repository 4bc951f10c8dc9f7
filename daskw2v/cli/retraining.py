"""`daskw2v retrain`, for schedulers that call it regularly."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from daskw2v.cli.config_file import TABLES, get_required, make_inputs, make_settings, read_config, read_table
from daskw2v.cli.fields import choose_settings, setting_options
from daskw2v.cli.options import config_option, storage_option
from daskw2v.cli.printing import Output, print_table, prints_output
from daskw2v.cli.program import main
from daskw2v.cli.training import append_current_folder
from daskw2v.cli.versions import reason_option, request_option, versions
from daskw2v.cluster.console import show_progress
from daskw2v.collections.kinds import default_params
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.retraining.gates import Gates
from daskw2v.retraining.notify import Notices
from daskw2v.retraining.outcome import Outcome, Summary
from daskw2v.retraining.policy import Policy
from daskw2v.retraining.promote import promote
from daskw2v.retraining.retrain import retrain

_NAMES = ("inputs", "work", *TABLES, "policy", "gates", "notices")  # in the TOML file, besides names of options

# Fields of Resources that a promotion reads
_PROMOTION_FIELDS = ("eval_similarity", "eval_analogy", "eval_categorization", "storage_options", "store_timeout")


@main.command("retrain", no_args_is_help=True)
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@click.option("--work", envvar="DASKW2V_WORK", help="Folder or URL for everything that runs write; workers share it.")
@config_option
@click.option("--full", is_flag=True, help="Train from scratch, on all text.")
@click.option("--webhook", envvar="DASKW2V_WEBHOOK", show_envvar=False, help="URL to post the summary to; never shown.")
@prints_output
@setting_options(Params, Resources)
@click.pass_context
def retrain_command(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    work: str | None,
    config: Path | None,
    full: bool,
    webhook: str | None,
    **_: Any,
) -> Output:
    """Train a new version on new text at INPUT, and serve it if it passes the gates.

    All settings can be in the TOML file: inputs = ["text/*.txt"], work = "my-work", the options below as for train, and
    the tables [policy] (text, old_share, alpha, epochs, anchor, align, index, keep), [gates] and [notices]. With a
    table [events], the options about events of items, inputs are events, and other defaults are those of items; with
    [graph], and [walks], they are edges, as of walks. The command line takes precedence.

    Exit codes: 0 a new version is served; 2 an error; 3 no text is new; 4 a gate stopped the version; 5 another run
    holds the work directory; 6 another process changed what is served meanwhile; 7 the version is finished, and not
    served. Except with 0, the run has not changed what is served.
    """
    values = read_config(config, _NAMES)
    policy = read_table(Policy, values, "policy", config)
    gates, notices = read_table(Gates, values, "gates", config), read_table(Notices, values, "notices", config)
    if webhook:
        notices = notices.replace(webhook=webhook)
    texts = make_inputs(list(inputs) or get_required(values, "inputs", "INPUT"), values, config)
    settings = {name: value for name, value in values.items() if name not in _NAMES}
    params, resources = choose_settings(ctx, settings, default_params(texts))
    append_current_folder(params)
    signal.signal(signal.SIGTERM, _exit)
    with show_progress() as listener:
        summary = retrain(
            texts,
            work=work or get_required(values, "work", "--work"),
            params=params,
            resources=resources,
            policy=policy,
            gates=gates,
            notices=notices,
            full=full,
            listener=listener,
        )
    return Output(summary.as_dict(), lambda: print_table(("", ""), _rows(summary)), int(summary.outcome))


@versions.command("promote", no_args_is_help=True)
@click.argument("work")
@click.argument("version")
@config_option
@reason_option
@request_option
@prints_output
@storage_option
def promote_command(
    work: str, version: str, config: Path | None, reason: str, request: str, storage_options: dict[str, Any]
) -> Output:
    """Check a VERSION that was staged against the served one, and serve it if it passes the gates.

    The file of --config is that of retrain: its table [gates], its evaluation sets and its storage are used.

    Exit codes: 0 it is served; 2 an error, such as another version that was served meanwhile; 4 a gate stopped it.
    """
    values = read_config(config, _NAMES)
    resources = make_settings(Resources, {name: values[name] for name in _PROMOTION_FIELDS if name in values})
    if storage_options:
        resources = resources.replace(storage_options=storage_options)
    gates = read_table(Gates, values, "gates", config)
    verdict = promote(work, version, gates=gates, resources=resources, reason=reason, request=request)
    facts = {"version": version, "served": verdict.passed, "gates": verdict.as_dict()}
    rows = [(f"{state} {name}", text) for state, name, text in verdict.rows()]
    return Output(facts, lambda: print_table(("", ""), rows), 0 if verdict.passed else int(Outcome.STOPPED))


def _exit(number: int, _: object) -> None:
    """Handle the signal of this number: exit with 128 + number, so that leases are released at once."""
    sys.exit(128 + number)


def _rows(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield the rows of a summary's table, the outcome last, as recipes for schedulers show the last line."""
    yield "served", summary.served or "nothing yet"
    for name, value in summary.figures.items():
        yield name.replace("_", " "), f"{value:,.4g}" if value % 1 else f"{value:,.0f}"
    if summary.alignment is not None:
        yield "aligned", f"cosine {summary.alignment.before:.3f} before, {summary.alignment.after:.3f} after"
    if summary.verdict is not None:
        for state, name, text in summary.verdict.rows():
            yield f"{state} {name}", text
    yield "outcome", f"{summary.outcome.label}: {summary.message}"
