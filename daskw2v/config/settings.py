"""Settings: dataclasses whose fields state their default, help text and constraint once, and are checked by them.

A stage is a step from text to vectors (`STAGE_NAMES`). Settled Params, which a run uses, name files by their content.
"""

import dataclasses
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, field, fields
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np

from daskw2v.config.suggestions import suggest
from daskw2v.errors import ParameterError, UnknownParameterError
from daskw2v.safe_text import masked
from daskw2v.store.urls import Options, is_location, make_absolute, refuse_secret

StageName = Literal["read", "phrases", "vocabulary", "matrix", "train"]
STAGE_NAMES: tuple[StageName, ...] = get_args(StageName)
AxisName = Literal["objective", "strategy", "device", "format", "input"]
HEADINGS = "Events", "Graph", "Input", "Vocabulary", "Model", "Training", "Cluster", "Faults"  # in the help's order

_FINITE = sys.float_info.max
_MAX_SHOWN = 200  # characters of a value that a message shows
_MIN_WEIGHT, _MAX_WEIGHT = 1e-6, 1e6  # of weights that are not 0: their sums and squares are float32


class Constraint(NamedTuple):
    """The values that a field takes.

    Parameters
    ----------
    check
        Function that returns whether a value is one of them.
    bound
        These values in words, for messages.
    convert
        Function from a value to the value that the field holds, the same for equal values; None to hold values as they
        are.
    choices
        All values, where they are a few names.
    item
        What the help calls an item of a list.
    is_location
        Whether values are locations of the user's, URLs or paths, which published files do not name
        (`config.params.published`).
    refuse
        Function from the field's name and a value that raises an error if the value holds a secret.
    """

    check: Callable[[Any], bool]
    bound: str
    convert: Callable[[Any], Any] | None = None
    choices: tuple[str, ...] = ()
    item: str = ""
    is_location: bool = False
    refuse: Callable[[str, Any], None] = refuse_secret


def integer(low: int, high: int | None = None) -> Constraint:
    """Return the constraint for an integer in low..high, both included; without `high`, of at least `low`."""
    bound = f"an integer >= {low}" if high is None else f"an integer in {low}..{high}"
    return Constraint(lambda v: is_number(v, Integral) and v >= low and (high is None or v <= high), bound, int)


def number(low: float, high: float = _FINITE, *, open_low: bool = False) -> Constraint:
    """Return the constraint for a finite number in low..high, both included; without `low` itself if `open_low`."""

    def is_within(v: Any) -> bool:
        v = v.item() if isinstance(v, np.generic) else v
        return is_number(v, Real) and bool((v > low if open_low else v >= low) and v <= high)

    bound = f"a finite number {'>' if open_low else '>='} {low:g}" + ("" if high == _FINITE else f" and <= {high:g}")
    return Constraint(is_within, bound, lambda v: float(v) + 0.0)  # 1 and 1.0, 0.0 and -0.0 are not written alike


def numbers(low: float, high: float) -> Constraint:
    """Return the constraint for a mapping of names to numbers in low..high, both included."""
    each = number(low, high)

    def fit(v: Any) -> bool:
        return isinstance(v, Mapping) and all(isinstance(name, str) and each.check(n) for name, n in v.items())

    bound = f"a mapping of names to numbers in {low:g}..{high:g}"
    return Constraint(fit, bound, lambda v: {name: float(n) for name, n in v.items()})


def is_number(value: Any, kind: type) -> bool:
    """Return whether a value is a number of an abstract class, such as `Integral`; NumPy's numbers are, bool is not."""
    return isinstance(value, kind) and not isinstance(value, bool)


def one_of(*names: str) -> Constraint:
    """Return the constraint for text that is one of these names."""
    return Constraint(lambda v: isinstance(v, str) and v in names, "one of " + ", ".join(names), choices=names)


def parsed_by(bound: str, parse: Callable[[Any], Any], item: str) -> Constraint:
    """Return the constraint for values, such as lists, that `parse` accepts; the field holds the result of `parse`.

    For other values, `parse` raises a ValueError or TypeError. `bound` and `item` are as in `Constraint`.
    """

    def can_parse(value: Any) -> bool:
        try:
            parse(value)
        except (ValueError, TypeError):
            return False
        return True

    return Constraint(can_parse, bound, parse, item=item)


