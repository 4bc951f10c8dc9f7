import bz2
import gzip
import hashlib
import io
import json
import lzma
import re
import tracemalloc
from unittest.mock import patch

import fsspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.corpus import streams
from daskw2v.corpus.formats import read_block
from daskw2v.corpus.pieces import RawText, ReadReport
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.corpus.tokenizers import make_tokenizer
from daskw2v.errors import InputError

NASTY = st.lists(
    st.sampled_from(["a", "bc", "é", "日本", "😀", " ", "\n", "\n\n", "\r\n", "\r", "\0", "\t", "\ufeff", "x" * 30]),
    max_size=40,
).map("".join)
# Four bytes ff begin a stream of Arrow, which is refused
NASTY_BYTES = (
    st.lists(
        st.sampled_from([b"a", b" ", b"\n", b"\r\n", b"\xff", b"\xe2\x82", "é".encode(), b"\xc3", b"yy"]),
        max_size=30,
    )
    .map(b"".join)
    .filter(lambda data: not data.startswith(b"\xff\xff\xff\xff"))
)
BOM = b"\xef\xbb\xbf"


def read(path, block_bytes=1 << 20, *, errors="strict", tokenizer="whitespace", column="text", format=None):
    """Return each block's pieces, and the report."""
    report = ReadReport()
    blocks = [
        list(
            read_block(
                block,
                column=column,
                errors=errors,
                tokenizer=make_tokenizer(tokenizer),
                storage_options={},
                report=report,
            )
        )
        for block in plan_blocks(find_sources(path, format), block_bytes)
    ]
    return blocks, report


def text(blocks):
    return b"".join(piece.data for block in blocks for piece in block)


def sentences(blocks):
    found = []
    for piece in (piece for block in blocks for piece in block):
        if isinstance(piece, RawText):
            found += [line.split() for line in piece.data.decode().split("\n") if line.split()]
            continue
        words = [bytes(piece.data[a:b]).decode() for a, b in zip(piece.offsets, piece.offsets[1:], strict=False)]
        assert piece.starts[0] == 0
        found += [words[a:b] for a, b in zip(piece.starts, [*piece.starts[1:], len(words)], strict=True)]
    return found


def in_bits(chunk, longest):
    return patch.multiple(streams, CHUNK=chunk, LONGEST=longest, PROBE=chunk)


def ended(data):
    """Return what is read of text: a carriage return alone ends a line, as a newline does."""
    data = re.sub(rb"\r(?!\n)", b"\n", data)
    return data if not data or data.endswith(b"\n") else data + b"\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("corpus") / "a.txt"


@given(NASTY, st.integers(1, 50), st.integers(1, 9), st.integers(1, 40))
def test_text__is_the_file_whatever_the_blocks(path, content, block_bytes, chunk, longest):
    data = content.encode()
    path.write_bytes(data)
    with in_bits(chunk, longest):
        blocks, report = read(path, block_bytes)
    expected = ended(data).removeprefix(BOM)
    assert text(blocks) == expected
    assert report == ReadReport(bytes_read=len(data), lines=expected.count(b"\n"))
    for pieces in blocks:
        assert not pieces or pieces[-1].data.endswith(b"\n")
        assert all(piece.data and piece.data[-1] <= 0x20 for piece in pieces)


@given(NASTY, st.integers(1, 50), st.sampled_from(["lower", "normalize"]))
def test_text__is_transformed_as_if_it_were_whole(path, content, block_bytes, tokenizer):
    path.write_bytes(content.encode())
    with in_bits(5, 7):
        blocks, _ = read(path, block_bytes, tokenizer=tokenizer)
    whole = make_tokenizer(tokenizer)(ended(content.encode()).removeprefix(BOM))
    assert text(blocks) == whole.data


@given(NASTY, st.integers(1, 50))
def test_text__gives_lines_to_functions_whole(path, content, block_bytes):
    path.write_bytes(content.encode())
    with in_bits(5, 1000):
        blocks, report = read(path, block_bytes, tokenizer=r"regex:[^\s\x00]+")
    lines = ended(content.encode()).decode().removeprefix("\ufeff").replace("\0", " ").split("\n")
    assert sentences(blocks) == [line.split() for line in lines if line.split()]
    assert report.cut == 0


def test_text__cuts_a_line_that_is_too_long_for_functions_and_counts_it(path):
    path.write_bytes(b"aa bb cc dd ee\nff gg\n")
    with in_bits(4, 6):
        blocks, report = read(path, tokenizer=r"regex:\w+")
    found = sentences(blocks)
    assert [word for sentence in found for word in sentence] == ["aa", "bb", "cc", "dd", "ee", "ff", "gg"]
    assert report.cut == len(found) - 2 > 0


