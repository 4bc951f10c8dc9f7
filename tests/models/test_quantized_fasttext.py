"""Quantized models of fastText: small files that fastText reads, with the same vectors as ours."""

import struct

import numpy as np
import pytest

from daskw2v import Vectors, export, import_vectors
from daskw2v.errors import InputError, ParameterError, StoreError, UnknownWordError
from daskw2v.features.keys import FeatureColumn, FeatureKeys, HashedNGrams
from daskw2v.models.formats import fasttext as module
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.stored.quantization import Codebook, CodedRows
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke

fasttext = pytest.importorskip("fasttext")

SIZE = 10
LETTERS = "abcdefghijklmnopqrst"
WORDS = [
    "the",
    "</s>",
    "naïve",
    "日本",
    "no\u00a0break",
    *(f"w{first}{second}" for first in LETTERS for second in LETTERS),
]
UNSEEN = ["wordy", "native", "日本語", "theword", "away"]
NGRAMS = HashedNGrams(minn=2, maxn=4, bucket=900)
NEAR = {"rtol": 0, "atol": 1e-5}


def make_vectors(ngrams=NGRAMS, kept=800):
    """Return vectors with n-grams, of which a few have no row."""
    rng = np.random.default_rng(0)
    buckets = rng.permutation(ngrams.bucket)[:kept].astype(np.int32)
    features = FeatureVectors(
        FeatureKeys(ngrams=ngrams, buckets=buckets), rng.normal(size=(kept, SIZE)).astype(np.float32)
    )
    matrix = rng.normal(size=(len(WORDS), SIZE)).astype(np.float32)
    return Vectors(Vocabulary.from_words(WORDS, range(len(WORDS), 0, -1)), matrix, {}, features=features)


def theirs(path, words):
    model = fasttext.load_model(str(path))
    return np.array([model.get_word_vector(word) for word in words])


def cosines(first, second):
    return np.vecdot(first, second) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("part_size", [1, 2, 3, SIZE])
@pytest.mark.parametrize("features", [None, 300, 800])
def test_export__is_read_by_fasttext_as_by_us(tmp_path, monkeypatch, part_size, features):
    """The last part of three dimensions has one dimension."""
    monkeypatch.setattr(module, "NGRAMS_AT_ONCE", 300)
    monkeypatch.setattr(module, "ROW_BYTES_AT_ONCE", 4 * SIZE * 90)
    vectors = make_vectors() if features is not None else Vectors(make_vectors().vocabulary, make_vectors().vectors)
    small = vectors if features in (None, 800) else vectors.prune(features)
    export(small, tmp_path / "m.ftz", part_size=part_size)
    result = import_vectors(tmp_path / "m.ftz")
    assert result.vocabulary.words == WORDS
    assert result.vocabulary.counts.tolist() == vectors.vocabulary.counts.tolist()
    np.testing.assert_allclose(result[WORDS], theirs(tmp_path / "m.ftz", WORDS), **NEAR)
    if features is None:
        assert result.features is None
    else:
        assert isinstance(result.features.rows, CodedRows)
        assert result.features.keys.buckets.tolist() == small.features.keys.buckets.tolist()
        np.testing.assert_allclose(result[UNSEEN], theirs(tmp_path / "m.ftz", UNSEEN), **NEAR)
        assert (
            fasttext.load_model(str(tmp_path / "m.ftz")).get_nearest_neighbors("wordy", k=1)[0][1]
            == (result.most_similar("wordy", topn=1)[0][0])
        )


def test_int8_rows__are_nearly_the_vectors(tmp_path):
    vectors = make_vectors()
    closest = []
    for part_size in (1, 2, 5):
        export(vectors, tmp_path / f"{part_size}.ftz", part_size=part_size)
        result = import_vectors(tmp_path / f"{part_size}.ftz")
        closest.append(cosines(result[WORDS], vectors[WORDS]).mean())
        assert cosines(result[UNSEEN], vectors[UNSEEN]).mean() > 0.9
    assert closest[0] > 0.9999
    assert closest[0] > closest[1] > closest[2]
    sizes = [(tmp_path / f"{part_size}.ftz").stat().st_size for part_size in (1, 2, 5)]
    assert sizes[0] - sizes[1] == (len(WORDS) + 800) * 5  # bytes of codes; what they stand for takes the same


def test_export__by_default_is_as_small_as_fasttexts(tmp_path):
    export(make_vectors(), tmp_path / "m.ftz")
    export(make_vectors(), tmp_path / "two.ftz", part_size=2)
    assert (tmp_path / "m.ftz").read_bytes() == (tmp_path / "two.ftz").read_bytes()


