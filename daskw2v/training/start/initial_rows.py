"""The rows that training begins with: drawn, or for words of the base the base's rows.

The base is a published version of the same work directory, which is never changed, or the model that `base_vectors`
names. A run stores only the index of each word's row in the base: a worker that needs a row reads it from the base.

Besides the tables, kernels read arrays that the objective prepares once in a process (`get_prepared`).
"""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.features.settings import FEATURES
from daskw2v.models.stored.store import read_finished, read_subwords, read_vocabulary
from daskw2v.models.stored.tables import open_table
from daskw2v.models.versions.versions import Versions
from daskw2v.objectives.base import NOT_FROZEN
from daskw2v.objectives.registry import find_objective
from daskw2v.objectives.subwords.network import Alphabet, Weights
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.sampling.run import Base, Run
from daskw2v.store.arrays import open_array, write_array
from daskw2v.store.durability import durable
from daskw2v.store.storage import Store
from daskw2v.training.start.base_settings import BaseModel, BaseVectors, get_anchor, get_frozen_words
from daskw2v.training.start.base_vectors import find_base_vectors, frozen_list
from daskw2v.training.start.features import make_initial_feature_rows, make_initial_own_rows
from daskw2v.training.start.markets import read_word_markets
from daskw2v.types import Float32Array, RowIds, UInt8Array
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.vocabulary import Vocabulary

_ROWS, _FROZEN = "rows", "frozen"
_EQUAL = ("objective", "vector_size")  # Params that a version and a run that starts from it have in common


def check_base(params: Params, resources: Resources) -> None:
    """Raise a ParameterError for a base or an anchor that an objective with a network, or `word_losses`, rules out."""
    objective, anchor = params.objective.name, get_anchor(params)
    follows = find_objective(objective).has_network
    if follows and BaseVectors.find(params) is not None:
        raise ParameterError(
            f"base_vectors cannot be rows of objective={objective!r}, which its network makes.",
            "Leave base_vectors out.",
        )
    if follows and anchor:
        raise ParameterError(
            f"anchor={anchor} cannot hold rows of objective={objective!r}, which its network makes.",
            "Leave anchor out.",
        )
    if anchor and resources.word_losses:
        raise ParameterError(
            f"word_losses=True: rows that anchor={anchor} leads back are not those whose losses are kept.",
            "Leave one of the two out.",
        )


def find_base(work: Store, params: Params) -> Store:
    """Return the folder of the base: the version that a `BaseModel` names, or the model of settled `BaseVectors`.

    Raises
    ------
    ParameterError
        If there is no such version, or it was trained with another objective or vector size.
    """
    base = BaseModel.find(params)
    if base is None:
        return find_base_vectors(work, params)
    versions = Versions(work)
    model = versions.models / str(base.version)
    manifest = read_finished(model)
    if manifest is None:
        names = ", ".join(version.name for version in versions.all()) or "there is none"
        raise ParameterError(
            f"base_model={base.version!r} is no finished model of {work.url}.",
            f"Give one of its versions: {names}.",
        )
    for name in _EQUAL:
        base_value, value = manifest.get("params", {}).get(name), params.flat()[name]
        if base_value != value:
            raise ParameterError(
                f"base_model={base.version!r} was trained with {name}={base_value!r}, not {value!r}.",
                f"Give {name}={base_value!r}, or leave base_model out and train anew.",
            )
    return model


def base_tables(model: Store, params: Params) -> tuple[str, ...]:
    """Return the names of the tables that begin with the base's rows; "input" alone if it has another objective."""
    manifest = read_finished(model) or {}
    if manifest.get("params", {}).get("objective") != params.objective.name:
        return ("input",)
    return tuple(table for table in find_objective(params.objective.name).tables_by_word if table in manifest["tables"])


