"""Options of commands that train, made from the fields of `Params`, `Resources` and other settings.

A value comes from the command line, or else from the environment (`DASKW2V_VECTOR_SIZE`), or else from the TOML file of
`--config`, or else from the field's default. The dataclasses check the value, whichever of these it comes from.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from daskw2v.cli.config_file import make_settings
from daskw2v.cli.options import CommandFunction, Many, Option, help_for_option, storage_option
from daskw2v.cluster.connecting import refuse_local
from daskw2v.collections.kinds import FILES, KINDS, Derived
from daskw2v.config.choice import KnownSetting, find_readers, group_by_heading, is_field_read
from daskw2v.config.params import Params
from daskw2v.config.registry import Registry
from daskw2v.config.resources import LOCAL, Resources
from daskw2v.config.settings import AxisName, Settings, get_default
from daskw2v.corpus.formats import FORMATS
from daskw2v.corpus.tokenizers import SPECS, TOKENIZERS
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.phrases.score import SCORINGS
from daskw2v.training.axes import AXES
from daskw2v.training.devices import DEVICES
from daskw2v.training.strategies import STRATEGIES

_EXPLICIT = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
_READERS: Mapping[AxisName, Registry[Any]] = {  # registries of values that read options which other values do not
    "objective": OBJECTIVES,
    "strategy": STRATEGIES,
    "device": DEVICES,
    "format": FORMATS,
}
# Names in registries, which Params and Resources cannot import
_REGISTERED: Mapping[str, Iterable[str]] = {
    **{field: registry.names() for field, registry in AXES.items()},
    "strategy": ("auto", *STRATEGIES.names()),
    "tokenizer": (*TOKENIZERS.names(), *SPECS),
    "optimizer": dict.fromkeys(name for objective in OBJECTIVES.values() for name in objective.alphas),
}


def _titles(registry: Registry[Any]) -> str:
    """Return names and titles of the package's own values, as the end of a help text: ": name (title), ..."."""
    return ": " + ", ".join(f"{name} ({value.title})" for name, value in registry.items())


def _default_alphas() -> Iterator[str]:
    """Yield the default learning rate of each objective and optimizer, as text."""
    for name, objective in OBJECTIVES.items():
        for optimizer, alpha in objective.alphas.items():
            yield f"{alpha:g} for {name}" + (f" with {optimizer}" if len(objective.alphas) > 1 else "")


# Additions from registries to the help of a field
_HELP_ADDITIONS = {
    **{field: _titles(registry) for field, registry in AXES.items()},
    "alpha": f": {', '.join(_default_alphas())}",
    "phrase_threshold": f": {', '.join(f'{scoring.threshold:g} for {name}' for name, scoring in SCORINGS.items())}",
}


def _sentence(text: str) -> str:
    """Return a text as a sentence, with a capital and a full stop."""
    return text[0].upper() + text[1:] + "."


def _find_readers(known: KnownSetting) -> tuple[str, ...]:
    """Return the names of the values of axes, and of the keys of groups, for which a field is read.

    The result is empty if the field is always read. Kinds of input are left out, as a command takes one kind.
    """
    f = known.field
    axes = [axis for axis in _READERS if axis in f.metadata["honoured_by"]]
    return (*known.choices, *(name for axis in axes for name in find_readers(f, axis, _READERS[axis])), *known.needs)


def _variable(name: str) -> str:
    """Return the name of the environment variable of a field."""
    return f"DASKW2V_{name.upper()}"


