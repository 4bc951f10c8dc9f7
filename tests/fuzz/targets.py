"""What is fuzzed: each target takes bytes, and may raise nothing but the package's own errors.

Seeds are made by code. A target of files has one file of a small valid folder replaced by the input: its first byte
says which.
"""

import gzip
import io
import itertools
import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import fsspec
import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner
from pyarrow import orc

from daskw2v.cli import main
from daskw2v.cli.config_file import read_config
from daskw2v.cli.facts import groups_of
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import read_block
from daskw2v.corpus.pieces import RawText, ReadReport
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.corpus.streams import decompressed
from daskw2v.corpus.tokenizers import make_tokenizer
from daskw2v.errors import Daskw2vError
from daskw2v.evaluation.categorization import read_classes
from daskw2v.evaluation.outliers import read_topics
from daskw2v.evaluation.pairs import read_pairs
from daskw2v.evaluation.relations import read_relations
from daskw2v.evaluation.texts import read_texts
from daskw2v.features.keys import FeatureKeys, NGrams
from daskw2v.models.composed import FeatureVectors
from daskw2v.models.difference import differences
from daskw2v.models.fasttext.quantized import write_quantized
from daskw2v.models.fasttext.writing import write_fasttext
from daskw2v.models.importing import import_vectors
from daskw2v.models.index.build import build_index
from daskw2v.models.index.vectors import IndexedVectors
from daskw2v.models.phrases import Phrases
from daskw2v.models.sources import read_sources, write_sources
from daskw2v.models.store import finish, ids_after, write_ids, write_subwords, write_vocabulary
from daskw2v.models.tables import create_model, write_partition, write_table_rows
from daskw2v.models.vectors import Vectors
from daskw2v.models.versions import Versions, publish
from daskw2v.models.word2vec import import_word2vec
from daskw2v.objectives.subwords.alphabet import Alphabet
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.sampling import context_matrix, skipgrams, weights
from daskw2v.sequences import graph
from daskw2v.sequences.rows import load_graph
from daskw2v.shards import layout
from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.store.arrays import write_array
from daskw2v.store.checksums import METADATA, checksum_of, with_checksum
from daskw2v.store.partfile import write_parts
from daskw2v.store.storage import Store
from daskw2v.vocabulary import count
from daskw2v.vocabulary.count import read_list
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.fuzz.fields import Fields

_TEXT = "the quick brown fox\njumps over\tthe lazy dog\r\n\n naïve 東京 \U0001f98a\n"
_TOKENIZERS = ("whitespace", "lower", "normalize", "regex:[a-z]+|.")
_ERRORS = ("strict", "replace", "skip")
_SEEDS = 7  # of a structure, of the changes of all its fields
_WORDS = ["king", "queen", "naïve", "東京"]


@dataclass(frozen=True)
class Target:
    """One reader or loader, and valid inputs that mutation starts from."""

    run: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]

    def __call__(self, data: bytes) -> None:
        """Run; errors of the package are what hostile input should end in."""
        with suppress(Daskw2vError):
            self.run(data)


def _memory(name: str, content: bytes) -> str:
    fsspec.filesystem("memory").pipe_file(f"/fuzz/{name}", content)
    return f"memory://fuzz/{name}"


def _read(name: str, data: bytes) -> None:
    """Read a file whole, by the rules that the first two bytes choose."""
    rules, content = data[:2].ljust(2, b"\0"), data[2:]
    sources = find_sources(_memory(name, content))
    for block in plan_blocks(sources, rules[0] + 1):
        pieces = read_block(
            block,
            column="text",
            errors=_ERRORS[rules[1] % 3],
            tokenizer=make_tokenizer(_TOKENIZERS[rules[1] // 3 % 4]),
            storage_options={},
            report=ReadReport(),
        )
        for piece in pieces:
            if not isinstance(piece, RawText):
                assert piece.starts[0] == 0
                assert piece.offsets[-1] == len(piece.data)
                assert (np.diff(piece.offsets) > 0).all()


def _with_rules(content: bytes) -> list[bytes]:
    return [bytes([size, choice]) + content for size in (7, 255) for choice in range(12)]


def _json_lines() -> bytes:
    lines = [{"text": "a b\ud800"}, {"text": ["a", 1]}, {"x": None}, {"text": [[{"y": 1e9}]]}]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _csv() -> bytes:
    return 'id,text\r\n1,a b\n2,"a ""naïve""\nb",c\n\n3\n4,"a,b"\n'.encode()


def _parquet(table: pa.Table, sink: pa.BufferOutputStream, compression: str | None) -> None:
    pq.write_table(table, sink, row_group_size=2, compression=compression or "none")


def _arrow(table: pa.Table, sink: pa.BufferOutputStream, compression: str | None) -> None:
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=2)


def _arrow_stream(table: pa.Table, sink: pa.BufferOutputStream, compression: str | None) -> None:
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=2)


