"""Invalid input: files that are not text by their first bytes, and invalid lines.

Such files are refused, whatever their names say. Invalid lines stop the run, or are repaired or skipped.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from daskw2v.corpus.pieces import ReadReport
from daskw2v.errors import InputError

T = TypeVar("T")

FIRST = 512  # first bytes of a file from which its content is recognized
LONG_WORD = 50  # bytes of the longest word that may be alone in a line; lines of FASTA have 60 to 80
_SEARCHED_BYTES, _MIN_LONG_BYTES = 1 << 16, 600  # first bytes of a text, and minimum of these in long words
# UTF-32's come first, as one of them begins like UTF-16's
_MARKS = {"UTF-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff"), "UTF-16": (b"\xff\xfe", b"\xfe\xff")}
_CONTROLS = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})
_UNPACK = "Unpack it."
_PACKED = "Unpack it, or give it a name that ends in {suffix}."
_TABLE = "Give it a name that ends in .{suffix}, or give format='{suffix}'."
_WRITE_TEXT = "Write its text to a file first."
_TAR, _TAR_OFFSET = b"ustar", 257
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Content(NamedTuple):
    """A content of files that is not text.

    Parameters
    ----------
    begins
        First bytes of such files.
    title
        Name of the content in messages.
    remedy
        Remedy in messages, in which {suffix} stands for `suffix`.
    suffix
        Suffix that makes files be read as this content, or name of a format.
    may_be_text
        Whether text may begin with the same bytes; but text has no control characters after them.
    """

    begins: bytes
    title: str
    remedy: str
    suffix: str = ""
    may_be_text: bool = False


_CONTENTS = (
    _Content(b"\x1f\x8b\x08", "gzip", _PACKED, ".gz"),
    _Content(b"BZh", "bzip2", _PACKED, ".bz2", may_be_text=True),
    _Content(b"\xfd7zXZ\0", "xz", _PACKED, ".xz"),
    _Content(b"\x28\xb5\x2f\xfd", "Zstandard", _PACKED, ".zst"),
    _Content(b"PK\x03\x04", "zip, as documents of offices and e-books are", _UNPACK),
    _Content(b"PK\x05\x06", "an empty zip", _UNPACK),
    _Content(b"7z\xbc\xaf\x27\x1c", "7z", _UNPACK),
    _Content(b"Rar!\x1a\x07", "rar", _UNPACK),
    _Content(b"\x04\x22\x4d\x18", "LZ4", _UNPACK),
    _Content(b"PAR1", "Parquet", _TABLE, "parquet", may_be_text=True),
    _Content(b"ARROW1\0\0", "Arrow IPC", _TABLE, "arrow"),
    _Content(b"\xff\xff\xff\xff", "a stream of Arrow IPC", _TABLE, "arrow"),
    _Content(b"ORC", "ORC", _TABLE, "orc", may_be_text=True),
    _Content(b"Obj\x01", "Avro", "Make Parquet of it."),
    _Content(b"SQLite format 3\0", "a database of SQLite", "Make Parquet of it."),
    _Content(b"\x89HDF\r\n\x1a\n", "HDF5", _WRITE_TEXT),
    _Content(b"\x93NUMPY", "an array of NumPy", _WRITE_TEXT),
    _Content(b"%PDF-", "PDF", _WRITE_TEXT),
    _Content(b"\x89PNG\r\n\x1a\n", "a picture", "Leave it out."),
    _Content(b"\xff\xd8\xff", "a picture", "Leave it out."),
)


def refuse_no_text(data: bytes, url: str) -> None:
    """Refuse a file whose first bytes are not text, and would be read as words.

    Parameters
    ----------
    data
        The first bytes, decompressed if the file's name is that of a compressed file.
    url
        URL of the file.

    Raises
    ------
    InputError
        If the bytes are of compressed data, an archive, a table, a document or a picture, or begin with the byte order
        mark of UTF-16 or UTF-32. Other text that is not UTF-8 is not recognized.
    """
    for encoding, marks in _MARKS.items():
        if data.startswith(marks):
            problem = f"{url} begins with the byte order mark of {encoding}; text must be UTF-8."
            raise InputError(problem, "Convert it, with iconv.")
    content = next((content for content in _CONTENTS if _has_content(data, content)), None)
    if data[_TAR_OFFSET:].startswith(_TAR):
        content = _Content(_TAR, "tar", _UNPACK)
    if content is not None:
        is_nested = bool(content.suffix) and url.lower().endswith(content.suffix)  # compressed twice
        when = " once unpacked" if is_nested else ""
        problem = f"{url} is {content.title} by its first bytes, and would be read as text{when}."
        raise InputError(problem, _UNPACK if is_nested else content.remedy.format(suffix=content.suffix))


def is_unsplit(data: bytes) -> bool:
    """Return whether most of a text is lines of one long word: sequences of letters, code, or text without blanks.

    Parameters
    ----------
    data
        The first bytes of the text.
    """
    lines = data[:_SEARCHED_BYTES].split(b"\n")
    long = sum(len(line) for line in lines if len(line) > LONG_WORD and len(line.split(None, 1)) == 1)
    return long > max(_MIN_LONG_BYTES, sum(map(len, lines)) / 2)


def _has_content(data: bytes, content: _Content) -> bool:
    """Return whether the first bytes of a file are of a content."""
    if not data.startswith(content.begins):
        return False
    first = data[:FIRST]
    return not content.may_be_text or len(first.translate(None, _CONTROLS)) < len(first)


@dataclass(frozen=True)
class InvalidInput:
    """Handles invalid input as the user chose: stops, repairs or skips, and counts.

    Parameters
    ----------
    errors
        "strict", "replace" or "skip", as in `Params`.
    report
        Counts the lines that are repaired or skipped.
    """

    errors: str
    report: ReadReport

    def note_offence(self, location: str, problem: str) -> None:
        """Note invalid input in the report, if it is the first; or stop in strict mode.

        Parameters
        ----------
        location
            The file, and the byte or row in it.
        problem
            What is invalid.

        Raises
        ------
        InputError
            If errors is "strict".
        """
        if self.errors == "strict":
            raise InputError(f"{location}: {problem}.", "Repair the file, or give errors='replace' or 'skip'.")
        self.report.first_offence = self.report.first_offence or f"{location}: {problem}"

    def skip(self, location: str, problem: str) -> None:
        """Count an invalid line that is skipped, or stop in strict mode; arguments and errors as in `note_offence`."""
        self.note_offence(location, problem)
        self.report.skipped += 1

    def valid_utf8(self, data: bytes, url: str, offset: int) -> bytes:
        """Return the bytes of lines as valid UTF-8.

        If `errors` is "replace", invalid lines are repaired. If `errors` is "skip", they become empty lines, so that
        sentences stay separate.

        Parameters
        ----------
        data
            The lines.
        url, offset
            URL of the file, and number of bytes before `data` in it, for messages.

        Raises
        ------
        InputError
            If errors is "strict" and the data is invalid.
        """
        if data.isascii():
            return data
        try:
            data.decode()
        except UnicodeDecodeError as error:
            self.note_offence(f"{url} at byte {offset + error.start}", error.reason)
            lines = [(line, line.decode(errors="replace").encode()) for line in data.split(b"\n")]
            return b"\n".join([line if repaired == line else self.choose(repaired, b"") for line, repaired in lines])
        return data

    def choose(self, repaired: T, empty: T) -> T:
        """Return an invalid line repaired, if `errors` is "replace", or an empty line, if it is "skip"; count it."""
        if self.errors == "replace":
            self.report.replaced += 1
            return repaired
        self.report.skipped += 1
        return empty

    def without_surrogates(self, texts: list[str], location: str) -> list[str]:
        r"""Return the strings of one line without lone surrogates, which JSON's "\ud800" makes.

        If a string has one, the surrogates of all strings are replaced, or no string is returned, or the run stops, by
        `errors`.

        Parameters
        ----------
        texts
            The strings.
        location
            The file, and the line's byte in it, for messages.

        Raises
        ------
        InputError
            If errors is "strict" and a string has one.
        """
        if not any(_SURROGATE.search(text) for text in texts if not text.isascii()):
            return texts
        self.note_offence(location, "a lone surrogate, which UTF-8 cannot write")
        return self.choose([_SURROGATE.sub("\ufffd", text) for text in texts], [])
