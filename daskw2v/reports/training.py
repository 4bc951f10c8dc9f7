"""Facts, settings and curves of a run for the report, read from the model's metadata; what is missing is left out.

`metrics` is the entry of this name in the metadata. Progress is in positions of the corpus, over all epochs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from daskw2v.config.choice import known_fields
from daskw2v.config.params import Params
from daskw2v.config.settings import get_default
from daskw2v.errors import counted
from daskw2v.models.queries.vectors import Vectors
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.reports.text import duration, fixed, number, plain, size
from daskw2v.training.preparation.plan import automatic_choice
from daskw2v.training.strategies import STRATEGIES


class Fact(NamedTuple):
    """A value of the report with its label, and a note beside it, as texts."""

    label: str
    value: str
    note: str = ""


class ChosenSetting(NamedTuple):
    """A parameter of a run: its value, its default and its help text, as texts; and whether value and default differ.

    A parameter that this release of daskw2v does not know has an empty default and help text, and differs.
    """

    name: str
    value: str
    default: str
    help: str
    differs: bool


class Bar(NamedTuple):
    """A bar of a bar chart: its label, its value as text, and its length as a share of the longest bar, 0..1."""

    label: str
    value: str
    share: float


@dataclass(frozen=True)
class TrainingPoint:
    """A point of the training curves: one or more rounds. After each round, all workers have the same model.

    Parameters
    ----------
    progress
        Positions of the corpus that were trained up to the end of the rounds, added up over all epochs.
    elapsed
        Seconds of training up to the end of the rounds.
    loss
        Mean loss of a pair in the rounds; None without pairs.
    alpha
        Learning rate at the end of the rounds.
    words_per_second
        Speed in the rounds, with the time of compilation.
    """

    progress: int
    elapsed: float
    loss: float | None
    alpha: float
    words_per_second: float


def list_facts(vectors: Vectors) -> Iterator[Fact]:
    """Yield the main facts about a model: sizes, text, objective, strategy, device, time and speed."""
    names = ("corpus", "vocabulary", "params", "resources", "metrics")
    corpus, vocabulary, params, resources, metrics = (vectors.metadata.get(name, {}) for name in names)
    types = vocabulary.get("raw_types")
    yield Fact("words", number(len(vectors)), "" if types is None else f"of {number(types)} types")
    yield Fact("dimensions", number(vectors.vector_size))
    if "tokens" in corpus:
        n_bytes = corpus.get("report", {}).get("bytes_read")
        yield Fact("tokens of text", number(corpus["tokens"]), "" if n_bytes is None else f"{size(n_bytes)} read")
    if "objective" in params:
        epochs = params.get("epochs")
        yield Fact("objective", str(params["objective"]), "" if epochs is None else counted(epochs, "epoch"))
    if "strategy" in params:
        name = str(params["strategy"])
        strategy, rounds = STRATEGIES.known(name), len(metrics.get("history", ()))
        yield Fact("strategy", name, ", ".join(strategy.describe_run(params, rounds)) if strategy else "")
    if choice := automatic_choice(vectors.metadata):
        yield Fact("chosen", str(choice["strategy"]), str(choice["why"]))
    if "device" in resources:
        threads = resources.get("threads")
        note = "" if threads is None else f"{counted(threads, 'thread')} a task"
        yield Fact("device", str(resources["device"]), note)
    if "seconds" in metrics:
        words = metrics.get("words")
        yield Fact("training", duration(metrics["seconds"]), "" if words is None else f"{number(words)} words")
    if "words_per_second" in metrics:
        yield Fact("speed", number(metrics["words_per_second"]), "words/s")
    if metrics.get("loss") is not None:
        yield Fact("mean loss", fixed(metrics["loss"], 4), "over the whole training")
    if held_out := vectors.metadata.get("held_out"):
        yield Fact("loss on held-out text", fixed(held_out["loss"], 4), f"{number(held_out['tokens'])} tokens held out")
    if stopped := vectors.metadata.get("stopped"):
        yield Fact("stopped early", f"after {counted(stopped['epochs'], 'epoch')}", str(stopped["reason"]))
    if any("sent" in worker for worker in metrics.get("workers", ())):
        yield Fact("moved", size(sum(worker.get("sent", 0) for worker in metrics["workers"])), "between workers")


def list_text_facts(metadata: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield facts about the text of a model: how much was read, and how much was invalid or left out.

    `metadata` is the model's.
    """
    corpus, vocabulary = metadata.get("corpus", {}), metadata.get("vocabulary", {})
    known = {**corpus.get("report", {}), **vocabulary}
    for name, label in (
        ("lines", "lines read"),
        ("raw_types", "types"),
        ("words", "types kept"),
        ("total", "tokens of types kept"),
        ("replaced", "lines with invalid Unicode, replaced by U+FFFD"),
        ("skipped", "lines left out"),
        ("cut", "lines longer than 4 MiB that were cut"),
        ("first_offence", "first of these lines"),
        ("missing", "words of the given vocabulary that did not occur"),
    ):
        if known.get(name):
            yield Fact(label, plain(known[name]))
    if "identity" in corpus:
        yield Fact("identity of the text", str(corpus["identity"]))