def _add_option(
    known: KnownSetting, default: Any, heading: str, function: CommandFunction, *, hidden: bool
) -> CommandFunction:
    """Return a command with the option of a setting; the help shows it under a heading, unless it is hidden."""
    f = known.field
    hint, name = get_type_hints(known.owner)[known.attribute], f.name.replace("_", "-")
    if get_origin(hint) is Mapping:
        return storage_option(function, heading)
    shared: dict[str, Any] = {
        "hidden": hidden,
        "envvar": None if hidden else _variable(f.name),
        "help": _sentence(f.metadata["help"] + _HELP_ADDITIONS.get(f.name, "")),
        "heading": heading,
        "readers": () if hidden else _find_readers(known),
    }
    if get_origin(hint) is tuple:
        return click.option(f"--{name}", f.name, cls=Many, metavar=f"{f.metadata['item']}...", **shared)(function)
    kind = next((kind for kind in (bool, str, int, float) if kind in (hint, *get_args(hint))), str)
    choices = f.metadata["choices"] or tuple(_REGISTERED.get(f.name, ()))
    return click.option(
        f"--{name}/--no-{name}" if kind is bool else f"--{name}",
        f.name,
        cls=Option,
        type=kind,
        metavar=f"[{'|'.join(choices)}]" if choices else None,
        default=default,
        show_default=default is not None,
        **shared,
    )(function)


def setting_options(
    *owners: type[Settings] | Settings, inputs: type[Derived] | None = None
) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that adds an option for each field of classes of settings to a command.

    Parameters
    ----------
    owners
        Classes of settings; an instance has the defaults of its options as values. Of fields with the same name, the
        first has the option.
    inputs
        The class of inputs that text is derived from; None for files of text. Options that are not read with these
        inputs are hidden; if one is given, the error says which inputs read it.
    """
    classes = [owner if isinstance(owner, type) else type(owner) for owner in owners]
    defaults = {name: v for owner in owners if not isinstance(owner, type) for name, v in owner.flat().items()}

    def decorate(function: CommandFunction) -> CommandFunction:
        by_heading = group_by_heading(*classes)
        options = [(known.field, known, heading) for heading, group in by_heading.items() for known in group]
        read = {f for f, _, _ in options if is_field_read(inputs or KINDS[FILES], "input", f)}
        for f, known, heading in reversed(options):
            function = _add_option(known, defaults.get(f.name, get_default(f)), heading, function, hidden=f not in read)
        values = (name for registry in _READERS.values() for name in registry.names())
        needed = (name for f, known, _ in options if f in read for name in known.needs)
        return help_for_option([*values, *dict.fromkeys(needed)], _fields_read_by)(function)

    return decorate


def _fields_read_by(name: str) -> Iterator[str]:
    """Yield the names of fields that the objective, strategy, device or format of this name reads and others do not.

    A name of a key yields nothing.
    """
    for value in (registry.find(name) for registry in _READERS.values() if name in registry.names()):
        yield from value.honours
        yield from value.settings.names() if hasattr(value, "settings") else ()


def explicit_values(ctx: click.Context) -> dict[str, Any]:
    """Return the values of options that were set on the command line or in the environment, by field name."""
    return {n: v for n, v in ctx.params.items() if ctx.get_parameter_source(n) in _EXPLICIT}


def choose_settings(
    ctx: click.Context, config: Mapping[str, Any], defaults: Params | None = None, without: Collection[str] = ()
) -> tuple[Params, Resources]:
    """Return `Params` and `Resources` from the command line, the environment and the TOML file.

    Parameters
    ----------
    ctx
        The context of the command, with the values of options.
    config
        The values of the TOML file.
    defaults
        Params that have the values of all other fields; None for the fields' defaults.
    without
        Names of options that set fields of other settings.

    Raises
    ------
    ParameterError
        If a value is out of range, the file names an unknown field, or fields of a local cluster are given with
        `scheduler`.
    """
    values = {**config, **{name: value for name, value in explicit_values(ctx).items() if name not in without}}
    params, resources = make_settings(Params, values, defaults), make_settings(Resources, values)
    if resources.scheduler is not None:  # values that equal the defaults are refused, too
        local = {name: values[name] for name in LOCAL if name in values}
        ways = f" (options, {' and '.join(map(_variable, local))}, the TOML file)"
        refuse_local(local, f"scheduler={resources.scheduler!r}", ways)
    return params, resources
