"""Phrases of a text in any cut: those of gensim, joined where the plain reference joins them."""

import gzip
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.pieces import ReadReport
from daskw2v.phrases import bigrams, tasks
from daskw2v.phrases.build import build_phrases, pieces_of
from daskw2v.phrases.reference import count_bigrams, join_phrases
from daskw2v.phrases.score import BigramTotals
from daskw2v.phrases.settings import PhraseDetection
from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.shards.encode import build_corpus
from daskw2v.shards.layout import Corpus, Shard, open_codes, read_starts, read_word_indices, read_words, write_shard
from daskw2v.store.arrays import read_array
from daskw2v.store.storage import Store

GensimPhrases = pytest.importorskip("gensim.models.phrases").Phrases

PARAMS = Params(phrases=1, phrase_min_count=1, phrase_threshold=1e-9)


def words_of(store, shard):
    data, offsets, counts = read_words(store, shard.path, 0, shard.n_types)
    types = [data[a:b].tobytes().decode() for a, b in pairwise(offsets)]
    words = [types[index] for index in read_word_indices(store, shard.path)[open_codes(store, shard)[:]]]
    assert {word: words.count(word) for word in types} == dict(zip(types, counts.tolist(), strict=True))
    return words


def sentences_of(store, corpus):
    """The corpus as sentences of words, from all that is stored of it."""
    words = [word for shard in corpus.shards for word in words_of(store, shard)]
    origins = corpus.bounds.tolist()
    starts = [o + s for o, shard in zip(origins, corpus.shards, strict=False) for s in read_starts(store, shard)]
    assert len(words) == corpus.n_tokens
    return [words[a:b] for a, b in pairwise([*starts, len(words)])]


def phrases_of(store, corpus, number=-1):
    """The phrases of a pass with their scores, from what is stored."""
    found = {}
    for piece in pieces_of(corpus.passes[number]):
        group = (store / piece).open_group()
        data, offsets = read_array(group, "words"), read_array(group, "offsets")
        words = [data[a:b].tobytes().decode() for a, b in pairwise(offsets)]
        found |= zip(zip(words[::2], words[1::2], strict=True), read_array(group, "scores").tolist(), strict=True)
    return found


def by_reference(sentences, params):
    """Each pass' phrases, and what is left of the sentences."""
    rules, passes = PhraseDetection.of(params).rules, []
    for _ in range(params.phrases.passes):
        words, pairs = count_bigrams(sentences)
        totals = BigramTotals(words.total(), len(words) + len(pairs))
        phrases = {}
        for (left, right), n in pairs.items():
            counts = (np.array([number]) for number in (n, words[left], words[right]))
            chosen, scores = rules.choose(*counts, totals)
            if n >= rules.min_count and chosen[0]:
                phrases[left, right] = scores[0]
        sentences = [join_phrases(sentence, phrases, rules.delimiter) for sentence in sentences]
        passes.append(phrases)
    return passes, sentences


def by_gensim(sentences, params):
    rules = PhraseDetection.of(params).rules
    model = GensimPhrases(
        sentences,
        min_count=rules.min_count,
        threshold=rules.threshold,
        scoring=rules.scoring,
        delimiter=rules.delimiter,
    )
    return model, [model[sentence] for sentence in sentences]


def build_from(text, folder, client, params=PARAMS, resources=None):
    path = folder / "text.txt"
    if not path.exists():
        path.write_text(text)
    store, resources = Store(str(folder / "work")), resources or Resources()
    corpus = build_corpus(str(path), store, params, resources, client)
    return store, build_phrases(corpus, store, params, resources, client)


def corpus_of(store, sentences, cuts):
    """A corpus whose shards begin anywhere, inside of sentences too."""
    words = [word for sentence in sentences for word in sentence]
    starts = np.cumsum([0, *map(len, sentences)])[:-1]
    shards = []
    for i, (a, b) in enumerate(pairwise([0, *sorted({cut % len(words) for cut in cuts} - {0}), len(words)])):
        dictionary, offsets = Dictionary(), np.cumsum([0, *(len(word.encode()) for word in words[a:b])])
        codes = dictionary.encode(padded("".join(words[a:b]).encode()), offsets[:-1], offsets[1:])
        begun = starts[(starts >= a) & (starts < b)] - a
        shards.append(Shard(f"shards/{i}", **write_shard(store / f"shards/{i}", [codes], begun, dictionary)))
    corpus = Corpus("0" * 20, tuple(shards), (), ReadReport())
    corpus.save(store)
    return corpus


