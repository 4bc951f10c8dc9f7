"""What reservoirs keep: the pairs of smallest priority, whatever pieces they come in; and how rows are filled up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import Purpose, draws, mix, stream
from daskw2v.sampling.pairs import WindowSize
from daskw2v.sampling.reservoir import (
    NO_CONTEXT,
    PairSample,
    Reservoir,
    pack_entry,
    repeat_contexts,
    sample_pairs,
    unpack_entry,
)
from daskw2v.sampling.segments import Segment

KEY = stream(3, Purpose.MATRIX)
WORDS, SIZE = 7, 4


@kernel
def there_and_back(bits, context):
    entry = pack_entry(bits, context)
    return entry, unpack_entry(entry)


def entries_of(bits, contexts):
    """The definition, in NumPy: priority, then the context masked by bits of the priority."""
    priorities = bits >> np.uint64(32)
    masks = mix.py_func(priorities) & np.uint64(2**32 - 1)
    return priorities << np.uint64(32) | (contexts.astype(np.uint64) ^ masks)


def contexts_of(entries):
    """The other way round."""
    masks = mix.py_func(entries >> np.uint64(32)) & np.uint64(2**32 - 1)
    return ((entries & np.uint64(2**32 - 1)) ^ masks).astype(np.int32)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**31 - 1))
def test_entry__sorts_by_priority_and_gives_its_context_back(bits, context):
    entry, actual = there_and_back(np.uint64(bits), np.int32(context))
    assert entry >> 32 == bits >> 32
    assert actual == context
    assert entry == entries_of(np.array([bits], np.uint64), np.array([context]))[0]


def test_entry__of_equal_priorities_favours_no_context():
    bits = draws(KEY, np.arange(2000, dtype=np.uint64))
    first = entries_of(bits, np.full(2000, 1)) < entries_of(bits, np.full(2000, 6))
    assert stats.binomtest(int(first.sum()), 2000).pvalue > 0.01


@st.composite
def segments(draw):
    """Text with gaps in its positions, and a range of centers in it."""
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    tokens = draw(st.lists(st.integers(0, WORDS - 1), min_size=sum(lengths), max_size=sum(lengths)))
    gaps = draw(st.lists(st.integers(1, 4), min_size=sum(lengths), max_size=sum(lengths)))
    first, last = sorted(draw(st.tuples(st.integers(0, len(tokens) - 1), st.integers(0, len(tokens)))))
    bounds = np.cumsum([0, *lengths])
    return Segment(np.array(tokens, np.int32), np.cumsum(gaps) + 10**12, bounds), first, last


def pairs_of(segment, first, last, windows, keep):
    """Every kept pair by a plain loop: its word and its entry. Words beyond `keep` are always kept."""
    words, contexts, counters = [], [], []
    for begin, end in zip(segment.bounds[:-1], segment.bounds[1:], strict=True):
        for center in range(max(begin, first), min(end, last)):
            position = int(segment.positions[center])
            bits = int(draws(windows.key, np.array([position], np.uint64))[0])
            reach = windows.window - ((bits >> 32) * windows.window >> 32) * windows.shrink
            for i in range(max(begin, center - reach), min(end, center + reach + 1)):
                if i != center:
                    words.append(segment.tokens[center])
                    contexts.append(segment.tokens[i])
                    counters.append(position * (2 * windows.window + 1) + i - center + windows.window)
    contexts, bits = np.array(contexts, int), draws(KEY, np.array(counters, np.uint64))
    least = np.append(keep, np.full(WORDS, 2**32))[contexts]
    kept = (bits & np.uint64(2**32 - 1)) < least
    return np.array(words, int)[kept], entries_of(bits[kept], contexts[kept])


@given(
    segments(),
    st.integers(1, 12),
    st.booleans(),
    st.integers(1, 9),
    st.lists(st.integers(0, 2**32), max_size=WORDS),
)
def test_sample_pairs__equals_a_plain_loop(text, window, shrink, size, keep):
    windows, keep = WindowSize(window, shrink, np.uint64(11)), np.array(keep, np.uint64)
    actual = sample_pairs(*text, windows, KEY, WORDS, size, keep)
    words, entries = pairs_of(*text, windows, keep)
    assert actual.rows.tolist() == [[w, (words == w).sum()] for w in range(WORDS) if (words == w).any()]
    assert actual.rows.dtype == np.int32
    kept = np.split(actual.entries, np.cumsum(np.minimum(actual.rows[:, 1], size)))
    assert len(kept[-1]) == 0
    for (word, _), some in zip(actual.rows, kept[:-1], strict=True):
        np.testing.assert_array_equal(np.sort(some), np.sort(entries[words == word])[:size])


@given(st.lists(st.lists(st.integers(0, 40), max_size=12), min_size=1, max_size=8), st.integers(0, 100))
def test_reservoir__keeps_the_smallest_entries_of_all_pieces(pieces, first):
    """Three rows that all have the same pieces, shifted; few values, so that entries are equal now and then."""
    reservoir = Reservoir(first, 3, SIZE)
    for piece in pieces:
        entries = np.array(piece, np.uint64) << np.uint64(40)
        if len(entries):
            each = [np.sort(entries + np.uint64(row))[:SIZE][::-1] for row in (0, 2)]
            rows = np.array([[first, len(entries)], [first + 2, len(entries)]], np.int32)
            reservoir.add(PairSample(rows, np.concatenate(each)))
    contexts, seen = reservoir.contexts()
    total = sum(map(len, pieces))
    assert seen.tolist() == [total, 0, total]
    assert (contexts[1] == NO_CONTEXT).all()
    entries = np.sort(np.array([v for piece in pieces for v in piece], np.uint64) << np.uint64(40))[:SIZE]
    for row in (0, 2):
        expected = contexts_of(entries + np.uint64(row))
        np.testing.assert_array_equal(contexts[row], np.pad(expected, (0, SIZE - len(expected)), constant_values=-1))


@given(st.integers(0, 30), st.integers(1, 40), st.integers(0, 2**40))
def test_repeat_contexts__has_every_pair_once_in_each_stretch(seen, size, first):
    contexts = np.full((2, size), NO_CONTEXT, np.int32)
    held = min(seen, size)
    contexts[:, :held] = np.arange(100, 100 + held)
    before = contexts.copy()
    repeat_contexts(contexts, np.array([seen, 0]), first, KEY)
    np.testing.assert_array_equal(contexts[0, :held], before[0, :held])
    np.testing.assert_array_equal(contexts[1], before[1])
    for start in range(0, size if seen else 0, max(1, seen)):
        stretch = contexts[0, start : start + seen]
        assert len(set(stretch)) == len(stretch)
        assert set(stretch) <= set(range(100, 100 + held))


@pytest.mark.parametrize("column", [4, 7, 8])
def test_repeat_contexts__shuffles_anew(column):
    """Of 4 pairs in 9 columns: the first, the last and the only one of a stretch, over many rows."""
    contexts = np.full((8000, 9), NO_CONTEXT, np.int32)
    contexts[:, :4] = np.arange(4)
    repeat_contexts(contexts, np.full(8000, 4), 5, KEY)
    assert stats.chisquare(np.bincount(contexts[:, column])).pvalue > 0.01
    both = contexts[:, 4] * 4 + contexts[:, 8]  # one stretch says nothing of the next
    assert stats.chisquare(np.bincount(both)).pvalue > 0.01
