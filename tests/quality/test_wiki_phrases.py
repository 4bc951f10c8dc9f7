"""Phrases of real text are gensim's, to the last one and the last bit of their scores."""

import gzip

import pytest

from daskw2v import Params, Phrases, Resources
from daskw2v.stages import Store, build_corpus, build_phrases

GensimPhrases = pytest.importorskip("gensim.models.phrases").Phrases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scoring", ["default", "npmi"])
def test_wiki__phrases_of_a_part_are_gensims(client, data, tmp_path, scoring):
    with gzip.open(data / "corpus" / "wiki" / "part-00.txt.gz", "rt", encoding="utf-8") as lines:
        sentences = [line.split() for line in lines][:20_000]
    text, work = tmp_path / "text.txt", Store(str(tmp_path / "work"))
    text.write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))
    params, resources = Params(phrases=1, phrase_scoring=scoring), Resources(block_size="1 MiB")
    joined = build_phrases(build_corpus(text, work, params, resources, client), work, params, resources, client)
    threshold = joined.passes[-1].threshold
    model = GensimPhrases(sentences, min_count=5, threshold=threshold, scoring=scoring, max_vocab_size=1 << 60)
    assert {phrase: found.score for phrase, found in Phrases.of(joined, work)} == model.export_phrases()
    assert joined.n_tokens == sum(map(len, model[sentences]))
    assert joined.passes[-1].n_phrases > 1000
