"""Settings as keywords of `train`, `items`, `walks` and `retrain`, and work directories that nobody names."""

import gc
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from distributed import Client, LocalCluster

import daskw2v
from daskw2v import Params, Resources, Walks
from daskw2v.cluster.connecting import refuse_remote_workers
from daskw2v.errors import ClusterError, ParameterError, UnknownParameterError, VocabularyError
from daskw2v.training.preparation.request import apply_keywords
from tests.support.refusals import refusal

SMALL = {"vector_size": 4, "min_count": 1, "epochs": 1, "sample": 0}


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The folder for temporary files, which no other test uses."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a b c d a c e\n" * 20)
    return path


def params_of(vectors):
    return vectors.metadata["params"]


def test_keywords__are_fields_of_params_of_their_choices_and_of_resources():
    params, resources = apply_keywords("train", Params(), None, {"window": 3, "negative": 7, "workers": 2})
    assert (params, resources) == (Params(window=3, negative=7), Resources(workers=2))


def test_keywords__change_params_and_resources():
    given = Params(window=3, negative=7), Resources(threads=2, device="cuda")
    params, resources = apply_keywords("train", *given, {"window": 4, "device": "cpu"})
    assert (params, resources) == (Params(window=4, negative=7), Resources(threads=2))


def test_params_and_resources__share_no_name():
    assert {*Params.names()} & {*Resources.names()} == set()


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("size", "Give vector_size."), ("worker", "Give workers."), ("p", "Give p to Walks."), ("zzz", "The names are: ")],
)
@pytest.mark.parametrize("call", ["train", "items", "walks", "retrain"])
def test_call__refuses_a_name_that_is_none_and_suggests_one(call, name, remedy):
    with pytest.raises(UnknownParameterError, match=rf"^{call}\(\) got an unexpected .* {name!r}") as error:
        getattr(daskw2v, call)("nowhere.txt", work="nowhere", **{name: 1})
    assert error.value.remedy.startswith(remedy)


@pytest.mark.parametrize("call", ["train", "items", "walks", "retrain"])
def test_call__checks_what_keywords_say(call):
    with pytest.raises(ParameterError, match="vector_size=0 is not an integer in 1"):
        getattr(daskw2v, call)("nowhere.txt", work="nowhere", vector_size=0)
    with pytest.raises(ParameterError, match=r"params must be a daskw2v.Params, not a dict"):
        getattr(daskw2v, call)("nowhere.txt", work="nowhere", params={}, vector_size=5)


def test_train__is_that_with_params(text, tmp_path, client):
    by_keywords = daskw2v.train(text, work=tmp_path / "a", client=client, listener=None, threads=1, **SMALL)
    given = {"params": Params(**SMALL), "resources": Resources(threads=1)}
    by_params = daskw2v.train(text, work=tmp_path / "b", client=client, listener=None, **given)
    np.testing.assert_array_equal(by_keywords.vectors, by_params.vectors)


def test_walks__keeps_the_defaults_of_graphs(tmp_path, client):
    (tmp_path / "edges.txt").write_text("".join(f"{i} {(i + 1) % 9}\n" for i in range(9)))
    vectors = daskw2v.walks(
        tmp_path / "edges.txt", walks=Walks(number=1, length=5), client=client, listener=None, vector_size=4
    )
    assert (params_of(vectors)["vector_size"], params_of(vectors)["window"], len(vectors)) == (4, 10, 9)


def test_retrain__takes_keywords(text, tmp_path, client):
    daskw2v.retrain(text, work=tmp_path / "work", client=client, listener=None, **SMALL)
    assert params_of(daskw2v.Vectors.open(tmp_path / "work"))["vector_size"] == 4


def test_temporary_work__lives_as_long_as_the_vectors(text, temporary, client):
    vectors = daskw2v.train(text, client=client, listener=None, **SMALL)
    (folder,) = temporary.iterdir()
    assert vectors.url.startswith(f"{folder}/models/")
    assert len(vectors.to_dask_neighbours(["a"], topn=1).compute()) == 1  # read from the folder
    rows, expected = vectors.vectors, np.array(vectors.vectors)
    del vectors
    gc.collect()
    assert [*temporary.iterdir()] == []
    np.testing.assert_array_equal(rows, expected)


def test_temporary_work__is_removed_where_training_fails(text, temporary, client):
    with pytest.raises(VocabularyError):
        daskw2v.train(text, client=client, listener=None, min_count=1000)
    assert [*temporary.iterdir()] == []


def test_temporary_work__is_removed_at_the_end_of_the_process_and_not_by_a_fork(text, temporary):
    program = f"""if __name__ == "__main__":
        import os, daskw2v
        vectors = daskw2v.train({str(text)!r}, vector_size=4, min_count=1, epochs=1, sample=0, listener=None)
        folder = vectors.url.partition("/models/")[0]
        if os.fork() == 0:
            del vectors
            os._exit(0)
        os.wait()
        print(os.listdir(folder) != [])
    """
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, "-W", "ignore", "-c", program]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (result.stdout, result.returncode) == ("True\n", 0), result.stderr
    assert [each.name for each in temporary.iterdir() if each.name.startswith("daskw2v-")] == []


@pytest.mark.parametrize(
    "given",
    [
        {"scheduler": "tcp://10.0.0.9:8786"},
        {"scheduler": "scheduler:8786"},
        {"scheduler": "tls://[2001:db8::1]:8786"},
        {"host": "10.0.0.9"},
    ],
)
def test_temporary_work__is_refused_where_workers_may_not_see_it(text, temporary, given):
    for call in (daskw2v.train, daskw2v.items, daskw2v.walks):
        with pytest.raises(ClusterError, match=r"work is not given.*other machines.*Give work, the URL"):
            call(text, **given)
    assert [*temporary.iterdir()] == []


@pytest.mark.parametrize(
    "resources",
    [
        Resources(),
        Resources(workers=2),
        Resources(scheduler="tcp://127.0.0.1:8786"),
        Resources(scheduler="localhost:8786"),
        Resources(scheduler="tcp://[::1]:8786"),
    ],
)
def test_check_here__takes_a_cluster_of_this_machine(resources):
    assert refusal(refuse_remote_workers, None, resources, "", "") is None


def test_check_here__checks_the_client():
    options = {"n_workers": 0, "dashboard_address": ":0"}
    for host, is_here in (("127.0.0.1", True), ("0.0.0.0", False)):
        with LocalCluster(host=host, **options) as cluster, Client(cluster, set_as_default=False) as client:
            if is_here:
                refuse_remote_workers(client, Resources(), "", "")
                continue
            with pytest.raises(ClusterError, match=rf"^No; the cluster at {client.scheduler.address} may"):
                refuse_remote_workers(client, Resources(), "No", "")
