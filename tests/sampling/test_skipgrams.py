"""Skip-gram pairs: what lies in files, or is held by workers, is what one deal of the whole stretch would give."""

from itertools import pairwise, product

import numpy as np
import pytest

from daskw2v import Params, Resources
from daskw2v.errors import DamageError, StoreError
from daskw2v.kernels.alias import alias_table
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sampling import pairs, skipgrams
from daskw2v.sampling.hierarchy import RULES
from daskw2v.sampling.pairs import Noise, WindowSize, distribute_pairs
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import keep_thresholds
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.sampling.skipgrams import (
    BucketArguments,
    StoredPairs,
    Stretch,
    build_skipgrams,
    make_bucket_reader,
    read_buckets,
    submit_pairs,
)
from daskw2v.stages import Store, build_corpus, build_vocabulary
from daskw2v.training.rotation.settings import Rotation
from daskw2v.vocabulary.partition import Partitions

P, GROUPS = 6, 2
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
    run = Run(store, corpus.name, vocabulary, params, "cpu")
    return BucketArguments(run, Partitions(vocabulary.size, P), GROUPS, (3.0, 1.0, 2.0, 1.0, 1.0, 1.0))


def expected_of(encoded, dealer):
    """Deal the whole stretch at once, in memory; return words, and the buckets of pairs and of noise."""
    store, corpus, vocabulary = encoded
    params, counts = dealer.run.params, vocabulary.load().counts
    segment, words = SegmentReader(store, corpus, vocabulary).read(
        STRETCH.start,
        STRETCH.stop,
        params.window,
        keep_thresholds(counts, params.sample),
        stream(params.seed, Purpose.SUBSAMPLE, STRETCH.epoch),
    )
    windows = WindowSize(params.window, True, stream(params.seed, Purpose.WINDOW, STRETCH.epoch))
    table, key = alias_table(np.array(dealer.weights)), stream(params.seed, Purpose.PARTITION, STRETCH.epoch)
    kinds = [None]
    if Rotation.of(params).negative_rule != "tns":
        kinds.append(Noise(RULES[Rotation.of(params).negative_rule], NegativeSampling.of(params).negative, table, key))
    buckets = []
    for noise in kinds:
        dealt = distribute_pairs(segment, STRETCH.start, STRETCH.stop, windows, dealer.partitions, noise)
        buckets.append([dealt.entries[a:b] for a, b in pairwise(dealt.edges)])
    return words, buckets


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("piece", [200, 1 << 20])
@pytest.mark.parametrize("at_least", [1, 20, 1 << 20])
def test_build_skipgrams__equals_one_distribution_however_text_is_cut(
    client, encoded, tmp_path, monkeypatch, rule, piece, at_least
):
    monkeypatch.setattr(pairs, "SPAN", 100)
    monkeypatch.setattr(skipgrams, "piece_length", lambda n, length: piece)
    monkeypatch.setattr(skipgrams, "SLICE", at_least)
    dealer, folder = dealer_of(encoded, rule), Store(str(tmp_path))
    words, buckets = expected_of(encoded, dealer)
    actual = build_skipgrams(client, dealer, folder, STRETCH)
    assert len(actual.attempts) == -(-(STRETCH.stop - STRETCH.start) // piece)
    assert actual.words == words > actual.pairs / 6
    assert actual.pairs == sum(map(len, buckets[0])) > 1000
    assert actual.noise == {"tns": 0, "sns": 1, "bns": 4}[rule] * actual.pairs
    assert actual.n_slices == -(-(STRETCH.stop - STRETCH.start) // slice_of(piece, at_least))
    held = submit_pairs(client, dealer, STRETCH, f"{rule}-{piece}-{at_least}")
    assert (held.words, held.n_slices) == (words, actual.n_slices)
    assert held.deal_seconds > 0
    for to, of in product(range(GROUPS), repeat=2):
        slices = [read_buckets(actual.stored, k, to, of) for k in range(actual.n_slices)]
        places = range(to * (P // GROUPS) ** 2, (to + 1) * (P // GROUPS) ** 2)
        taken = [[*map(make_bucket_reader(parts), places)] for parts in client.gather(held.slices_of_group(of))]
        for buckets_of_slice, others in zip(slices, taken, strict=True):
            for bucket, other in zip(buckets_of_slice, others, strict=True):
                np.testing.assert_array_equal(bucket.pairs, other.pairs)
                np.testing.assert_array_equal(bucket.noise, other.noise)
                assert (other.pairs.dtype, type(other.pairs)) == (bucket.pairs.dtype, np.ndarray)
        for (j, i), *parts in zip(product(range(P // GROUPS), repeat=2), *slices, strict=True):
            number = (to * P // GROUPS + j) * P + of * P // GROUPS + i
            np.testing.assert_array_equal(np.concatenate([part.pairs for part in parts]), buckets[0][number])
            noise = buckets[1][number] if rule != "tns" else []
            np.testing.assert_array_equal(np.concatenate([part.noise for part in parts]), noise)
            assert {pairs.dtype for part in parts for pairs in part} == {np.dtype(np.uint32)}


def slice_of(piece, at_least):
    """Return the positions of a slice: whole pieces, with so many for each bucket at least."""
    return -(-P * P * at_least // piece) * piece


@pytest.mark.parametrize(
    ("n_partitions", "length"), [(1, 10), (8, 2_000_000), (8, 10**9), (64, 10**10), (60_000, 10**7)]
)
def test_piece_length__is_some_spans_and_bounded(n_partitions, length):
    actual = skipgrams.piece_length(n_partitions, length)
    assert actual % pairs.SPAN == 0
    assert 1 << 19 <= actual <= max(1 << 19, min(length / n_partitions, 1 << 24))


def test_build_skipgrams__that_are_there_are_not_made_again(client, encoded, tmp_path):
    dealer, folder = dealer_of(encoded, "tns"), Store(str(tmp_path))
    actual = build_skipgrams(client, dealer, folder, STRETCH)
    assert build_skipgrams(client, dealer, folder, STRETCH) == actual
    folder.remove()
    again = build_skipgrams(client, dealer, folder, STRETCH)
    assert again.attempts != actual.attempts
    assert again.pairs == actual.pairs
    read_buckets(again.stored, 0, 0, 0)
    with pytest.raises(DamageError, match="is gone, or not what was written"):
        read_buckets(actual.stored, 0, 0, 0)


def test_build_skipgrams__writes_pairs_of_an_earlier_release_again(client, encoded, tmp_path):
    dealer, folder = dealer_of(encoded, "tns"), Store(str(tmp_path))
    actual = build_skipgrams(client, dealer, folder, STRETCH)
    manifest = {k: v for k, v in folder.read_manifest().items() if k not in ("format_version", "order")}
    folder.write_manifest(manifest)
    again = build_skipgrams(client, dealer, folder, STRETCH)
    assert again.attempts != actual.attempts
    assert (again.pairs, again.n_groups) == (actual.pairs, GROUPS)


@pytest.mark.parametrize("change", [{"dtype": "O"}, {"n_partitions": 7}, {"n_groups": 0}, {"together": 0}])
def test_read_skipgrams__refuses_what_they_cannot_be(client, encoded, tmp_path, change):
    folder = Store(str(tmp_path))
    build_skipgrams(client, dealer_of(encoded, "tns"), folder, STRETCH)
    manifest = folder.read_manifest()
    del manifest["format_version"]
    folder.write_manifest(manifest | change)
    with pytest.raises(StoreError, match=r"holds pairs of type|has slices of 0 pieces"):
        skipgrams.read_skipgrams(folder)


def test_build_skipgrams__of_words_without_neighbours_are_empty(client, encoded, tmp_path):
    actual = build_skipgrams(client, dealer_of(encoded, "sns", sample=1e-9), Store(str(tmp_path)), STRETCH)
    assert actual.pairs == actual.noise == 0 < actual.words
    assert [len(bucket.pairs) for bucket in read_buckets(actual.stored, 0, 0, 0)] == [0] * (P // GROUPS) ** 2


def test_read_buckets__that_is_gone_or_damaged_is_an_error(client, encoded, tmp_path):
    with pytest.raises(DamageError, match="is gone"):
        read_buckets(StoredPairs(Store(str(tmp_path / "gone")), ""), 0, 0, 0)
    actual = build_skipgrams(client, dealer_of(encoded, "tns"), Store(str(tmp_path / "pairs")), STRETCH)
    file = next((tmp_path / "pairs" / "0").glob("*/pairs"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamageError, match="is not what was written"):
        read_buckets(actual.stored, 0, GROUPS - 1, GROUPS - 1)
    file.unlink()
    with pytest.raises(DamageError, match="lacks its bytes"):
        read_buckets(actual.stored, 0, 0, 1)
