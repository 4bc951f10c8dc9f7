"""Choices and groups: settings in classes of their own, objects of which other settings hold; and who reads a setting.

A field made by `axis` holds a choice: an objective or a strategy with the settings that only it reads. The name of its
class stands for it. A field made by `group` holds settings that only mean something together, or None. A group has one
or more keys: settings without which the others mean nothing. The keys that are not as by default choose its class.

The settings of both may be written beside the others, as on the command line, in files and in manifests:
Params(strategy=Rotation(n_partitions=64)) is Params(strategy="rotation", n_partitions=64), and
Params(features=NGrams(maxn=6)) is Params(maxn=6).

A field of `Params` or `Resources` may name axes of which not all values read it, in `honoured_by`; the values that do
name the field in `honours`. A field that is set for another value is refused, not ignored.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import Field
from functools import cache
from importlib import import_module
from inspect import Parameter, Signature
from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

from daskw2v.config.registry import Registry
from daskw2v.config.settings import (
    HEADINGS,
    AxisName,
    Constraint,
    Settings,
    StageName,
    check_value,
    declared_fields,
    format_value,
    get_default,
    setting,
)
from daskw2v.errors import ParameterError, UnknownParameterError


class _Part(Settings):
    """Settings in a class of their own; it is a frozen dataclass.

    Parameters
    ----------
    axis
        The field that holds it.
    """

    _is_part = True

    axis: ClassVar[str]

    def check(self, settings: Any) -> None:
        """Refuse settings that this is part of, where a value of it does not go with the others."""


class Choice(_Part):
    """One value of an axis, with the settings that only it reads.

    Parameters
    ----------
    name
        What stands for it on the command line, in files and in manifests.
    is_open
        Whether it leaves the choice to others: settings beside it then choose the class that has them.
    """

    name: ClassVar[str]
    is_open: ClassVar[bool] = False

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


class Group(_Part):
    """Settings that only mean something together."""

    _staged = True

    def __post_init__(self) -> None:
        for f in declared_fields(type(self)):
            if f.metadata["key"] and not _is_set(f, getattr(self, f.name)):
                raise ParameterError(f"{type(self).__name__} has no {f.name}.", f"Give {f.name}: {f.metadata['help']}.")
        super().__post_init__()

    def flat(self) -> dict[str, Any]:
        """Return all values by their flat names."""
        return {_flat_name(f): value for f, value in self.items()}

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the flat names of the settings without which it means nothing."""
        return tuple(_flat_name(f) for f in declared_fields(cls) if f.metadata["key"])

    @classmethod
    def find(cls, settings: Any) -> Self | None:
        """Return the group of this class, or of one derived from it, that settings hold; None where they hold none."""
        found = getattr(settings, cls.axis)
        return found if isinstance(found, cls) else None

    @classmethod
    def of(cls, settings: Any) -> Self:
        """Return the group of this class that settings are known to hold."""
        found = cls.find(settings)
        assert found is not None, f"{cls.axis} is no {cls.__name__}"
        return found


@runtime_checkable
class _Chosen(Protocol):
    """A value that a plug-in adds: an objective, a strategy."""

    settings: type[Choice]


class Choices(Registry[type[Choice]]):
    """The classes of an axis by name: ours, and those of the values that installed distributions add."""

    def __init__(self, field: str, group: str, *own: type[Choice]) -> None:
        super().__init__(field, group, _Chosen, {cls.name: cls for cls in own})

    def _load(self, name: str) -> type[Choice]:
        cls: type[Choice] = super()._load(name).settings  # type: ignore[attr-defined]
        if (cls.axis, cls.name) != (self.field, name):
            raise ParameterError(
                f"{self.field}={name!r} has the settings of {cls.axis}={cls.name!r}: {cls.__name__}.",
                f"Give it a class of its own, with axis = {self.field!r} and name = {name!r}.",
            )
        return cls

    def having(self, name: str) -> list[type[Choice]]:
        """Return the package's own classes that have a setting."""
        return [cls for cls in self.values() if name in cls.names()]


