"""What runs in either tree, and so knows nothing but the public names that both have.

    python child.py TASK TEXT WORK ARGUMENT [--stop]

It prints one line of JSON. The tree comes first on PYTHONPATH.
"""

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from distributed import Client

import daskw2v
from daskw2v import Params, Resources, retrain, train
from daskw2v.errors import Daskw2vError


@contextmanager
def one_worker() -> Iterator[Client]:
    """Give a cluster of one thread in this process."""
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        yield client


def newest(work: Path) -> Path:
    """Return the folder of the newest model."""
    return max(path for path in (work / "models").iterdir() if path.name.startswith("v0"))


def digest(work: Path) -> str:
    """Return a digest of all chunks of the arrays of the newest model."""
    model = newest(work)
    chunks = sorted(path for path in model.rglob("*") if path.is_file() and path.suffix != ".json")
    if not chunks:
        raise FileNotFoundError(f"{model} has no chunks")
    found = hashlib.sha256()
    for path in chunks:
        found.update(str(path.relative_to(model)).encode() + path.read_bytes())
    return found.hexdigest()


def digests(text: str, work: Path, settings: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Train each setting; return the digests of the models, or the first words of what refused one."""
    found = {}
    with one_worker() as client:
        for number, (name, setting) in enumerate(settings.items()):
            place = work / str(number)
            try:
                params = Params(**setting)
                train(
                    text, work=str(place), params=params, resources=Resources(threads=1), client=client, listener=None
                )
            except Daskw2vError as error:
                found[name] = f"refused: {error}"
            else:
                found[name] = digest(place)
    return found


def speeds(text: str, work: Path, setting: dict[str, Any]) -> list[float | None]:
    """Train, waiting for a line on stdin after each round; return each round's words a second, None if it compiled."""

    def wait(progress: Any) -> None:
        if progress.stage == "train" and progress.words_per_second:
            print("round", flush=True)
            sys.stdin.readline()

    with one_worker() as client:
        train(
            text, work=str(work), params=Params(**setting), resources=Resources(threads=1),
            client=client, listener=wait,
        )  # fmt: skip
    history = json.loads((newest(work) / "manifest.json").read_text())["metrics"]["history"]
    return [None if e["compiling"] else e["words"] / e["seconds"] for e in history]


def run(text: str, work: Path, setting: dict[str, Any], *, stop: bool) -> dict[str, Any]:
    """Train; return the digest, and the first share of the training that was told. Or die past the middle of it."""
    told: list[float] = []

    def listen(progress: Any) -> None:
        if progress.stage == "train" and progress.total:
            told.append(progress.done / progress.total)
            if stop and told[-1] > 0.5:
                os._exit(77)

    with one_worker() as client:
        train(
            text, work=str(work), params=Params(**setting), client=client, listener=listen,
            resources=Resources(threads=1, checkpoint_seconds=0),
        )  # fmt: skip
    return {"digest": digest(work), "first": told[0]}


def retrained(text: str, work: Path, setting: dict[str, Any]) -> dict[str, Any]:
    """Retrain on a text that has grown."""
    with one_worker() as client:
        done = retrain(
            text, work=str(work), params=Params(**setting), resources=Resources(threads=1), client=client, listener=None
        )
    return {name: done.as_dict()[name] for name in ("outcome", "version", "served")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=("digests", "speeds", "run", "retrain"))
    parser.add_argument("text")
    parser.add_argument("work", type=Path)
    parser.add_argument("argument", type=json.loads)
    parser.add_argument("--stop", action="store_true")
    given = parser.parse_args()
    arguments = given.text, given.work, given.argument
    match given.task:
        case "digests":
            answer: Any = digests(*arguments)
        case "speeds":
            answer = speeds(*arguments)
        case "run":
            answer = run(*arguments, stop=given.stop)
        case "retrain":
            answer = retrained(*arguments)
    json.dump({"package": str(Path(daskw2v.__file__).parents[1]), "answer": answer}, sys.stdout)


if __name__ == "__main__":
    main()