@given(NASTY_BYTES, st.integers(1, 50), st.integers(1, 9))
def test_replace__puts_a_replacement_and_counts_lines(path, data, block_bytes, chunk):
    path.write_bytes(data)
    with in_bits(chunk, 1000):
        blocks, report = read(path, block_bytes, errors="replace")
    assert text(blocks) == ended(data).decode(errors="replace").encode()
    bad = [line for line in data.split(b"\n") if "\ufffd" in line.decode(errors="replace")]
    assert (report.replaced, report.skipped) == (len(bad), 0)
    assert (report.first_offence is None) == (not bad)


@given(NASTY_BYTES, st.integers(1, 50))
def test_skip__drops_lines_and_counts_them(path, data, block_bytes):
    path.write_bytes(data)
    with in_bits(5, 1000):
        blocks, report = read(path, block_bytes, errors="skip")
    bad = ["\ufffd" in line.decode(errors="replace") for line in data.split(b"\n")]
    good = [b"" if is_bad else line for is_bad, line in zip(bad, data.split(b"\n"), strict=True)]
    assert text(blocks).rstrip(b"\n") == b"\n".join(good).rstrip(b"\n")
    assert (report.replaced, report.skipped) == (0, sum(bad))


def test_skip__drops_only_the_offending_piece_of_a_long_line_and_joins_no_lines(path):
    path.write_bytes(b"aa bb \xff cc dd ee\xff\nff\n")
    with in_bits(4, 4):
        blocks, report = read(path, errors="skip")
    lines = [line.split() for line in text(blocks).split(b"\n")]
    assert lines[0][0] == b"aa"
    assert lines[1] == [b"ff"]
    assert report.skipped == 2


def test_strict__tells_the_absolute_byte(path):
    path.write_bytes(BOM + b"one\n" * 10 + b"tw\xffo\n")
    with (
        in_bits(8, 100),
        pytest.raises(InputError, match=r"a\.txt at byte 45: invalid start byte.*errors='replace'"),
    ):
        read(path, 7)


def test_replace__tells_the_first_offence(path):
    path.write_bytes(b"one\ntw\xffo\n\xfe\n")
    _, report = read(path, errors="replace")
    assert report.first_offence == f"{path} at byte 6: invalid start byte"


@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n\n", BOM, BOM + b"\n", b" "])
def test_text__accepts_files_without_tokens(path, data):
    path.write_bytes(data)
    blocks, _ = read(path, 2)
    assert text(blocks) == ended(data).removeprefix(BOM)
    assert read(path, 2, tokenizer="regex:a")[0] == [[]] * len(blocks)


def test_text__holds_one_token_longer_than_any_piece(path):
    path.write_bytes(b"x" * 1000 + b" y")
    with in_bits(8, 16):
        blocks, _ = read(path, 100)
    assert text(blocks) == b"x" * 1000 + b" y\n"
    assert blocks[0][0].data.startswith(b"x" * 1000)
    assert all(not pieces for pieces in blocks[1:])


def zst(data):
    return zstandard.ZstdCompressor().compress(data)


PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zst}


@pytest.mark.parametrize("suffix", PACK)
def test_compressed__is_streamed_with_all_its_members(tmp_path, suffix):
    packed = tmp_path / f"a.txt.{suffix}"
    parts = [BOM + b"one two\r\nthr", b"", b"ee\n" * 1000, b"end"]
    packed.write_bytes(b"".join(PACK[suffix](part) for part in parts) + b"\0" * 8)
    with in_bits(7, 100):
        blocks, report = read(packed, 1)
    assert len(blocks) == 1
    assert text(blocks) == ended(b"".join(parts)).removeprefix(BOM)
    assert report.bytes_read == len(b"".join(parts))


def test_compressed__reads_zstd_of_unknown_size_and_skippable_frames(tmp_path):
    buffer = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(buffer, closefd=False) as writer:
        writer.write(b"one\n")
    (tmp_path / "a.zst").write_bytes(b"\x50\x2a\x4d\x18\x02\0\0\0ab" + buffer.getvalue())
    assert text(read(tmp_path / "a.zst")[0]) == b"one\n"


