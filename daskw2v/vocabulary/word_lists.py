"""Lists of words: one a line, alone or with its count."""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from daskw2v.config.resources import Resources
from daskw2v.corpus.sources import read_chunks
from daskw2v.corpus.streams import chunks_with_newlines, pieces
from daskw2v.errors import InputError

_BLANKS = b" \t\r"
_COUNT = rb'"?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"?'
_QUOTED = rb'"(?:[^"]|"")*"'
_REMEDY = "Give one word a line, or a word and its count in each line."


class _Form(NamedTuple):
    """A form of lines with words: a pattern whose first group is the word; whether a header may come first."""

    title: str
    pattern: re.Pattern[bytes]
    header: bool = True


_FORMS = (
    _Form("a word, a tab and its count", re.compile(rb"([^\t]*)\t[ ]*" + _COUNT)),
    _Form("CSV of words and their counts", re.compile(rb"(" + _QUOTED + rb"|[^,]*),[ ]*" + _COUNT)),
    _Form("a word, a blank and its count", re.compile(rb"(.*[^ ])[ ]+" + _COUNT), header=False),
)


def read_list(
    url: str, resources: Resources, most: int = 1 << 30, say: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Read a list of words without duplicates.

    By the first lines, each line is a word, or a word and its count, which is left out.

    Parameters
    ----------
    url
        The list, in UTF-8.
    resources
        How it is reached.
    most
        Most bytes; a word takes about 100 bytes of memory.
    say
        Called with a message about a form with counts.

    Raises
    ------
    InputError
        If it cannot be read, is empty, or only its first lines have counts.
    """
    chunks = read_chunks(url, resources.storage_options, most, resources.store_timeout)
    distinct, form = dict[bytes, None](), None
    try:
        # Piece by piece: a list of all lines could take far more memory than the words that differ
        for offset, piece in pieces(chunks_with_newlines(chunks), 0, whole_lines=True):
            lines = (piece if offset else piece.removeprefix(codecs.BOM_UTF8)).split(b"\n")
            words = [word for line in lines if (word := line.strip(_BLANKS))]
            if not offset:
                form = _form_of(words)
                words = words[form is not None and form.pattern.fullmatch(words[0]) is None :]
            distinct.update(dict.fromkeys(words if form is None else _words(words, form, url)))
        decoded = [word.decode() for word in distinct if word]
    except UnicodeDecodeError as error:
        raise InputError(
            f"The list of words {url} cannot be read ({error}).", "Give UTF-8 text, one word a line."
        ) from error
    if not decoded:
        raise InputError(f"The list of words {url} is empty.", "Give one word a line.")
    if form is not None:
        say(f"{url} is read as {form.title}, which is left out.")
    return decoded


def _form_of(lines: Sequence[bytes]) -> _Form | None:
    """Return the form of the first lines that are not blank; None for words alone.

    A single line, and what follows a header, may be a word that ends in a number.
    """
    for form in _FORMS:
        matched = [form.pattern.fullmatch(line) is not None for line in lines]
        if len(lines) > 1 and all(matched[form.header and not matched[0] :]):
            return form
    return None


def _words(lines: Sequence[bytes], form: _Form, url: str) -> Iterator[bytes]:
    for line in lines:
        match = form.pattern.fullmatch(line)
        if match is None:
            shown = line[:60].decode(errors="replace")
            raise InputError(f"{shown!r} of {url} is no line of {form.title}, as the first lines are.", _REMEDY)
        word = match[1].strip(_BLANKS)
        yield word[1:-1].replace(b'""', b'"') if re.fullmatch(_QUOTED, word) else word
