"""What one types first who knows gensim, scikit-learn, fastText, Spark or node2vec: it works, or says what to type."""

import re

import numpy as np
import pytest

from daskw2v import Item2Vec, Node2Vec, Params, Word2Vec, items, train, walks

TEXT = "the king and the queen\nthe man and the woman\nthe queen and the king of the land\n" * 40

WORKS = [
    # daskw2v
    "train('text.txt')",
    "train('text.txt', vector_size=50, window=3)",
    "train('text.txt', params=Params(vector_size=50), threads=2)",
    "train('text.txt', negative=10)",
    "train(sentences, min_count=1)",
    "items('events.csv', vector_size=8, min_count=1)",
    "walks('edges.txt', vector_size=8)",
    # gensim
    "Word2Vec(sentences)",
    "Word2Vec(sentences, vector_size=50, window=5, min_count=1, epochs=2)",
    "Word2Vec(sentences=sentences)",
    "model.wv.most_similar('king')",
    "model.wv['king']",
    "model.wv.similarity('king', 'queen')",
    "model.vector_size",
    "vectors['king']",
    "'king' in vectors",
    "len(vectors)",
    "[word for word in vectors]",
    "vectors.most_similar(positive=['king', 'woman'], negative=['man'])",
    "vectors.similarity('king', 'queen')",
    "vectors.doesnt_match(['king', 'queen', 'land'])",
    "vectors.key_to_index['king']",
    "vectors.index_to_key[:3]",
    "vectors.get_vector('king')",
    # scikit-learn
    "Word2Vec(vector_size=50).fit(texts)",
    "Word2Vec().fit(texts).transform(['the king'])",
    "Word2Vec().fit_transform(texts)",
    "model.get_params()['vector_size']",
    "model.get_feature_names_out()",
    "Item2Vec(min_count=1).fit('events.csv')",
    "Node2Vec(vector_size=8).fit('edges.txt')",
]
REMEDIES = {
    # gensim
    "Word2Vec(size=100)": "Give vector_size.",
    "Word2Vec(iter=5)": "Give epochs.",
    "Word2Vec(sg=1)": "Give objective (sgns and sg_hs are skip-gram",
    "Word2Vec(hs=1)": "Give objective (sg_hs and cbow_hs have hierarchical softmax",
    "Word2Vec(corpus_file='text.txt')": "Give it to fit: Word2Vec().fit(corpus_file).",
    "Word2Vec().build_vocab(sentences)": "Give fit(text), which counts words first.",
    "Word2Vec().train(sentences)": "Give fit(text)",
    "model.most_similar('king')": "give wv.most_similar.",
    "model.save('model')": "give wv.save.",
    "model['king']": "give wv[word].",
    "vectors['nobody']": "Look for another form (case, spelling)",
    # scikit-learn
    "train(texts)": "iter(texts) is text",
    "Word2Vec().fit(['text.txt'])": "Give the names to daskw2v.train(names), or pathlib.Path objects.",
    "Word2Vec().transform(['the king'])": "Call fit first.",
    "model.transform('the king')": "Give texts in a list.",
    "model.set_params(n_epochs=5)": "Give epochs.",
    "model.predict(texts)": "Give transform(X) to a classifier.",
    # fastText
    "train('text.txt', dim=50)": "Give vector_size.",
    "train('text.txt', lr=0.05)": "Give alpha.",
    "train('text.txt', epoch=3)": "Give epochs.",
    "train('text.txt', ws=3)": "Give window.",
    "train('text.txt', thread=4)": "Give threads.",
    "train(input='text.txt')": "inputs",
    # Spark
    "Word2Vec(vectorSize=50)": "Give vector_size.",
    "Word2Vec(minCount=5)": "Give min_count.",
    "Word2Vec(numPartitions=8)": "Give n_partitions.",
    "Word2Vec(maxIter=5)": "Give epochs.",
    "Word2Vec(stepSize=0.1)": "Give alpha.",
    "Word2Vec(inputCol='text')": "Give column.",
    # node2vec
    "Node2Vec(dimensions=64)": "Give vector_size.",
    "Node2Vec(walk_length=30)": "Give length.",
    "Node2Vec(num_walks=200)": "Give number.",
    "Node2Vec().fit([(1, 2), (2, 3)])": "Give a table with the columns source and target",
    "walks('edges.txt', p=0.5)": "Give p to Walks.",
}


@pytest.fixture(scope="module")
def names(client, tmp_path_factory):
    """What one has: texts, and a model of them."""
    texts = TEXT.splitlines()
    model = Word2Vec(texts, vector_size=8, client=client, listener=None)
    calls = (Item2Vec, Node2Vec, Params, Word2Vec, items, train, walks)
    held = {"texts": texts, "sentences": [text.split() for text in texts], "model": model, "vectors": model.wv}
    return {**{call.__name__: call for call in calls}, **held}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, client):
    """Go to a folder with a text, events and edges; a cluster is there."""
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "events.csv").write_text("user,item,time\n" + "".join(f"{i // 6},i{i % 5},{i}\n" for i in range(60)))
    (tmp_path / "edges.txt").write_text("".join(f"{i} {(i + 1) % 9}\n" for i in range(9)))
    monkeypatch.chdir(tmp_path)
    with client.as_current():
        yield


@pytest.mark.parametrize("typed", WORKS)
def test_guess__works(names, typed):
    if "events" in typed:
        pytest.importorskip("dask.dataframe", reason="events need daskw2v[events]")
    value = eval(typed, dict(names))
    assert not (isinstance(value, np.ndarray) and value.dtype != object and not np.isfinite(value).all())
    assert value is not None


@pytest.mark.parametrize(("typed", "remedy"), REMEDIES.items())
def test_guess__says_what_to_type(names, typed, remedy):
    with pytest.raises(Exception, match=re.escape(remedy)):
        eval(typed, dict(names))
