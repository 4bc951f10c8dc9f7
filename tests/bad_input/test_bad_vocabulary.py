"""Vocabularies of nothing or next to nothing, and lists of words that cannot be read."""

import gzip
import os
from functools import partial

import pytest

from daskw2v import Params, Resources, train
from daskw2v.errors import InputError, ParameterError, VocabularyError
from daskw2v.stages import build_corpus, build_vocabulary
from daskw2v.store.storage import Store
from daskw2v.vocabulary.word_lists import read_list

TEXT = "the cat sat on the mat\n" * 5 + "a dog\n"
ONE_THREAD = Resources(threads=1)


@pytest.fixture
def build(tmp_path, client):
    def build(text=TEXT, **params):
        (tmp_path / "text.txt").write_text(text)
        store, given = Store(str(tmp_path / "work")), Params(**params)
        corpus = build_corpus(tmp_path / "text.txt", store, given, ONE_THREAD, client)
        return build_vocabulary(corpus, store, given, ONE_THREAD, client)

    return build


def make_folder(path):
    path.mkdir()


def put(content):
    return lambda path: path.write_bytes(content)


BAD_LISTS = {  # name: how it is made, what is said
    "missing.txt": (lambda _: None, r"missing\.txt matches no file\. Check the path"),
    "folder": (make_folder, r"folder is a directory\. Give .*folder/\* for all files"),
    "pipe": (os.mkfifo, r"pipe is a pipe, a socket or a device.*Copy it to a file"),
    "empty.txt": (put(b""), r"The list of words .*empty\.txt is empty\. Give one word a line"),
    "blank.txt": (put(b"\n \t\r\n\n"), r"The list of words .*blank\.txt is empty\. Give one word a line"),
    "latin.txt": (put(b"\xe9t\xe9\n"), r"latin\.txt cannot be read \(.*0xe9.*Give UTF-8 text, one word a line"),
    "wide.txt": (put("the\n".encode("utf-16")), r"wide\.txt cannot be read \(.*Give UTF-8 text, one word a line"),
    "short.gz": (
        put(gzip.compress(b"the\n" * 99)[:-5]),
        r"short\.gz is cut short: its gzip data.*Write the file again",
    ),
    "plain.gz": (put(b"the\ncat, not packed\n"), r"plain\.gz has no valid gzip data.*Write the file again"),
    "words.zip": (put(b"PK"), r"words\.zip is packed as \.zip.*Unpack it"),
}


@pytest.mark.parametrize("name", BAD_LISTS)
def test_list__that_cannot_be_read_is_told_with_the_reason(build, tmp_path, name):
    make, message = BAD_LISTS[name]
    make(tmp_path / name)
    with pytest.raises(InputError, match=message):
        build(vocabulary=str(tmp_path / name))


def test_list__with_a_secret_in_its_url_is_refused_without_showing_it(build):
    with pytest.raises(ParameterError, match=r"holds a secret.*storage_options") as caught:
        build(vocabulary="https://me:hunter2@host/words.txt")
    assert "hunter2" not in str(caught.value)


def test_list__of_words_that_do_not_occur_is_refused(build, tmp_path):
    (tmp_path / "words").write_text("unicorn\nThe\n")
    with pytest.raises(VocabularyError, match=r"None of the 2 words of the list occurs.*spelling and case"):
        build(vocabulary=str(tmp_path / "words"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_list__takes_twins_blanks_other_line_ends_and_what_is_missing(build, tmp_path, pack):
    path = tmp_path / ("words.gz" if pack is gzip.compress else "words")
    path.write_bytes(pack("\ufeffdog\r\nthe\n\n  the \nnew york\nnul\0nul\ncat".encode()))
    vocabulary = build(vocabulary=str(path), min_count=99)
    assert vocabulary.load().words == ["the", "cat", "dog"]
    assert (vocabulary.missing, vocabulary.missing_words) == (2, ("new york", "nul\0nul"))


FORMS = {  # content, words, and what is said
    "the\t10\nnew york\t3\n": (["the", "new york"], "a word, a tab and its count"),
    "word\tcount\nthe\t10\n": (["the"], "a word, a tab and its count"),
    "the 10\n\nnew york 3.5\n": (["the", "new york"], "a word, a blank and its count"),
    "the,10\na,2\n": (["the", "a"], "CSV of words and their counts"),
    '\ufeff"word","count"\r\n"the",10\r\n"a ""b"", c",2e3\r\n': (["the", 'a "b", c'], "CSV of words and their counts"),
    "the 10\rfox 3\r": (["the", "fox"], "a word, a blank and its count"),
    "windows 95\n": (["windows 95"], None),
    "10\n12\n": (["10", "12"], None),
    "the\nwindows 95\nroute 66\n": (["the", "windows 95", "route 66"], None),
    "1,000\nfox\n": (["1,000", "fox"], None),
}


@pytest.mark.parametrize("content", FORMS)
def test_list__of_words_with_their_counts_is_read_and_its_form_is_said(tmp_path, content):
    words, form = FORMS[content]
    (tmp_path / "words").write_text(content)
    said = []
    assert read_list(str(tmp_path / "words"), ONE_THREAD, report=said.append) == words
    assert said == ([f"{tmp_path}/words is read as {form}, which is left out."] if form else [])


def test_list__with_counts_in_its_first_lines_alone_is_refused(tmp_path):
    (tmp_path / "words").write_text("the 10\n" * 20_000 + "windows\n")
    with pytest.raises(
        InputError, match=r"'windows' of .*words is no line of a word, a blank and its count, as the first"
    ):
        read_list(str(tmp_path / "words"), ONE_THREAD)


@pytest.mark.parametrize("field", ["vocabulary", "frozen_words"])
def test_list__says_its_form_in_a_run(tmp_path, client, field):
    (tmp_path / "words").write_text("the\t10\ncat\t3\n")
    (tmp_path / "text.txt").write_text("the cat sat\n" * 9)
    said, rules = [], {"sample": 0, "vector_size": 4, "epochs": 1, "min_count": 1}
    run = partial(train, tmp_path / "text.txt", resources=ONE_THREAD, client=client)
    base = run(work=tmp_path / "base", params=Params(**rules), listener=None)
    given = {field: str(tmp_path / "words"), **({"base_vectors": base} if field == "frozen_words" else {})}
    run(
        work=tmp_path / "work", params=Params(**rules, **given), listener=lambda progress: said.append(progress.message)
    )
    assert any("is read as a word, a tab and its count" in message for message in said)


@pytest.mark.parametrize(("min_count", "most"), [(11, 10), (2**62, 10)])
def test_min_count__that_leaves_no_word_is_refused_with_the_largest_count(build, min_count, most):
    message = (
        rf"No word occurs min_count={min_count} times; the most frequent one occurs {most} times\. Lower min_count"
    )
    with pytest.raises(VocabularyError, match=message):
        build(min_count=min_count)


@pytest.mark.parametrize("limit", [1, 2, 10**12])
def test_max_final_vocab__keeps_the_most_frequent_down_to_one(build, limit):
    words = ["the", "cat", "mat", "on", "sat", "a", "dog"]
    assert build(min_count=1, max_final_vocab=limit).load().words == words[:limit]


def test_one_word__is_too_few_for_several_partitions(tmp_path, client):
    (tmp_path / "text.txt").write_text("word " * 50)
    params = Params(strategy="rotation", min_count=1, vector_size=4)
    with pytest.raises(ParameterError, match=r"8 partitions of 1 word: each needs a word\. Give n_partitions from 1"):
        train(tmp_path / "text.txt", work=tmp_path / "work", params=params, resources=ONE_THREAD, client=client)
