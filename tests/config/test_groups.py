"""Groups: an object, or flat names; results have the names that they had when there were only flat names."""

import hashlib
import json
import pickle
from types import SimpleNamespace

import pytest

from daskw2v import (
    BaseModel,
    BaseVectors,
    EarlyStopping,
    FeatureTable,
    NGrams,
    NGramsAndTable,
    Params,
    PhraseDetection,
    Resources,
)
from daskw2v.config.choice import get_group_classes, is_group
from daskw2v.config.identity import identity_fields
from daskw2v.corpus.files import Source
from daskw2v.errors import ParameterError, UnknownParameterError
from daskw2v.shards.layout import corpus_identity
from daskw2v.training.preparation.planned import run_identity, settled_params
from daskw2v.training.preparation.request import apply_keywords

TEXT, WORDS = SimpleNamespace(identity="text"), SimpleNamespace(identity="words")
SOURCES = [Source("file:///a.txt", 10, "1", "text", None)]
# Settings by flat names; names of the run and of the corpus, and a digest of `identity_fields` and `as_dict`
NAMES = {
    "phrases": ({"phrases": 2}, "84b3bf55c350", "2fec7c22b528", "cb6655d0b08c"),
    "phrases_all": (
        {
            "phrases": 1,
            "phrase_min_count": 7,
            "phrase_threshold": 0.4,
            "phrase_scoring": "npmi",
            "phrase_delimiter": "+",
        },
        "0d401121003c",
        "2fec7c22b528",
        "296255b42e04",
    ),
    "no_phrases": ({"phrases": 0, "phrase_min_count": 5}, "4e3815102283", "2fec7c22b528", "f7577fcb1658"),
    "ngrams": ({"maxn": 6}, "a3f4a3dd2005", "2fec7c22b528", "60464a9f7228"),
    "ngrams_all": (
        {"minn": 2, "maxn": 5, "bucket": 1000, "prior_count": 10},
        "e4cd8bebb83b",
        "2fec7c22b528",
        "227d576f01c3",
    ),
    "features": ({"features": "https://store.example/items.parquet"}, "f74bbf3e5fd5", "2fec7c22b528", "f8483219d9e3"),
    "features_all": (
        {
            "features": "https://store.example/items.parquet",
            "feature_weights": {"brand": 0.5, "price": 2},
            "prior_count": 0,
        },
        "a7d4e382d06b",
        "2fec7c22b528",
        "9ecfc7a5a4fa",
    ),
    "both": (
        {"features": "https://store.example/items.parquet", "maxn": 6, "minn": 4, "feature_weights": {"brand": 0}},
        "952c7b176157",
        "2fec7c22b528",
        "2459d92c5b63",
    ),
    "no_features": ({"maxn": 0, "features": None, "bucket": 2000000}, "4e3815102283", "2fec7c22b528", "f7577fcb1658"),
    "base_model": ({"base_model": "v0001-a"}, "87348d6f7c29", "2fec7c22b528", "e98e7fbc3e02"),
    "base_model_anchored": ({"base_model": "v0001-a", "anchor": 0.25}, "ccadfd803512", "2fec7c22b528", "c2642d803a1a"),
    "base_model_frozen": (
        {"base_model": "v0001-a", "frozen_words": "known"},
        "3ca132453e7c",
        "2fec7c22b528",
        "7a3f3984bb11",
    ),
    "base_vectors": (
        {"base_vectors": "https://store.example/base.bin"},
        "e216e5632543",
        "2fec7c22b528",
        "44bbcd6395e6",
    ),
    "base_vectors_all": (
        {
            "base_vectors": "https://store.example/base.bin",
            "anchor": 0.5,
            "frozen_words": "https://store.example/words.txt",
        },
        "2fc38a640f29",
        "2fec7c22b528",
        "d41158c08434",
    ),
    "monitor": ({"monitor": "held_out_loss", "held_out": 0.01}, "54b20ccec8e9", "2fec7c22b528", "dfd35c1ae7a9"),
    "monitor_all": (
        {"monitor": "similarity/ws353", "patience": 3, "min_delta": 0.001},
        "38060449cac5",
        "2fec7c22b528",
        "06de33f726d2",
    ),
    "no_monitor": ({"monitor": None, "patience": 2}, "4e3815102283", "2fec7c22b528", "f7577fcb1658"),
    "columns": (
        {
            "objective": "context_matrix",
            "strategy": "columns",
            "context_size": 32,
            "gather_every": 16,
            "base_model": "v0002",
        },
        "5e93f94aaae6",
        "2fec7c22b528",
        "cd8ff14156c1",
    ),
    "rotation": (
        {"strategy": "rotation", "n_partitions": 8, "phrases": 1, "base_model": "v0002"},
        "909139638c9f",
        "2fec7c22b528",
        "dc117381899c",
    ),
    "markets": (
        {"objective": "cbow_ns", "market_negative": 2, "maxn": 4, "n_replicas": 2},
        "a30d30e22f7f",
        "2fec7c22b528",
        "094903d7d7aa",
    ),
    "hs": (
        {
            "objective": "sg_hs",
            "prefix_sizes": [16, 32],
            "phrases": 3,
            "monitor": "held_out_loss",
            "held_out": 0.1,
            "epochs": 9,
        },
        "3d02f496988e",
        "2fec7c22b528",
        "22f5b7c79aef",
    ),
}
TABLE = "https://store.example/items.parquet"
ALIKE = [
    ({"phrases": PhraseDetection(2)}, {"phrases": 2}),
    (
        {"phrases": PhraseDetection(passes=1, min_count=7, threshold=0.4, scoring="npmi", delimiter="+")},
        {
            "phrases": 1,
            "phrase_min_count": 7,
            "phrase_threshold": 0.4,
            "phrase_scoring": "npmi",
            "phrase_delimiter": "+",
        },
    ),
    ({"phrases": None}, {"phrases": 0, "phrase_min_count": 5}),
    (
        {"features": NGrams(maxn=5, minn=2, bucket=10, prior_count=0)},
        {"maxn": 5, "minn": 2, "bucket": 10, "prior_count": 0},
    ),
    ({"features": FeatureTable(TABLE, weights={"brand": 2})}, {"features": TABLE, "feature_weights": {"brand": 2}}),
    ({"features": NGramsAndTable(table=TABLE, maxn=6)}, {"features": TABLE, "maxn": 6}),
    ({"features": NGrams(maxn=6), "minn": 4}, {"maxn": 6, "minn": 4}),
    ({"features": None}, {"maxn": 0}),
    ({"start": BaseModel("v1", anchor=0.1)}, {"base_model": "v1", "anchor": 0.1}),
    ({"start": BaseVectors(TABLE, frozen_words="known")}, {"base_vectors": TABLE, "frozen_words": "known"}),
    (
        {"early_stopping": EarlyStopping("similarity/ws353", min_delta=1, patience=3)},
        {"monitor": "similarity/ws353", "min_delta": 1, "patience": 3},
    ),
    ({"early_stopping": None, "start": None}, {"monitor": None, "base_model": None, "base_vectors": None}),
]


