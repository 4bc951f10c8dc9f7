"""Readers of text, evaluation sets and files of vectors, as targets of fuzzing, and valid inputs of each."""

import gzip
import io
import itertools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from daskw2v.cli.config_file import read_config
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.formats import read_block
from daskw2v.corpus.pieces import RawText, ReadReport
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.corpus.streams import decompressed
from daskw2v.corpus.tokenizers import make_tokenizer
from daskw2v.evaluation.analogy import read_relations
from daskw2v.evaluation.categorization import read_classes
from daskw2v.evaluation.classification import read_texts
from daskw2v.evaluation.outliers import read_topics
from daskw2v.evaluation.similarity import read_pairs
from daskw2v.features.keys import FeatureKeys, HashedNGrams
from daskw2v.features.table import TableFeatures, check_table, read_table
from daskw2v.models.formats.fasttext import write_fasttext, write_quantized
from daskw2v.models.formats.importing import import_vectors
from daskw2v.models.formats.word2vec import import_word2vec
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary
from daskw2v.vocabulary.word_lists import read_list

TEXT = "the quick brown fox\njumps over\tthe lazy dog\r\n\n naïve 東京 \U0001f98a\n"
_TOKENIZERS = ("whitespace", "lower", "normalize", "regex:[a-z]+|.")
_ERRORS = ("strict", "replace", "skip")


def _memory(name: str, content: bytes) -> str:
    fsspec.filesystem("memory").pipe_file(f"/fuzz/{name}", content)
    return f"memory://fuzz/{name}"


def read_text_file(name: str, data: bytes) -> None:
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


def with_rules(content: bytes) -> list[bytes]:
    return [bytes([size, choice]) + content for size in (7, 255) for choice in range(12)]


def json_lines_seed() -> bytes:
    lines = [{"text": "a b\ud800"}, {"text": ["a", 1]}, {"x": None}, {"text": [[{"y": 1e9}]]}]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def csv_seed() -> bytes:
    return 'id,text\r\n1,a b\n2,"a ""naïve""\nb",c\n\n3\n4,"a,b"\n'.encode()


def to_parquet(table: pa.Table, sink: pa.BufferOutputStream, compression: str | None) -> None:
    pq.write_table(table, sink, row_group_size=2, compression=compression or "none")


def to_arrow(table: pa.Table, sink: pa.BufferOutputStream, compression: str | None) -> None:
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=2)


def to_arrow_stream(table: pa.Table, sink: pa.BufferOutputStream, compression: str | None) -> None:
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=2)


def to_orc(table: pa.Table, sink: pa.BufferOutputStream, compression: str | None) -> None:
    orc.write_table(table, sink, compression=compression or "uncompressed")


def table_seeds(write: Callable[[pa.Table, pa.BufferOutputStream, str | None], None]) -> list[bytes]:
    seeds = []
    for values in (["a b", None, "naïve", ""], [["a", "b"], [], None, ["c"]], [[1, 2], [3]]):
        for compression in (None, "zstd"):
            sink = pa.BufferOutputStream()
            write(pa.table({"text": values}), sink, compression)
            seeds.append(b"\xff\x01" + sink.getvalue().to_pybytes())
    return seeds


_KINDS = ("gzip", "bz2", "xz", "zstd")


def decompress(data: bytes) -> None:
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/fuzz/packed", data[1:])
    with fs.open("/fuzz/packed") as file:
        kind = _KINDS[(data[:1] or b"\0")[0] % len(_KINDS)]
        for _, chunk in zip(range(1 << 10), decompressed(file, kind, "packed"), strict=False):  # bombs take long
            assert len(chunk) <= 1 << 17


def packed_seeds() -> list[bytes]:
    packed = []
    for i, kind in enumerate(_KINDS):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/x"
            with fsspec.open(path, "wb", compression=kind) as file:
                file.write(TEXT.encode() * 20)
            packed.append(bytes([i]) + Path(path).read_bytes())
    return [*packed, packed[0] + packed[0][1:]]


def tokenize(data: bytes) -> None:
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


