"""Text encoded as corpus shards: one task reads each block once, and small files in batches."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
from distributed import Client

from daskw2v.cluster.connecting import lazily_connected
from daskw2v.cluster.local import trim_heap
from daskw2v.cluster.tasks import run_tasks
from daskw2v.collections.kinds import TextInputs, check_texts
from daskw2v.collections.parts import text_finder
from daskw2v.config.arguments import check_arguments
from daskw2v.config.identity import identity_values
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Batch, Source, TextBlock, batch_blocks
from daskw2v.corpus.formats import read_block
from daskw2v.corpus.invalid import LONG_WORD, is_unsplit
from daskw2v.corpus.pieces import RawText, ReadReport, Tokens
from daskw2v.corpus.sources import plan_blocks
from daskw2v.corpus.stored_tokenizers import stored_tokenizer
from daskw2v.corpus.tokenizer_files import with_tokenizer
from daskw2v.corpus.tokenizers import LineFunction, make_tokenizer, tokenizer_identity
from daskw2v.errors import DamageError, Daskw2vError, InputError, TrainingError, counted
from daskw2v.progress import Listener, Progress, Watching, message_sender
from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.shards.layout import BadBlock, BatchBlock, Corpus, Shard, corpus_identity, digest, write_shard
from daskw2v.shards.whitespace import split_tokens
from daskw2v.store.checksums import retry_damaged
from daskw2v.store.stage import Layout, OpenStage, Stage, groups_exist, run_once
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.store.threads import in_threads
from daskw2v.types import Int32Array, Int64Array, UInt8Array

LAYOUT = Layout("shards/<encoding>/<block>/<attempt>", unused="shards/<encoding>/<block>")
_BATCH = 1 << 14  # words to find before they are looked up: about 100 KB of text, which stays in the cache
SHARD_TYPES = 3 << 19  # distinct words at which a shard ends; with one more piece of text, its dictionary has 200 MB


class _ShardBuilder:
    """A shard while pieces of text are added to it.

    Parameters
    ----------
    new_sentence
        Whether the first word starts a sentence.

    Attributes
    ----------
    dictionary, codes, n_tokens
        The words; the codes of the words of the text, in arrays; their number.
    """

    def __init__(self, *, new_sentence: bool) -> None:
        self.dictionary, self.codes, self.n_tokens = Dictionary(), list[Int32Array](), 0
        self._starts, self._last_start, self._n_starts = [np.empty(0, np.int64)], -1, 0
        self._tokens = np.empty((3, _BATCH), np.int64)  # begins, ends, and starts of sentences
        if new_sentence:
            self.end_sentence()

    @property
    def new_sentence(self) -> bool:
        """Whether the next word starts a sentence."""
        return self._last_start == self.n_tokens

    @property
    def starts(self) -> Int64Array:
        """Index of the first word of each sentence, without a last sentence that has no words in the shard."""
        starts = np.concatenate(self._starts)
        return starts[: len(starts) - self.new_sentence]

    @property
    def n_sentences(self) -> int:
        """Number of sentences that start in the shard."""
        return self._n_starts - self.new_sentence

    def end_sentence(self) -> None:
        """End the current sentence, so that the next word starts a sentence."""
        if not self.new_sentence:
            self._add_starts(np.array([self.n_tokens]))

    def add_text(self, text: RawText) -> None:
        """Add text whose tokens are separated by bytes <= 0x20; its last sentence stays open."""
        data = padded(text.data)
        unpadded = data[: len(text.data)]
        begins, ends, starts = self._tokens
        position = 0
        while position < len(unpadded):
            last_start = self._last_start - self.n_tokens
            position, n, n_starts = split_tokens(unpadded, position, begins, ends, starts, last_start)
            self._add_starts(starts[:n_starts] + self.n_tokens)
            self._add_words(data, begins[:n], ends[:n])

    def add_tokens(self, tokens: Tokens) -> None:
        """Add complete sentences of tokens."""
        starts = tokens.starts + self.n_tokens
        self._add_starts(starts[int(self.new_sentence) :])  # the builder has the start of the first word already
        self._add_words(padded(tokens.data), tokens.offsets[:-1], tokens.offsets[1:])
        self.end_sentence()

    def _add_starts(self, starts: Int64Array) -> None:
        """Add starts of sentences, as indices of words in the shard."""
        if len(starts):
            self._starts.append(starts)
            self._last_start = int(starts[-1])
            self._n_starts += len(starts)

    def _add_words(self, data: UInt8Array, begins: Int64Array, ends: Int64Array) -> None:
        """Add words; parameters are those of `Dictionary.encode`."""
        self.codes.append(self.dictionary.encode(data, begins, ends))
        self.n_tokens += len(begins)


def encoding_signature(params: Params, shard_bytes: int) -> str:
    """Return a digest of the Params, tokenizer and size that determine the shards of a block; names their folder."""
    # The format is part of a block's key
    rules = identity_values(params, "read", without=("tokenizer", "format", "max_bad_blocks"))
    return digest([tokenizer_identity(params.tokenizer), *rules, shard_bytes])


def encode_batch(
    batch: Batch,
    store: Store,
    *,
    tokenizer: str | LineFunction,
    column: str,
    errors: str,
    shard_bytes: int,
    also: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Read a batch of text and write it as corpus shards, unless these exist already; return the batch's manifest.

    A call may be repeated: each attempt writes to a new folder, and the manifest names the valid attempt.

    Parameters
    ----------
    batch
        The blocks of text.
    store
        Folder of all batches with the same encoding (see `encoding_signature`). Its options also open the input.
    tokenizer, column, errors
        As in `Params`.
    shard_bytes
        Bytes of text in a shard, about. A shard also ends at `SHARD_TYPES` distinct words.
    also
        Further fields of `Params` that formats read.

    Returns
    -------
    dict
        Manifest: attempt; shards (path below `store`, n_tokens, n_sentences, n_types); report; sentences, the number of
        sentences of each block; and unsplit, the URLs of files for which `is_unsplit` is true, if there are any.

    Raises
    ------
    InputError
        If the text cannot be read, or the tokenizer fails.
    """
    find = partial(_find_finished, store, batch.key)
    rules = {"column": column, "errors": errors, "tokenizer": make_tokenizer(tokenizer), "also": also}
    return run_once(store / batch.key, find, partial(_write_shards, batch, store, rules, shard_bytes))