@pytest.mark.parametrize(("options", "run", "corpus", "fields"), NAMES.values(), ids=NAMES)
def test_results__have_the_names_of_flat_settings(options, run, corpus, fields):
    plain = {} if "strategy" in options else {"strategy": "averaging", "n_replicas": 1}
    params = settled_params(Params(**{**plain, **options}))
    assert run_identity(TEXT, WORDS, params) == run
    assert corpus_identity(SOURCES, params).startswith(corpus)
    told = json.dumps([identity_fields(params), params.as_dict()], sort_keys=True)
    assert hashlib.sha256(told.encode()).hexdigest().startswith(fields)
    assert Params.from_dict(json.loads(json.dumps(params.as_dict()))) == params


@pytest.mark.parametrize(("grouped", "flat"), ALIKE)
def test_group__is_its_flat_names(grouped, flat):
    params = Params(**grouped)
    assert params == Params(**flat)
    assert hash(params) == hash(Params(**flat))
    assert params.flat() == Params(**flat).flat()
    assert Params(window=3).replace(**grouped) == Params(window=3).replace(**flat) == params.replace(window=3)
    assert pickle.loads(pickle.dumps(params)) == params
    assert apply_keywords("train", Params(), Resources(), grouped)[0] == params


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minn": 2}, r"minn=2 changes nothing without maxn\. Give maxn, or leave minn out"),
        ({"prior_count": 1}, r"prior_count=1 changes nothing without maxn or features"),
        ({"maxn": 5, "feature_weights": {"a": 2}}, r"feature_weights=.* changes nothing without features"),
        ({"features": NGrams(maxn=5), "feature_weights": {"a": 2}}, r"feature_weights=.* changes nothing without feat"),
        ({"features": NGrams(maxn=2)}, r"minn=3 is above maxn=2"),
        ({"anchor": 0.5}, r"anchor=0\.5 changes nothing without base_model or base_vectors"),
        ({"frozen_words": "known"}, r"frozen_words='known' changes nothing without base_model or base_vectors"),
        ({"base_model": "a", "base_vectors": TABLE}, r"base_model='a' and base_vectors='.*' are both given"),
        ({"start": BaseModel("a"), "base_vectors": TABLE}, r"base_model='a' and base_vectors='.*' are both given"),
        ({"maxn": 5, "base_model": "a", "frozen_words": "known"}, r"frozen_words='known' cannot hold vectors whose n-"),
        ({"patience": 3}, r"patience=3 changes nothing without monitor"),
        ({"monitor": "held_out_loss"}, r"monitor='held_out_loss' is not measured with held_out=0"),
        ({"phrases": 9}, r"phrases=9 is not an integer in 0\.\.8"),
        ({"phrases": NGrams(maxn=5)}, r"phrases=NGrams\(.*\) is not an integer"),
        ({"start": "v1"}, r"start='v1' is no BaseModel or BaseVectors"),
        ({"start": NGrams(maxn=5)}, r"start=NGrams\(.*\) is no BaseModel or BaseVectors"),
    ],
)
def test_flat_names__that_mean_nothing_or_do_not_go_together_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        Params(**options)


