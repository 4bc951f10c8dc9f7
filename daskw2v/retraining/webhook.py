"""A webhook: JSON, posted to a URL of the user's.

URL and headers are secrets as a rule: messages name the host at most, and nothing that came from it but a status. What
it answers is not read, where it sends us is not gone to, and it is not waited for longer than was said.
"""

import os
import re
from collections.abc import Mapping
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

from daskw2v.steady import in_time

_SCHEMES = ("http", "https")
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)  # seconds between one try and the next; the last one again and again
_AGAIN = {408, 425, 429}  # of the client's errors those that may pass; of the server's all
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff]*")


def is_webhook(value: Any) -> bool:
    """Tell whether a value is a URL to post to: http or https, a host, and no name and password before it."""
    if not isinstance(value, str) or not re.fullmatch(r"[\x21-\x7e]+", value):
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in _SCHEMES and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:  # no port, no IPv6 address
        return False


def are_headers(value: Any) -> bool:
    """Tell whether a value is a mapping of names to values that may stand in a header."""
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and _NAME.fullmatch(name) and isinstance(text, str) and _VALUE.fullmatch(text)
        for name, text in value.items()
    )


def post(url: str, content: bytes, headers: Mapping[str, str], timeout: float, tries: int) -> str | None:
    """Post JSON; who answers late or with an error of its own is asked again, and may get it twice.

    Parameters
    ----------
    url, headers
        Where to, as `is_webhook` and `are_headers` want them.
    content
        The JSON.
    timeout
        Seconds to wait for each answer, from name to status.
    tries
        How often it is tried.

    Returns
    -------
    str or None
        What went wrong, without secrets; None where it was taken.
    """
    request = Request(url, content, {"User-Agent": "daskw2v", **headers, "Content-Type": "application/json"})
    problem, again = _posted(request, timeout)
    for number in range(1, tries):
        if not again:
            break
        sleep(_PAUSES[min(number, len(_PAUSES)) - 1])
        problem, again = _posted(request, timeout)
    return None if problem is None else f"The webhook at {urlsplit(url).hostname} {problem}."


def _posted(request: Request, timeout: float) -> tuple[str | None, bool]:
    """Return what went wrong, and whether it may pass."""
    try:
        status = in_time(_status, (request, timeout), timeout)  # the socket's own timeout begins anew with each byte
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        return f"was not reached ({_named(reason)})", not isinstance(error, ValueError)
    if 200 <= status < 300:
        return None, False
    if 300 <= status < 400:
        return f"answered {status}: it sends elsewhere, which is not followed", False
    return f"answered {status}", status >= 500 or status in _AGAIN


def _status(request: Request, timeout: float) -> int:
    """Return the status of the answer, whose body is not read."""
    opener = OpenerDirector()
    handlers = ProxyHandler(), HTTPHandler(), HTTPSHandler(), HTTPDefaultErrorHandler(), HTTPErrorProcessor()
    for handler in handlers:  # no more: none for redirects, files, FTP
        opener.add_handler(handler)
    try:
        with opener.open(request, timeout=timeout) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def _named(reason: object) -> str:
    """Return what kind of error it is: texts of errors may hold the URL, or what the host sent."""
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    code = reason.errno if isinstance(reason, OSError) and type(reason.errno) is int else None
    return type(reason).__name__ if code is None or code <= 0 else f"{type(reason).__name__}: {os.strerror(code)}"
