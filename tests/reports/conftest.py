import pytest
from examples import HARMFUL, manifest, model

from daskw2v.evaluation import Evaluation
from daskw2v.evaluation.analogy import AnalogyResult
from daskw2v.evaluation.categorization import CategorizationResult
from daskw2v.evaluation.classification import ClassificationResult
from daskw2v.evaluation.outliers import OutlierResult
from daskw2v.evaluation.similarity import SimilarityResult
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary


@pytest.fixture(scope="session")
def plain():
    """A model of which nothing is known."""
    return model([*(f"word{i}x" for i in range(60)), "alpha", "beta", "gamma"])


@pytest.fixture(scope="session")
def trained():
    """A model of which all is known, with words that no one would wish for."""
    words = ["king", "queen", *HARMFUL, *(f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(180))]
    return model(words, metadata=manifest(window=9), url="memory://store/models/v0001-abc<i>")


@pytest.fixture(scope="session")
def earlier(trained):
    """The same words trained otherwise, and all but the last 50 of them."""
    words = trained.vocabulary.words[:-50]
    rows = trained.vectors[:-50] + 0.4 * model(words, seed=2).vectors
    return Vectors(Vocabulary.from_words(words, range(len(words), 0, -1)), rows, manifest(window=5), "/elsewhere/v0000")


@pytest.fixture(scope="session")
def evaluation():
    """Scores of each kind of set."""
    answers = AnalogyResult(0.25, 400, 100, {"capitals <b>": (75, 300), "plurals": (25, 100)}, {"semantic": (75, 300)})
    return Evaluation(
        {"ws353": SimilarityResult(0.6875, 0.625, 0.75, 340, 13), "tiny": SimilarityResult(None, None, None, 1, 3)},
        {"google": {"3cosadd": answers, "lrcos": AnalogyResult(0.5, 400, 100, {}, {})}},
        {"battig": CategorizationResult(0.4375, 0.40625, 0.46875, 3696, 1535, 56)},
        {"mr": {"logistic": ClassificationResult(0.75, 0.71875, 0.78125, 10_662, 10, 0.9375)}},
        {"wikisem": OutlierResult(0.875, 0.9, 16, 0, {"cats": 1.0, "dogs": None})},
    )
