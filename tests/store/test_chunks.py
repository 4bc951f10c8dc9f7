"""Rows that are decoded where they are read are those that Zarr reads."""

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec

from daskw2v.errors import DamageError
from daskw2v.store.arrays import create_array, has_whole_rows, open_array, read_rows, write_array, write_pieces
from daskw2v.store.storage import Store

PACKED = (BloscCodec(cname="lz4", typesize=4), Crc32cCodec())
CODECS = {"packed": PACKED, "packed, unchecked": PACKED[:1], "checked": PACKED[1:], "plain": ()}


@pytest.fixture
def group(tmp_path):
    return Store(str(tmp_path / "group")).create_group()


def array_of(codecs, shape, chunk, dtype, **options):
    array = zarr.create_array(
        {},
        shape=shape,
        chunks=(chunk, *shape[1:]),
        dtype=dtype,
        compressors=list(codecs),
        config={"write_empty_chunks": True},
        **options,
    )
    array[...] = np.random.default_rng(1).integers(0, 100, shape)
    return array


@given(
    codecs=st.sampled_from([*CODECS.values()]),
    n=st.integers(1, 30),
    chunk=st.integers(1, 12),
    more=st.sampled_from([(), (3,)]),
    dtype=st.sampled_from(["<i4", "<i8", "u1", "<f4"]),
    start=st.integers(-32, 32),
    stop=st.integers(-32, 32),
)
def test_rows__are_those_that_zarr_reads(codecs, n, chunk, more, dtype, start, stop):
    array = array_of(codecs, (n, *more), min(chunk, n), dtype)
    assert has_whole_rows(array)
    first, last, _ = slice(start, stop).indices(n)
    rows = read_rows(array, first, last)
    np.testing.assert_array_equal(rows, array[start:stop])
    assert (rows.dtype, rows.shape) == (array.dtype, array[start:stop].shape)


@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=6), chunk=st.integers(1, 9))
def test_write_pieces__writes_what_the_pieces_hold_together(tmp_path_factory, lengths, chunk):
    group = Store(str(tmp_path_factory.mktemp("group"))).create_group()
    values = np.arange(2 * sum(lengths), dtype=np.int32).reshape(-1, 2)
    pieces = np.split(values, np.cumsum(lengths)[:-1])
    write_pieces(group, "values", pieces, chunk)
    written = open_array(group, "values")
    assert written.is_finished
    assert written.chunks[0] == max(1, min(chunk, len(values)))
    np.testing.assert_array_equal(written[:], values)


def test_rows__of_many_chunks_come_in_their_order():
    array = array_of(PACKED, (101,), 2, "<i4")
    with zarr.config.set({"async.concurrency": 3}):
        np.testing.assert_array_equal(read_rows(array, 1, 100), array[1:100])


def test_rows__that_were_not_written_are_the_fill_value():
    array = array_of(PACKED, (6,), 2, "<i4", fill_value=7)
    array.store._store_dict.pop("c/1")
    assert read_rows(array, 1, 6).tolist() == [array[1], 7, 7, array[4], array[5]]


def test_rows__are_left_to_zarr_where_files_are_otherwise(group):
    big = array_of((), (4,), 2, ">i4", serializer=BytesCodec(endian="big"))
    columns = create_array(group, "columns", (4, 6), "f4", 2, chunk_columns=3)
    shards = create_array(group, "shards", (4,), "f4", 1, shard_rows=2)
    assert not any(map(has_whole_rows, (big, columns._array, shards._array)))


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("cut", [0, 1, 5, 20])
def test_chunk__that_is_cut_short_is_no_rows(name, cut):
    array = array_of(CODECS[name], (32,), 32, "<i4")
    values = array.store._store_dict
    values["c/0"] = values["c/0"][:cut]
    with pytest.raises((ValueError, RuntimeError)):
        read_rows(array, 0, 8)


@pytest.mark.parametrize("place", [0, 5, 12, 30, -1])
def test_chunk__of_which_a_byte_changed_is_damage(tmp_path, group, place):
    write_array(group, "a", np.arange(1000))
    path = tmp_path / "group" / "a" / "c" / "0"
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    array = open_array(Store(str(tmp_path / "group")).open_group(), "a")
    for selection in (slice(2, 3), ...):
        with pytest.raises(DamageError, match="a/c/0 is damaged"):
            array[selection]


def test_chunk__is_not_unpacked_to_more_than_it_should_hold():
    array = array_of(PACKED[:1], (32,), 32, "<i4")
    larger = array_of(PACKED[:1], (3200,), 3200, "<i4")
    array.store._store_dict["c/0"] = larger.store._store_dict["c/0"]
    with pytest.raises(ValueError, match=r"hold 12,800; they should hold 128"):
        read_rows(array, 0, 32)
