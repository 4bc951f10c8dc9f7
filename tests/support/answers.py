"""Answers of models in a form that can be compared: an example of each public query."""

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import dask
import numpy as np
from dask.base import tokenize

from daskw2v.errors import Daskw2vError
from daskw2v.models.index.kinds import Searcher
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.quantization import CodedRows
from daskw2v.models.stored.tables import PiecedRows, StoredRows
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = ["walk", "walked", "walker", "sing", "singer", "sings", "bridge", "bridges", "ridge", "zebra", "zebras", "éa"]
UNSEEN = "walkers"

_LIKE = Vectors(WORDS, np.random.default_rng(9).standard_normal((len(WORDS), 6), np.float32))  # another space

QUERIES: dict[str, Callable[[Any], Any]] = {
    "__array__": np.asarray,
    "__contains__": lambda model: ["walk" in model, UNSEEN in model, 3 in model],
    "__getattr__": lambda model: model.wv,
    "__getitem__": lambda model: (model["walk"], model[["sing", "éa"]]),
    "__iter__": list,
    "__len__": len,
    "__repr__": repr,
    "__reversed__": lambda model: list(reversed(model)),
    "analogy": lambda model: [model.analogy("walk", "walked", "sing", 3, kind) for kind in ("3cosadd", "3cosmul")],
    "align": lambda model: model.align(_LIKE)[["walk", UNSEEN]],
    "blocks": lambda model: _by_id(model.blocks(5, 2)),
    "blocks_for": lambda model: _by_id(model.blocks_for(3)),
    "closer_than": lambda model: model.closer_than("walk", "zebra"),
    "cosine_similarities": lambda model: model.cosine_similarities([1.0, 2.0], np.eye(2)),
    "distance": lambda model: model.distance("walk", "zebra"),
    "distances": lambda model: (model.distances("walk"), model.distances(model["sing"], ["zebra", UNSEEN])),
    "doesnt_match": lambda model: model.doesnt_match(["walk", "sing", "zebra"]),
    "encode": lambda model: (model.encode(["walk the walkers", "sing"]), model.encode([["éa", 3]], sif=0.1)),
    "evaluate": lambda model: _evaluated(model.evaluate),
    "exact": lambda model: model.exact(model["walk"], 3),
    "get_index": lambda model: (model.get_index("sing"), model.get_index(UNSEEN, -1)),
    "get_mean_vector": lambda model: model.get_mean_vector(["walk", UNSEEN, "?"], [1, 2, 3]),
    "get_vecattr": lambda model: model.get_vecattr("sing", "count"),
    "get_vector": lambda model: (model.get_vector("walk"), model.get_vector(UNSEEN, norm=True)),
    "has_index_for": lambda model: (model.has_index_for("sing"), model.has_index_for(UNSEEN)),
    "index_to_key": lambda model: (list(model.index_to_key), model.index_to_key.index("sing")),
    "items": lambda model: dict(model.items()),
    "key_to_index": lambda model: dict(model.key_to_index),
    "most_similar": lambda model: model.most_similar(["walk", ("sing", 0.5)], "zebra", topn=4),
    "most_similar_cosmul": lambda model: model.most_similar_cosmul(["walked", "sing"], ["walk"], topn=4),
    "n_similarity": lambda model: model.n_similarity(["walk", "sing"], ["zebra"]),
    "nearest": lambda model: (
        model.nearest(np.arange(2 * model.vector_size).reshape(2, -1), 3),
        model.nearest(["walk", "sing"], 2),
    ),
    "norms": lambda model: model.norms,
    "of_features": lambda model: model.of_features([{"brand": "acme", "price": 1.5}, {"brand": ["zorg", "?"]}]),
    "output_rows": lambda model: model.output_rows(),
    "pieces": lambda model: _by_id(model.pieces()),
    "predict_output_word": lambda model: model.predict_output_word(["walk", "sing"], 3),
    "prefix": lambda model: model.prefix(2),
    "prune": lambda model: model.prune(9)["singers"],
    "rank": lambda model: model.rank("walk", "zebra"),
    "record_batches": lambda model: [batch.to_pylist() for batch in model.record_batches()],
    "report": lambda model: len(_reported(model.report)) > 1000,
    "rows": lambda model: (model.rows(slice(1, 4)), model.rows(np.array([5, 0]))),
    "save": lambda model: _saved(model.save),
    "save_word2vec_format": lambda model: _exported(model.save_word2vec_format),
    "similar_by_vector": lambda model: model.similar_by_vector(np.ones(model.vector_size), 3),
    "similar_by_word": lambda model: model.similar_by_word("bridge", 3),
    "similarity": lambda model: (model.similarity("walk", "zebra"), model.similarity(UNSEEN, "zebra")),
    "slices": lambda model: list(model.slices(5)),
    "to_arrow": lambda model: model.to_arrow().to_pylist(),
    "to_dask_array": lambda model: model.to_dask_array(),
    "to_dask_dataframe": lambda model: model.to_dask_dataframe(),
    "to_dask_neighbours": lambda model: model.to_dask_neighbours(["walk", "sing"], 2),
    "to_gensim": lambda model: model.to_gensim().vectors,
    "to_pandas": lambda model: model.to_pandas(),
    "to_polars": lambda model: model.to_polars().to_dicts(),
    "tokenizer_json": lambda model: model.tokenizer_json(),
    "units": lambda model: model.units([0, 7]),
    "with_ngrams": lambda model: model.with_ngrams(3, 3, 40)[UNSEEN],
    "write_to": lambda model: _written(model.write_to),
}
# What is held, or computed without arguments
QUERIES |= {
    name: attrgetter(name)
    for name in (
        "features",
        "in_memory",
        "metadata",
        "pickles_as",
        "searcher",
        "stable_ids",
        "subwords",
        "summary",
        "url",
        "vector_size",
        "vectors",
        "vocabulary",
    )
}

