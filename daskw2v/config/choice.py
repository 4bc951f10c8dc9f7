"""Choices and groups: settings in classes of their own, which fields of other settings hold; and readers of settings.

An axis is a property of a run with several values: objective, strategy, device, format, or kind of input. A field made
by `axis` holds a choice: an objective, strategy or device with the settings that only it reads. The choice's name, such
as "rotation", or its class may be passed instead. A field made by `group` holds settings that only mean something
together, or None. A group has one or more keys: settings without which its other settings mean nothing. The keys that
are set choose its class.

The settings of both may be written beside other settings, as on the command line, in files and in manifests:
Params(strategy=Rotation(n_partitions=64)) is Params(strategy="rotation", n_partitions=64), and
Params(features=NGrams(maxn=6)) is Params(maxn=6).

A field of `Params` or `Resources` may name, in `honoured_by`, axes of which not all values read the field; the values
that read it name the field in `honours`. A field that is set for another value is refused, not ignored.
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
    """Settings in a class of their own, a frozen dataclass, which a field of other settings holds.

    Parameters
    ----------
    axis
        Name of the field that holds the choice or group.
    """

    _is_part = True

    axis: ClassVar[str]

    def check(self, settings: Any) -> None:
        """Raise a ParameterError if a value of this part does not go with other values of `settings`, which hold it."""


class Choice(_Part):
    """One value of an axis, with the settings that only it reads.

    Parameters
    ----------
    name
        The choice's name on the command line, in files and in manifests.
    is_open
        Whether the choice is made later, such as by "auto"; settings of a class then choose the class.
    """

    name: ClassVar[str]
    is_open: ClassVar[bool] = False

    def open_settings(self) -> tuple[str, ...]:
        """Return the names of the settings that are chosen once the text is known, as they are not given."""
        return tuple(f.name for f, value in self.items() if value is None and f.metadata["plain"] is not None)

    @classmethod
    def of(cls, settings: "WithChoices") -> Self:
        """Return the choice of this class, or of a derived class, that settings hold.

        Raises
        ------
        ParameterError
            If the settings hold a choice of another class.
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
        """Return the values of all fields, by their names among the fields of `Params`."""
        return {_flat_name(f): value for f, value in self.items()}

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the names, among the fields of `Params`, of the settings without which the group means nothing."""
        return tuple(_flat_name(f) for f in declared_fields(cls) if f.metadata["key"])

    @classmethod
    def find(cls, settings: Any) -> Self | None:
        """Return the group of this class, or of a derived class, that settings hold, or None."""
        held = getattr(settings, cls.axis)
        return held if isinstance(held, cls) else None

    @classmethod
    def of(cls, settings: Any) -> Self:
        """Return the group as `find` does, where the caller knows that the settings hold it."""
        held = cls.find(settings)
        assert held is not None, f"{cls.axis} is no {cls.__name__}"
        return held


@runtime_checkable
class _Chosen(Protocol):
    """A value that a plug-in adds, such as an objective or a strategy, with the class of its settings."""

    settings: type[Choice]


class Choices(Registry[type[Choice]]):
    """The classes of an axis's choices, by name; `find` also returns the classes of plug-ins.

    Parameters
    ----------
    field, group
        As in `Registry`.
    classes
        The package's own classes.
    """

    def __init__(self, field: str, group: str, *classes: type[Choice]) -> None:
        super().__init__(field, group, _Chosen, {cls.name: cls for cls in classes})

    def _load(self, name: str) -> type[Choice]:
        """Return the class of settings of the value that a plug-in adds by this name, or raise a ParameterError."""
        cls: type[Choice] = super()._load(name).settings  # type: ignore[attr-defined]
        if (cls.axis, cls.name) != (self.field, name):
            raise ParameterError(
                f"{self.field}={name!r} has the settings of {cls.axis}={cls.name!r}: {cls.__name__}.",
                f"Give it a class of its own, with axis = {self.field!r} and name = {name!r}.",
            )
        return cls

    def with_setting(self, name: str) -> list[type[Choice]]:
        """Return the package's own classes that have a setting of this name."""
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
        Import path of the field's `Choices`, "package.module:NAME"; the module is imported when a choice is made.
    """
    bound = "the name of a choice or an object of its class"
    return _field("axis", choices, setting(default, help, _instance_of(Choice, bound), stage=stage, heading=heading))


def group(help: str, classes: str, *, stage: StageName) -> Any:
    """Declare a field that holds a group, or None; `classes` is the import path of the tuple of the group's classes."""
    constraint = _instance_of(Group, "an object of its class")
    return _field("group", classes, setting(None, help, constraint, stage=stage))


