"""Writes FAISS's format of a flat index of inner products: a header, and the vectors.

The faiss package is not used, because its index would hold all vectors in memory first.
"""

import struct
from collections.abc import Mapping
from typing import Any

from daskw2v.models.formats.safetensors import write_numbers
from daskw2v.models.formats.word2vec import refuse_words
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import scaled
from daskw2v.models.stored.files import writing

_INNER_PRODUCT = 0  # METRIC_INNER_PRODUCT
_UNUSED = 1 << 20  # faiss writes this number twice, and does not read it
# write_index_header and write_index in faiss/impl/index_write.cpp: kind of index, dimensions, vectors, unused twice,
# whether trained, metric, numbers that follow
_HEADER = struct.Struct("<4siqqq?iQ")


def write_faiss(vectors: Vectors, url: str, storage_options: Mapping[str, Any] | None) -> None:
    """Write the index of unit vectors, and beside it `<url>.words`, one word a line in order of ids.

    Raises
    ------
    InputError
        If a word holds a line break.
    """
    refuse_words(vectors, r"[\r\n]", "A list of lines")
    with writing(f"{url}.words", storage_options) as f:
        for ids in vectors.slices():
            f.writelines(f"{word}\n".encode() for word in vectors.vocabulary.between(ids.start, ids.stop))
    with writing(url, storage_options) as f:
        words, size = len(vectors), vectors.vector_size
        f.write(_HEADER.pack(b"IxFI", size, words, _UNUSED, _UNUSED, True, _INNER_PRODUCT, words * size))
        for ids in vectors.slices():
            write_numbers(f, scaled(vectors.rows(ids)))
