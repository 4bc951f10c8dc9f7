"""Text that is in no file gives the vectors of the same text in a file."""

import shutil
import tracemalloc

import dask
import dask.bag
import numpy as np
import pytest

from daskw2v import Params, Resources, retrain, train
from daskw2v.collections import parts as module
from daskw2v.collections.parts import find_texts, tables_of
from daskw2v.errors import ClusterError, InputError, ParameterError
from daskw2v.progress import silent
from daskw2v.retraining.outcome import Outcome
from daskw2v.store.storage import Store

PARAMS = Params(vector_size=5, min_count=1, epochs=1, sample=1.0)
ONE_THREAD = Resources(threads=1)
RNG = np.random.default_rng(0)
TOKENS = [[f"w{word}" for word in RNG.zipf(1.5, RNG.integers(1, 9)) % 30] for _ in range(300)]
SENTENCES = [" ".join(tokens) for tokens in TOKENS]
ROWS = slice(0, 100), slice(100, 101), slice(101, 300)


@pytest.fixture(scope="module")
def expected(client, tmp_path_factory):
    """The vectors of the text in a file."""
    folder = tmp_path_factory.mktemp("file")
    (folder / "text.txt").write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    return trained(folder / "text.txt", folder / "work", client)


def trained(inputs, work, client, **changes):
    resources = ONE_THREAD.replace(**changes)
    return train(inputs, work=work, params=PARAMS, resources=resources, client=client, listener=None)


def pandas():
    return pytest.importorskip("pandas", reason="it comes with daskw2v[dev]")


def frame(column="text"):
    return pandas().DataFrame({"number": range(len(SENTENCES)), column: SENTENCES})


def dask_frame():
    return pytest.importorskip("dask.dataframe").from_pandas(frame(), npartitions=3)


def polars():
    return pytest.importorskip("polars", reason="it is no part of daskw2v's extras")


def arrow():
    pytest.importorskip("pyarrow.parquet", reason="it comes with daskw2v[arrow]")
    return pytest.importorskip("pyarrow")


def datasets():
    return pytest.importorskip("datasets", reason="it is no part of daskw2v's extras")


@dask.delayed
def load(rows, values):
    return values[rows]


def strings():
    yield from SENTENCES


class Twice:
    """What can be read again and again, as gensim asks for."""

    def __iter__(self):
        return iter(TOKENS)


HERE = {
    "a generator": strings,
    "lists of tokens": lambda: TOKENS,
    "tuples in a tuple": lambda: tuple(map(tuple, TOKENS)),
    "records": lambda: ({"text": sentence, "other": 1} for sentence in SENTENCES),
    "records of tokens": lambda: ({"text": tokens} for tokens in TOKENS),
    "an iterable": Twice,
    "pandas": frame,
    "pandas, a column": lambda: frame()["text"],
    "pandas, categories": lambda: frame()["text"].astype("category"),
    "pandas, lists": lambda: pandas().DataFrame({"text": TOKENS}),
    "pandas, several": lambda: [frame()[rows] for rows in ROWS],
    "polars": lambda: polars().DataFrame({"text": SENTENCES}),
    "polars, lists": lambda: polars().Series(TOKENS),
    "Arrow": lambda: arrow().table({"text": arrow().chunked_array([SENTENCES[rows] for rows in ROWS])}),
    "Arrow, a batch": lambda: arrow().record_batch({"text": TOKENS}),
    "Arrow, a column": lambda: arrow().array(SENTENCES, arrow().string_view()),
    "a dataset": lambda: datasets().Dataset.from_dict({"text": SENTENCES}),
    "a dataset, in another order": lambda: (
        datasets().Dataset.from_dict({"text": SENTENCES[::-1]}).select(range(len(SENTENCES) - 1, -1, -1))
    ),
    "a dataset, as a stream": lambda: datasets().Dataset.from_dict({"text": TOKENS}).to_iterable_dataset(),
}
THERE = {
    "a bag": lambda _: dask.bag.from_sequence(SENTENCES, npartitions=7),
    "a bag, split": lambda _: dask.bag.from_sequence(SENTENCES, npartitions=3).map(str.split),
    "a bag of records": lambda _: dask.bag.from_sequence(SENTENCES, npartitions=3).map(lambda text: {"text": text}),
    "Delayed": lambda _: load(slice(None), SENTENCES),
    "several Delayed": lambda _: [load(rows, SENTENCES) for rows in ROWS],
    "Delayed tables": lambda _: [load(rows, frame()) for rows in ROWS],
    "futures": lambda client: client.map(lambda rows: TOKENS[rows], ROWS),
    "Dask's DataFrame": lambda _: dask_frame(),
    "Dask's Series": lambda _: dask_frame()["text"],
    "Dask's Series, split": lambda _: dask_frame()["text"].map_partitions(lambda part: part.str.split()),
}