def _orc(table: pa.Table, sink: pa.BufferOutputStream, compression: str | None) -> None:
    orc.write_table(table, sink, compression=compression or "uncompressed")


def _tables(write: Callable[[pa.Table, pa.BufferOutputStream, str | None], None]) -> list[bytes]:
    seeds = []
    for values in (["a b", None, "naïve", ""], [["a", "b"], [], None, ["c"]], [[1, 2], [3]]):
        for compression in (None, "zstd"):
            sink = pa.BufferOutputStream()
            write(pa.table({"text": values}), sink, compression)
            seeds.append(b"\xff\x01" + sink.getvalue().to_pybytes())
    return seeds


_KINDS = ("gzip", "bz2", "xz", "zstd")


def _decompress(data: bytes) -> None:
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/fuzz/packed", data[1:])
    with fs.open("/fuzz/packed") as file:
        kind = _KINDS[(data[:1] or b"\0")[0] % len(_KINDS)]
        for _, chunk in zip(range(1 << 10), decompressed(file, kind, "packed"), strict=False):  # bombs take long
            assert len(chunk) <= 1 << 17


def _packed() -> list[bytes]:
    packed = []
    for i, kind in enumerate(_KINDS):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/x"
            with fsspec.open(path, "wb", compression=kind) as file:
                file.write(_TEXT.encode() * 20)
            packed.append(bytes([i]) + Path(path).read_bytes())
    return [*packed, packed[0] + packed[0][1:]]


def _tokenize(data: bytes) -> None:
    tokenizer = make_tokenizer(_TOKENIZERS[(data[:1] or b"\0")[0] % 4])
    tokenizer(data[1:].decode(errors="replace").encode() + b"\n")


_KNOWN = Vectors(Vocabulary.from_words(["cat", "car"], [2, 1]), np.eye(2, dtype=np.float32))
_SETS = (read_pairs, read_relations, lambda url: read_classes(_KNOWN, url, {}), read_texts)
_EXAMPLES = (
    b"word1\tword2\tscore\nking\tqueen\t8.5\nsun-n,moon-n,7\n",
    b": capital\nAthens Greece Oslo Norway\n# x\n",
    b"cat\tanimal\ncar\tvehicle\n",
    b"1\tgood film\n0\tbad film\n",
)


