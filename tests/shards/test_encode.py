import gzip
import importlib
import sys
from itertools import pairwise

import pyarrow as pa
import pytest
from distributed import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus import streams
from daskw2v.corpus.files import Batch
from daskw2v.corpus.pieces import RawText, make_tokens
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.errors import InputError, ParameterError, StoreError
from daskw2v.shards import encode
from daskw2v.shards.encode import build_corpus, encode_batch, encoding_signature
from daskw2v.shards.layout import Corpus, Shard, open_codes, read_starts, read_word_indices, read_words
from daskw2v.store.storage import Store
from tests.support.reading import folder_of_one_batch

RULES = {"tokenizer": "whitespace", "column": "text", "errors": "strict"}


def words_of(store, shard):
    """The words of a shard, from all that is stored of it."""
    data, offsets, _ = read_words(store, shard.path, 0, shard.n_types)
    types = [data[a:b].tobytes() for a, b in pairwise(offsets)]
    word_indices = read_word_indices(store, shard.path)
    return [types[word_indices[code]] for code in open_codes(store, shard)[:]]


def sentences_of(store, shards):
    sentences = []
    for shard in shards:
        words = words_of(store, shard)
        starts = read_starts(store, shard).tolist()
        assert (shard.n_tokens, shard.n_sentences) == (len(words), len(starts))
        bounds = [0, *starts, len(words)] if not starts or starts[0] else [*starts, len(words)]
        for i, (a, b) in enumerate(pairwise(bounds)):
            if i == 0 and (not starts or starts[0]):
                sentences[-1] += words[a:b]
            else:
                sentences.append(words[a:b])
    return sentences


def a_block(path, content, block_bytes=1 << 30):
    path.write_bytes(content)
    return Batch((plan_blocks(find_sources(str(path)), block_bytes)[0],))


def shards_of(manifest):
    return [Shard(**shard) for shard in manifest["shards"]]


lines = st.lists(st.lists(st.sampled_from(["the", "a", "of", "Übermaß", "x" * 70]), max_size=12), max_size=40)


@settings(max_examples=10)
@given(lines, st.integers(1, 400))
def test_encode_batch__keeps_every_sentence(tmp_path_factory, lines, shard_bytes):
    folder = tmp_path_factory.mktemp("block")
    block = a_block(folder / "a.txt", "\n".join([*map(" ".join, lines), "end"]).encode())
    manifest = encode_batch(block, Store(str(folder / "work")), **RULES, shard_bytes=shard_bytes)
    expected = [[word.encode() for word in line] for line in [*lines, ["end"]] if line]
    assert sentences_of(Store(str(folder / "work")), shards_of(manifest)) == expected


pieces = st.one_of(
    st.sampled_from([b"a b", b"a\n", b"\n", b" ", b"c d\ne f\n\n", b"g"]).map(RawText),
    st.lists(st.lists(st.sampled_from(["p", "q r"]), max_size=3), max_size=3).map(make_tokens),
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(pieces, max_size=12), st.integers(1, 20))
def test_encode_batch__joins_text_and_tokens(tmp_path_factory, monkeypatch, pieces, shard_bytes):
    """A sentence goes on from piece to piece and from shard to shard, until a newline or tokens end it."""
    expected, open_ = [], False
    for piece in pieces:
        if isinstance(piece, RawText):
            for i, line in enumerate(piece.data.split(b"\n")):
                open_ = open_ and i == 0
                if line.split():
                    expected = [*expected[:-1], expected[-1] + line.split()] if open_ else [*expected, line.split()]
                    open_ = True
        else:
            data, offsets, starts = piece.data.tobytes(), piece.offsets.tolist(), piece.starts.tolist()
            words = [data[a:b] for a, b in pairwise(offsets)]
            expected += [words[a:b] for a, b in zip(starts, [*starts, len(words)][1:], strict=True)]
            open_ = False
    monkeypatch.setattr(encode, "read_block", lambda block, **_: iter(pieces))
    folder = tmp_path_factory.mktemp("block")
    block = a_block(folder / "a.txt", b"unread")
    manifest = encode_batch(block, Store(str(folder / "work")), **RULES, shard_bytes=shard_bytes)
    assert sentences_of(Store(str(folder / "work")), shards_of(manifest)) == expected


def test_encode_batch__bounds_shards_of_one_long_line(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "LONGEST", 1 << 16)
    content = gzip.compress(" ".join(str(i * i * 7919) for i in range(20_000)).encode())
    block = a_block(tmp_path / "a.txt.gz", content)
    store = Store(str(tmp_path / "work"))
    shards = shards_of(encode_batch(block, store, **RULES, shard_bytes=1 << 16))
    assert len(shards) > 1
    assert sum(shard.n_tokens for shard in shards) == 20_000
    assert max(shard.n_tokens for shard in shards) < 12_000
    assert [shard.n_sentences for shard in shards] == [1] + [0] * (len(shards) - 1)


