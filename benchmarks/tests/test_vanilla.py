import numpy as np
import pytest

from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.reference import draw_pair_targets, list_windows
from daskw2v.objectives.windows import Windows
from daskw2v.sampling.segments import Segment
from daskw2v.store.storage import Store

vanilla, texts = (
    pytest.importorskip(f"benchmarks.{name}", reason="no benchmarks here: run pytest as python -m pytest")
    for name in ("context_matrix.vanilla", "texts")
)

N_WORDS = 40


@pytest.fixture
def segment():
    random = np.random.default_rng(5)
    words = np.minimum(random.zipf(1.3, 300) - 1, N_WORDS - 1).astype(np.int32)
    return Segment(words, np.arange(300) * 2 + 7, np.array([0, 1, 50, 52, 190, 300]))


@pytest.fixture
def counts(segment):
    return np.bincount(segment.tokens, minlength=N_WORDS) + 1


def pairs_of(segment, settings, noise):
    """Return the pairs in the order of the text: context, targets, signs."""
    key = stream(1, Purpose.NEGATIVE)
    windows = Windows(settings.window, False, 0.0, 0.0, 0, key)
    return [
        (context, *draw_pair_targets(noise, key, window, settings.negative, i))
        for window in list_windows(segment, 0, len(segment.tokens), windows)
        for i, context in enumerate(window.contexts)
    ]


def reference(pairs, source, output, settings):
    """Train in float64 NumPy, all rows at each batch as Adam has it."""
    tables = source, output
    moments = [(np.zeros_like(rows), np.zeros_like(rows)) for rows in tables]
    for t, at in enumerate(range(0, len(pairs), settings.batch), 1):
        gradients, met = [np.zeros_like(rows) for rows in tables], [set(), set()]
        for context, targets, signs in pairs[at : at + settings.batch]:
            odds = np.exp(-signs * (output[targets] @ source[context]))
            gain = signs * odds / (1 + odds)
            gradients[0][context] += gain @ output[targets]
            np.add.at(gradients[1], targets, gain[:, None] * source[context])
            met[0].add(context)
            met[1].update(targets)
        for rows, gradient, (first, second), touched in zip(tables, gradients, moments, met, strict=True):
            moved = sorted(touched) if settings.lazy else slice(None)
            first[moved] = 0.9 * first[moved] + 0.1 * gradient[moved]
            second[moved] = 0.999 * second[moved] + 0.001 * gradient[moved] ** 2
            alpha = settings.alpha * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            rows[moved] += alpha * first[moved] / (np.sqrt(second[moved]) + 1e-8)


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("batch", [1, 7, 64, 100, 5000])
def test_training__is_that_of_the_reference(segment, counts, batch, lazy):
    settings = vanilla.Vanilla(batch, 0.01, lazy, vector_size=20)
    trainer = vanilla.Trainer(settings, counts)
    source, output = (trainer.table(name).astype(float) for name in ("input", "output"))
    ranges = (0, 130), (130, 131), (131, 300)  # batches go on where a range ends
    pairs = sum(trainer.train(segment, *centers) for centers in ranges)
    trainer.finish()
    expected = pairs_of(segment, settings, trainer.noise)
    reference(expected, source, output, settings)
    assert pairs == len(expected)
    # Adam's step of a tiny gradient depends on its sign alone, which rounding may change
    np.testing.assert_allclose(trainer.table("input"), source, atol=2e-3)
    np.testing.assert_allclose(trainer.table("output"), output, atol=2e-3)
    assert np.abs(trainer.table("input") - source).mean() < 1e-5


@pytest.fixture
def text(tmp_path):
    random, path = np.random.default_rng(3), tmp_path / "text.txt"
    lines = (" ".join(f"w{word}" for word in random.integers(0, 30, 40)) for _ in range(50))
    path.write_text("\n".join(lines))
    return texts.encode_file(path, Store(str(tmp_path / "work")), Params(min_count=1))


def test_train_vanilla__goes_through_the_text(text):
    found, pairs = vanilla.train_vanilla(text, vanilla.Vanilla(64, lazy=True, vector_size=20, epochs=2))
    assert pairs == 2 * 50 * (40 * 4 - 6)
    assert found.vectors.shape == (30, 20)


def test_train_vanilla__centers_and_draws_as_asked(text):
    plain, centered, others = (
        vanilla.train_vanilla(text, vanilla.Vanilla(64, 0.01, vector_size=20, **changes))[0].vectors
        for changes in ({}, {"centered": True}, {"ns_exponent": 0.0})
    )
    np.testing.assert_allclose(centered, plain - plain.mean(axis=0), atol=1e-6)
    assert np.abs(others - plain).max() > 1e-3


def test_batches_of__have_the_pairs_of_all_windows(text):
    """In order, whatever a batch holds; no pair reaches over the end of a sentence."""
    network = pytest.importorskip("benchmarks.context_matrix.vanilla_network")
    batches = [*network.batches_of(text, vanilla.Vanilla(batch=64, epochs=2))]
    assert [batch.shape[1] for batch in batches] == [64] * 240 + [40]
    pairs = np.concatenate(batches, axis=1)
    lines = [np.array(line, int) for line in known_lines(text)]
    one_epoch = [
        (line[i], line[j])
        for line in lines
        for i in range(len(line))
        for j in range(max(0, i - 2), min(len(line), i + 3))
        if i != j
    ]
    assert np.array_equal(pairs.T, one_epoch * 2)


def known_lines(text):
    """Return the words' ids of each line of the text."""
    words = text.vocabulary.load()
    return [[words.find(word) for word in line.split()] for line in text.path.read_text().splitlines()]


def test_train_vanilla__trains_a_network(text):
    """Its weights change, and the same seed gives the same vectors."""
    pytest.importorskip("torch", reason="PyTorch comes with daskw2v[torch]")
    settings = vanilla.Vanilla(64, 0.01, of_characters=True, vector_size=12)
    (first, pairs), (again, _) = (vanilla.train_vanilla(text, settings) for _ in range(2))
    assert pairs == 50 * (40 * 4 - 6)
    assert first.vectors.shape == (30, 12)
    assert np.array_equal(first.vectors, again.vectors)
    untrained, _ = vanilla.train_vanilla(text, vanilla.Vanilla(64, 0.0, of_characters=True, vector_size=12))
    assert np.abs(first.vectors - untrained.vectors).max() > 0.05
