"""Training goes on from an earlier model: words it knew begin with its rows, whatever strategy and vocabulary."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from daskw2v import Params, Resources, train
from daskw2v.errors import ParameterError
from daskw2v.models.stored.store import write_subwords
from daskw2v.objectives.registry import find_objective
from daskw2v.objectives.subwords.network import Alphabet, Subwords, compute_vectors
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.sampling.run import Base, Run
from daskw2v.store.storage import Store
from daskw2v.training.start import blocks
from daskw2v.training.start.initial_rows import base_tables, find_base, first_rows, first_weights

ONE = Resources(threads=1)
SMALL = Params(vector_size=8, min_count=1, epochs=1)
MODELS = {
    "averaging": SMALL.replace(n_replicas=2, rounds_per_epoch=2),
    "hierarchical softmax": SMALL.replace(objective="sg_hs", rounds_per_epoch=2),
    "rotation": SMALL.replace(strategy="rotation", n_partitions=3, passes_per_epoch=1),
    "columns": SMALL.replace(objective="context_matrix", strategy="columns", context_size=8, centered=False),
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Old text, and new text, in which there are new words, all frequent ones are other ones, and some are missing."""
    folder, rng = tmp_path_factory.mktemp("texts"), np.random.default_rng(0)
    for name, first, last in (("old", 0, 90), ("new", 60, 120)):
        words = first + rng.integers(0, last - first, 3000) // rng.integers(1, 9, 3000)
        (folder / f"{name}.txt").write_text(
            "\n".join(" ".join(f"w{w}" for w in line) for line in words.reshape(-1, 10))
        )
    return folder


@pytest.fixture(scope="module", params=MODELS)
def grown(request, texts, tmp_path_factory, client):
    """A model of old text, and one that goes on from it, with new text, and hardly moves."""
    work, params = tmp_path_factory.mktemp("work"), MODELS[request.param]
    old = train(texts / "old.txt", work=work, params=params, resources=ONE, client=client)
    still = params.replace(base_model=old.url.rsplit("/", 1)[1], alpha=1e-12, min_alpha=0.0)
    return old, train(texts / "*.txt", work=work, params=still, resources=ONE, client=client), still


@pytest.mark.sampled(1)
def test_words_that_the_base_knows__begin_with_its_rows(grown):
    old, new, _ = grown
    known = [word for word in new.vocabulary.words if word in old.vocabulary]
    assert 0 < len(known) < len(new)
    assert old.vocabulary.words[: len(known)] != known[: len(old)]  # ids are others
    theirs, ours = (np.array([v[word] for word in known]) for v in (old, new))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.sampled(1)
def test_anchored_words__are_led_back_to_the_base_and_others_are_not(grown, texts, client):
    old, new, params = grown
    work, trained = new.url.split("/models/")[0], {}
    for anchor in (0.0, 0.25):
        moved = params.replace(alpha=None, min_alpha=1e-4, anchor=anchor)
        trained[anchor] = train(texts / "*.txt", work=work, params=moved, resources=ONE, client=client)
    known = np.array([word in old.vocabulary for word in new.vocabulary.words])
    theirs = np.array([old[word] for word in new.vocabulary.words if word in old.vocabulary])
    free, led = trained[0.0].vectors, trained[0.25].vectors
    assert not np.allclose(free[known], theirs, atol=1e-3)
    np.testing.assert_allclose(led[known], 0.75 * free[known] + 0.25 * theirs, atol=1e-6)
    np.testing.assert_array_equal(led[~known], free[~known])


@pytest.mark.sampled(1)
def test_anchor__is_the_same_when_dask_runs_its_tasks_again(grown, texts, client, tmp_path, monkeypatch):
    old, new, params = grown
    shutil.copytree(Path(old.url).parents[1], tmp_path / "work")
    anchored = params.replace(alpha=None, min_alpha=1e-4, anchor=0.25)
    given = {"params": anchored, "resources": ONE, "client": client}
    once = train(texts / "*.txt", work=new.url.split("/models/")[0], **given)

    def twice(_, __, function, jobs):
        for job in jobs.values():
            function(*job)
            function(*job)
        return []

    monkeypatch.setattr(blocks, "run_tasks", twice)
    shutil.rmtree(tmp_path / "work" / "models" / Path(once.url).name, ignore_errors=True)
    again = train(texts / "*.txt", work=tmp_path / "work", **given)
    np.testing.assert_array_equal(again.vectors, once.vectors)


