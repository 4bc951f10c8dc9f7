"""Skip-gram shards: what lies on disk is what one deal of the whole stretch would give."""

import numpy as np
import pytest

from daskw2v import Params, Resources, Store, build_corpus, build_vocabulary
from daskw2v.errors import StoreError
from daskw2v.kernels.alias import alias_table
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sampling import skipgrams
from daskw2v.sampling.dealing import Noise, WindowSize, deal_pairs, deal_row
from daskw2v.sampling.hierarchy import RULES
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import keep_thresholds
from daskw2v.sampling.skipgrams import Dealer, Stretch, build_skipgrams, read_bucket

P = 3
STRETCH = Stretch(2, 500, 7000)


@pytest.fixture(scope="module")
def encoded(client, tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("skipgrams"), np.random.default_rng(0)
    lines = [" ".join(f"w{w}" for w in rng.zipf(1.3, rng.integers(1, 40)) if w < 300) for _ in range(600)]
    (folder / "text.txt").write_text("\n".join(lines))
    store, params = Store(str(folder / "work")), Params(min_count=2)
    corpus = build_corpus(folder / "text.txt", store, params, Resources(block_size="16 KiB"), client)
    assert len(corpus.shards) > 1
    assert corpus.n_tokens > STRETCH.stop
    return store, corpus, build_vocabulary(corpus, store, params, Resources(), client)


def dealer_of(encoded, rule, sample=1e-2):
    store, corpus, vocabulary = encoded
    params = Params(min_count=2, sample=sample, negative=4, window=3, negative_rule=rule)
    return Dealer(Run(store, corpus.name, vocabulary, params, "cpu"), (3.0, 1.0, 2.0))


def expected_of(encoded, dealer):
    """Deal the whole stretch at once, in memory; return words, and the buckets of pairs and of noise."""
    store, corpus, vocabulary = encoded
    params, counts = dealer.run.params, vocabulary.load().counts
    segment, words = SegmentReader(store, corpus, vocabulary).read(
        STRETCH.start, STRETCH.stop, params.window, keep_thresholds(counts, params.sample),
        stream(params.seed, Purpose.SUBSAMPLE, STRETCH.epoch),
    )  # fmt: skip
    windows = WindowSize(params.window, True, stream(params.seed, Purpose.WINDOW, STRETCH.epoch))
    table, key = alias_table(np.array(dealer.weights)), stream(params.seed, Purpose.PARTITION, STRETCH.epoch)
    kinds = [None]
    if params.negative_rule != "tns":
        kinds.append(Noise(RULES[params.negative_rule], params.negative, table, key))
    dealt = []
    for noise in kinds:
        rows = deal_pairs(segment, *segment.centers(STRETCH.start, STRETCH.stop), windows, P, noise)
        each = [deal_row(rows.entries[rows.edges[i] : rows.edges[i + 1]], P) for i in range(P)]
        dealt.append([[row.entries[row.edges[j] : row.edges[j + 1]] for j in range(P)] for row in each])
    return words, dealt


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("piece", [300, 1 << 20])
def test_build_skipgrams__equal_one_deal_however_the_text_is_cut(client, encoded, tmp_path, monkeypatch, rule, piece):
    monkeypatch.setattr(skipgrams, "SEGMENT", piece)
    dealer, home = dealer_of(encoded, rule), Store(str(tmp_path))
    words, dealt = expected_of(encoded, dealer)
    found = build_skipgrams(client, dealer, home, STRETCH)
    assert found.words == words > found.pairs / 6
    assert found.pairs == sum(len(bucket) for row in dealt[0] for bucket in row) > 1000
    assert found.noise == {"tns": 0, "sns": 1, "bns": 4}[rule] * found.pairs
    for i in range(P):
        for j in range(P):
            bucket = read_bucket(found.row(i), j)
            np.testing.assert_array_equal(bucket.pairs.T, dealt[0][i][j])
            np.testing.assert_array_equal(bucket.noise.T, dealt[1][i][j] if rule != "tns" else np.empty((0, 2)))
            assert bucket.pairs.dtype == np.int32
            assert bucket.pairs.flags.c_contiguous
    assert not (home / "text").exists()


def test_build_skipgrams__that_are_there_are_not_made_again(client, encoded, tmp_path):
    dealer, home = dealer_of(encoded, "tns"), Store(str(tmp_path))
    found = build_skipgrams(client, dealer, home, STRETCH)
    assert build_skipgrams(client, dealer, home, STRETCH) == found
    found.row(1).remove()
    again = build_skipgrams(client, dealer, home, STRETCH)
    assert again.rows != found.rows
    assert again.pairs == found.pairs


def test_build_skipgrams__of_words_without_neighbours_are_empty(client, encoded, tmp_path):
    found = build_skipgrams(client, dealer_of(encoded, "sns", sample=1e-9), Store(str(tmp_path)), STRETCH)
    assert found.pairs == found.noise == 0 < found.words
    assert read_bucket(found.row(0), 0).pairs.shape == (2, 0)


def test_read_bucket__that_is_gone_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="holds no Zarr group"):
        read_bucket(Store(str(tmp_path / "gone")), 0)
