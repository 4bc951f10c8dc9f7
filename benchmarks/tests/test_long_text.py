"""The text that is drawn, and what is read of a run's progress."""

import numpy as np
import pytest

from benchmarks.long_text import FREQUENT, HEAPS, draw, progress_of, spell, write_text


def test_draw__has_a_vocabulary_that_grows_by_heaps_law():
    """Of words that do not follow Zipf's law, once there are more of them than ranks that do."""
    ranks = draw(1 << 23, np.random.default_rng(1))
    rare = ranks[ranks > FREQUENT]
    few, many = (len(np.unique(rare[: len(rare) // n])) for n in (4, 1))
    assert np.log(many / few) / np.log(4) == pytest.approx(HEAPS, abs=0.06)
    shares = np.bincount(np.minimum(ranks, 101))[1:101] / len(ranks)
    assert 1.5 < shares[9] / shares[19] < 2.5


def test_spell__gives_each_rank_a_word_of_its_own():
    ranks = np.random.default_rng(1).permutation(np.arange(1, 10_000, dtype=np.uint32))
    text = spell(ranks).tobytes().decode()
    assert len(set(text.split())) == len(ranks)
    assert {len(line.split()) for line in text.splitlines()} == {20, 19}


def test_write_text__makes_the_same_files_again(tmp_path):
    first, again = (write_text(tmp_path / name, 0.001) for name in ("a", "b") if (tmp_path / name).mkdir() is None)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert sum(path.stat().st_size for path in first) == pytest.approx(1e6, rel=0.1)


@pytest.mark.parametrize(
    ("line", "stage", "share"),
    [
        ("encode: 3M/6M bytes  1 block", "encode", 0.5),
        ("choose: strategy=averaging: there is one worker", "train", 0),
        ("train: 960k/1.92M tokens  544k words/s  loss 2.776", "train", 0.5),
        ("train: 400/1.6k tokens", "train", 0.25),
        ("", "", 0),
        ("Traceback (most recent call last):", "", 0),
    ],
)
def test_progress__is_read(line, stage, share):
    found = progress_of(line)
    assert found[0] == stage
    assert found[1] == pytest.approx(share)
