"""Paths of nested columns, such as doc.body, in whatever has fields by name: objects of JSON, types of Arrow."""

from collections.abc import Callable, Mapping
from typing import Any


class NoFieldError(Exception):
    """A path that leads nowhere.

    Parameters
    ----------
    present
        The fields where it ends, by their own paths.
    """

    def __init__(self, present: Mapping[str, object]) -> None:
        super().__init__(present)
        self.present = present


def find_field(path: str, root: Any, fields_of: Callable[[Any], Mapping[str, Any]]) -> tuple[list[str], Any]:
    """Return the names that lead to a nested field, and the field.

    A name may have dots itself. The longest name that fits is taken, so a field called "doc.body" comes before the
    field "body" of "doc".

    Parameters
    ----------
    path
        Names, joined by dots.
    root
        What has the first of them.
    fields_of
        Returns the fields by name; none of what has no fields.

    Raises
    ------
    NoFieldError
        If there is no such field.
    """
    names, rest, fields = list[str](), path, fields_of(root)
    while rest not in fields:
        heads = (rest[:at] for at in reversed(range(len(rest))) if rest[at] == ".")
        head = next((head for head in heads if head in fields and fields_of(fields[head])), None)
        if head is None:
            raise NoFieldError({".".join([*names, name]): field for name, field in fields.items()})
        names.append(head)
        rest, fields = rest[len(head) + 1 :], fields_of(fields[head])
    return [*names, rest], fields[rest]
