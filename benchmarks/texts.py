"""Text that several benchmarks train on: a plain file, and the same encoded."""

from pathlib import Path
from typing import NamedTuple

from benchmarks.common import one_thread, write_text
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.shards.encode import build_corpus
from daskw2v.shards.layout import Corpus
from daskw2v.store.storage import Store
from daskw2v.vocabulary.count import StoredVocabulary, build_vocabulary


class Text(NamedTuple):
    """A plain file, and the same as encoded in a work directory."""

    path: Path
    work: Store
    corpus: Corpus
    vocabulary: StoredVocabulary


def encode(folder: Path, parts: float, params: Params | None = None) -> Text:
    """Write the first parts of the corpus, and encode them."""
    return encode_file(write_text(folder / "wiki.txt", parts), Store(f"{folder}/work"), params or Params())


def encode_file(path: Path, work: Store, params: Params) -> Text:
    """Encode a file; Params say which words are known."""
    resources = Resources()
    with one_thread() as client:
        corpus = build_corpus(path, work, params, resources, client)
        return Text(path, work, corpus, build_vocabulary(corpus, work, params, resources, client))