def test_encode_batch__bounds_dictionaries(tmp_path, monkeypatch):
    monkeypatch.setattr(encode, "SHARD_TYPES", 100)
    lines = [[str(i * j % 5003) for j in range(9)] for i in range(1, 200)]
    pieces = [RawText(" ".join(line).encode() + b"\n") for line in lines]
    monkeypatch.setattr(encode, "read_block", lambda block, **_: iter(pieces))
    store = Store(str(tmp_path / "work"))
    shards = shards_of(encode_batch(a_block(tmp_path / "a.txt", b"unread"), store, **RULES, shard_bytes=1 << 30))
    assert 100 <= max(shard.n_types for shard in shards[:-1]) < 100 + 9
    assert sentences_of(store, shards) == [[word.encode() for word in line] for line in lines]


def test_encode_batch__run_twice_does_no_harm(tmp_path, monkeypatch):
    block = a_block(tmp_path / "a.txt", b"a b\nc\n")
    store = Store(str(tmp_path / "work"))
    first = encode_batch(block, store, **RULES, shard_bytes=100)
    (store / block.key).remove()
    read = encode.read_block

    def meanwhile(block, **options):  # another worker finishes the same block first
        monkeypatch.setattr(encode, "read_block", read)
        encode_batch(Batch((block,)), store, **RULES, shard_bytes=100)
        yield from read(block, **options)

    monkeypatch.setattr(encode, "read_block", meanwhile)
    second = encode_batch(block, store, **RULES, shard_bytes=100)
    assert len((store / block.key).children()) == 3  # two attempts and the manifest
    assert second["attempt"] == (store / block.key).read_manifest()["attempt"] != first["attempt"]
    assert sentences_of(store, shards_of(second)) == [[b"a", b"b"], [b"c"]]


def test_encode_batch__is_done_again_when_shards_are_gone(tmp_path):
    block = a_block(tmp_path / "a.txt", b"a b\nc\n")
    store = Store(str(tmp_path / "work"))
    first = encode_batch(block, store, **RULES, shard_bytes=100)
    (store / block.key / first["attempt"]).remove()
    second = encode_batch(block, store, **RULES, shard_bytes=100)
    assert sentences_of(store, shards_of(second)) == [[b"a", b"b"], [b"c"]]
    assert (store / block.key).read_manifest()["attempt"] == second["attempt"]


def test_encoding_signature__depends_on_what_decides_the_shards():
    params = Params()
    assert encoding_signature(params, 100) == encoding_signature(params.replace(min_count=9), 100)
    changed_params = [params.replace(tokenizer="lower"), params.replace(column="x"), params.replace(errors="strict")]
    assert len({encoding_signature(p, 100) for p in [params, *changed_params]} | {encoding_signature(params, 99)}) == 5


@pytest.fixture
def text(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"the {name}\nof the {name} " * 50)
    return str(tmp_path / "*.txt")


def build(text, folder, client, listener=lambda _: None, block_size=2000):
    """By default each file of `text` is a block: too large for a batch, and not cut."""
    return build_corpus(text, Store(str(folder)), Params(), Resources(block_size=block_size), client, listener)


def test_build_corpus__is_read_once(text, tmp_path, client, monkeypatch):
    heard = []
    corpus = build(text, tmp_path / "work", client, heard.append, block_size=300)
    store = Store(str(tmp_path / "work"))
    assert len(corpus.shards) > 6
    assert corpus.bounds[-1] == corpus.n_tokens == 750
    assert heard[0].done == 0
    assert heard[-1].done == pytest.approx(heard[-1].total)
    assert Corpus.load(store, corpus.name) == corpus
    monkeypatch.setattr(encode, "read_block", None)
    assert build(text, tmp_path / "work", client, block_size=300) == corpus
    assert build(text, tmp_path / "work", client, block_size=999) == corpus  # blocks have no meaning


def test_build_corpus__goes_on_block_by_block(text, tmp_path, monkeypatch):
    read, read_keys = encode.read_block, []

    def breaks(block, **options):
        read_keys.append(block.key)
        if len(read_keys) > 2:
            raise InputError("This disk", "is broken.")
        return read(block, **options)

    # One thread: the first two blocks are stored before the third breaks.
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        monkeypatch.setattr(encode, "read_block", breaks)
        with pytest.raises(InputError, match="This disk is broken"):
            build(text, tmp_path / "work", client)
        monkeypatch.setattr(encode, "read_block", lambda block, **o: (read_keys.append(block.key), read(block, **o))[1])
        done = read_keys[:2]
        del read_keys[:]
        corpus = build(text, tmp_path / "work", client)
    assert len(read_keys) == 1
    assert read_keys[0] not in done
    assert corpus.n_tokens == 750


