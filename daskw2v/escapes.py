"""Text that others wrote, made safe to print: words, names, and messages that quote them."""

import re

# Controls, separators of lines and paragraphs, bidirectional controls, lone surrogates
_HARMFUL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


def escaped(text: str) -> str:
    """Return a text as one line that is safe to print.

    Control characters, which could command a terminal, and bidirectional controls, which could reverse the text that
    follows, become visible escapes. Joiners stay, as scripts and emoji need them.
    """
    return _HARMFUL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escaped_lines(text: str) -> str:
    """Return a text of several lines, each of them `escaped`."""
    return "\n".join(map(escaped, text.split("\n")))


def escaped_json(text: str) -> str:
    """Return JSON of the same values that is safe to print."""
    return "\n".join(_HARMFUL.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in text.split("\n"))
