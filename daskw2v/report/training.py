"""What a manifest tells of a training, in the shape that a page wants. What it does not tell is left out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from daskw2v.models.vectors import Vectors
from daskw2v.objectives import OBJECTIVES
from daskw2v.params import Params
from daskw2v.report.text import duration, fixed, number, plain, size


class Fact(NamedTuple):
    """One thing that is known of a model, and what is said beside it."""

    label: str
    value: str
    note: str = ""


class Choice(NamedTuple):
    """One of the Params beside its default; a parameter that this version does not know has neither that nor help."""

    name: str
    value: str
    default: str
    help: str
    differs: bool


class Bar(NamedTuple):
    """A number and its share of the largest, 0..1."""

    label: str
    value: str
    share: float


@dataclass(frozen=True)
class Step:
    """A stretch of training.

    Parameters
    ----------
    progress
        Positions of the corpus that were passed by its end, over all epochs.
    elapsed
        Seconds of training by then.
    loss
        Mean loss of a pair; None where no pair was left.
    alpha
        Learning rate at its end.
    words_per_second
        Speed.
    """

    progress: int
    elapsed: float
    loss: float | None
    alpha: float
    words_per_second: float


def facts_of(vectors: Vectors) -> Iterator[Fact]:
    """Yield what was trained on what, and how long that took."""
    corpus, vocabulary, params, resources, metrics = (
        vectors.metadata.get(part, {}) for part in ("corpus", "vocabulary", "params", "resources", "metrics")
    )
    types = vocabulary.get("raw_types")
    yield Fact("words", number(len(vectors)), "" if types is None else f"of {number(types)} types")
    yield Fact("dimensions", number(vectors.vector_size))
    if "tokens" in corpus:
        n_bytes = corpus.get("report", {}).get("bytes_read")
        yield Fact("tokens of text", number(corpus["tokens"]), "" if n_bytes is None else f"{size(n_bytes)} read")
    if "objective" in params:
        epochs = params.get("epochs")
        yield Fact("objective", str(params["objective"]), "" if epochs is None else _many(epochs, "epoch"))
    if "strategy" in params:
        yield Fact("strategy", str(params["strategy"]), ", ".join(_meetings(params, metrics)))
    if "device" in resources:
        threads = resources.get("threads")
        yield Fact("device", str(resources["device"]), "" if threads is None else f"{_many(threads, 'thread')} a task")
    if "seconds" in metrics:
        words = metrics.get("words")
        yield Fact("training", duration(metrics["seconds"]), "" if words is None else f"{number(words)} words")
    if "words_per_second" in metrics:
        yield Fact("speed", number(metrics["words_per_second"]), "words/s")
    if metrics.get("loss") is not None:
        yield Fact("mean loss", fixed(metrics["loss"], 4), "over the whole training")
    if any("sent" in worker for worker in metrics.get("workers", ())):
        yield Fact("moved", size(sum(worker.get("sent", 0) for worker in metrics["workers"])), "between workers")


def _meetings(params: Mapping[str, Any], metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many parts of the work were done side by side, and how often they met."""
    what, often = ("n_partitions", "partition"), ("pass", "passes")
    if params["strategy"] != "rotation":
        what, often = (
            ("n_replicas", "replica"),
            ("round", "rounds") if params.get("n_replicas") == 1 else ("merge", "merges"),
        )
    if what[0] in params:
        yield _many(params[what[0]], what[1])
    rounds = len(metrics.get("history", ()))
    if rounds:
        yield f"{number(rounds)} {often[rounds != 1]}"


def text_of(metadata: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield what was read, and what was not as one might think."""
    corpus, vocabulary = metadata.get("corpus", {}), metadata.get("vocabulary", {})
    known = {**corpus.get("report", {}), **vocabulary}
    for name, label in (
        ("lines", "lines read"),
        ("raw_types", "types"),
        ("words", "types kept"),
        ("total", "tokens of types kept"),
        ("replaced", "lines with invalid Unicode, which U+FFFD stands for"),
        ("skipped", "lines left out"),
        ("cut", "lines longer than 4 MiB that were cut"),
        ("first_offence", "first of these lines"),
        ("missing", "words of the given vocabulary that did not occur"),
    ):
        if known.get(name):
            yield Fact(label, plain(known[name]))
    if "identity" in corpus:
        yield Fact("identity of the text", str(corpus["identity"]))


def choices_of(params: Mapping[str, Any]) -> list[Choice]:
    """List the Params in their order, then those that only another version knows."""
    known, defaults = {f.name: f for f in fields(Params)}, Params().as_dict()
    if params.get("objective") in OBJECTIVES:
        alphas = OBJECTIVES[params["objective"]].alphas
        own = next(iter(alphas))
        defaults |= {"optimizer": own, "alpha": alphas.get(params.get("optimizer", own), alphas[own])}
    return [
        Choice(
            name,
            plain(params[name]),
            plain(defaults[name]) if name in known else "",
            known[name].metadata["help"] if name in known else "",
            name not in known or params[name] != defaults[name],
        )
        for name in sorted(params, key=[*known, *params].index)
    ]


def steps_of(metrics: Mapping[str, Any], most: int) -> list[Step]:
    """Return the history in at most so many steps: where it has more entries, several in a row become one."""
    history: Sequence[Mapping[str, Any]] = metrics.get("history", ())
    length = max(1, -(-len(history) // most))
    steps, elapsed = [], 0.0
    for start in range(0, len(history), length):
        entries = history[start : start + length]
        words, pairs, loss, seconds = (sum(e[name] for e in entries) for name in ("words", "pairs", "loss", "seconds"))
        elapsed += seconds
        last, mean = entries[-1], loss / pairs if pairs else None
        steps.append(Step(last["progress"], elapsed, mean, last["alpha"], words / max(seconds, 1e-9)))
    return steps


def stages_of(metrics: Mapping[str, Any]) -> list[Bar]:
    """List the time that each stage took."""
    stages = [(str(entry["stage"]), float(entry["seconds"])) for entry in metrics.get("stages", ())]
    longest = max((seconds for _, seconds in stages), default=0) or 1
    return [Bar(stage, duration(seconds), seconds / longest) for stage, seconds in stages]


def curves_of(metrics: Mapping[str, Any]) -> tuple[list[int], dict[str, list[float | None]]]:
    """Return where the model was evaluated while it was trained, and each set's scores there."""
    evaluations = metrics.get("evaluations", ())
    names = dict.fromkeys(name for entry in evaluations for name in entry["scores"])
    return (
        [entry["progress"] for entry in evaluations],
        {name: [entry["scores"].get(name) for entry in evaluations] for name in names},
    )


def _many(n: int, what: str) -> str:
    return f"{number(n)} {what}{'s' * (n != 1)}"
