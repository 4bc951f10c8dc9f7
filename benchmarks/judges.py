"""The sets that W2V-CL's paper judges vectors by (Li et al. 2019, section 5.2), of those that are at hand."""

from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.cache import Scores
from benchmarks.texts import ANALOGY, DATA
from daskw2v.evaluation import evaluate
from daskw2v.evaluation.classification import ClassificationMethod
from daskw2v.models.queries.vectors import Vectors

_EVAL = DATA / "eval"
SIMILARITY = {
    "WordSim353": "ws353",
    "WordSim353, similarity": "ws353_sim",
    "WordSim353, relatedness": "ws353_rel",
    "Sim 999": "simlex999",
    "MEN": "men",
    "Mech Turk": "mturk287",
    "Rare Words": "rw",
}
ANALOGIES = {"Google": ANALOGY[0], "BATS": _EVAL / "bats"}
CATEGORIES = {
    "BM (Battig)": "battig",
    "AP": "ap",
    "BLESS": "bless",
    "ESSLLI 1a": "esslli2008_1a",
    "ESSLLI 2c": "esslli2008_2c",
}
_TEXTS = {
    "stsa": "sst2_train.tsv,sst2_dev.tsv,sst2_test.tsv",
    "custrev": "cr.tsv",
    "mpqa": "mpqa.tsv",
    "rt": "mr.tsv",
    "subj": "subj.tsv",
}
TEXTS = {name: [_EVAL / file for file in files.split(",")] for name, files in _TEXTS.items()}
NAMES = (*SIMILARITY, *ANALOGIES, *CATEGORIES, *TEXTS)
FEW = {"WordSim353": "ws353", "Sim 999": "simlex999", "Mech Turk": "mturk287", "Google": "google_analogy"}

Judge = Callable[[Vectors], Scores]


def tables_of(names: dict[str, str]) -> dict[str, Path]:
    """Return the files of sets of words that are there."""
    found = {name: _EVAL / f"{file}.tsv" for name, file in names.items()}
    return {name: path for name, path in found.items() if path.exists()}


def by_few(vectors: Vectors) -> Scores:
    """Return Spearman's correlation and 3CosAdd accuracy, by the names of the files of FEW."""
    *similarity, _ = (_EVAL / f"{file}.tsv" for file in FEW.values())
    found = evaluate(vectors, similarity, ANALOGY, analogy_methods=("3cosadd",)).scores()
    return {name: value for name, value in found.items() if value is not None}


def judge_of(classifier: ClassificationMethod, texts: Iterable[str] = TEXTS) -> Judge:
    """Return what gives Spearman's correlation, LRCos accuracy, purity, and accuracy of a classifier of texts, by set.

    The paper's classifier is the convolutional network. What is judged with fewer sets of texts has a name of its own.
    """
    chosen = {name: TEXTS[name] for name in texts}
    similarity, categories = tables_of(SIMILARITY), tables_of(CATEGORIES)
    names = {path.stem: name for name, path in (similarity | ANALOGIES | categories).items()}
    names |= {files[0].stem: name for name, files in chosen.items()}

    def judge(vectors: Vectors) -> Scores:
        found = evaluate(
            vectors,
            list(similarity.values()),
            list(ANALOGIES.values()),
            list(categories.values()),
            [",".join(map(str, files)) for files in chosen.values()],
            analogy_methods=("lrcos",),
            classification_methods=(classifier,),
        )
        return {names[name]: value for name, value in found.scores().items() if value is not None}

    judge.__name__ = "_".join(("by", classifier, *(chosen if chosen.keys() != TEXTS.keys() else ())))
    return judge