def _write_shards(
    batch: Batch, store: Store, rules: Mapping[str, Any], shard_bytes: int, folder: Store
) -> dict[str, Any]:
    """Read a batch and write its shards into the folder of an attempt; return the manifest.

    `rules` are the arguments of `read_block` about format and tokenizer; further arguments are as in `encode_batch`.
    """
    report, shards, unsplit = ReadReport(), list[dict[str, Any]](), list[str]()
    builder, filled, written = _ShardBuilder(new_sentence=True), 0, 0
    sentences = list[int]()  # of each block

    def finish(builder: _ShardBuilder) -> _ShardBuilder:
        """Write a shard; return the builder of the next shard."""
        name = str(len(shards))
        numbers = write_shard(folder / name, builder.codes, builder.starts, builder.dictionary)
        shards.append({"path": f"{batch.key}/{folder.name}/{name}", **numbers})
        return _ShardBuilder(new_sentence=builder.new_sentence)

    for block in batch.blocks:
        pieces = read_block(block, **rules, storage_options=store.options, report=report, timeout=store.timeout)
        for number, piece in enumerate(pieces):
            if isinstance(piece, RawText):
                unsplit += [block.source.url] * (number == block.start == 0 and is_unsplit(piece.data))
                builder.add_text(piece)
            else:
                builder.add_tokens(piece)
            filled += len(piece.data)
            if builder.n_tokens and (filled >= shard_bytes or len(builder.dictionary) >= SHARD_TYPES):
                written += builder.n_sentences
                builder, filled = finish(builder), 0
        builder.end_sentence()
        sentences.append(written + builder.n_sentences - sum(sentences))
    if builder.n_tokens:
        finish(builder)
    warning = {"unsplit": unsplit} if unsplit else {}
    return {"attempt": folder.name, "shards": shards, "report": report.as_dict(), "sentences": sentences, **warning}


