"""Whatever is public gives equal answers after it was copied, pickled or sent, and has one name among Dask's keys.

A class that is added to `daskw2v.__all__` needs an example here, and a query that is added to models one in
`tests.support.answers`.
"""

import copy
import inspect
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import cloudpickle
import dask
import numpy as np
import pytest
from dask.base import tokenize

import daskw2v
from daskw2v import errors
from daskw2v.features.keys import FeatureColumn, FeatureKeys, HashedNGrams
from daskw2v.models.follower import Follower
from daskw2v.models.index.kinds import KINDS
from daskw2v.models.index.vectors import IndexedVectors, build_index
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.quantization import Codebook
from daskw2v.models.stored.store import write_ids, write_vocabulary
from daskw2v.models.stored.tables import PiecedRows
from daskw2v.models.versions.phrases import BigramScore
from daskw2v.models.versions.versions import publish
from daskw2v.objectives.settings import OBJECTIVES
from daskw2v.objectives.subwords.network import Alphabet, Subwords
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.store.storage import Store
from daskw2v.training.devices.settings import DEVICES
from daskw2v.training.preparation.plan import alternatives, plan_memory
from daskw2v.training.sizes import Text, Workers
from daskw2v.training.strategy_choices import STRATEGIES
from daskw2v.vocabulary.ids import StableIds
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.answers import (
    QUERIES,
    WORDS,
    answer,
    asked_there,
    differences,
    give,
    probed,
    public_queries,
    value_of,
    words_of,
)
from tests.support.tables import write_input

V, D = len(WORDS), 6
ROWS = np.random.default_rng(1).standard_normal((V, D), np.float32)
VOCABULARY = Vocabulary.from_words(WORDS, range(V + 8, 8, -1))
COLUMNS = FeatureColumn("brand", 2.0, ("acme", "zorg")), FeatureColumn("price", 1.0, knots=(1.0, 2.0, 4.0))

COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy}
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)
PICKLES = {
    **{f"protocol {number}": partial(pickle.dumps, protocol=number) for number in PROTOCOLS},
    "cloudpickle": cloudpickle.dumps,
}
WAYS = [*COPIES, *PICKLES]


def by(way, value):
    """Return what a value becomes by a way of copying it."""
    return COPIES[way](value) if way in COPIES else pickle.loads(PICKLES[way](value))


def sent(value):
    return pickle.loads(pickle.dumps(value))


def in_memory(_):
    return Vectors(VOCABULARY, ROWS, {"params": {"seed": 3}}, stable_ids=np.arange(V) + 5)


def with_table(_):
    keys = FeatureKeys(COLUMNS, HashedNGrams(3, 4, 50), np.arange(50, dtype=np.int32)[::-1].copy())
    return Vectors(
        VOCABULARY, ROWS, features=FeatureVectors(keys, np.random.default_rng(2).random((55, D), np.float32))
    )


def with_codes(_):
    keys, rows = (
        FeatureKeys(ngrams=HashedNGrams(3, 3, 40), buckets=np.arange(40, dtype=np.int32)),
        np.resize(ROWS, (40, D)),
    )
    return Vectors(VOCABULARY, ROWS, features=FeatureVectors(keys, Codebook.fit(rows, 2).encode(rows)))


def with_network(_):
    alphabet = Alphabet.from_words(WORDS)
    return Vectors(VOCABULARY, ROWS, subwords=Subwords(alphabet, initial_weights(D, len(alphabet), seed=1)))


def saved(make, folder, **options):
    """Return a model that was saved and opened."""
    if not (folder / "saved").exists():
        make(folder).save(folder / "saved")
    return Vectors.open(folder / "saved", **options)


def published(n_partitions, folder, **options):
    """Return a version of a work directory, with stable ids."""
    if not (folder / "models").exists():
        models, name = Store(str(folder / "models")), "v0001-r"
        write_input(models / name, ROWS, 4, n_partitions)
        write_vocabulary(models / name, VOCABULARY)
        write_ids(models / name, StableIds.first(VOCABULARY))
        publish(models, name, {"params": {"seed": 3}})
    return Vectors.open(folder, **options)


def in_this_process_alone(folder):
    url = f"memory://{folder}"
    if not Store(url).exists():
        in_memory(folder).save(url)
    return Vectors.open(url, in_memory=False)


def indexed(kind, folder):
    saved(in_memory, folder)
    if not (folder / "saved" / "index").exists():
        build_index(folder / "saved", kind=kind)
    return IndexedVectors.open(folder / "saved")


def followed(folder):
    published(1, folder)
    with Follower(folder, interval=3600) as follower:
        return follower.vectors


