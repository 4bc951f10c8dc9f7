"""What is fuzzed: each target takes bytes, and may raise nothing but the package's own errors.

Seeds are made by code. A target of files has one file of a small valid folder replaced by the input: its first byte
says which.
"""

import gzip
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from daskw2v.store.storage import Store
from tests.fuzz import files
from tests.fuzz.fields import Fields
from tests.fuzz.folders import (
    Folder,
    ask_features,
    ask_model,
    ask_version,
    ask_versions,
    read_corpus,
    read_stages,
    whole,
    write_corpus,
    write_features_model,
    write_model,
    write_models,
    write_stages,
)
from tests.support.refusals import refusal

_SEEDS = 7  # of a structure, of the changes of all its fields


@dataclass(frozen=True)
class Target:
    """One reader or loader, and valid inputs that mutation starts from."""

    run: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]

    def __call__(self, data: bytes) -> str | None:
        """Run; return the problem of the package's error, which hostile input should end in, or None."""
        return refusal(self.run, data)


_written: list[Path] = []


@cache
def _folder(write: Callable[[Path], Store], read: Callable[[Path], object]) -> Folder:
    path = Path(tempfile.mkdtemp(prefix="daskw2v-fuzz-"))
    _written.append(path)
    write(path)
    return Folder(path, read)


def _of_folder(write: Callable[[Path], Store], read: Callable[[Path], object]) -> Target:
    return Target(lambda data: _folder(write, read).run(data), lambda: _folder(write, read).seeds())


def fields_of(name: str) -> Fields:
    """Return the fields of a target's files."""
    write, read, below, pattern = STRUCTURES[name]
    folder = _folder(write, read)
    return Fields(folder.path / below, folder.read, whole, pattern)


def _of_fields(name: str) -> Target:
    def seeds() -> list[bytes]:
        every = fields_of(name).every()
        return every[:: len(every) // _SEEDS]

    return Target(lambda data: fields_of(name).run(data), seeds)


def clean() -> None:
    """Remove the folders that targets wrote."""
    while _written:
        shutil.rmtree(_written.pop())
    _folder.cache_clear()


# What writes the files, what reads them, the folder that is read, and the names of the files
STRUCTURES: dict[str, tuple[Callable[[Path], Store], Callable[[Path], object], str, str]] = {
    "fields of a version": (write_models, ask_version, "models/v0001-fuzz", "*.json"),
    "fields of features": (write_features_model, ask_features, "models/v0001-fuzz", "*.json"),
    "fields of partitions": (write_models, ask_version, "models/v0002-fuzz", "*.json"),
    "fields of versions": (write_models, ask_versions, "", "[mt]a*.json"),
    "fields of a corpus": (write_corpus, read_corpus, "", "*.json"),
    "fields of stages": (write_stages, read_stages, "", "manifest.json"),
}

TARGETS = {
    "text": Target(lambda data: files.read_text_file("a.txt", data), lambda: files.with_rules(files.TEXT.encode())),
    "jsonl": Target(
        lambda data: files.read_text_file("a.jsonl", data), lambda: files.with_rules(files.json_lines_seed())
    ),
    "csv": Target(lambda data: files.read_text_file("a.csv", data), lambda: files.with_rules(files.csv_seed())),
    "parquet": Target(
        lambda data: files.read_text_file("a.parquet", data), lambda: files.table_seeds(files.to_parquet)
    ),
    "arrow": Target(lambda data: files.read_text_file("a.arrow", data), lambda: files.table_seeds(files.to_arrow)),
    "arrow stream": Target(
        lambda data: files.read_text_file("a.arrows", data), lambda: files.table_seeds(files.to_arrow_stream)
    ),
    "orc": Target(lambda data: files.read_text_file("a.orc", data), lambda: files.table_seeds(files.to_orc)),
    "decompress": Target(files.decompress, files.packed_seeds),
    "tokenize": Target(files.tokenize, lambda: [bytes([i]) + files.TEXT.encode() for i in range(4)]),
    "sets": Target(files.read_evaluation_set, files.evaluation_set_seeds),
    "words": Target(files.read_word_list, lambda: [b"\0king\nqueen\n", b"\1" + gzip.compress(b"king\n", mtime=0)]),
    "word2vec": Target(files.read_word2vec, files.word2vec_seeds),
    "fasttext": Target(files.read_fasttext, files.fasttext_seeds),
    "features, parquet": Target(
        lambda data: files.read_features("features.parquet", data), lambda: files.feature_seeds(files.to_parquet)
    ),
    "features, csv": Target(
        lambda data: files.read_features("features.csv", data),
        lambda: [b'item,brand,price,year\na,x,1.5,1999\nb,,2.5,2000\n"z",y,,\n'],
    ),
    "config": Target(
        files.read_config_file, lambda: [b"vector_size = 200\nworkers = 2\nalpha = 0.1\n[storage_options]\nkey = 'x'\n"]
    ),
    "model": _of_folder(write_model, ask_model),
    "model of features": _of_folder(write_features_model, ask_features),
    "corpus": _of_folder(write_corpus, read_corpus),
    **{name: _of_fields(name) for name in STRUCTURES},
}