def axis(default: str, help: str, choices: str, *, stage: StageName | None = None, heading: str = "") -> Any:
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
    bound = "the name of a choice or an object of its class"
    return _field("axis", choices, setting(default, help, _instance_of(Choice, bound), stage=stage, heading=heading))


def group(help: str, classes: str, *, stage: StageName) -> Any:
    """Declare a field that holds a group, or None; `classes` names the tuple of its classes, as `choices` of `axis`."""
    constraint = _instance_of(Group, "an object of its class")
    return _field("group", classes, setting(None, help, constraint, stage=stage))


def _instance_of(cls: type[_Part], bound: str) -> Constraint:
    return Constraint(lambda value: isinstance(value, cls), bound, refuse=lambda *_: None)


def _field(kind: str, classes: str, field: Any) -> Any:
    field.metadata = {**field.metadata, kind: classes}
    return field


def is_axis(f: "Field[Any]") -> bool:
    """Return whether a field holds a choice."""
    return "axis" in f.metadata


def is_group(f: "Field[Any]") -> bool:
    """Return whether a field holds a group."""
    return "group" in f.metadata


def get_choices(f: "Field[Any]") -> Choices:
    """Return the classes that a field made by `axis` takes."""
    return _imported(f.metadata["axis"])  # type: ignore[no-any-return]


def get_group_classes(f: "Field[Any]") -> tuple[type[Group], ...]:
    """Return the classes that a field made by `group` takes."""
    return _imported(f.metadata["group"])  # type: ignore[no-any-return]


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


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
    """Return the fields of a class of settings, of its choices and of its groups, by name."""
    found = dict[str, KnownSetting]()
    for f in declared_fields(cls):
        if is_group(f):
            found |= _flat_settings(f)
            continue
        found[f.name] = KnownSetting(f, cls, f.name)
        for choice in get_choices(f).values() if is_axis(f) else ():
            for own in declared_fields(choice):
                before = found.get(own.name, KnownSetting(own, choice, own.name))
                found[own.name] = before._replace(choices=(*before.choices, choice.name))
    return found


def known_fields(cls: type[Settings]) -> dict[str, "Field[Any]"]:
    """Return the fields of `known_settings` alone."""
    return {name: known.field for name, known in known_settings(cls).items()}


def group_by_heading(*classes: type[Settings]) -> dict[str, list[KnownSetting]]:
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


class Reader(Protocol):
    """An objective, strategy, device, format or kind of input."""

    @property
    def reads_field(self) -> tuple[str, ...]:
        """The fields that it reads and others of its axis do not."""


def reads_field(reader: Reader, axis: AxisName, f: "Field[Any]") -> bool:
    """Return whether a value of an axis reads a field."""
    return axis not in f.metadata["honoured_by"] or f.name in reader.honours


def find_readers(f: "Field[Any]", axis: AxisName, registry: Mapping[str, Reader]) -> tuple[str, ...]:
    """Return the names of the values of an axis that read a field."""
    return tuple(name for name, reader in registry.items() if reads_field(reader, axis, f))


def find_unread_fields(cls: type[Settings], axis: AxisName, reader: Reader) -> tuple[str, ...]:
    """Return the fields that a value of an axis does not read."""
    return tuple(name for name, f in known_fields(cls).items() if not reads_field(reader, axis, f))


def refuse_unread(
    settings: Settings, axis: AxisName, chosen: str | Sequence[str], registry: Mapping[str, Reader], shown: str = ""
) -> None:
    """Refuse what the chosen value of an axis would not read; of several, what none would.

    Parameters
    ----------
    settings
        Params or Resources.
    axis, chosen
        The axis, and the name or names of what was chosen.
    registry
        All values of the axis, the chosen among them.
    shown
        What was chosen, in words; `axis=name` by default.

    Raises
    ------
    ParameterError
        If a field that only others read is not as by default.
    """
    names = [chosen] if isinstance(chosen, str) else chosen
    shown = shown or " or ".join(f"{axis}={name!r}" for name in names)
    for f, value in settings.items():
        readers = find_readers(f, axis, registry)
        if not isinstance(value, Choice) and value != get_default(f) and not {*names} & {*readers}:
            raise ParameterError(
                f"{f.name}={value!r} changes nothing for {shown}; it is for {', '.join(readers)}.",
                f"Leave {f.name} out, or choose another {axis}.",
            )


