"""Replicas that pull the rows that they reach: the same bits as with whole tables, and less to move."""

import numpy as np
import pytest

from daskw2v import Params, Resources, train
from daskw2v.corpus.sources import find_sources
from daskw2v.models.stored.tables import open_table
from daskw2v.progress import silent
from daskw2v.stages import Store
from daskw2v.training.averaging import averaging, pulling
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.averaging.work import pulled_share
from daskw2v.training.preparation.planned import PlannedRun
from daskw2v.training.preparation.request import read_text
from daskw2v.training.sizes import estimate_load
from daskw2v.training.start import blocks
from daskw2v.training.start.blocks import TableBlock

PARAMS = Params(vector_size=12, min_count=1, epochs=1, sample=1e-2, n_replicas=3, rounds_per_epoch=4)
WORDS = 600
SEEN = []


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "text.txt"
    words = rng.zipf(1.2, (300, 12)) % WORDS
    path.write_text("".join(" ".join(f"w{word}" for word in sentence) + "\n" for sentence in words))
    markets = "".join(f"w{word},{word % 7}\n" for word in range(WORDS))
    path.with_name("markets.csv").write_text(f"word,market\n{markets}")
    return path


@pytest.fixture
def pulled(monkeypatch):
    """Blocks of 100 rows, and what was pulled of each: its rows, and how many of them."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 100 * 4 * PARAMS.vector_size)
    monkeypatch.setattr(averaging, "pull_rows", pull)
    SEEN.clear()
    return SEEN


def pull(rows, reached, block):
    part = pulling.pull_rows(rows, reached, block)
    SEEN.append((len(rows), len(part)))
    return part


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "changes",
    [
        {"objective": "sgns"},
        {"objective": "sgns", "negative_sharing": "pair"},
        {"objective": "cbow_ns"},
        {"objective": "sgns", "market_negative": 3},
        {"objective": "cbow_ns", "market_negative": 3},
        {"objective": "sgns", "market_negative": 3, "negative_sharing": "pair"},
        {"objective": "sg_hs"},
        {"objective": "cbow_hs"},
        {"n_replicas": 10},
        {"merge": "mean"},
    ],
    ids=str,
)
def test_pull_rows__gives_the_bits_of_complete_tables(client, text, tmp_path, monkeypatch, pulled, changes):
    markets = {"markets": str(text.with_name("markets.csv"))} if "market_negative" in changes else {}
    params = PARAMS.replace(**changes, **markets)
    options = {"params": params, "resources": Resources(threads=1), "client": client}
    monkeypatch.setattr(pulling, "FEW_POSITIONS", 0)
    whole = train(text, work=tmp_path / "whole", **options)
    assert not pulled
    monkeypatch.setattr(pulling, "FEW_POSITIONS", np.inf)
    some = train(text, work=tmp_path / "some", **options)
    for table in ("input", "output"):
        np.testing.assert_array_equal(*(open_table(Store(vectors.url), table)[:] for vectors in (whole, some)))
    parts = {part == rows for rows, part in pulled}
    assert parts == {True, False}  # some blocks were taken whole, of others some rows
    assert all(part == rows or part <= rows / 2 for rows, part in pulled)


@pytest.mark.slow
def test_pulls_rows__if_a_replicas_round_has_less_text_than_there_are_words(client, text, tmp_path, pulled):
    options = {"resources": Resources(threads=1), "client": client}
    train(text, work=tmp_path, params=PARAMS.replace(rounds_per_epoch=1), **options)  # 1080 positions a replica
    assert not pulled
    train(text, work=tmp_path, params=PARAMS.replace(rounds_per_epoch=4), **options)
    assert pulled


def test_reach__finds_about_as_many_rows_as_are_forecast(client, tmp_path):
    """Of a text by Zipf's law, whose load is one, too."""
    rng, n_words = np.random.default_rng(1), 3000
    shares = 1 / np.arange(1, n_words + 1)
    words = rng.choice(n_words, 40_000, p=shares / shares.sum())
    lines = (" ".join(f"w{word}" for word in words[i : i + 20]) for i in range(0, len(words), 20))
    (tmp_path / "text.txt").write_text("\n".join(lines))
    store, params = Store(str(tmp_path)), PARAMS.replace(vector_size=100, sample=1e-2)
    resources = Resources(threads=1)
    corpus, vocabulary = read_text(
        find_sources(tmp_path / "text.txt"), store, params, resources, lambda: client, silent
    )
    planned = PlannedRun(corpus, vocabulary, store, params, resources)
    run = planned.for_tasks()
    for stop in (1000, 2000):
        found = [
            pulling.find_reached_rows(
                run, (ReplicaWork(0, 0, stop, 0.1, 0.1),), [TableBlock(table, a, a + 300)]
            ).rows_of_block(0)
            for table in ("input", "output")
            for a in range(0, vocabulary.size // 300 * 300, 300)
        ]
        share = sum(300 if rows is None else len(rows) for rows in found) / (300 * len(found))
        assert share == pytest.approx(pulled_share(estimate_load(planned.sizes, params), stop, 300), rel=0.25)
