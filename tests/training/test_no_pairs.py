"""A run in which no two words stood together learns nothing: it is an error, and nothing is published."""

import pytest

from daskw2v import Params, Resources, Vectors, Versions, train
from daskw2v.errors import Daskw2vError, TrainingError
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.store.storage import Store

MATRIX = {"strategy": "columns", "context_size": 4}
RUNS = [
    {"objective": "sgns"},
    *(
        pytest.param({"objective": name}, marks=pytest.mark.slow)
        for name in OBJECTIVES
        if name not in ("sgns", "context_matrix", "subwords")
    ),
    {"objective": "sgns", "n_replicas": 2},
    {"strategy": "rotation", "n_partitions": 2},
    {"objective": "context_matrix", **MATRIX},
]
ALONE = "one\ntwo\nthree\n" * 20  # words alone in their sentences


def run(folder, client, text, **changed):
    (folder / "a.txt").write_text(text)
    params = Params(**{"vector_size": 4, "min_count": 1, "epochs": 1, "sample": 0, **changed})
    return train(folder / "a.txt", work=folder / "work", params=params, resources=Resources(threads=1), client=client)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("changed", RUNS, ids=str)
def test_words_alone_in_their_sentences__are_refused(tmp_path, client, changed):
    with pytest.raises(
        TrainingError, match=r"^No pair of words was left to train, of a vocabulary of 3 words"
    ) as caught:
        run(tmp_path, client, ALONE, **changed)
    assert "nothing is published. Give sentences of several words, a line each" in str(caught.value)
    assert Store(str(tmp_path / "work" / "models")).children() == []
    with pytest.raises(Daskw2vError, match="There is no model"):
        Vectors.open(tmp_path / "work")


def test_words__that_min_count_or_sample_leave_alone_are_refused_by_these(tmp_path, client):
    with pytest.raises(TrainingError, match=r"a vocabulary of 1 word: .*min_count=2 times.*a lower min_count"):
        run(tmp_path, client, "one a\none b\none c\n", min_count=2)
    with pytest.raises(TrainingError, match=r"sample=1e-06 left.*or sample=0, which keeps all words"):
        run(tmp_path, client, "one two three\n" * 9, sample=1e-6)


def test_words__that_stand_together_are_trained_in_the_same_work_directory(tmp_path, client):
    with pytest.raises(TrainingError, match="No pair"):
        run(tmp_path, client, ALONE)
    assert len(run(tmp_path, client, "one two three\n" * 9)) == 3
    assert len(Versions.open(tmp_path / "work").all()) == 1