# What makes a model, leaves it as it is, copies it, or needs a network
_NO_QUERIES = {
    "open",
    "__init__",
    "__post_init__",
    "__setattr__",
    "__delattr__",
    "__replace__",
    "__getstate__",
    "__copy__",
    "__deepcopy__",
    "__dask_tokenize__",
    "push_to_hub",
}


def public_queries(cls: type) -> set[str]:
    """Return the names of all that a model can be asked: methods, operators, properties and fields."""
    own = [base for base in cls.__mro__ if base.__module__.startswith("daskw2v.")]
    found = {name: value for base in own for name, value in vars(base).items()}
    operators = {name for name, value in found.items() if name.startswith("__") and callable(value)}
    named = {name for name in (*found, *(one.name for one in fields(cls))) if not name.startswith("_")}
    return (named | operators) - _NO_QUERIES


def answer(model: Any, query: str) -> Any:
    """Return what a model answers, or the error that it raises, to be compared."""
    try:
        return plain(QUERIES[query](model))
    except (Daskw2vError, AttributeError, TypeError) as error:
        return type(error).__name__, str(error)


def plain(found: Any) -> Any:
    """Return an answer as values that can be compared."""
    if dask.is_dask_collection(found):
        found = found.compute(scheduler="sync")
    match found:
        case np.ndarray():
            return str(found.dtype), found.tolist()
        case StoredRows() | CodedRows():
            return plain(found[:])
        case Vocabulary():
            return found.words, plain(found.counts)
        case Searcher():
            return type(found).__name__, plain(found.content())
        case Vectors():
            return {name: plain(getattr(found, name)) for name in ("vocabulary", "vectors", "features", "subwords")}
        case Mapping():
            return {key: plain(value) for key, value in found.items()}
        case tuple() | list() | Iterator():
            return [plain(value) for value in found]
    if is_dataclass(found):
        return {one.name: plain(getattr(found, one.name)) for one in fields(found)}
    if hasattr(found, "to_dict"):
        return {"columns": found.to_dict("list"), "types": found.dtypes.astype(str).to_dict()}
    return found


def differences(found: Any, expected: Any, place: str = "") -> list[str]:
    """Return where two answers differ by more than rounding of sums whose terms are added in another order."""
    match found, expected:
        case float(), float():
            equal = math.isclose(found, expected, rel_tol=1e-5, abs_tol=1e-6)
        case (dict(), dict()) if found.keys() == expected.keys():
            parts = [differences(value, expected[key], f"{place}/{key}") for key, value in found.items()]
            return list(chain(*parts))
        case (list() | tuple(), list() | tuple()) if len(found) == len(expected):
            return list(
                chain(*(differences(*pair, f"{place}/{n}") for n, pair in enumerate(zip(found, expected, strict=True))))
            )
        case _:
            equal = found == expected
    return [] if equal else [f"{place}: {found!r} for {expected!r}"]


def probed(model: Any) -> list[Any]:
    """Return answers to some queries that read words, rows and lengths."""
    return [answer(model, query) for query in ("__contains__", "__getitem__", "most_similar", "similarity", "rank")]


def value_of(value: Any) -> Any:
    """Return an object that is no model, to be compared."""
    return type(value).__name__, plain(value if is_dataclass(value) else [vars(value), getattr(value, "args", ())])


def words_of(texts: list[str]) -> list[list[str]]:
    """Split texts: a tokenizer."""
    return [text.split() for text in texts]


given: dict[str, Any] = {}


def give(models: dict[str, Any]) -> None:
    """Take models in a process that is started with them."""
    given.update(models)


def asked_there(models: dict[str, Any], values: list[Any]) -> tuple[dict[str, Any], list[Any], set[str]]:
    """Return what models answer, those that were given where there are none; values and tokens; which are mapped."""
    models = models or given
    answers = {name: [probed(model), len(model), plain(model.norms), tokenize(model)] for name, model in models.items()}
    mapped = {name for name, model in models.items() if isinstance(model._rows, PiecedRows)}
    return answers, [(value_of(value), tokenize(value)) for value in values], mapped


def _by_id(parts: Any) -> dict[int, Any]:
    """Return rows by their ids: how many of them are read at once is no part of an answer."""
    return {id_: plain(row) for ids, rows, *_ in parts for id_, row in zip(ids.tolist(), rows, strict=True)}


def _saved(save: Callable[[str], None]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        save(f"{folder}/saved")
        return plain(Vectors.open(f"{folder}/saved", in_memory=False))


def _evaluated(evaluate: Callable[..., Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pairs.txt").write_text("walk sing 3\nwalk zebra 1\nsing zebra 2\n")
        return evaluate(similarity=[f"{folder}/pairs.txt"]).as_dict()


def _reported(report: Callable[[str], str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return Path(report(f"{folder}/page.html")).read_text()


def _exported(export: Callable[[str], None]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        export(f"{folder}/vectors.txt")
        return Path(folder, "vectors.txt").read_bytes()


def _written(write: Callable[[Store], None]) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        write(Store(folder))
        return Store(folder).sizes()