def _find_finished(store: Store, key: str) -> dict[str, Any] | None:
    """Return the manifest of the batch with a key; None if there is none, or a shard of it is missing."""
    manifest = (store / key).read_manifest()
    groups = () if manifest is None else (shard["path"] for shard in manifest["shards"])
    return manifest if groups_exist(store, groups) else None


def _encode(batch: Batch, store: Store, rules: Mapping[str, Any]) -> None:
    """Task: write a batch as shards, unless these exist, by `encode_batch`; `rules` are its keyword arguments.

    `store` is the folder of all batches with the same encoding.
    """
    encode_batch(batch, store, **rules)


def build_corpus(
    inputs: TextInputs,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client | None = None,
    listener: Watching = "show",
) -> Corpus:
    """Read the text once, and write it as corpus shards.

    A corpus that was built before is returned. An interrupted build resumes, batch by batch.

    Parameters
    ----------
    inputs
        Names of files, or text that is in none, as in `train`.
    store
        The work directory, which all workers can reach.
    params, resources
        How to read.
    client
        The cluster; by default as in `train`.
    listener
        Called with the progress.

    Returns
    -------
    Corpus
        The corpus, also saved in the work directory.

    Raises
    ------
    ParameterError
        If an argument has the wrong type, or a parameter is set that the format of a file does not read.
    InputError
        If more blocks than `max_bad_blocks` cannot be read, there are no words at all, or the tokenizer fails.
    StoreError
        If blocks are deleted meanwhile, or the store fails.
    TrainingError
        If more blocks than `max_bad_blocks` keep killing their workers.

    Examples
    --------
    >>> from daskw2v.stages import Store, build_corpus
    >>> store, params = Store("stages"), daskw2v.Params(min_count=1)
    >>> how = {"params": params, "resources": daskw2v.Resources(), "listener": None}
    >>> corpus = build_corpus("text.txt", store, **how)
    >>> corpus.n_tokens
    720
    """
    check_arguments(store=store, params=params, resources=resources, client=client)
    check_texts(inputs, params, resources)
    params = with_tokenizer(params, store)
    with (
        lazily_connected(client, store, resources, listener) as (cluster, listen),
        text_finder(inputs, store, params, resources, cluster, listen) as find,
    ):
        return encode_sources(find(), store, params, resources, cluster, listen)


def find_corpus(sources: Sequence[Source], store: Store, params: Params) -> Corpus | None:
    """Return the corpus of files that are read as Params say; None if it is not built yet, or not complete."""
    return Corpus.find(store, corpus_identity(sources, params), params.max_bad_blocks)


def encode_sources(
    sources: list[Source],
    store: Store,
    params: Params,
    resources: Resources,
    client: Callable[[], Client],
    listener: Listener,
) -> Corpus:
    """Return the corpus of files: the stored one if it is complete, or else a new one.

    Parameters
    ----------
    sources
        The files, in the order of the text.
    store, params, resources, listener
        As in `build_corpus`.
    client
        Returns the cluster; called only if the corpus has to be built.
    """
    asked = corpus_identity(sources, params)
    folder = store / LAYOUT.folder / encoding_signature(params, resources.block_bytes)
    stage = Stage(store, folder, lambda: partial(run_tasks, client()), listener, "encode", "bytes")
    build = partial(_build, asked, sources, store, params, resources)
    return stage.make(partial(find_corpus, sources, store, params), build)


