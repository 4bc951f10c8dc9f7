"""From text to corpus shards: every block is read once, by one task."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from distributed import Client

from daskw2v.arguments import check_arguments
from daskw2v.console import listening
from daskw2v.corpus.formats import read_block
from daskw2v.corpus.inputs import Inputs
from daskw2v.corpus.pieces import ReadReport, Text, Tokens
from daskw2v.corpus.sources import Block, Source, find_sources, plan_blocks
from daskw2v.corpus.tokenizers import LineFunction, make_tokenizer, tokenizer_identity
from daskw2v.errors import DamageError, InputError
from daskw2v.lease import hold
from daskw2v.params import Params, Resources
from daskw2v.progress import Listener, Progress, Watching, saying
from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.shards.layout import BadBlock, Corpus, Shard, corpus_identity, digest, groups_exist, write_shard
from daskw2v.shards.quarantine import Quarantine
from daskw2v.shards.tasks import new_attempt, remove_losers, run_tasks
from daskw2v.shards.whitespace import split
from daskw2v.storage import Store
from daskw2v.wording import counted

_THREADS = 16  # that read manifests, which mostly wait
_BATCH = 1 << 14  # words found before they are looked up: some 100 KB of text, which stay in the cache
SHARD_TYPES = 3 << 19  # where a shard ends too: there and one piece of text on, its dictionary holds 200 MB


class _Builder:
    """A shard that grows, piece by piece."""

    def __init__(self, *, new_sentence: bool) -> None:
        self.dictionary = Dictionary()
        self.codes: list[npt.NDArray[np.int32]] = []
        self.n_tokens = 0
        self._starts = [np.zeros(int(new_sentence), np.int64)]
        self._last_start = 0 if new_sentence else -1
        self._found = np.empty((3, _BATCH), np.int64)

    @property
    def new_sentence(self) -> bool:
        """Whether the next word starts a sentence."""
        return self._last_start == self.n_tokens

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """Where sentences start, but for the one that no word of the shard belongs to yet."""
        starts = np.concatenate(self._starts)
        return starts[: len(starts) - self.new_sentence]

    def add_text(self, text: Text) -> None:
        data = padded(text.data)
        unpadded = data[: len(text.data)]
        begins, ends, starts = self._found
        position = 0
        while position < len(unpadded):
            last_start = self._last_start - self.n_tokens
            position, n, n_starts = split(unpadded, position, begins, ends, starts, last_start)
            self._add_starts(starts[:n_starts] + self.n_tokens)
            self._add_words(data, begins[:n], ends[:n])

    def add_tokens(self, tokens: Tokens) -> None:
        starts = tokens.starts + self.n_tokens
        self._add_starts(starts[int(self.new_sentence) :])  # both say that the first word starts one
        self._add_words(padded(tokens.data), tokens.offsets[:-1], tokens.offsets[1:])
        if not self.new_sentence:
            self._add_starts(np.array([self.n_tokens]))

    def _add_starts(self, starts: npt.NDArray[np.int64]) -> None:
        if len(starts):
            self._starts.append(starts)
            self._last_start = int(starts[-1])

    def _add_words(
        self, data: npt.NDArray[np.uint8], begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
    ) -> None:
        self.codes.append(self.dictionary.encode(data, begins, ends))
        self.n_tokens += len(begins)


def encoding_signature(params: Params, shard_bytes: int) -> str:
    """Return 20 hexadecimal digits that stand for all that decides what shards a block becomes."""
    return digest([tokenizer_identity(params.tokenizer), params.column, params.errors, shard_bytes])


def encode_block(
    block: Block,
    store: Store,
    *,
    tokenizer: str | LineFunction,
    column: str,
    errors: str,
    shard_bytes: int,
) -> dict[str, Any]:
    """Read a block and write it as corpus shards; a block that was already written is not read again.

    Pure and idempotent: each run writes into a folder of its own, the manifest names the one that counts.

    Parameters
    ----------
    block
        What to read.
    store
        Where blocks of this encoding lie (see `encoding_signature`); its options are those of the input too.
    tokenizer, column, errors
        As in `Params`.
    shard_bytes
        Text held by one shard, about, where it has fewer than `SHARD_TYPES` distinct words.

    Returns
    -------
    dict
        The manifest: attempt, shards (path below `store`, n_tokens, n_sentences, n_types) and report.

    Raises
    ------
    InputError
        If the text cannot be read, or the tokenizer fails.
    """
    home = store / block.key
    manifest = _finished(store, block.key)
    if manifest is not None:
        return manifest
    attempt, report = new_attempt(), ReadReport()
    shards: list[dict[str, Any]] = []
    builder, filled = _Builder(new_sentence=True), 0

    def finish(builder: _Builder) -> _Builder:
        path = f"{attempt}/{len(shards)}"
        numbers = write_shard(home / path, builder.codes, builder.starts, builder.dictionary)
        shards.append({"path": f"{block.key}/{path}", **numbers})
        return _Builder(new_sentence=builder.new_sentence)

    pieces = read_block(
        block,
        column=column,
        errors=errors,
        tokenizer=make_tokenizer(tokenizer),
        storage_options=store.options,
        report=report,
        patience=store.patience,
    )
    for piece in pieces:
        if isinstance(piece, Text):
            builder.add_text(piece)
        else:
            builder.add_tokens(piece)
        filled += len(piece.data)
        if builder.n_tokens and (filled >= shard_bytes or len(builder.dictionary) >= SHARD_TYPES):
            builder, filled = finish(builder), 0
    if builder.n_tokens:
        finish(builder)
    # Another run of this task may have finished meanwhile: then its shards count.
    winner = _finished(store, block.key)
    if winner is None:
        winner = {"attempt": attempt, "shards": shards, "report": report.as_dict()}
        home.write_manifest(winner)
    return winner


def _finished(store: Store, key: str) -> dict[str, Any] | None:
    """Return a block's manifest if its shards are there."""
    manifest = (store / key).read_manifest()
    if manifest is None or not groups_exist(store, (shard["path"] for shard in manifest["shards"])):
        return None
    return manifest