def test_group__without_its_key_is_refused():
    for f in filter(is_group, Params.__dataclass_fields__.values()):
        for cls in get_group_classes(f):
            with pytest.raises(ParameterError, match=rf"{cls.__name__} has no \w+"):
                cls()
    with pytest.raises(ParameterError, match=r"passes=9 is not an integer in 0\.\.8"):
        PhraseDetection(9)
    with pytest.raises(UnknownParameterError, match="Give passes"):
        PhraseDetection(pases=2)


def test_replace__changes_some_settings_of_a_group():
    both = Params(features=NGramsAndTable(table=TABLE, maxn=6, minn=2))
    assert both.replace(features=f"{TABLE}#1").features == NGramsAndTable(table=f"{TABLE}#1", maxn=6, minn=2)
    assert both.replace(maxn=0).features == FeatureTable(TABLE), "minn goes with maxn"
    assert both.replace(features=None).features is None
    assert both.replace(features=None, maxn=4).features == NGrams(maxn=4)
    with pytest.raises(ParameterError, match="minn=4 changes nothing without maxn"):
        both.replace(maxn=0, minn=4)
    base = Params(start=BaseVectors(TABLE, anchor=0.25))
    assert base.replace(base_model="v1", base_vectors=None).start == BaseModel("v1", anchor=0.25)


def test_find__is_by_class():
    params = Params(features=NGramsAndTable(table=TABLE, maxn=6))
    assert NGrams.find(params) is FeatureTable.find(params) is NGrams.of(params) is params.features
    assert FeatureTable.find(Params(maxn=6)) is None
    assert NGrams.find(Params()) is None
