"""Small valid folders as targets of fuzzing: what writes them, and what asks all that can be asked of them."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import google_crc32c
import numpy as np

from daskw2v.cli.models import make_groups
from daskw2v.config.params import Params
from daskw2v.corpus.files import Source
from daskw2v.corpus.pieces import ReadReport
from daskw2v.errors import Daskw2vError
from daskw2v.features.keys import FeatureColumn, FeatureKeys, HashedNGrams
from daskw2v.models.index.vectors import IndexedVectors, build_index
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.store import (
    assign_stable_ids,
    finish,
    read_sources,
    write_features,
    write_ids,
    write_sources,
    write_subwords,
    write_vocabulary,
)
from daskw2v.models.stored.tables import create_model, write_partition, write_table_rows
from daskw2v.models.versions.difference import differences
from daskw2v.models.versions.phrases import Phrases
from daskw2v.models.versions.versions import Versions, publish
from daskw2v.objectives.subwords.network import Alphabet, Subwords
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.sampling import context_matrix, skipgrams, weights
from daskw2v.sequences import graph
from daskw2v.sequences.rows import load_graph
from daskw2v.shards import layout
from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.store.arrays import write_array
from daskw2v.store.checksums import METADATA, add_checksum, compute_checksum
from daskw2v.store.partfile import write_parts
from daskw2v.store.storage import Store
from daskw2v.vocabulary import count
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke

_WORDS = ["king", "queen", "naïve", "東京"]


def _is_chunk(path: Path) -> bool:
    return "c" in path.parts


def whole(path: Path, content: bytes) -> bytes:
    """Return what nobody takes for damaged, whatever it holds."""
    if _is_chunk(path):
        return content + google_crc32c.value(content).to_bytes(4, "little")
    try:
        values = json.loads(content)
        if path.name == METADATA:
            return add_checksum(content)
        unsealed = {name: value for name, value in values.items() if name != "seal"}
        return json.dumps({**unsealed, "seal": compute_checksum(unsealed)}).encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return content


@dataclass(frozen=True)
class Folder:
    """A small valid folder, and what reads it."""

    path: Path
    read: Callable[[Path], object]

    @property
    def files(self) -> list[Path]:
        """All files, sorted."""
        return sorted(path for path in self.path.rglob("*") if path.is_file())

    def seeds(self) -> list[bytes]:
        """Return each file's content behind its number, chunks without their checksums."""
        contents = [path.read_bytes()[: -4 if _is_chunk(path) else None] for path in self.files]
        return [bytes([i]) + content for i, content in enumerate(contents)]

    def run(self, data: bytes) -> None:
        """Read the folder with one file replaced, which has the seal or checksum that belongs to it."""
        file = self.files[(data[:1] or b"\0")[0] % len(self.files)]
        before = file.read_bytes()
        file.write_bytes(whole(file, data[1:]))
        try:
            self.read(self.path)
        finally:
            file.write_bytes(before)


def write_model(folder: Path) -> Store:
    """Write a model of four words with ids and a small network, published; return its version's place."""
    models, version = Store(str(folder / "models")), "v0001-fuzz"
    store = models / version
    create_model(store, {"input": (4, 3), "output": (4, 3)}, 2)
    for table in ("input", "output"):
        write_table_rows(store, table, 0, np.arange(12, dtype=np.float32).reshape(4, 3))
    vocabulary = Vocabulary.from_words(_WORDS, [4, 3, 2, 1])
    write_vocabulary(store, vocabulary)
    write_ids(store, assign_stable_ids(None, vocabulary))
    alphabet = Alphabet("aeg")
    write_subwords(store, Subwords(alphabet, initial_weights(3, len(alphabet), 1)))
    publish(models, version, {"params": {"epochs": 1}})
    return store


def ask_model(folder: Path) -> None:
    """Open a model and ask it."""
    vectors = Vectors.open(folder)
    vectors.most_similar("king")
    _ = vectors.vocabulary.words, repr(vectors), "new" in vectors, vectors["queen"]