def test_build_corpus__of_small_files_has_the_positions_of_large_ones(text, tmp_path, client):
    files = sorted(tmp_path.glob("*.txt"))
    folder = folder_of_one_batch(tmp_path, [path.name for path in files])
    for path in files:
        path.rename(folder / path.name)
    text, store = str(folder / "*.txt"), Store(str(tmp_path / "work"))
    large = build(text, tmp_path / "work", client)
    (store / "corpora" / f"{large.name}.json").remove()
    small = build(text, tmp_path / "work", client, block_size="64 MiB")
    assert (len(large.shards), len(small.shards)) == (3, 1)
    assert small.identity == large.identity
    assert sentences_of(store, small.shards) == sentences_of(store, large.shards)
    assert [part.n_sentences for part in small.parts] == [51] * 3
    assert Corpus.load(store, small.name) == small


def test_build_corpus__reads_what_was_written_before_there_were_batches(text, tmp_path, client, monkeypatch):
    corpus, store = build(text, tmp_path / "work", client), Store(str(tmp_path / "work"))
    folder = store / "corpora"
    values = folder.read_manifest(f"{corpus.name}.json")
    assert values.pop("parts") == []
    folder.write_manifest(values, f"{corpus.name}.json")
    for shard in corpus.shards:
        block = store / shard.path.rsplit("/", 2)[0]
        manifest = block.read_manifest()
        assert manifest.pop("sentences") == [51]
        block.write_manifest(manifest)
    monkeypatch.setattr(encode, "read_block", None)
    assert build(text, tmp_path / "work", client, block_size="64 MiB") == corpus  # small now, but finished
    (folder / f"{corpus.name}.json").remove()
    assert build(text, tmp_path / "work", client) == corpus


def test_build_corpus__refuses_what_its_formats_do_not_read(text, tmp_path, client):
    with pytest.raises(ParameterError, match="delimiter=';' changes nothing for format='text'; it is for csv, tsv"):
        build_corpus(text, Store(str(tmp_path / "work")), Params(delimiter=";"), Resources(), client)


def test_build_corpus__counts_a_file_named_twice_once(text, tmp_path, client):
    assert build([text, text], tmp_path / "work", client) == build(text, tmp_path / "work", client)


def test_build_corpus__counts_equal_parts_of_a_collection_each_time(tmp_path, client):
    parts = [pa.table({"text": ["one two"] * 5})] * 3
    corpus = build(parts, tmp_path / "work", client)
    assert (corpus.n_tokens, len({shard.path for shard in corpus.shards})) == (10 * 3, 1)


def test_build_corpus__removes_what_lost_and_makes_again_what_is_gone(text, tmp_path, client):
    corpus = build(text, tmp_path / "work", client)
    store = Store(str(tmp_path / "work"))
    attempt = corpus.shards[0].path.rsplit("/", 1)[0]
    (store / attempt).remove()  # the manifest that names it stays
    (store / corpus.shards[1].path.rsplit("/", 2)[0] / "loser").create_group()
    again = build(text, tmp_path / "work", client)
    assert again.n_tokens == corpus.n_tokens
    assert again.shards[1:] == corpus.shards[1:]
    assert not (store / corpus.shards[1].path.rsplit("/", 2)[0] / "loser").exists()
    assert words_of(store, again.shards[0])
    assert Corpus.load(store, corpus.name) == corpus
    assert build(text, tmp_path / "work", client) == again


def test_build_corpus__keeps_what_a_late_run_of_a_task_wrote(text, tmp_path, client, monkeypatch):
    """Two runs of a task overlap: the one whose result counts for Dask is the first to write its manifest."""

    def twice(block, store, **rules):
        first = encode_batch(block, store, **rules)
        (store / block.key / "manifest.json").remove()  # which the late run looked for a moment too early
        assert encode_batch(block, store, **rules) != first
        return first

    monkeypatch.setattr(encode, "encode_batch", twice)
    corpus = build(text, tmp_path / "work", client)
    store = Store(str(tmp_path / "work"))
    for shard in corpus.shards:
        block, attempt, _ = shard.path.rsplit("/", 2)
        assert (store / block).children() == [attempt, "manifest.json"]
        assert (store / block).read_manifest()["attempt"] == attempt
        assert words_of(store, shard)


def test_build_corpus__stops_where_blocks_vanish(text, tmp_path, client, monkeypatch):
    def vanishes(block, store, **rules):
        encode_batch(block, store, **rules)
        (store / block.key).remove()

    monkeypatch.setattr(encode, "encode_batch", vanishes)
    with pytest.raises(StoreError, match=r"is gone"):
        build(text, tmp_path / "work", client)


