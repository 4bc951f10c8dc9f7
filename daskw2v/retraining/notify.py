"""Notices about the outcome of a run: a JSON file, a webhook, a file for Prometheus.

Notices are sent after the outcome is final. A notice that fails is reported and does not change the outcome.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from daskw2v.config.settings import LOCATION, Constraint, Settings, integer, number, setting
from daskw2v.errors import Daskw2vError
from daskw2v.models.stored.files import writing
from daskw2v.retraining.outcome import Summary
from daskw2v.retraining.textfile import metrics_of
from daskw2v.retraining.webhook import are_headers, is_webhook, post
from daskw2v.store.urls import absolute, is_location

_WEBHOOK = Constraint(is_webhook, "an http or https URL with a host, without user name and password")
_HEADERS = Constraint(are_headers, "a mapping of header names to texts of one line", dict)
_TEXTFILE = Constraint(
    lambda v: is_location(v) and os.fspath(v).endswith(".prom") and "://" not in os.fspath(v),
    "a path on this machine that ends in .prom",
    lambda v: absolute(os.fspath(v)),
    place=True,
)


@dataclass(frozen=True, kw_only=True)
class Notices(Settings):
    """Where to send notices about a run; nowhere by default.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field and range.

    Examples
    --------
    >>> import json
    >>> notices = daskw2v.Notices(summary="summary.json")
    >>> settings = {"vector_size": 8, "min_count": 1, "epochs": 1, "listener": None}
    >>> _ = daskw2v.retrain("text.txt", work="noticed", notices=notices, **settings)
    >>> with open("summary.json") as file:
    ...     json.load(file)["outcome"]
    'published'
    """

    summary: str | None = setting(
        None, "URL or path of a JSON file with the summary of the last run", LOCATION, optional=True
    )
    textfile: str | None = setting(
        None,
        "path of a *.prom file in the folder of node_exporter's textfile collector",
        _TEXTFILE,
        optional=True,
    )
    webhook: str | None = setting(
        None, "URL to post the same JSON to; never shown", _WEBHOOK, optional=True, secret=True
    )
    webhook_headers: Mapping[str, str] = setting({}, "HTTP headers for the webhook; never shown", _HEADERS, secret=True)
    webhook_timeout: float = setting(10.0, "timeout of the webhook in seconds", number(0, 300, open_low=True))
    webhook_tries: int = setting(3, "attempts to call the webhook", integer(1, 10))


def tell(summary: Summary, notices: Notices, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """Send all notices about a run.

    Parameters
    ----------
    summary
        Summary of the run.
    notices
        Where to send notices.
    storage_options
        Options for fsspec, for the JSON file.

    Returns
    -------
    list of str
        Messages about notices that failed, without secrets. No error is raised for them.
    """
    content = json.dumps(summary.as_dict(), indent=1, allow_nan=False, default=float).encode()
    problems = []
    if notices.summary is not None:
        problems.append(_written(notices.summary, content, storage_options))
    if notices.textfile is not None:
        problems.append(_written(notices.textfile, metrics_of(summary).encode(errors="replace"), None))
    if notices.webhook is not None:
        headers, timeout, tries = notices.webhook_headers, notices.webhook_timeout, notices.webhook_tries
        problems.append(post(notices.webhook, content, headers, timeout, tries))
    return [problem for problem in problems if problem is not None]


def _written(place: str, content: bytes, storage_options: Mapping[str, Any] | None) -> str | None:
    """Write a file atomically; return an error message, or None."""
    try:
        with writing(place, storage_options) as f:
            f.write(content)
    except Exception as error:  # each store raises its own errors, whose texts may contain secrets
        why = str(error) if isinstance(error, Daskw2vError) else type(error).__name__
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno is not None else why
        return f"{place} was not written ({why})."
    return None
