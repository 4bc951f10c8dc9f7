"""Word2Vec, Item2Vec and Node2Vec follow scikit-learn's rules, with it and without it."""

import pickle
import sys

import numpy as np
import pytest

import daskw2v
from daskw2v import BaseModel, EarlyStopping, Item2Vec, Node2Vec, Word2Vec, errors
from daskw2v.errors import ClusterError, ParameterError, UnknownParameterError, UnknownWordError

TEXTS = ["the king and the queen", "the man and the woman", "the queen and the king of the land"] * 20
LABELS = [0, 1, 0] * 20
SMALL = {"vector_size": 8, "min_count": 1, "epochs": 1, "sample": 0, "threads": 1, "listener": None}


def split_at_commas(lines):
    """Split texts: a tokenizer."""
    return [line.split(",") for line in lines]


@pytest.fixture(autouse=True)
def current(client):
    """Let Dask's current client be that of the session: no estimator starts a cluster."""
    with client.as_current():
        yield


@pytest.fixture(scope="module")
def model(client):
    return Word2Vec(TEXTS, client=client, **SMALL)


def mean_of(vectors, words):
    return np.mean([vectors[word] for word in words], axis=0)


@pytest.mark.parametrize("cls", [Word2Vec, Item2Vec, Node2Vec])
def test_constructor__stores_settings_unchanged(cls):
    options, callbacks = {"key": "k"}, []
    given = {"vector_size": -5, "negative": "many", "storage_options": options, "callbacks": callbacks}
    made = cls(**given)
    assert {name: made.get_params()[name] for name in given} == given
    assert made.storage_options is options
    assert made.callbacks is callbacks
    with pytest.raises(ParameterError, match=r"negative='many' is not an integer in|vector_size=-5 is not"):
        made.fit("nowhere.txt")


@pytest.mark.parametrize("cls", [Word2Vec, Item2Vec, Node2Vec])
def test_estimator__is_made_again_of_its_params(cls):
    made = cls(window=7, n_partitions=8)
    again = cls(**made.get_params())
    assert again.get_params() == made.get_params()
    assert again.get_params()["n_partitions"] == 8
    assert "negative" not in again.get_params()  # left to the objective


@pytest.mark.parametrize(
    "given", [{"start": BaseModel("v1"), "early_stopping": EarlyStopping("similarity/a")}, {"maxn": 5, "phrases": 2}]
)
def test_estimator__takes_groups_and_their_flat_names(given):
    made = Word2Vec(**given)
    assert made.get_params().items() >= given.items()
    assert Word2Vec(**made.get_params()).get_params() == made.get_params()
    with pytest.raises(ParameterError, match="minn=2 changes nothing without maxn"):
        Word2Vec(minn=2).fit(TEXTS)


def test_defaults__are_those_of_the_kind_of_input():
    assert (Word2Vec().window, Item2Vec().window, Node2Vec().window) == (5, 100, 10)
    assert (Item2Vec().user, Node2Vec().length, Node2Vec().weight) == ("user", 80, None)


def test_set_params__changes_what_fit_uses():
    model = Word2Vec(**SMALL)
    assert model.set_params(vector_size=4) is model
    assert model.fit(TEXTS).vectors_.vector_size == 4
    with pytest.raises(UnknownParameterError, match="Give vector_size"):
        model.set_params(size=4)


def test_repr__shows_what_is_not_by_default_and_no_secret():
    assert repr(Word2Vec(window=7, pooling="sif")) == "Word2Vec(pooling='sif', window=7)"
    shown = repr(Word2Vec(storage_options={"secret": "hidden"}, work="ftp://me:hidden@host/w"))
    assert "hidden" not in shown
    assert "storage_options=..." in shown


def test_word2vec__is_train(model, client):
    given = {name: value for name, value in SMALL.items() if name != "listener"}
    vectors = daskw2v.train(iter(TEXTS), client=client, listener=None, **given)
    assert model.vectors_ is model.wv
    np.testing.assert_array_equal(model.wv.vectors, vectors.vectors)


@pytest.mark.parametrize("kind", ["list", "tokens", "array", "tuple", "generator", "Path", "list of Paths"])
def test_word2vec__takes_texts_and_what_train_takes(model, tmp_path, kind):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    kinds = {
        "list": TEXTS,
        "tokens": [text.split() for text in TEXTS],
        "array": np.array(TEXTS),
        "tuple": tuple(TEXTS),
        "generator": (text for text in TEXTS),
        "Path": path,
        "list of Paths": [path],
    }
    other = Word2Vec(**SMALL).fit(kinds[kind])
    np.testing.assert_array_equal(other.wv["king"], model.wv["king"])


