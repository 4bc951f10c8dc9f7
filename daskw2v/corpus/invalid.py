"""Invalid input: files that are not text by their first bytes are refused, whatever their names say.

Invalid lines stop the run, or are repaired or skipped.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from daskw2v.corpus.pieces import ReadReport
from daskw2v.errors import InputError

T = TypeVar("T")

FIRST = 512  # most bytes of a file from which its content is recognized
LONG_WORD = 50  # bytes of the longest word that may be alone in a line; lines of FASTA have 60 to 80
_LOOKED_AT, _FEWEST_LONG = 1 << 16, 600  # bytes that are looked at for long words, and fewest of these
# UTF-32's come first, as one of them begins like UTF-16's
_MARKS = {"UTF-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff"), "UTF-16": (b"\xff\xfe", b"\xfe\xff")}
_CONTROLS = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})
_UNPACK = "Unpack it."
_PACKED = "Unpack it, or give it a name that ends in {how}."
_TABLE = "Give it a name that ends in .{how}, or give format='{how}'."
_OTHER = "Write its text to a file first."
_TAR, _TAR_AT = b"ustar", 257
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Content(NamedTuple):
    begins: bytes
    title: str
    remedy: str
    how: str = ""
    as_text: bool = False  # text may begin so too, but then without control characters


_CONTENTS = (
    _Content(b"\x1f\x8b\x08", "gzip", _PACKED, ".gz"),
    _Content(b"BZh", "bzip2", _PACKED, ".bz2", as_text=True),
    _Content(b"\xfd7zXZ\0", "xz", _PACKED, ".xz"),
    _Content(b"\x28\xb5\x2f\xfd", "Zstandard", _PACKED, ".zst"),
    _Content(b"PK\x03\x04", "zip, as documents of offices and e-books are", _UNPACK),
    _Content(b"PK\x05\x06", "an empty zip", _UNPACK),
    _Content(b"7z\xbc\xaf\x27\x1c", "7z", _UNPACK),
    _Content(b"Rar!\x1a\x07", "rar", _UNPACK),
    _Content(b"\x04\x22\x4d\x18", "LZ4", _UNPACK),
    _Content(b"PAR1", "Parquet", _TABLE, "parquet", as_text=True),
    _Content(b"ARROW1\0\0", "Arrow IPC", _TABLE, "arrow"),
    _Content(b"\xff\xff\xff\xff", "a stream of Arrow IPC", _TABLE, "arrow"),
    _Content(b"ORC", "ORC", _TABLE, "orc", as_text=True),
    _Content(b"Obj\x01", "Avro", "Make Parquet of it."),
    _Content(b"SQLite format 3\0", "a database of SQLite", "Make Parquet of it."),
    _Content(b"\x89HDF\r\n\x1a\n", "HDF5", _OTHER),
    _Content(b"\x93NUMPY", "an array of NumPy", _OTHER),
    _Content(b"%PDF-", "PDF", _OTHER),
    _Content(b"\x89PNG\r\n\x1a\n", "a picture", "Leave it out."),
    _Content(b"\xff\xd8\xff", "a picture", "Leave it out."),
)


def refuse_no_text(data: bytes, url: str) -> None:
    """Refuse a file of text whose first bytes are of another content, which would be read as words.

    Parameters
    ----------
    data
        The first bytes, unpacked where the name says that they are compressed.
    url
        The file.

    Raises
    ------
    InputError
        If they are of compressed data, an archive, a table, a document, or text that is not UTF-8.
    """
    for encoding, marks in _MARKS.items():
        if data.startswith(marks):
            raise InputError(
                f"{url} begins with the byte order mark of {encoding}; text must be UTF-8.", "Convert it, with iconv."
            )
    found = next((content for content in _CONTENTS if _is_of(data, content)), None)
    if data[_TAR_AT:].startswith(_TAR):
        found = _Content(_TAR, "tar", _UNPACK)
    if found is not None:
        again = bool(found.how) and url.lower().endswith(found.how)
        raise InputError(
            f"{url} is {found.title} by its first bytes, and would be read as text{' once unpacked' if again else ''}.",
            _UNPACK if again else found.remedy.format(how=found.how),
        )


def is_unsplit(data: bytes) -> bool:
    """Tell whether most of a text is lines of one long word: sequences of letters, code, or text without blanks.

    Parameters
    ----------
    data
        The first bytes of the text.
    """
    lines = data[:_LOOKED_AT].split(b"\n")
    long = sum(len(line) for line in lines if len(line) > LONG_WORD and len(line.split(None, 1)) == 1)
    return long > max(_FEWEST_LONG, sum(map(len, lines)) / 2)


def _is_of(data: bytes, content: _Content) -> bool:
    if not data.startswith(content.begins):
        return False
    first = data[:FIRST]
    return not content.as_text or len(first.translate(None, _CONTROLS)) < len(first)


@dataclass(frozen=True)
class InvalidInput:
    """The user's choice of how invalid input is handled, and a report that counts it.

    Parameters
    ----------
    errors
        "strict", "replace" or "skip".
    report
        Counts what is repaired or skipped.
    """

    errors: str
    report: ReadReport

    def offence(self, place: str, problem: str) -> None:
        """Record invalid input, or stop in strict mode.

        Raises
        ------
        InputError
            If errors is "strict".
        """
        if self.errors == "strict":
            raise InputError(f"{place}: {problem}.", "Repair the file, or give errors='replace' or 'skip'.")
        self.report.first_offence = self.report.first_offence or f"{place}: {problem}"

    def skip(self, place: str, problem: str) -> None:
        """Count a skipped line, or stop in strict mode.

        Raises
        ------
        InputError
            If errors is "strict".
        """
        self.offence(place, problem)
        self.report.skipped += 1

    def valid_utf8(self, data: bytes, url: str, offset: int) -> bytes:
        """Return lines as valid UTF-8.

        An invalid line is repaired if `errors` is "replace", and becomes an empty line if it is "skip", so that
        sentences stay separate. `url` and `offset`, the bytes before `data`, name the line in messages.

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
            self.offence(f"{url} at byte {offset + error.start}", error.reason)
            lines = [(line, line.decode(errors="replace").encode()) for line in data.split(b"\n")]
            return b"\n".join([line if repaired == line else self.either(repaired, b"") for line, repaired in lines])
        return data

    def either(self, repaired: T, nothing: T) -> T:
        """Return a line that is repaired, or nothing if it is to be skipped; count it."""
        if self.errors == "replace":
            self.report.replaced += 1
            return repaired
        self.report.skipped += 1
        return nothing

    def scalars(self, texts: list[str], place: str) -> list[str]:
        r"""Handle lone surrogates in strings, as JSON's "\ud800" makes them: stop, repair or skip.

        Raises
        ------
        InputError
            If errors is "strict" and a string has one.
        """
        if not any(_SURROGATE.search(text) for text in texts if not text.isascii()):
            return texts
        self.offence(place, "a lone surrogate, which UTF-8 cannot write")
        return self.either([_SURROGATE.sub("\ufffd", text) for text in texts], [])