def _is_delimiter(value: Any) -> bool:
    """Return whether a value is text that can be part of a token: no white space, and encodable as UTF-8."""
    return isinstance(value, str) and bool(value) and value.isprintable() and " " not in value


def _is_separator(value: Any) -> bool:
    """Return whether a value is a character that can separate the fields of CSV."""
    return isinstance(value, str) and len(value) == 1 and value.isascii() and value not in '"\r\n\0'


def absolute_location(url: str | os.PathLike[str]) -> str:
    """Return a URL unchanged, and a path made absolute, as workers may have another current folder."""
    return make_absolute(os.fspath(url))


def _refuse_user(name: str, address: str) -> None:
    """Raise a ParameterError if an address of Dask's, with or without protocol, names a user; `name` is the field's."""
    remedy = "Give protocol, host and port alone. Dask knows no passwords; its configuration has certificates for TLS."
    refuse_secret(name, address if "://" in address else f"tcp://{address}", remedy)


_CONTENT = re.compile("#[0-9a-f]{20}$")


def split_content(value: str) -> tuple[str, str]:
    """Return location and digest of a name "location#digest" in settled Params; the digest is "" if missing."""
    match = _CONTENT.search(value)
    return (value, "") if match is None else (value[: match.start()], match[0][1:])


def _are_vectors(value: Any) -> bool:
    """Return whether a value is a location, or an object with words and vectors such as `Vectors` or `KeyedVectors`."""
    names = vars(value) if hasattr(value, "__dict__") else {}
    has_words = hasattr(type(value), "index_to_key") or "index_to_key" in names
    return is_location(value) or (has_words and not isinstance(value, type))


def _locate_vectors(value: Any) -> Any:
    """Return a location of vectors as an absolute one, and vectors in memory unchanged."""
    if not is_location(value):
        return value
    location, content = split_content(os.fspath(value))
    # Settled names have an absolute location, or a type's name
    return f"{location}#{content}" if content else absolute_location(location)


def _are_urls(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(is_location, value))


