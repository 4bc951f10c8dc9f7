"""What all tasks of a run share."""

from dataclasses import dataclass

from daskw2v.params import Params
from daskw2v.storage import Store
from daskw2v.vocabulary.count import StoredVocabulary


@dataclass(frozen=True)
class Run:
    """What is trained from what; small, since it travels with each task.

    Parameters
    ----------
    work
        The work directory, which every worker sees.
    corpus, vocabulary
        Name of the corpus in it, and the vocabulary.
    params
        The experiment.
    device
        What a training task runs on.
    shared
        Whether tasks return rows in memory that other workers of their host can open.
    """

    work: Store
    corpus: str
    vocabulary: StoredVocabulary
    params: Params
    device: str
    shared: bool = False
