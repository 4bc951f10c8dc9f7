"""Commands about the versions of a model: list, show, publish, roll back, hold, tag, compare and delete."""

import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import partial, wraps
from importlib import import_module
from typing import Any

import click

from daskw2v.cli.options import Command, Decorator, decorated, storage_option
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


_number = partial(click.option, show_default=True)
_version, _latest = click.argument("version"), click.argument("version", default="LATEST")
reason_option = click.option("--reason", default="", help="Why, for `versions log`.")
request_option = click.option(
    "--request", default="", metavar="ID", help="Id of this request: the same command given twice is one change."
)
_UNDAMAGED = "undamaged"
_NOT_BOUND = "undamaged; an older daskw2v wrote it: its checksums lack paths, so swapped files are not detected"


def _command(*options: Decorator, name: str | None = None) -> Decorator:
    """Return a decorator that makes a command of `versions` from a function, with these arguments and options.

    The command's first argument is WORK; the function takes its `Versions` first. `name` is by default the function's.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        @wraps(function)
        def on_work(work: str, storage_options: dict[str, Any], **values: Any) -> Any:
            return function(Versions.open(work, storage_options), **values)

        command = versions.command(name, no_args_is_help=True)
        return decorated(on_work, command, click.argument("work"), *options, storage_option)

    return decorate


@_command(prints_output, name="list")
def list_versions(all_versions: Versions) -> Output:
    """List the finished versions in WORK, oldest first; a star marks the served one."""
    state = read_state(all_versions.models)
    finished, problems = all_versions.all(), all_versions.problems()
    holds = {v.name: [hold.reason for hold in state.holds.values() if hold.version == v.name] for v in finished}
    damaged = {name: [damage.problem for damage in files] for name, files in problems.damaged.items()}
    foreign = {name: error.problem for name, error in problems.foreign.items()}

    def show() -> None:
        rows = []
        for v in finished:
            tags = *v.tags, *(f"on hold{f': {reason}' if reason else ''}" for reason in holds[v.name])
            star, created = "*" if v.served else "", str(v.manifest.get("created"))
            rows.append((star, v.name, created, str(v.words), ", ".join(tags)))
        print_table(("", "version", "finished", "words", "tags"), rows)
        if state.frozen is not None:
            reason = f": {state.frozen}" if state.frozen else ""
            print_lines(f"Frozen{reason}. Nothing is published until `versions unfreeze`.")
        _warn(problems)

    listed = [{**_summary(version), "holds": holds[version.name]} for version in finished]
    return Output({"versions": listed, "frozen": state.frozen, "damaged": damaged, "foreign": foreign}, show)


@_command(_latest, prints_output)
def show(all_versions: Versions, version: str) -> Output:
    """Show the metadata of a VERSION: tables, text, Params, base model, training."""
    chosen = all_versions.find(version)
    values = {**_summary(chosen), **chosen.manifest}
    return Output(values, lambda: print_table(("", ""), flatten(values)))


@_command(
    _version,
    click.option("--expected", default="", metavar="VERSION", help="The version that has to be served until now."),
    reason_option,
    request_option,
    prints_output,
)
def publish(all_versions: Versions, version: str, **options: str) -> Output:
    """Serve a VERSION: readers that open WORK get it from then on."""
    return named_output("served", all_versions.publish(version, **options).name)


@_command(
    click.option("--to", metavar="VERSION", help="The version to serve again; by default the one served before."),
    reason_option,
    request_option,
    prints_output,
)
def rollback(all_versions: Versions, to: str | None, reason: str, request: str) -> Output:
    """Serve the previously served version again; damaged ones are passed over.

    Given twice without --to and --request, it goes back twice. So it says first by which --request to repeat it.
    """
    if to is None and not request:
        request = uuid.uuid4().hex[:12]
        click.echo(f"If this does not end, repeat it with --request {request}", err=True)
    served = all_versions.rollback(to, reason=reason, request=request).name
    _warn(all_versions.problems())
    return named_output("served", served)


@_command(prints_output)
def log(all_versions: Versions) -> Output:
    """Show the changes of what WORK serves, oldest first: number, time, user, action, served version, reason."""
    states = all_versions.log()

    def show() -> None:
        changes = ((str(s.number), s.name or "", s.change) for s in states)
        rows = ((number, c.time, c.user, c.action, name, c.reason) for number, name, c in changes)
        print_table(("", "time", "user", "action", "served", "reason"), rows)

    return Output({"states": [asdict(state) for state in states]}, show)


@_command(
    _version,
    click.option("--hours", type=click.FloatRange(0, min_open=True), help="Hours after which the hold expires."),
    reason_option,
    prints_output,
)
def hold(all_versions: Versions, version: str, hours: float | None, reason: str) -> Output:
    """Keep a VERSION from deletion until `versions release`; print the id of the hold."""
    return named_output("hold", all_versions.hold(version, reason, hours))


@_command(click.argument("hold"))
def release(all_versions: Versions, hold: str) -> None:
    """End a HOLD, by its id, or all holds of a version, by its name or tag."""
    all_versions.release(hold)


@_command(reason_option)
def freeze(all_versions: Versions, reason: str) -> None:
    """Publish nothing in WORK until `versions unfreeze`: runs finish versions that are not served.

    A rollback is possible meanwhile.
    """
    all_versions.freeze(reason)


@_command()
def unfreeze(all_versions: Versions) -> None:
    """End `versions freeze`."""
    all_versions.unfreeze()


@_command(
    _version,
    click.argument("tag"),
    click.option("--remove", is_flag=True, help="Remove the tag from the version."),
    reason_option,
)
def tag(all_versions: Versions, version: str, tag: str, remove: bool, reason: str) -> None:
    """Give a VERSION a TAG, which protects it from deletion; the tag moves if another version has it."""
    if remove:
        if tag not in all_versions.find(version).tags:
            raise click.UsageError(f"{version} has no tag {tag}.")
        all_versions.untag(tag, reason=reason)
    else:
        all_versions.tag(version, tag, reason=reason)


@_command(click.argument("earlier"), click.argument("later", default="LATEST"), prints_output)
def diff(all_versions: Versions, earlier: str, later: str) -> Output:
    """Show the differences between two versions: words that entered and left, with reasons; Params; text.

    `daskw2v compare` compares their vectors.
    """
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


@_command(
    _number("--keep", type=click.IntRange(1), default=3, help="Number of newest versions to keep."),
    _number("--min-age", type=click.FloatRange(0), default=1.0, help="Hours to keep a new one."),
    click.option("--damaged", is_flag=True, help="Read all versions, and delete damaged ones without a tag or a hold."),
    prints_output,
)
def gc(all_versions: Versions, keep: int, min_age: float, damaged: bool) -> Output:
    """Delete old versions, except served, previously served, tagged and held ones, and remains of interrupted runs.

    With --damaged, the version served before is served again if the served one is deleted.
    """
    deleted = list(all_versions.gc(keep, min_age * 3600, damaged=damaged))
    _warn(all_versions.problems())
    return Output({"deleted": deleted}, lambda: [*map(print_lines, deleted)])


@_command(_latest, click.option("--all", "verify_all", is_flag=True, help="Check all versions."), prints_output)
def verify(all_versions: Versions, version: str, verify_all: bool) -> Output:
    """Read a VERSION and compare it with its checksums.

    Exit codes: 0 all is undamaged; 1 files are damaged or missing; 2 an error.
    """
    damaged = all_versions.verify(None if verify_all else version)
    problems = {name: [damage.problem for damage in files] for name, files in damaged.items()}
    if verify_all:
        _warn(Problems({}, all_versions.problems().foreign))

    def show() -> None:
        answers = {name: [_UNDAMAGED if all_versions.is_bound(name) else _NOT_BOUND] for name in problems}
        rows = ((name, line) for name, lines in problems.items() for line in lines or answers[name])
        print_table(("version", "result"), rows)

    return Output(problems, show, int(any(problems.values())))


def _warn(problems: Problems) -> None:
    """Print on stderr the versions that another daskw2v wrote, and the damaged versions with a remedy."""
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
