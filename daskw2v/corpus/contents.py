"""What the first bytes of a file tell of its content, whatever its name says."""

from typing import NamedTuple

from daskw2v.errors import InputError

FIRST = 512  # bytes that are looked at for what a file holds, at most
LONG_WORD = 50  # bytes of the longest word that may be alone in a line; lines of FASTA have 60 to 80
_LOOKED_AT, _FEWEST_LONG = 1 << 16, 600  # bytes that are looked at for long words, and fewest of these
_MARKS = {  # longer ones first, as UTF-32's begins like UTF-16's
    b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16",
}  # fmt: skip
_CONTROLS = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})
_UNPACK = "Unpack it."
_PACKED = "Unpack it, or give it a name that ends in {how}."
_TABLE = "Give it a name that ends in .{how}, or give format='{how}'."
_OTHER = "Write its text to a file first."
_TAR, _TAR_AT = b"ustar", 257


class _Content(NamedTuple):
    begins: bytes
    title: str
    remedy: str
    how: str = ""
    as_text: bool = False  # text may begin so, but no control character follows then


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
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
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
