"""Settings as keywords of calls: `train(text, vector_size=50, workers=2)`."""

from collections.abc import Mapping, Sequence
from typing import Any

from daskw2v.config.arguments import check_arguments
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import Settings
from daskw2v.config.suggestions import suggest
from daskw2v.errors import UnknownParameterError


def with_keywords(
    call: str, params: Params, resources: Resources | None, settings: Mapping[str, Any]
) -> tuple[Params, Resources]:
    """Return Params and Resources, changed by keywords.

    Parameters
    ----------
    call
        Name of the function, for errors.
    params, resources
        What the keywords change.
    settings
        The keywords: fields of `Params`, settings of its choices, and fields of `Resources`.

    Raises
    ------
    ParameterError
        If `params` or `resources` are of other types, a keyword is neither's, or a value is out of range.
    """
    resources = Resources() if resources is None else resources
    check_arguments(params=params, resources=resources)
    of_params, of_resources = split(call, settings, Params, Resources)
    return params.replace(**of_params), resources.replace(**of_resources)


def split(call: str, settings: Mapping[str, Any], *classes: type[Settings]) -> list[dict[str, Any]]:
    """Return the keywords of each class; of classes that share a name the first has it.

    Raises
    ------
    UnknownParameterError
        If a keyword is of no class; the error suggests another.
    """
    parts: list[dict[str, Any]] = [{} for _ in classes]
    for name, value in settings.items():
        part = next((part for cls, part in zip(classes, parts, strict=True) if name in cls.names()), None)
        if part is None:
            raise unknown_keyword(call, name, [known for cls in classes for known in cls.names()])
        part[name] = value
    return parts


def unknown_keyword(call: str, name: str, names: Sequence[str]) -> UnknownParameterError:
    """Return the error for a keyword that is none of the names of a call; it suggests one, or a class that has it."""
    remedy = suggest(name, {"": names}, lambda _, known: known) or Params.remedy(name)
    return UnknownParameterError(f"{call}() got an unexpected keyword argument {name!r}.", remedy)
