"""What is done about damage in a work directory: what can be made again is removed, and so made again."""

from daskw2v.errors import DamageError
from daskw2v.storage import Store


def repair(work: Store, damage: DamageError) -> str | None:
    """Remove the smallest thing that was damaged and that a run makes again when it is missing.

    Returns
    -------
    str or None
        What was removed, below the work directory. None where nobody could make it again: a published model, and a
        word-context matrix, which may have grown from text that is gone.
    """
    inside = damage.url.removeprefix(f"{work.url}/")
    if inside == damage.url:
        return None
    match inside.split("/"):
        case ["shards", encoding, block, *_]:
            unit = ["shards", encoding, block]
        case ["corpora", name]:
            unit = ["corpora", name]
        case ["vocabulary", key, *_]:
            unit = ["vocabulary", key]
        case ["runs", run, "checkpoints", number, *_]:
            unit = ["runs", run, "checkpoints", number]
        case ["runs", run, part, *_]:
            unit = ["runs", run, part]
        case ["models", version, *_] if (work / "models" / version).read_manifest() is None:
            unit = ["models", version]
        case _:
            return None
    name = "/".join(unit)
    (work / name).remove()
    return name
