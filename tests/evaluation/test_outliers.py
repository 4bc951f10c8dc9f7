import numpy as np
import pytest

from daskw2v.errors import InputError
from daskw2v.evaluation.outliers import OutlierResult, evaluate_outliers
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary


def model(**vectors):
    matrix = np.array(list(vectors.values()), np.float32)
    return Vectors(Vocabulary.from_words(list(vectors), [1] * len(vectors)), matrix)


@pytest.fixture(scope="module")
def vectors():
    return model(cat=(1, 0.1, 0), dog=(1, 0, 0.1), cow=(1, 0, 0), car=(0, 1, 0), new=(0, 1, 1), york=(0, 1, -1))


def write(tmp_path, **topics):
    for name, text in topics.items():
        (tmp_path / f"{name}.txt").write_text(text)
    return str(tmp_path)


def test_evaluate_outliers__finds_planted_outliers(vectors, tmp_path):
    (tmp_path / "README").write_text("not a topic")
    url = write(tmp_path, animals="cat\ndog\ncow\n\ncar\nNew York\nyork\n")
    assert evaluate_outliers(vectors, url) == OutlierResult(1.0, 1.0, 3, 0, {"animals": 1.0})


def test_evaluate_outliers__equals_its_reference(tmp_path):
    rng = np.random.default_rng(4)
    units = rng.standard_normal((9, 5))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    vectors = model(**{f"w{i}": 7 * unit for i, unit in enumerate(units)})
    url = write(tmp_path, a="\r\n".join(f"w{i}" for i in range(6)) + "\r\n\r\n" + "w6\r\nw7\r\nw8\r\n")
    detected, positions = [], []
    for outlier in (6, 7, 8):
        group = units[[*range(6), outlier]]
        # Compactness of the other words: the higher, the more likely the word is the outlier
        without = [np.delete(group, i, axis=0) for i in range(7)]
        rest = np.array([(part @ part.T).sum() - len(part) for part in without])
        position = int((rest[:6] < rest[6]).sum())
        detected.append(position == 6)
        positions.append(position / 6)
    result = evaluate_outliers(vectors, url)
    assert result.accuracy == pytest.approx(np.mean(detected))
    assert result.opp == pytest.approx(np.mean(positions))
    assert 0 < result.opp < 1


def test_evaluate_outliers__looks_up_expressions(tmp_path):
    url = write(tmp_path, towns="Los_Angeles\nnew  york\nrome\n\nb_c\n")
    directions = {"los_angeles": (1, 0), "rome": (1, 0), "b": (0, 3), "york": (1, 0)}
    assert evaluate_outliers(model(**directions), url) == OutlierResult(1.0, 1.0, 1, 0, {"towns": 1.0})


def test_evaluate_outliers__accepts_zero_vectors(tmp_path):
    url = write(tmp_path, a="x\ny\n\nz\nu_v\n")
    vectors = model(x=(0, 0), y=(0, 0), z=(0, 0), u=(1, 0), v=(-1, 0))
    assert evaluate_outliers(vectors, url) == OutlierResult(0.0, 0.0, 2, 0, {"a": 0.0})


def test_evaluate_outliers__skips_unknown_words(vectors, tmp_path):
    url = write(tmp_path, a="cat\ndog\nabsent\n\ncar\nab_sent\n", b="cat\nabsent\n\ncar\n")
    assert evaluate_outliers(vectors, url) == OutlierResult(1.0, 1.0, 1, 2, {"a": 1.0, "b": None})


def test_evaluate_outliers__has_no_figure_without_outliers(vectors, tmp_path):
    assert evaluate_outliers(vectors, write(tmp_path, a="x\n\ny\n")) == OutlierResult(None, None, 0, 1, {"a": None})


@pytest.mark.parametrize(("text", "groups"), [("", 0), ("a\nb\n", 1), ("a\n\nb\n \nc\n", 3)])
def test_evaluate_outliers__names_a_malformed_file(vectors, tmp_path, text, groups):
    with pytest.raises(InputError, match=rf"topic.txt has {groups} groups of lines, not 2.*a blank line"):
        evaluate_outliers(vectors, write(tmp_path, topic=text))


def test_evaluate_outliers__names_a_folder_without_topics(vectors, tmp_path):
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError, match=r"contains no .txt file. Give the folder"):
            evaluate_outliers(vectors, folder)


def test_evaluate_outliers__names_a_file_that_is_not_utf8(vectors, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n\ntea\n")
    with pytest.raises(InputError, match=r"Line 1 of .*a.txt is not UTF-8 .*Convert the file to UTF-8"):
        evaluate_outliers(vectors, tmp_path)
