"""Models that are missing, unfinished, damaged or of another make: told when they are opened, or when they are read."""

import numpy as np
import pytest

from daskw2v import Vectors, evaluate
from daskw2v.errors import ParameterError, StoreError, VocabularyError
from daskw2v.models.formats.export import export
from daskw2v.models.formats.word2vec import import_word2vec
from daskw2v.models.stored.store import read_attempt, write_vocabulary
from daskw2v.models.stored.tables import create_model, write_partition, write_table_rows
from daskw2v.models.versions.resolving import resolve
from daskw2v.models.versions.versions import publish
from daskw2v.store.arrays import write_array
from daskw2v.store.storage import Store
from daskw2v.vocabulary.partition import Partitions
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = ["one", "two", "three", "four", "five"]
ROWS = np.random.default_rng(1).standard_normal((5, 3), np.float32)
VERSION = "v0001-a"


@pytest.fixture
def model(tmp_path):
    """A finished version in a work directory."""
    models = Store(str(tmp_path / "work" / "models"))
    store = models / VERSION
    create_model(store, {"input": ROWS.shape}, row_block=5)
    write_table_rows(store, "input", 0, ROWS)
    write_vocabulary(store, Vocabulary.from_words(WORDS, range(5, 0, -1)))
    publish(models, VERSION, {"params": {"seed": 3}})
    return store


@pytest.fixture(params=[True, False], ids=["in memory", "in the store"])
def opened(model, request):
    """What opens the model, all at once or piece by piece."""
    return lambda: Vectors.open(model.url, in_memory=request.param)


def replace_table(model, values, **options):
    group = model.open_group(writable=True)
    del group["input"]
    group.create_array("input", shape=values.shape, dtype=values.dtype, compressors=None, **options)[...] = values


def replace_words(model, words=None, offsets=None, counts=None, kind=np.int64):
    """Write a vocabulary that nobody checks."""
    words = [word.encode() for word in WORDS] if words is None else words
    offsets = np.cumsum([0, *map(len, words)]) if offsets is None else offsets
    group = model.open_group(writable=True).create_group("vocabulary", overwrite=True)
    write_array(group, "words", np.frombuffer(b"".join(words), np.uint8))
    write_array(group, "offsets", np.asarray(offsets, kind))
    write_array(group, "counts", np.asarray(range(5, 0, -1) if counts is None else counts, kind))


NO_MODEL = "There is no model at .*Give a work directory that train has finished, or one version below its models/"


@pytest.mark.parametrize("url", [None, 5, "", b"work", ["work"], "a\0b"], ids=repr)
def test_url__must_be_a_url_or_path(url):
    with pytest.raises(ParameterError, match=r"^model=.* is no URL or path\. Give text that is not empty"):
        Vectors.open(url)


def test_what_is_no_folder__is_no_model(tmp_path):
    (tmp_path / "file").write_text("one 1 2 3\n")
    for url in (tmp_path / "file", tmp_path / "file" / "below", tmp_path, tmp_path / "nothing", "/dev/null"):
        with pytest.raises(StoreError, match=NO_MODEL):
            Vectors.open(url)


def test_version__that_is_not_finished_is_no_model(model):
    (model / "manifest.json").remove()
    with pytest.raises(StoreError, match=NO_MODEL):
        Vectors.open(model.url)
    with pytest.raises(StoreError, match=rf"LATEST names '{VERSION}', which is not a finished model.*there is none"):
        Vectors.open(model.url.rsplit("/models", 1)[0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "manifest.json is not JSON"),
        (b"{", "manifest.json is not JSON"),
        (b"\xff\xfe\0", "manifest.json is not JSON"),
        (b"[]", "has format_version=None; this daskw2v reads 1. Open it with the daskw2v that wrote it"),
        (b"{}", "has format_version=None; this daskw2v reads 1"),
        (
            b'{"format_version": 2, "tables": {}}',
            "has format_version=2; this daskw2v reads 1. Open it with the daskw2v",
        ),
        (b'{"format_version": "1"}', "has format_version='1'; this daskw2v reads 1"),
    ],
)
def test_manifest__of_another_format_is_refused(model, content, message):
    model.write_bytes("manifest.json", content)
    with pytest.raises(StoreError, match=message):
        Vectors.open(model.url)