def list_settings(params: Mapping[str, Any]) -> list[ChosenSetting]:
    """Return the parameters in a model's metadata: settings of Params in their order, then of other releases.

    Defaults of the optimizer and the learning rate are the objective's. A setting that is chosen for a run has its
    plain value as default.
    """
    known = known_fields(Params)
    plain_values = {name: f.metadata["plain"] for name, f in known.items() if f.metadata["plain"] is not None}
    defaults = {**{name: get_default(f) for name, f in known.items()}, **Params().as_dict(), **plain_values}
    objective = OBJECTIVES.known(str(params.get("objective")))
    if objective is not None:
        optimizer, alpha = next(iter(objective.alphas.items()))
        defaults["optimizer"] = optimizer
        defaults["alpha"] = objective.alphas.get(params.get("optimizer", optimizer), alpha)
    return [
        ChosenSetting(
            name,
            plain(params[name]),
            plain(defaults[name]) if name in known else "",
            known[name].metadata["help"] if name in known else "",
            name not in known or params[name] != defaults[name],
        )
        for name in sorted(params, key=[*known, *params].index)
    ]


def training_points(metrics: Mapping[str, Any], max_points: int) -> list[TrainingPoint]:
    """Return the history of a training as at most `max_points` points, each of which combines rounds in a row."""
    history: Sequence[Mapping[str, Any]] = metrics.get("history", ())
    length = max(1, -(-len(history) // max_points))
    steps, elapsed = [], 0.0
    for start in range(0, len(history), length):
        entries = history[start : start + length]
        words, pairs, loss, seconds = (sum(e[name] for e in entries) for name in ("words", "pairs", "loss", "seconds"))
        elapsed += seconds
        last, mean = entries[-1], loss / pairs if pairs else None
        steps.append(TrainingPoint(last["progress"], elapsed, mean, last["alpha"], words / max(seconds, 1e-9)))
    return steps


def list_stage_times(metrics: Mapping[str, Any]) -> list[Bar]:
    """Return a bar for the time of each stage of a run, in order."""
    stages = [(str(entry["stage"]), float(entry["seconds"])) for entry in metrics.get("stages", ())]
    longest = max((seconds for _, seconds in stages), default=0) or 1
    return [Bar(stage, duration(seconds), seconds / longest) for stage, seconds in stages]


def read_score_curves(metrics: Mapping[str, Any]) -> tuple[list[int], dict[str, list[float | None]]]:
    """Return the evaluations during a training: the progress at each, and the scores of each set by its name.

    A set has a score for each evaluation; None if it was not evaluated then, or has no score.
    """
    evaluations = metrics.get("evaluations", ())
    names = dict.fromkeys(name for entry in evaluations for name in entry["scores"])
    scores = {name: [entry["scores"].get(name) for entry in evaluations] for name in names}
    return [entry["progress"] for entry in evaluations], scores


def read_held_out_losses(metrics: Mapping[str, Any]) -> tuple[list[int], list[float | None]]:
    """Return the measurements of the loss on held-out text: the progress at each, and the loss, which may be None."""
    measured = [entry for entry in metrics.get("history", ()) if "held_out_loss" in entry]
    return [entry["progress"] for entry in measured], [entry["held_out_loss"] for entry in measured]