def test_export__accepts_zeros_and_no_rows(tmp_path):
    """A row of zeros has no direction; its code has a small length."""
    for words in (["a", "b"], []):
        rows = np.zeros((len(words), 3), np.float32)
        export(Vectors(Vocabulary.from_words(words, [1] * len(words)), rows), tmp_path / "m.ftz")
        result = import_vectors(tmp_path / "m.ftz")
        assert result.vectors.shape == rows.shape
        assert np.isfinite(result.vectors).all()
        assert result.vocabulary.words == words


def test_pruned_models__are_saved_and_leave_n_grams_out_of_means(tmp_path):
    small = make_vectors().prune(300)
    assert small.features.keys.pruned
    assert not make_vectors().prune(800).features.keys.pruned
    small.save(tmp_path / "model")
    opened = Vectors.open(tmp_path / "model")
    assert np.array_equal(opened[UNSEEN], small[UNSEEN])
    rows = small.features.keys.find_ngrams(["wordy"]).rows
    assert len(rows) < len(make_vectors().features.keys.find_ngrams(["wordy"]).rows)
    np.testing.assert_allclose(small["wordy"], small.features.rows[rows].mean(axis=0), rtol=1e-5)


def test_pruned_models__keep_their_vectors_in_fasttexts_format(tmp_path):
    small = make_vectors().prune(300)
    export(small, tmp_path / "m.bin", format="fasttext")
    np.testing.assert_allclose(theirs(tmp_path / "m.bin", WORDS), small[WORDS], **NEAR)
    np.testing.assert_allclose(cosines(theirs(tmp_path / "m.bin", UNSEEN), small[UNSEEN]), 1, **NEAR)


def test_words__without_a_remaining_n_gram_are_unknown(tmp_path):
    export(make_vectors().prune(5), tmp_path / "m.ftz")
    with pytest.raises(UnknownWordError, match="no n-gram"):
        import_vectors(tmp_path / "m.ftz")["zz"]


def test_coded_rows__equal_their_decoded_rows():
    rows = np.random.default_rng(0).normal(size=(700, 7)).astype(np.float32)
    coded = Codebook.fit(rows, 3).encode(rows)
    assert (coded.shape, len(coded), coded.dtype) == ((700, 7), 700, np.float32)
    decoded = coded[:]
    assert np.array_equal(coded[np.array([5, 3])], decoded[[5, 3]])
    assert np.array_equal(coded.rows_from(690)[:], decoded[690:])
    assert coded.nbytes == 700 * 3 + 700 + 4 * (3 * 3 * 256 + 256)
    assert cosines(decoded, rows).mean() > 0.95


@pytest.mark.parametrize("part_size", [0, 65, 2.0, True, "2"])
def test_export__refuses_part_sizes(tmp_path, part_size):
    with pytest.raises(ParameterError, match="part_size="):
        export(make_vectors(), tmp_path / "m.ftz", part_size=part_size)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part_size", [2, "a"])
def test_part_size__is_for_quantized_models_alone(tmp_path, part_size):
    with pytest.raises(ParameterError, match=f"part_size={part_size!r} changes nothing in text; it is for ftz"):
        export(make_vectors(), tmp_path / "m.txt", part_size=part_size)


def test_command__refuses_ngrams_that_a_format_does_not_keep(tmp_path):
    make_vectors().save(tmp_path / "model")
    result = invoke("export", str(tmp_path / "model"), str(tmp_path / "m.txt"), "--ngrams", "300")
    assert result.exit_code != 0
    assert "--ngrams 300 changes nothing in text; it is for fasttext and ftz" in result.output


def test_export__refuses_more_codes_than_the_format_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "Codebook", None)  # it is made of rows, which would take memory
    rows = np.broadcast_to(np.float32(1), (len(WORDS), 6_000_000))
    with pytest.raises(InputError, match="405 rows of 6000000 dimensions have more codes than the 2147483647"):
        export(Vectors(make_vectors().vocabulary, rows), tmp_path / "m.ftz", part_size=1)


def test_export__refuses_a_table_of_features(tmp_path):
    keys = FeatureKeys((FeatureColumn("brand", 1.0, ("x", "y")),))
    features = FeatureVectors(keys, np.ones((2, 2), np.float32))
    vectors = Vectors(Vocabulary.from_words(["a"], [1]), np.ones((1, 2), np.float32), features=features)
    with pytest.raises(InputError, match="but no table of features"):
        export(vectors, tmp_path / "m.ftz")


def written(tmp_path):
    """Return the content of a small file, and the offsets of the dictionary of n-grams and of the matrix."""
    ngrams = HashedNGrams(minn=1, maxn=2, bucket=9)
    features = FeatureVectors(
        FeatureKeys(ngrams=ngrams, buckets=np.array([4, 2], np.int32)), np.eye(2, 3, dtype=np.float32)
    )
    vectors = Vectors(Vocabulary.from_words(["a"], [1]), np.ones((1, 3), np.float32), features=features)
    export(vectors, tmp_path / "m.ftz")
    pruned = 64 + 28 + len(b"a\0") + 9
    return (tmp_path / "m.ftz").read_bytes(), pruned, pruned + 2 * 8


