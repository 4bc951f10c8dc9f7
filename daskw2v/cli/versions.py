"""Commands about the versions of a model: list, show, publish, roll back, hold, tag, compare and delete."""

import uuid
from collections import Counter
from dataclasses import asdict
from importlib import import_module
from typing import Any

import click

from daskw2v.cli.options import Command, storage_option
from daskw2v.cli.printing import Output, flatten, named_output, print_lines, print_table, prints_output
from daskw2v.cli.program import main
from daskw2v.errors import counted
from daskw2v.models.versions.difference import Difference, differences
from daskw2v.models.versions.finished import Problems, Version
from daskw2v.models.versions.state import read_state
from daskw2v.models.versions.versions import Versions
from daskw2v.safe_text import escaped

_MAX_WORDS = 20  # of a difference that are shown


class _Group(click.Group):
    """The group; `promote` is imported when it is used, as it needs the compilers and the cluster of retraining."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), "promote"})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None if there is no such command."""
        if cmd_name == "promote":
            import_module("daskw2v.cli.retraining")
        return super().get_command(ctx, cmd_name)


@main.group(cls=_Group, no_args_is_help=True)
def versions() -> None:
    """List, publish, roll back, tag, compare and delete versions of a model.

    WORK is the work folder of train. VERSION is a version's name, one of its tags, or LATEST.
    """


_work = click.argument("work")
reason_option = click.option("--reason", default="", help="Why, for `versions log`.")
request_option = click.option(
    "--request", default="", metavar="ID", help="Id of this request: the same command given twice is one change."
)
_UNDAMAGED = "whole"
_NOT_BOUND = "whole; an older daskw2v wrote it: its checksums say nothing of places, so swapped files are not found"


@versions.command("list", no_args_is_help=True)
@_work
@prints_output
@storage_option
def list_versions(work: str, storage_options: dict[str, Any]) -> Output:
    """List the finished versions in WORK, oldest first; a star marks the served one."""
    all_versions = Versions.open(work, storage_options)
    state = read_state(all_versions.models)
    finished, problems = all_versions.all(), all_versions.problems()
    holds = {v.name: [hold.reason for hold in state.holds.values() if hold.version == v.name] for v in finished}
    damaged = {name: [damage.problem for damage in files] for name, files in problems.damaged.items()}
    foreign = {name: error.problem for name, error in problems.foreign.items()}

    def show() -> None:
        rows = (
            (
                "*" if v.served else "",
                v.name,
                str(v.manifest.get("created")),
                str(v.words),
                ", ".join((*v.tags, *(f"on hold{f': {reason}' if reason else ''}" for reason in holds[v.name]))),
            )
            for v in finished
        )
        print_table(("", "version", "finished", "words", "tags"), rows)
        if state.frozen is not None:
            print_lines(
                f"Frozen{f': {state.frozen}' if state.frozen else ''}. Nothing is published until `versions unfreeze`."
            )
        _warn(problems)

    facts = {
        "versions": [{**_summary(version), "holds": holds[version.name]} for version in finished],
        "frozen": state.frozen,
        "damaged": damaged,
        "foreign": foreign,
    }
    return Output(facts, show)


@versions.command(no_args_is_help=True)
@_work
@click.argument("version", default="LATEST")
@prints_output
@storage_option
def show(work: str, version: str, storage_options: dict[str, Any]) -> Output:
    """Show the metadata of a VERSION: tables, text, Params, base model, training."""
    chosen = Versions.open(work, storage_options).find(version)
    values = {**_summary(chosen), **chosen.manifest}
    return Output(values, lambda: print_table(("", ""), flatten(values)))


@versions.command(no_args_is_help=True)
@_work
@click.argument("version")
@click.option("--expected", default="", metavar="VERSION", help="The version that has to be served until now.")
@reason_option
@request_option
@prints_output
@storage_option
def publish(
    work: str, version: str, expected: str, reason: str, request: str, storage_options: dict[str, Any]
) -> Output:
    """Serve a VERSION: readers that open WORK get it from then on."""
    versions = Versions.open(work, storage_options)
    published = versions.publish(version, expected=expected, reason=reason, request=request)
    return named_output("served", published.name)


