"""An input format that an installed distribution adds by an entry point."""

from contextlib import nullcontext

import pytest

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import FORMATS, check_formats
from daskw2v.corpus.pieces import RawText
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.errors import InputError, MissingExtraError, ParameterError
from daskw2v.training.preparation.request import check_choices
from daskw2v.training.sizes import guess_text
from tests.support.reading import read

# Records of ten bytes, a word each; a block is a range of records
RECORDS = """
from daskw2v.corpus.files import TextBlock
from daskw2v.corpus.formats import Format
from daskw2v.corpus.pieces import RawText

def cut(source, block_bytes, storage_options, timeout):
    return [TextBlock(source, i, i + 1) for i in range(source.size // 10)]

def read(file, block, column, policy, tokenizer, delimiter=" "):
    file.seek(10 * block.start)
    record = file.read(10 * (block.stop - block.start)).strip()
    yield RawText(record.replace(delimiter.encode(), b" ") + b"\\n")

FORMAT = Format(
    name="records", title="Records", suffixes=(".orc",), cut=cut, read=read, expansion=5.0, compressible=False,
    requires=REQUIRES, honours=HONOURS,
)
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return what installs a distribution that adds the format "records"."""
    folder = tmp_path / "site"
    info = folder / "records-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: records\nVersion: 1.5\n")

    def install(module, requires=None, honours=()):
        (info / "entry_points.txt").write_text(f"[daskw2v.formats]\nrecords = {module}:FORMAT\n")
        (folder / f"{module}.py").write_text(
            RECORDS.replace("REQUIRES", repr(requires)).replace("HONOURS", repr(honours))
        )
        monkeypatch.syspath_prepend(folder)

    return install


@pytest.fixture
def words(tmp_path):
    """Return a folder with a file of three records, and one of text."""
    folder = tmp_path / "words"
    folder.mkdir()
    (folder / "a.orc").write_bytes(b"".join(word.ljust(10) for word in (b"one", b"two", b"three")))
    (folder / "b.txt").write_bytes(b"four\n")
    return folder


def test_format__of_a_plug_in_is_found_cut_read_and_estimated(install, words):
    install("records_to_read")
    assert FORMATS.names() == ("text", "jsonl", "csv", "tsv", "parquet", "arrow", "orc", "records")
    (source,) = find_sources(words, "records")
    assert (source.url, source.format) == (str(words / "a.orc"), "records")
    blocks = plan_blocks([source], 1 << 20)
    assert [(block.start, block.stop) for block in blocks] == [(0, 1), (1, 2), (2, 3)]
    pieces, _ = read(words, format="records", block_bytes=1 << 20)
    assert pieces == [RawText(b"one\n"), RawText(b"two\n"), RawText(b"three\n")]
    assert guess_text([source], Params(), Resources(), None, None) == guess_text(
        [Source(source.url, 150, "", "text", None)], Params(), Resources(), None, None
    )


def test_format__of_a_plug_in_that_cannot_be_compressed_is_refused_compressed(install, words):
    install("records_to_compress")
    (words / "a.orc.gz").write_bytes(b"")
    with pytest.raises(InputError, match="is Records inside gzip"):
        find_sources(words / "a.orc.gz", "records")


def test_format__of_a_plug_in_names_what_it_requires(install, words):
    install("records_to_require", ("absent_package", "absent"))
    with pytest.raises(MissingExtraError, match="absent_package is not installed"):
        find_sources(words, "records")


@pytest.mark.parametrize(("honours", "text"), [((), b"on|e\n"), (("delimiter",), b"on e\n")])
def test_format__of_a_plug_in_is_given_the_fields_that_it_reads_alone(install, tmp_path, honours, text):
    install(f"records_that_read_{len(honours)}", honours=honours)
    (tmp_path / "a.orc").write_bytes(b"on|e".ljust(10))
    pieces, _ = read(tmp_path / "a.orc", format="records", also={"delimiter": "|"})
    assert pieces == [RawText(text)]
    sources = find_sources(tmp_path / "a.orc", "records")
    refused = nullcontext() if honours else pytest.raises(ParameterError, match="changes nothing for format='records'")
    with refused:
        check_formats((source.format for source in sources), Params(delimiter="|"))


def test_check_choices__refuses_an_unknown_format_and_lists_those_that_exist(install):
    install("records_to_list")
    with pytest.raises(
        ParameterError, match=r"format='xml' does not exist.*text, jsonl, csv, tsv, parquet, arrow, orc, records\."
    ):
        check_choices(Params(format="xml"), Resources())
    check_choices(Params(format="records"), Resources())
