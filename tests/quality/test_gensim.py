"""Vectors that gensim trained and exported score here what gensim says of them."""

import gzip

import pytest

from daskw2v import evaluate, import_word2vec

Word2Vec = pytest.importorskip("gensim.models").Word2Vec

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def both(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("gensim")
    (folder / "text.txt").write_bytes(gzip.decompress((data / "corpus" / "wiki" / "part-00.txt.gz").read_bytes()))
    trained = Word2Vec(corpus_file=str(folder / "text.txt"), sg=1, vector_size=30, epochs=1, workers=1, seed=1).wv
    trained.save_word2vec_format(str(folder / "v.bin"), binary=True)
    return trained, import_word2vec(str(folder / "v.bin"))


@pytest.mark.parametrize("name", ["ws353", "simlex999"])
def test_similarity__of_gensims_vectors_is_what_gensim_says(both, data, name):
    theirs, ours = both
    url = str(data / "eval" / f"{name}.tsv")
    _, (rho, _), unknown = theirs.evaluate_word_pairs(url, restrict_vocab=len(theirs))
    found = evaluate(ours, [url]).similarity[name]
    assert found.spearman == pytest.approx(rho, abs=1e-6)
    assert 1 - found.coverage == pytest.approx(unknown / 100, abs=1e-6)


def test_analogy__of_gensims_vectors_is_what_gensim_says(both, data, tmp_path):
    theirs, ours = both
    lines = (data / "eval" / "google_analogy.txt").read_text().splitlines()
    questions = [line for i, line in enumerate(lines) if line.startswith(":") or i % 20 == 0]  # gensim takes a minute
    (tmp_path / "google.txt").write_text("\n".join(questions))
    accuracy, sections = theirs.evaluate_word_analogies(str(tmp_path / "google.txt"), restrict_vocab=len(theirs))
    found = evaluate(ours, analogy=[tmp_path / "google.txt"]).analogy["google"]["3cosadd"]
    assert found.questions == len(sections[-1]["correct"]) + len(sections[-1]["incorrect"]) > 300
    assert found.accuracy == pytest.approx(accuracy, abs=1e-6)