def check_same(vectors, expected):
    assert vectors.vocabulary.words == expected.vocabulary.words
    np.testing.assert_array_equal(vectors.vectors, expected.vectors)


def texts_of(inputs, work, client):
    """Return the text that is written of inputs."""
    store = Store(str(work))
    sources = find_texts(inputs, store, PARAMS, ONE_THREAD, lambda: client, silent)
    return [text for source in sources for text in arrow().parquet.read_table(source.url)["text"].to_pylist()]


@pytest.mark.parametrize("make", HERE.values(), ids=HERE)
def test_find_texts__writes_text_that_is_here(tmp_path, make):
    assert texts_of(make(), tmp_path, None) in (SENTENCES, TOKENS)


def test_find_texts__tells_how_many_files_an_iterable_has(tmp_path):
    reports = []
    find_texts(strings(), Store(str(tmp_path)), PARAMS, ONE_THREAD, lambda: None, reports.append)
    assert [(report.stage, report.message) for report in reports] == [("collect", "1 file written")]


@pytest.mark.parametrize("make", THERE.values(), ids=THERE)
def test_find_texts__lets_workers_write_what_they_compute(two_processes, tmp_path, make):
    assert texts_of(make(two_processes), tmp_path, two_processes) in (SENTENCES, TOKENS)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["a generator", "lists of tokens", "pandas"])
def test_train__takes_text_that_is_here(client, expected, tmp_path, name):
    check_same(trained(HERE[name](), tmp_path, client), expected)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["a bag", "Delayed tables", "Dask's Series, split"])
def test_train__takes_text_that_workers_compute(two_processes, expected, tmp_path, name):
    check_same(trained(THERE[name](two_processes), tmp_path, two_processes), expected)


@pytest.mark.slow
def test_tables_of__hold_little_of_an_iterable():
    arrow()
    words = [f"word{i}" for i in range(100)]
    lines = (words[i % 90 : i % 90 + 10] for i in range(400_000))  # 24 MB of tokens, 250 MB as Python's
    next(iter(tables_of([words], "text")))  # what is imported
    tracemalloc.start()
    parts = [len(table) for table in tables_of(lines, "text")]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (sum(parts), peak < 10 << 20) == (400_000, True)


def test_tables_of__are_cut_between_sentences(monkeypatch):
    arrow()
    monkeypatch.setattr(module, "TABLE_BYTES", 1000)
    whole = list(tables_of(frame(), "text"))
    monkeypatch.setattr(module, "BATCH", 100)
    streamed = list(tables_of(strings(), "text"))
    assert min(len(whole), len(streamed)) > 3
    for parts in (whole, streamed):
        assert [text for part in parts for text in part["text"].to_pylist()] == SENTENCES
        assert all(part.nbytes < 2000 for part in parts)


def test_train__goes_on_where_the_same_text_was_left(client, tmp_path):
    first = trained(strings(), tmp_path, client)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "inputs").iterdir()}
    assert len(files) == 1
    same = dask.bag.from_sequence(SENTENCES, npartitions=1)
    assert trained(same, tmp_path, client).url == first.url
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "inputs").iterdir()} == files


def test_train__removes_text_that_need_not_be_kept(client, expected, tmp_path):
    first = trained(TOKENS, tmp_path, client, keep_inputs=False)
    check_same(first, expected)
    assert list((tmp_path / "inputs").iterdir()) == []
    assert trained(iter(TOKENS), tmp_path, client, keep_inputs=False).url == first.url


