"""Things with names: objectives, devices, strategies, merge rules."""

from collections.abc import Mapping
from typing import Any, TypeVar

from daskw2v.errors import ParameterError

T = TypeVar("T")


def find(registry: Mapping[str, T], kind: str, name: str) -> T:
    """Return the entry of that name.

    Raises
    ------
    ParameterError
        If there is none; the message lists what exists. Nothing else is taken in its place.
    """
    try:
        return registry[name]
    except KeyError:
        raise ParameterError(f"{kind}={name!r} does not exist.", f"Choose one of: {', '.join(registry)}.") from None


def refuse_unread(values: Any, kind: str, name: str, options: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse what the chosen entry of a registry would not read.

    Parameters
    ----------
    values
        Params or Resources.
    kind, name
        What was chosen, and as what.
    options
        The fields that each entry reads and others may not.

    Raises
    ------
    ParameterError
        If a field that only others read is not as by default.
    """
    for field in sorted({field for fields in options.values() for field in fields} - {*options[name]}):
        value = getattr(values, field)
        if value != getattr(type(values), field):
            users = ", ".join(other for other, fields in options.items() if field in fields)
            raise ParameterError(
                f"{field}={value!r} changes nothing for {kind}={name!r}; it is for {users}.",
                f"Leave {field} out, or choose another {kind}.",
            )