def test_word2vec__refuses_names_of_files_in_a_list(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXTS))
    for names in ([str(path)], ["s3://bucket/text.txt"]):
        with pytest.raises(ParameterError, match=r"X is a list of names of files.*Give the names to daskw2v.train"):
            Word2Vec(**SMALL).fit(names)


def test_transform__is_the_mean_of_known_words(model):
    rows = model.transform(["the king nobody", "nobody", ["queen", "king"]])
    assert (rows.shape, rows.dtype) == ((3, 8), np.float32)
    expected = mean_of(model.wv, ["the", "king"]), np.zeros(8), mean_of(model.wv, ["queen", "king"])
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


def test_transform__weighs_words_by_sif(model):
    counts = model.wv.vocabulary.counts
    share = {word: counts[model.wv.key_to_index[word]] / counts.sum() for word in ("the", "land")}
    expected = np.mean([1e-3 / (1e-3 + p) * model.wv[word] for word, p in share.items()], axis=0)
    weighted = Word2Vec(pooling="sif", **SMALL).fit(TEXTS)
    np.testing.assert_allclose(weighted.transform(["the land"])[0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("tokenizer", "texts", "asked"),
    [
        ("lower", ["king queen", "queen land"], "KING Queen"),
        ("regex:[a-z]+", ["king,queen", "queen/land"], "king?queen"),
        (split_at_commas, ["king,queen", "queen,land"], "king,queen"),
    ],
)
def test_transform__splits_texts_as_fit_did(tokenizer, texts, asked):
    model = Word2Vec(tokenizer=tokenizer, **SMALL).fit(texts * 20)
    np.testing.assert_allclose(model.transform([asked])[0], mean_of(model.wv, ["king", "queen"]), rtol=1e-6)


def test_transform__joins_phrases():
    settings = {**SMALL, "phrases": 1, "phrase_min_count": 1, "phrase_threshold": 0.1}
    model = Word2Vec(**settings).fit(["new york is big", "a new york day", "big is the day"] * 20)
    assert "new_york" in model.wv
    np.testing.assert_allclose(model.transform(["new york"])[0], model.wv["new_york"], rtol=1e-6)


def test_transform__reads_columns_and_tables(model):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": TEXTS[:3]})
    for X in (frame, frame["text"], np.array(TEXTS[:3])):
        np.testing.assert_array_equal(model.transform(X), model.transform(TEXTS[:3]))


def test_transform__reads_the_column_of_a_table_of_dask(model):
    frame = pytest.importorskip("pandas").DataFrame({"text": TEXTS[:3], "label": LABELS[:3]})
    table = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)
    np.testing.assert_array_equal(model.transform(table), model.transform(TEXTS[:3]))


@pytest.mark.parametrize("X", ["the king", b"the king", 3, {"a": 1}])
def test_transform__refuses_what_is_no_list(model, X):
    with pytest.raises(ParameterError, match="Give texts in a list"):
        model.transform(X)


def test_pooling__is_checked_by_fit():
    for model in (Word2Vec(pooling="max"), Item2Vec(pooling="max")):
        with pytest.raises(ParameterError, match=r"pooling='max' is unknown\. Give mean or sif"):
            model.fit("nowhere.txt")


def test_fit_transform__reads_an_iterator_once():
    assert Word2Vec(**SMALL).fit_transform(iter(TEXTS)).shape == (60, 8)


def test_feature_names__are_numbered(model):
    assert model.get_feature_names_out()[[0, 7]].tolist() == ["word2vec0", "word2vec7"]


def test_pickle__holds_the_vectors(model):
    unfitted = Word2Vec(**SMALL)
    assert pickle.loads(pickle.dumps(unfitted)).get_params() == unfitted.get_params()
    fitted = pickle.loads(pickle.dumps(Word2Vec(**SMALL).fit(TEXTS)))
    np.testing.assert_array_equal(fitted.transform(TEXTS[:2]), model.transform(TEXTS[:2]))


