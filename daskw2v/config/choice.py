"""Choices: an objective or a strategy brings the settings that only it reads, in a class of its own.

A field made by `axis` holds one of them. It takes the object, or the name of its class, and the settings of the class
may be written beside it: Params(strategy=Rotation(n_partitions=64)) is Params(strategy="rotation", n_partitions=64).
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from importlib import import_module
from inspect import Parameter, Signature
from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

from daskw2v.config.groups import Group, flat_settings, is_group, items_of, merged, resolved_group
from daskw2v.config.registry import Registry
from daskw2v.config.settings import HEADINGS, Constraint, Settings, StageName, default_of, shown_value
from daskw2v.errors import ParameterError, UnknownParameterError


class Choice(Settings):
    """One value of an axis, with the settings that only it reads; it is a frozen dataclass.

    Parameters
    ----------
    name
        What stands for it on the command line, in files and in manifests.
    axis
        The field that it is a value of.
    is_open
        Whether it leaves the choice to others: settings beside it then choose the class that has them.
    """

    _is_part = True

    name: ClassVar[str]
    axis: ClassVar[str]
    is_open: ClassVar[bool] = False

    def check(self, settings: Any) -> None:
        """Refuse settings that this choice is part of, where a value of it does not go with the others."""

    @classmethod
    def of(cls, settings: "WithChoices") -> Self:
        """Return the choice of this class, or of one derived from it, that settings hold.

        Raises
        ------
        ParameterError
            If they hold another one.
        """
        chosen = getattr(settings, cls.axis)
        if not isinstance(chosen, cls):
            missing = ", ".join(name for name in cls.names() if name not in chosen.names())
            raise ParameterError(f"{cls.axis}={chosen.name!r} has no {missing}.", f"Choose another {cls.axis}.")
        return chosen


class TrainingChoice(Choice):
    """A choice that changes the vectors: each of its settings has a stage."""

    _staged = True


@runtime_checkable
class _Chosen(Protocol):
    """What a plug-in adds: an objective, a strategy."""

    settings: type[Choice]


class Choices(Registry[type[Choice]]):
    """The classes of an axis by name: ours, and those of the values that installed distributions add."""

    def __init__(self, field: str, group: str, *own: type[Choice]) -> None:
        super().__init__(field, group, _Chosen, {cls.name: cls for cls in own})

    def _load(self, name: str) -> type[Choice]:
        return super()._load(name).settings  # type: ignore[attr-defined, no-any-return]

    def having(self, name: str) -> list[type[Choice]]:
        """Return the package's own classes that have a setting."""
        return [cls for cls in self.values() if name in cls.names()]


def axis(default: str, help: str, choices: str, *, stage: StageName, heading: str = "") -> Any:
    """Declare a field that holds a choice.

    Parameters
    ----------
    default
        Name of the default.
    help, stage, heading
        As in `setting`.
    choices
        Module and name of its `Choices`, as in "package.module:NAME": no module of choices is imported before there is
        one to make.
    """
    constraint = Constraint(lambda value: isinstance(value, Choice), "the name of a choice or an object of its class")
    metadata = {
        **constraint._asdict(), "help": help, "stage": stage, "heading": heading, "axis": choices, "honoured_by": (),
        "optional": False, "first": None, "told": False, "refuse": lambda *_: None,
    }  # fmt: skip
    return dataclasses.field(default=default, metadata=metadata)


def choices_of(f: "Field[Any]") -> Choices:
    """Return the classes that a field made by `axis` takes."""
    module, _, name = f.metadata["axis"].partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def is_axis(f: "Field[Any]") -> bool:
    """Tell whether a field holds a choice."""
    return "axis" in f.metadata


def _axes(cls: type[Settings]) -> "list[Field[Any]]":
    return [f for f in fields(cls) if is_axis(f)]  # type: ignore[arg-type]


def _groups(cls: type[Settings]) -> "list[Field[Any]]":
    return [f for f in fields(cls) if is_group(f)]  # type: ignore[arg-type]


def known_fields(cls: type[Settings]) -> dict[str, "Field[Any]"]:
    """Return the fields of a class of settings by name, with the settings of all choices and groups."""
    return {name: known.field for name, known in known_settings(cls).items()}


class KnownSetting(NamedTuple):
    """A field of settings, of one of their choices or of a group.

    Parameters
    ----------
    field, owner, attribute
        The field, the class that declares it, and its name there.
    choices
        The choices that have it.
    needs
        The keys of groups of which one must be set for it to be read.
    """

    field: "Field[Any]"
    owner: Any
    attribute: str
    choices: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def known_settings(cls: type[Settings]) -> dict[str, KnownSetting]:
    """Return the same with what is known of each."""
    found = dict[str, KnownSetting]()
    for f in fields(cls):  # type: ignore[arg-type]
        if is_group(f):
            found |= {n: KnownSetting(s.field, s.owner, s.attribute, (), s.needs) for n, s in flat_settings(f).items()}
            continue
        found[f.name] = KnownSetting(f, cls, f.name)
        choices = choices_of(f) if is_axis(f) else {}
        for choice in choices.values():
            for own in fields(choice):  # type: ignore[arg-type]
                before = found.get(own.name, KnownSetting(own, choice, own.name))
                found[own.name] = before._replace(choices=(*before.choices, choice.name))
    return found


