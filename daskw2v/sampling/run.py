"""What all tasks of a run share."""

from dataclasses import dataclass
from typing import NamedTuple

from daskw2v.params import Params
from daskw2v.storage import Store
from daskw2v.vocabulary.count import StoredVocabulary


class Base(NamedTuple):
    """The earlier model that training goes on from: its version, and the group that tells its row of each word."""

    model: Store
    rows: Store


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
    base
        Where its first rows come from; drawn, where there is none.
    """

    work: Store
    corpus: str
    vocabulary: StoredVocabulary
    params: Params
    device: str
    base: Base | None = None