def test_build_corpus__keeps_several_corpora(text, tmp_path, client, monkeypatch):
    store = Store(str(tmp_path / "work"))
    one, other = build(text, tmp_path / "work", client), build(f"{tmp_path}/a.txt", tmp_path / "work", client)
    assert [Corpus.load(store, corpus.name) for corpus in (one, other)] == [one, other]
    assert one.n_tokens == 750
    monkeypatch.setattr(encode, "read_block", None)
    assert build(text, tmp_path / "work", client) == one
    assert build(f"{tmp_path}/a.txt", tmp_path / "work", client) == other


def test_build_corpus__cut_otherwise_has_another_name(text, tmp_path, client):
    one = build(text, tmp_path / "work", client)
    store = Store(str(tmp_path / "work"))
    (store / one.shards[0].path).remove()
    other = build(text, tmp_path / "work", client, block_size=300)
    assert (other.identity, len(other.shards) > len(one.shards)) == (one.identity, True)
    assert Corpus.load(store, one.name) == one  # for whoever still has a vocabulary of it
    assert Corpus.load(store, other.name) == other


def calls(module, text, tokenizer, folder, client):
    (folder / "tokens_of_test.py").write_text(module)
    sys.modules.pop("tokens_of_test", None)
    importlib.invalidate_caches()
    return build_corpus(text, Store(str(folder / "work")), Params(tokenizer=tokenizer), Resources(), client)


def test_build_corpus__notices_an_edited_tokenizer(text, tmp_path, client, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    function = "def f(lines):\n    return [line.split('{}') for line in lines]\n"
    one, other, back = (
        calls(function.format(by), text, "tokens_of_test:f", tmp_path, client) for by in (" ", "e", " ")
    )
    assert one == back
    assert one.identity != other.identity
    assert words_of(Store(str(tmp_path / "work")), other.shards[0])[:2] == [b"th", b" a"]


tries = []


def breaks(lines):
    tries.append(1)
    raise ZeroDivisionError("by hand")


def test_build_corpus__does_not_try_a_broken_tokenizer_again(text, tmp_path, client):
    with pytest.raises(InputError, match=r"test_encode:breaks failed on text of .*a\.txt \(ZeroDivisionError: by hand"):
        build_corpus(f"{tmp_path}/a.txt", Store(str(tmp_path / "work")), Params(tokenizer=breaks), Resources(), client)
    assert len(tries) == 1


def test_build_corpus__changes_with_text_and_rules(text, tmp_path, client):
    one = build(text, tmp_path / "work", client)
    lower = build_corpus(text, Store(str(tmp_path / "work")), Params(tokenizer="lower"), Resources(), client)
    (tmp_path / "a.txt").write_text("new text")
    assert len({one.identity, lower.identity, build(text, tmp_path / "work", client).identity}) == 3


def test_build_corpus__refuses_text_without_a_word(tmp_path, client):
    (tmp_path / "a.txt").write_text(" \n\n")
    with pytest.raises(InputError, match=r"^There is no word in 1 file of 3 bytes\. Check the inputs"):
        build(str(tmp_path / "a.txt"), tmp_path / "work", client)


DNA = "".join("ACGT"[i * i % 7 % 4] for i in range(60))
UNSPLIT = {  # text, tokenizer, whether it is lines of one word
    "genome": (">chr1\n" + f"{DNA}\n" * 20, "whitespace", True),
    "proteins": (f">sp|P1|ONE A protein of some name OS=Homo sapiens\n{DNA}\n{DNA}\n{DNA}\n" * 5, "normalize", True),
    "no blanks": ("日本語の文には空白がないので行は一語になる\n" * 20, "lower", True),
    "own words": (f"{DNA}\n" * 20, "regex:[ACGT]{3}", False),
    "prose": ("a sentence of some words that are longer than all others of it\n" * 20, "whitespace", False),
    "addresses": (f"see https://example.org/{DNA}/{DNA} for more\n" * 20, "whitespace", False),
    "one long word": (f"{DNA}\n", "whitespace", False),
}


@pytest.mark.parametrize("name", UNSPLIT)
def test_build_corpus__says_that_lines_are_one_word(tmp_path, client, name):
    content, tokenizer, expected = UNSPLIT[name]
    (tmp_path / "a.txt").write_text(content)
    messages = []
    rules = Params(tokenizer=tokenizer), Resources(), client, lambda progress: messages.append(progress.message)
    build_corpus(tmp_path / "a.txt", Store(str(tmp_path / "work")), *rules)
    assert (
        any("a.txt is lines of one word of more than 50 bytes, as in FASTA" in message for message in messages)
        is expected
    )
