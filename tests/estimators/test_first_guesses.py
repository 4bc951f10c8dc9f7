"""What one types first who knows gensim, scikit-learn, fastText, Spark or node2vec: it works, or says what to type."""

import re

import numpy as np
import pytest

import daskw2v
from daskw2v import Item2Vec, Node2Vec, Params, Vectors, Word2Vec, items, train, walks
from daskw2v.models.queries.other_names import INSTEAD

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
    # node2vec
    "Node2Vec(p=0.5, q=2, workers=1).fit('edges.txt')",
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
    "Word2Vec.load('model')": "Give daskw2v.open(url), which opens what wv.save(url) wrote.",
    "Word2Vec.most_similar": "The vectors have it: give wv.most_similar.",
    "Vectors.load('model')": "Give daskw2v.open(url).",
    "Vectors.load_word2vec_format('vectors.bin')": "Give daskw2v.open(url).",
    "vectors.wv": "These are the vectors: leave .wv out.",
    "vectors.vocab": "Give key_to_index.",
    "vectors.index2word": "Give index_to_key.",
    "vectors.word_vec('king')": "Give get_vector(word).",
    "vectors.evaluate_word_pairs('ws353.tsv')": "Give evaluate(similarity=[url]).",
    "vectors['nobody']": "Look for another form (case, spelling)",
    # scikit-learn
    "train(texts)": "iter(texts) is text",
    "Word2Vec().fit(['text.txt'])": "Give the names to daskw2v.train(names), or pathlib.Path objects.",
    "Word2Vec().transform(['the king'])": "Call fit first.",
    "model.transform('the king')": "Give texts in a list.",
    "model.set_params(n_epochs=5)": "Give epochs.",
    "vectors.transform(['the king'])": "Give encode(texts).",
    "model.predict(texts)": "Give transform(X) to a classifier.",
    # fastText
    "train('text.txt', dim=50)": "Give vector_size.",
    "train('text.txt', lr=0.05)": "Give alpha.",
    "train('text.txt', epoch=3)": "Give epochs.",
    "train('text.txt', ws=3)": "Give window.",
    "train('text.txt', thread=4)": "Give threads.",
    "train(input='text.txt')": "inputs",
    "train('text.txt', wordNgrams=2)": "Give phrases.",
    "train('text.txt', pretrainedVectors='wiki.vec')": "Give base_vectors.",
    "train('text.txt', autotuneValidationFile='valid.txt')": "compare the models by evaluate.",
    "train('text.txt', saveOutput=True)": "output_rows of the vectors reads",
    "vectors.get_nearest_neighbors('king', k=3)": "Give most_similar(word, topn).",
    "vectors.get_word_vector('king')": "Give get_vector(word).",
    "vectors.get_sentence_vector('the king')": "Give encode(text).",
    "vectors.words": "Give index_to_key.",
    "model.get_nearest_neighbors('king')": "The vectors have it: give wv.most_similar(word, topn).",
    # Spark
    "Word2Vec(vectorSize=50)": "Give vector_size.",
    "Word2Vec(minCount=5)": "Give min_count.",
    "Word2Vec(numPartitions=8)": "Give n_partitions.",
    "Word2Vec(maxIter=5)": "Give epochs.",
    "Word2Vec(stepSize=0.1)": "Give alpha.",
    "Word2Vec(windowSize=5)": "Give window.",
    "Word2Vec(maxSentenceLength=1000)": "Leave it out. Sentences are as long as their lines.",
    "Word2Vec(inputCol='text')": "Give column.",
    "Word2Vec(outputCol='vector')": "Leave it out. transform returns an array",
    "vectors.findSynonyms('king', 3)": "Give most_similar(word, topn).",
    "vectors.getVectors()": "Give to_pandas().",
    "model.findSynonyms('king', 3)": "The vectors have it: give wv.most_similar(word, topn).",
    "vectors.to_numpy()": "Give vectors.",
    "daskw2v.load('work')": "Give daskw2v.open(url).",
    "daskw2v.train_unsupervised('text.txt')": "Give daskw2v.train(text, maxn=6).",
    "daskw2v.FastText(texts)": "Give daskw2v.Word2Vec(maxn=6).",
    "daskw2v.KeyedVectors.load('v')": "Give daskw2v.Vectors.",
    "daskw2v.open('text.txt', 'w')": "Python's own open, which `from daskw2v import *` hides, is builtins.open.",
    # node2vec
    "Node2Vec(dimensions=64)": "Give vector_size.",
    "Node2Vec(walk_length=30)": "Give length.",
    "Node2Vec(num_walks=200)": "Give number.",
    "Node2Vec(weight_key='weight')": "Give weight.",
    "Node2Vec(quiet=True)": "Leave it out. listener=None trains in silence.",
    "walks('edges.txt', walk_length=30)": "Give length to Walks.",
    "Node2Vec().fit([(1, 2), (2, 3)])": "Give a table with the columns source and target",
    "walks('edges.txt', p=0.5)": "Give p to Walks.",
}


@pytest.fixture(scope="module")
def names(client, tmp_path_factory):
    """What one has: texts, and a model of them."""
    texts = TEXT.splitlines()
    model = Word2Vec(texts, vector_size=8, client=client, listener=None)
    calls = (Item2Vec, Node2Vec, Params, Vectors, Word2Vec, items, train, walks)
    held = {"texts": texts, "sentences": [text.split() for text in texts], "model": model, "vectors": model.wv}
    return {**{call.__name__: call for call in calls}, **held, "daskw2v": daskw2v}


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


def test_guess__of_an_unknown_name_is_answered_by_python(names):
    for typed, said in (
        ("vectors.colour", "'Vectors' object has no attribute 'colour'"),
        ("Vectors.colour", "type object 'Vectors' has no attribute 'colour'"),
        ("model.colour", "'Word2Vec' object has no attribute 'colour'"),
    ):
        with pytest.raises(AttributeError, match=f"^{said}$"):
            eval(typed, dict(names))


def test_guess__is_no_attribute(names):
    assert not any(hasattr(names["vectors"], name) or hasattr(Vectors, name) for name in ("wv", "load", *INSTEAD))


def test_answers__name_what_vectors_have(names):
    assert all(hasattr(names["vectors"], re.match(r"\w+", instead)[0]) for instead in INSTEAD.values())
