"""Events and edges drawn at random, in files of any cut and format: what plain Python reads of them."""

import csv
import gzip
from collections import Counter
from itertools import groupby

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.config.resources import Resources
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.progress import silent
from daskw2v.sequences.edges import find_node_kind, read_edges
from daskw2v.sequences.settings import EdgeList, Sessions
from daskw2v.sequences.sources import Events
from daskw2v.store.storage import Store

pytest.importorskip("pandas")

IDS = st.sampled_from(
    ["007", "7", "07", "+7", "-0", "1e5", "NA", "null", "nan", "None", "true", "2026-11-29", "9" * 19, "9" * 20, "a,b",
     'say "x"', "two\nlines", "é", "日本", "#1", "1.0", "x y"],
)  # fmt: skip
FILES = st.lists(
    st.tuples(st.lists(st.tuples(IDS, IDS, st.integers(1, 4)), min_size=1, max_size=5), st.permutations(range(4)),
              st.sampled_from(["csv", "tsv", "csv.gz", "parquet"])),
    min_size=1, max_size=3,
)  # fmt: skip


def write(folder, files, names):
    """Write files whose columns stand in the given order, one of which nobody reads."""
    for number, (rows, order, suffix) in enumerate(files):
        path, columns = folder / f"{number}.{suffix}", [(*names, "price")[i] for i in order]
        table = [[(*row, "12,5" if n % 2 else "")[i] for i in order] for n, row in enumerate(rows)]
        if suffix == "parquet":
            values = [pa.array(column) for column in zip(*table, strict=True)]
            pq.write_table(pa.table(values, columns), path, row_group_size=2)
            continue
        opened = gzip.open if suffix.endswith("gz") else open
        with opened(path, "wt", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter="\t" if suffix == "tsv" else ",").writerows([columns, *table])


@settings(max_examples=30)
@given(FILES, st.sampled_from([1, 100, 1 << 20]))
def test_edges__are_those_that_are_written(tmp_path_factory, files, block_bytes):
    folder, actual = tmp_path_factory.mktemp("edges"), Counter()
    write(folder, files, ("source", "target", "weight"))
    for path in sorted(folder.iterdir()):
        typed = path.suffix == ".parquet"
        edges, sources = EdgeList(weight="weight", strings=not typed), find_sources(path)
        kind = find_node_kind(sources, edges, {})
        for block in plan_blocks(sources, block_bytes):
            for columns in read_edges(block, edges, kind, {}):
                actual.update(zip(*(column.to_pylist() for column in columns), strict=True))
    assert actual == Counter((*ends, float(weight)) for rows, *_ in files for *ends, weight in rows)


@settings(max_examples=8)
@given(files=FILES, block_size=st.sampled_from([1000, 1 << 20]))
def test_sessions__have_the_items_of_each_user_as_they_are_written(
    tmp_path_factory, client, lists_in, files, block_size
):
    folder, work = tmp_path_factory.mktemp("events"), Store(str(tmp_path_factory.mktemp("work")))
    time = iter(range(100))
    files = [([(*ids, next(time)) for *ids, _ in rows], *how) for rows, *how in files]
    write(folder, files, ("user", "item", "time"))
    events = Events(f"{folder}/*", Sessions(least=1))
    written = events.write(work, Events.params, Resources(block_size=block_size), lambda: client, silent)
    rows = sorted((row for rows, *_ in files for row in rows), key=lambda row: (row[0], row[2]))
    expected = Counter(tuple(item for _, item, _ in of) for _, of in groupby(rows, key=lambda row: row[0]))
    actual = lists_in([file.url for file in written])
    assert Counter(tuple(map(str, session)) for session in actual) == expected
