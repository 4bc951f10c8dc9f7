import numpy as np
import pytest

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.reference import targets_of, windows_in
from daskw2v.objectives.windows import Windows
from daskw2v.sampling.segments import Segment
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.vocabulary.count import build_vocabulary

vanilla = pytest.importorskip("benchmarks.vanilla", reason="no benchmarks here: run pytest as python -m pytest")

N_WORDS = 40
WINDOW_KEY, NEGATIVE_KEY = stream(1, Purpose.WINDOW), stream(1, Purpose.NEGATIVE)


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
    windows, key = Windows(settings.window, settings.shrink_windows, 0.0, 0.0, 0, WINDOW_KEY), NEGATIVE_KEY
    return [
        (context, *targets_of(noise, key, window, settings.negative, i))
        for window in windows_in(segment, 0, len(segment.tokens), windows)
        for i, context in enumerate(window.contexts)
    ]


def reference(pairs, source, output, settings, watched=()):
    """Train in float64 NumPy, all rows at each batch as Adam has it; return the loss, and the watched words'."""
    tables, total, by_word = (source, output), 0.0, {word: [] for word in watched}
    moments = [(np.zeros_like(rows), np.zeros_like(rows)) for rows in tables]
    for t, at in enumerate(range(0, len(pairs), settings.batch), 1):
        gradients, met = [np.zeros_like(rows) for rows in tables], [set(), set()]
        losses = {word: [] for word in watched}
        for context, targets, signs in pairs[at : at + settings.batch]:
            odds = np.exp(-signs * (output[targets] @ source[context]))
            gain = signs * odds / (1 + odds)
            gradients[0][context] += gain @ output[targets]
            np.add.at(gradients[1], targets, gain[:, None] * source[context])
            met[0].add(context)
            met[1].update(targets)
            loss = np.log1p(odds)[signs != 0].sum()
            total += loss
            if context in losses:
                losses[context].append(loss)
        for word, values in losses.items():
            by_word[word] += [np.mean(values)] if values else []
        for rows, gradient, (first, second), touched in zip(tables, gradients, moments, met, strict=True):
            moved = sorted(touched) if settings.lazy else slice(None)
            first[moved] = 0.9 * first[moved] + 0.1 * gradient[moved]
            second[moved] = 0.999 * second[moved] + 0.001 * gradient[moved] ** 2
            alpha = settings.alpha * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            rows[moved] += alpha * first[moved] / (np.sqrt(second[moved]) + 1e-8)
    return total, by_word


@pytest.mark.parametrize(("lazy", "shrink_windows"), [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("batch", [1, 7, 64, 100, 5000])
def test_training__is_that_of_the_reference(segment, counts, batch, lazy, shrink_windows):
    settings = vanilla.Vanilla(batch, 0.01, lazy, shrink_windows=shrink_windows, vector_size=20)
    trainer = vanilla.Trainer(settings, counts, 700, (0, 3))
    source, output = (trainer.table(name).astype(float) for name in ("input", "output"))
    pairs, loss = 0, 0.0
    for first, last in ((0, 130), (130, 131), (131, 300)):  # batches go on where a range ends
        done, lost, _ = trainer.train(segment, first, last, 10**9)
        pairs, loss = pairs + done, loss + lost
    trainer.finish(700)
    expected = pairs_of(segment, settings, trainer._noise)
    total, by_word = reference(expected, source, output, settings, (0, 3))
    assert pairs == len(expected)
    assert loss == pytest.approx(total, rel=1e-5)
    # Adam's step of a tiny gradient depends on its sign alone, which rounding may change
    np.testing.assert_allclose(trainer.table("input"), source, atol=2e-3)
    np.testing.assert_allclose(trainer.table("output"), output, atol=2e-3)
    assert np.abs(trainer.table("input") - source).mean() < 1e-5
    for place, values in enumerate(by_word.values()):
        batches, mean, variance = (found[0, place] for found in trainer.losses)
        assert batches == len(values)
        assert mean == pytest.approx(np.mean(values), rel=1e-4)
        assert variance == pytest.approx(np.var(values), rel=1e-3, abs=1e-5)


def test_training__stops_after_the_pairs_asked_for(segment, counts):
    trainer = vanilla.Trainer(vanilla.Vanilla(16), counts, 700)
    pairs, _, center = trainer.train(segment, 0, 300, 50)
    assert 50 <= pairs < 54
    assert center < 300


def test_settings__refuse_what_the_kernel_cannot_do():
    for wrong in ({"batch": 0}, {"batch": 8, "negative": 8}):
        with pytest.raises(ParameterError):
            vanilla.Vanilla(**wrong)


def test_train_vanilla__goes_through_the_text_and_keeps_losses(client, tmp_path):
    random, params, resources = np.random.default_rng(3), Params(min_count=1), Resources()
    path, work = tmp_path / "text.txt", Store(str(tmp_path / "work"))
    lines = (" ".join(f"w{word}" for word in random.integers(0, 30, 40)) for _ in range(50))
    path.write_text("\n".join(lines))
    corpus = build_corpus(str(path), work, params, resources, client)
    vocabulary = build_vocabulary(corpus, work, params, resources, client)
    shares = []
    settings = vanilla.Vanilla(64, vector_size=20, epochs=2)
    found = vanilla.train_vanilla(
        work, corpus, vocabulary, settings, (0, 29), 4, on_progress=lambda share, loss: shares.append(share)
    )
    pairs_of_epoch = 50 * (40 * 4 - 6)
    assert (found.words, found.pairs) == (4000, 2 * pairs_of_epoch)
    assert found.batches == -(-found.pairs // 64)
    assert found.vectors.vectors.shape == (30, 20)
    assert shares == [0.5, 1.0]
    assert found.losses.mean.shape == (4, 2)
    assert (found.losses.batches > 10).all()
    assert (found.losses.mean[-1] < found.losses.mean[0]).all()
    part = vanilla.train_vanilla(work, corpus, vocabulary, settings, max_pairs=1000)
    assert part.losses is None
    assert 1000 <= part.pairs < 1004
    assert part.words < 300
