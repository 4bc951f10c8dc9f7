"""Lists of words: files with one word a line, alone or with its count."""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from daskw2v.config.resources import Resources
from daskw2v.corpus.sources import read_chunks
from daskw2v.corpus.streams import chunks_with_newlines, cut_pieces
from daskw2v.errors import InputError

_BLANKS = b" \t\r"
_COUNT = rb'"?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"?'
_QUOTED = rb'"(?:[^"]|"")*"'
_REMEDY = "Give one word a line, or a word and its count in each line."


class _Form(NamedTuple):
    """A form of lines that hold a word and its count.

    Parameters
    ----------
    title
        Name of the form in messages.
    pattern
        Pattern of a line; the first group is the word.
    header
        Whether the first line may be a header.
    """

    title: str
    pattern: re.Pattern[bytes]
    header: bool = True


_FORMS = (
    _Form("a word, a tab and its count", re.compile(rb"([^\t]*)\t[ ]*" + _COUNT)),
    _Form("CSV of words and their counts", re.compile(rb"(" + _QUOTED + rb"|[^,]*),[ ]*" + _COUNT)),
    _Form("a word, a blank and its count", re.compile(rb"(.*[^ ])[ ]+" + _COUNT), header=False),
)


def read_list(
    url: str, resources: Resources, max_bytes: int = 1 << 30, report: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Read the distinct words of a list, in order.

    The first lines decide whether each line is a word, or a word and its count, which is left out.

    Parameters
    ----------
    url
        URL or path of the list, in UTF-8.
    resources
        Options and timeout of the store.
    max_bytes
        Maximum size of the list, decompressed; a word takes about 100 bytes of memory.
    report
        Called with a message if the lines have counts.

    Raises
    ------
    InputError
        If the list cannot be read, is empty, is too long, or only its first lines have counts.
    """
    chunks = read_chunks(url, resources.storage_options, max_bytes, resources.store_timeout)
    distinct, form = dict[bytes, None](), None
    try:
        # Piece by piece: a list of all lines could take far more memory than the distinct words
        for offset, piece in cut_pieces(chunks_with_newlines(chunks), 0, whole_lines=True):
            lines = (piece if offset else piece.removeprefix(codecs.BOM_UTF8)).split(b"\n")
            words = [word for line in lines if (word := line.strip(_BLANKS))]
            if not offset:
                form = _detect_form(words)
                words = words[form is not None and form.pattern.fullmatch(words[0]) is None :]
            distinct.update(dict.fromkeys(words if form is None else _parse_words(words, form, url)))
        decoded = [word.decode() for word in distinct if word]
    except UnicodeDecodeError as error:
        problem = f"The list of words {url} cannot be read ({error})."
        raise InputError(problem, "Give UTF-8 text, one word a line.") from error
    if not decoded:
        raise InputError(f"The list of words {url} is empty.", "Give one word a line.")
    if form is not None:
        report(f"{url} is read as {form.title}, which is left out.")
    return decoded


def _detect_form(lines: Sequence[bytes]) -> _Form | None:
    """Return the first of `_FORMS` that all lines, none of them blank, have; None if each line is a word alone.

    The first line may be a header. A single line is a word alone, also if it ends in a number.
    """
    for form in _FORMS:
        matched = [form.pattern.fullmatch(line) is not None for line in lines]
        if len(lines) > 1 and all(matched[form.header and not matched[0] :]):
            return form
    return None


def _parse_words(lines: Sequence[bytes], form: _Form, url: str) -> Iterator[bytes]:
    """Yield the word of each line without quotes and blanks; raises an InputError for a line of another form."""
    for line in lines:
        match = form.pattern.fullmatch(line)
        if match is None:
            shown = line[:60].decode(errors="replace")
            raise InputError(f"{shown!r} of {url} is no line of {form.title}, as the first lines are.", _REMEDY)
        word = match[1].strip(_BLANKS)
        yield word[1:-1].replace(b'""', b'"') if re.fullmatch(_QUOTED, word) else word