@pytest.mark.parametrize(
    "name",
    [
        b"",
        b"nothing",
        b"v0002-b",
        b"../../elsewhere",
        b"/etc",
        b"v0001-../../../elsewhere",
        b"v0001-a/../v0001-a",
        b"v0001-a/",
        b"..",
        b".",
        b"\xff\xfe",
        b"\nv0001-a",
        b"a\0b",
    ],
)
def test_latest__that_names_no_version_is_refused_and_leads_nowhere(model, tmp_path, name):
    elsewhere = Store(str(tmp_path / "elsewhere"))
    elsewhere.write_manifest({"tables": {}})
    write_latest(model, name)
    with pytest.raises(StoreError, match=r"LATEST names .*, which is not a finished model\. Give .*: v0001-a\."):
        resolve(tmp_path / "work")
    assert resolve(model.url).url == model.url


@pytest.mark.parametrize("name", [b"v0001-a\n", b" v0001-a \r\n", b"v0001-a\n../../elsewhere"])
def test_latest__may_end_as_an_editor_leaves_it(model, tmp_path, name):
    write_latest(model, name)
    assert resolve(tmp_path / "work").url == model.url


def write_latest(model, content):
    """Name the served version as earlier releases, without a state."""
    models = Store(model.url.rsplit("/", 1)[0])
    (models / "state").remove()
    models.write_bytes("LATEST", content)


@pytest.mark.parametrize(
    "values",
    [
        ROWS.astype(np.float64),
        ROWS.astype(np.float16),
        ROWS.astype(np.int32),
        ROWS[0],
        ROWS[:, :, None],
        ROWS[None, None],
    ],
    ids=lambda values: f"{values.dtype} {values.shape}",
)
def test_table__of_another_type_or_shape_is_refused(model, opened, values):
    replace_table(model, values)
    with pytest.raises(StoreError, match=r"input.* (is of type|has type|is of shape) .*It is damaged, or not"):
        opened()


@pytest.mark.parametrize("n_words", [None, "5", 4, 7, -1])
def test_partitions__that_do_not_hold_their_words_are_refused(model, opened, n_words):
    attributes = {} if n_words is None else {"attributes": {"n_words": n_words}}
    replace_table(model, np.zeros((3, 2, 3), np.float32), **attributes)
    with pytest.raises(StoreError, match=r"Table 'input' of .* shape \(3, 2, 3\), which no model has"):
        opened()


def test_table__that_is_missing_is_named(model, opened):
    del model.open_group(writable=True)["input"]
    with pytest.raises(StoreError, match=r"has no table 'input'\. The folder contains: manifest\.json, vocabulary"):
        opened()


@pytest.mark.parametrize("n", [4, 6, 0])
def test_rows__must_be_as_many_as_words(model, opened, n):
    replace_table(model, np.ones((n, 3), np.float32))
    with pytest.raises(StoreError, match=rf"has 5 words and {n} input rows\. It is damaged"):
        opened()


def test_vocabulary__that_is_missing_is_told(model, opened):
    (model / "vocabulary").remove()
    with pytest.raises(StoreError, match="vocabulary is missing, or no group"):
        opened()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"offsets": [0, 3, 6, 11, 15, 18]}, "5 counts .*, 6 offsets .* over 19 bytes"),
        ({"offsets": [1, 3, 6, 11, 15, 19]}, "6 offsets .* over 19 bytes"),
        ({"offsets": [0, 6, 3, 11, 15, 19]}, "6 offsets .* over 19 bytes"),
        ({"offsets": [0, 3, 6, 11, 19]}, "5 counts .*, 5 offsets"),
        ({"kind": np.int32}, r"5 counts \(int32\), 6 offsets \(int32\)"),
        ({"kind": np.float64}, r"5 counts \(float64\), 6 offsets \(float64\)"),
    ],
)
def test_vocabulary__whose_arrays_contradict_each_other_is_refused(model, opened, wrong, message):
    replace_words(model, **wrong)
    with pytest.raises(VocabularyError, match=rf"The vocabulary at .* is damaged: .*{message}.*run train again"):
        opened()


def test_vocabulary__with_a_word_that_is_no_utf8_names_it_where_it_is_read(model, opened, tmp_path):
    replace_words(model, [b"one", b"tw\xff", b"three", b"four", b"five"])
    vectors = opened()
    assert "one" in vectors
    for read in (
        lambda: vectors.most_similar("one", topn=4),
        lambda: vectors.vocabulary.words,
        lambda: vectors.vocabulary.word(1),
        lambda: export(vectors, tmp_path / "v.txt"),
        lambda: export(vectors, tmp_path / "v.parquet"),
    ):
        with pytest.raises(VocabularyError, match=r"its word b'tw\\xff' is no UTF-8 \(invalid start byte\)\. Take the"):
            read()
    assert not list(tmp_path.glob("v.*"))


