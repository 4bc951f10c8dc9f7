import pytest

from daskw2v.cli import evaluating, formats, models, training
from daskw2v.evaluation import Evaluation
from daskw2v.evaluation.similarity import SimilarityResult
from daskw2v.progress import Progress
from tests.cli.fakes import FakeVectors


@pytest.fixture
def calls(monkeypatch):
    """Replace what trains and what is trained; return the arguments they were called with."""
    seen = {}

    def train(inputs, *, listener, **kwargs):
        seen["train"] = {"inputs": inputs, **kwargs}
        listener(Progress("cluster", 0, 0, "workers", message="dashboard at http://here"))
        listener(Progress("count", 1, 1, "blocks"))
        return FakeVectors()

    def evaluate(vectors, **given):
        seen["evaluate"] = {name: value for name, value in given.items() if value}
        return Evaluation({"ws": SimilarityResult(0.5, 0.4, 0.6, 300, 53)}, {}, {}, {}, {})

    def report(vectors, url, **given):
        seen["report"] = {"url": url, **given}
        return url

    monkeypatch.setattr(training, "train", train)
    monkeypatch.setattr(formats, "export", lambda _, *args, **own: seen.update(export=(*args, own)))
    for module in (training, evaluating):
        monkeypatch.setattr(module, "evaluate", evaluate)
    monkeypatch.setattr(training, "write_report", report)
    monkeypatch.setattr(evaluating, "report", report)
    for module in (models, evaluating):
        monkeypatch.setattr(module, "Vectors", FakeVectors)
    return seen
