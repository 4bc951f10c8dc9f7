"""What a run came to, told to people and programs: a JSON file, a webhook, a file for Prometheus.

The outcome stands before anything of it is told: what cannot be told is told here, and changes nothing.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from daskw2v.checked import LOCATION, Checked, Rule, choice, integer, number
from daskw2v.errors import Daskw2vError
from daskw2v.locations import absolute, is_location
from daskw2v.models.files import writing
from daskw2v.retraining.outcome import Summary
from daskw2v.retraining.textfile import metrics_of
from daskw2v.retraining.webhook import are_headers, is_webhook, post

_WEBHOOK = Rule(is_webhook, "an http or https URL with a host, without user name and password")
_HEADERS = Rule(are_headers, "a mapping of header names to texts of one line", dict)
_TEXTFILE = Rule(
    lambda v: is_location(v) and os.fspath(v).endswith(".prom") and "://" not in os.fspath(v),
    "a path on this machine that ends in .prom",
    lambda v: absolute(os.fspath(v)),
)


@dataclass(frozen=True, kw_only=True)
class Notices(Checked):
    """Who is told of a run; nobody by default.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field and range.
    """

    summary: str | None = choice(
        None, "URL or path of a JSON file of what the last run came to", LOCATION, optional=True
    )
    textfile: str | None = choice(
        None,
        "path of a file *.prom in a folder that node_exporter's textfile collector reads",
        _TEXTFILE,
        optional=True,
    )
    webhook: str | None = choice(
        None, "URL that the same JSON is posted to; never shown", _WEBHOOK, optional=True, secret=True
    )
    webhook_headers: Mapping[str, str] = choice({}, "headers of the webhook; never shown", _HEADERS, secret=True)
    webhook_timeout: float = choice(10.0, "seconds that an answer is waited for", number(0, 300, open_low=True))
    webhook_tries: int = choice(3, "times that the webhook is tried", integer(1, 10))


def tell(summary: Summary, notices: Notices, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """Tell all of them what a run came to.

    Parameters
    ----------
    summary
        What it came to.
    notices
        Who is told.
    storage_options
        Options for fsspec, for the JSON file.

    Returns
    -------
    list of str
        What could not be told, and why; no error of it is raised, and none holds a secret.
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
    """Write a file whole or not at all; return what went wrong."""
    try:
        with writing(place, storage_options) as f:
            f.write(content)
    except Exception as error:  # stores have errors of their own; what they say may hold secrets
        why = str(error) if isinstance(error, Daskw2vError) else type(error).__name__
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno is not None else why
        return f"{place} was not written ({why})."
    return None
