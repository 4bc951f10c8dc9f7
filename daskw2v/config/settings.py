"""Settings: dataclasses whose fields state their default, help text and constraint once, and are checked by them."""

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
HEADINGS = (
    "Events",
    "Graph",
    "Input",
    "Vocabulary",
    "Model",
    "Training",
    "Cluster",
    "Faults",
)  # in the order of the help

_FINITE = sys.float_info.max
_SHOWN = 200  # characters of a value that a message shows
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-6, 1e6  # of weights that are not 0: their sums and squares are float32


class Constraint(NamedTuple):
    """The values that a field takes, in code and in words; `convert` makes equal ones look the same.

    `item` is what the help calls an item of a list. `place` says that values are locations of the user's, URLs and
    paths, which published files do not name (`config.params.published`). `refuse` refuses values that hold a secret; it
    is called with the name of the field, too.
    """

    check: Callable[[Any], bool]
    bound: str
    convert: Callable[[Any], Any] | None = None
    choices: tuple[str, ...] = ()
    item: str = ""
    place: bool = False
    refuse: Callable[[str, Any], None] = refuse_secret


def integer(low: int, high: int | None = None) -> Constraint:
    """Return the constraint for an integer in a range that holds its ends."""
    bound = f"an integer >= {low}" if high is None else f"an integer in {low}..{high}"
    return Constraint(lambda v: is_number(v, Integral) and v >= low and (high is None or v <= high), bound, int)


def number(low: float, high: float = _FINITE, *, open_low: bool = False) -> Constraint:
    """Return the constraint for a finite number in a range that holds its ends, but for a low end that is open."""

    def between(v: Any) -> bool:
        return bool((v > low if open_low else v >= low) and v <= high)

    bound = f"a finite number {'>' if open_low else '>='} {low:g}" + ("" if high == _FINITE else f" and <= {high:g}")
    return Constraint(
        lambda v: is_number(v, Real) and between(v.item() if isinstance(v, np.generic) else v),
        bound,
        lambda v: float(v) + 0.0,  # 1 and 1.0, 0.0 and -0.0 are equal, but are not written alike
    )


def numbers(low: float, high: float) -> Constraint:
    """Return the constraint for a mapping of names to numbers in a range that holds its ends."""
    each = number(low, high)

    def fit(v: Any) -> bool:
        return isinstance(v, Mapping) and all(isinstance(name, str) and each.check(n) for name, n in v.items())

    bound = f"a mapping of names to numbers in {low:g}..{high:g}"
    return Constraint(fit, bound, lambda v: {name: float(n) for name, n in v.items()})


def is_number(value: Any, kind: type) -> bool:
    """Return whether a value is a number of that kind; NumPy's are, which loops over settings give."""
    return isinstance(value, kind) and not isinstance(value, bool)


def one_of(*names: str) -> Constraint:
    """Return the constraint for one of some names."""
    return Constraint(lambda v: isinstance(v, str) and v in names, "one of " + ", ".join(names), choices=names)


def _is_delimiter(value: Any) -> bool:
    """Return whether text can stand inside of a token: no separator, and UTF-8 can say it."""
    return isinstance(value, str) and bool(value) and value.isprintable() and " " not in value


def _is_separator(value: Any) -> bool:
    """Return whether a character can stand between the fields of CSV."""
    return isinstance(value, str) and len(value) == 1 and value.isascii() and value not in '"\r\n\0'


def absolute_place(url: str | os.PathLike[str]) -> str:
    """Return a URL as it is, or a path as workers find it."""
    return make_absolute(os.fspath(url))


def _refuse_user(name: str, address: str) -> None:
    """Refuse an address of Dask's with a user; it may have no protocol."""
    remedy = "Give protocol, host and port alone. Dask knows no passwords; its configuration has certificates for TLS."
    refuse_secret(name, address if "://" in address else f"tcp://{address}", remedy)


_CONTENT = re.compile("#[0-9a-f]{20}$")


def place_of(value: str) -> tuple[str, str]:
    """Return the location, and the digest of its content, of a file in settled Params; the digest of others is ""."""
    match = _CONTENT.search(value)
    return (value, "") if match is None else (value[: match.start()], match[0][1:])


