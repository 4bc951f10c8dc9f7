"""What other machines write to an object store is seen at once: fsspec remembers listings, and must not here."""

import fsspec
import pytest

from daskw2v.storage import Store

moto = pytest.importorskip("moto.server", reason="no object store: install moto[server]")
pytest.importorskip("s3fs", reason="no client for object stores: install s3fs")


@pytest.fixture(scope="module")
def options():
    """Options for a store on this machine, with one bucket."""
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"key": "a-key", "secret": "a-secret", "endpoint_url": f"http://{host}:{port}"}
    fsspec.filesystem("s3", **options).mkdir("bucket")
    yield options
    server.stop()


@pytest.fixture
def elsewhere(options):
    """The same store, as another machine has it."""
    return fsspec.filesystem("s3", **options, skip_instance_cache=True, use_listings_cache=False)


def test_store__sees_what_others_write_after_a_listing(options, elsewhere):
    store = Store("s3://bucket/seen", options)
    store.write_bytes("first", b"1")
    assert store.children() == ["first"]
    elsewhere.pipe_file("bucket/seen/second", b"2")
    elsewhere.pipe_file("bucket/seen/folder/third", b"3")
    assert store.read_bytes("second") == b"2"
    assert (store / "folder").exists()
    assert store.children() == ["first", "folder", "second"]


def test_store__sees_what_others_delete_and_replace_after_a_listing(options, elsewhere):
    store = Store("s3://bucket/gone", options)
    store.write_bytes("first", b"1")
    store.write_bytes("second", b"2")
    assert store.children() == ["first", "second"]
    elsewhere.rm("bucket/gone/first")
    elsewhere.pipe_file("bucket/gone/second", b"22")
    assert not (store / "first").exists()
    assert store.read_bytes("first") is None
    assert store.read_bytes("second") == b"22"


def test_store__removes_what_others_wrote_after_a_listing(options, elsewhere):
    store = Store("s3://bucket/removed", options)
    store.write_bytes("first", b"1")
    assert store.children() == ["first"]
    elsewhere.pipe_file("bucket/removed/second", b"2")
    store.remove()
    assert elsewhere.find("bucket/removed") == []