def test_anchor__keeps_no_losses(texts, tmp_path, client):
    given = {"params": MODELS["columns"].replace(base_model="v0001-a", anchor=0.5), "client": client}
    with pytest.raises(ParameterError, match=r"word_losses=True: rows that anchor=0.5 leads back"):
        train(texts / "*.txt", work=tmp_path, resources=Resources(word_losses=True), **given)


def test_anchor__of_rows_that_a_network_makes_is_refused(texts, tmp_path, client):
    params = Params(objective="subwords", strategy="columns", base_model="v0001-a", anchor=0.5)
    with pytest.raises(ParameterError, match=r"anchor=0.5 cannot hold rows of objective='subwords'"):
        train(texts / "*.txt", work=tmp_path, params=params, resources=ONE, client=client)


def test_anchor__without_a_base_is_refused(texts, tmp_path, client):
    with pytest.raises(ParameterError, match=r"anchor=0.5 changes nothing without base_model"):
        train(texts / "*.txt", work=tmp_path, params=Params(anchor=0.5), resources=ONE, client=client)


def test_new_words__begin_as_they_do_without_a_base(grown):
    old, new, params = grown
    ids = np.array([new.vocabulary.id(word) for word in new.vocabulary.words if word not in old.vocabulary])
    drawn = find_objective(params.objective.name).initial(params, "input", ids)
    np.testing.assert_allclose(new.vectors[ids], drawn, atol=1e-6)


def test_model__tells_its_base(grown):
    old, new, params = grown
    assert new.metadata["params"]["base_model"] == params.start.version == old.url.rsplit("/", 1)[1]


def test_first_rows__of_inner_nodes_are_drawn(grown):
    """The tree of another vocabulary is another tree."""
    old, _, params = grown
    run = Run(
        Store(old.url),
        "",
        None,
        params,
        "cpu",
        Base(Store(old.url), Store("/nowhere"), base_tables(Store(old.url), params)),
    )
    if params.objective.name == "sg_hs":
        assert not first_rows(run, "output", np.arange(5)).any()


@pytest.mark.parametrize("name", ["v0009-none", "v0001/input", "v0001"])
def test_base__that_is_no_version_is_refused(tmp_path, texts, client, name):
    with pytest.raises(ParameterError, match=rf"base_model='{name}' is no finished model.*Give one of its versions"):
        train(texts / "*.txt", work=tmp_path, params=SMALL.replace(base_model=name), resources=ONE, client=client)


def test_base__that_is_none_is_told_which_versions_there_are(grown):
    """Finished ones only: neither the pointer nor what is being written."""
    old, _, params = grown
    work = Store(old.url.split("/models/")[0])
    with pytest.raises(ParameterError, match=rf"Give one of its versions: {params.start.version}, v0002-\w+[,.]"):
        find_base(work, params.replace(base_model="v0009-none"))


@pytest.mark.parametrize("change", [{"vector_size": 9}, {"objective": "cbow_ns"}])
def test_base__of_other_tables_is_refused(grown, change):
    old, _, params = grown
    name, value = next(iter(change.items()))
    work = Store(old.url.split("/models/")[0])
    with pytest.raises(ParameterError, match=f"was trained with {name}=.*not {value!r}.*leave base_model out"):
        find_base(work, params.replace(**change))


def test_first_weights__know_the_same_characters(torch, tmp_path):
    """Of a network only vectors of new characters are drawn: words of old ones have the vectors that they had."""
    old, new = Alphabet("abc"), Alphabet("dcab")
    weights = initial_weights(8, len(old), seed=3)
    model = Store(str(tmp_path / "model"))
    model.create_group()
    write_subwords(model, Subwords(old, weights))
    run = Run(model, "", None, SMALL, "cpu", Base(model, model, ()))
    words = ["cab", "a", "bb"]
    np.testing.assert_allclose(  # the same weights in another order: sums of products differ in their last bits
        compute_vectors(first_weights(run, new), new.encode(words)),
        compute_vectors(weights, old.encode(words)),
        rtol=0,
        atol=1e-6,
    )
