"""Notices about the outcome of a run: a JSON file, a webhook, a file for Prometheus.

Notices are sent after the outcome is final. A notice that fails is reported and does not change the outcome.

The file for Prometheus has the outcome as metrics in Prometheus' text format: node_exporter's textfile collector reads
the files `*.prom` of a folder. All series have the label `work`, which distinguishes the work directories of one
machine; each work directory has another file.

URL and headers of a webhook may contain secrets, so messages name only the host and the HTTP status. The body of the
response is not read, redirects are not followed, and the timeout covers the whole request.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from time import sleep
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from daskw2v.config.settings import LOCATION, Constraint, Settings, integer, number, setting
from daskw2v.errors import Daskw2vError
from daskw2v.models.stored.files import open_for_writing
from daskw2v.retraining.outcome import Outcome, Summary
from daskw2v.store.retries import call_in_time
from daskw2v.store.urls import is_location, make_absolute

_SCHEMES = ("http", "https")
# Without handlers for redirects, files and FTP
_HANDLERS = ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)  # seconds between attempts; the last one repeats
_RETRIED = {408, 425, 429}  # client errors that are retried, besides all server errors
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff]*")


def _is_webhook(value: Any) -> bool:
    """Return whether a value is an http or https URL with a host, without user name and password."""
    with suppress(ValueError):  # invalid port or IPv6 address
        if isinstance(value, str) and re.fullmatch(r"[\x21-\x7e]+", value):
            parts = urlsplit(value)
            return parts.scheme in _SCHEMES and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    return False


def _are_headers(value: Any) -> bool:
    """Return whether a value is a mapping of valid HTTP header names to valid header values."""
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and _NAME.fullmatch(name) and isinstance(text, str) and _VALUE.fullmatch(text)
        for name, text in value.items()
    )


_WEBHOOK = Constraint(_is_webhook, "an http or https URL with a host, without user name and password")
_HEADERS = Constraint(_are_headers, "a mapping of header names to texts of one line", dict)
_TEXTFILE = Constraint(
    lambda v: is_location(v) and os.fspath(v).endswith(".prom") and "://" not in os.fspath(v),
    "a path on this machine that ends in .prom",
    lambda v: make_absolute(os.fspath(v)),
    is_location=True,
)
_PREFIX = "daskw2v_retrain_"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, kw_only=True)
class Notices(Settings):
    """Destinations of notices about a run; none by default.

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

    summary: str | None = setting(None, "URL or path of a JSON file with the summary of the last run", LOCATION)
    textfile: str | None = setting(
        None, "path of a *.prom file in the folder of node_exporter's textfile collector", _TEXTFILE
    )
    webhook: str | None = setting(None, "URL to post the same JSON to; never shown", _WEBHOOK, secret=True)
    webhook_headers: Mapping[str, str] = setting({}, "HTTP headers for the webhook; never shown", _HEADERS, secret=True)
    webhook_timeout: float = setting(10.0, "timeout of the webhook in seconds", number(0, 300, open_low=True))
    webhook_tries: int = setting(3, "attempts to call the webhook", integer(1, 10))