def _instance_of(cls: type[_Part], bound: str) -> Constraint:
    """Return the constraint for objects of a class; `bound` describes them in messages."""
    return Constraint(lambda value: isinstance(value, cls), bound, refuse=lambda *_: None)


def _field(kind: str, classes: str, field: Any) -> Any:
    """Mark a field as of `kind`, "axis" or "group", with the import path of its classes, and return it."""
    field.metadata = {**field.metadata, kind: classes}
    return field


def is_axis(f: "Field[Any]") -> bool:
    """Return whether a field holds a choice."""
    return "axis" in f.metadata


def is_group(f: "Field[Any]") -> bool:
    """Return whether a field holds a group."""
    return "group" in f.metadata


def get_choices(f: "Field[Any]") -> Choices:
    """Return the registry of the classes that a field made by `axis` takes, by their names."""
    return _import_name(f.metadata["axis"])  # type: ignore[no-any-return]


def get_group_classes(f: "Field[Any]") -> tuple[type[Group], ...]:
    """Return the classes that a field made by `group` takes."""
    return _import_name(f.metadata["group"])  # type: ignore[no-any-return]


def _import_name(path: str) -> Any:
    """Return the object at an import path "package.module:NAME"."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


class KnownSetting(NamedTuple):
    """A field of settings, of one of their choices or of a group.

    Parameters
    ----------
    field, owner, attribute
        The field, by its name in `Params`; the first class that declares it; and its name in that class.
    choices
        Names of the choices that have the field; empty for other fields.
    needs
        Keys of groups, of which one must be set for the field to be read; empty for keys and fields outside groups.
    """

    field: "Field[Any]"
    owner: Any
    attribute: str
    choices: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def known_settings(cls: type[Settings]) -> dict[str, KnownSetting]:
    """Return the fields of a class of settings, of its choices and of its groups, by name."""
    settings = dict[str, KnownSetting]()
    for f in declared_fields(cls):
        if is_group(f):
            settings |= _flat_settings(f)
            continue
        settings[f.name] = KnownSetting(f, cls, f.name)
        for choice in get_choices(f).values() if is_axis(f) else ():
            for inner in declared_fields(choice):
                before = settings.get(inner.name, KnownSetting(inner, choice, inner.name))
                settings[inner.name] = before._replace(choices=(*before.choices, choice.name))
    return settings


def known_fields(cls: type[Settings]) -> dict[str, "Field[Any]"]:
    """Return the fields of a class of settings, of its choices and of its groups, by name, without their owners."""
    return {name: known.field for name, known in known_settings(cls).items()}


def group_by_heading(*classes: type[Settings]) -> dict[str, list[KnownSetting]]:
    """Return the settings of classes by heading, in the order of `HEADINGS`; of equal names the first.

    A heading without settings has an empty list.
    """
    groups: dict[str, list[KnownSetting]] = {heading: [] for heading in HEADINGS}
    names = set[str]()
    for cls in classes:
        heading = ""
        for name, known in known_settings(cls).items():
            heading = known.field.metadata["heading"] or heading
            if name not in names:
                groups[heading].append(known)
            names.add(name)
    return groups


class Reader(Protocol):
    """An objective, strategy, device, format or kind of input."""

    @property
    def honours(self) -> tuple[str, ...]:
        """The names of the fields that the value reads and not all values of its axis do."""


def is_field_read(reader: Reader, axis: AxisName, f: "Field[Any]") -> bool:
    """Return whether a value of an axis, such as an objective, reads a field of Params or Resources."""
    return axis not in f.metadata["honoured_by"] or f.name in reader.honours


def find_readers(f: "Field[Any]", axis: AxisName, registry: Mapping[str, Reader]) -> tuple[str, ...]:
    """Return the names of the values of an axis, which are in a registry, that read a field."""
    return tuple(name for name, reader in registry.items() if is_field_read(reader, axis, f))


def find_unread_fields(cls: type[Settings], axis: AxisName, reader: Reader) -> tuple[str, ...]:
    """Return the names of the fields of a class of settings that a value of an axis does not read."""
    return tuple(name for name, f in known_fields(cls).items() if not is_field_read(reader, axis, f))


def refuse_unread(
    settings: Settings, axis: AxisName, chosen: str | Sequence[str], registry: Mapping[str, Reader], text: str = ""
) -> None:
    """Refuse a field that is set, but that no chosen value of an axis reads.

    Parameters
    ----------
    settings
        Params or Resources.
    axis, chosen
        The axis, and the name or names of the chosen values.
    registry
        All values of the axis, with the chosen ones.
    text
        The chosen values in words, for the message; `axis=name` by default.

    Raises
    ------
    ParameterError
        If a field that only other values read differs from its default.
    """
    names = [chosen] if isinstance(chosen, str) else chosen
    text = text or " or ".join(f"{axis}={name!r}" for name in names)
    for f, value in settings.items():
        readers = find_readers(f, axis, registry)
        if not isinstance(value, Choice) and value != get_default(f) and not {*names} & {*readers}:
            problem = f"{f.name}={value!r} changes nothing for {text}; it is for {', '.join(readers)}."
            raise ParameterError(problem, f"Leave {f.name} out, or choose another {axis}.")


class _Signature:
    """The signature of a class, which `help` shows: its fields, and the settings of its choices and groups."""

    def __get__(self, _: Any, cls: Any) -> Signature:
        known = {f.name: f for f in declared_fields(cls)} | known_fields(cls)
        return Signature([Parameter(n, Parameter.KEYWORD_ONLY, default=get_default(f)) for n, f in known.items()])


class WithChoices(Settings):
    """Settings that hold choices and groups; the settings of these may be passed, and replaced, like own fields."""

    _is_part = True
    __signature__ = _Signature()

    def __init__(self, **values: Any) -> None:
        rest = dict(values)
        for f in declared_fields(type(self)):
            object.__setattr__(self, f.name, rest.pop(f.name) if f.name in rest else get_default(f))
        axes, groups = _axes(type(self)), _groups(type(self))
        for f in (*axes, *groups):
            resolve = _resolve_choice if is_axis(f) else _resolve_group
            object.__setattr__(self, f.name, resolve(f, getattr(self, f.name), rest))
        if rest:
            self._refuse_unknown(rest)
        self.__post_init__()
        for f in (*axes, *groups):
            if (part := getattr(self, f.name)) is not None:
                part.check(self)

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Return an empty object; `__init__` refuses names that are no settings."""
        return object.__new__(cls)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the class's fields, and of the settings of its choices and groups."""
        return tuple(dict.fromkeys([*known_settings(cls), *(f.name for f in _groups(cls))]))

    def items(self) -> Iterator[tuple["Field[Any]", Any]]:
        """Yield each field and its value; a choice is followed by its settings.

        A group is replaced by the settings of all its classes, with the defaults of settings that are not set.
        """
        for f, value in super().items():
            if is_group(f):
                flat = {} if value is None else value.flat()
                known = _flat_settings(f).items()
                yield from ((inner.field, flat.get(name, get_default(inner.field))) for name, inner in known)
                continue
            yield f, value
            if isinstance(value, Choice):
                yield from value.items()

    def flat(self) -> dict[str, Any]:
        """Return the values that `items` yields, by name; a choice as its name."""
        return {f.name: value.name if isinstance(value, Choice) else value for f, value in self.items()}

    def replace(self, **changes: Any) -> Self:
        """Return a copy in which fields, or settings of choices and groups, of these names have other values.

        A new choice, passed as a name, takes over the settings that the old choice has, too, and that differ from their
        defaults. Settings of a group end with its key: maxn=0 also resets minn.
        """
        for f in _axes(type(self)):
            if isinstance(name := changes.get(f.name), str):
                cls, before = get_choices(f).find(name), getattr(self, f.name)
                common = ((inner, value) for inner, value in before.items() if inner.name in cls.names())
                changes[f.name] = cls(**{inner.name: value for inner, value in common if _is_set(inner, value)})
        for f in _groups(type(self)):
            if isinstance(changes.get(f.name, ""), Group | None):
                continue
            if flat := {name: changes.pop(name) for name in _flat_settings(f) if name in changes}:
                changes[f.name] = _change_group(f, getattr(self, f.name), flat)
        return super().replace(**changes)

    def _refuse_unknown(self, rest: Mapping[str, Any]) -> None:
        """Raise the error for the first value of `rest`, whose names are no settings of this object."""
        name, value = next(iter(rest.items()))
        for f in _axes(type(self)):
            if classes := get_choices(f).with_setting(name):
                chosen, owners = getattr(self, f.name), ", ".join(cls.name for cls in classes)
                raise ParameterError(
                    f"{name}={format_value(value)} changes nothing for {f.name}={chosen.name!r}; it is for {owners}.",
                    f"Leave {name} out, or choose another {f.name}: {chosen.name} has "
                    f"{', '.join(chosen.names()) or 'no settings'}.",
                )
        problem = f"{type(self).__name__} got an unexpected keyword argument {name!r}."
        raise UnknownParameterError(problem, self.remedy(name))