def test_train__deletes_no_files_that_are_named(client, tmp_path):
    (tmp_path / "text.txt").write_text("a b\nb a\n")
    with pytest.raises(ParameterError, match="keep_inputs=False changes nothing for files; it is for collections"):
        trained(tmp_path / "text.txt", tmp_path / "work", client, keep_inputs=False)
    assert (tmp_path / "text.txt").exists()


def test_train__knows_its_text_where_the_work_directory_has_moved(client, tmp_path):
    first = trained(iter(SENTENCES), tmp_path / "here", client)
    (tmp_path / "here").rename(tmp_path / "there")
    again = trained(iter(SENTENCES), tmp_path / "there", client)
    assert again.url.rpartition("/")[2] == first.url.rpartition("/")[2]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("length", [0, 3, -1])
def test_train__writes_again_what_was_cut_short(client, expected, tmp_path, length):
    trained(iter(SENTENCES), tmp_path / "work", client)
    (file,) = (tmp_path / "work" / "inputs").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:length])
    shutil.rmtree(tmp_path / "work" / "corpora")
    check_same(trained(iter(SENTENCES), tmp_path / "work", client), expected)
    assert file.read_bytes() == content


def test_train__finds_bytes_that_were_changed(client, tmp_path):
    trained(iter(SENTENCES), tmp_path, client)
    (file,) = (tmp_path / "inputs").iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    for folder in ("corpora", "shards"):
        shutil.rmtree(tmp_path / folder)
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        trained(iter(SENTENCES), tmp_path, client)
    file.unlink()
    trained(iter(SENTENCES), tmp_path, client)


@dask.delayed
def once(values):
    return iter(values)


def test_train__refuses_partitions_that_can_be_read_only_once(two_processes, tmp_path):
    held = two_processes.persist(dask.bag.from_sequence(SENTENCES).map_partitions(iter))
    for inputs in ([once(SENTENCES), once(TOKENS)], two_processes.submit(iter, SENTENCES), held):
        with pytest.raises(InputError, match=r"A partition is a \w+, which can be read only once"):
            texts_of(inputs, tmp_path, two_processes)


def test_find_texts__makes_lazy_partitions_anew_where_reading_failed(two_processes, tmp_path):
    def failing(part):
        for number, text in enumerate(part):
            if number == 50 and not (tmp_path / "failed").exists():
                (tmp_path / "failed").touch()
                raise OSError("connection reset")
            yield text

    bag = dask.bag.from_sequence(SENTENCES, npartitions=2).map_partitions(failing)
    assert texts_of(bag, tmp_path / "work", two_processes) == SENTENCES


def test_find_texts__refuses_futures_that_were_cancelled(two_processes, tmp_path):
    future = two_processes.submit(list, SENTENCES)
    future.cancel()
    with pytest.raises(ClusterError, match=r"^'list-\w+' was cancelled"):
        texts_of(future, tmp_path, two_processes)


@pytest.mark.parametrize("label", ["type", "columns", "to_arrow", "column_names", "chunks"])
def test_find_texts__takes_a_table_whose_labels_are_names_of_methods(tmp_path, label):
    series = pandas().Series(["a b", "c d"], index=[label, "x"])
    table = pandas().DataFrame({"text": ["a b", "c d"], label: [1, 2]}, index=[label, "y"])
    for inputs in (series, table):
        assert texts_of(inputs, tmp_path, None) == ["a b", "c d"]


def test_train__tells_what_a_partition_raised(client, tmp_path):
    bag = dask.bag.from_sequence(SENTENCES, npartitions=3).map(lambda text: text.nothing)
    with pytest.raises(AttributeError, match="nothing"):
        trained(bag, tmp_path, client)


def test_train__goes_on_after_a_partition_failed(client, expected, tmp_path):
    def fail_at_last(text):
        if text == SENTENCES[-1] and not (tmp_path / "mended").exists():
            raise OSError("not yet")
        return text

    bag = dask.bag.from_sequence(SENTENCES, npartitions=3).map(fail_at_last)
    with pytest.raises(OSError, match="not yet"):
        trained(bag, tmp_path / "work", client)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "work" / "inputs").glob("*.parquet")}
    (tmp_path / "mended").touch()
    check_same(trained(bag, tmp_path / "work", client), expected)
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert len(list((tmp_path / "work" / "inputs").glob("*.parquet"))) == 3 > len(files)


