"""Options of commands that train, made from the fields of `Params` and `Resources`.

A value comes from the command line, else from the environment (`DASKW2V_VECTOR_SIZE`), else from the TOML
file of `--config`, else from the field's default. The dataclasses check it, so that all meet the same rules.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from daskw2v.devices import DEVICES
from daskw2v.errors import ParameterError
from daskw2v.objectives import OBJECTIVES
from daskw2v.options import Function, Many, Option, fields_in, storage_option
from daskw2v.params import Params, Resources
from daskw2v.strategies import STRATEGIES
from daskw2v.strategies.merge import MERGE_RULES

_SPOKEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
_LOCAL = ("workers", "memory_limit", "host")  # what describes a local cluster, and no other
# Names in registries, which stand above Params and Resources; a TOML file is checked against them like an option
_REGISTERED: Mapping[str, Iterable[str]] = {
    "objective": OBJECTIVES,
    "optimizer": dict.fromkeys(name for objective in OBJECTIVES.values() for name in objective.alphas),
    "strategy": STRATEGIES,
    "merge": MERGE_RULES,
    "device": DEVICES,
}


def _kinds(hint: Any) -> set[Any]:
    """Return a hint's plain types: int and NoneType for `int | None`, Mapping for `Mapping[str, Any]`."""
    members = (hint,) if get_origin(hint) in (None, Mapping) else get_args(hint)
    return {get_origin(member) or member for member in members}


def _variable(name: str) -> str:
    """Return the environment variable of a field."""
    return f"DASKW2V_{name.upper()}"


def _add(f: "Field[Any]", hint: Any, heading: str, function: Function) -> Function:
    """Add the option of one field, which the help shows under a heading."""
    kinds, name = _kinds(hint), f.name.replace("_", "-")
    if Mapping in kinds:
        return storage_option(function, heading)
    shared: dict[str, Any] = {
        "envvar": _variable(f.name),
        "help": f.metadata["help"][0].upper() + f.metadata["help"][1:] + ".",
        "heading": heading,
    }
    if get_origin(hint) is tuple:
        return click.option(f"--{name}", f.name, cls=Many, metavar="FILE...", **shared)(function)
    kind = next((kind for kind in (bool, str, int, float) if kind in kinds), str)
    choices = f.metadata["choices"] or tuple(_REGISTERED.get(f.name, ()))
    return click.option(
        f"--{name}/--no-{name}" if kind is bool else f"--{name}",
        f.name,
        cls=Option,
        type=kind,
        metavar=f"[{'|'.join(choices)}]" if choices else None,
        default=None if f.default is MISSING else f.default,
        show_default=f.default is not None,
        **shared,
    )(function)


def fields_of(*classes: type) -> Callable[[Function], Function]:
    """Add an option for each field of the dataclasses."""

    def decorate(function: Function) -> Function:
        heading, found = "", []
        for cls in classes:
            hints = get_type_hints(cls)
            for f in fields(cls):
                heading = f.metadata["heading"] or heading
                found.append((f, hints[f.name], heading))
        for f, hint, under in reversed(found):
            function = _add(f, hint, under, function)
        return function

    return decorate


def choose(ctx: click.Context, config: Mapping[str, Any]) -> tuple[Params, Resources]:
    """Make `Params` and `Resources` from the command line, the environment and what the TOML file says.

    Raises
    ------
    ParameterError
        If a value is out of range, the file names an unknown field, or a local cluster is described although
        `scheduler` names one.
    """
    values = {**config}
    values |= {n: v for n, v in ctx.params.items() if ctx.get_parameter_source(n) in _SPOKEN}
    params, resources = fields_in(Params, values), fields_in(Resources, values)
    unread = [n for n in _LOCAL if n in values]
    if resources.scheduler is not None and unread:
        given = " and ".join(f"{n}={values[n]!r}" for n in unread)
        variables = " and ".join(map(_variable, unread))
        raise ParameterError(
            f"{given} would be ignored: the cluster of scheduler={resources.scheduler!r} has its workers already.",
            f"Leave out {' and '.join(unread)} (options, {variables}, the TOML file), or leave out scheduler.",
        )
    return params, resources
