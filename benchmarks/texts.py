"""The text that benchmarks train on, and the sets that judge vectors: `DASKW2V_DATA`, default ../shared/data."""

import gzip
import math
import os
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import one_thread
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.shards.encode import build_corpus
from daskw2v.shards.layout import Corpus
from daskw2v.store.storage import Store
from daskw2v.vocabulary.count import StoredVocabulary, build_vocabulary

DATA = Path(os.environ.get("DASKW2V_DATA", "../shared/data"))
SIMILARITY = [DATA / "eval" / name for name in ("ws353.tsv", "simlex999.tsv")]
ANALOGY = [DATA / "eval" / "google_analogy.txt"]
MB = 10**6


def wiki_parts() -> list[Path]:
    """Return the files of ten parts of 10 MB of Wikipedia, and of twenty more of other text."""
    parts = [path for name in ("wiki", "wiki300") for path in sorted((DATA / "corpus" / name).glob("*.txt.gz"))]
    if not parts:
        sys.exit(f"No text below {DATA}/corpus/wiki: set DASKW2V_DATA to the folder of the evaluation data.")
    return parts


def name_of(parts: float) -> str:
    """Return what the first parts are called in records."""
    return f"{10 * parts:g} MB of Wikipedia"


def write_text(path: Path, parts: float) -> Path:
    """Write the first parts as one plain file: the lines of all of them, and of a share of the last.

    Raises
    ------
    ValueError
        If there are not so many: no text is written twice.
    """
    there = wiki_parts()
    if parts > len(there):
        raise ValueError(f"{parts:g} parts of 10 MB were asked for, and {len(there)} are there.")
    with path.open("wb") as out:
        for number, part in enumerate(there[: math.ceil(parts)]):
            out.write(first_lines(gzip.decompress(part.read_bytes()), parts - number))
    return path


def first_lines(text: bytes, share: float) -> bytes:
    """Return the whole lines of the first share of a text; all of it from 1 on."""
    return text if share >= 1 else text[: text.rfind(b"\n", 0, int(share * len(text))) + 1]


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
