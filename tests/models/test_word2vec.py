import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.errors import InputError
from daskw2v.models.formats.export import export
from daskw2v.models.formats.word2vec import import_word2vec
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = ["the", "naïve", "日本", "no\u00a0break", "#", "3.5"]  # U+00A0 is no separator of these formats
SUFFIXES = [".txt", ".vec", ".bin", ".txt.gz", ".bin.gz"]
BINARY = b"2 2\na " + bytes(8) + b"\nb " + bytes(8) + b"\n"


@pytest.fixture(scope="module")
def vectors():
    matrix = np.random.default_rng(0).standard_normal((len(WORDS), 5), np.float32)
    matrix[0] = [0, -0.0, 1e-38, 3e38, 1 / 3]
    return Vectors(Vocabulary.from_words(WORDS, range(len(WORDS), 0, -1)), matrix)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_export__is_read_by_gensim(vectors, tmp_path, suffix):
    url = str(tmp_path / f"vectors{suffix}")
    export(vectors, url)
    result = pytest.importorskip("gensim.models").KeyedVectors.load_word2vec_format(url, binary=".bin" in suffix)
    assert result.index_to_key == WORDS
    assert np.array_equal(result.vectors, vectors.vectors)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_import_word2vec__reads_exported_files(vectors, tmp_path, suffix):
    url = str(tmp_path / f"vectors{suffix}")
    export(vectors, url)
    result = import_word2vec(url)
    assert result.vocabulary.words == WORDS
    assert result.vocabulary.counts.tolist() == [0] * len(WORDS)
    assert np.array_equal(result.vectors, vectors.vectors)
    assert result.url == url


@pytest.mark.parametrize("columns", [1000, 1024])
def test_import_word2vec__reads_lines_of_many_numbers(tmp_path, columns):
    matrix = np.random.default_rng(1).standard_normal((2, columns), np.float32)
    export(Vectors(Vocabulary.from_words(["a", "b"], [2, 1]), matrix), str(tmp_path / "a.txt"))
    assert np.array_equal(import_word2vec(str(tmp_path / "a.txt")).vectors, matrix)


@pytest.mark.parametrize("binary", [False, True])
def test_import_word2vec__reads_files_of_gensim(vectors, tmp_path, binary):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(5)
    keyed.add_vectors(WORDS, vectors.vectors)
    keyed.save_word2vec_format(str(tmp_path / "vectors"), binary=binary)
    result = import_word2vec(str(tmp_path / "vectors"), binary=binary)
    assert result.vocabulary.words == WORDS
    assert np.allclose(result.vectors, vectors.vectors, rtol=1e-6)


def test_export__is_the_same_bytes_each_time(vectors, tmp_path):
    for name in ("a.txt.gz", "b.txt.gz"):
        export(vectors, str(tmp_path / name))
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()


@pytest.mark.parametrize("suffix", [".txt", ".bin"])
def test_export__refuses_words_with_whitespace(tmp_path, suffix):
    words = Vocabulary.from_words(["fine", "New York", "", "a\tb"], [1] * 4)
    url = tmp_path / f"vectors{suffix}"
    with pytest.raises(InputError, match=r"cannot represent 3 .* 'New York', '', 'a\\tb'\..*parquet or safetensors"):
        export(Vectors(words, np.ones((4, 2), np.float32)), str(url))
    assert list(tmp_path.iterdir()) == []


def test_import_word2vec__accepts_no_vectors(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"0 5\n")
    assert import_word2vec(str(tmp_path / "a.txt")).vectors.shape == (0, 5)


def test_import_word2vec__accepts_spaces_and_carriage_returns_at_line_ends(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"2 2\r\na 1 2 \r\nb 3 4")
    result = import_word2vec(str(tmp_path / "a.txt"))
    assert result.vocabulary.words == ["a", "b"]
    assert result.vectors.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with b''"),
        (b"the 0.1 0.2\n", "GloVe"),
        (b"2 0\n", "begins with"),
        (b"99999999999999 300\na 1 2\n", "too small for the 99999999999999 vectors"),
        (b"3 2\na 1 2\nb 1 2\n", "too small for the 3 vectors"),
        (b"2 2\na 1.5 2.5\nb 1.5\n", "Vector 2 of .* has 1 numbers, not 2"),
        (b"2 2\na 1.5 2.5 3.5\nb 1 2\n", "Vector 1 of .* has 3 numbers, not 2"),
        (b"2 2\naaaaaaaaaaaaaaa 1 2\n", "Vector 2 of .* has 0 numbers"),
        (b"1 2\na 1 x\n", "Vector 1 of .* has no number"),
        (b"1 2\n" + b"x" * 100_000, "Vector 1 of .* has 65,664 bytes without an end of its line"),
        (b"1 2\na 1 2\nb 1 2\n", "goes on after the 1 vectors"),
        (b"2 2\na 1 2\na 1 2\n", "holds 'a' twice"),
        (b"2 2\na 1 2\nb nan 2\n", "vector of 'b' .* not finite"),
        (b"1 2\na 1 1e300\n", "vector of 'a' .* not finite"),
        (b"1 2\n\xff\xfe 1 2\n", "not UTF-8"),
    ],
)
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_import_word2vec__names_the_problem_of_a_text_file(tmp_path, content, message, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(gzip.compress(content) if suffix == ".txt.gz" else content)
    if suffix == ".txt.gz":  # how much a packed file holds is only known at its end
        message = message.replace("too small for the 3 vectors", "Vector 3 of .* has 0 numbers")
    with pytest.raises(InputError, match=message):
        import_word2vec(str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BINARY[:-4], "Vector 2 of .* has 5 bytes, not 8"),
        (BINARY[:-8], "too small for the 2 vectors"),
        (b"2 2\nlongword " + bytes(8) + b"\nb " + bytes(4), "Vector 2 of .* has 4 bytes, not 8"),
        (b"1 2\n" + b"x" * 100_000, "Vector 1 of .* no word followed by a space"),
        (b"2 2\nlongwordlongword " + bytes(8) + b"\nb", "Vector 2 of .* no word"),
        (BINARY + b"c", "goes on after the 2 vectors"),
        (b"1 2\na " + np.float32([np.inf, 0]).tobytes(), "not finite"),
        (b"1 2\n\xff " + bytes(8), "not UTF-8"),
    ],
)
def test_import_word2vec__names_the_problem_of_a_binary_file(tmp_path, content, message):
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(InputError, match=message):
        import_word2vec(str(tmp_path / "a.bin"))


def test_import_word2vec__names_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        import_word2vec(str(tmp_path / "absent.bin"))


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=60), st.booleans(), st.booleans())
def test_import_word2vec__refuses_any_garbage_with_an_input_error(tmp_path_factory, content, header, binary):
    path = tmp_path_factory.mktemp("garbage") / "a"
    path.write_bytes((b"2 3\n" if header else b"") + content)
    try:
        result = import_word2vec(str(path), binary=binary)
    except InputError:
        return
    assert np.isfinite(result.vectors).all()