@versions.command(no_args_is_help=True)
@_work
@click.option("--to", metavar="VERSION", help="The version to serve again; by default the one served before.")
@reason_option
@request_option
@prints_output
@storage_option
def rollback(work: str, to: str | None, reason: str, request: str, storage_options: dict[str, Any]) -> Output:
    """Serve the previously served version again; damaged ones are passed over.

    Given twice without --to and --request, it goes back twice. So it says first by which --request to repeat it.
    """
    all_versions = Versions.open(work, storage_options)
    if to is None and not request:
        request = uuid.uuid4().hex[:12]
        click.echo(f"If this does not end, repeat it with --request {request}", err=True)
    served = all_versions.rollback(to, reason=reason, request=request).name
    _warn(all_versions.problems())
    return named_output("served", served)


@versions.command(no_args_is_help=True)
@_work
@prints_output
@storage_option
def log(work: str, storage_options: dict[str, Any]) -> Output:
    """Show the changes of what WORK serves, oldest first: number, time, user, action, served version, reason."""
    states = Versions.open(work, storage_options).log()

    def show() -> None:
        rows = (
            (str(s.number), s.change.time, s.change.user, s.change.action, s.name or "", s.change.reason)
            for s in states
        )
        print_table(("", "time", "user", "action", "served", "reason"), rows)

    return Output({"states": [asdict(state) for state in states]}, show)


@versions.command(no_args_is_help=True)
@_work
@click.argument("version")
@click.option("--hours", type=click.FloatRange(0, min_open=True), help="Hours after which the hold expires.")
@reason_option
@prints_output
@storage_option
def hold(work: str, version: str, hours: float | None, reason: str, storage_options: dict[str, Any]) -> Output:
    """Keep a VERSION from deletion until `versions release`; print the id of the hold."""
    return named_output("hold", Versions.open(work, storage_options).hold(version, reason, hours))


@versions.command(no_args_is_help=True)
@_work
@click.argument("hold")
@storage_option
def release(work: str, hold: str, storage_options: dict[str, Any]) -> None:
    """End a HOLD, by its id, or all holds of a version, by its name or tag."""
    Versions.open(work, storage_options).release(hold)


@versions.command(no_args_is_help=True)
@_work
@reason_option
@storage_option
def freeze(work: str, reason: str, storage_options: dict[str, Any]) -> None:
    """Publish nothing in WORK until `versions unfreeze`: runs finish versions that are not served.

    A rollback is possible meanwhile.
    """
    Versions.open(work, storage_options).freeze(reason)


@versions.command(no_args_is_help=True)
@_work
@storage_option
def unfreeze(work: str, storage_options: dict[str, Any]) -> None:
    """End `versions freeze`."""
    Versions.open(work, storage_options).unfreeze()


@versions.command(no_args_is_help=True)
@_work
@click.argument("version")
@click.argument("tag")
@click.option("--remove", is_flag=True, help="Remove the tag from the version.")
@reason_option
@storage_option
def tag(work: str, version: str, tag: str, remove: bool, reason: str, storage_options: dict[str, Any]) -> None:
    """Give a VERSION a TAG, which protects it from deletion; the tag moves if another version has it."""
    all_versions = Versions.open(work, storage_options)
    if remove:
        if tag not in all_versions.find(version).tags:
            raise click.UsageError(f"{version} has no tag {tag}.")
        all_versions.untag(tag, reason=reason)
    else:
        all_versions.tag(version, tag, reason=reason)


@versions.command(no_args_is_help=True)
@_work
@click.argument("earlier")
@click.argument("later", default="LATEST")
@prints_output
@storage_option
def diff(work: str, earlier: str, later: str, storage_options: dict[str, Any]) -> Output:
    """Show the differences between two versions: words that entered and left, with reasons; Params; text.

    `daskw2v compare` compares their vectors.
    """
    all_versions = Versions.open(work, storage_options)
    difference = differences(all_versions, all_versions.find(earlier), all_versions.find(later))
    return Output(difference.as_dict(), lambda: _show_difference(difference))