@pytest.mark.slow
def test_retrain__reads_the_new_tables(client, tmp_path):
    days = [frame()[rows] for rows in ROWS]
    found = [
        retrain(days[:n], work=tmp_path, params=PARAMS, resources=ONE_THREAD, client=client, listener=None)
        for n in (2, 2, 3)
    ]
    assert [summary.outcome for summary in found] == [Outcome.PUBLISHED, Outcome.NOTHING_NEW, Outcome.PUBLISHED]
    assert (found[-1].figures["files_new"], found[-1].figures["files_gone"]) == (1, 0)


@pytest.mark.slow
def test_retrain__deletes_text_that_is_in_no_kept_version(client, tmp_path):
    days = [TOKENS[:100], TOKENS[100:200], TOKENS[200:]]
    tables, found = [pandas().DataFrame({"text": day}) for day in days], []
    for given in (tables[:1], tables[1:2], tables[2:]):
        done = retrain(given, work=tmp_path, params=PARAMS, resources=ONE_THREAD, client=client, listener=None)
        assert done.outcome is Outcome.PUBLISHED
        found.append({path.name for path in (tmp_path / "inputs").iterdir()})
    first, second, third = found
    assert (len(first), len(second), first < second, first & third) == (1, 2, True, set())
    assert second & third == second - first, "the text of the version before stays, for a rollback"


@pytest.mark.parametrize(
    ("inputs", "match"),
    [
        ({"a b", "c"}, r"no URL or path.*sorted"),
        ({"text": "a b"}, "no URL or path"),
        (b"a b", "no URL or path"),
        (7, "no URL or path"),
        ([dask.bag.from_sequence(SENTENCES)], r"list of objects of the type Bag.*dask\.bag\.concat"),
        (np.array(["a b"]), r"no URL or path.*savetxt"),
    ],
)
def test_train__refuses_what_has_no_order_or_no_text(client, tmp_path, inputs, match):
    with pytest.raises(ParameterError, match=match):
        trained(inputs, tmp_path, client)


def test_train__refuses_names_that_an_iterator_yields(client, tmp_path):
    (tmp_path / "text.txt").write_text("a b\n")
    for names in (tmp_path.glob("*.txt"), (str(path) for path in [tmp_path / "text.txt"])):
        with pytest.raises(ParameterError, match=r"yields names of files.*text\.txt.*Give list"):
            trained(names, tmp_path / "work", client)


@pytest.mark.parametrize("make", [lambda: frame("words"), lambda: dask_frame()[["number"]], lambda: iter([{"a": "b"}])])
def test_train__names_the_columns_that_there_are(client, tmp_path, make):
    with pytest.raises(InputError, match=r"There is no column 'text'.*columns are: (number, words|number|a)\."):
        trained(make(), tmp_path, client)


@pytest.mark.parametrize(
    "sentences", [[[1.5]], [["a"], "b c"], ["a", ["b"]], [b"a"], ["\ud800"], [1, 2], [[2**64]]], ids=ascii
)
def test_train__refuses_what_is_neither_text_nor_tokens(client, tmp_path, sentences):
    arrow()
    with pytest.raises(InputError, match="must be texts, or lists of strings or integers"):
        trained(iter(sentences), tmp_path, client)


def test_train__refuses_sentences_without_an_order(client, tmp_path):
    with pytest.raises(InputError, match="A sentence is a set, which has no order"):
        trained([{"a", "b"}], tmp_path, client)


def test_train__refuses_two_columns_of_a_name(client, tmp_path):
    table = pandas().DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(InputError, match="There are several columns 'text'"):
        trained(table, tmp_path, client)


@pytest.mark.parametrize(
    "make", [lambda: iter([]), lambda: [[]], lambda: dask.bag.from_sequence([""]).filter(bool), lambda: iter([None])]
)
def test_train__refuses_text_without_a_sentence(client, tmp_path, make):
    arrow()
    with pytest.raises(InputError, match=r"There is no (text|word) in"):
        trained(make(), tmp_path, client)


def test_train__refuses_a_format_of_what_is_no_file(client, tmp_path):
    with pytest.raises(ParameterError, match=r"format='jsonl' changes nothing for an input of type \w+; it"):
        train(iter(SENTENCES), work=tmp_path, params=PARAMS.replace(format="jsonl"), client=client)
