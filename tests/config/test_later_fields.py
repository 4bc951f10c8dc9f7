"""A release adds fields to Params: work that an earlier one left is opened and gone on with."""

import numpy as np
import pytest
from later_params import LaterParams, later

from daskw2v import Gates, Params, Resources, retrain, train
from daskw2v.retraining.outcome import Outcome
from daskw2v.shards.layout import digest
from daskw2v.stages import Store, build_corpus, build_matrix, build_phrases, build_vocabulary

CHOSEN = {
    "vector_size": 8,
    "min_count": 1,
    "epochs": 2,
    "rounds_per_epoch": 2,
    "alpha": 0.05,
    "phrases": 1,
    "phrase_threshold": 1.0,
}
ONE = Resources(threads=1)
AFTER = {  # the stages that have to be made again
    "read": {"encode", "phrases", "vocabulary", "train"},
    "phrases": {"phrases", "vocabulary", "train"},
    "vocabulary": {"vocabulary", "train"},
    "matrix": {"train"},
    "train": {"train"},
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "a.txt"
    words = (rng.integers(0, 6, 400)[:, None] * 10 + rng.integers(0, 10, (400, 9))).tolist()
    path.write_text("".join(" ".join(f"w{w}" for w in line) + "\n" for line in words))
    return path


def trained(text, work, params, client):
    """Train; return the model's URL, and the stages that did anything."""
    heard = set()
    vectors = train(text, work=work, params=params, resources=ONE, client=client, listener=lambda p: heard.add(p.stage))
    return vectors.url, heard & AFTER["read"]


@pytest.mark.slow
def test_later_fields__leave_results_unchanged_until_they_are_set(client, text, tmp_path):
    url, made = trained(text, tmp_path, Params(**CHOSEN), client)
    assert made == AFTER["read"]
    assert trained(text, tmp_path, LaterParams(**CHOSEN), client) == (url, set())
    urls = {url}
    for stage, made in AFTER.items():
        other, heard = trained(text, tmp_path, LaterParams(**CHOSEN, **later(stage)), client)
        assert heard == made
        urls.add(other)
    assert len(urls) == 1 + len(AFTER)


class Stop(Exception):
    pass


@pytest.mark.slow
def test_later_fields__go_on_with_a_run_that_was_stopped(client, text, tmp_path):
    def stop(progress):
        if progress.stage == "train" and progress.loss is not None and progress.done >= progress.total / 2:
            raise Stop

    resources, done = ONE.replace(checkpoint_seconds=0.0), []
    with pytest.raises(Stop):
        train(text, work=tmp_path, params=Params(**CHOSEN), resources=resources, client=client, listener=stop)
    vectors = train(
        text,
        work=tmp_path,
        params=LaterParams(**CHOSEN),
        resources=resources,
        client=client,
        listener=lambda p: done.append(p.done / p.total) if p.stage == "train" and p.loss is not None else None,
    )
    assert min(done) > 0.4
    whole = train(text, work=tmp_path / "whole", params=Params(**CHOSEN), resources=ONE, client=client)
    np.testing.assert_array_equal(vectors.vectors, whole.vectors)


def test_later_fields__name_matrices_and_lists_of_words(client, text, tmp_path):
    work, words = Store(str(tmp_path)), tmp_path / "words.txt"
    words.write_text("w1\nw2\n")
    matrix = {**CHOSEN, "objective": "context_matrix", "vocabulary": str(words)}
    del matrix["rounds_per_epoch"]
    params = Params(**matrix)
    corpus = build_phrases(build_corpus(text, work, params, ONE, client), work, params, ONE, client)
    names = []
    for other in (params, LaterParams(**matrix), params.replace(min_count=9)):
        vocabulary = build_vocabulary(corpus, work, other, ONE, client)
        names.append((vocabulary.key, build_matrix(corpus, vocabulary, work, other, ONE, client).name))
    assert len(set(names)) == 1
    for stage in ("vocabulary", "matrix"):
        other = LaterParams(**matrix, **later(stage))
        vocabulary = build_vocabulary(corpus, work, other, ONE, client)
        assert (vocabulary.key == names[0][0]) is (stage == "matrix")
        assert build_matrix(corpus, vocabulary, work, other, ONE, client).name != names[0][1]


@pytest.mark.slow
def test_later_fields__are_no_reason_to_retrain(client, text, tmp_path):
    def run(params):
        loose = Gates(min_stability=None, min_kept=None)
        summary = retrain(text, work=tmp_path, params=params, resources=ONE, gates=loose, client=client)
        return summary.outcome, summary.message

    chosen = {**CHOSEN, "phrases": 0, "phrase_threshold": None}
    assert run(Params(**chosen))[0] is Outcome.PUBLISHED
    outcome, message = run(LaterParams(**chosen))
    assert outcome is Outcome.NOTHING_NEW
    assert message.endswith("already has this text.")
    assert run(LaterParams(**chosen, a_train=1))[0] is Outcome.PUBLISHED
    # A version with fields that are not known is none to go on from: the first run is found again
    outcome, message = run(Params(**chosen))
    assert outcome is Outcome.NOTHING_NEW
    assert message.endswith("which was published before, already has this text.")


def test_names_of_stages__are_those_of_the_first_release(client, text, tmp_path):
    """What each name is a digest of, written down: work directories that hold them must be found."""
    work, words = Store(str(tmp_path)), tmp_path / "words.txt"
    words.write_text("w1\nw2\n")
    params = Params(**CHOSEN, max_final_vocab=50)
    read = build_corpus(text, work, params, ONE, client)
    corpus = build_phrases(read, work, params, ONE, client)
    assert corpus.identity == digest([read.identity, "phrases", 5, 1.0, "default", "_"])
    counted = build_vocabulary(corpus, work, params, ONE, client)
    assert counted.identity == digest([corpus.identity, [1, 50]])
    listed = build_vocabulary(corpus, work, params.replace(vocabulary=str(words)), ONE, client)
    assert listed.identity == digest([corpus.identity, ["w1", "w2"]])
    sampling = {"context_size": 16, "window": 5, "shrink_windows": True, "sample": 1e-4}
    matrix = build_matrix(
        corpus, counted, work, params.replace(objective="context_matrix", context_size=16), ONE, client
    )
    assert matrix.name == digest([corpus.identity, counted.identity, sampling, 1, None])