@pytest.mark.parametrize(
    ("suffix", "line"), [*((suffix, b"\0") for suffix in PACK), ("gz", b"a line\n"), ("zst", b"a line\n")]
)
def test_decompressed__bounds_what_is_extremely_compressible(suffix, line):
    content = line * ((32 << 20) // len(line))
    packed = io.BytesIO(PACK[suffix](content))
    compression = {"gz": "gzip", "zst": "zstd"}.get(suffix, suffix)
    digest, longest = hashlib.sha256(), 0
    tracemalloc.start()
    for chunk in streams.decompressed(packed, compression, "a"):
        digest.update(chunk)
        longest = max(longest, len(chunk))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert longest <= streams.CHUNK
    assert digest.digest() == hashlib.sha256(content).digest()
    assert peak < 20 << 20  # one step of zstd, twice, or the dictionary of xz


@pytest.mark.parametrize("suffix", PACK)
def test_compressed__refuses_truncated_data_and_says_how_much_was_read(tmp_path, suffix):
    packed = tmp_path / f"a.txt.{suffix}"
    packed.write_bytes(PACK[suffix](b"one two\n" * 1000)[:-3])
    with pytest.raises(InputError, match=rf"a\.txt\.{suffix} is cut short: .* after \d+ bytes"):
        read(packed)


@pytest.mark.parametrize("suffix", PACK)
def test_compressed__refuses_corrupt_data(tmp_path, suffix):
    packed = tmp_path / f"a.txt.{suffix}"
    packed.write_bytes(PACK[suffix](b"one two\n") + b"garbage, not padding")
    with pytest.raises(InputError, match=rf"a\.txt\.{suffix} has no valid .* after 8 bytes"):
        read(packed)


def test_memory__is_read_like_any_file():
    fs = fsspec.filesystem("memory")
    fs.pipe("/corpus/a.txt", b"one two\nthree\nfour")
    try:
        assert text(read("memory://corpus/*", 5)[0]) == b"one two\nthree\nfour\n"
    finally:
        fs.store.clear()


VALUES = st.text(st.sampled_from("ab é\n日"), max_size=6) | st.lists(
    st.text(st.sampled_from("a é日"), max_size=3) | st.integers(-5, 10**20), max_size=4
)


@given(st.lists(VALUES, max_size=8), st.integers(1, 50), st.booleans())
def test_jsonl__reads_text_and_lists_in_order(path, values, block_bytes, ascii_only):
    path.write_text("\n\n".join(json.dumps({"id": 1, "text": v}, ensure_ascii=ascii_only) for v in values))
    with in_bits(7, 7):
        blocks, report = read(path, block_bytes, format="jsonl")
    expected = []
    for value in values:
        if isinstance(value, str):
            expected += [line.split() for line in value.split("\n") if line.split()]
        elif kept := [str(token) for token in value if token != ""]:
            expected.append(kept)
    assert sentences(blocks) == expected
    assert report.skipped == 0


def test_jsonl__is_read_compressed_and_by_functions(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"doc": "a b\\nc"}\r\n{"doc": ["d e", 1]}'))
    blocks, _ = read(tmp_path / "a.jsonl.gz", column="doc", tokenizer=r"regex:\w")
    assert sentences(blocks) == [["a", "b"], ["c"], ["d e", "1"]]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{nonsense", "invalid JSON"),
        (b"[" * 100_000, "invalid JSON"),
        (b"[1]", "a JSON list instead of an object"),
        (b"{}", "no key 'text'; the keys are: none"),
        (b'{"Text": "a"}', "no key 'text'; the keys are: 'Text'"),
        (b'{"text": 3}', "neither a string nor a list"),
        (b'{"text": ["a", true]}', "neither a string nor a list"),
    ],
)
def test_jsonl__stops_at_or_drops_what_it_does_not_understand(path, line, problem):
    path.write_bytes(b'{"text": "a"}\n' + line + b'\n{"text": "b"}\n')
    with pytest.raises(InputError, match=f"at byte 14: .*{problem}"):
        read(path, format="jsonl")
    for errors in ("replace", "skip"):
        blocks, report = read(path, format="jsonl", errors=errors)
        assert sentences(blocks) == [["a"], ["b"]]
        assert (report.skipped, report.lines) == (1, 3)
        assert "at byte 14" in report.first_offence


def test_jsonl__has_no_text_where_it_is_null(path):
    path.write_bytes(b'{"text": "a"}\n{"text": null}\n{"text": "b"}\n')
    blocks, report = read(path, format="jsonl")
    assert sentences(blocks) == [["a"], ["b"]]
    assert (report.skipped, report.lines) == (0, 3)


@pytest.mark.parametrize("bad", [b'"x\xff"', b'["x", "y\\ud800"]', b'"x\\udfff"'])
def test_jsonl__repairs_or_drops_what_is_no_unicode(path, bad):
    path.write_bytes(b'{"text": "a"}\n{"text": ' + bad + b"}\n")
    with pytest.raises(InputError, match="at byte"):
        read(path, format="jsonl")
    blocks, report = read(path, format="jsonl", errors="replace")
    assert sentences(blocks)[1][-1][-1] == "\ufffd"
    assert (report.replaced, report.skipped) == (1, 0)
    blocks, report = read(path, format="jsonl", errors="skip")
    assert sentences(blocks) == [["a"]]
    assert (report.replaced, report.skipped) == (0, 1)
