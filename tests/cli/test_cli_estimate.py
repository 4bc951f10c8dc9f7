import json

import pytest

import daskw2v
from tests.support.command_line import invoke


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    with path.open("wb") as file:
        file.truncate(59_000_000)  # a hole: only its size counts
    return str(path)


def test_estimate__shows_the_memory_of_each_stage_and_what_was_guessed(text):
    result = invoke("estimate", text, "--workers", "2", "--threads", "1", "--memory-limit", "2 GiB")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    names = ("stage", "encode, a worker", "vocabulary, a worker", "train, a worker", "publish, a worker", "client")
    assert [line.startswith(name) for line, name in zip(lines, names, strict=False)] == [True] * len(names)
    assert lines[6] == "10,000,000 words, by the files' sizes"
    assert "distinct words and " in lines[7]
    assert "estimated by Heaps' law" in lines[7]
    assert lines[8].endswith("fits into the memory_limit of a worker of 1 thread, 2.00 GiB (2 workers in all)")


def test_estimate__uses_known_sizes_and_says_what_does_not_fit(text):
    known = ("--types", "9000000", "--words", "8000000", "--threads", "1", "--memory-limit", "2 GiB")
    result = invoke("estimate", text, *known, "--vector-size", "300", "--strategy", "averaging")
    assert result.exit_code == 0, result.output
    assert "guessed" not in result.output
    assert "model 17.88 GiB" in result.output  # 2 * 4 * 300 * 8 million
    assert "does not fit into the memory_limit of a worker of 1 thread," in result.output
    rotated = invoke("estimate", text, *known, "--strategy", "rotation", "--n-partitions", "64")
    assert "its partitions go through the work directory" in rotated.output


def test_estimate__of_a_gpu_shows_its_memory(text):
    result = invoke("estimate", text, "--device", "cuda", "--memory-limit", "8 GiB")
    assert "train, a GPU" in result.output


def test_estimate__asks_the_workers_of_a_scheduler(text, client):
    result = invoke("estimate", text, "--scheduler", client.scheduler.address)
    assert result.exit_code == 0, result.output
    assert "of a worker of 2 threads" in result.stdout
    assert "(1 worker in all)" in result.stdout


def test_estimate__is_a_function_too(text):
    how = {
        "params": daskw2v.Params(strategy="averaging"),
        "types": 9_000_000,
        "words": 8_000_000,
        "listener": None,
        "resources": daskw2v.Resources(workers=2, threads=1, memory_limit="2 GiB"),
    }
    found = daskw2v.estimate(text, **how, network="10Gbps")
    assert (found.text.words, found.text.types, found.guessed, found.machines) == (10_000_000, 9_000_000, (), 2)
    (kind,) = found.workers
    assert (kind.memory_limit, kind.fits, kind.workers.n) == (2 << 30, False, 2)
    (chosen,) = (way for way in found.as_dict()["trainings"] if way["chosen"])
    assert (chosen["strategy"], chosen["fits"]) == ("averaging", False)
    assert chosen["machine_hours"] == chosen["seconds"] * 2 / 3600
    options = (
        "--types",
        9_000_000,
        "--words",
        8_000_000,
        "--strategy",
        "averaging",
        "--network",
        "10Gbps",
        "--workers",
        2,
        "--threads",
        1,
        "--memory-limit",
        "2 GiB",
    )
    assert json.loads(invoke("estimate", text, *options, "--json").stdout) == found.as_dict()
    lines = str(found).splitlines()
    assert [line.split() for line in invoke("estimate", text, *options).stdout.splitlines()] == [
        line.split() for line in lines
    ]
    with pytest.raises(daskw2v.Daskw2vError, match=r"^types=0 is not an integer >= 1\. Give types="):
        daskw2v.estimate(text, types=0)


def test_estimate__refuses_what_train_would(text):
    assert "window" in invoke("estimate", text, "--window", "0").output
    assert invoke("estimate", text, "--objective", "cbow_hs", "--strategy", "rotation").exit_code == 2
    assert "matches no file" in invoke("estimate", f"{text}.gone").stderr
    for name, options in {"features": (), "markets": ("--market-negative", "1")}.items():
        assert "gone.csv matches no file" in invoke("estimate", text, f"--{name}", f"{text}.gone.csv", *options).stderr


def test_estimate__counts_the_words_of_a_finished_run(tmp_path, client):
    text, work = tmp_path / "text.txt", tmp_path / "work"
    text.write_text("a b c\n" * 20)
    options = {"vector_size": 4, "min_count": 1, "epochs": 1, "sample": 0}
    vectors = daskw2v.train(text, work=work, client=client, listener=None, **options)
    asked = ("estimate", text, "--work", work, "--vector-size", 4, "--min-count", 1, "--epochs", 1, "--sample", 0)
    result = invoke(*asked)
    assert f"60 words, counted; run {vectors.url.rpartition('-')[2]}" in result.output
    assert json.loads(invoke(*asked, "--json").stdout)["text"]["vocabulary"] == 3
    assert "leave out --types" in invoke(*asked, "--types", 9).stderr
