"""How much memory may be taken: what is free, and no more than a container allows."""

from types import SimpleNamespace

import pytest
from distributed.system import memory_limit as limit_of_dask

from daskw2v.store import limits


def test_memory_limit__is_that_of_dask():
    assert limits.memory_limit() == limit_of_dask()


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_memory_limit__of_a_container(tmp_path, name):
    everything = limits.memory_limit(tmp_path / "none")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("4096\n")
    (tmp_path / "memory.high").write_text("max\n")
    (tmp_path / "memory.low").write_text("0\n")
    assert limits.memory_limit(tmp_path) == 4096 < everything


@pytest.mark.parametrize(("available", "limit", "free"), [(5, 7, 5), (7, 5, 5)])
def test_free_memory__is_the_lesser_of_both(monkeypatch, available, limit, free):
    answer = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=available))
    monkeypatch.setattr(limits, "psutil", answer)
    monkeypatch.setattr(limits, "memory_limit", lambda: limit)
    assert limits.free_memory() == free