def _encode(block: Block, store: Store, rules: Mapping[str, Any]) -> None:
    encode_block(block, store, **rules)


def build_corpus(
    inputs: Inputs,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client,
    listener: Watching = "show",
) -> Corpus:
    """Read the text once, and write it as corpus shards.

    What a run before has finished is kept: with the same inputs nothing is read again, and a run that was
    killed goes on block by block.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns.
    store
        The work directory, which all workers can reach.
    params, resources
        How to read.
    client
        Where to run.
    listener
        Is told the bytes done.

    Returns
    -------
    Corpus
        Saved in the work directory too.

    Raises
    ------
    ParameterError
        If an argument is of another kind.
    InputError
        If inputs cannot be read (more blocks of them than `max_bad_blocks`), or hold no word at all; if the
        tokenizer fails.
    StoreError
        If somebody deletes blocks meanwhile, or the store fails.
    TrainingError
        If more blocks than `max_bad_blocks` keep killing their workers.
    """
    check_arguments(store=store, params=params, resources=resources, client=client)
    sources = find_sources(inputs, params.format, resources.storage_options, resources.store_timeout, work=store.url)
    identity = corpus_identity(sources, params)
    known = Corpus.find(store, identity, params.max_bad_blocks)
    if known is not None:
        return known
    home = store / "shards" / encoding_signature(params, resources.block_bytes)
    with (
        listening(listener, client) as listen,
        hold(store, home.name, f"the text in {store.url}", waiting=saying(listen, "encode", "bytes")) as lease,
    ):
        known = Corpus.find(store, identity, params.max_bad_blocks)  # whom we waited for may have done it
        return known or _build(identity, sources, store, home, params, resources, client, lease.guarding(listen))