class _Signature:
    """The signature of a class with choices, which `help` shows: its fields, and the settings of choices."""

    def __get__(self, _: Any, cls: Any) -> Signature:
        known = {f.name: f for f in declared_fields(cls)} | known_fields(cls)
        return Signature([Parameter(n, Parameter.KEYWORD_ONLY, default=get_default(f)) for n, f in known.items()])


class WithChoices(Settings):
    """Settings that hold choices and groups, whose settings may be passed, and replaced, beside its own."""

    _is_part = True
    __signature__ = _Signature()

    def __init__(self, **values: Any) -> None:
        rest = dict(values)
        for f in declared_fields(type(self)):
            object.__setattr__(self, f.name, rest.pop(f.name) if f.name in rest else get_default(f))
        axes, groups = _axes(type(self)), _groups(type(self))
        for f in (*axes, *groups):
            resolved = _resolved_choice if is_axis(f) else _resolved_group
            object.__setattr__(self, f.name, resolved(f, getattr(self, f.name), rest))
        if rest:
            self._refuse(rest)
        self.__post_init__()
        for f in (*axes, *groups):
            if (part := getattr(self, f.name)) is not None:
                part.check(self)

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Leave it to `__init__` to refuse names that are none."""
        return object.__new__(cls)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of its fields, and of the settings of choices and groups."""
        return tuple(dict.fromkeys([*known_settings(cls), *(f.name for f in _groups(cls))]))

    def items(self) -> Iterator[tuple["Field[Any]", Any]]:
        """Yield each field and its value, behind each choice the settings of it; of a group its settings alone."""
        for f, value in super().items():
            if is_group(f):
                flat = {} if value is None else value.flat()
                known = _flat_settings(f).items()
                yield from ((own.field, flat.get(name, get_default(own.field))) for name, own in known)
                continue
            yield f, value
            if isinstance(value, Choice):
                yield from value.items()

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
                cls, before = get_choices(f).find(name), getattr(self, f.name)
                kept = ((own, value) for own, value in before.items() if own.name in cls.names())
                changes[f.name] = cls(**{own.name: value for own, value in kept if _is_set(own, value)})
        for f in _groups(type(self)):
            if isinstance(changes.get(f.name, ""), Group | None):
                continue
            if flat := {name: changes.pop(name) for name in _flat_settings(f) if name in changes}:
                changes[f.name] = _changed_group(f, getattr(self, f.name), flat)
        return super().replace(**changes)

    def _refuse(self, rest: Mapping[str, Any]) -> None:
        """Raise the error for the first value that nothing here reads."""
        name, value = next(iter(rest.items()))
        for f in _axes(type(self)):
            if having := get_choices(f).having(name):
                chosen, owners = getattr(self, f.name), ", ".join(cls.name for cls in having)
                raise ParameterError(
                    f"{name}={format_value(value)} changes nothing for {f.name}={chosen.name!r}; it is for {owners}.",
                    f"Leave {name} out, or choose another {f.name}: {chosen.name} has "
                    f"{', '.join(chosen.names()) or 'no settings'}.",
                )
        raise UnknownParameterError(
            f"{type(self).__name__} got an unexpected keyword argument {name!r}.", self.remedy(name)
        )


def _axes(cls: type[Settings]) -> "list[Field[Any]]":
    return list(filter(is_axis, declared_fields(cls)))


def _groups(cls: type[Settings]) -> "list[Field[Any]]":
    return list(filter(is_group, declared_fields(cls)))


def _resolved_choice(f: "Field[Any]", value: Any, rest: dict[str, Any]) -> Choice:
    """Return the choice that a value names; the settings that it has are taken out of `rest`."""
    choices = get_choices(f)
    chosen = choices.find(value) if isinstance(value, str) and value else value
    if isinstance(chosen, type) and issubclass(chosen, Choice):
        chosen = chosen()
    if not (isinstance(chosen, Choice) and chosen.axis == f.name):
        raise ParameterError(
            f"{f.name}={format_value(value)} is not {f.metadata['bound']}.",
            f"Give {f.name} ({f.metadata['help']}) {f.metadata['bound']}: {', '.join(choices.names())}.",
        )
    if chosen.is_open:
        chosen = _implied(f, choices, rest) or chosen
    return chosen.replace(**{name: rest.pop(name) for name in chosen.names() if name in rest})


