"""Names with the characters of patterns: what is named is used, and nothing else is."""

import inspect
from itertools import product

import numpy as np
import pytest
from zarr.core.sync import sync

from daskw2v.errors import StoreError
from daskw2v.store import literal
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.storage import Store

# Each with a neighbour that it would match, and that begins like it
NAMES = {"w[1]": ["w1", "w[1]2"], "w?": ["wx", "w"], "w*": ["w1", "wide"], "w[1]?*": ["w1xy", "w[1]"]}
HELD = {"f": b"content", "sub/[g]": b"more", "manifest.json": b"{}"}
ARRAY = np.arange(5, dtype=np.int32)
PROPERTIES = {"url", "options", "timeout", "guards", "depth", "name", "local_path"}


def group(store):
    made = store.create_group({"n": 1}, "attempt")
    write_array(made, "numbers", ARRAY)
    store.open_group(writable=True).create_group("part")
    return sorted(made.keys()), read_array(store.open_group(), "numbers").tolist()


def group_that_is_cleared(store):
    store.create_group({"n": 1}, "attempt").create_group("[s]")
    actual = store.open_group(writable=True)
    del actual["[s]"]
    return list(actual.keys())


# One for each public method, at least: its name, and what calls it
OPERATIONS = {
    "__truediv__": lambda store: (store / "sub" / "[g]").exists(),
    "guarded": lambda store: store.guarded().remove(),
    "check": lambda store: store.check(),
    "check_links": lambda store: store.check_links("f"),
    "exists": lambda store: store.exists(),
    "children": lambda store: store.children(),
    "size": lambda store: (store.size("f"), (store / "sub").size("[g]"), store.size("none")),
    "sizes": lambda store: store.sizes(),
    "remove": lambda store: store.remove(),
    "remove below": lambda store: (store / "sub" / "[g]").remove(),
    "force_names": lambda store: store.force_names(),
    "read_bytes": lambda store: (store.read_bytes("f"), store.read_bytes("[f]")),
    "write_bytes": lambda store: store.write_bytes("f", b"new"),
    "create_bytes": lambda store: store.create_bytes("f", b"new"),
    "write_raw": lambda store: store.write_raw("f", ARRAY, named=True),
    "read_range": lambda store: store.read_range("f", 1, 3),
    "read_manifest": lambda store: (store.write_manifest({"n": 1}), store.read_manifest()),
    "write_manifest": lambda store: store.write_manifest({"n": 1}),
    "finish_manifest": lambda store: store.finish_manifest({"n": 1}),
    "create_manifest": lambda store: store.create_manifest({"n": 1}, "[x].json"),
    "create_group": group,
    "open_group": group_that_is_cleared,
}


def opened(kind, request, tmp_path):
    """Return an empty folder of a kind of store."""
    if kind == "local":
        return Store(str(tmp_path))
    if kind == "memory":
        return Store(f"memory://{tmp_path.name}")
    return Store(f"s3://bucket/{tmp_path.name}", request.getfixturevalue("s3"))


def fill(folder):
    for path, content in HELD.items():
        below, _, name = path.rpartition("/")
        (folder / below if below else folder).write_bytes(name, content)


def contents(folder):
    return {path: folder.read_bytes(path) for path in folder.sizes()}


def test_operations__are_all_that_a_store_has():
    public = {name for name, _ in inspect.getmembers(Store) if not name.startswith("_")} | {"__truediv__"}
    assert public - PROPERTIES == {name.partition(" ")[0] for name in OPERATIONS}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("kind", "name"), [*product(("memory", "local"), NAMES), ("s3", "w[1]?*")]
)  # one of s3: each is 300 requests
def test_operations__reach_what_is_named_alone(kind, name, request, tmp_path):
    top = opened(kind, request, tmp_path)
    for number, (operation, call) in enumerate(OPERATIONS.items()):
        place = top / str(number)
        for folder in ("plain", name, *NAMES[name]):
            fill(place / folder / "a")
        others = {folder: contents(place / folder) for folder in NAMES[name]}
        assert call(place / name / "a") == call(place / "plain" / "a"), operation
        assert contents(place / name) == contents(place / "plain"), operation
        assert {folder: contents(place / folder) for folder in NAMES[name]} == others, operation


def test_remove__leaves_no_folder_in_memory(tmp_path):
    folder = Store(f"memory://{tmp_path.name}") / "w[1]"
    fill(folder)
    fs, path = folder._filesystem()
    fs.makedirs(f"{path}/empty/[1]")
    folder.remove()
    assert not folder.exists()
    assert Store(f"memory://{tmp_path.name}").children() == []


def test_remove__ends_where_nothing_can_be_deleted(tmp_path, no_pauses, monkeypatch):
    folder = Store(f"memory://{tmp_path.name}")
    fill(folder)
    fs, _ = folder._filesystem()
    for method in ("rm", "rm_file"):
        monkeypatch.setattr(type(fs), method, lambda *args, **kwargs: None)  # as s3fs, which passes over refusals
    for place in (folder, folder / "sub" / "[g]"):
        with pytest.raises(StoreError, match="still there"):
            place.remove()


@pytest.mark.parametrize("end", ["?versionId=1", "?versionId=1/runs"])
def test_store__refuses_a_name_that_s3_takes_for_a_version_of_another(end):
    with pytest.raises(StoreError, match=r"takes 'bucket/w.versionId=1.*' for a version of 'bucket/w'"):
        Store(f"s3://bucket/w{end}", {"anon": True}).remove()


def test_zarr__deletes_what_is_named_alone(tmp_path):
    top = Store(f"memory://{tmp_path.name}")
    for name in ("[s]/c", "s/c"):
        top.write_bytes(name, b"chunk")
    store = literal.LiteralStore.from_url(top.url)
    sync(store.delete("[s]/[c]"))
    sync(store.delete_dir("[s]"))
    assert contents(top) == {"s/c": b"chunk"}
    sync(store.clear())
    assert contents(top) == {}