def _build(
    identity: str,
    sources: list[Source],
    store: Store,
    home: Store,
    params: Params,
    resources: Resources,
    client: Client,
    listener: Listener,
) -> Corpus:
    began = time.monotonic()
    blocks = plan_blocks(sources, resources.block_bytes, resources.storage_options, resources.store_timeout)
    bad = _encode_all(blocks, home, params, resources, client, listener)
    bad_blocks = tuple(bad[key] for key in dict.fromkeys(block.key for block in blocks) if key in bad)
    blocks = [block for block in blocks if block.key not in bad]
    manifests = _read_manifests(home, (block.key for block in blocks))
    report, shards = ReadReport(), list[Shard]()
    for block in blocks:
        manifest = manifests[block.key]
        report.merge(ReadReport(**manifest["report"]))
        shards += [
            Shard(**{**s, "path": f"shards/{home.name}/{s['path']}", "block": block.key}) for s in manifest["shards"]
        ]
    if not shards:
        raise _no_word(sources, report)
    seconds = round(time.monotonic() - began, 3)
    corpus = Corpus(identity, tuple(shards), tuple(sources), report, seconds, bad_blocks)
    corpus.save(store)
    remove_losers(home, {key: {manifest["attempt"]} for key, manifest in manifests.items()})
    return corpus


def _no_word(sources: Sequence[Source], report: ReadReport) -> InputError:
    size = counted(sum(source.size for source in sources), "byte")
    skipped = (
        f" ({counted(report.skipped, 'line')} skipped, the first: {report.first_offence})" if report.skipped else ""
    )
    return InputError(
        f"There is no word in {counted(len(sources), 'file')} of {size}{skipped}.",
        "Check the inputs, the tokenizer and the column.",
    )


def _encode_all(
    blocks: list[Block], home: Store, params: Params, resources: Resources, client: Client, listener: Listener
) -> dict[str, BadBlock]:
    """Run a task for each block; return those that are left out by the block's key."""
    rules = {
        "tokenizer": params.tokenizer,
        "column": params.column,
        "errors": params.errors,
        "shard_bytes": resources.block_bytes,
    }
    home = Store(home.url, {**resources.storage_options, **home.options}, home.patience)
    distinct = {block.key: block for block in blocks}  # a file named twice is read once
    units: dict[str, int] = {}  # bytes, or row groups
    for block in distinct.values():
        units[block.source.url] = units.get(block.source.url, 0) + block.stop - block.start
    weights = {key: b.source.size * (b.stop - b.start) / units[b.source.url] for key, b in distinct.items()}
    done, total = 0.0, sum(weights.values())
    jobs = {key: (block, home, rules) for key, block in distinct.items()}
    listener(Progress("encode", 0, total, "bytes", message=counted(len(jobs), "block")))
    quarantine = Quarantine(distinct, params.max_bad_blocks, listener)
    for finished, (key, _) in enumerate(run_tasks(client, "encode", _encode, jobs, excuse=quarantine.suspect), 1):
        done += weights[key]
        listener(Progress("encode", done, total, "bytes", message=f"{finished} of {counted(len(jobs), 'block')}"))
    # Whoever shares a worker with a block that kills it is blamed with it: each alone, then
    for key in list(quarantine.suspects):
        for _ in run_tasks(client, "encode", _encode, {key: jobs[key]}, excuse=quarantine.condemn):
            pass
    return quarantine.bad


def _read_manifests(home: Store, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the manifests of blocks by their keys, as they stand now.

    Not as tasks return them: of two runs of a task the one that Dask forgot may have written last, and what a
    manifest names must stay.
    """

    def read(key: str) -> tuple[str, dict[str, Any]]:
        manifest = (home / key).read_manifest()
        if manifest is None:
            raise DamageError.of((home / key).url, "is gone")
        return key, manifest

    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(pool.map(read, keys))