MODELS = {
    "in memory": in_memory,
    "with a table of features": with_table,
    "with quantized n-grams": with_codes,
    "with a subword network": with_network,
    "mapped": partial(saved, with_table, in_memory=True),
    "mapped, in partitions": partial(published, 3, in_memory=True),
    "in a store": partial(saved, with_table, in_memory=False),
    "in a store, in partitions": partial(published, 3, in_memory=False),
    "in this process's memory://": in_this_process_alone,
    "of a follower": followed,
    **{f"indexed by {kind}": partial(indexed, kind) for kind in KINDS},
}
ADDRESSES = {"in a store", "in a store, in partitions"}
# What a pickle of a model changes: where rows are read from, and what needs a store that others reach
CHANGED = {"in this process's memory://": {"in_memory", "to_dask_neighbours"}}

EXAMPLES = {
    "Callback": (daskw2v.Callback, None),
    "EdgeList": (lambda: daskw2v.EdgeList(weight="w"), daskw2v.EdgeList),
    "Events": (lambda: daskw2v.Events(["a.parquet"]), lambda: daskw2v.Events(["b.parquet"])),
    "Gates": (lambda: daskw2v.Gates(min_score={"similarity/ws353": 0.5}), daskw2v.Gates),
    "Graph": (lambda: daskw2v.Graph("a.csv"), lambda: daskw2v.Graph("a.csv", walks=daskw2v.Walks(length=9))),
    "Item2Vec": (lambda: daskw2v.Item2Vec(user="customer"), daskw2v.Item2Vec),
    "Node2Vec": (lambda: daskw2v.Node2Vec(q=0.5), daskw2v.Node2Vec),
    "Notices": (lambda: daskw2v.Notices(webhook="https://a.b/c", webhook_headers={"a": "b"}), daskw2v.Notices),
    "Params": (lambda: daskw2v.Params(tokenizer=words_of, filters=("day>=2026-11-01",)), daskw2v.Params),
    "Phrases": (
        lambda: daskw2v.Phrases((("_", {("new", "york"): BigramScore(3, 1.5), ("a", "b"): BigramScore(2, 1.0)}),)),
        lambda: daskw2v.Phrases((("_", {("new", "york"): BigramScore(4, 1.5)}),)),
    ),
    "Policy": (lambda: daskw2v.Policy(keep=3), daskw2v.Policy),
    "Resources": (lambda: daskw2v.Resources(storage_options={"key": "k"}), daskw2v.Resources),
    "Sessions": (lambda: daskw2v.Sessions(gap="30 min"), daskw2v.Sessions),
    "Store": (lambda: Store("s3://a/b", {"key": "k"}, 3.0), lambda: Store("s3://a/c")),
    "Plan": (lambda: planned(90), lambda: planned(91)),
    "TrainingRecord": (lambda: record(loss=0.5), lambda: record(loss=0.4)),
    "Versions": (lambda: daskw2v.Versions(Store("a")), lambda: daskw2v.Versions(Store("b"))),
    "Walks": (lambda: daskw2v.Walks(metapath=("a", "b", "a")), daskw2v.Walks),
    "Word2Vec": (lambda: daskw2v.Word2Vec(tokenizer=words_of, negative=9), daskw2v.Word2Vec),
    "BaseModel": (lambda: daskw2v.BaseModel("v1", anchor=0.5), lambda: daskw2v.BaseModel("v1")),
    "BaseVectors": (lambda: daskw2v.BaseVectors("a.bin"), lambda: daskw2v.BaseVectors("b.bin")),
    "EarlyStopping": (lambda: daskw2v.EarlyStopping("similarity/a"), lambda: daskw2v.EarlyStopping("similarity/b")),
    "FeatureTable": (lambda: daskw2v.FeatureTable("a", weights={"b": 2}), lambda: daskw2v.FeatureTable("a")),
    "NGrams": (lambda: daskw2v.NGrams(maxn=6), lambda: daskw2v.NGrams(maxn=5)),
    "NGramsAndTable": (
        lambda: daskw2v.NGramsAndTable(table="a", maxn=6),
        lambda: daskw2v.NGramsAndTable(table="a", maxn=5),
    ),
    "PhraseDetection": (lambda: daskw2v.PhraseDetection(2), lambda: daskw2v.PhraseDetection(1)),
    **{
        cls.__name__: (cls, None)
        for cls in (*OBJECTIVES.values(), *STRATEGIES.values(), *DEVICES.values())
        if not cls.is_open
    },
    "with vectors": (lambda: daskw2v.Params(base_vectors=in_memory(None)), lambda: daskw2v.Params(base_vectors="a")),
}
NOT_SENT = {
    "Daskw2vError": "an answer of tasks, not an argument; all errors are below",
    "Follower": "it has a thread, and refuses (below)",
    "IndexedVectors": "one of MODELS",
    "MLflowLogger": "it is connected to MLflow; callbacks are called in the caller's process",
    "TensorBoardLogger": "it has an open file; callbacks are called in the caller's process",
    "Vectors": "one of MODELS",
}