@durable()
def write_base(base: Base, vocabulary: StoredVocabulary, frozen: str | None, resources: Resources) -> None:
    """Task: write the index of each word's row in the base, -1 for new words, and whether each word is frozen.

    `frozen` is the setting `frozen_words`; None writes no array of frozen words.
    """
    words, group = vocabulary.load(), base.rows.create_group()
    rows = read_vocabulary(base.model).find_all(words)
    write_array(group, _ROWS, rows)
    if frozen is not None:
        listed, is_frozen = frozen_list(frozen, resources), rows >= 0
        if listed is not None:
            is_frozen &= Vocabulary.from_words(listed, [0] * len(listed)).find_all(words) >= 0
        write_array(group, _FROZEN, is_frozen.astype(np.uint8))


def frozen_rows(run: Run) -> UInt8Array:
    """Return whether each word is frozen, 1 or 0, shape (V,) uint8; of length 0 without `frozen_words`."""
    if get_frozen_words(run.params) is None:
        return NOT_FROZEN
    assert run.base is not None
    frozen: UInt8Array = open_array(run.base.rows.open_group(), _FROZEN)[:]
    return frozen


def make_initial_rows(run: Run, table: str, ids: RowIds) -> Float32Array:
    """Return the rows of these ids of a table before training, shape (n, D): a pure function of the run."""
    if table == FEATURES:
        return make_initial_feature_rows(run, ids)
    objective = find_objective(run.params.objective.name)
    rows = objective.initial(run.params, table, ids)
    if run.base is not None and table in run.base.tables and len(ids):
        known, base_rows = _read_base_rows(run.base, table, ids)
        rows[known] = make_initial_own_rows(run, ids[known], base_rows) if table == "input" else base_rows
    return rows


def anchor_rows(run: Run, table: str, ids: RowIds, rows: Float32Array) -> Float32Array:
    """Return trained rows of a table, shape (n, D), led back towards the base: anchor * base + (1 - anchor) * trained.

    Rows of words that the base does not have are unchanged. Training on little text at a high learning rate moves rows
    along what the text repeats and by its noise: their mean with the rows of the base has less of both (as of weights:
    Izmailov et al. 2018, section 3).
    """
    assert run.base is not None
    if table not in run.base.tables:
        return rows
    known, base_rows = _read_base_rows(run.base, table, ids)
    mixed, share = rows.copy(), np.float32(get_anchor(run.params))
    mixed[known] += share * (base_rows - mixed[known])
    return mixed


def _read_base_rows(base: Base, table: str, ids: RowIds) -> tuple[npt.NDArray[np.bool_], Float32Array]:
    """Return which of one or more ids the base has, shape (n,) bool, and the base's rows of these, shape (known, D)."""
    low, high = int(ids.min()), int(ids.max()) + 1
    indices = open_array(base.rows.open_group(), _ROWS)[low:high][ids - low]
    known = indices >= 0
    return known, open_table(base.model, table)[indices[known]]


def make_initial_weights(run: Run, alphabet: Alphabet) -> Weights:
    """Return the weights of the network before training: the base's, with drawn weights of new characters; or drawn."""
    weights = initial_weights(run.params.vector_size, len(alphabet), run.params.seed)
    base = read_subwords(run.base.model) if run.base is not None else None
    if base is None:
        return weights
    indices = {character: index for index, character in enumerate(base.alphabet.characters)}
    marks = len(alphabet) - len(alphabet.characters)  # unknown, begin, end: equal in both
    rows = [*range(marks), *(marks + indices.get(character, -1 - marks) for character in alphabet.characters)]
    drawn, known = weights["characters"], np.array(rows) >= 0
    characters = np.where(known[:, None], base.weights["characters"][rows], drawn)
    return {**base.weights, "characters": characters}


@lru_cache(maxsize=2)
def get_prepared(run: Run) -> Any:
    """Return the arrays that the objective prepares for a run. Cached in a process, for the last two runs."""
    objective, counts = find_objective(run.params.objective.name), run.vocabulary.read_counts()
    prepared = objective.prepare(run.params, counts)
    if run.markets is None or objective.with_markets is None:
        return prepared
    return objective.with_markets(prepared, counts, read_word_markets(run))
