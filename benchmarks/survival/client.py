"""One call of train, in a process of its own that may be killed: says how far it is, line by line.

python -m benchmarks.survival.client SCHEDULER TEXT WORK PARAMS RESOURCES    (the last two as JSON)
"""

import hashlib
import json
import sys

from benchmarks.survival.flaky import register
from daskw2v import Params, Resources, Vectors, train
from daskw2v.errors import Daskw2vError
from daskw2v.progress import Progress

DONE, FAILED = "done", "failed"


def digest(vectors: Vectors) -> str:
    """Return what stands for words and bits of a model."""
    content = hashlib.blake2b(vectors.vectors[:].tobytes(), digest_size=16)
    content.update("\n".join(vectors.vocabulary.words).encode())
    return content.hexdigest()


def say(*words: object) -> None:
    print(*words, flush=True)


def tell(progress: Progress) -> None:
    share = progress.done / progress.total if progress.total else 0.0
    say(progress.stage, f"{share:.3f}", progress.message)


def main(scheduler: str, text: str, work: str, params: str, resources: str) -> int:
    register()
    try:
        vectors = train(
            text, work=work, params=Params(**json.loads(params)),
            resources=Resources(scheduler=scheduler, **json.loads(resources)), listener=tell,
        )  # fmt: skip
    except Daskw2vError as error:
        say(FAILED, type(error).__name__, error)
        return 1
    say(DONE, digest(vectors))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
