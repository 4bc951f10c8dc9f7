"""Links below a work directory: nothing is written or deleted through them."""

import os

import numpy as np
import pytest
from test_names import OPERATIONS, contents, fill

from daskw2v.errors import StoreError
from daskw2v.store.arrays import write_array
from daskw2v.store.lease import hold
from daskw2v.store.storage import Store

READ_ONLY = {
    "__truediv__",
    "check",
    "exists",
    "children",
    "size",
    "sizes",
    "force_names",
    "read_bytes",
    "read_range",
    "read_manifest",
}


@pytest.fixture
def linked(tmp_path):
    """A work directory in which `part` leads to the folder of others, and that folder."""
    others = Store(str(tmp_path / "others"))
    fill(others / "a")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "part").symlink_to(tmp_path / "others")
    return Store(str(tmp_path / "work")), others


@pytest.mark.parametrize("operation", sorted(OPERATIONS.keys() - READ_ONLY))
def test_changes__are_refused_through_a_link(linked, operation):
    work, others = linked
    before = contents(others)
    with pytest.raises(
        StoreError, match=r"work/part is a link, through which nothing is written or deleted\. Keep the"
    ):
        OPERATIONS[operation](work / "part" / "a")
    assert contents(others) == before
    assert os.listdir(others.url) == ["a"]


def test_chunks__are_refused_through_a_link(linked, tmp_path):
    """One that is laid where a group was opened."""
    work, others = linked
    write_array((work / "group").create_group(), "x", np.arange(2))
    array = (work / "group").open_group(writable=True)["x"]
    os.rename(tmp_path / "work" / "group", tmp_path / "others" / "group")
    (tmp_path / "work" / "group").symlink_to(tmp_path / "others" / "group")
    before = contents(others)
    with pytest.raises(StoreError, match="group is a link"):
        array[...] = 1
    with pytest.raises(StoreError, match="group is a link"):
        (work / "group" / "x").remove()
    assert contents(others) == before


def test_leases__are_refused_through_a_link(tmp_path):
    (tmp_path / "others").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "leases").symlink_to(tmp_path / "others")
    with pytest.raises(StoreError, match="leases is a link"), hold(Store(str(tmp_path / "work")), "run", "a run"):
        pass
    assert list((tmp_path / "others").iterdir()) == []


def test_links__themselves_are_deleted_and_replaced(linked, tmp_path):
    work, others = linked
    (tmp_path / "work" / "f").symlink_to(tmp_path / "others" / "a" / "f")
    before = contents(others)
    work.write_bytes("f", b"ours")
    assert not (tmp_path / "work" / "f").is_symlink()
    (tmp_path / "work" / "raw").symlink_to(tmp_path / "others" / "a" / "f")
    with pytest.raises(StoreError, match="raw is a link"):
        work.write_raw("raw", np.arange(3), named=False)
    (work / "part").remove()
    assert not (tmp_path / "work" / "part").is_symlink()
    assert contents(others) == before


def test_links__above_the_folder_that_was_named_are_the_users(linked, tmp_path):
    (tmp_path / "disk").symlink_to(tmp_path / "others")
    for store in (Store(str(tmp_path / "disk")), Store(str(tmp_path / "work" / "part"))):
        (store / "new").write_bytes("f", b"ours")
        (store / "new").remove()
    assert Store(str(tmp_path / "disk")) / "a" == Store(str(tmp_path / "disk" / "a"))  # whoever named it