SENTENCES = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "a_b", "Ü" * 9]), min_size=1, max_size=30), min_size=1, max_size=8
)
SCORINGS = st.sampled_from([("default", 1e-9), ("default", 0.4), ("npmi", -0.2), ("npmi", 0.3)])


@pytest.mark.slow
@settings(max_examples=10)
@given(
    SENTENCES,
    st.lists(st.integers(1, 200), max_size=10),
    st.integers(1, 3),
    SCORINGS,
    st.integers(1, 2),
    st.sampled_from([15, 40, 1000]),
    st.integers(1, 9),
    st.integers(1, 4),
)
@example([["a", "b"] * 9, ["b", "a", "b"]], [1, 2, 3, 7, 8, 17, 18, 20], 1, ("default", 1e-9), 2, 5, 1, 1)
def test_build_phrases__does_not_depend_on_where_shards_begin(
    tmp_path_factory, client, sentences, cuts, min_count, scoring, passes, bucket_words, piece, look
):
    store, (name, threshold) = Store(str(tmp_path_factory.mktemp("work"))), scoring
    params = Params(phrases=passes, phrase_min_count=min_count, phrase_scoring=name, phrase_threshold=threshold)
    corpus = corpus_of(store, sentences, cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bigrams, "BUCKET_WORDS", bucket_words)
        for constant, value in (("PIECE", piece), ("LOOK_BACK", look), ("CHUNK_WORDS", look)):
            patch.setattr(tasks, constant, value)
        joined = build_phrases(corpus, store, params, Resources(), client)
    expected, left = by_reference(sentences, params)
    assert [phrases_of(store, joined, i) for i in range(passes)] == expected
    assert [found.n_phrases for found in joined.passes] == [len(phrases) for phrases in expected]
    assert sentences_of(store, joined) == left
    assert joined == Corpus.load(store, joined.name)
    assert (store / "phrases").children() == sorted({found.path.split("/")[1] for found in joined.passes})


TEXT = "new york is new\nnew york a city of new york\n1 2 1 2 3 4 1 2\n" * 3 + "in a new city\n"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["ten files", "gz", "integers in Parquet", "small blocks"])
def test_build_phrases__are_the_same_whatever_holds_the_text(tmp_path, client, form):
    lines = [line.split() for line in TEXT.splitlines()]
    if form == "integers in Parquet":
        numbers = {word: i for i, word in enumerate(dict.fromkeys(word for line in lines for word in line))}
        lines = [[str(numbers[word]) for word in line] for line in lines]
        table = pa.table({"text": [[int(word) for word in line] for line in lines]})
        pq.write_table(table, tmp_path / "text.parquet", row_group_size=4)
    elif form == "gz":
        (tmp_path / "text.gz").write_bytes(gzip.compress(TEXT.encode()))
    elif form == "ten files":
        for i, line in enumerate(lines):
            (tmp_path / f"text{i}").write_text(" ".join(line))
    else:
        (tmp_path / "text").write_text(TEXT)
    store, resources = Store(str(tmp_path / "work")), Resources(block_size=60 if form == "small blocks" else "64 MiB")
    corpus = build_corpus(str(tmp_path / "text*"), store, PARAMS, resources, client)
    joined = build_phrases(corpus, store, PARAMS, resources, client)
    (expected,), left = by_reference(lines, PARAMS)
    assert expected
    assert phrases_of(store, joined) == expected
    assert sentences_of(store, joined) == left


@pytest.mark.slow
@settings(max_examples=6)
@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=30), min_size=1, max_size=12),
    SCORINGS,
    st.integers(1, 3),
)
def test_build_phrases__are_gensims(tmp_path_factory, client, sentences, scoring, min_count):
    params = Params(
        phrases=1, phrase_min_count=min_count, phrase_scoring=scoring[0], phrase_threshold=max(1e-9, scoring[1])
    )
    store = Store(str(tmp_path_factory.mktemp("work")))
    joined = build_phrases(corpus_of(store, sentences, [7, 20]), store, params, Resources(), client)
    model, left = by_gensim(sentences, params)
    assert sentences_of(store, joined) == left
    found = {"_".join(phrase): score for phrase, score in phrases_of(store, joined).items()}
    assert model.export_phrases() == found
