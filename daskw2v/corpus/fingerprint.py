"""Fingerprints of functions."""

import hashlib
from collections.abc import Callable
from types import CodeType
from typing import Any

_PLAIN = (str, bytes, int, float, complex, type(None), type(...), slice)


def fingerprint(function: Callable[..., Any]) -> str:
    """Return 20 hexadecimal digits that change with a function's code.

    It covers the instructions, constants, names and defaults of the function, of functions defined inside it, and of
    functions that decorators wrap. It does not cover functions that it calls, globals that it reads, and code that is
    not Python. Another version of Python changes it, too.

    Parameters
    ----------
    function
        A function, or an object with `__call__`.
    """
    parts: list[Any] = []
    current: Any = function
    while current is not None:
        code = getattr(current, "__code__", None) or getattr(type(current).__call__, "__code__", None)
        defaults = getattr(current, "__defaults__", None), *(getattr(current, "__kwdefaults__", None) or {}).items()
        parts.append(_described((code, *defaults)))
        current = getattr(current, "__wrapped__", None)
    return hashlib.blake2b(repr(parts).encode(), digest_size=10).hexdigest()


def _described(value: Any) -> Any:
    """Return a value whose repr is the same in every process: without addresses and the order of sets."""
    if isinstance(value, CodeType):
        constants = [_described(constant) for constant in value.co_consts]
        return value.co_code, value.co_exceptiontable, value.co_names, constants
    if isinstance(value, tuple):
        return [_described(part) for part in value]
    if isinstance(value, frozenset):
        return sorted(repr(_described(part)) for part in value)
    return value if isinstance(value, _PLAIN) else type(value).__name__
