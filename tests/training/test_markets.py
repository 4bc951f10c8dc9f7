"""Negatives from the market of a word: where markets come from, what is refused, and what they are good for."""

import gzip

import numpy as np
import pytest

from daskw2v import Params, Resources, Versions, retrain, train
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import InputError, ParameterError
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.retraining.gates import Gates
from daskw2v.retraining.outcome import Outcome
from daskw2v.training.start.markets import with_market_table
from daskw2v.vocabulary.markets import MarketCounts, read_table
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.options import reads_field

pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

WORDS = ["a", "naïve", "c", "7", "e"]
ONE = Resources(threads=1)
LOOSE = Gates(min_stability=None, min_kept=None)  # of so little text
ITEMS, STYLES, CITIES = 20, 2, 20  # items of each style in each city


def found_in(path):
    """Return the number of the market of each of WORDS by a table."""
    counts = MarketCounts(Vocabulary.from_words(WORDS, [1] * len(WORDS)))
    for source in find_sources(path):
        for rows in read_table(source, {}, 10.0):
            counts.add(rows)
    return counts.markets().tolist()


def test_tables__of_several_formats_say_the_same(tmp_path):
    columns = {"item": ["e", "c", "naïve", "x", "7"], "market": ["Rom", "Åre", "Rom", "Ulm", "Bonn"]}
    rows = zip(*columns.values(), strict=True)
    lines = "other,item,market\n" + "".join(f"1.5,{item},{market}\n" for item, market in rows)
    encoded = {name: pa.array(values).dictionary_encode() for name, values in columns.items()}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    pq.write_table(pa.table(encoded), tmp_path / "b.pq")
    (tmp_path / "c.csv").write_text(lines)
    (tmp_path / "d.tsv").write_text(lines.replace(",", "\t"))
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(lines.encode()))
    for path in tmp_path.iterdir():
        assert found_in(path) == [-1, 1, 3, 0, 1], path


def test_a_word_of_several_markets__is_in_that_of_the_highest_count_or_the_first_by_name(tmp_path):
    (tmp_path / "1.csv").write_text("word,market,count\na,Ulm,3\na,Rom,5\nc,Ulm,2\nc,Rom,2\n7,Rom,9\ne,,4\n")
    assert found_in(tmp_path) == [0, -1, 0, 0, -1]
    (tmp_path / "2.csv").write_text("word,market\na,Ulm\na,Ulm\na,Ulm\n7,Ulm\n")
    assert found_in(tmp_path) == [1, -1, 0, 0, -1], "files of a folder add up"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("word,city\na,Rom\n", "no single column 'market'.*its columns are: word, city"),
        ("what,market\na,Rom\n", "no single column 'word'"),
        ("word,market,count\na,Rom,-1\n", "a count that is no integer of 0 or more"),
        ("word,market,count\na,Rom,often\n", "cannot be read as csv"),
        ("", "cannot be read as csv"),
        ("word,market\nunheard,Rom\n", "names the market of none of the 2 words of the vocabulary"),
    ],
)
def test_wrong_tables__are_refused(tmp_path, client, content, message):
    (tmp_path / "text.txt").write_text("a b\n" * 20)
    (tmp_path / "markets.csv").write_text(content)
    params = Params(min_count=1, market_negative=2, markets=str(tmp_path / "markets.csv"))
    with pytest.raises(InputError, match=message):
        train(tmp_path / "text.txt", work=tmp_path / "work", params=params, client=client, listener=None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("word,city\na,Rom\n", "2.csv has no single column 'market'"),
        ("word,market,count\na,Rom,often\n", "2.csv cannot be read as csv"),
    ],
)
def test_wrong_second_files__are_refused_before_text_is_read(tmp_path, client, content, message):
    (tmp_path / "text.txt").write_text("a b\n" * 20)
    (tmp_path / "markets").mkdir()
    (tmp_path / "markets" / "1.csv").write_text("word,market\na,Rom\n")
    (tmp_path / "markets" / "2.csv").write_text(content)
    params = Params(min_count=1, market_negative=2, markets=str(tmp_path / "markets"))
    with pytest.raises(InputError, match=message):
        train(tmp_path / "text.txt", work=tmp_path / "work", params=params, client=client, listener=None)
    assert not list(tmp_path.glob("work/corpora/*"))


def test_no_tables__are_refused(tmp_path, client):
    pq.write_table(pa.table({"word": [1.5], "market": ["Rom"]}), tmp_path / "floats.parquet")
    (tmp_path / "words.jsonl").write_text('{"word": "a", "market": "Rom"}\n')
    for name, message in (
        ("floats.parquet", "words of .* are of type double"),
        ("words.jsonl", "is jsonl, not a table of markets"),
        ("nothing.csv", "nothing.csv"),
    ):
        with pytest.raises(InputError, match=message):
            with_market_table(Params(market_negative=1, markets=str(tmp_path / name)), ONE)