def _implied(f: "Field[Any]", choices: Choices, rest: Mapping[str, Any]) -> Choice | None:
    """Return the choice that has the settings beside an open one; None where no choice has any."""
    having = {name: found for name in rest if (found := choices.having(name))}
    fitting = [cls for cls in choices.values() if all(cls in found for found in having.values())]
    if not having:
        return None
    if len(fitting) != 1:
        owners = "; ".join(f"{name}: {', '.join(cls.name for cls in found)}" for name, found in having.items())
        raise ParameterError(f"There is no {f.name} that has all of {', '.join(having)}.", f"They are of {owners}.")
    return fitting[0]()


def _flat_name(f: "Field[Any]") -> str:
    """Return the name of a group's setting beside those of other groups."""
    return str(f.metadata["flat"] or f.name)


@cache
def _flat_settings(f: "Field[Any]") -> Mapping[str, KnownSetting]:
    """Return the settings of all classes of a field made by `group`, as fields with their flat names, keys first."""
    found = dict[str, KnownSetting]()
    for cls in get_group_classes(f):
        for own in declared_fields(cls):
            flat = copy(own)
            flat.name = _flat_name(own)
            known = found.get(flat.name, KnownSetting(flat, cls, own.name))
            alone = len(cls.keys()) == 1 and not own.metadata["key"]
            found[flat.name] = known._replace(needs=(*known.needs, *cls.keys())) if alone else known
    return dict(sorted(found.items(), key=lambda item: not item[1].field.metadata["key"]))


def _resolved_group(f: "Field[Any]", value: Any, rest: dict[str, Any]) -> Group | None:
    """Return the group that a field holds by its value and by flat names, which are taken out of `rest`."""
    known = _flat_settings(f)
    beside = {name: rest.pop(name) for name in known if name in rest}
    if value is None or type(value) in get_group_classes(f):
        return _changed_group(f, value, beside)
    if f.name not in known:
        bound = " or ".join(cls.__name__ for cls in get_group_classes(f))
        raise ParameterError(
            f"{f.name}={format_value(value)} is no {bound}.",
            f"Give {f.name} ({f.metadata['help']}) an object of {bound}.",
        )
    return _changed_group(f, None, {**beside, f.name: value})


def _changed_group(f: "Field[Any]", before: Group | None, changes: Mapping[str, Any]) -> Group | None:
    """Return a group with some settings changed by flat names; None where no key is set any more.

    Raises
    ------
    ParameterError
        If a value is out of range, keys do not go together, or a setting means nothing without a missing key.
    """
    known = _flat_settings(f)
    changes = {name: check_value(known[name].field, value) for name, value in changes.items()}
    values = {**({} if before is None else before.flat()), **changes}
    set_names = [name for name, value in values.items() if _is_set(known[name].field, value)]
    keys = [name for name in set_names if known[name].field.metadata["key"]]
    cls = next((cls for cls in get_group_classes(f) if {*cls.keys()} == {*keys}), None)
    if keys and cls is None:
        both = " and ".join(f"{name}={format_value(values[name])}" for name in keys)
        raise ParameterError(f"{both} are both given.", "Leave one of the two out.")
    own = {} if cls is None else {_flat_name(f): f.name for f in declared_fields(cls)}
    for name in changes:
        if name not in own and name in set_names:
            needs = " or ".join(known[name].needs)
            raise ParameterError(
                f"{name}={format_value(changes[name])} changes nothing without {needs}.",
                f"Give {needs}, or leave {name} out.",
            )
    return None if cls is None else cls(**{own[name]: value for name, value in values.items() if name in own})


def _is_set(f: "Field[Any]", value: Any) -> bool:
    return bool(value != get_default(f))
