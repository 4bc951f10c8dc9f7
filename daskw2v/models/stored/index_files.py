"""The files of an index in a version's folder: `index/` with one file, and a manifest that is written last.

usearch does not check the links in its file. So the manifest has the file's checksum, and a file that does not match it
is refused before usearch reads it. A checksum detects damage, not attacks: trust an index only as you trust code.

The version itself does not change and is complete without an index. Each build writes a file with a new name, which
the manifest names, so that concurrent builds do not interfere. One build at a time, the holder of a lease, writes the
manifest and deletes the previous file.
"""

import hashlib
import re
import uuid
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from daskw2v.errors import DamageError, StoreError
from daskw2v.models.stored.store import read_attempt
from daskw2v.store.checksums import retry_damaged
from daskw2v.store.lease import hold
from daskw2v.store.limits import check_file, check_room, refused, shown, typed
from daskw2v.store.storage import Store
from daskw2v.types import UInt8Array

FOLDER = "index"
KINDS = ("hnsw", "int8", "binary", "product")  # of `models.index.kinds`, a layer above this one


@dataclass(frozen=True)
class IndexSummary:
    """Summary of an index, its manifest.

    Parameters
    ----------
    words, dimensions
        Number of words, and of dimensions of their vectors.
    connectivity, expansion
        Arguments of `build_index`; 0 where its kind does not read them.
    recall
        Share of the ten nearest words, 0..1, that it finds with the default effort.
    queries
        Number of words that the recall was measured with.
    file, size, digest
        Name of its file in `index/`, size in bytes, and BLAKE2b digest.
    version
        Attempt, a random name, of the version whose vectors the index has, as `read_attempt` returns it.
    kind
        Kind of index, one of `KINDS`.
    """

    words: int
    dimensions: int
    connectivity: int
    expansion: int
    recall: float
    queries: int
    file: str
    size: int
    digest: str
    version: str = ""
    kind: str = "hnsw"


def describe_file(content: UInt8Array) -> tuple[str, int, str]:
    """Return a new unique name, the size in bytes and the digest of a file with a content, for its `IndexSummary`."""
    return uuid.uuid4().hex, len(content), _digest(content)


def write_index(version: Store, summary: IndexSummary, content: UInt8Array) -> None:
    """Write the file of an index, then its manifest, which makes it valid; then delete the file of the old manifest.

    One process at a time writes: it holds a lease in the folder of the index.

    Raises
    ------
    StoreError
        If another process takes over the lease meanwhile.
    """
    description = f"the index of {version.url}"
    with hold(version / FOLDER, "index", description, waiting=lambda message: None) as lease:
        folder = lease.guard(version / FOLDER)
        old_file = (folder.read_manifest() or {}).get("file")
        folder.write_raw(summary.file, content, named=True)
        folder.write_manifest(asdict(summary))
        if _is_file_name(old_file):
            (folder / str(old_file)).remove()


def read_summary(version: Store) -> IndexSummary:
    """Read the summary of a version's index.

    Raises
    ------
    StoreError
        If the version has no index, its manifest is damaged, or it is of another version.
    """
    folder = version / FOLDER
    values = folder.read_manifest()
    if values is None:
        raise StoreError(f"{version.url} has no index.", f"Build it: daskw2v index {version.url}.")
    del values["format_version"]
    summary = typed(IndexSummary, values, f"{folder.url}/manifest.json")
    if not _is_file_name(summary.file):
        raise refused(f"{folder.url}/manifest.json", f"names the file {shown(summary.file)}")
    if summary.kind not in KINDS:
        raise refused(f"{folder.url}/manifest.json", f"names the kind {shown(summary.kind)}")
    if summary.version != read_attempt(version):
        problem = f"The index in {folder.url} is of another version."
        raise DamageError(problem, f"Build it again: daskw2v index {version.url}.", url=f"{folder.url}/manifest.json")
    return summary


def read_file(version: Store, summary: IndexSummary, shape: tuple[int, int]) -> UInt8Array:
    """Read the content of the file of a version's index, and check it; `shape` is words and dimensions of the model.

    Raises
    ------
    StoreError
        If the index has another shape, the file is damaged, missing or too large, or memory does not suffice.
    """
    url = f"{version.url}/{FOLDER}/{summary.file}"
    if (summary.words, summary.dimensions) != shape:
        raise StoreError(
            f"The index of {version.url} has {summary.words} words of {summary.dimensions} dimensions, the model "
            f"{shape[0]} of {shape[1]}.",
            f"Build it again: daskw2v index {version.url}.",
        )
    check_room((summary.size,), ..., 1, url)
    if local := (version / FOLDER).local_path:
        check_file(local, summary.file, summary.size)

    def read() -> UInt8Array:
        content = np.frombuffer((version / FOLDER).read_range(summary.file, 0, summary.size), np.uint8)
        if _digest(content) != summary.digest:
            problem = f"{url} is not what was written: its checksum differs."
            raise DamageError(problem, f"Build it again: daskw2v index {version.url}.", url=url)
        return content

    return retry_damaged(read)


def _is_file_name(file: Any) -> bool:
    """Return whether a value of a manifest is a file name that `describe_file` makes."""
    return isinstance(file, str) and re.fullmatch("[0-9a-f]{32}", file) is not None


def _digest(content: UInt8Array) -> str:
    """Return the BLAKE2b digest of a content, as hexadecimal digits."""
    return hashlib.blake2b(content.data, digest_size=32).hexdigest()
