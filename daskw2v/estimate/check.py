"""What cannot fit is refused before it starts, and not killed hours later."""

from collections.abc import Callable, Iterator

from dask.utils import format_bytes
from distributed import Client

from daskw2v.corpus.inputs import Inputs
from daskw2v.corpus.sources import Source, find_sources
from daskw2v.errors import ClusterError, ParameterError
from daskw2v.estimate import data
from daskw2v.estimate.base import Stage, Workers, shown
from daskw2v.estimate.text import Text, guess_text
from daskw2v.estimate.training import TRAINING
from daskw2v.estimate.workers import workers_of
from daskw2v.objectives import find_objective
from daskw2v.params import Params, Resources
from daskw2v.shards.layout import Corpus, corpus_identity
from daskw2v.storage import Store
from daskw2v.strategies.rotation import ROTATION

Change = tuple[str, Stage]  # what can be changed, and what the stage takes then


def check_encoding(client: Client, inputs: Inputs, store: Store, params: Params, resources: Resources) -> None:
    """Check that workers have the memory to read the text; how many distinct words it has is guessed.

    Files are looked at only where a worker could not hold the largest shards that there can be, and nothing is checked
    of a corpus that is there already.

    Raises
    ------
    ClusterError
        If a worker's limit is below what it would take.
    """
    kinds = workers_of(client, "cpu")  # all read text, whatever they train on
    most = max((kind.threads for kind in kinds), default=1)
    if _fits(_encode([Source("", most * resources.block_bytes, "", "text", None)], params, resources), kinds):
        return
    sources = find_sources(inputs, params.format, resources.storage_options, resources.store_timeout, work=store.url)
    if Corpus.find(store, corpus_identity(sources, params), params.max_bad_blocks) is None:
        _check(
            "Reading the text", _encode(sources, params, resources), kinds, _smaller_blocks(sources, params, resources)
        )


def check_training(client: Client, params: Params, resources: Resources, text: Text) -> None:
    """Check that workers have the memory to train; raises as `check_encoding` does."""

    def need(workers: Workers, params: Params = params, text: Text = text) -> Stage:
        return TRAINING[params.strategy](params, resources, text, workers)

    def changes(workers: Workers, limit: float) -> Iterator[Change]:
        if params.strategy == ROTATION.name:
            more = params.replace(n_partitions=2 * params.n_partitions, n_groups=None)
            yield f"n_partitions={more.n_partitions}", need(workers, more)
        elif _has_buckets(params, resources):
            yield f"strategy={ROTATION.name!r}", need(workers, params.replace(strategy=ROTATION.name))
        yield from _one_thread(workers, need)
        smaller = params.replace(vector_size=max(1, params.vector_size // 2))
        yield f"vector_size={smaller.vector_size}", need(workers, smaller)
        kept = _most_words(text, limit, lambda text: need(workers, text=text).bytes)
        yield f"max_final_vocab={kept.vocabulary}", need(workers, text=kept)

    _check("Training", need, workers_of(client, resources.device), changes)


def _encode(sources: list[Source], params: Params, resources: Resources) -> Callable[[Workers], Stage]:
    text = guess_text(sources, params, resources)
    return lambda workers: data.encode(text, workers)


def _smaller_blocks(
    sources: list[Source], params: Params, resources: Resources
) -> Callable[[Workers, float], Iterator[Change]]:
    """Return what can be changed where text is read."""

    def changes(workers: Workers, _: float) -> Iterator[Change]:
        size = max(1, resources.block_bytes // 4)
        smaller = _encode(sources, params, resources.replace(block_size=size))
        yield f"block_size={format_bytes(size)!r}", smaller(workers)
        yield from _one_thread(workers, _encode(sources, params, resources))

    return changes


def _one_thread(workers: Workers, need: Callable[[Workers], Stage]) -> Iterator[Change]:
    if workers.threads > 1:
        yield "1 thread a worker", need(Workers(workers.n * workers.threads, 1, workers.memory))


def _has_buckets(params: Params, resources: Resources) -> bool:
    """Tell whether rotation could train the same."""
    try:
        ROTATION.find_kernel(find_objective(params.objective), resources.device)
    except ParameterError:
        return False
    return params.negative_sharing == "shared"


def _most_words(text: Text, limit: float, need: Callable[[Text], int]) -> Text:
    """Return the text with as many words kept as the limit allows, of which one digit is told."""
    kept = text.vocabulary
    while kept > 1 and need(_kept(text, kept)) > limit:
        kept = kept * 9 // 10
    return _kept(text, int(float(f"{kept:.1g}")) if kept > 10 else kept)


def _kept(text: Text, n_words: int) -> Text:
    return Text(**{**vars(text), "vocabulary": min(n_words, text.vocabulary)})


def _fits(need: Callable[[Workers], Stage], kinds: dict[Workers, float]) -> bool:
    return all(need(kind).bytes <= limit for kind, limit in kinds.items())


def _check(
    what: str,
    need: Callable[[Workers], Stage],
    kinds: dict[Workers, float],
    changes: Callable[[Workers, float], Iterator[Change]],
) -> None:
    for kind, limit in kinds.items():
        stage = need(kind)
        if stage.bytes <= limit:
            continue
        helping = [(name, to.bytes) for name, to in changes(kind, limit) if to.bytes < stage.bytes]
        written = "; or ".join(f"{name}, which takes {format_bytes(size)}" for name, size in helping)
        raise ClusterError(
            f"{what} takes about {format_bytes(stage.bytes)} in a worker process ({shown(stage.worker)}), and "
            f"memory_limit is {format_bytes(int(limit))}.",
            f"Give workers a memory_limit of {format_bytes(stage.bytes * 5 // 4)}"
            + (f"; or {written}." if written else "."),
        )
