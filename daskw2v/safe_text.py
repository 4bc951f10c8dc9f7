"""Text that is safe to show: URLs without secrets, and no characters that control a terminal.

Secrets are passwords, users in URLs of the web and in addresses of schedulers (which may be tokens), and queries and
fragments with names such as token, sig or code.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

_URL = re.compile(r"\s*(?:[a-z][\w+.-]*::)*[a-z][\w+.-]*://", re.I)  # how a URL begins, or a chain of them
# A user without password is a token in these URLs, and a name in other URLs
_USER = re.compile(r"((?:https?|webdav|tcp|tls|wss?|ucx|proxy|gateway)://)[^/?#]*@", re.I)
# Without ports, chains and addresses of IPv6; github://owner:repository@branch/ has no password
_PASSWORD = re.compile(r"((?<!github)://)[^/@:?#[]*:(?!:|\d*(?:[/?#]|$)).*@", re.I | re.DOTALL)
_NAMED = re.compile(r"[?&;#]([^?&;#=]*)=")
# Words in the names of secrets, such as X-Amz-Signature, api_key or accessToken, but not keyword, author or barcode
_SECRET = re.compile(
    "(?<![a-z])([a-z]*(token|secret|password|passwd|pwd|credentials?|signature|jwt|session(id)?)|"
    "[a-z]*(api|access|account|private|shared|master|auth)key(id)?|key|sig|(user)?pass|auth|authorization|bearer)(?![a-z])"
    "|^(code|sas)$",
    re.I,
)
_CLOSING = "\"'),.:;>]}"  # characters that end a URL in a sentence

# Controls, separators of lines and paragraphs, bidirectional controls, lone surrogates
_HARMFUL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


def masked(text: str) -> str:
    """Return a text, such as a message, with "..." instead of the secrets in its URLs."""
    return re.sub(r"\S+", _mask_word, text) if "://" in text else text


def without_secrets(value: Any) -> Any:
    """Return a setting's value, or JSON, in which each text that is a URL has "..." instead of secrets."""
    if isinstance(value, str):
        return _mask_url(value) if _URL.match(value) else value
    if isinstance(value, Mapping):
        return {without_secrets(name): without_secrets(item) for name, item in value.items()}
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    return tuple(map(without_secrets, value)) if isinstance(value, tuple) else value


def _mask_word(match: re.Match[str]) -> str:
    """Return a matched word, without secrets if it is a URL."""
    word = match[0]
    url = word.rstrip(_CLOSING)
    return _mask_url(url) + word[len(url) :] if "://" in url else word


def _mask_url(url: str) -> str:
    """Return a URL with "..." instead of its secrets."""
    url = _PASSWORD.sub(r"\1...@", _USER.sub(r"\1...@", url))
    secret = next((match for match in _NAMED.finditer(url) if _SECRET.search(unquote(match[1]))), None)
    return url if secret is None else f"{url[: secret.start()]}?..."


def escaped(text: str) -> str:
    """Return a text as one line that is safe to print.

    Control characters, which could command a terminal, and bidirectional controls, which could reverse the following
    text, become visible escapes. Joiners are unchanged, as scripts and emoji need them.
    """
    return _HARMFUL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def escaped_lines(text: str) -> str:
    """Return a text of several lines that is safe to print: each line as `escaped` returns it."""
    return "\n".join(map(escaped, text.split("\n")))


def escaped_json(text: str) -> str:
    """Return JSON with the values of `text`, which is JSON, that is safe to print."""
    return "\n".join(_HARMFUL.sub(lambda match: f"\\u{ord(match[0]):04x}", line) for line in text.split("\n"))
