"""The ids of a text as a Dask array: those of its words, shard by shard."""

from dataclasses import replace

import numpy as np
import pytest

from daskw2v import Params, Resources
from daskw2v.errors import ParameterError
from daskw2v.stages import Store, build_corpus, build_vocabulary, corpus_ids

LINES = [f"the cat{i % 7} sat on rare{i}" for i in range(1200)]


def build(client, folder, lines=LINES, **params):
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    store, resources = Store(str(folder / "work")), Resources(block_size=4096)
    params = Params(min_count=2, **params)
    corpus = build_corpus(str(folder / "text.txt"), store, params, resources, client)
    return corpus, build_vocabulary(corpus, store, params, resources, client)


def expected_ids(vocabulary, lines=LINES):
    words = vocabulary.load()
    ids = (words.find(word) for line in lines for word in line.split())
    return [-1 if number is None else number for number in ids]


def test_corpus_ids__are_those_of_the_text(client, tmp_path):
    corpus, vocabulary = build(client, tmp_path)
    ids = corpus_ids(corpus, vocabulary)
    assert len(corpus.shards) > 1
    assert ids.chunks == (tuple(shard.n_tokens for shard in corpus.shards),)
    assert (ids.dtype, ids.shape) == (np.int32, (6000,))
    assert ids.compute().dtype == np.int32
    assert ids.compute().tolist() == expected_ids(vocabulary)
    assert (ids.compute() == -1).sum() == 1200
    assert ids[700:703].compute().tolist() == expected_ids(vocabulary)[700:703]


def test_corpus_ids__are_read_by_workers(client, two_processes, tmp_path):
    corpus, vocabulary = build(client, tmp_path)
    assert two_processes.compute(corpus_ids(corpus, vocabulary)).result().tolist() == expected_ids(vocabulary)


def test_corpus_ids__of_a_part_of_a_shard(client, tmp_path):
    corpus, vocabulary = build(client, tmp_path)
    part = replace(corpus.shards[1], first=10, n_tokens=20)
    start = int(corpus.bounds[1]) + 10
    ids = corpus_ids(replace(corpus, shards=(part,)), vocabulary)
    assert ids.compute().tolist() == expected_ids(vocabulary)[start : start + 20]


def test_corpus_ids__refuses_the_vocabulary_of_another_text(client, tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
    corpus, _ = build(client, tmp_path / "a")
    _, vocabulary = build(client, tmp_path / "b", LINES[:20] * 2)
    with pytest.raises(ParameterError, match=r"knows no shard .*\. Give what build_vocabulary made of the corpus"):
        corpus_ids(corpus, vocabulary)
