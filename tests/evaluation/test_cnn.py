import numpy as np
import pytest

from daskw2v.evaluation import classification
from daskw2v.evaluation.classification import Split, Texts

torch = pytest.importorskip("torch", reason="PyTorch comes with daskw2v[torch]")


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """On a busy machine, threads that wait for each other take a hundred times as long for layers this small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def make_texts(rows, labels, n_words=12, size=6):
    table = np.random.default_rng(9).standard_normal((n_words + 1, size)).astype(np.float32)
    table[0] = 0
    return Texts(np.array(labels, np.int64), [np.array(row, np.int64) for row in rows], table)


@pytest.fixture(scope="module")
def ordered():
    """Texts labelled by the order of two words that all of them have: means of vectors do not distinguish them."""
    rng = np.random.default_rng(1)
    rows, labels = [], []
    for i in range(300):
        row = rng.integers(3, 13, size=rng.integers(2, 9)).tolist()
        position = rng.integers(len(row) + 1)
        row[position:position] = [1, 2] if i % 2 else [2, 1]
        rows.append(row)
        labels.append(i % 2)
    return make_texts(rows, labels), Split(*np.split(np.arange(300), [200, 240]))


def test_classify__learns_the_order_of_words(ordered):
    texts, split = ordered
    assert np.mean(classification.classify_by_cnn(texts, split, 0) == texts.labels[split.test]) > 0.95


def test_classify__repeats_itself_and_does_not_change_the_random_state(ordered):
    texts, split = ordered
    before = torch.get_rng_state()
    first, again, other = (classification.classify_by_cnn(texts, split, seed, epochs=1) for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_classify__answers_with_the_best_epoch_on_dev(ordered, monkeypatch):
    texts, split = ordered
    answers = iter([texts.labels[split.dev], 1 - texts.labels[split.dev]])
    tested = []

    def predict(self, texts):
        if texts is split.dev:
            return next(answers)
        tested.append(len(tested))
        return np.full(len(texts), len(tested))

    monkeypatch.setattr(classification._Network, "predict", predict)
    np.testing.assert_array_equal(classification.classify_by_cnn(texts, split, 0, epochs=2), 1)
    assert len(tested) == 1


def network(texts):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        network = classification._Network(torch, texts)
    network._dropout.eval()
    return network


ROWS = [[1, 2, 0, 3, 4, 5, 6, 7], [8], [9, 10, 11]]


def test_network__equals_its_reference():
    texts = make_texts(ROWS, [0, 1, 2])
    net = network(texts)
    weights = [[p.detach().numpy().astype(np.float64) for p in layer.parameters()] for layer in net._filters]
    output, bias = (p.detach().numpy().astype(np.float64) for p in net._output.parameters())
    for number, row in enumerate(ROWS):
        words = texts.table[[0] * 5 + row + [0] * 5].astype(np.float64)
        values = []
        for (filters, biases), width in zip(weights, (3, 4, 5), strict=True):
            windows = [words[i : i + width].T for i in range(len(words) - width + 1)]
            sums = np.array([[(f * window).sum() for f in filters] for window in windows]) + biases
            values.append(np.maximum(sums, 0).max(axis=0))
        expected = output @ np.concatenate(values) + bias
        np.testing.assert_allclose(net._scores(np.array([number])).detach().numpy()[0], expected, atol=1e-5)


def test_network__scores_a_text_by_itself():
    net = network(make_texts(ROWS, [0, 1, 2]))
    together = net._scores(np.arange(3)).detach().numpy()
    alone = np.concatenate([net._scores(np.array([i])).detach().numpy() for i in range(3)])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_network__bounds_the_weights_of_a_label():
    texts = make_texts(ROWS, [0, 1, 2])
    net = network(texts)
    with torch.no_grad():
        net._output.weight.mul_(100)
    net.learn(np.arange(3), torch.from_numpy(texts.labels))
    np.testing.assert_allclose(net._output.weight.detach().norm(dim=1).numpy(), 3, rtol=1e-4)