def _show_difference(difference: Difference) -> None:
    """Print the differences between two versions."""
    rows = [
        (f"{sign} {entry.word}", str(entry.occurrences), *([str(entry.id)] if difference.ids else []), entry.reason)
        for sign, entries in (("+", difference.entered), ("-", difference.left))
        for entry in entries[:_MAX_WORDS]
    ]
    print_table(("word", "count", *(["id"] if difference.ids else []), "reason"), rows)
    n_entered, n_left = len(difference.entered), len(difference.left)
    tokens = _arrow(difference.tokens)
    print_lines(f"{counted(n_entered, 'word')} entered, {n_left} left, {difference.kept} stayed; {tokens} tokens.")
    for name, entries in (("entered", difference.entered), ("left", difference.left)):
        for reason, words in Counter(entry.reason for entry in entries).most_common():
            print_lines(f"{words} {name}: {reason}")
    for name, values in difference.params.items():
        print_lines(f"{name}: {_arrow(values)}")


@versions.command(no_args_is_help=True)
@_work
@click.option("--keep", type=click.IntRange(1), default=3, show_default=True, help="Number of newest versions to keep.")
@click.option("--min-age", type=click.FloatRange(0), default=1.0, show_default=True, help="Hours to keep a new one.")
@click.option("--damaged", is_flag=True, help="Read all versions, and delete damaged ones that have no tag.")
@prints_output
@storage_option
def gc(work: str, keep: int, min_age: float, damaged: bool, storage_options: dict[str, Any]) -> Output:
    """Delete old versions, except served, previously served, tagged and held ones, and remains of interrupted runs.

    With --damaged, the version served before is served again if the served one is deleted.
    """
    all_versions = Versions.open(work, storage_options)
    deleted = list(all_versions.gc(keep, min_age * 3600, damaged=damaged))
    _warn(all_versions.problems())
    return Output({"deleted": deleted}, lambda: [*map(print_lines, deleted)])


@versions.command(no_args_is_help=True)
@_work
@click.argument("version", default="LATEST")
@click.option("--all", "verify_all", is_flag=True, help="Check all versions.")
@prints_output
@storage_option
def verify(work: str, version: str, verify_all: bool, storage_options: dict[str, Any]) -> Output:
    """Read a VERSION and compare it with its checksums.

    Exit codes: 0 all is whole; 1 files are damaged or missing; 2 an error.
    """
    versions = Versions.open(work, storage_options)
    problems = {
        name: [damage.problem for damage in files]
        for name, files in versions.verify(None if verify_all else version).items()
    }
    if verify_all:
        _warn(Problems({}, versions.problems().foreign))

    def show() -> None:
        answers = {name: [_UNDAMAGED if versions.is_bound(name) else _NOT_BOUND] for name in problems}
        rows = ((name, line) for name, lines in problems.items() for line in lines or answers[name])
        print_table(("version", "found"), rows)

    return Output(problems, show, int(any(problems.values())))


def _warn(problems: Problems) -> None:
    """Print, on stderr, the damaged versions and the remedy, and the versions that another daskw2v wrote."""
    for name, error in problems.foreign.items():
        click.echo(escaped(f"{name} is of another daskw2v, and is passed over: {error.problem}"), err=True)
    for name, files in problems.damaged.items():
        click.echo(escaped(f"{name} is damaged: {files[0].problem}"), err=True)
    if problems.damaged:
        click.echo("See `daskw2v versions verify --all`; `daskw2v versions gc --damaged` deletes them.", err=True)


def _summary(version: Version) -> dict[str, Any]:
    """Return the facts of a version that lists show."""
    values = {"name": version.name, "created": version.manifest.get("created"), "served": version.served}
    return {**values, "tags": list(version.tags), "words": version.words}


def _arrow(values: tuple[Any, Any]) -> str:
    """Return the values before and after as text: "1 -> 2"."""
    return " -> ".join(map(str, values))