def test_vocabulary__with_a_word_twice_is_refused_where_words_are_looked_up(model, opened):
    replace_words(model, [b"one", b"two", b"three", b"two", b"five"])
    with pytest.raises(VocabularyError, match=r"The vocabulary holds 'two' twice\. It is damaged.*give each word once"):
        opened().most_similar("one")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_vector__that_is_not_finite_is_named_by_its_word_where_it_is_read(model, opened, tmp_path, bad):
    rows = ROWS.copy()
    rows[2, 1] = bad
    replace_table(model, rows)
    (tmp_path / "pairs.tsv").write_text("one\tthree\t1\none\ttwo\t2\n")
    (tmp_path / "questions.txt").write_text("one two four five\n")
    vectors = opened()
    assert np.array_equal(vectors["one"], ROWS[0])
    for ask in (
        lambda: vectors["three"],
        lambda: vectors.similarity("one", "three"),
        lambda: vectors.most_similar("one"),
        lambda: vectors.analogy("one", "two", "four", method="3cosmul"),
        lambda: vectors.doesnt_match(["one", "three"]),
        lambda: vectors.nearest(np.ones(3)),
        lambda: vectors.norms,
        lambda: vectors.units([0, 2]),
        lambda: dict(vectors.items()),
        lambda: evaluate(vectors, similarity=[tmp_path / "pairs.tsv"]),
        lambda: evaluate(vectors, analogy=[tmp_path / "questions.txt"]),
        *(
            lambda name=name: export(vectors, tmp_path / name)
            for name in ("v.txt", "v.bin", "v.parquet", "v.safetensors")
        ),
        lambda: export(vectors, tmp_path / "v.tsv", "projector"),
    ):
        with pytest.raises(
            StoreError, match=r"The vector of 'three' is not finite \(1 of those read are not\)\. The model"
        ):
            ask()
    assert not list(tmp_path.glob("v.*/*"))
    assert not [path for path in tmp_path.glob("v.*") if path.is_file()]


@pytest.mark.parametrize("order", ["<", ">"])
def test_byte_order__of_another_machine_is_read_right(model, opened, order):
    replace_table(model, ROWS.astype(f"{order}f4"))
    replace_words(model, kind=f"{order}i8")
    vectors = opened()
    assert np.array_equal(vectors[WORDS], ROWS)
    assert vectors.vocabulary.counts.tolist() == [5, 4, 3, 2, 1]
    expected = Vectors(Vocabulary.from_words(WORDS, range(5, 0, -1)), ROWS).most_similar("two")
    assert vectors.most_similar("two") == expected


def test_byte_order__of_another_machine_is_read_right_in_partitions(model, opened):
    create_model(model, {"input": (5, 3)}, 4, 2)
    dealt = np.zeros((3, 2, 3), np.float32)
    for part in range(2):
        words = Partitions(5, 2).words(part)
        write_partition(model, "input", part, ROWS[words])
        dealt[: len(ROWS[words]), part] = ROWS[words]
    replace_table(model, dealt.astype(">f4"), attributes={"n_words": 5})
    replace_words(model)
    model.write_manifest({"tables": {"input": [5, 3]}, "attempt": read_attempt(model)})
    assert np.array_equal(opened()[WORDS], ROWS)


@pytest.mark.parametrize(
    "matrix",
    [
        None,
        "matrix",
        ROWS[:4],
        ROWS[0],
        ROWS[:, :, None],
        ROWS.astype(complex),
    ],
    ids=lambda matrix: type(matrix).__name__ + str(np.shape(matrix)),
)
def test_vectors__must_be_a_matrix_of_real_numbers(matrix):
    with pytest.raises(ParameterError, match=r"Vectors of shape .* and type .* for 5 words\. Give a matrix of float32"):
        Vectors(Vocabulary.from_words(WORDS, [1] * 5), matrix)


@pytest.mark.parametrize("ask", [import_word2vec, lambda url: export(None, url)], ids=["import", "export"])
@pytest.mark.parametrize("url", [None, 5, "", b"v.txt"], ids=repr)
def test_files__must_be_urls_or_paths(ask, url):
    with pytest.raises(ParameterError, match=r"^(file|url)=.* is no URL or path"):
        ask(url)


def test_manifest__is_not_believed_about_the_tables(model):
    model.write_manifest({"tables": {"input": [99, 99]}, "params": None, "attempt": read_attempt(model)})
    assert Vectors.open(model.url).vectors.shape == (5, 3)