def events(kind, folder):
    columns = {"customer": [i // 6 for i in range(60)], "item": [f"i{i % 5}" for i in range(60)], "time": [*range(60)]}
    return _written(columns, kind, folder / "events.csv", ",")


def edges(kind, folder):
    columns = {"source": [*range(9)], "target": [(i + 1) % 9 for i in range(9)]}
    return _written(columns, kind, folder / "edges.csv", ",")


def _written(columns, kind, path, separator):
    if kind == "file":
        rows = [columns, *zip(*columns.values(), strict=True)]
        path.write_text("".join(separator.join(map(str, row)) + "\n" for row in rows))
        return str(path)
    package = pytest.importorskip(kind, reason="it is no part of daskw2v's extras")
    if kind == "dask.dataframe":
        return package.from_dict(columns, npartitions=2)
    return package.table(columns) if kind == "pyarrow" else package.DataFrame(columns)


KINDS = ["file", "pandas", "polars", "pyarrow", "dask.dataframe"]


@pytest.mark.parametrize("kind", KINDS)
def test_item2vec__takes_files_and_tables(tmp_path, kind):
    pytest.importorskip("dask.dataframe", reason="events need daskw2v[events]")
    model = Item2Vec(user="customer", **SMALL).fit(events(kind, tmp_path))
    assert sorted(model.wv) == ["i0", "i1", "i2", "i3", "i4"]
    rows = model.transform([["i1", "i2"], ["unknown"]])
    np.testing.assert_allclose(rows, [mean_of(model.wv, ["i1", "i2"]), np.zeros(8)], rtol=1e-6)
    with pytest.raises(ParameterError, match="Give a list of them for each session"):
        model.transform(["i1", "i2"])


@pytest.mark.parametrize("kind", KINDS)
def test_node2vec__takes_files_and_tables(tmp_path, kind):
    pytest.importorskip("pyarrow")
    model = Node2Vec(length=9, number=2, seed=3, q=0.5, **SMALL).fit(edges(kind, tmp_path))
    assert model.wv.metadata["params"]["seed"] == 3
    np.testing.assert_array_equal(model.transform([3, 8]), model.wv[["3", "8"]])
    with pytest.raises(UnknownWordError):
        model.transform([99])


def test_tables__are_refused_where_workers_may_not_see_them(tmp_path):
    frame = edges("pandas", tmp_path)
    with pytest.raises(ClusterError, match=r"X is a table.*other machines.*Write it to Parquet"):
        Node2Vec(scheduler="tcp://10.0.0.9:8786", work="s3://bucket/w").fit(frame)


@pytest.mark.parametrize("cls", [Item2Vec, Node2Vec])
def test_derived__refuse_what_is_no_table(cls):
    with pytest.raises(ParameterError, match=r"X is a list, neither a table.*pandas.DataFrame.*to_pandas_edgelist"):
        cls().fit([(1, 2), (2, 3)])


@pytest.mark.parametrize("has_sklearn", [True, False])
@pytest.mark.parametrize(
    "ask", [lambda model: model.wv, lambda model: model.vectors_, lambda model: model.transform(["a"])]
)
def test_not_fitted__says_so(monkeypatch, has_sklearn, ask):
    if has_sklearn:
        expected = pytest.importorskip("sklearn.exceptions").NotFittedError
    else:
        monkeypatch.setitem(sys.modules, "sklearn.exceptions", None)
        expected = errors.NotFittedError
    for kind in (expected, ValueError, AttributeError):
        with pytest.raises(kind, match=r"^This Word2Vec is not fitted\. Call fit first\.$"):
            ask(Word2Vec())
    assert not hasattr(Word2Vec(), "wv")


def test_estimators__need_no_sklearn(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert Word2Vec(**SMALL).fit(TEXTS).transform(TEXTS).shape == (60, 8)


class TestWithSklearn:
    @pytest.fixture(autouse=True)
    def installed(self):
        pytest.importorskip("sklearn", reason="scikit-learn comes with daskw2v[evaluation]")

    def test_clone__is_not_fitted_and_shares_the_client(self, model, client):
        from sklearn.base import clone
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        cloned = clone(model)
        assert cloned.get_params() == model.get_params()
        assert cloned.client is client
        check_is_fitted(model)
        with pytest.raises(NotFittedError):
            check_is_fitted(cloned)

    def test_pipeline__classifies_texts(self):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        model = make_pipeline(Word2Vec(**SMALL), LogisticRegression(C=100)).fit(TEXTS, LABELS)
        assert model.score(TEXTS, LABELS) == 1
        assert model[:-1].get_feature_names_out()[0] == "word2vec0"
        assert "Word2Vec(" in repr(model)
        assert "Word2Vec" in model._repr_html_()

    def test_search__tries_settings(self):
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline

        pipeline = make_pipeline(Word2Vec(**SMALL), LogisticRegression())
        grid = {"word2vec__vector_size": [4, 6], "word2vec__negative": [2]}
        search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(TEXTS, LABELS)
        size = search.best_params_["word2vec__vector_size"]
        assert search.best_estimator_[0].vectors_.vector_size == size
        assert search.best_estimator_[0].negative == 2

    def test_tags__say_that_it_takes_texts(self):
        tags = pytest.importorskip("sklearn.utils")
        if not hasattr(tags, "get_tags"):
            pytest.skip("scikit-learn has no tags before 1.6")
        estimator_tags = tags.get_tags(Word2Vec())
        assert estimator_tags.input_tags.string
        assert not estimator_tags.target_tags.required