def _axes(cls: type[Settings]) -> "list[Field[Any]]":
    """Return the fields of a class that hold choices."""
    return list(filter(is_axis, declared_fields(cls)))


def _groups(cls: type[Settings]) -> "list[Field[Any]]":
    """Return the fields of a class that hold groups."""
    return list(filter(is_group, declared_fields(cls)))


def _resolve_choice(f: "Field[Any]", value: Any, rest: dict[str, Any]) -> Choice:
    """Return the choice for a field's value: a name, a class or a choice; move the choice's settings out of `rest`.

    Raises a ParameterError for other values.
    """
    choices = get_choices(f)
    chosen = choices.find(value) if isinstance(value, str) and value else value
    if isinstance(chosen, type) and issubclass(chosen, Choice):
        chosen = chosen()
    if not (isinstance(chosen, Choice) and chosen.axis == f.name):
        remedy = f"Give {f.name} ({f.metadata['help']}) {f.metadata['bound']}: {', '.join(choices.names())}."
        raise ParameterError(f"{f.name}={format_value(value)} is not {f.metadata['bound']}.", remedy)
    if chosen.is_open:
        chosen = _find_implied(f, choices, rest) or chosen
    return chosen.replace(**{name: rest.pop(name) for name in chosen.names() if name in rest})