def _are_options(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _parse_weights(weights: Any) -> tuple[tuple[str, float], ...]:
    """Return pairs of name and weight, ordered by name, from a mapping, pairs, or texts such as "brand=2".

    Raises
    ------
    ValueError, TypeError
        If an item is none of these, a weight is neither 0 nor in 0.000001..1,000,000, or a name occurs twice.
    """
    if isinstance(weights, str):
        raise TypeError(weights)
    pairs = weights.items() if isinstance(weights, Mapping) else map(_split_weight, weights)
    parsed = sorted((checked_name(name), _check_weight(weight)) for name, weight in pairs)
    if len(dict(parsed)) != len(parsed):
        raise ValueError("a name occurs twice")
    return tuple(parsed)


def _split_weight(weight: Any) -> tuple[Any, Any]:
    """Return name and weight, unchecked, of a pair or of text such as "brand=2"; raise a ValueError for others."""
    if isinstance(weight, str):
        name, equals, weight = weight.rpartition("=")
        if not equals:
            raise ValueError(weight)
        return name.strip(), float(weight)
    name, number = weight
    return name, number


def checked_name(name: Any) -> str:
    """Return the name of a column; raise a ValueError if it is empty or not text."""
    if not (isinstance(name, str) and name):
        raise ValueError(name)
    return name


def _check_weight(weight: Any) -> float:
    """Return the weight of a feature as float, or raise a ValueError if it is neither 0 nor in 0.000001..1,000,000."""
    if isinstance(weight, bool | str) or not (weight == 0 or _MIN_WEIGHT <= weight <= _MAX_WEIGHT):
        raise ValueError(weight)
    return float(weight) + 0.0


FLAG = Constraint(lambda v: isinstance(v, bool | np.bool_), "true or false", bool)
TEXT = Constraint(lambda v: isinstance(v, str) and bool(v), "a non-empty string")
ADDRESS = Constraint(TEXT.check, TEXT.bound, refuse=_refuse_user)
LOCATION = Constraint(is_location, "a URL or path", absolute_location, is_location=True)
URLS = Constraint(
    _are_urls, "a list of URLs or paths", lambda v: tuple(map(absolute_location, v)), item="FILE", is_location=True
)
URL = Constraint(TEXT.check, TEXT.bound, is_location=True)
VECTORS = Constraint(_are_vectors, "a URL or path, Vectors or gensim's KeyedVectors", _locate_vectors, is_location=True)
SEPARATOR = Constraint(_is_separator, "one ASCII character, but for quotes, line ends and NUL")
DELIMITER = Constraint(_is_delimiter, "a non-empty string without white space or control characters")
OPTIONS = Constraint(_are_options, "a mapping whose keys are text", Options)


WEIGHTS = parsed_by(
    f'a mapping of names to weights, 0 or in {_MIN_WEIGHT:f}..{_MAX_WEIGHT:,.0f}, or texts such as "brand=2"',
    _parse_weights,
    "NAME=WEIGHT",
)


def setting(
    default: Any,
    help: str,
    constraint: Constraint,
    *,
    stage: StageName | None = None,
    honoured_by: tuple[AxisName, ...] = (),
    optional: bool = False,
    secret: bool = False,
    heading: str = "",
    first: Any = None,
    first_ended_for: tuple[str, ...] = (),
    plain: Any = None,
    in_file_list: bool = False,
    key: bool = False,
    flat: str = "",
) -> Any:
    """Declare a field of a class of settings.

    Parameters
    ----------
    default, help, constraint
        The field's default, its meaning, and the values that it takes.
    stage
        The first stage whose result the field changes (see `config.identity`); None for a field that changes no result.
    honoured_by
        The axes whose values read the field only if their `honours` name it. All values of other axes read it.
    optional
        Whether the field also takes None, as a field whose default is None does: "chosen for you"; or no limit.
    secret
        Whether the value is never shown. Other fields refuse URLs that hold a secret.
    heading
        The heading of this field and of the fields below it, one of `HEADINGS`; "" for the heading above.
    first
        The default in the first release, where it was different (see `config.identity`).
    first_ended_for
        Objectives and strategies for which another default replaced `first`; and names of fields, for which it did so
        where they do not have their default.
    plain
        For a field that is chosen once the text is known, where it is None: the value that it has when nothing chooses,
        which was also the default in the first release.
    in_file_list
        Whether the list of files that are read depends on the field, so that names of results do not include the value.
    key
        Whether the other fields of its group mean nothing without this field (see `config.choice`). A key may be
        passed by position.
    flat
        The field's name among the fields of `Params`, where it is different; for fields of groups.
    """
    metadata = {
        "help": help,
        **constraint._asdict(),
        "stage": stage,
        "honoured_by": honoured_by,
        "optional": optional or default is None,
        "heading": heading,
        "key": key,
        "flat": flat,
        "first": plain if first is None else first,
        "plain": plain,
        "in_file_list": in_file_list,
        "first_ended_for": first_ended_for,
    }
    if isinstance(default, Mapping):
        return field(default_factory=lambda: dict(default), metadata=metadata, repr=not secret)
    return field(default=default, metadata=metadata, repr=not secret, kw_only=False if key else MISSING)


def declared_fields(cls: "type[Settings]") -> "tuple[Field[Any], ...]":
    """Return the dataclass fields of a class of settings."""
    return fields(cls)  # type: ignore[arg-type]


def get_default(f: "Field[Any]") -> Any:
    """Return the default value of a field; a mapping is a new object in each call."""
    return f.default if f.default_factory is MISSING else f.default_factory()


def is_changed(f: "Field[Any]", value: Any) -> bool:
    """Return whether a field's value differs from its default, and from `plain` where it has one."""
    plain = f.metadata["plain"]
    return bool(value != get_default(f) and (plain is None or value != plain))


def _format_field(f: "Field[Any]", value: Any) -> str:
    """Return a field's value as text for a message; only its type if the field may hold secrets."""
    return format_value(value) if f.repr else f"a {type(value).__name__} (not shown: it may hold secrets)"


def format_value(value: Any) -> str:
    """Return a value as text for a message, without secrets of URLs, and cut to _MAX_SHOWN characters."""
    try:
        text = masked(repr(value))  # before it is cut, as half a URL is not recognized
    except ValueError:  # an integer of more digits than Python writes
        return f"(a {type(value).__name__} too large to write)"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def check_value(f: "Field[Any]", value: Any) -> Any:
    """Return a value as the field holds it, converted by the field's constraint.

    Raises
    ------
    ParameterError
        If the field does not take the value, or the value holds a secret in a field that is shown.
    """
    if value is None and f.metadata["optional"]:
        return None
    if not f.metadata["check"](value):
        bound = f.metadata["bound"] + (" or None" if f.metadata["optional"] else "")
        problem = f"{f.name}={_format_field(f, value)} is not {bound}."
        raise ParameterError(problem, f"Give {f.name} ({f.metadata['help']}) {bound}.")
    if f.repr:
        f.metadata["refuse"](f.name, value)
    try:
        return value if f.metadata["convert"] is None else f.metadata["convert"](value)
    except ParameterError as error:
        raise ParameterError(f"{f.name}={_format_field(f, value)}: {error.problem}", error.remedy) from None


class Settings:
    """A dataclass whose fields are made by `setting`: values are checked and converted by the fields' constraints."""

    _staged: ClassVar[bool] = False  # whether each field must say which stage's result it changes
    _is_part: ClassVar[bool] = False  # whether the class only holds some fields of another class

    def __init_subclass__(cls) -> None:
        """Check that each field of a class with `_staged` has a stage, without which names of results would ignore it.

        Raises
        ------
        TypeError
            If a field has no stage, or a stage that does not exist.
        """
        super().__init_subclass__()
        hints = inspect.get_annotations(cls) if cls._staged else {}
        for name in (name for name, hint in hints.items() if "ClassVar" not in str(hint)):
            declared = vars(cls).get(name)
            stage = declared.metadata.get("stage") if isinstance(declared, Field) else None
            if stage not in STAGE_NAMES:
                raise TypeError(
                    f"{cls.__name__}.{name} is declared with stage={stage!r}. Declare it by setting(..., stage=...): "
                    f"the first stage whose result it changes: {', '.join(STAGE_NAMES)}."
                )

    def __new__(cls, *_: Any, **values: Any) -> Self:
        """Raise an UnknownParameterError for names that are no fields; `__init__` stores the values."""
        for name in values:
            if name not in cls.__dataclass_fields__:  # type: ignore[attr-defined]
                problem = f"{cls.__name__} got an unexpected keyword argument {name!r}."
                raise UnknownParameterError(problem, cls.remedy(name))
        return super().__new__(cls)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the class's fields."""
        return tuple(f.name for f in declared_fields(cls))

    @classmethod
    def remedy(cls, name: str) -> str:
        """Return a sentence on what to give instead of a name that is no field: by `suggest`, or else all names."""
        classes = (cls, *(other for other in _find_complete_classes(Settings) if other is not cls))
        known = {c.__name__: c.names() for c in classes}
        this = cls.__name__
        suggestion = suggest(name, known, lambda owner, field: field if owner == this else f"{field} to {owner}")
        return suggestion or f"The names are: {', '.join(known[this])}."

    def __post_init__(self) -> None:
        for f in declared_fields(type(self)):
            object.__setattr__(self, f.name, check_value(f, getattr(self, f.name)))  # frozen

    def items(self) -> Iterator[tuple["Field[Any]", Any]]:
        """Yield each field and its value."""
        for f in declared_fields(type(self)):
            yield f, getattr(self, f.name)

    def flat(self) -> dict[str, Any]:
        """Return the values of all fields, by name."""
        return {f.name: value for f, value in self.items()}

    def replace(self, **changes: Any) -> Self:
        """Return a copy in which the fields of these names have other values."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


def _find_complete_classes(cls: type[Settings]) -> list[type[Settings]]:
    """Return the direct subclasses of a class; a part (`_is_part`) among them is replaced by its own subclasses."""
    return [c for below in cls.__subclasses__() for c in (_find_complete_classes(below) if below._is_part else [below])]