def _evaluation_set(data: bytes) -> None:
    choice = (data[:1] or b"\0")[0]
    name = ("set.txt", "set.txt.gz")[choice // 8 % 2]
    if choice % 8 < len(_SETS):
        _SETS[choice % 8](_memory(name, data[1:]))
    else:
        list(read_topics(_memory("topics/a.txt", data[1:]).removesuffix("/a.txt"), {}))


def _evaluation_sets() -> list[bytes]:
    plain = [bytes([i]) + text for i, text in enumerate(_EXAMPLES)]
    topics = b"\x07king\nqueen\nthe tower\n\nfox\ncar\n"
    return [*plain, topics, *(bytes([i + 8]) + gzip.compress(text, mtime=0) for i, text in enumerate(_EXAMPLES))]


def _word2vec(data: bytes) -> None:
    binary, packed = (data[:1] or b"\0")[0] % 2 == 1, (data[:1] or b"\0")[0] // 2 % 2 == 1
    import_word2vec(_memory("vectors.gz" if packed else "vectors", data[1:]), binary=binary)


def _word2vecs() -> list[bytes]:
    text = b"2 2\nking 1.5 -2\nqueen 1e-3 4\n"
    numbers = np.arange(4, dtype="<f4").reshape(2, 2)
    binary = b"2 2\n" + b"".join(b"%s %s\n" % (w, r.tobytes()) for w, r in zip((b"a", b"b"), numbers, strict=True))
    return [b"\0" + text, b"\1" + binary, b"\2" + gzip.compress(text, mtime=0), b"\3" + gzip.compress(binary, mtime=0)]


def _fasttext(data: bytes) -> None:
    packed = (data[:1] or b"\0")[0] % 2 == 1
    vectors = import_vectors(_memory("model.bin.gz" if packed else "model.bin", data[1:]), "fasttext")
    if vectors.features is not None:
        vectors.features.keys.of_words(["king"])


def _fasttexts() -> list[bytes]:
    words, rows = Vocabulary.from_words(["a", "b"], [2, 1]), np.arange(8, dtype=np.float32).reshape(4, 2) + 1
    features = FeatureVectors(FeatureKeys(ngrams=NGrams(1, 3, 5), buckets=np.arange(4, dtype=np.int32)), rows)
    files = list[bytes]()
    models = (Vectors(words, rows[:2]), Vectors(words, rows[:2], features=features))
    for write, vectors in itertools.product((write_fasttext, write_quantized), models):
        file = io.BytesIO()
        write(vectors, file)
        files += [b"\0" + file.getvalue(), b"\1" + gzip.compress(file.getvalue(), mtime=0)]
    return files


def _word_list(data: bytes) -> None:
    kind = (data[:1] or b"\0")[0] % 3
    read_list(_memory(("words.txt", "words.txt.gz", "words.xz")[kind], data[1:]), Resources())


def _config(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        file.write(data)
        file.flush()
        values = read_config(Path(file.name))
    known = set(Params().as_dict())
    Params.from_dict({name: value for name, value in values.items() if name in known})
    Resources(**{name: value for name, value in values.items() if name not in known})


def _is_chunk(path: Path) -> bool:
    return "c" in path.parts


def _whole(path: Path, content: bytes) -> bytes:
    """Return what nobody takes for damaged, whatever it holds."""
    if _is_chunk(path):
        return content + google_crc32c.value(content).to_bytes(4, "little")
    try:
        values = json.loads(content)
        if path.name == METADATA:
            return with_checksum(content)
        unsealed = {name: value for name, value in values.items() if name != "seal"}
        return json.dumps({**unsealed, "seal": checksum_of(unsealed)}).encode()
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
        file.write_bytes(_whole(file, data[1:]))
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
    write_ids(store, ids_after(None, vocabulary))
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
        _ = layout.read_places(work, shard.path), layout.read_edges(work, shard.path)
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
        found, _ = graph.read_graph(home, home.read_manifest() or {})
        load_graph(home, found.names.size, found.rows)

    def vocabulary() -> None:
        found = count._find(work, "key", "identity")
        if found is not None:
            _ = found.load().words, found.read_counts()

    def pairs() -> None:
        found = skipgrams.read_skipgrams(work / "pairs")
        if found is not None:
            skipgrams.read_buckets(found.place, 0, 1, 0)

    _ask_each(
        load,
        vocabulary,
        pairs,
        lambda: context_matrix.read_contexts(context_matrix.open_matrix(work / "matrices/x").place, (0, 4), (0, 3)),
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
        lambda: [*groups_of(Vectors.open(folder, version="first"))],
        lambda: _compare_versions(folder),
        lambda: CliRunner().invoke(main, ["versions", "show", str(folder), "first"], catch_exceptions=False),
        lambda: CliRunner().invoke(main, ["versions", "list", str(folder)], catch_exceptions=False),
    )


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
    return Fields(folder.path / below, folder.read, _whole, pattern)


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
    "fields of partitions": (write_models, ask_version, "models/v0002-fuzz", "*.json"),
    "fields of versions": (write_models, ask_versions, "", "[mt]a*.json"),
    "fields of a corpus": (write_corpus, read_corpus, "", "*.json"),
    "fields of stages": (write_stages, read_stages, "", "manifest.json"),
}

TARGETS = {
    "text": Target(lambda data: _read("a.txt", data), lambda: _with_rules(_TEXT.encode())),
    "jsonl": Target(lambda data: _read("a.jsonl", data), lambda: _with_rules(_json_lines())),
    "csv": Target(lambda data: _read("a.csv", data), lambda: _with_rules(_csv())),
    "parquet": Target(lambda data: _read("a.parquet", data), lambda: _tables(_parquet)),
    "arrow": Target(lambda data: _read("a.arrow", data), lambda: _tables(_arrow)),
    "arrow stream": Target(lambda data: _read("a.arrows", data), lambda: _tables(_arrow_stream)),
    "orc": Target(lambda data: _read("a.orc", data), lambda: _tables(_orc)),
    "decompress": Target(_decompress, _packed),
    "tokenize": Target(_tokenize, lambda: [bytes([i]) + _TEXT.encode() for i in range(4)]),
    "sets": Target(_evaluation_set, _evaluation_sets),
    "words": Target(_word_list, lambda: [b"\0king\nqueen\n", b"\1" + gzip.compress(b"king\n", mtime=0)]),
    "word2vec": Target(_word2vec, _word2vecs),
    "fasttext": Target(_fasttext, _fasttexts),
    "config": Target(_config, lambda: [b"vector_size = 200\nworkers = 2\nalpha = 0.1\n[storage_options]\nkey = 'x'\n"]),
    "model": _of_folder(write_model, ask_model),
    "corpus": _of_folder(write_corpus, read_corpus),
    **{name: _of_fields(name) for name in STRUCTURES},
}