@pytest.mark.slow
def test_settled_table__is_named_by_its_content(tmp_path, client, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("a b\n" * 20)
    (tmp_path / "markets.csv").write_text("word,market\na,Rom\n")
    params = Params(market_negative=1, markets="markets.csv", min_count=1, vector_size=4, epochs=1, sample=0)
    settled = with_market_table(params, ONE)
    assert SharedNegatives.of(settled).markets.startswith(f"{tmp_path}/markets.csv#")
    assert with_market_table(settled, ONE) == settled
    asked = {"work": tmp_path / "work", "client": client, "listener": None}
    first = train(tmp_path / "text.txt", params=params, **asked)
    assert first.metadata["params"]["markets"] == SharedNegatives.of(settled).markets
    assert train(tmp_path / "text.txt", params=params, **asked).url == first.url
    (tmp_path / "markets.csv").write_text("word,market\na,Rom\nb,Rom\n")
    with pytest.raises(InputError, match="has changed since the run began"):
        train(tmp_path / "text.txt", params=settled.replace(seed=2), **asked)
    assert train(tmp_path / "text.txt", params=params, **asked).url != first.url


@pytest.mark.slow
def test_nights__go_on_where_the_table_has_grown(tmp_path, client):
    params = Params(market_negative=1, markets=str(tmp_path / "markets.csv"), min_count=1, vector_size=4, sample=0)
    asked = {"work": tmp_path / "work", "params": params, "gates": LOOSE, "client": client, "listener": None}
    for night in range(2):
        (tmp_path / f"{night}.txt").write_text("a b c d\n" * 20)
        (tmp_path / "markets.csv").write_text("word,market\n" + "a,Rom\nb,Rom\n" * (1 + night))
        assert retrain(str(tmp_path / "*.txt"), **asked).outcome is Outcome.PUBLISHED
    first, second = sorted(Versions.open(asked["work"]).all(), key=lambda version: version.name)
    assert second.manifest["params"]["base_model"] == first.name, "not from scratch"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"markets": "markets.csv"}, "markets='markets.csv' changes nothing for market_negative=0"),
        ({"market_negative": 3, "strategy": "rotation"}, "market_negative=3 changes nothing for strategy='rotation'"),
        *(
            ({"market_negative": 3, "objective": name}, f"market_negative=3 changes nothing for objective='{name}'")
            for name, objective in OBJECTIVES.items()
            if not reads_field(objective, "market_negative")
        ),
    ],
)
def test_what_is_not_read__is_refused(tmp_path, client, params, message):
    markets = {"markets": "markets.csv"} if "objective" not in params else {}
    with pytest.raises(ParameterError, match=message):
        train(
            tmp_path / "text.txt", work=tmp_path, params=Params(**{**markets, **params}), client=client, listener=None
        )


def test_text_without_markets__is_refused(tmp_path, client):
    (tmp_path / "text.txt").write_text("a b\n" * 20)
    asked = {"client": client, "listener": None}
    params = Params(min_count=1, sample=0, vector_size=4)
    with pytest.raises(ParameterError, match="market_negative=3 has no markets to draw from"):
        train(tmp_path / "text.txt", work=tmp_path / "work", params=params.replace(market_negative=3), **asked)
    assert not (tmp_path / "work").exists(), "before any text is read"


def test_only_objectives_that_read_it__have_tables_of_markets():
    assert [name for name, objective in OBJECTIVES.items() if objective.with_markets is not None] == ["sgns", "cbow_ns"]


@pytest.fixture(scope="module")
def cities(tmp_path_factory):
    """Sessions in one of twenty cities, mostly of one style; and a table of the cities of all items but one."""
    folder, rng = tmp_path_factory.mktemp("cities"), np.random.default_rng(0)
    lines = []
    for _ in range(8000):
        city, style = rng.integers(CITIES), rng.integers(STYLES)
        styles = np.where(rng.random(8) < 0.7, style, 1 - style)
        items = zip(styles, rng.integers(0, ITEMS, 8), strict=True)
        lines.append(" ".join(name_of(city, style, item) for style, item in items))
    (folder / "text.txt").write_text("\n".join(lines))
    names = [name_of(*place) for place in np.ndindex(CITIES, STYLES, ITEMS)][1:]
    markets = [name.partition("-")[0] for name in names]
    pq.write_table(pa.table({"item": names, "market": markets}), folder / "cities.parquet")
    return folder


def name_of(city, style, item):
    return f"{city}-{style}-{item}"


def share_of_style(vectors):
    """Return the share of items of their own style among the ten that are nearest to an item, in its city."""
    found, styles = [], np.repeat(np.arange(STYLES), ITEMS)
    for city in range(CITIES):
        rows = np.stack([vectors[name_of(city, *place)] for place in np.ndindex(STYLES, ITEMS)])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        nearest = np.argsort(2 * np.eye(len(rows)) - rows @ rows.T, axis=1)[:, :10]
        found.append((styles[nearest] == styles[:, None]).mean())
    return np.mean(found)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["sgns", "cbow_ns"])
def test_negatives_of_a_market__separate_styles_of_a_city(cities, client, tmp_path, objective):
    """Items of other cities are easy to reject, and teach little (Grbovic and Cheng 2018, section 3.1)."""
    params = Params(
        objective=objective,
        strategy="averaging",
        vector_size=16,
        window=8,
        shrink_windows=False,
        sample=0,
        min_count=1,
        epochs=4,
    )
    table = {"market_negative": 5, "markets": str(cities / "cities.parquet")}
    asked = {"work": tmp_path / "work", "client": client, "resources": ONE, "listener": None}
    few, many, near = (
        share_of_style(train(cities / "text.txt", params=params.replace(**changes), **asked))
        for changes in ({}, {"negative": 10}, table)
    )
    assert 0.5 < few < many < 0.9, "as many negatives of all words teach less"
    assert near > many + 0.07