def _build(
    asked: str, sources: list[Source], store: Store, params: Params, resources: Resources, stage: OpenStage
) -> Corpus:
    """Encode all blocks of files whose shards are missing; return the corpus, which is saved.

    `asked` is `Corpus.asked`; `stage` builds in the folder of the encoding; all else is as in `encode_sources`.
    """
    began, folder = time.monotonic(), stage.folder
    blocks = plan_blocks(sources, resources.block_bytes, resources.storage_options, resources.store_timeout)
    batches = batch_blocks(blocks, resources.block_bytes)
    quarantine = _encode_all(stage, batches, store, params, resources)
    bad = quarantine.bad
    bad_blocks = tuple(bad[key] for key in dict.fromkeys(block.key for block in blocks) if key in bad)
    good = [part for batch in batches for part in quarantine.good(batch)]
    manifests = _read_manifests(folder, [batch.key for batch in good])
    report, shards, parts = ReadReport(), list[Shard](), dict[str, list[BatchBlock]]()
    for batch in good:
        manifest = manifests[batch.key]
        report.merge(ReadReport(**manifest["report"]))
        for shard in manifest["shards"]:
            path = f"{LAYOUT.folder}/{folder.name}/{shard['path']}"
            shards.append(Shard(**{**shard, "path": path, "block": batch.key}))
        if len(batch.blocks) > 1:
            counts = zip(batch.blocks, manifest["sentences"], strict=True)
            parts[batch.key] = [BatchBlock(batch.key, block.key, n) for block, n in counts]
    if not shards:
        raise _no_word_error(sources, report)
    _warn_of_unsplit([url for batch in good for url in manifests[batch.key].get("unsplit", ())], stage)
    seconds = round(time.monotonic() - began, 3)
    all_parts = tuple(chain.from_iterable(parts.values()))
    corpus = Corpus(asked, tuple(shards), tuple(sources), report, seconds, bad_blocks, parts=all_parts)
    stage.keep_only({key: (MANIFEST, manifest["attempt"]) for key, manifest in manifests.items()})
    corpus.save(stage.guard(store))
    trim_heap()  # of a worker in this process
    return corpus


def _warn_of_unsplit(urls: Sequence[str], stage: OpenStage) -> None:
    """Report files that hold mostly lines of one long word, if there are any, to the listener."""
    if urls:
        more = f", and of {counted(len(urls) - 1, 'other file')}," if len(urls) > 1 else ""
        message_sender(stage.listener, "encode", "bytes")(
            f"Most of {urls[0]}{more} is lines of one word of more than {LONG_WORD} bytes, as in FASTA or "
            "text without blanks: give a tokenizer that cuts it into words."
        )


def _no_word_error(sources: Sequence[Source], report: ReadReport) -> InputError:
    """Return the error for files without any word."""
    size = counted(sum(source.size for source in sources), "byte")
    skipped = f" ({counted(report.skipped, 'line')} skipped, the first: {report.first_offence})"
    return InputError(
        f"There is no word in {counted(len(sources), 'file')} of {size}{skipped if report.skipped else ''}.",
        "Check the inputs, the tokenizer and the column.",
    )


class Quarantine:
    """Decides about batches that failed. A batch of several blocks is split, until the bad block is alone.

    Parameters
    ----------
    batches
        All batches by key.
    max_bad_blocks
        Number of blocks that may be left out.
    listener
        Called with a message for each block that is left out.

    Attributes
    ----------
    bad
        The blocks that are left out, by key.
    """

    def __init__(self, batches: Mapping[str, Batch], max_bad_blocks: int, listener: Listener) -> None:
        self._batches, self._max_bad_blocks, self._listener = dict(batches), max_bad_blocks, listener
        self._suspects: list[str] = []
        self._split: dict[str, list[Batch]] = {}
        self.bad: dict[str, BadBlock] = {}

    def suspect(self, key: str, error: Daskw2vError) -> bool:
        """Decide about a batch, by its key, that failed while others ran; return True if encoding goes on.

        If bad blocks may be left out, a batch that killed workers is run again alone, as another batch may be to blame;
        other failures go to `condemn`.
        """
        if self._max_bad_blocks and isinstance(error, TrainingError):
            self._suspects.append(key)
            return True
        return self.condemn(key, error)

    def condemn(self, key: str, error: Daskw2vError) -> bool:
        """Split a batch that failed, or leave its only block out; return True if encoding goes on.

        Encoding ends if no more blocks may be left out, or the error is neither an InputError nor a TrainingError.
        """
        if len(self.bad) == self._max_bad_blocks or not isinstance(error, InputError | TrainingError):
            return False
        batch = self._batches[key]
        if len(batch.blocks) > 1:
            self._split[key] = batch.split()
            self._batches |= {part.key: part for part in self._split[key]}
            return True
        (block,) = batch.blocks
        self.bad[key] = BadBlock(block.source.url, block.start, block.stop, error.problem)
        message = f"{counted(len(self.bad), 'bad block')} of at most {self._max_bad_blocks} left out: {error.problem}"
        self._listener(Progress("encode", 0, 0, "bytes", message=message))
        return True

    def take_suspects(self) -> list[str]:
        """Return the keys of the suspects, in order, and forget them."""
        suspects, self._suspects = self._suspects, []
        return suspects

    def parts_of(self, keys: Iterable[str]) -> dict[str, Batch]:
        """Return the parts, by key, of the batches with these keys that were split."""
        return {part.key: part for key in keys for part in self._split.get(key, ())}

    def good(self, batch: Batch) -> Iterator[Batch]:
        """Yield a batch, or its parts if it was split, without the blocks that are left out."""
        if batch.key in self._split:
            for part in self._split[batch.key]:
                yield from self.good(part)
        elif batch.key not in self.bad:
            yield batch


