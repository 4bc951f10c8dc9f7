"""A webhook: posts JSON to a URL of the user.

URL and headers may contain secrets, so messages name only the host and the HTTP status. The body of the response is
not read, redirects are not followed, and the timeout covers the whole request.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
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

from daskw2v.store.retries import call_in_time

_SCHEMES = ("http", "https")
# Without handlers for redirects, files and FTP
_HANDLERS = ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)  # seconds between attempts; the last one repeats
_RETRIED = {408, 425, 429}  # client errors that are retried, besides all server errors
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff]*")


def is_webhook(value: Any) -> bool:
    """Return whether a value is an http or https URL with a host, without user name and password."""
    with suppress(ValueError):  # invalid port or IPv6 address
        if isinstance(value, str) and re.fullmatch(r"[\x21-\x7e]+", value):
            parts = urlsplit(value)
            return parts.scheme in _SCHEMES and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    return False


def are_headers(value: Any) -> bool:
    """Return whether a value is a mapping of valid HTTP header names to valid header values."""
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and _NAME.fullmatch(name) and isinstance(text, str) and _VALUE.fullmatch(text)
        for name, text in value.items()
    )


def post_json(url: str, content: bytes, headers: Mapping[str, str], timeout: float, tries: int) -> str | None:
    """Post JSON to a URL, with retries after timeouts and server errors; return the problem, or None.

    The host may receive the JSON more than once.

    Parameters
    ----------
    url, headers
        A URL that passes `is_webhook`, and headers that pass `are_headers`.
    content
        The JSON.
    timeout
        Seconds for each attempt, from name lookup to status.
    tries
        Number of attempts.

    Returns
    -------
    str or None
        The problem, without secrets; None on success.
    """
    request = Request(url, content, {"User-Agent": "daskw2v", **headers, "Content-Type": "application/json"})
    problem, retry = _try_post(request, timeout)
    for number in range(tries - 1):
        if retry:
            sleep(_PAUSES[min(number, len(_PAUSES) - 1)])
            problem, retry = _try_post(request, timeout)
    return None if problem is None else f"The webhook at {urlsplit(url).hostname} {problem}."


def _try_post(request: Request, timeout: float) -> tuple[str | None, bool]:
    """Send a request once; return the problem, or None, and whether to retry."""
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
    """Return a name of an error without its text, which may contain the URL or data of the host."""
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    code = reason.errno if isinstance(reason, OSError) else None
    known = f": {os.strerror(code)}" if type(code) is int and code > 0 else ""
    return f"{type(reason).__name__}{known}"