def read_evaluation_set(data: bytes) -> None:
    choice = (data[:1] or b"\0")[0]
    name = ("set.txt", "set.txt.gz")[choice // 8 % 2]
    if choice % 8 < len(_SETS):
        _SETS[choice % 8](_memory(name, data[1:]))
    else:
        list(read_topics(_memory("topics/a.txt", data[1:]).removesuffix("/a.txt"), {}))


def evaluation_set_seeds() -> list[bytes]:
    plain = [bytes([i]) + text for i, text in enumerate(_EXAMPLES)]
    topics = b"\x07king\nqueen\nthe tower\n\nfox\ncar\n"
    return [*plain, topics, *(bytes([i + 8]) + gzip.compress(text, mtime=0) for i, text in enumerate(_EXAMPLES))]


def read_word2vec(data: bytes) -> None:
    binary, packed = (data[:1] or b"\0")[0] % 2 == 1, (data[:1] or b"\0")[0] // 2 % 2 == 1
    import_word2vec(_memory("vectors.gz" if packed else "vectors", data[1:]), binary=binary)


def word2vec_seeds() -> list[bytes]:
    text = b"2 2\nking 1.5 -2\nqueen 1e-3 4\n"
    numbers = np.arange(4, dtype="<f4").reshape(2, 2)
    binary = b"2 2\n" + b"".join(b"%s %s\n" % (w, r.tobytes()) for w, r in zip((b"a", b"b"), numbers, strict=True))
    return [b"\0" + text, b"\1" + binary, b"\2" + gzip.compress(text, mtime=0), b"\3" + gzip.compress(binary, mtime=0)]


def read_fasttext(data: bytes) -> None:
    packed = (data[:1] or b"\0")[0] % 2 == 1
    vectors = import_vectors(_memory("model.bin.gz" if packed else "model.bin", data[1:]), "fasttext")
    if vectors.features is not None:
        vectors.features.keys.find_ngrams(["king"])


def fasttext_seeds() -> list[bytes]:
    words, rows = Vocabulary.from_words(["a", "b"], [2, 1]), np.arange(8, dtype=np.float32).reshape(4, 2) + 1
    features = FeatureVectors(FeatureKeys(ngrams=HashedNGrams(1, 3, 5), buckets=np.arange(4, dtype=np.int32)), rows)
    files = list[bytes]()
    models = (Vectors(words, rows[:2]), Vectors(words, rows[:2], features=features))
    for write, vectors in itertools.product((write_fasttext, write_quantized), models):
        file = io.BytesIO()
        write(vectors, file)
        files += [b"\0" + file.getvalue(), b"\1" + gzip.compress(file.getvalue(), mtime=0)]
    return files


def read_features(name: str, data: bytes) -> None:
    """Check a table of features, and collect those of some words."""
    (source,) = find_sources(_memory(name, data))
    check_table(name, [source], {}, 60, {})
    table = TableFeatures(Vocabulary.from_words(["a", "b", "c"], [3, 2, 1]), {})
    for words, columns in read_table(source, {}, 60):
        table.add(words, columns, source.url)
    table.finish()


def feature_seeds(write: Callable[[pa.Table, pa.BufferOutputStream, str | None], None]) -> list[bytes]:
    columns = {
        "item": ["a", "b", "z"],
        "brand": pa.array(["x", None, "y"]).dictionary_encode(),
        "tags": [["p", "q"], [], None],
        "price": [1.5, None, -2.0],
        "year": [1999, 2000, None],
    }
    sink = pa.BufferOutputStream()
    write(pa.table(columns), sink, None)
    return [sink.getvalue().to_pybytes()]


def read_word_list(data: bytes) -> None:
    kind = (data[:1] or b"\0")[0] % 3
    read_list(_memory(("words.txt", "words.txt.gz", "words.xz")[kind], data[1:]), Resources())


def read_config_file(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        file.write(data)
        file.flush()
        values = read_config(Path(file.name))
    known = set(Params().as_dict())
    Params.from_dict({name: value for name, value in values.items() if name in known})
    Resources(**{name: value for name, value in values.items() if name not in known})
