"""Models and corpora of an attacker are refused: no code runs, no memory is taken, nothing outside is read."""

import json
import os
import pickle
import shutil
from dataclasses import asdict, replace

import pytest

from daskw2v.errors import Daskw2vError, FormatError, StoreError, VocabularyError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.versions.finished import Version
from daskw2v.models.versions.phrases import Phrases
from daskw2v.models.versions.versions import Versions
from daskw2v.phrases.build import pieces_of
from daskw2v.shards.layout import Corpus, open_codes
from daskw2v.store.arrays import read_array
from daskw2v.store.storage import Store
from tests.fuzz.folders import write_corpus, write_model
from tests.security import hostile
from tests.security.hostile import BOMBS, COUNTS, codecs, edit, grid, put_chunk

_GROWTH = 300 << 20  # bytes that opening may take


PASS = {
    "path": "phrases/x",
    "pieces": 1,
    "n_phrases": 1,
    "n_bigrams": 1,
    "min_count": 1,
    "threshold": 1.0,
    "scoring": "default",
    "delimiter": "_",
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A work directory, and the name of its version."""
    work = tmp_path_factory.mktemp("written")
    return work, hostile.model_in(work).name


@pytest.fixture
def model(written, tmp_path):
    """A version's path; `tmp_path` is its work directory."""
    work, name = written
    shutil.copytree(work, tmp_path, dirs_exist_ok=True)
    return tmp_path / "models" / name


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What opening each bomb came to, in a process of its own whose address space is limited."""
    return hostile.outcomes_of(hostile.__file__, tmp_path_factory.mktemp("bombs"))


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_bomb__is_refused_before_memory_is_taken(outcomes, name):
    outcome, grown = outcomes[name]
    assert outcome.startswith(("StoreError", "FormatError", "DamageError"))
    assert grown < _GROWTH


TYPES = ["string", "variable_length_utf8", "object", "O", "r64", "complex128", 7, None, {"name": "fixed_length_utf32"}]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("node", ["input", COUNTS])
def test_array__of_other_types_is_refused(model, tmp_path, node, kind):
    edit(model, node, data_type=kind)
    with pytest.raises(StoreError, match=rf"{node}/zarr\.json is of type"):
        Vectors.open(tmp_path)


CODECS = [
    codecs("bytes", "zstd"),
    codecs("bytes", "gzip"),
    codecs("numcodecs.pickle"),
    codecs("bytes", "numcodecs.pickle"),
    codecs("bytes", "numcodecs.lzma"),
    codecs("vlen-utf8"),
    codecs("vlen-bytes"),
    codecs("numcodecs.json2"),
    codecs("antigravity"),
    codecs("bytes", "blosc", "blosc"),
    codecs("bytes", "blosc", cname="zstd"),
    codecs("transpose", "bytes"),
    [],
    ["bytes"],
    [None],
    [{"name": ["bytes"]}],
]


@pytest.mark.parametrize("listed", CODECS, ids=str)
def test_array__of_other_codecs_is_refused(model, tmp_path, listed):
    edit(model, COUNTS, codecs=listed)
    with pytest.raises(StoreError, match=r"counts/zarr\.json has the codec"):
        Vectors.open(tmp_path)


INDEX = codecs("bytes", "crc32c")


def _sharded(inner, index=INDEX, chunk=(2,)):
    settings = {
        "chunk_shape": list(chunk),
        "codecs": inner,
        "index_codecs": index,
        "index_location": "end",
    }
    return [{"name": "sharding_indexed", "configuration": settings}]


@pytest.mark.parametrize(
    "listed",
    [
        _sharded(codecs("bytes", "zstd")),
        _sharded(_sharded(codecs("bytes"))),
        _sharded(codecs("bytes"), index=codecs("bytes", "gzip")),
        _sharded(codecs("bytes"), index=[INDEX[0], INDEX[1] | {"configuration": {"seed": 7}}]),
        _sharded(codecs("bytes"), index=[INDEX[0] | {"configuration": {"endian": "middle"}}, INDEX[1]]),
        _sharded(codecs("bytes"), chunk=(1, 1)),
        _sharded(codecs("bytes"), chunk=(0,)),
    ],
)
def test_shards__of_other_codecs_are_refused(model, tmp_path, listed):
    edit(model, COUNTS, codecs=listed)
    with pytest.raises(StoreError, match=r"counts/zarr\.json (has|is of shape)"):
        Vectors.open(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [-1], "chunk_grid": grid(1)},
        {"shape": [4.0]},
        {"shape": [True]},
        {"shape": [4] * 40, "chunk_grid": grid(*[4] * 40)},
        {"shape": []},
        {"chunk_grid": grid(0)},
        {"chunk_grid": {"name": "rectangular", "configuration": {}}},
        {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}},
        {"node_type": "table"},
        {"zarr_format": 2},
        {"codecs": _sharded(codecs("bytes"), chunk=(1,)), "chunk_grid": grid(1 << 21)},
    ],
    ids=str,
)
def test_array__of_absurd_layout_is_refused(model, tmp_path, change):
    edit(model, COUNTS, **change)
    with pytest.raises(StoreError, match=r"counts"):
        Vectors.open(tmp_path)


class _Payload:
    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return os.mkdir, (self.canary,)


@pytest.mark.parametrize("where", ["compressor", "filters"])
def test_old_zarr__whose_codecs_unpickle_is_not_read(tmp_path, where):
    canary, group = tmp_path / "canary", tmp_path / "group"
    (group / "counts").mkdir(parents=True)
    layout = {"shape": [4], "chunks": [4], "dtype": "<i8", "fill_value": 0, "order": "C", "zarr_format": 2}
    chosen = {"compressor": None, "filters": None} | {
        where: {"id": "pickle"} if where == "compressor" else [{"id": "pickle"}]
    }
    (group / ".zgroup").write_text('{"zarr_format": 2}')
    (group / "counts" / ".zarray").write_text(json.dumps(layout | chosen))
    (group / "counts" / "0").write_bytes(pickle.dumps(_Payload(str(canary))))
    with pytest.raises(StoreError):
        read_array(Store(str(group)).open_group(), "counts")
    assert not canary.exists()


def test_chunk__that_is_a_pickle_is_not_loaded(model, tmp_path):
    put_chunk(model, COUNTS, pickle.dumps(_Payload(str(tmp_path / "canary"))))
    with pytest.raises(StoreError):
        Vectors.open(tmp_path)
    assert not (tmp_path / "canary").exists()


NAMES = ["../../outside", "..", "/etc", "v0001-fuzz/../../../outside", "a\0b", "file:///etc", "simplecache::/etc"]


@pytest.mark.parametrize("name", NAMES)
def test_pointer__that_leads_out_is_refused(model, tmp_path, name):
    write_model(tmp_path.parent / f"{tmp_path.name}-outside")
    shutil.rmtree(tmp_path / "models" / "state")  # as an earlier release left it
    (tmp_path / "models" / "LATEST").write_text(name)
    with pytest.raises(StoreError, match="is not a finished model"):
        Vectors.open(tmp_path)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*NAMES, "LATEST", "state", "."])
def test_state__that_leads_out_is_refused_and_deletes_nothing(model, tmp_path, name):
    models = Store(str(tmp_path / "models"))
    (models / "state").write_manifest({"served": [name], "tags": {}, "condemned": [name]}, "00000009.json")
    write_model(tmp_path.parent / f"{tmp_path.name}-outside")
    with pytest.raises(StoreError, match="is not a finished model"):
        Vectors.open(tmp_path)
    before = models.children()
    Versions.open(tmp_path).gc()
    assert models.children() == before
    assert (tmp_path.parent / f"{tmp_path.name}-outside").exists()


def test_pointer__that_is_no_text_is_refused(model, tmp_path):
    shutil.rmtree(tmp_path / "models" / "state")
    (tmp_path / "models" / "LATEST").write_bytes(b"\xff\xfe")
    with pytest.raises(StoreError, match="is not a finished model"):
        Vectors.open(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_corpus__whose_shards_lie_elsewhere_is_refused(tmp_path, name):
    work = write_corpus(tmp_path)
    (file,) = (work / "corpora").children()
    corpus = Corpus.load(work, file.removesuffix(".json"))
    moved = replace(corpus.shards[0], path=name)
    with pytest.raises(StoreError, match="leads out of its folder"):
        open_codes(work, moved)
    (work / "corpora").write_manifest({**asdict(corpus), "shards": [asdict(moved)]}, file)
    with pytest.raises(StoreError, match="leads out of its folder"):
        Corpus.find(work, "00")


@pytest.mark.parametrize(
    "name", ["manifest.json", "zarr.json", "input/zarr.json", "input/c/0/0", "vocabulary/words/c/0"]
)
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_file__that_is_a_link_out_or_a_pipe_is_refused(model, tmp_path, name, kind):
    file, outside = model / name, tmp_path / "outside"
    file.rename(outside)  # as good as it was, but elsewhere
    if kind == "link":
        file.symlink_to(outside)
    else:
        os.mkfifo(file)
    with pytest.raises(StoreError, match=r"is a link that leads out|is no file"):
        Vectors.open(tmp_path, in_memory=True)


def test_folder__may_be_a_link_of_its_owner(model, tmp_path):
    link = tmp_path.parent / f"{tmp_path.name}-link"
    link.symlink_to(model)
    assert len(Vectors.open(link)) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"widths": [10**9]},
        {"widths": []},
        {"length": 10**15},
        {"characters": [0x110000]},
        {"characters": "abc"},
        {"widths": [2, 2]},
    ],
    ids=str,
)
def test_network__of_absurd_widths_is_refused(model, tmp_path, change):
    found = json.loads((model / "subwords" / "zarr.json").read_text())
    edit(model, "subwords", attributes=found["attributes"] | change)
    with pytest.raises(StoreError):
        Vectors.open(tmp_path)


@pytest.mark.parametrize("n_words", [10**15, -1, 0, 3.5, "4", None, True])
def test_table__of_partitions_that_says_another_number_of_words_is_refused(model, tmp_path, n_words):
    place = json.loads((model / "input" / "zarr.json").read_text())["attributes"]["place"]
    del place["chunks"]  # they are of another grid
    edit(model, "input", shape=[2, 2, 3], chunk_grid=grid(1, 1, 3), attributes={"n_words": n_words, "place": place})
    with pytest.raises(StoreError, match="which no model has"):
        Vectors.open(tmp_path)


@pytest.mark.parametrize(
    ("node", "entry", "change"),
    [
        (COUNTS, "chunk_grid", {**grid(4), "configuration": {"chunk_shape": [4], "x": 1}}),
        (COUNTS, "chunk_key_encoding", {"name": "default", "configuration": {"separator": "/", "x": 1}}),
        (COUNTS, "chunk_key_encoding", {"name": "default", "configuration": {"separator": "/"}, "x": 1}),
        (COUNTS, "codecs", [{"name": "bytes", "configuration": {"endian": "little", "x": 1}}]),
        (COUNTS, "codecs", [{"name": "bytes", "configuration": "little"}]),
        (COUNTS, "codecs", [{"name": "bytes", "configuration": {"endian": 0}}]),
        (COUNTS, "codecs", [*codecs("bytes"), {"name": "crc32c", "configuration": {"x": 1}}]),
        (COUNTS, "codecs", [*codecs("bytes"), {"name": "blosc", "configuration": {"cname": "lz4", "typesize": True}}]),
        (COUNTS, "codecs", [*codecs("bytes"), {"name": "blosc", "configuration": {"cname": "lz4", "typesize": 8}}]),
        (COUNTS, "dimension_names", 0),
        (".", "shape", [4]),
        ("vocabulary", "consolidated_metadata", {}),
    ],
    ids=str,
)
def test_metadata__whose_configurations_hold_other_entries_are_refused(model, tmp_path, node, entry, change):
    edit(model, node, **{entry: change})
    with pytest.raises(StoreError, match=rf"{node if node != '.' else 'v0001-fuzz'}/zarr\.json"):
        Vectors.open(tmp_path)


@pytest.mark.parametrize("node", ["vocabulary", "subwords", "."])
def test_group__that_is_an_array_is_refused(model, tmp_path, node):
    (model / node / "zarr.json").write_bytes((model / COUNTS / "zarr.json").read_bytes())
    with pytest.raises(StoreError):
        Vectors.open(tmp_path)


@pytest.mark.parametrize("pieces", [3_000_000, 1 << 60, -1, True, 1.0, None])
def test_phrases__of_absurd_number_are_refused(model, pieces):
    Store(str(model)).write_manifest({"tables": {}, "phrases": [{"delimiter": "_", "pieces": pieces}]})
    with pytest.raises(StoreError, match=r"phrases/0/0 is missing, or no group|holds no list of phrases"):
        Phrases.open(model)


@pytest.mark.parametrize("passes", [[{}], 3, [{**PASS, "pieces": 1 << 40}]], ids=str)
def test_corpus__whose_passes_are_absurd_is_refused(tmp_path, passes):
    work = write_corpus(tmp_path)
    (file,) = (work / "corpora").children()
    values = (work / "corpora").read_manifest(file)
    (work / "corpora").write_manifest({**values, "passes": passes}, file)
    with pytest.raises(StoreError):
        pieces_of(Corpus.load(work, file.removesuffix(".json")).passes[0])


@pytest.mark.parametrize("entry", ["params", "corpus", "metrics", "tables", "vocabulary", "resources"])
def test_manifest__whose_entries_have_other_types_is_refused(model, tmp_path, entry):
    Store(str(model)).write_manifest({"tables": {"input": [4, 3]}, entry: [1]})
    with pytest.raises(StoreError, match=rf"manifest\.json holds {entry}=\[1\]"):
        Vectors.open(tmp_path)


@pytest.mark.parametrize("created", [None, 5, "yesterday", ["2026-01-01"]])
def test_version__that_was_finished_at_no_time_is_passed_over(model, tmp_path, created):
    for manifest in ({"tables": {"input": [4, 3]}, "created": created}, {"tables": {"input": created}}):
        Store(str(model)).write_manifest(manifest)
        assert Versions.open(tmp_path).all() == []
    with pytest.raises(FormatError, match="holds created="):
        _ = Version("v0001-a", {"created": created}, (), served=False).created
    with pytest.raises(FormatError, match="holds tables="):
        _ = Version("v0001-a", {"tables": {"input": created}}, (), served=False).words


@pytest.mark.parametrize("tags", [5, ["a"], {"a": 5}, "a"])
def test_tags__that_name_no_versions_are_refused(model, tmp_path, tags):
    shutil.rmtree(tmp_path / "models" / "state")
    Store(str(tmp_path / "models")).write_manifest({"tags": tags}, "tags.json")
    with pytest.raises(StoreError, match="holds tags="):
        Versions.open(tmp_path).tags()


def test_json__that_is_nested_deeply_is_refused(model, tmp_path):
    nested = [1]
    for _ in range(40):
        nested = [nested]
    Store(str(model)).write_manifest({"tables": {"input": [4, 3]}, "more": nested})
    with pytest.raises(StoreError, match="nested more than 32 deep"):
        Vectors.open(tmp_path)


def test_vocabulary__of_other_numbers_is_refused(model, tmp_path):
    edit(model, COUNTS, data_type="float64")
    with pytest.raises(VocabularyError, match="damaged"):
        Vectors.open(tmp_path)


@pytest.mark.parametrize("node", [".", "subwords", "vocabulary", "input", COUNTS])
@pytest.mark.parametrize("entry", ["attburites", "must_understand"])  # the first was found by fuzzing: a TypeError
def test_metadata__with_entries_of_others_are_refused(model, tmp_path, node, entry):
    edit(model, node, **{entry: {}})
    with pytest.raises(StoreError, match="is no group or array that daskw2v writes"):
        Vectors.open(tmp_path)


@pytest.mark.parametrize("fill", ["Infinity", "x", None, [], 1e300, True, {}, 10**30])
@pytest.mark.parametrize("node", ["input", COUNTS])
def test_array__of_other_fill_values_is_refused(model, tmp_path, node, fill):
    edit(model, node, fill_value=fill)
    with pytest.raises(StoreError, match="has entries that daskw2v does not write"):
        Vectors.open(tmp_path)


def test_metadata__that_bring_others_along_are_refused(model, tmp_path):
    edit(model, ".", consolidated_metadata={"kind": "inline", "must_understand": False, "metadata": {}, "x": 1})
    with pytest.raises(Daskw2vError, match="metadata of others"):
        Vectors.open(tmp_path)
