"""Arguments shared by all tasks of a run."""

from dataclasses import dataclass
from typing import NamedTuple

from daskw2v.config.params import Params
from daskw2v.store.storage import Store
from daskw2v.vocabulary.count import StoredVocabulary


class Base(NamedTuple):
    """The base model, whose rows training begins with.

    Parameters
    ----------
    model
        Folder of the model's version.
    rows
        Folder of the Zarr group with the base's row of each word.
    tables
        Names of the tables that begin with the base's rows.
    """

    model: Store
    rows: Store
    tables: tuple[str, ...]


class RunFeatures(NamedTuple):
    """The folder of the features of words, and the number of rows of their table."""

    folder: Store
    rows: int


@dataclass(frozen=True)
class Run:
    """Text, words and Params of a run; small, as it is sent with each task.

    Parameters
    ----------
    work
        The work directory, which all workers can reach.
    corpus, vocabulary
        Name of the corpus (`Corpus.name`), and the vocabulary.
    params
        The Params.
    device
        Name of the device of training tasks.
    base
        The model of which initial rows are read; None draws them at random.
    markets
        Folder of the Zarr group with the number of each word's market; None where no negatives are drawn from markets.
    features
        The features of words; None where words have none.
    """

    work: Store
    corpus: str
    vocabulary: StoredVocabulary
    params: Params
    device: str
    base: Base | None = None
    markets: Store | None = None
    features: RunFeatures | None = None