def by_heading(*classes: type[Settings]) -> dict[str, list[KnownSetting]]:
    """Return the settings of classes by their headings, in the order of `HEADINGS`; of equal names the first."""
    found: dict[str, list[KnownSetting]] = {heading: [] for heading in HEADINGS}
    seen = set[str]()
    for cls in classes:
        heading = ""
        for name, known in known_settings(cls).items():
            heading = known.field.metadata["heading"] or heading
            if name not in seen:
                found[heading].append(known)
            seen.add(name)
    return found


class _Signature:
    """What `help` shows of a class with choices: its fields, and the settings of choices."""

    def __get__(self, _: Any, cls: Any) -> Signature:
        known = {f.name: f for f in fields(cls)} | known_fields(cls)
        return Signature([Parameter(n, Parameter.KEYWORD_ONLY, default=default_of(f)) for n, f in known.items()])


class WithChoices(Settings):
    """Settings of which some fields are choices; those of the choices may be given, and replaced, beside its own."""

    _is_part = True
    __signature__ = _Signature()

    def __init__(self, **values: Any) -> None:
        rest = dict(values)
        for f in fields(self):  # type: ignore[arg-type]
            value = rest.pop(f.name) if f.name in rest else default_of(f)
            object.__setattr__(self, f.name, value)
        for f in _axes(type(self)):
            object.__setattr__(self, f.name, _resolved(f, getattr(self, f.name), rest))
        for f in _groups(type(self)):
            object.__setattr__(self, f.name, resolved_group(f, getattr(self, f.name), rest))
        if rest:
            self._refuse(rest)
        self.__post_init__()
        for f in (*_axes(type(self)), *_groups(type(self))):
            if (part := getattr(self, f.name)) is not None:
                part.check(self)

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Leave it to `__init__` to refuse names that are none."""
        return object.__new__(cls)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of its fields, and of the settings of choices and groups."""
        return tuple(dict.fromkeys([*known_fields(cls), *(f.name for f in _groups(cls))]))

    def items(self) -> Iterator[tuple["Field[Any]", Any]]:
        """Yield each field and its value, behind each choice the settings of it; of a group its settings alone."""
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if is_group(f):
                yield from items_of(f, value)
                continue
            yield f, value
            if isinstance(value, Choice):
                yield from ((own, getattr(value, own.name)) for own in fields(value))  # type: ignore[arg-type]

    def flat(self) -> dict[str, Any]:
        """Return all values by name; a choice is its name."""
        return {f.name: value.name if isinstance(value, Choice) else value for f, value in self.items()}

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields, or settings of choices, changed.

        A choice that is named takes over what both have, where that is not as by default. Settings of a group go with
        its key: maxn=0 also ends minn.
        """
        for f in _axes(type(self)):
            if isinstance(name := changes.get(f.name), str):
                changes[f.name] = _like(choices_of(f).find(name), getattr(self, f.name))
        for f in _groups(type(self)):
            if isinstance(changes.get(f.name, ""), Group | None):
                continue
            if flat := {name: changes.pop(name) for name in flat_settings(f) if name in changes}:
                changes[f.name] = merged(f, getattr(self, f.name), flat)
        return super().replace(**changes)

    def _refuse(self, rest: Mapping[str, Any]) -> None:
        """Raise the error for the first value that nothing here reads."""
        name, value = next(iter(rest.items()))
        for f in _axes(type(self)):
            if having := choices_of(f).having(name):
                chosen, owners = getattr(self, f.name), ", ".join(cls.name for cls in having)
                raise ParameterError(
                    f"{name}={shown_value(value)} changes nothing for {f.name}={chosen.name!r}; it is for {owners}.",
                    f"Leave {name} out, or choose another {f.name}: {chosen.name} has "
                    f"{', '.join(chosen.names()) or 'no settings'}.",
                )
        raise UnknownParameterError(
            f"{type(self).__name__} got an unexpected keyword argument {name!r}.", self.remedy(name)
        )


def _like(cls: type[Choice], before: Choice) -> Choice:
    """Return a choice with the settings that both have, where they are not as by default."""
    kept = {f.name: value for f, value in before.items() if f.name in cls.names() and value != default_of(f)}
    return cls(**kept)


def _resolved(f: "Field[Any]", value: Any, rest: dict[str, Any]) -> Choice:
    """Return the choice that a value names; what it has of `rest` is taken out there."""
    choices = choices_of(f)
    chosen = choices.find(value) if isinstance(value, str) and value else value
    if isinstance(chosen, type) and issubclass(chosen, Choice):
        chosen = chosen()
    if not (isinstance(chosen, Choice) and chosen.axis == f.name):
        raise ParameterError(
            f"{f.name}={shown_value(value)} is not {f.metadata['bound']}.",
            f"Give {f.name} ({f.metadata['help']}) {f.metadata['bound']}: {', '.join(choices.names())}.",
        )
    if chosen.is_open:
        chosen = _implied(f, choices, rest) or chosen
    return chosen.replace(**{name: rest.pop(name) for name in chosen.names() if name in rest})


def _implied(f: "Field[Any]", choices: Choices, rest: Mapping[str, Any]) -> Choice | None:
    """Return the choice that has what stands beside an open one; None where nothing does."""
    having = {name: found for name in rest if (found := choices.having(name))}
    fitting = [cls for cls in choices.values() if all(cls in found for found in having.values())]
    if not having:
        return None
    if len(fitting) != 1:
        owners = "; ".join(f"{name}: {', '.join(cls.name for cls in found)}" for name, found in having.items())
        raise ParameterError(f"There is no {f.name} that has all of {', '.join(having)}.", f"They are of {owners}.")
    return fitting[0]()
