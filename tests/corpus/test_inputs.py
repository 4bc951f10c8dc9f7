"""What is no name of a file is refused by its type, not iterated or computed; the message says what makes files."""

import io
import json
import re
from pathlib import Path

import dask
import dask.bag
import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from daskw2v import Params, Resources, retrain, train
from daskw2v.corpus.inputs import list_names
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import InputError, ParameterError

LINES = ["the cat sat on the mat", "a dog ran"]
FRAME = pd.DataFrame({"body": LINES})


class Untouchable:
    """What fails when it is looked into."""

    def _fail(self, *_):
        raise AssertionError("it was looked into")

    __iter__ = __len__ = __getitem__ = __repr__ = __str__ = __bool__ = compute = _fail


def named(module, name, base=Untouchable):
    """Return an object of a type of that name, whose package need not be installed."""
    return type(name, (base,), {"__module__": module})()


def sentences():
    raise AssertionError("it was iterated")
    yield


REFUSED = {  # what is given: its value; what is said of it
    "bag": (dask.bag.from_sequence(LINES), r"input=<dask\.bag\.core\.Bag> .*bag\.to_textfiles\('text/\*\.txt'\)"),
    "delayed": (dask.delayed(LINES), r"input=<dask\.delayed\.Delayed.*let each task write a file"),
    "delayed ones": ([dask.delayed(LINES)], r"input=<dask\.delayed\.Delayed.*let each task write a file"),
    "future": (named("distributed.client", "Future"), r"input=<distributed\.client\.Future>.*let each task write"),
    "dask frame": (dask.dataframe.from_pandas(FRAME, npartitions=1), r"df\.to_parquet\('text'\), and give 'text'"),
    "dask series": (dask.dataframe.from_pandas(FRAME, npartitions=1).body, r"series\.to_frame\('text'\)\.to_parquet"),
    "pandas frame": (FRAME, r"input=<pandas.*DataFrame> .*df\.to_parquet\('text\.parquet'\).* with column"),
    "pandas series": (FRAME.body, r"<pandas.*Series> .*series\.to_frame\('text'\)\.to_parquet\('text\.parquet'\)"),
    "polars frame": (named("polars.dataframe.frame", "DataFrame"), r"<polars.*DataFrame> .*df\.write_parquet"),
    "polars plan": (named("polars.lazyframe.frame", "LazyFrame"), r"df\.sink_parquet"),
    "arrow": (pa.table({"body": LINES}), r"<pyarrow\.lib\.Table> .*pyarrow\.parquet\.write_table\(table, "),
    "data set": (named("datasets.arrow_dataset", "Dataset"), r"<datasets.*Dataset> .*dataset\.to_parquet"),
    "data sets": (named("datasets.dataset_dict", "DatasetDict"), r"dataset\['train'\]\.to_parquet"),
    "array": (np.array(LINES), r"<numpy\.ndarray> .*numpy\.savetxt"),
    "generator": (sentences(), r"input=<generator> .*give list\(names\) if it yields names; if sentences, write"),
    "iterator": (iter(LINES), r"input=<list_iterator> .*give list\(names\)"),
    "open file": (io.StringIO("a b\n"), r"input=<_io\.StringIO> .*give the name of the file, not the open file"),
    "token lists": ([["the", "cat"], ["a"]], r"input=\['the', 'cat'\] .*json\.dumps\(\{'text': tokens\}\)"),
    "integers": ((1, 2, 3), r"input=1 is no URL or path"),
    "dict": ({"text": LINES}, r"input=\{'text': \['the cat.*is no URL or path"),
    "empty dict": ({}, r"input=\{\} is no URL or path"),
    "set": ({"a.txt"}, r"input=\{'a\.txt'\} .*sorted\(names\).*no order"),
    "bytes": (b"a.txt", r"input=b'a\.txt' is no URL or path\. Give text"),
    "anything": (named("strange.things", "Thing"), r"input=<strange\.things\.Thing> is no URL or path\. Give text"),
}


@pytest.mark.parametrize("given", REFUSED)
def test_inputs__that_are_no_names_are_refused_by_their_type(given):
    value, message = REFUSED[given]
    with pytest.raises(ParameterError, match=message) as caught:
        find_sources(value)
    assert len(caught.value.problem) < 160


def test_inputs__no_bag_is_computed(tmp_path):
    bag = dask.bag.from_sequence([tmp_path / "touched"]).map(Path.touch)
    with pytest.raises(ParameterError, match="to_textfiles"):
        find_sources(bag)
    assert not list(tmp_path.iterdir())


def test_inputs__a_long_value_is_shortened():
    with pytest.raises(ParameterError, match="is no URL or path") as caught:
        find_sources({f"key {i}": "value" * 99 for i in range(99)})
    assert len(caught.value.problem) < 160


@pytest.mark.parametrize("inputs", [LINES, LINES[0], "word " * 200, "what cat?\nwhich dog?\n", (LINES[0],)])
def test_inputs__text_in_place_of_names_is_told(inputs):
    with pytest.raises(
        InputError, match=r"matches no file\..*Inputs are names of files: write text to a file"
    ) as caught:
        find_sources(inputs)
    assert len(caught.value.problem) < 160


def test_inputs__names_may_hold_blanks_and_stand_in_lists_and_tuples(tmp_path):
    path = tmp_path / "a cat sat.txt"
    path.write_text("a\n")
    assert list_names(path) == list_names(str(path)) == list_names([path]) == list_names((str(path),)) == [str(path)]
    assert len(find_sources([path, str(path)])) == 1


def test_inputs__are_refused_before_a_cluster_is_started(tmp_path, monkeypatch):
    def start(*_):
        raise AssertionError("a cluster was started")

    monkeypatch.setattr("daskw2v.cluster.connecting.connect", start)
    for run in (train, retrain):
        with pytest.raises(ParameterError, match="is no URL or path"):
            run({"text": LINES}, work=tmp_path / "work", params=Params(), resources=Resources())


def write_as_told(value, message):
    """Carry out the one-liner of a message, which begins after a verb and ends before what is to be given."""
    code = re.search(r"(?:write|each sentence,) (?!a line)(.*?), and give", message).group(1)
    with open("text.jsonl", "w") as file:
        names = dict.fromkeys(("bag", "df", "series", "table", "array", "sentences"), value)
        exec(code, {**names, "pyarrow": pa, "numpy": np, "json": json, "file": file})


@pytest.mark.parametrize(
    "given", ["bag", "dask frame", "dask series", "pandas frame", "pandas series", "arrow", "array"]
)
def test_remedy__makes_files_that_are_found(tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    value, _ = REFUSED[given]
    with pytest.raises(ParameterError) as caught:
        find_sources(value)
    write_as_told(value, caught.value.remedy)
    name = re.search(r"and give '(.*?)'", caught.value.remedy).group(1)
    assert sum(source.size for source in find_sources(name)) > 0


def test_remedy__of_token_lists_makes_lines_of_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tokens = [["the", "cat"], ["a"]]
    with pytest.raises(ParameterError) as caught:
        find_sources(tokens)
    write_as_told(tokens, caught.value.remedy)
    assert [json.loads(line)["text"] for line in (tmp_path / "text.jsonl").read_text().splitlines()] == tokens
