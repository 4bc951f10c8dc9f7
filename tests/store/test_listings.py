"""What other machines write to an object store is seen at once: fsspec remembers listings, and must not here.

And what they cut short there is damage, as it is in a file.
"""

import fsspec
import numpy as np
import pytest

from daskw2v.errors import DamageError
from daskw2v.store.arrays import open_array
from daskw2v.store.storage import Store
from tests.support.one_shard import write_shard


@pytest.fixture
def elsewhere(s3):
    """The same store, as another machine has it."""
    return fsspec.filesystem("s3", **s3, skip_instance_cache=True, use_listings_cache=False)


def test_store__sees_what_others_write_after_a_listing(s3, elsewhere):
    store = Store("s3://bucket/seen", s3)
    store.write_bytes("first", b"1")
    assert store.children() == ["first"]
    elsewhere.pipe_file("bucket/seen/second", b"2")
    elsewhere.pipe_file("bucket/seen/folder/third", b"3")
    assert store.read_bytes("second") == b"2"
    assert (store / "folder").exists()
    assert store.children() == ["first", "folder", "second"]


def test_store__sees_what_others_delete_and_replace_after_a_listing(s3, elsewhere):
    store = Store("s3://bucket/gone", s3)
    store.write_bytes("first", b"1")
    store.write_bytes("second", b"2")
    assert store.children() == ["first", "second"]
    elsewhere.rm("bucket/gone/first")
    elsewhere.pipe_file("bucket/gone/second", b"22")
    assert not (store / "first").exists()
    assert store.read_bytes("first") is None
    assert store.read_bytes("second") == b"22"


def test_store__removes_what_others_wrote_after_a_listing(s3, elsewhere):
    store = Store("s3://bucket/removed", s3)
    store.write_bytes("first", b"1")
    assert store.children() == ["first"]
    elsewhere.pipe_file("bucket/removed/second", b"2")
    store.remove()
    assert elsewhere.find("bucket/removed") == []


def test_range__behind_the_end_of_an_object_is_damage(s3, elsewhere):
    store = Store("s3://bucket/ranges", s3)
    store.write_bytes("file", b"0123456789")
    assert store.read_range("file", 4, 8) == b"4567"
    elsewhere.pipe_file("bucket/ranges/file", b"01")
    for start in (0, 1, 2, 4):
        with pytest.raises(DamageError, match=rf"ranges/file lacks its bytes {start}\.\.7"):
            store.read_range("file", start, 8)


@pytest.mark.parametrize("left", [0, 1, 100])
def test_shard__of_which_little_is_left_is_damage(s3, elsewhere, left):
    store = Store(f"s3://bucket/shard-{left}", s3)
    write_shard(store.create_group(), "values", np.arange(900), 100)
    object_ = f"bucket/shard-{left}/values/c/0"
    elsewhere.pipe_file(object_, elsewhere.cat_file(object_)[:left])
    with pytest.raises(DamageError, match=r"values/c/0 is (cut short|damaged)"):
        open_array(store.open_group(), "values")[100:200]
