"""One call of train, in a process of its own that may be killed: says how far it is, line by line.

python -m benchmarks.survival.client SCHEDULER TEXT WORK PARAMS RESOURCES [index]    (PARAMS and RESOURCES as JSON)

SCHEDULER may be "adaptive": a local cluster, which shrinks and grows while the mood (`flaky`) says so.
"""

import hashlib
import json
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import zarr
from distributed import Client, LocalCluster

from benchmarks.survival.flaky import LIMITS, mood_of_all, register
from daskw2v import Params, Resources, Vectors, build_index, train
from daskw2v.errors import Daskw2vError
from daskw2v.models.index.vectors import IndexedVectors
from daskw2v.progress import Progress
from daskw2v.store.storage import Store

ADAPTIVE = "adaptive"
_SHRUNK, _POLL = 2.0, 0.1  # seconds
DONE, FAILED = "done", "failed"


def digest(vectors: Vectors, options: Mapping[str, Any] | None = None) -> str:
    """Return what stands for the bits of all arrays of a version: tables, vocabulary, ids, phrases, subwords."""
    content, url = hashlib.blake2b(digest_size=16), str(vectors.url).removeprefix("flaky://")  # what is on the disk
    with warnings.catch_warnings():  # manifests lie beside the arrays
        warnings.simplefilter("ignore", zarr.errors.ZarrUserWarning)
        members = sorted(Store(url, dict(options or {})).open_group().members(max_depth=None))
    for name, member in members:
        if isinstance(member, zarr.Array):
            values = np.asarray(member[...])
            content.update(f"{name} {values.dtype} {values.shape} ".encode())
            content.update(values.tobytes())
    return content.hexdigest()


def check_index(vectors: Vectors, options: Mapping[str, Any]) -> None:
    """Build the index of a version, and ask it: a word is nearest to itself."""
    url = str(vectors.url)
    build_index(url, options, threads=1)
    ids, _ = IndexedVectors.open(url, options).nearest(vectors.vectors[0])
    if ids[0] != 0:
        raise AssertionError(f"the index finds {ids[0]} for the word 0")


def say(*words: object) -> None:
    print(*words, flush=True)


def tell(progress: Progress) -> None:
    share = progress.done / progress.total if progress.total else 0.0
    say(progress.stage, f"{share:.3f}", progress.message)


@contextmanager
def adaptive() -> Iterator[Client]:
    """Start a local cluster of no to three workers, which is told other limits again and again when the mood is so."""
    with (
        LocalCluster(n_workers=0, threads_per_worker=1, memory_limit="2 GB", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):

        def change() -> None:
            while mood_of_all() != LIMITS:
                time.sleep(_POLL)
            for most in (1, 3, 1, 2):
                cluster.adapt(minimum=1, maximum=most, interval="200 ms", wait_count=2)
                time.sleep(_SHRUNK)

        cluster.adapt(minimum=0, maximum=3, interval="200 ms", wait_count=2)
        threading.Thread(target=change, daemon=True).start()
        yield client


def main(scheduler: str, text: str, work: str, params: str, resources: str, *more: str) -> int:
    register()
    rules = Resources(**json.loads(resources))
    if scheduler != ADAPTIVE:
        rules = replace(rules, scheduler=scheduler)
    try:
        with adaptive() if scheduler == ADAPTIVE else nullcontext() as client:
            model = Params(**json.loads(params))
            vectors = train(text, work=work, params=model, resources=rules, client=client, listener=tell)
        if "index" in more:
            check_index(vectors, rules.storage_options)
        say(DONE, digest(vectors, rules.storage_options))
    except Daskw2vError as error:
        say(FAILED, type(error).__name__, error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