def record(loss):
    return daskw2v.TrainingRecord(
        run="r", work="/w", params=daskw2v.Params(), round=1, epoch=0, progress=0.5, words=9, pairs=5, loss=loss,
        alpha=0.01, seconds=1.0, scores={"similarity/a": 0.5}, metadata={}, plan={"why": "one"},
    )  # fmt: skip


def planned(n_words):
    params, resources = daskw2v.Params(strategy="averaging"), daskw2v.Resources(threads=2)
    text, kinds = Text(n_words, 9, 9, 9, 1, 1, 9, 9, 9), [Workers(1, 2, limit=1e9, network=1e9, cores=2)]
    trainings, chosen, why = alternatives(params, resources, text, kinds)
    return daskw2v.Plan(
        "a.txt", chosen, resources, (), text, ("types",), plan_memory(params, resources, text, kinds),
        trainings, why, 1,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def deterministic():
    with dask.config.set({"tokenize.ensure-deterministic": True}):
        yield


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A folder for each model."""
    return {name: tmp_path_factory.mktemp("model") for name in MODELS}


@pytest.fixture(params=MODELS)
def name(request):
    if request.param == "indexed by hnsw":
        pytest.importorskip("usearch", reason="usearch comes with daskw2v[ann]")
    return request.param


def test_public_classes__have_examples():
    classes = {
        name
        for module in (daskw2v, daskw2v.stages)
        for name in module.__all__
        if inspect.isclass(getattr(module, name))
    }
    assert classes - EXAMPLES.keys() == NOT_SENT.keys()


def test_queries__have_examples():
    assert public_queries(IndexedVectors) - QUERIES.keys() == set()


@pytest.mark.sampled(4)
def test_models__answer_as_before_whatever_they_were_asked(name, places):
    """Also what is sent after a query is what was sent before: no cache travels."""
    asked = MODELS[name](places[name])
    before, token, size = sent(asked), tokenize(asked), len(pickle.dumps(asked))
    for query in QUERIES:
        expected = answer(asked, query)
        if query not in CHANGED.get(name, ()):
            assert differences(answer(before, query), expected) == [], query
        assert tokenize(asked) == token, f"after {query}"
        again = pickle.dumps(asked)
        assert len(again) < size + 32, f"after {query}"
        assert np.array_equal(pickle.loads(again)[WORDS], ROWS), f"after {query}"
    assert tokenize(before) == token


def test_models__are_equal_by_each_way(name, places):
    model = MODELS[name](places[name])
    before = {way: by(way, model) for way in WAYS}
    expected = probed(model)
    after = {way: by(way, model) for way in WAYS}
    for way in WAYS:
        for found in before[way], after[way]:
            assert type(found) is type(model)
            assert tokenize(found) == tokenize(model), way
            assert differences(probed(found), expected) == [], way
        for query in CHANGED.get(name, ()) if way in COPIES else ():
            assert answer(found, query) == answer(model, query)


def test_deepcopy__has_rows_of_its_own():
    model = Vectors(VOCABULARY, ROWS.copy())
    copied = copy.deepcopy(model)
    model.vectors[0] = 0
    np.testing.assert_array_equal(copied.vectors, ROWS)
    assert tokenize(copied) != tokenize(model)


@pytest.mark.parametrize("name", EXAMPLES)
def test_others__are_equal_by_each_way(name):
    make, make_other = EXAMPLES[name]
    value = make()
    for way in WAYS:
        found = by(way, value)
        assert value_of(found) == value_of(value), way
        assert tokenize(found) == tokenize(value) == tokenize(make()), way
    if make_other is not None:
        assert tokenize(make_other()) != tokenize(value)


@pytest.mark.parametrize("error", [value for value in vars(errors).values() if inspect.isclass(value)])
def test_errors__say_the_same(error):
    for given in (error("wrong.", "Mend it."), errors.DamageError.of("s3://a/b", "is damaged")):
        for copied in (by(way, given) for way in WAYS):
            assert (type(copied), str(copied), vars(copied)) == (type(given), str(given), vars(given))


def test_tokens__differ_by_content():
    model = in_memory(None)
    rows = ROWS.copy()
    rows[3, 2] += 1
    others = [
        model,
        replace(model, vectors=rows),
        replace(model, vocabulary=Vocabulary.from_words([*WORDS[:-1], "x"], VOCABULARY.counts)),
        replace(model, vocabulary=Vocabulary.from_words(WORDS, VOCABULARY.counts + 1)),
        replace(model, stable_ids=np.arange(V)),
        replace(model, metadata={}),
        model.prefix(2),
        model.with_ngrams(3, 3, 40),
        model.with_ngrams(3, 4, 40),
        with_table(None),
        with_codes(None),
        with_network(None),
    ]
    assert len({tokenize(other) for other in others}) == len(others)


def test_tokens__of_equal_models_are_equal(name, places):
    assert tokenize(MODELS[name](places[name])) == tokenize(MODELS[name](places[name]))


def test_pickles__say_what_they_hold(name, places):
    """The rows once, beside what is small; or the address."""
    model, buffers = MODELS[name](places[name]), []
    assert model.pickles_as == ("address" if name in ADDRESSES else "rows")
    within = pickle.dumps(model, 5, buffer_callback=buffers.append)
    held = [buffer.raw().tobytes() for buffer in buffers]
    assert held.count(ROWS.tobytes()) == (name not in ADDRESSES)
    assert ROWS[3].tobytes() not in within
    assert len(within) < 1 << 14


def test_pickles__hold_secrets_with_an_address_alone(places):
    folder, options = places["mapped"], {"auto_mkdir": "a-secret"}
    for in_memory_, held in ((True, False), (False, True)):
        model = saved(with_table, folder, storage_options=options, in_memory=in_memory_)
        content = pickle.dumps(model)
        assert (b"a-secret" in content) == held
        found = differences(answer(pickle.loads(content), "to_dask_neighbours"), answer(model, "to_dask_neighbours"))
        assert (found == []) == held
    with pytest.raises(errors.ParameterError, match="a pickle left out their storage options, open their URL again"):
        sent(saved(with_table, folder, storage_options=options, in_memory=True)).to_dask_neighbours()


@pytest.mark.parametrize("other", [None, ROWS[::-1].copy()])
def test_address__without_the_rows_is_refused(other, tmp_path):
    """Whether the folder is gone, or holds other rows."""
    in_memory(None).save(tmp_path / "model")
    content = pickle.dumps(Vectors.open(tmp_path / "model", in_memory=False))
    (tmp_path / "model").rename(tmp_path / "elsewhere")
    if other is not None:
        replace(in_memory(None), vectors=other).save(tmp_path / "model")
    model = pickle.loads(content)  # Dask's scheduler loads it too, and needs no rows
    with pytest.raises(errors.StoreError, match=r"model/input cannot be read in this process.*in_memory=True"):
        model["walk"]


@pytest.mark.slow
def test_address__in_an_object_store_is_sent_with_its_options(s3):
    in_memory(None).save("s3://bucket/pickled", storage_options=s3)
    model = Vectors.open("s3://bucket/pickled", s3, in_memory=False)
    found = sent(model)
    assert tokenize(found) == tokenize(model)
    assert differences(probed(found), probed(model)) == []


@pytest.mark.parametrize("way", WAYS)
def test_follower__refuses_and_its_model_is_sent(way, places):
    published(1, places["of a follower"])
    with Follower(places["of a follower"], interval=3600) as follower:
        with pytest.raises(errors.ParameterError, match=r"v0001-r.*Send follower\.vectors"):
            by(way, follower)
        assert differences(probed(by(way, follower.vectors)), probed(follower.vectors)) == []


@pytest.fixture(scope="module")
def all_models(places):
    """Each model twice: never asked, and asked."""
    pytest.importorskip("usearch", reason="usearch comes with daskw2v[ann]")
    models = {}
    for name, make in MODELS.items():
        models[f"fresh {name}"], models[name] = make(places[name]), make(places[name])
        probed(models[name])
    return models


@pytest.fixture
def expected(all_models):
    """What this process says of them, and of the values that are no models."""
    copies = {name: sent(model) for name, model in all_models.items()}  # they stay fresh
    return asked_there(copies, values())


def values():
    return [make() for make, _ in EXAMPLES.values()]


@pytest.mark.slow
def test_spawned_processes__get_equal_models_and_map_what_is_mapped(all_models, expected):
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), give, (all_models,)) as pool:
        started, later = pool.submit(asked_there, {}, values()), pool.submit(asked_there, all_models, values())
    mapped = {name for name, model in all_models.items() if isinstance(model._rows, PiecedRows)}
    assert mapped
    assert differences(started.result(), (*expected[:2], mapped)) == []
    assert differences(later.result(), expected) == []


@pytest.mark.slow
def test_joblib__sends_equal_models(all_models, expected):
    joblib = pytest.importorskip("joblib", reason="joblib comes with scikit-learn")
    (found,) = joblib.Parallel(2)([joblib.delayed(asked_there)(all_models, values())])
    joblib.externals.loky.get_reusable_executor().shutdown()
    assert differences(found, expected) == []


def test_workers__get_equal_models(two_processes, all_models, expected):
    futures = [
        two_processes.submit(asked_there, models, values(), pure=False)
        for models in (all_models, two_processes.scatter(all_models, hash=False))
    ]
    for found in two_processes.gather(futures):
        assert differences(found, expected) == []