def write_corpus(folder: Path) -> Store:
    """Write a corpus of one shard; return the work directory."""
    work, dictionary = Store(str(folder)), Dictionary()
    data = padded(b"king queen king")
    codes = [dictionary.encode(data, np.array([0, 5, 11]), np.array([4, 10, 15]))]
    path = "shards/x/y/0"
    numbers = layout.write_shard(work / path, codes, np.zeros(1, np.int64), dictionary)
    source = layout.Source("/text", 16, "1", "text", None)
    layout.Corpus("00", (layout.Shard(path, **numbers),), (source,), ReadReport()).save(work)
    return work


def read_corpus(folder: Path) -> None:
    """Load a corpus and read its shards."""
    work = Store(str(folder))
    corpus = layout.Corpus.find(work, "00")
    if corpus is None:
        return
    _ = corpus.n_tokens, corpus.name
    for shard in corpus.shards:
        _ = layout.open_codes(work, shard)[0:100], layout.read_starts(work, shard)
        _ = layout.read_word_indices(work, shard.path), layout.read_edges(work, shard.path)
        layout.read_words(work, shard.path, 0, shard.n_types)


def write_models(folder: Path) -> Store:
    """Write a work directory with two versions: all that a version may have, and a table in partitions."""
    store = write_model(folder)
    phrases = store.open_group(writable=True).create_group("phrases/0/0")
    words = np.frombuffer(b"newyork", np.uint8)
    for name, values in {"words": words, "offsets": np.array([0, 3, 7]), "counts": np.array([5])}.items():
        write_array(phrases, name, values)
    write_array(phrases, "scores", np.array([2.5]))
    write_sources(store, [Source("/text", 16, "1", "text", None)])
    passes = [{"delimiter": "_", "pieces": 1, "n_phrases": 1, "n_bigrams": 2, "scoring": "default"}]
    finish(store, {"params": Params().as_dict(), "phrases": passes, "metrics": {"loss": 0.5, "seconds": 1.0}})
    if find_spec("usearch"):
        build_index(store.url, threads=1)
    models = folder / "models"
    parted = Store(str(models)) / "v0002-fuzz"
    create_model(parted, {"input": (4, 3)}, 2, 2)
    for part in range(2):
        write_partition(parted, "input", part, np.ones((2, 3), np.float32))
    write_vocabulary(parted, Vocabulary.from_words(_WORDS, [4, 3, 2, 1]))
    publish(Store(str(models)), "v0002-fuzz", {"params": {"epochs": 2}})
    Versions.open(folder).tag("v0001-fuzz", "first")
    return store


def write_features_model(folder: Path) -> Store:
    """Write a model with rows of a table's values and of n-grams, published; return its version's place."""
    models, version = Store(str(folder / "models")), "v0001-fuzz"
    store = models / version
    columns = (FeatureColumn("brand", 2.0, values=("acme", "東京")), FeatureColumn("price", 1.0, knots=(0.5, 2.0)))
    keys = FeatureKeys(columns, HashedNGrams(2, 3, 50), np.array([3, 17, 40], np.int32))
    create_model(store, {"input": (4, 3), "features": (len(keys), 3)}, 2)
    for table, rows in {"input": 4, "features": len(keys)}.items():
        write_table_rows(store, table, 0, np.arange(1, 3 * rows + 1, dtype=np.float32).reshape(rows, 3))
    write_vocabulary(store, Vocabulary.from_words(_WORDS, [4, 3, 2, 1]))
    write_features(store, keys)
    publish(models, version, {"params": {"epochs": 1}})
    return store


def ask_features(folder: Path) -> None:
    """Ask a model for vectors of words and items that it has not seen, and prune it."""
    _ask_each(
        lambda: ask_model(folder),
        lambda: Vectors.open(folder)["kings"],
        lambda: Vectors.open(folder, in_memory=True).of_features({"brand": ["acme", "other"], "price": 1.0}),
        lambda: Vectors.open(folder).prune(1)["kings"],
    )


