"""Groups: settings that only mean something together are an object of a class of their own, or None.

A field made by `group` holds one. The settings of the class may be written beside it by flat names, as on the command
line, in files and in manifests: Params(features=NGrams(maxn=6)) is Params(maxn=6). A class has a key, or several:
settings without which the others mean nothing. The keys that are not as by default choose the class.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import Field, fields
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Self

from daskw2v.config.settings import Constraint, Settings, StageName, checked, default_of, shown_value
from daskw2v.errors import ParameterError


class Group(Settings):
    """Settings that only mean something together; it is a frozen dataclass.

    Parameters
    ----------
    axis
        The field that holds it.
    """

    _staged = _is_part = True

    axis: ClassVar[str]

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            if f.metadata["key"] and not _is_set(f, getattr(self, f.name)):
                raise ParameterError(f"{type(self).__name__} has no {f.name}.", f"Give {f.name}: {f.metadata['help']}.")
        super().__post_init__()

    def check(self, settings: Any) -> None:
        """Refuse settings that this group is part of, where a value of it does not go with the others."""

    def flat(self) -> dict[str, Any]:
        """Return all values by their flat names."""
        return {flat_name(f): value for f, value in self.items()}

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the flat names of the settings without which it means nothing."""
        return tuple(flat_name(f) for f in fields(cls) if f.metadata["key"])  # type: ignore[arg-type]

    @classmethod
    def find(cls, settings: Any) -> Self | None:
        """Return the group of this class, or of one derived from it, that settings hold; None where they hold none."""
        found = getattr(settings, cls.axis)
        return found if isinstance(found, cls) else None

    @classmethod
    def of(cls, settings: Any) -> Self:
        """Return the same where settings are known to hold one."""
        found = cls.find(settings)
        assert found is not None, f"{cls.axis} is no {cls.__name__}"
        return found


class FlatSetting(NamedTuple):
    """A setting of a group, as a field that has its flat name.

    Parameters
    ----------
    field, attribute, owner
        The field, its name in the class, and the class that declares it.
    needs
        The keys of which one must be set for it to be read.
    """

    field: "Field[Any]"
    attribute: str
    owner: type[Group]
    needs: tuple[str, ...] = ()


def group(help: str, classes: str, *, stage: StageName) -> Any:
    """Declare a field that holds a group, or None.

    Parameters
    ----------
    help, stage
        As in `setting`.
    classes
        Module and name of the tuple of its classes, as in "package.module:NAME": none is imported before there are
        settings to make.
    """
    constraint = Constraint(lambda value: isinstance(value, Group), "an object of its class")
    metadata = {
        **constraint._asdict(), "help": help, "stage": stage, "heading": "", "group": classes, "honoured_by": (),
        "optional": True, "first": None, "told": False, "refuse": lambda *_: None,
    }  # fmt: skip
    return dataclasses.field(default=None, metadata=metadata)


def is_group(f: "Field[Any]") -> bool:
    """Tell whether a field holds a group."""
    return "group" in f.metadata


def classes_of(f: "Field[Any]") -> tuple[type[Group], ...]:
    """Return the classes of a field made by `group`."""
    module, _, name = f.metadata["group"].partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def flat_name(f: "Field[Any]") -> str:
    """Return the name of a setting beside those of other groups."""
    return str(f.metadata["flat"] or f.name)


@cache
def flat_settings(f: "Field[Any]") -> Mapping[str, FlatSetting]:
    """Return the settings of all classes of a field made by `group`, by their flat names."""
    found = dict[str, FlatSetting]()
    for cls in classes_of(f):
        for own in fields(cls):  # type: ignore[arg-type]
            name = flat_name(own)
            flat = found.get(name, FlatSetting(_renamed(own, name), own.name, cls))
            alone = len(cls.keys()) == 1 and not own.metadata["key"]
            found[name] = flat._replace(needs=(*flat.needs, *cls.keys())) if alone else flat
    return dict(sorted(found.items(), key=lambda item: not item[1].field.metadata["key"]))  # keys first


def items_of(f: "Field[Any]", held: Group | None) -> Iterator[tuple["Field[Any]", Any]]:
    """Yield the flat settings of a field made by `group` and their values: defaults where what it holds has none."""
    values = {} if held is None else held.flat()
    for name, flat in flat_settings(f).items():
        yield flat.field, values.get(name, default_of(flat.field))


def resolved_group(f: "Field[Any]", value: Any, rest: dict[str, Any]) -> Group | None:
    """Return the group that a field holds by its value and by flat names, which are taken out of `rest`."""
    known = flat_settings(f)
    beside = {name: rest.pop(name) for name in known if name in rest}
    if value is None or type(value) in classes_of(f):
        return merged(f, value, beside)
    if f.name not in known:
        bound = " or ".join(cls.__name__ for cls in classes_of(f))
        raise ParameterError(
            f"{f.name}={shown_value(value)} is no {bound}.",
            f"Give {f.name} ({f.metadata['help']}) an object of {bound}.",
        )
    return merged(f, None, {**beside, f.name: value})


def merged(f: "Field[Any]", before: Group | None, changes: Mapping[str, Any]) -> Group | None:
    """Return a group with some settings changed by flat names; None where no key is set any more.

    Raises
    ------
    ParameterError
        If a value is out of range, keys do not go together, or a setting means nothing without those that are missing.
    """
    known = flat_settings(f)
    changes = {name: checked(known[name].field, value) for name, value in changes.items()}
    values = {**({} if before is None else before.flat()), **changes}
    keys = [
        name
        for name, value in values.items()
        if known[name].field.metadata["key"] and _is_set(known[name].field, value)
    ]
    cls = next((cls for cls in classes_of(f) if {*cls.keys()} == {*keys}), None)
    if keys and cls is None:
        both = " and ".join(f"{name}={shown_value(values[name])}" for name in keys)
        raise ParameterError(f"{both} are both given.", "Leave one of the two out.")
    own = {} if cls is None else {flat_name(own): own.name for own in fields(cls)}  # type: ignore[arg-type]
    for name, value in changes.items():
        if name not in own and _is_set(known[name].field, value):
            needs = " or ".join(known[name].needs)
            raise ParameterError(
                f"{name}={shown_value(value)} changes nothing without {needs}.", f"Give {needs}, or leave {name} out."
            )
    return None if cls is None else cls(**{own[name]: value for name, value in values.items() if name in own})


def _is_set(f: "Field[Any]", value: Any) -> bool:
    return bool(value != default_of(f))


def _renamed(f: "Field[Any]", name: str) -> "Field[Any]":
    """Return a field under another name."""
    new = copy(f)
    new.name = name
    return new
