"""Text that is damaged, strange, gone or not to be read: a clear error, or a documented reading; nothing is lost."""

import bz2
import gzip
import io
import lzma
import os
import re
import tarfile
import time
import zipfile
from itertools import pairwise

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
import zstandard
from fsspec.registry import known_implementations

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Batch, batch_blocks
from daskw2v.corpus.formats import read_block
from daskw2v.corpus.pieces import RawText, ReadReport
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.corpus.tokenizers import make_tokenizer
from daskw2v.errors import InputError, MissingExtraError, ParameterError
from daskw2v.shards.encode import build_corpus, encode_batch
from daskw2v.shards.layout import Corpus, Shard, open_codes, read_words
from daskw2v.store.storage import Store

POLICIES = ["strict", "replace", "skip"]
PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress}
RULES = {"tokenizer": "whitespace", "column": "text", "errors": "strict"}


def pieces_of(path, errors="strict", tokenizer="whitespace", block_bytes=1 << 20, **options):
    """Yield the pieces of all blocks; the last thing yielded is the report."""
    report, chosen = ReadReport(), {"column": "text", "errors": errors, "tokenizer": make_tokenizer(tokenizer)}
    for block in plan_blocks(find_sources(path, **options), block_bytes):
        yield from read_block(block, **chosen, storage_options={}, report=report)
    yield report


def read(path, errors="strict", tokenizer="whitespace", **options):
    """Return the sentences of a file, and the report."""
    *pieces, report = pieces_of(path, errors, tokenizer, **options)
    found, line = [], b""
    for piece in pieces:
        if isinstance(piece, RawText):
            line += piece.data
            continue
        words = [piece.data[a:b].tobytes() for a, b in pairwise(piece.offsets)]
        found += [words[a:b] for a, b in zip(piece.starts, [*piece.starts[1:], len(words)], strict=True)]
    found += [words for sentence in line.split(b"\n") if (words := re.split(rb"[\0-\x20]+", sentence.strip(SPACES)))[0]]
    return [[word.decode() for word in words] for words in found], report


SPACES = bytes(range(0x21))


def write(folder, name, content):
    (folder / name).write_bytes(content)
    return folder / name


def parquet(column):
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": column}), buffer, compression="none")
    return buffer.getvalue().to_pybytes()


def orc(column):
    buffer = pa.BufferOutputStream()
    pa.orc.write_table(pa.table({"text": column}), buffer)
    return buffer.getvalue().to_pybytes()


def ipc(new):
    buffer = pa.BufferOutputStream()
    table = pa.table({"text": ["one"]})
    with new(buffer, table.schema) as writer:
        writer.write_table(table)
    return buffer.getvalue().to_pybytes()


def archive(opened, method, *member):
    buffer = io.BytesIO()
    with opened(buffer, "w") as file:
        getattr(file, method)(*member)
    return buffer.getvalue()


ROWS = parquet([f"row {i}" for i in range(5000)])
NOISE = os.urandom(9000).hex().encode()
JSONL = b'{"text": "one"}\n'
CUT = "Write the file again, or leave it out."
UTF_8 = "text must be UTF-8. Convert it, with iconv."