def _encode_all(
    stage: OpenStage, batches: list[Batch], work: Store, params: Params, resources: Resources
) -> Quarantine:
    """Encode each batch by a task of its own; return the quarantine, which names the blocks that are left out."""
    rules = {
        "tokenizer": stored_tokenizer(params, replace(work, guards=())),
        "column": params.column,
        "errors": params.errors,
        "shard_bytes": resources.block_bytes,
        "also": {f.name: value for f, value in params.items() if "format" in f.metadata["honoured_by"]},
    }
    folder = replace(stage.folder, options={**resources.storage_options, **stage.folder.options})
    waiting = {batch.key: batch for batch in batches}  # text that the inputs have twice is read once
    sizes = _measure_batches(waiting.values())
    quarantine, n_bytes = Quarantine(waiting, params.max_bad_blocks, stage.listener), 0.0
    stage.expect(sum(sizes.values()), message=counted(len(waiting), "block"))
    while waiting:
        jobs = {key: (batch, folder, rules) for key, batch in waiting.items()}
        for n_finished, (key, _) in enumerate(stage.run("encode", _encode, jobs, excuse=quarantine.suspect), 1):
            n_bytes += sizes.get(key, 0.0)
            stage.report(n_bytes, f"{n_finished} of {counted(len(jobs), 'block')}")
        # Dask blames all tasks on a worker that died, so each suspect runs once more, alone
        for key in quarantine.take_suspects():
            for _ in stage.run("encode", _encode, {key: jobs[key]}, excuse=quarantine.condemn):
                pass
        waiting = quarantine.parts_of(waiting)
    return quarantine


def _measure_batches(batches: Iterable[Batch]) -> dict[str, float]:
    """Return the stored size of each batch in bytes, by key: the sum of its blocks' shares of their files."""
    units = Counter[str]()
    for block in chain.from_iterable(batch.blocks for batch in batches):
        units[block.source.url] += block.stop - block.start

    def size(block: TextBlock) -> float:
        """Return a block's share of the bytes of its file, by its number of bytes or row groups."""
        return block.source.size * (block.stop - block.start) / units[block.source.url]

    return {batch.key: sum(map(size, batch.blocks)) for batch in batches}


def _read_manifests(folder: Store, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the manifests of the batches with these keys, by key.

    Manifests that tasks return may be outdated: if a task ran twice, the run whose result Dask dropped may have written
    its manifest last.
    """

    def read(key: str) -> tuple[str, dict[str, Any]]:
        """Return the key of a batch, and the batch's manifest."""
        manifest = (folder / key).read_manifest()
        if manifest is None:
            raise DamageError.of(f"{folder.url}/{key}/{MANIFEST}", "is gone")
        return key, manifest

    return dict(in_threads(lambda key: retry_damaged(partial(read, key)), keys))
