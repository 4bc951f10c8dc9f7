import numpy as np
import pytest

pytest.importorskip("torch", reason="needs daskw2v[torch]")
imitation = pytest.importorskip(
    "benchmarks.context_matrix.imitation", reason="no benchmarks here: run pytest as python -m pytest"
)


def test_imitation__says_targets_that_endings_tell_of_words_not_shown_too():
    random = np.random.default_rng(4)
    stems = ["".join(random.choice([*"abcdefghij"], 5)) for _ in range(150)]
    words = [stem + ending for stem in stems for ending in ("ing", "ous")]
    targets = np.tile(np.eye(2, 6, dtype=np.float32), (len(stems), 1))
    network = imitation.imitate(words[:200], targets[:200], 100, seed=1, filters=20)
    for of in (slice(0, 200), slice(200, 300)):
        assert imitation._explained(targets[of], network.vectors(words[of])) > 0.7


def test_explained__is_1_for_the_rows_and_0_for_their_mean():
    units = np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)
    assert imitation._explained(units, units) == 1
    assert imitation._explained(units, np.broadcast_to(units.mean(axis=0), units.shape)) == pytest.approx(0, abs=1e-6)


def test_vectors_of_ngrams__are_zeros_where_none_is_known():
    def spell(words):
        if words[0] == "fxs":
            raise imitation.UnknownWordError("'fxs' is unknown.", "Ask for another one.")
        return np.ones((1, 3), np.float32)

    np.testing.assert_array_equal(imitation._each(spell, 3, ["word", "fxs"]), [[1, 1, 1], [0, 0, 0]])