DAMAGED = {  # name of a file: its content, and what is said of it whatever `errors` is
    **{f"short.{s}": (PACK[s](b"one two\n" * 99)[:-2], rf"is cut short: its \w+ data stop.*{CUT}") for s in PACK},
    **{f"half.{s}": (PACK[s](NOISE)[:4000], rf"is cut short: its \w+ data stop.*{CUT}") for s in PACK},
    **{f"empty.{s}": (b"", rf"is cut short: it is empty, which no \w+ file is.*{CUT}") for s in [*PACK, "parquet"]},
    **{f"magic.{s}": (b"text that nobody packed\n", rf"has no valid \w+ data after 0 bytes.*{CUT}") for s in PACK},
    **{f"zeros.{s}": (b"\0" * 500, rf"(has no valid \w+ data after 0 bytes|is cut short).*{CUT}") for s in PACK},
    **{f"rest.{s}": (PACK[s](b"one\n") + NOISE, rf"has no valid \w+ data after 4 bytes.*{CUT}") for s in PACK},
    "le.txt": ("\ufeffone\n".encode("utf-16-le"), f"begins with the byte order mark of UTF-16; {UTF_8}"),
    "be.txt": ("\ufeffone\n".encode("utf-16-be"), f"begins with the byte order mark of UTF-16; {UTF_8}"),
    "le.jsonl": ('\ufeff{"text": "one"}\n'.encode("utf-32-le"), f"byte order mark of UTF-32; {UTF_8}"),
    "be.txt.gz": (gzip.compress("\ufeffone\n".encode("utf-32-be")), f"byte order mark of UTF-32; {UTF_8}"),
    "empty.csv": (b"", rf"is cut short: it is empty, which no CSV file is.*{CUT}"),
    "blank.csv": (b"\n\n", "no column 'text'. Give column; the columns are: none"),
    "both.csv": (b"text\none\ntwo,\xff\n", r"cannot be read as CSV after row 1 \(.*Repair the file"),
    "le.csv": ("\ufefftext\n".encode("utf-16-le"), f"byte order mark of UTF-16; {UTF_8}"),
    "other.csv": (b"id;text\n1;one\n", "no column 'text'. Give column; the columns are: id;text"),
    "short.csv.gz": (gzip.compress(b"text\none two\n" * 99)[:-2], rf"is cut short: its \w+ data stop.*{CUT}"),
    "short.parquet": (ROWS[:-9], rf"cannot be read as Parquet \(.*{CUT}"),
    "half.parquet": (ROWS[: len(ROWS) // 2], rf"cannot be read as Parquet \(.*{CUT}"),
    "hole.parquet": (ROWS[:400] + bytes(4000) + ROWS[4400:], rf"cannot be read as Parquet \(.*{CUT}"),
    "magic.parquet": (b"a,b\n1,2\n", rf"cannot be read as Parquet \(.*{CUT}"),
    "numbers.parquet": (parquet([1.5]), r"'text' of .* is of type double; it must be strings.*columns are: text"),
    "nested.parquet": (parquet([{"a": "b"}]), r"'text' of .* is of type struct.*Give column"),
}


# What no name of text tells: by title, the content and the remedy
CONTENTS = {
    "gzip": (gzip.compress(b"one\n"), r"Unpack it, or give it a name that ends in \.gz"),
    "bzip2": (bz2.compress(b"one\n"), r"a name that ends in \.bz2"),
    "xz": (lzma.compress(b"one\n"), r"a name that ends in \.xz"),
    "Zstandard": (PACK["zst"](b"one\n"), r"a name that ends in \.zst"),
    "zip": (archive(zipfile.ZipFile, "writestr", "a.txt", b"one\n"), "Unpack it"),
    "tar": (
        archive(lambda file, mode: tarfile.TarFile(fileobj=file, mode=mode), "addfile", tarfile.TarInfo("a")),
        "Unpack",
    ),
    "Parquet": (ROWS, r"a name that ends in \.parquet, or give format='parquet'"),
    "Arrow IPC": (ipc(pa.ipc.new_file), "format='arrow'"),
    "a stream of Arrow IPC": (ipc(pa.ipc.new_stream), "format='arrow'"),
    "ORC": (orc([f"row {i}" for i in range(50)]), "format='orc'"),
    "PDF": (b"%PDF-1.7\n", "Write its text to a file first"),
}


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.txt.gz"])
@pytest.mark.parametrize("title", CONTENTS)
def test_content__that_is_no_text_is_refused_whatever_the_name_says(tmp_path, title, name):
    content, remedy = CONTENTS[title]
    path = write(tmp_path, name, gzip.compress(content) if name.endswith(".gz") else content)
    remedy = "Unpack it" if name.endswith(".gz") and title == "gzip" else remedy
    with pytest.raises(
        InputError, match=f"^{path} is {title}.* by its first bytes, and would be read as text.*{remedy}"
    ):
        read(path, "replace")


def test_content__is_told_before_any_block_of_a_file_is_read(tmp_path):
    with pytest.raises(InputError, match="is Parquet by its first bytes"):
        plan_blocks(find_sources(write(tmp_path, "a.txt", ROWS)), len(ROWS) // 4)


@pytest.mark.parametrize("begins", [b"PAR1", b"ORC", b"BZh9", b"PK", b"ustar"])
def test_text__may_begin_as_the_names_of_formats_do(tmp_path, begins):
    assert read(write(tmp_path, "a.txt", begins + b"HARD is\ta word\n" * 99))[0][0][0] == (begins + b"HARD").decode()


@pytest.mark.parametrize("errors", POLICIES)
@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_file__is_refused_whatever_the_policy(tmp_path, name, errors):
    content, message = DAMAGED[name]
    with pytest.raises(InputError, match=f"(?s)^(Column )?.*{message}") as caught:
        read(write(tmp_path, name, content), errors)
    assert name in str(caught.value)


STRANGE = {  # name of a file: its content, and the sentences read
    "empty.txt": (b"", []),
    "blank.txt": (b"\n \n\t\r\n\n", []),
    "empty.jsonl": (b"", []),
    "blank.jsonl": (b"\n \n", []),
    "header.csv": (b"text", []),
    "quoted.csv": (b'id,text\r\n1,"one\ntwo, ""three"""\r\n\r\n2,NA', [["one"], ["two,", '"three"'], ["NA"]]),
    "bom.csv": (b"\xef\xbb\xbftext\none\n", [["one"]]),
    "tabs.tsv": (b"id\ttext\n1\tone, two\n", [["one,", "two"]]),
    "none.parquet": (parquet(pa.array([], pa.string())), []),
    "nulls.parquet": (parquet(pa.array([None, "", " "], pa.string())), []),
    "nothing.gz": (gzip.compress(b""), []),
    "word.txt": (b"word", [["word"]]),
    "word.jsonl": (b'{"text": ["word"]}', [["word"]]),
    "nul.txt": (b"one\0two\0\0three\n\0\n", [["one", "two", "three"]]),  # bytes up to 0x20 separate
    "nul.jsonl": (rb'{"text": ["a\u0000b"]}', [["a\0b"]]),  # tokens are what they are
    "cr.txt": (b"one\rtwo\r\rthree\r", [["one"], ["two"], ["three"]]),
    "cr.txt.gz": (gzip.compress(b"one\rtwo"), [["one"], ["two"]]),
    "cr.jsonl": (b'{"text": "one\\rtwo"}\r{"text": "three"}\r', [["one"], ["two"], ["three"]]),
    "cr.csv": (b'id,text\r1,"one\rtwo"\r2,three\r', [["one"], ["two"], ["three"]]),
    "cr.parquet": (parquet(["one\rtwo"]), [["one"], ["two"]]),
    "crlf.txt": (b"one two\r\nthree\r\n", [["one", "two"], ["three"]]),
    "bom.txt": (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo", [["one"], ["\ufefftwo"]]),  # only the first is a mark
    "other.txt": ("one\x85two\u2028three\x0bfour".encode(), [["one\x85two\u2028three", "four"]]),
    "twice.jsonl": (b'{"text": "one", "text": "two"}', [["two"]]),
}


@pytest.mark.parametrize("errors", POLICIES)
@pytest.mark.parametrize("name", STRANGE)
def test_strange_file__is_read_as_documented(tmp_path, name, errors):
    content, sentences = STRANGE[name]
    found, report = read(write(tmp_path, name, content), errors)
    assert found == sentences
    assert (report.replaced, report.skipped, report.first_offence) == (0, 0, None)


@pytest.mark.parametrize(("data", "lines"), [(b"a\rb", ["a", "b"]), (b"a\r\nb\0c\r\n", ["a", "b\0c"])])
def test_functions__are_given_lines_without_their_ends_and_nul_as_it_is(tmp_path, data, lines):
    found, _ = read(write(tmp_path, "a.txt", data), tokenizer=r"regex:(?s).+")
    assert found == [[line] for line in lines]


INVALID = {  # content, what is replaced, what is left out, the byte named
    "a.txt": (b"one \xff\ntwo\n", [["one", "\ufffd"], ["two"]], [["two"]], 4),
    "cut.txt": (b"one\ntwo \xe2\x82", [["one"], ["two", "\ufffd"]], [["one"]], 8),
    "overlong.txt": (b"\xc0\x80 one\n", [["\ufffd\ufffd", "one"]], [], 0),
    "surrogate.txt": (b"one \xed\xa0\x80\n", [["one", "\ufffd\ufffd\ufffd"]], [], 4),
    "a.txt.gz": (gzip.compress(b"one \xff\ntwo\n"), [["one", "\ufffd"], ["two"]], [["two"]], 4),
    "a.jsonl": (b'{"text": "\xff"}\n' + JSONL, [["\ufffd"], ["one"]], [["one"]], 10),
    "pair.jsonl": (JSONL + rb'{"text": "\ud800"}', [["one"], ["\ufffd"]], [["one"]], 16),
    "json.jsonl": (JSONL + b"{text: one}\n", [["one"]], [["one"]], 16),
    "array.json": (b'[\n{"text": "one"}\n]', [["one"]], [["one"]], 0),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_text__stops_is_replaced_or_left_out_and_counted(tmp_path, name):
    content, replaced, skipped, at = INVALID[name]
    path = write(tmp_path, name, content)
    with pytest.raises(InputError, match=rf"{name} at byte {at}: .*errors='replace' or 'skip'"):
        read(path, "strict")
    for errors, sentences in (("replace", replaced), ("skip", skipped)):
        found, report = read(path, errors)
        assert found == sentences
        assert report.replaced + report.skipped >= 1
        assert report.first_offence.startswith(f"{path} at byte {at}: ")


NAMES = [
    "sp ace.txt",
    "ünï日.txt",
    "new\nline.txt",
    "st*r.txt",
    "br[a]cket.txt",
    "wh?t.txt",
    "{a,b}.txt",
    "#h.txt",
    "%41.txt",
    "a;b.txt",
    "-x.txt",
    "a&key=b.txt",
    "~.txt",
    "'q\".txt",
    "back\\slash.txt",
    "x" * 240 + ".txt",
    os.fsdecode(b"caf\xe9.txt"),
]


@pytest.mark.parametrize("name", NAMES)
def test_name__may_be_anything(tmp_path, name):
    path = write(tmp_path, name, b"one two\n")
    assert read(path)[0] == [["one", "two"]]
    (batch,) = batch_blocks(plan_blocks(find_sources(path), 1 << 20), 1 << 20)
    assert batch.blocks[0].source.url == str(path)


def test_name__that_is_no_utf8_is_read_and_shown_escaped(tmp_path, client):
    path = write(tmp_path, os.fsdecode(b"caf\xe9.txt"), b"one two\xff\n")
    store = Store(str(tmp_path / "work"))
    corpus = build_corpus(tmp_path, store, Params(), Resources(), client, None)
    assert [source.url for source in Corpus.load(store, corpus.name).sources] == [str(path)]
    with pytest.raises(InputError, match=r"caf\\udce9\.txt at byte 7: invalid start byte"):
        build_corpus(tmp_path, store, Params(errors="strict"), Resources(), client, None)


WRONG_TYPES = [None, 5, b"a.txt", "", [""], [None], [5], [b"a.txt"], ["a\0b"], {"a": 1}.values()]


@pytest.mark.parametrize("inputs", WRONG_TYPES, ids=repr)
def test_inputs__must_be_urls_or_paths(inputs):
    with pytest.raises(ParameterError, match=r"^input=.* is no URL or path\. Give text that is not empty"):
        find_sources(inputs)


@pytest.mark.parametrize("inputs", [[], ()], ids=repr)
def test_inputs__must_be_some(inputs):
    with pytest.raises(InputError, match=r"^No input is named\. Give at least one file"):
        find_sources(inputs)


@pytest.mark.parametrize(
    ("protocol", "error", "message"),
    [
        ("nosuch", ParameterError, r"^A URL of nosuch:// cannot be opened: Protocol not known: nosuch\. Give a path"),
        ("absent", MissingExtraError, r"^URLs of absent:// need a package that is not installed.*pip install"),
    ],
)
def test_protocol__must_be_known_and_installed(monkeypatch, protocol, error, message):
    monkeypatch.setitem(known_implementations, "absent", {"class": "absent_package.FileSystem"})
    for ask in (find_sources, lambda url: Store(url).exists()):
        with pytest.raises(error, match=message):
            ask(f"{protocol}://host/a.txt")


def test_filesystem__that_does_not_answer_is_named(no_pauses, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("Unable to locate credentials")

    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "isfile", refuse)
    with pytest.raises(InputError, match=r"memory://a cannot be searched \(RuntimeError: Unable to locate"):
        find_sources("memory://a")


def make_fifo(path):
    os.mkfifo(path)


def make_broken_link(path):
    path.symlink_to(path.with_name("nowhere"))


def make_loop(path):
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "pattern", "message"),
    [
        (make_fifo, "thing", "is a pipe, a socket or a device, which cannot be read in blocks. Copy it to a file"),
        (make_broken_link, "thing", "matches no file. Check the path, broken links"),
        (make_broken_link, "th*", r"thing is a link to .*nowhere, which is not there\. Check the path, broken links"),
        (make_loop, "thing", "(matches no file|cannot be searched).*broken links"),
        (os.mkdir, "thing", r"thing is a folder without files to read\. Names that begin with \. or _ are skipped"),
        (os.mkdir, "thing/", r"thing/ is a folder without files to read\. Names that begin with \. or _ are skipped"),
        (os.mkdir, "thing/*", "matches no file"),
    ],
)
def test_what_is_no_file__is_refused(tmp_path, make, pattern, message):
    make(tmp_path / "thing")
    with pytest.raises(InputError, match=message):
        find_sources(f"{tmp_path}/{pattern}")


def test_device__is_refused_and_not_read_for_ever():
    with pytest.raises(InputError, match=r"/dev/zero is a pipe, a socket or a device"):
        find_sources("/dev/zero")


@pytest.mark.parametrize(
    ("mode", "of", "message"),
    [
        (
            0o000,
            "a.txt",
            r"a\.txt may not be read \(.*Permission denied.*Give read permission to the user of the workers",
        ),
        (0o000, ".", r"(matches no file.*the rights to its folders|cannot be searched.*Permission denied)"),
    ],
)
def test_no_permission__is_told_as_such(open_folder, another_user, mode, of, message):
    folder = open_folder / "inner"
    folder.mkdir()
    write(folder, "a.txt", b"one\n")
    (folder / of).chmod(mode)
    try:
        with another_user(), pytest.raises(InputError, match=message):
            read(folder / "a.txt")
    finally:
        folder.chmod(0o755)


def grow(path):
    with path.open("ab") as f:
        f.write(b"more\n")


def shrink(path):
    os.truncate(path, path.stat().st_size // 2)


def touch(path):
    os.utime(path, (time.time() + 9, time.time() + 9))


@pytest.mark.parametrize("change", [grow, shrink, touch, os.remove])
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_file__that_changes_while_it_is_read_is_refused(tmp_path, name, change):
    """After the first piece, while the block is read: what comes then belongs to another file, or is missing."""
    path = write(tmp_path, name, JSONL * 40_000)
    pieces = pieces_of(path, format="jsonl")
    next(pieces)
    change(path)
    with pytest.raises(
        InputError, match=rf"{name} (changed since it was found\. Run again once the file is complete|is gone)"
    ):
        list(pieces)


def long_line(path, n_tokens):
    """Write one line of so many tokens, ten million bytes at a time."""
    part = b"".join(b"w%d " % i for i in range(1000)) * 1000
    with path.open("wb") as f:
        for _ in range(n_tokens // 1_000_000):
            f.write(part)


def test_one_sentence_of_ten_million_tokens__becomes_shards_of_bounded_size(tmp_path):
    n_tokens = 10_000_000
    path, store = tmp_path / "long.txt", Store(str(tmp_path / "work"))
    long_line(path, n_tokens)
    (block,) = plan_blocks(find_sources(path), 1 << 30)
    shards = [Shard(**s) for s in encode_batch(Batch((block,)), store, **RULES, shard_bytes=16 << 20)["shards"]]
    assert len(shards) > 2
    assert sum(shard.n_tokens for shard in shards) == n_tokens
    assert [shard.n_sentences for shard in shards] == [1] + [0] * (len(shards) - 1)
    assert {shard.n_types for shard in shards} == {1000}
    assert open_codes(store, shards[-1])[-1] == open_codes(store, shards[-1])[-1001]


PACKED = ["a.txt.gz", "a.jsonl", "a.parquet"]
LARGEST = [("a.txt", 20 << 20), *(pytest.param(name, 20 << 20, marks=pytest.mark.slow) for name in PACKED)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "n_bytes"), [*((name, 1 << 20) for name in ("a.txt", *PACKED)), *LARGEST])
def test_huge_token__is_kept_whole(tmp_path, name, n_bytes):
    word = np.random.default_rng(n_bytes).integers(97, 123, n_bytes, np.uint8).tobytes()
    line = b"one " + word + b" two\n"
    content = {
        "a.txt": lambda: line,
        "a.txt.gz": lambda: gzip.compress(line, 0),
        "a.jsonl": lambda: b'{"text": ["one", "' + word + b'", "two"]}\n',
        "a.parquet": lambda: parquet([line.decode()]),
    }[name]()
    (block,) = plan_blocks(find_sources(write(tmp_path, name, content)), 1 << 30)
    store = Store(str(tmp_path / "work"))
    (shard,) = [Shard(**s) for s in encode_batch(Batch((block,)), store, **RULES, shard_bytes=1 << 30)["shards"]]
    assert (shard.n_tokens, shard.n_types) == (3, 3)
    data, offsets, _ = read_words(store, shard.path, 0, 3)
    assert sorted(data[a:b].tobytes() for a, b in pairwise(offsets)) == sorted([b"one", word, b"two"])


@pytest.mark.parametrize(
    ("name", "content", "errors", "message"),
    [
        ("a.txt", b"", "replace", r"^There is no word in 1 file of 0 bytes\."),
        ("a.txt", b"\n\n \n", "strict", r"no word in 1 file of 4 bytes\."),
        ("a.txt", b"\xff\n\xfe\n", "skip", r"no word .* \(2 lines skipped, the first: .*a\.txt at byte 0: invalid"),
        ("a.json", b'[{"text": "one"}]', "replace", r"no word .* \(1 line skipped, .*a JSON list instead of an object"),
        ("a.jsonl", b'{"body": "one"}', "replace", r"no word .*no key 'text'; the keys are: 'body'"),
    ],
)
def test_corpus__without_a_word_is_refused_with_the_reason(tmp_path, client, name, content, errors, message):
    path = write(tmp_path, name, content)
    with pytest.raises(InputError, match=f"{message}.*Check the inputs, the tokenizer and the column"):
        build_corpus(path, Store(str(tmp_path / "work")), Params(errors=errors), Resources(), client)


def test_corpus__of_one_bad_file_among_good_ones_loses_nothing_when_it_is_mended(tmp_path, client):
    good, bad = write(tmp_path, "a.txt", b"one two\n" * 9), write(tmp_path, "b.txt.gz", gzip.compress(b"three\n")[:-4])
    options = Store(str(tmp_path / "work")), Params(), Resources(), client
    with pytest.raises(InputError, match=r"b\.txt\.gz is cut short"):
        build_corpus([good, bad], *options)
    bad.write_bytes(gzip.compress(b"three\n"))
    assert build_corpus([good, bad], *options).n_tokens == 19
