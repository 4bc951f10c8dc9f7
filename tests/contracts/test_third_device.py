"""A third device trains by averaging and by rotation: it takes an entry point, or a line in each registry."""

import math

import numpy as np
import pytest

from daskw2v import Params, Resources, Vectors, estimate, train
from daskw2v.errors import ParameterError
from daskw2v.training.devices import DEVICES
from daskw2v.training.devices.settings import DEVICES as SETTINGS
from tests.contracts.float64_device import FLOAT64, TRAINED

COMMON = Params(vector_size=12, min_count=1, epochs=2, sample=1e-2)
WAYS = {
    "one replica": {"n_replicas": 1},
    "prefixes": {"prefix_sizes": (16,), "vector_size": 20},
    "two replicas": {"n_replicas": 2, "rounds_per_epoch": 2, "merges_per_round": 2, "frequent_rows": 16},
    "mean of two replicas": {"n_replicas": 2, "rounds_per_epoch": 2, "merge": "mean"},
    "partitions": {"strategy": "rotation", "n_partitions": 4, "passes_per_epoch": 1},
    "partitions of one group": {"strategy": "rotation", "n_partitions": 2, "n_groups": 1, "passes_per_epoch": 1},
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    words = np.random.default_rng(0).zipf(1.4, 3000) % 200
    path.write_text("".join(" ".join(f"w{w}" for w in line) + "\n" for line in words.reshape(-1, 12)))
    return path


@pytest.fixture(params=["entry point", "registry"])
def added(request, tmp_path, monkeypatch):
    """Add the device, in one of two ways."""
    if request.param == "registry":
        monkeypatch.setitem(DEVICES, "float64", FLOAT64)
        monkeypatch.setitem(SETTINGS, "float64", FLOAT64.settings)
        return
    info = tmp_path / "float64-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: float64\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[daskw2v.devices]\nfloat64 = tests.contracts.float64_device:FLOAT64\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("way", WAYS)
def test_device__trains_as_the_processor_does(added, way, text, client, tmp_path):
    TRAINED.clear()
    models = {}
    for device in ("cpu", "float64"):
        work, resources = tmp_path / device, Resources(device=device, threads=1)
        params = COMMON.replace(**WAYS[way])
        train(text, work=work, params=params, resources=resources, client=client, listener=None)
        models[device] = Vectors.open(str(work))
        assert set(TRAINED) == ({"sgns"} if device == "float64" else set())
    ours, theirs = models["cpu"], models["float64"]
    assert theirs.metadata["resources"]["device"] == "float64"
    assert theirs.vocabulary.words == ours.vocabulary.words
    assert np.abs(ours.vectors[:]).max() > 0.3, "training moves rows by much more than the tolerance"
    # Changes of replicas are sent in bfloat16: where float32 and float64 differ, they may be rounded to two neighbours
    np.testing.assert_allclose(theirs.vectors[:], ours.vectors[:], rtol=0, atol=3e-3 if "replicas" in way else 2e-5)
    assert math.isclose(*(model.metadata["metrics"]["loss"] for model in models.values()), rel_tol=1e-4)


def test_estimate__knows_the_device(added, text):
    shown = str(estimate(text, params=COMMON, resources=Resources(device="float64", threads=1)))
    assert "tables of replicas" in shown


def test_device__refuses_what_it_has_no_kernel_for(added, text, client, tmp_path):
    params, resources = COMMON.replace(objective="context_matrix", strategy="columns"), Resources(device="float64")
    with pytest.raises(ParameterError, match="'context_matrix' has no kernel for columns for device='float64'"):
        train(text, work=tmp_path / "work", params=params, resources=resources, client=client, listener=None)


def test_device__reads_its_own_setting(added, text, client, tmp_path):
    resources = Resources(device="float64", digits=1)
    vectors = train(text, work=tmp_path / "work", params=COMMON, resources=resources, client=client, listener=None)
    np.testing.assert_array_equal(vectors.vectors[:], np.round(vectors.vectors[:], 1))


def test_device__refuses_what_it_does_not_read(added):
    with pytest.raises(ParameterError, match="hot_rows=4 changes nothing for device='float64'; it is for cpu, cuda"):
        Resources(device="float64", hot_rows=4)
