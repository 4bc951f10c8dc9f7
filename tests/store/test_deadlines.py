"""Stores that hang, as a dead network does: whatever the client asks of them is given up after `store_timeout`."""

import threading

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from daskw2v import Params, Resources, Vectors, train
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.errors import InputError, StoreError
from daskw2v.stages import Store, build_corpus, build_vocabulary

SHORT = 0.02
GIVEN_UP = rf"memory://\S* cannot be read or written: 5 tries failed, .*no answer for {SHORT:g} s"
NOT_FOUND = rf"memory://\S* cannot be searched \(TimeoutError: no answer for {SHORT:g} s\)"
PARAMS, RESOURCES = Params(min_count=1), Resources(store_timeout=SHORT)


@pytest.fixture
def hang(no_pauses, monkeypatch):
    """A function after which a question gets no answer until the test is over."""
    over = threading.Event()

    def stop(question):
        monkeypatch.setattr(MemoryFileSystem, question, lambda *args, **options: over.wait())

    yield stop
    over.set()


@pytest.fixture
def text():
    MemoryFileSystem().pipe_file("/deadlines/text.txt", b"one two\n" * 9)
    yield "memory://deadlines/*.txt"
    del MemoryFileSystem.store["/deadlines/text.txt"]


@pytest.mark.parametrize("question", ["isfile", "isdir", "exists", "glob", "info"])
def test_inputs__are_not_searched_for_ever(hang, text, question):
    hang(question)
    with pytest.raises(InputError, match=NOT_FOUND):
        find_sources(text, timeout=SHORT)


def test_corpus__is_given_up_in_time(hang, text, client, tmp_path):
    hang("glob")
    with pytest.raises(InputError, match=NOT_FOUND):
        build_corpus(text, Store(str(tmp_path)), PARAMS, RESOURCES, client)


def test_training__is_given_up_in_time(hang, text, client, tmp_path):
    hang("glob")
    with pytest.raises(InputError, match=NOT_FOUND):
        train(text, work=tmp_path, params=PARAMS, resources=RESOURCES, client=client)


def test_list_of_words__is_given_up_in_time(hang, text, client, tmp_path):
    store, listed = Store(str(tmp_path)), Params(vocabulary="memory://deadlines/text.txt")
    corpus = build_corpus(text, store, PARAMS, Resources(), client)
    hang("open")
    with pytest.raises(StoreError, match=GIVEN_UP):
        build_vocabulary(corpus, store, listed, RESOURCES, client)


@pytest.mark.parametrize("question", ["info", "open"])
def test_parquet__is_not_planned_for_ever(hang, text, question):
    pytest.importorskip("pyarrow")
    sources = find_sources(text, "parquet")
    hang(question)
    with pytest.raises(StoreError, match=GIVEN_UP):
        plan_blocks(sources, 1, timeout=SHORT)


def test_model__is_not_opened_for_ever(hang):
    hang("cat_file")
    with pytest.raises(StoreError, match=GIVEN_UP):
        Vectors.open("memory://deadlines/work", store_timeout=SHORT)