def write_stages(folder: Path) -> Store:
    """Write what stages leave in a work directory: a vocabulary, a graph, a matrix, skip-grams and counts."""
    work = Store(str(folder))
    home = work / "vocabulary/key"
    words = Vocabulary.from_words(_WORDS, [4, 3, 2, 1])
    words.save((home / "build/chosen/b").create_group())
    for name in ("plan/a", "maps/0/c"):
        (home / "build" / name).create_group()
    counts = {"size": 4, "total": 10, "raw_words": 11, "raw_types": 5, "missing": 1}
    names = {"build": "build", "plan": "a", "chosen": "b", "maps": ["c"], "missing_words": ["fox"], "seconds": 0.5}
    home.write_manifest({**counts, **names})

    graph = work / "graphs/x"
    rows = (graph / "rows/0/a").create_group()
    for name, values in {
        "degrees": [2, 0, 1],
        "targets": np.array([1, 2, 0], np.int32),
        "weights": [0.5, 2, 1],
    }.items():
        write_array(rows, name, np.asarray(values))
    graph.write_manifest({"names": ["names/a", 3], "rows": [["rows/0/a", 3, False]], "name_bytes": 12})

    matrix = work / "matrices/x"
    contexts = (matrix / "build/matrix").create_group()
    write_array(contexts, "contexts", np.zeros((4, 3), np.int32))
    sizes = {"build": "build", "words": 4, "context_size": 3, "text_words": 10, "pairs": 12, "seconds": 0.5}
    text = {
        "identity": "00",
        "reading": "11",
        "tokens": 10,
        "sources": [asdict(Source("/text", 16, "1", "text", None))],
    }
    matrix.write_manifest({**sizes, "generation": 0, "text": text})

    for name in ("pairs", "noise"):
        write_parts(work / "pairs/0/a", name, [0, 2, 2, 3, 3], np.zeros(3, np.uint32))
    pairs = {"n_partitions": 2, "dtype": "uint32", "attempts": ["a"], "words": 10, "pairs": 3, "noise": 3}
    (work / "pairs").write_manifest(pairs)
    (work / "weights/0/a").create_group()
    (work / "weights").write_manifest({"group": 2, "attempts": ["a"], "weights": [1.5, 2.5]})
    return work


def read_stages(folder: Path) -> None:
    """Read all of it, as a run does that finds it."""
    work = Store(str(folder))

    def load() -> None:
        home = work / "graphs/x"
        found = graph.read_graph(home, home.read_manifest() or {})
        load_graph(home, found.n_nodes, found.rows)

    def vocabulary() -> None:
        found = count._find(work, "key", "identity")
        if found is not None:
            _ = found.load().words, found.read_counts()

    def pairs() -> None:
        found = skipgrams.read_skipgrams(work / "pairs")
        if found is not None:
            skipgrams.read_buckets(found.stored, 0, 1, 0)

    def contexts() -> None:
        matrix = context_matrix.find_matrix(work / "matrices/x")
        if matrix is not None:
            context_matrix.read_contexts(matrix.group, (0, 4), (0, 3))

    _ask_each(
        load,
        vocabulary,
        pairs,
        contexts,
        lambda: context_matrix.read_base(work / "matrices/x"),
        lambda: weights.read_partition_counts(work / "weights"),
    )


def _ask_each(*asked: Callable[[], object]) -> None:
    for ask in asked:
        with suppress(Daskw2vError):
            ask()


def ask_version(version: Path) -> None:
    """Ask all that can be asked of one version."""
    _ask_each(
        lambda: ask_model(version),
        lambda: Phrases.open(version).apply(["new", "york"]),
        lambda: read_sources(Store(str(version))),
        lambda: find_spec("usearch") and IndexedVectors.open(version).nearest([1.0, 2.0, 3.0]),
    )


def _compare_versions(folder: Path) -> None:
    every = Versions.open(folder)
    _ = [(version.created, version.tags, version.words) for version in every.all()]
    _ = every.newest_with_ids()
    differences(every, every.find("v0001-fuzz"), every.find("v0002-fuzz")).as_dict()


def ask_versions(folder: Path) -> None:
    """Ask all that can be asked of the versions of a work directory."""
    _ask_each(
        lambda: [*make_groups(Vectors.open(folder, version="first"))],
        lambda: _compare_versions(folder),
        lambda: invoke("versions", "show", str(folder), "first", catch_exceptions=False),
        lambda: invoke("versions", "list", str(folder), catch_exceptions=False),
    )


_written: list[Path] = []