def _find_implied(f: "Field[Any]", choices: Choices, rest: Mapping[str, Any]) -> Choice | None:
    """Return the choice that has all settings in `rest` that any choice has; None where no choice has any of them.

    Raises a ParameterError if no choice, or more than one, has them all.
    """
    owners = {name: classes for name in rest if (classes := choices.with_setting(name))}
    fitting = [cls for cls in choices.values() if all(cls in classes for classes in owners.values())]
    if not owners:
        return None
    if len(fitting) != 1:
        text = "; ".join(f"{name}: {', '.join(cls.name for cls in classes)}" for name, classes in owners.items())
        raise ParameterError(f"There is no {f.name} that has all of {', '.join(owners)}.", f"They are of {text}.")
    return fitting[0]()


def _flat_name(f: "Field[Any]") -> str:
    """Return the name of a group's setting among the fields of `Params`."""
    return str(f.metadata["flat"] or f.name)


@cache
def _flat_settings(f: "Field[Any]") -> Mapping[str, KnownSetting]:
    """Return the settings of all classes of a field made by `group`, by their flat names, keys first."""
    settings = dict[str, KnownSetting]()
    for cls in get_group_classes(f):
        for inner in declared_fields(cls):
            flat = copy(inner)
            flat.name = _flat_name(inner)
            known = settings.get(flat.name, KnownSetting(flat, cls, inner.name))
            needs_key = len(cls.keys()) == 1 and not inner.metadata["key"]
            settings[flat.name] = known._replace(needs=(*known.needs, *cls.keys())) if needs_key else known
    return dict(sorted(settings.items(), key=lambda item: not item[1].field.metadata["key"]))


def _resolve_group(f: "Field[Any]", value: Any, rest: dict[str, Any]) -> Group | None:
    """Return the group for a field's value and the group's settings in `rest`, by flat names; move these out of it.

    The value is a group, None, or the value of the key that has the field's name. Raises as `_change_group` does.
    """
    known = _flat_settings(f)
    flat = {name: rest.pop(name) for name in known if name in rest}
    if value is None or type(value) in get_group_classes(f):
        return _change_group(f, value, flat)
    if f.name not in known:
        bound = " or ".join(cls.__name__ for cls in get_group_classes(f))
        problem = f"{f.name}={format_value(value)} is no {bound}."
        raise ParameterError(problem, f"Give {f.name} ({f.metadata['help']}) an object of {bound}.")
    return _change_group(f, None, {**flat, f.name: value})


def _change_group(f: "Field[Any]", before: Group | None, changes: Mapping[str, Any]) -> Group | None:
    """Return a group in which settings, by flat names, have other values; None where no key is set any more.

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
    names = {} if cls is None else {_flat_name(f): f.name for f in declared_fields(cls)}
    for name in changes:
        if name not in names and name in set_names:
            needs = " or ".join(known[name].needs)
            problem = f"{name}={format_value(changes[name])} changes nothing without {needs}."
            raise ParameterError(problem, f"Give {needs}, or leave {name} out.")
    return None if cls is None else cls(**{names[name]: value for name, value in values.items() if name in names})


def _is_set(f: "Field[Any]", value: Any) -> bool:
    """Return whether a field's value differs from its default."""
    return bool(value != get_default(f))
