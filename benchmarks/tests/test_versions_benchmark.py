"""The benchmark of versions under load sees what it looks for."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.versions_under_load import COLUMNS, Reading, add_version, cells_of, is_torn
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.storage import Store


def test_is_torn__sees_a_mix_of_two_versions(tmp_path):
    for number in (1, 2):
        add_version(Store(str(tmp_path)), number)
    old, new = (Vectors.open(tmp_path, version=f"v000{number}-r") for number in (1, 2))
    mixed = np.where(np.arange(len(old))[:, None] < 1000, old.vectors, new.vectors)
    assert not is_torn(old)
    for mix in (
        replace(old, vectors=mixed),
        replace(old, vocabulary=new.vocabulary),
        replace(old, metadata=new.metadata),
        replace(old, url=new.url),
    ):
        assert is_torn(mix)


def test_cells__count_changes_that_were_seen_before_the_next():
    served = [("a", 1.0), ("b", 2.0), ("b", 3.0), ("c", 4.0), ("a", 5.0)]
    reading = Reading("follows", changes=[("a", 1.5), ("b", 2.25), ("a", 6.0)])
    row = dict(zip(COLUMNS, cells_of(reading, served), strict=True))
    assert (row["versions seen"], row["changes"], row["changes seen"]) == (2, 4, 3)
    seen = row["seconds until seen"]
    assert (seen.low, seen.middle, seen.high) == pytest.approx((0.25, 0.5, 1.0))
