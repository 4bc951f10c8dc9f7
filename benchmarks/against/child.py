"""What runs in either tree, and so knows nothing but the public names that both have.

    python child.py TASK TEXT WORK SETTING [--stop]

It prints one line of JSON. The tree comes first on PYTHONPATH.
"""

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from distributed import Client

import daskw2v
from daskw2v import Params, Resources
from daskw2v.errors import Daskw2vError


def called(name: str, text: str, work: Path, setting: dict[str, Any], listener: Any = None, **resources: Any) -> Any:
    """Call train or retrain on a cluster of one thread in this process."""
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        return getattr(daskw2v, name)(
            text,
            work=str(work),
            params=Params(**setting),
            resources=Resources(threads=1, **resources),
            client=client,
            listener=listener,
        )


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
    for number, (name, setting) in enumerate(settings.items()):
        place = work / str(number)
        try:
            called("train", text, place, setting)
        except Daskw2vError as error:
            found[name] = f"refused: {error}"
        else:
            found[name] = digest(place)
    return found


def run(text: str, work: Path, setting: dict[str, Any], *, stop: bool = False) -> dict[str, Any]:
    """Train; return the digest, and the first share of the training that was told. Or die past the middle of it."""
    told: list[float] = []

    def listen(progress: Any) -> None:
        if progress.stage == "train" and progress.total:
            told.append(progress.done / progress.total)
            if stop and told[-1] > 0.5:
                os._exit(77)

    called("train", text, work, setting, listen, checkpoint_seconds=0)
    return {"digest": digest(work), "first": told[0]}


def retrained(text: str, work: Path, setting: dict[str, Any]) -> dict[str, Any]:
    """Retrain on a text that has grown."""
    done = called("retrain", text, work, setting).as_dict()
    return {name: done[name] for name in ("outcome", "version", "served")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=("digests", "run", "retrain"))
    parser.add_argument("text")
    parser.add_argument("work", type=Path)
    parser.add_argument("setting", type=json.loads)
    parser.add_argument("--stop", action="store_true")
    given = parser.parse_args()
    tasks: dict[str, Any] = {"digests": digests, "run": run, "retrain": retrained}
    answer = tasks[given.task](given.text, given.work, given.setting, **{"stop": True} if given.stop else {})
    json.dump({"package": str(Path(daskw2v.__file__).parents[1]), "answer": answer}, sys.stdout)


if __name__ == "__main__":
    main()
