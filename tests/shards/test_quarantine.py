"""Blocks that cannot be read or kill their workers: left out if they may be, and named."""

import gzip
import textwrap
from contextlib import contextmanager

import dask
import numpy as np
import pytest

from daskw2v import Params, Resources, train
from daskw2v.cluster import connecting
from daskw2v.cluster.connecting import connect
from daskw2v.config.tokenizers import tokenizer_name
from daskw2v.errors import InputError, TrainingError
from daskw2v.progress import silent
from daskw2v.shards import encode
from daskw2v.stages import build_corpus
from daskw2v.store.storage import Store
from daskw2v.training.preparation import request

PARAMS = Params(vector_size=5, min_count=1, epochs=1, sample=1.0)
ONE_THREAD = Resources(threads=1)
POISON = """
import os, time

def tokenize(lines):
    if any("poison" in line for line in lines):
        time.sleep(0.2)  # others are on this worker too by now
        os._exit(1)
    return [line.split() for line in lines]
"""


@pytest.fixture
def texts(tmp_path):
    """Five files; the second is cut short."""
    rng, files = np.random.default_rng(0), []
    for number in range(5):
        lines = "".join(" ".join(f"w{w}" for w in rng.zipf(1.5, 8) % 30) + "\n" for _ in range(100))
        files.append(tmp_path / f"{number}.txt.gz")
        files[-1].write_bytes(gzip.compress(lines.encode()))
    files[1].write_bytes(files[1].read_bytes()[:-20])
    return files


def test_bad_block__stops_where_none_is_allowed(client, texts, tmp_path):
    with pytest.raises(InputError, match=r"1\.txt\.gz .*cut short"):
        build_corpus(texts, Store(str(tmp_path / "work")), PARAMS, ONE_THREAD, client)


def test_bad_block__is_left_out_where_it_may_be(client, texts, tmp_path):
    messages = []
    vectors = train(
        texts,
        work=tmp_path / "work",
        params=PARAMS.replace(max_bad_blocks=1),
        resources=ONE_THREAD,
        client=client,
        listener=lambda progress: messages.append(progress.message),
    )
    good = train(texts[:1] + texts[2:], work=tmp_path / "good", params=PARAMS, resources=ONE_THREAD, client=client)
    np.testing.assert_array_equal(vectors.vectors, good.vectors)
    (bad,) = vectors.metadata["corpus"]["bad_blocks"]
    assert bad["url"].endswith("1.txt.gz")
    assert "cut short" in bad["problem"]
    assert any("1 bad block of at most 1 left out" in message for message in messages)


def test_bad_block__stays_left_out_and_is_another_experiment(client, texts, tmp_path):
    store, params = Store(str(tmp_path)), PARAMS.replace(max_bad_blocks=2)
    corpus = build_corpus(texts, store, params, ONE_THREAD, client)
    assert build_corpus(texts, store, params, ONE_THREAD, client) == corpus
    assert len(corpus.bad_blocks) == 1
    assert corpus.identity != corpus.asked
    with pytest.raises(InputError, match="cut short"):
        build_corpus(texts, store, PARAMS, ONE_THREAD, client)


def test_bad_block__beyond_those_allowed_stops(client, texts, tmp_path):
    texts[3].write_bytes(texts[3].read_bytes()[:30])
    with pytest.raises(InputError, match="cut short"):
        build_corpus(texts, Store(str(tmp_path / "work")), PARAMS.replace(max_bad_blocks=1), ONE_THREAD, client)
    corpus = build_corpus(texts, Store(str(tmp_path / "work")), PARAMS.replace(max_bad_blocks=2), ONE_THREAD, client)
    assert [block.url[-8:] for block in corpus.bad_blocks] == ["1.txt.gz", "3.txt.gz"]


def test_block_that_kills__kills_another_process_where_it_may_be_left_out(client, tmp_path, monkeypatch):
    asked = []

    @contextmanager
    def connect(resources, _):
        asked.append(resources.processes)
        yield client

    monkeypatch.setattr(connecting, "connect", connect)
    for max_bad_blocks, processes in ((0, None), (2, None), (2, False)):
        params, resources = PARAMS.replace(max_bad_blocks=max_bad_blocks), ONE_THREAD.replace(processes=processes)
        with request.open_cluster(None, Store(str(tmp_path)), params, resources, silent):
            pass
    assert asked == [None, True, False]


def test_block_that_kills__is_left_out_if_it_does_so_alone(client, texts, tmp_path, monkeypatch):
    """As below, without processes that die: one block always kills, and one is once beside it."""
    encode_batch, blamed = encode.encode_batch, []

    def dying(batch, *args, **rules):
        names = [block.source.url[-8:] for block in batch.blocks]
        beside = names == ["4.txt.gz"] and not blamed
        if beside:
            blamed.extend(names)
        if beside or "3.txt.gz" in names:
            raise TrainingError(f"encode {names} died with its worker, several times.", "Look at it.")
        return encode_batch(batch, *args, **rules)

    monkeypatch.setattr(encode, "encode_batch", dying)
    with pytest.raises(TrainingError, match="died with its worker"):
        build_corpus(texts, Store(str(tmp_path / "work")), PARAMS, ONE_THREAD, client)
    blamed.clear()  # two threads: the other block may have been read beside it
    corpus = build_corpus(texts, Store(str(tmp_path / "w")), PARAMS.replace(max_bad_blocks=2), ONE_THREAD, client)
    assert [block.url[-8:] for block in corpus.bad_blocks] == ["1.txt.gz", "3.txt.gz"]
    assert corpus.n_tokens == 3 * 100 * 8
    assert blamed == ["4.txt.gz"]


@pytest.mark.slow
def test_block_that_kills__is_told_from_those_beside_it(tmp_path, monkeypatch):
    (tmp_path / "poisonous.py").write_text(textwrap.dedent(POISON))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for number in range(6):
        (tmp_path / f"{number}.txt").write_text(("poison " if number == 3 else "") + "some words of a text\n" * 5)
    files, tokenizer = str(tmp_path / "*.txt"), "poisonous:tokenize"
    assert tokenizer_name(tokenizer) == tokenizer
    params = PARAMS.replace(tokenizer=tokenizer)
    # A death takes seconds; and only processes that are started anew find the tokenizer
    method = {"distributed.worker.multiprocessing-method": "spawn"}
    once = dask.config.set({"distributed.scheduler.allowed-failures": 1, **method})
    with once, connect(Resources(workers=2, threads=2)) as client:
        with pytest.raises(TrainingError, match=r"encode .* died with its worker, several times"):
            build_corpus(files, Store(str(tmp_path / "work")), params, ONE_THREAD, client)
        corpus = build_corpus(files, Store(str(tmp_path / "w")), params.replace(max_bad_blocks=1), ONE_THREAD, client)
    assert [block.url[-5:] for block in corpus.bad_blocks] == ["3.txt"]
    assert corpus.n_tokens == 5 * 25
