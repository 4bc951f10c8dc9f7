"""An index in a version's folder: `index/` with its file, and a manifest that is written last.

The version stays what it is: nothing of it is changed, and it is whole with an index or without. Each building writes a
file of its own, which the manifest names; so two at once do not meet.
"""

import hashlib
import re
import uuid
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from daskw2v.errors import DamageError, StoreError
from daskw2v.intact import twice
from daskw2v.limits import check_file, check_room, refused, shown, typed
from daskw2v.models.index.graph import Bytes, check_graph
from daskw2v.storage import Store

_FOLDER = "index"


@dataclass(frozen=True)
class IndexSummary:
    """What is known of an index.

    Parameters
    ----------
    words, dimensions
        Of the vectors that it is of.
    connectivity, expansion
        It was built with.
    recall
        The share of the ten nearest words that it finds, with its default effort.
    queries
        Words that the recall was measured with.
    file, size, digest
        The file's name, its bytes, and their BLAKE2b.
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


def written(content: Bytes) -> tuple[str, int, str]:
    """Return what a summary says of the file with that content: a name that no other has, size and digest."""
    return uuid.uuid4().hex, len(content), _digest(content)


def write_index(version: Store, summary: IndexSummary, content: Bytes) -> None:
    """Write an index's file, then the manifest, by which it counts; the file that it named before is deleted."""
    place = version / _FOLDER
    before = (place.read_manifest() or {}).get("file")
    place.write_raw(summary.file, content)
    place.write_manifest(asdict(summary))
    if _is_ours(before):
        (place / str(before)).remove()


def read_summary(version: Store) -> IndexSummary:
    """Read what is known of a version's index.

    Raises
    ------
    StoreError
        If it has none, or its manifest is damaged.
    """
    place = version / _FOLDER
    values = place.read_manifest()
    if values is None:
        raise StoreError(f"{version.url} has no index.", f"Build it: daskw2v index {version.url}.")
    del values["format_version"]
    summary = typed(IndexSummary, values, f"{place.url}/manifest.json")
    if not _is_ours(summary.file):
        raise refused(f"{place.url}/manifest.json", f"names the file {shown(summary.file)}")
    return summary


def read_file(version: Store, summary: IndexSummary, shape: tuple[int, int]) -> Bytes:
    """Read an index's file.

    Raises
    ------
    StoreError
        If it is an index of other vectors than those of that shape, not what was written, or made to do harm.
    """
    place = f"{version.url}/{_FOLDER}/{summary.file}"
    if (summary.words, summary.dimensions) != shape:
        raise StoreError(
            f"The index of {version.url} is of {summary.words} words of {summary.dimensions} dimensions, its vectors "
            f"are {shape[0]} of {shape[1]}.",
            f"Build it again: daskw2v index {version.url}.",
        )
    check_room((summary.size,), ..., 1, place)
    if local := (version / _FOLDER).local_path:
        check_file(local, summary.file, summary.size)

    def read() -> Bytes:
        content = np.frombuffer((version / _FOLDER).read_range(summary.file, 0, summary.size), np.uint8)
        if _digest(content) != summary.digest:
            raise DamageError(
                f"{place} is not what was written.", f"Build it again: daskw2v index {version.url}.", url=place
            )
        return content

    content = twice(read)
    check_graph(content, *shape, place)
    return content


def _is_ours(file: Any) -> bool:
    return isinstance(file, str) and re.fullmatch("[0-9a-f]{32}", file) is not None


def _digest(content: Bytes) -> str:
    return hashlib.blake2b(content.data, digest_size=32).hexdigest()
