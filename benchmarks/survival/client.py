"""One call of train or retrain, in a process of its own that may be killed: says how far it is, line by line.

python -m benchmarks.survival.client JOB    (the fields of Job, as JSON)
"""

import json
import sys
from dataclasses import dataclass, fields
from typing import Any, get_args

from benchmarks.survival.flaky import register
from daskw2v import Gates, Params, Resources, Vectors, build_index, retrain, train
from daskw2v.errors import Daskw2vError
from daskw2v.models.index.vectors import IndexedVectors
from daskw2v.progress import Progress
from daskw2v.retraining.outcome import Outcome
from daskw2v.store.storage import Store
from tests.support.power_losses import content_of

DONE, FAILED = "done", "failed"
_NONE: dict[str, Any] = {each.name: None for each in fields(Gates) if type(None) in get_args(each.type)}
OPEN = Gates(**_NONE)


@dataclass(frozen=True)
class Job:
    """What is called.

    Parameters
    ----------
    text, work, scheduler
        URLs.
    params, resources
        Fields of those.
    night
        Whether it retrains, on text that has grown.
    index
        Whether an index is built in the end, and asked.
    """

    text: str
    work: str
    scheduler: str
    params: dict[str, Any]
    resources: dict[str, Any]
    night: bool = False
    index: bool = False

    def run(self) -> str:
        """Return what stands for the bits of the version, and for a night for its name."""
        rules = Resources(**self.resources, scheduler=self.scheduler)
        how: dict[str, Any] = {
            "work": self.work,
            "params": Params(**self.params),
            "resources": rules,
            "listener": tell,
        }
        if self.night:
            summary = retrain(self.text, gates=OPEN, **how)
            if summary.outcome not in (Outcome.PUBLISHED, Outcome.NOTHING_NEW):
                raise Daskw2vError(summary.message)
            vectors = Vectors.open(self.work, rules.storage_options)
        else:
            vectors = train(self.text, **how)
        url = str(vectors.url)
        if self.index:
            build_index(url, rules.storage_options, threads=1)
            ids, _ = IndexedVectors.open(url, rules.storage_options).nearest(vectors.vectors[0])
            assert ids[0] == 0, f"the index finds {ids[0]} for the word 0"
        content = content_of(Store(url.removeprefix("flaky://"), dict(rules.storage_options)))  # what is on the disk
        return f"{url.rpartition('/')[2]}:{content}" if self.night else content


def tell(progress: Progress) -> None:
    share = progress.done / progress.total if progress.total else 0.0
    print(progress.stage, f"{share:.3f}", progress.message, flush=True)


def main(job: str) -> int:
    register()
    try:
        print(DONE, Job(**json.loads(job)).run(), flush=True)
    except Daskw2vError as error:
        print(FAILED, type(error).__name__, error, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
