"""The outcome of a run as metrics in Prometheus text format.

node_exporter's textfile collector reads the files `*.prom` of a folder. All series have the label `work`, which tells
the work directories of one machine apart; each has its own file.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from daskw2v.retraining.outcome import Outcome, Summary

_PREFIX = "daskw2v_retrain_"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

MetricSample = tuple[Mapping[str, str], float]


class _Metric(NamedTuple):
    """A gauge: its name without prefix, its help, and its samples."""

    name: str
    help: str
    samples: Iterable[MetricSample]

    def lines(self, work: str) -> Iterator[str]:
        """Yield the lines of the metric; none without samples."""
        for number, (labels, value) in enumerate(self.samples):
            if not number:
                yield f"# HELP {_PREFIX}{self.name} {self.help}"
                yield f"# TYPE {_PREFIX}{self.name} gauge"
            named = ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in {"work": work, **labels}.items())
            yield f"{_PREFIX}{self.name}{{{named}}} {_written(value)}"


def metrics_of(summary: Summary) -> str:
    """Return the metrics of a summary as text."""
    return "".join(f"{line}\n" for metric in _metrics(summary) for line in metric.lines(summary.work))


def _metrics(summary: Summary) -> Iterator[_Metric]:
    ended = summary.started.timestamp() + summary.seconds
    yield _Metric("last_run_timestamp_seconds", "When the last run ended.", [({}, ended)])
    yield _Metric("duration_seconds", "Duration of the last run.", [({}, summary.seconds)])
    yield _Metric(
        "outcome", "1 for the outcome of the last run, 0 for the others.",
        [({"outcome": each.label}, float(each is summary.outcome)) for each in Outcome],
    )  # fmt: skip
    if summary.served is not None and summary.served_since is not None:
        since = summary.served_since.timestamp()
        yield _Metric("served_timestamp_seconds", "When the served version was created.",
                      [({"version": summary.served}, since)])  # fmt: skip
    if summary.verdict is not None:
        gates = summary.verdict.gates
        yield _Metric("gate_passed", "1 if the version passed the gate, 0 if not.",
                      [({"gate": gate.name}, float(gate.passed)) for gate in gates])  # fmt: skip
        yield _Metric("gate_value", "Value that a gate measured.",
                      [({"gate": gate.name}, gate.value) for gate in gates if gate.value is not None])  # fmt: skip
        yield _Metric("gate_bound", "Bound that a gate requires.",
                      [({"gate": gate.name}, gate.bound) for gate in gates if gate.bound is not None])  # fmt: skip
    if summary.alignment is not None:
        cosines = {"before": summary.alignment.before, "after": summary.alignment.after}
        yield _Metric("alignment_cosine", "Mean cosine with the published version's vectors.",
                      [({"when": when}, cosine) for when, cosine in cosines.items()])  # fmt: skip
    yield _Metric("figure", "Other numbers of the run.",
                  [({"name": name}, value) for name, value in summary.figures.items()])  # fmt: skip


def _written(value: float) -> str:
    """Return a number in Prometheus text format."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))
