"""Loggers: what they wrote is read back by the library that it was written for."""

import shutil
import struct

import numpy as np
import pytest

from daskw2v import Callback, Params, Resources, train
from daskw2v.errors import ParameterError
from daskw2v.training.averaging.averaging import AveragingRun
from daskw2v.training.watch.loggers import MLflowLogger, TensorBoardLogger

PARAMS = Params(vector_size=8, min_count=1, epochs=2, sample=0, strategy="averaging", rounds_per_epoch=2, held_out=0.1)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(" ".join(f"w{w}" for w in np.minimum(rng.zipf(1.3, 12), 40)) + "\n" for _ in range(200)))
    return path


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs+.tsv"
    path.write_text("w1\tw2\t1\nw1\tw3\t2\nw2\tw5\t3\nw4\tw3\t1.5\nw1\tw6\t2.5\n")
    return path


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """A client of MLflow, and its address."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    module = pytest.importorskip("mlflow", reason="no MLflow: install mlflow-skinny")
    uri = (tmp_path / "mlruns").as_uri()
    return module.MlflowClient(uri), uri


def trained(text, work, client, *callbacks, params=PARAMS, **resources):
    return train(
        str(text),
        work=work,
        params=params,
        resources=Resources(threads=1, **resources),
        client=client,
        callbacks=callbacks,
        listener=None,
    )


class StopsAfterEpoch(Callback):
    """Stops after the first epoch."""

    stops = "epoch"

    def on_epoch(self, record):
        return "one is enough"


def the_run(client, experiment="daskw2v"):
    (run,) = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    return run


def history_of(client, run, metric):
    return [(logged.step, logged.value) for logged in client.get_metric_history(run.info.run_id, metric)]


@pytest.mark.slow
def test_mlflow__has_params_metrics_and_the_version(text, tmp_path, client, mlflow, pairs):
    reader, uri = mlflow
    vectors = trained(text, tmp_path / "work", client, mlflow=uri, eval_similarity=[pairs])
    history, run = vectors.metadata["metrics"]["history"], the_run(reader)
    assert {name: run.data.params[name] for name in ("vector_size", "strategy", "alpha", "held_out")} == {
        "vector_size": "8",
        "strategy": "averaging",
        "alpha": "0.035",
        "held_out": "0.1",
    }
    assert run.data.params.keys() == vectors.metadata["params"].keys()
    assert history_of(reader, run, "loss") == [
        (n, pytest.approx(e["loss"] / e["pairs"])) for n, e in enumerate(history)
    ]
    assert history_of(reader, run, "alpha") == [(n, entry["alpha"]) for n, entry in enumerate(history)]
    assert history_of(reader, run, "held_out_loss") == [(n, history[n]["held_out_loss"]) for n in (1, 3)]
    assert history_of(reader, run, "epoch/held_out_loss") == [(n // 2 + 1, history[n]["held_out_loss"]) for n in (1, 3)]
    assert history_of(reader, run, "score/pairs_") == [(3, history[3]["scores"]["pairs+"])]
    assert run.data.tags["daskw2v.version"] == vectors.url
    assert run.info.status == "FINISHED"
    assert run.info.run_name == vectors.url.rpartition("-")[2]
    assert [file.path for file in reader.list_artifacts(run.info.run_id)] == ["metadata.json"]


def test_mlflow__goes_on_with_the_run_of_a_training_that_is_resumed(text, tmp_path, client, mlflow, monkeypatch):
    class StoppedError(Exception):
        pass

    def stop(run, number, needs_rows, play=AveragingRun.play):
        if number == 3:
            raise StoppedError
        return play(run, number, needs_rows)

    reader, uri = mlflow
    with monkeypatch.context() as patch:
        patch.setattr(AveragingRun, "play", stop)
        with pytest.raises(StoppedError):
            trained(text, tmp_path / "work", client, MLflowLogger(uri, "one"), checkpoint_seconds=0)
    assert the_run(reader, "one").info.status == "RUNNING"
    for _ in range(2):  # then the version is there
        trained(text, tmp_path / "work", client, MLflowLogger(uri, "one"))
        run = the_run(reader, "one")
        assert run.info.status == "FINISHED"
        assert [step for step, _ in history_of(reader, run, "loss")] == [0, 1, 2, 3]
        assert [step for step, _ in history_of(reader, run, "epoch/loss")] == [1, 2]


@pytest.mark.slow
def test_mlflow__begins_a_run_for_what_is_trained_anew(text, tmp_path, client, mlflow):
    """In another work directory, and where the work directory was deleted; all have the same name here."""
    reader, uri = mlflow
    logger = MLflowLogger(uri, "anew")
    for work in ("one", "o'ther", "one"):
        shutil.rmtree(tmp_path / "one", ignore_errors=True)
        trained(text, tmp_path / work, client, logger)
    runs = reader.search_runs([reader.get_experiment_by_name("anew").experiment_id], order_by=["start_time"])
    assert len({run.data.tags["daskw2v.run"] for run in runs}) == 1
    works = [str(tmp_path / name) for name in ("one", "o'ther", "one")]
    assert [run.data.tags["daskw2v.work"] for run in runs] == works
    for run, work in zip(runs, works, strict=True):
        assert [step for step, _ in history_of(reader, run, "loss")] == [0, 1, 2, 3]
        assert run.data.tags["daskw2v.version"].startswith(work)
        assert run.info.status == "FINISHED"


def test_mlflow__says_why_a_run_was_stopped(text, tmp_path, client, mlflow, monkeypatch):
    reader, uri = mlflow
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "words")
    trained(text, tmp_path / "work", client, StopsAfterEpoch(), mlflow=uri)
    assert the_run(reader, "words").data.tags["daskw2v.stopped"] == "one is enough"


def test_mlflow__that_cannot_be_used_is_refused_before_training(text, tmp_path, client, mlflow):
    with pytest.raises(ParameterError, match=r"MLflow cannot be used at 'nonsense://a'.*Check the address"):
        trained(text, tmp_path / "work", client, mlflow="nonsense://a")
    assert not (tmp_path / "work").exists()


def events_in(folder):
    """Yield the events of all files of TensorBoard in a folder."""
    event = pytest.importorskip("tensorboardX.proto.event_pb2", reason="no tensorboardX").Event
    for path in sorted(folder.iterdir()):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            yield path, event.FromString(data[at + 12 : at + 12 + length])
            at += 16 + length


def scalars_in(folder):
    found = {}
    for _, event in events_in(folder):
        for value in event.summary.value:
            if value.HasField("simple_value"):
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_tensorboard__has_params_metrics_and_the_version(text, tmp_path, client):
    pytest.importorskip("tensorboardX", reason="no tensorboardX")
    vectors = trained(text, tmp_path / "work", client, StopsAfterEpoch(), tensorboard=str(tmp_path / "runs"))
    history = vectors.metadata["metrics"]["history"]
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name == vectors.url.rpartition("-")[2]
    found = scalars_in(folder)
    assert found["loss"] == [(n, pytest.approx(e["loss"] / e["pairs"])) for n, e in enumerate(history)]
    assert found["held_out_loss"] == [(1, pytest.approx(history[1]["held_out_loss"]))]
    assert [step for step, _ in found["epoch/loss"]] == [1]
    texts = [
        value.tensor.string_val[0].decode()
        for _, event in events_in(folder)
        for value in event.summary.value
        if value.HasField("tensor")
    ]
    assert "| vector_size | 8 |" in texts[0]
    assert vectors.url in texts[1]
    assert "one is enough" in texts[1]


def test_tensorboard__shows_a_training_that_is_reported_twice_once(text, tmp_path, client):
    pytest.importorskip("tensorboardX", reason="no tensorboardX")
    for _ in range(2):
        trained(text, tmp_path / "work", client, TensorBoardLogger(tmp_path / "runs"))
    (folder,) = (tmp_path / "runs").iterdir()
    starts = [event.step for _, event in events_in(folder) if event.session_log.status == 1]
    assert starts == [0, 0], "each file hides what was written before"
    assert [step for step, _ in scalars_in(folder)["loss"]] == [0, 1, 2, 3] * 2