def changed(content, at, kind, *numbers):
    return content[:at] + struct.pack(kind, *numbers) + content[at + struct.calcsize(kind) :]


WRONG = [
    (0, "<i", [9], "does not number the rows of 2 n-grams of 9"),
    (0, "<i", [-1], "does not number the rows"),
    (0, "<i", [2], "does not number the rows"),
    (4, "<i", [1], "does not number the rows"),
    (4, "<i", [7], "does not number the rows"),
    (-16, "<q", [10], "of which 10 are left"),
]
WRONG_MATRIX = [
    (2, "<q", [4], "declares 6 codes of 4 rows"),
    (2, "<q", [-3], "codes of -3 rows"),
    (2, "<q", [6], "holds a table of 6 rows|cut short|parts of"),
    (10, "<q", [2], "codes of 3 rows and 2 columns"),
    (10, "<q", [1], "codes of 3 rows and 1 columns"),
    (18, "<i", [7], "declares 7 codes"),
    (18, "<i", [-6], "declares -6 codes"),
    (28, "<i", [4], "cuts 4 columns"),
    (32, "<i", [3], "into 3 parts"),
    (36, "<i", [3], "parts of 3"),
    (40, "<i", [0], "the last of 0"),
    (44, "<f", [float("nan")], "a centroid that is not finite"),
    (44, "<f", [3e38], "has codes of numbers up to"),
]


@pytest.mark.parametrize(
    ("part", "offset", "kind", "numbers", "message"),
    [("pruned", *one) for one in WRONG] + [("matrix", *one) for one in WRONG_MATRIX],
)
def test_import__names_the_problem(tmp_path, part, offset, kind, numbers, message):
    content, pruned, matrix = written(tmp_path)
    offset += pruned - len(b"a\0") - 9 + 8 if offset < 0 else pruned if part == "pruned" else matrix
    (tmp_path / "m.ftz").write_bytes(changed(content, offset, kind, *numbers))
    with pytest.raises(InputError, match=message):
        import_vectors(tmp_path / "m.ftz")


@pytest.mark.parametrize(("columns", "parts", "part_size"), [(2**31 - 1, 2**31 - 1, 1), (-1, -1, 1), (2**30, 1, 2**30)])
def test_import__believes_no_columns_of_a_matrix_without_rows(tmp_path, columns, parts, part_size):
    content, _, matrix = written(tmp_path)
    declared = struct.pack("<?qqi4i", True, 0, columns, 0, columns, parts, part_size, part_size)
    (tmp_path / "m.ftz").write_bytes(content[: matrix + 1] + declared)
    with pytest.raises(InputError, match="codes of 0 rows"):
        import_vectors(tmp_path / "m.ftz")


def test_import__takes_no_memory_for_a_part_larger_than_the_columns(tmp_path):
    """fastText names the size that was asked for, also where all columns are fewer."""
    content, _, matrix = written(tmp_path)
    book, lengths = np.arange(256 * 3, dtype="<f4").reshape(256, 3), np.ones(256, "<f4")
    declared = struct.pack("<??qqi", True, True, 3, 3, 3) + bytes([0, 1, 2]) + struct.pack("<4i", 3, 1, 2**31 - 1, 3)
    coded = declared + book.tobytes() + bytes(3) + struct.pack("<4i", 1, 1, 1, 1) + lengths.tobytes()
    (tmp_path / "m.ftz").write_bytes(content[:matrix] + coded)
    rows = import_vectors(tmp_path / "m.ftz").features.rows
    assert rows.book.directions.shape == (1, 3, 256)
    np.testing.assert_array_equal(rows[:], book[1:3])


def test_import__names_any_cut(tmp_path):
    content, _, _ = written(tmp_path)
    for length in range(0, len(content) - 17, 7):  # what words were trained against is not read
        (tmp_path / "m.ftz").write_bytes(content[:length])
        with pytest.raises(InputError):
            import_vectors(tmp_path / "m.ftz")


def test_import__refuses_more_than_memory(tmp_path):
    content, _, matrix = written(tmp_path)
    (tmp_path / "m.ftz").write_bytes(changed(content, matrix + 2, "<qqi", 2**40, 3, 2**31 - 1))
    with pytest.raises((InputError, StoreError)):
        import_vectors(tmp_path / "m.ftz")


def test_command__writes_a_small_file(tmp_path):
    make_vectors().save(tmp_path / "model")
    command = ["export", str(tmp_path / "model"), str(tmp_path / "m.ftz"), "--ngrams", "300", "--part-size", "1"]
    assert invoke(*command).exit_code == 0
    export(make_vectors().prune(300), tmp_path / "same.ftz", part_size=1)
    assert (tmp_path / "m.ftz").read_bytes() == (tmp_path / "same.ftz").read_bytes()
