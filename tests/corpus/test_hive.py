"""Filters choose files by the columns that their folders name, as pandas and pyarrow do."""

import datetime
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v import Params, Resources, retrain, train
from daskw2v.config.filters import make_filters
from daskw2v.config.identity import identity_fields
from daskw2v.corpus.files import Source
from daskw2v.corpus.names import filter_sources
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import InputError, ParameterError

DAYS = ["2026-10-30", "2026-10-31", "2026-11-01", "2026-11-02"]


@pytest.fixture
def folders(tmp_path):
    """A text in a folder for each day and language."""
    for day in DAYS:
        for n, language in enumerate(["de", "en"]):
            folder = tmp_path / "text" / f"day={day}" / f"lang={language}" / f"n={n}"
            folder.mkdir(parents=True)
            (folder / "part.txt").write_text(f"{day} {language} common words here " * 20)
    return tmp_path / "text"


CASES = [
    (["day>=2026-11-01"], {(d, x) for d in DAYS[2:] for x in ("de", "en")}),
    ("day == 2026-10-30", {(DAYS[0], "de"), (DAYS[0], "en")}),
    ([("day", ">", datetime.date(2026, 10, 31)), ("lang", "=", "en")], {(d, "en") for d in DAYS[2:]}),
    (
        [[("day", "==", DAYS[0])], [("day", "==", DAYS[3]), ("lang", "!=", "de")]],
        {(DAYS[0], "de"), (DAYS[0], "en"), (DAYS[3], "en")},
    ),
    ([("day", "in", DAYS[1:3]), ("n", "<", 1)], {(d, "de") for d in DAYS[1:3]}),
    ([("lang", "not in", ["en"]), ("n", "<=", 0.5)], {(d, "de") for d in DAYS}),
    ([], {(d, x) for d in DAYS for x in ("de", "en")}),
]


@pytest.mark.parametrize(("filters", "expected"), CASES)
def test_filters__choose_files(folders, filters, expected):
    sources_found = find_sources(folders, filters=Params(filters=filters).filters)
    assert {tuple(part.partition("=")[2] for part in s.url.split("/")[-4:-2]) for s in sources_found} == expected


@pytest.mark.parametrize(("filters", "expected"), CASES)
def test_filters__are_the_same_from_json(filters, expected):
    params = Params(filters=filters)
    assert Params.from_dict(json.loads(json.dumps(params.as_dict()))).filters == params.filters


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=20), st.integers(-60, 60))
def test_filters__compare_as_pyarrow_does(values, bound):
    expression = pq.filters_to_expression
    sources = [Source(f"/a/n={n}/b.txt", 1, "", "text", None) for n in values]
    table = pa.table({"n": values})
    for operator in ("==", "!=", "<", "<=", ">", ">="):
        expected = table.filter(expression([("n", operator, bound)])).column("n").to_pylist()
        try:
            sources_found = filter_sources(sources, make_filters([("n", operator, bound)]))
        except InputError:
            sources_found = []
        assert [int(s.url.split("=")[1].split("/")[0]) for s in sources_found] == expected


def test_missing_values__pass_no_comparison():
    sources = [Source(f"/a/n={n}/b.txt", 1, "", "text", None) for n in ("__HIVE_DEFAULT_PARTITION__", "a%3Db")]
    assert filter_sources(sources, make_filters(["n==a=b"])) == sources[1:]
    assert filter_sources(sources, make_filters([("n", "!=", "x")])) == sources[1:]


def test_texts_of_numbers__are_compared_as_numbers():
    sources = [Source(f"/a/month={n}/b.txt", 1, "", "text", None) for n in range(1, 13)]
    assert filter_sources(sources, make_filters(["month>=10"])) == sources[9:]
    assert filter_sources(sources, make_filters([("month", "in", ["02", "11"])])) == [sources[1], sources[10]]


def test_bad_filters__name_what_there_is(folders):
    wrong = {
        "column 'month'; there is day, lang, n": ["month==5"],
        "None of 8 files passes day > 2027": ["day>2027"],
        "'de', of a folder of .*, is not a number": [("lang", "<", 5)],
    }
    for message, filters in wrong.items():
        with pytest.raises(InputError, match=message):
            find_sources(folders, filters=make_filters(filters))


def test_training__reads_what_passes_and_is_named_by_it(folders, client, tmp_path):
    params = Params(vector_size=4, min_count=1, epochs=1, filters=["day>=2026-11-01", "lang=de"])
    asked = {"work": tmp_path / "work", "resources": Resources(threads=1), "client": client, "listener": None}
    vectors = train(folders, params=params, **asked)
    assert {"2026-11-01", "2026-11-02", "de"} <= set(vectors.vocabulary)
    assert "2026-10-31" not in vectors.vocabulary
    named = sorted(map(str, folders.glob("day=2026-11-*/lang=de/**/*.txt")))
    assert train(named, params=params.replace(filters=()), **asked).url == vectors.url
    assert identity_fields(params) == identity_fields(params.replace(filters=()))
    with pytest.raises(ParameterError, match=r"filters=.* changes nothing for .* it is for files"):
        train([["a", "b"]], params=params, **asked)


@pytest.mark.slow
def test_nights__read_a_window_of_days_that_moves(folders, client, tmp_path):
    params = Params(vector_size=4, min_count=1, epochs=1)
    asked = {"work": tmp_path / "work", "resources": Resources(threads=1), "client": client, "listener": None}
    first = retrain(folders, params=params.replace(filters=["day<2026-11-01"]), **asked)
    assert first.outcome.label == "published"
    second = retrain(folders, params=params.replace(filters=["day>2026-10-30", "day<2026-11-02"]), **asked)
    assert (second.figures["files_new"], second.figures["files_gone"]) == (2, 2)