def _are_vectors(value: Any) -> bool:
    """Return whether a value names a file or model, or has vectors of words, as `Vectors` and `KeyedVectors` have."""
    names = vars(value) if hasattr(value, "__dict__") else {}
    has_words = hasattr(type(value), "index_to_key") or "index_to_key" in names
    return is_location(value) or (has_words and not isinstance(value, type))


def _vectors_place(value: Any) -> Any:
    if not is_location(value):
        return value
    place, content = place_of(os.fspath(value))
    # What is settled is named by a type, or is absolute already
    return f"{place}#{content}" if content else absolute_place(place)


def _are_urls(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(is_location, value))


def _are_options(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _weights_of(weights: Any) -> tuple[tuple[str, float], ...]:
    """Return names and weights, by name, from a mapping, pairs, or texts such as "brand=2".

    Raises
    ------
    ValueError, TypeError
        If one is none of these, a weight is neither 0 nor in 0.000001..1,000,000, or a name occurs twice.
    """
    pairs = weights.items() if isinstance(weights, Mapping) else map(_weight_pair, weights)
    found = sorted((_weight_name(name), _weight(weight)) for name, weight in pairs)
    if len(dict(found)) != len(found):
        raise ValueError("a name occurs twice")
    return tuple(found)


def _weight_pair(weight: Any) -> tuple[Any, Any]:
    if isinstance(weight, str):
        name, equals, weight = weight.rpartition("=")
        if not equals:
            raise ValueError(weight)
        return name.strip(), float(weight)
    name, number = weight
    return name, number


def _weight_name(name: Any) -> str:
    if not (isinstance(name, str) and name):
        raise ValueError(name)
    return name


def _weight(weight: Any) -> float:
    if isinstance(weight, bool | str) or not (weight == 0 or _LEAST_WEIGHT <= weight <= _MOST_WEIGHT):
        raise ValueError(weight)
    return float(weight) + 0.0


def _are_weights(value: Any) -> bool:
    if isinstance(value, str):
        return False
    try:
        _weights_of(value)
    except (ValueError, TypeError):
        return False
    return True


FLAG = Constraint(lambda v: isinstance(v, bool | np.bool_), "true or false", bool)
TEXT = Constraint(lambda v: isinstance(v, str) and bool(v), "a non-empty string")
ADDRESS = Constraint(TEXT.check, TEXT.bound, refuse=_refuse_user)
LOCATION = Constraint(is_location, "a URL or path", absolute_place, place=True)
URLS = Constraint(
    _are_urls, "a list of URLs or paths", lambda urls: tuple(map(absolute_place, urls)), item="FILE", place=True
)
URL = Constraint(TEXT.check, TEXT.bound, place=True)
VECTORS = Constraint(_are_vectors, "a URL or path, Vectors or gensim's KeyedVectors", _vectors_place, place=True)
SEPARATOR = Constraint(_is_separator, "one ASCII character, but for quotes, line ends and NUL")
DELIMITER = Constraint(_is_delimiter, "a non-empty string without white space or control characters")
OPTIONS = Constraint(_are_options, "a mapping whose keys are text", Options)


WEIGHTS = Constraint(
    _are_weights,
    f'a mapping of names to weights, 0 or in {_LEAST_WEIGHT:f}..{_MOST_WEIGHT:,.0f}, or texts such as "brand=2"',
    _weights_of,
    item="NAME=WEIGHT",
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
    told: bool = False,
    key: bool = False,
    flat: str = "",
) -> Any:
    """Declare a field.

    Parameters
    ----------
    default, help, constraint
        Its default, what it means, and the values that it takes.
    stage
        The first stage whose result it changes (see `config.identity`); None for what changes no result.
    honoured_by
        The axes whose values read it only if their `honours` name it. All values of other axes read it.
    optional
        Whether it also takes None, as a field whose default is None does: "chosen for you"; or a limit that is off.
    secret
        Whether it is never shown. Other fields refuse URLs that hold a secret.
    heading
        The heading of this field and of those below it, one of `HEADINGS`.
    first
        Its default in the first release, where that was another (see `config.identity`).
    first_ended_for
        The objectives and strategies for which another default replaced `first`; and fields, for which it did
        where they are not as by default.
    told
        Whether the list of files shows what it changes, so that names of results do not count it.
    key, flat
        Whether the others of its group mean nothing without it; its name beside those of other groups, where that is
        another (see `config.choice`).
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
        "first": first,
        "told": told,
        "first_ended_for": first_ended_for,
    }
    if isinstance(default, Mapping):
        return field(default_factory=lambda: dict(default), metadata=metadata, repr=not secret)
    return field(default=default, metadata=metadata, repr=not secret, kw_only=False if key else MISSING)


def declared_fields(cls: "type[Settings]") -> "tuple[Field[Any], ...]":
    """Return the fields of a class of settings."""
    return fields(cls)  # type: ignore[arg-type]


def default_of(f: "Field[Any]") -> Any:
    """Return the default of a field."""
    return f.default if f.default_factory is MISSING else f.default_factory()


def _shown(f: "Field[Any]", value: Any) -> str:
    """Return a value as a message shows it: nothing of what may hold secrets."""
    return shown_value(value) if f.repr else f"a {type(value).__name__} (not shown: it may hold secrets)"


def shown_value(value: Any) -> str:
    """Return a value as a message shows it: not its end where it is long."""
    try:
        text = masked(repr(value))  # before it is cut: half a URL is not known as one
    except ValueError:  # an integer of more digits than Python writes
        return f"(a {type(value).__name__} too large to write)"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def checked(f: "Field[Any]", value: Any) -> Any:
    """Return the value of a field as it is kept.

    Raises
    ------
    ParameterError
        If the field does not take it.
    """
    if value is None and f.metadata["optional"]:
        return None
    if not f.metadata["check"](value):
        bound = f.metadata["bound"] + (" or None" if f.metadata["optional"] else "")
        raise ParameterError(
            f"{f.name}={_shown(f, value)} is not {bound}.", f"Give {f.name} ({f.metadata['help']}) {bound}."
        )
    if f.repr:
        f.metadata["refuse"](f.name, value)
    try:
        return value if f.metadata["convert"] is None else f.metadata["convert"](value)
    except ParameterError as error:
        raise ParameterError(f"{f.name}={_shown(f, value)}: {error.problem}", error.remedy) from None


class Settings:
    """A dataclass whose fields are made by `setting`: it checks and converts values by names of its fields."""

    _staged: ClassVar[bool] = False  # whether each field must say which stage's result it changes
    _is_part: ClassVar[bool] = False  # whether it only holds some fields of another class

    def __init_subclass__(cls) -> None:
        """Refuse a field that would be forgotten when results are named.

        Raises
        ------
        TypeError
            If a field has no stage, or one that does not exist.
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
        """Refuse names that are no fields; `__init__` takes the values."""
        for name in values:
            if name not in cls.__dataclass_fields__:  # type: ignore[attr-defined]
                raise UnknownParameterError(
                    f"{cls.__name__} got an unexpected keyword argument {name!r}.", cls.remedy(name)
                )
        return super().__new__(cls)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of its fields."""
        return tuple(f.name for f in declared_fields(cls))

    @classmethod
    def remedy(cls, name: str) -> str:
        """Say what to give in place of a name that is no field."""
        classes = (cls, *(other for other in _wholes(Settings) if other is not cls))
        known = {c.__name__: c.names() for c in classes}
        own = cls.__name__
        meant = suggest(name, known, lambda owner, field: field if owner == own else f"{field} to {owner}")
        return meant or f"The names are: {', '.join(known[own])}."

    def __post_init__(self) -> None:
        for f in declared_fields(type(self)):
            object.__setattr__(self, f.name, checked(f, getattr(self, f.name)))  # frozen

    def items(self) -> Iterator[tuple["Field[Any]", Any]]:
        """Yield each field and its value."""
        for f in declared_fields(type(self)):
            yield f, getattr(self, f.name)

    def flat(self) -> dict[str, Any]:
        """Return all values by name."""
        return {f.name: value for f, value in self.items()}

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


def _wholes(cls: type[Settings]) -> list[type[Settings]]:
    """Return the classes derived from one, and in place of a part of another those derived from that."""
    return [one for below in cls.__subclasses__() for one in (_wholes(below) if below._is_part else [below])]