def send_notices(summary: Summary, notices: Notices, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """Send all notices about a run; failures are returned, not raised.

    Parameters
    ----------
    summary
        Summary of the run.
    notices
        Destinations of the notices.
    storage_options
        Options for fsspec, for the JSON file `notices.summary`.

    Returns
    -------
    list of str
        Messages about notices that failed, without secrets.
    """
    content = json.dumps(summary.as_dict(), indent=1, allow_nan=False, default=float).encode()
    problems = []
    if notices.summary is not None:
        problems.append(_write_file(notices.summary, content, storage_options))
    if notices.textfile is not None:
        problems.append(_write_file(notices.textfile, format_metrics(summary).encode(errors="replace"), None))
    if notices.webhook is not None:
        timeout, tries = notices.webhook_timeout, notices.webhook_tries
        problems.append(_post_json(notices.webhook, content, notices.webhook_headers, timeout, tries))
    return [problem for problem in problems if problem is not None]


def _write_file(location: str, content: bytes, storage_options: Mapping[str, Any] | None) -> str | None:
    """Write a file atomically; return a message without secrets if that fails, or None."""
    try:
        with open_for_writing(location, storage_options) as f:
            f.write(content)
    except Exception as error:  # each store raises its own errors, whose texts may contain secrets
        cause = str(error) if isinstance(error, Daskw2vError) else type(error).__name__
        cause = os.strerror(error.errno) if isinstance(error, OSError) and error.errno is not None else cause
        return f"{location} was not written ({cause})."
    return None


def format_metrics(summary: Summary) -> str:
    """Return the metrics of a summary in Prometheus' text format, each with the label `work`."""
    lines = []
    for name, meaning, label, values in _list_gauges(summary):
        samples = {label_value: value for label_value, value in values.items() if value is not None}
        if samples:
            lines += [f"# HELP {_PREFIX}{name} {meaning}", f"# TYPE {_PREFIX}{name} gauge"]
        for label_value, value in samples.items():
            labels = {"work": summary.work, label: label_value} if label else {"work": summary.work}
            label_text = ",".join(f'{key}="{label_value.translate(_ESCAPES)}"' for key, label_value in labels.items())
            lines.append(f"{_PREFIX}{name}{{{label_text}}} {_format_value(value)}")
    return "".join(f"{line}\n" for line in lines)


def _list_gauges(summary: Summary) -> Iterator[tuple[str, str, str, Mapping[str, float | None]]]:
    """Yield name, meaning and label of each gauge, and its values by texts of the label; None stands for no value.

    A gauge without a label has the label "" and one value, by the text "".
    """
    ended = summary.started.timestamp() + summary.seconds
    yield "last_run_timestamp_seconds", "When the last run ended.", "", {"": ended}
    yield "duration_seconds", "Duration of the last run.", "", {"": summary.seconds}
    outcomes = {each.label: float(each is summary.outcome) for each in Outcome}
    yield "outcome", "1 for the outcome of the last run, 0 for the others.", "outcome", outcomes
    if summary.served is not None and summary.served_since is not None:
        since = {summary.served: summary.served_since.timestamp()}
        yield "served_timestamp_seconds", "When the served version was created.", "version", since
    gates = () if summary.verdict is None else summary.verdict.gates
    passed = {gate.name: float(gate.passed) for gate in gates}
    yield "gate_passed", "1 if the version passed the gate, 0 if not.", "gate", passed
    yield "gate_value", "Value that a gate measured.", "gate", {gate.name: gate.value for gate in gates}
    yield "gate_bound", "Bound that a gate requires.", "gate", {gate.name: gate.bound for gate in gates}
    if summary.alignment is not None:
        cosines = {"before": summary.alignment.before, "after": summary.alignment.after}
        yield "alignment_cosine", "Mean cosine with the published version's vectors.", "when", cosines
    yield "figure", "Other numbers of the run.", "name", summary.figures


def _format_value(value: float) -> str:
    """Return a number in Prometheus' text format."""
    return "NaN" if math.isnan(value) else {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, repr(float(value)))


def _post_json(url: str, content: bytes, headers: Mapping[str, str], timeout: float, tries: int) -> str | None:
    """Post JSON to a URL, with retries after errors that `_try_post` marks for retry.

    The host may receive the JSON more than once.

    Parameters
    ----------
    url, headers
        A URL that passes `_is_webhook`, and headers that pass `_are_headers`.
    content
        The JSON.
    timeout
        Seconds for each attempt, from name lookup to status.
    tries
        Number of attempts.

    Returns
    -------
    str or None
        The problem as a sentence, without secrets; None on success.
    """
    request = Request(url, content, {"User-Agent": "daskw2v", **headers, "Content-Type": "application/json"})
    problem, retry = _try_post(request, timeout)
    for attempt in range(tries - 1):
        if retry:
            sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
            problem, retry = _try_post(request, timeout)
    return None if problem is None else f"The webhook at {urlsplit(url).hostname} {problem}."


def _try_post(request: Request, timeout: float) -> tuple[str | None, bool]:
    """Send a request once; return the problem, without a subject, or None; and whether to retry.

    Errors of the server and of the connection, and statuses in `_RETRIED`, are retried.
    """
    try:
        status = call_in_time(_send, (request, timeout), timeout)  # the socket's timeout restarts with each byte
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        return f"was not reached ({_name_error(reason)})", not isinstance(error, ValueError)
    if 200 <= status < 300:
        return None, False
    if 300 <= status < 400:
        return f"answered {status}: redirects are not followed", False
    return f"answered {status}", status >= 500 or status in _RETRIED


def _send(request: Request, timeout: float) -> int:
    """Send a request; return the HTTP status of the response, whose body is not read."""
    opener = OpenerDirector()
    for handler in _HANDLERS:
        opener.add_handler(handler())
    try:
        with opener.open(request, timeout=timeout) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def _name_error(reason: object) -> str:
    """Return an error's class and the text of its errno, if any; its own text may contain the URL or data of the host.

    A timeout is "no answer in time".
    """
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    code = reason.errno if isinstance(reason, OSError) else None
    known = f": {os.strerror(code)}" if type(code) is int and code > 0 else ""
    return f"{type(reason).__name__}{known}"
