"""The command line for real: train, ask, evaluate, export, in processes of its own."""

import json
import subprocess
import sys

from daskw2v import Vectors
from daskw2v.models.word2vec import import_word2vec

TRAIN = ("--vector-size", "8", "--min-count", "1", "--epochs", "2", "--workers", "1", "--threads", "1")


def daskw2v(*words):
    return subprocess.run(
        [sys.executable, "-m", "daskw2v.cli", *map(str, words)], capture_output=True, text=True, timeout=200
    )


def test_command__from_text_to_vectors(tmp_path):
    text, work = tmp_path / "text.txt", tmp_path / "work"
    text.write_text("one two three four five\nsix seven eight nine ten\n" * 50)
    trained = daskw2v("train", text, "--work", work, *TRAIN)
    assert trained.returncode == 0, trained.stderr
    assert "words/s" in trained.stdout + trained.stderr
    assert "dashboard" in trained.stdout + trained.stderr

    asked = daskw2v("similar", work, "one", "--topn", "3")
    assert len(asked.stdout.split("\n")) >= 4, asked.stderr

    (tmp_path / "pairs.tsv").write_text("one\ttwo\t9\nsix\tseven\t8\none\tsix\t1\nnone\tsix\t1\n")
    (tmp_path / "quads.txt").write_text(": numbers\none two six seven\none two six absent\n")
    evaluated = daskw2v(
        "evaluate", work, "--similarity", tmp_path / "pairs.tsv", "--analogy", tmp_path / "quads.txt", "--json"
    )
    report = json.loads(evaluated.stdout)
    assert report["similarity"]["pairs"]["pairs"] == 3
    assert report["similarity"]["pairs"]["missing"] == 1
    assert report["analogy"]["quads"]["questions"] == report["analogy"]["quads"]["skipped"] == 1

    version = Vectors.open(str(work)).url
    assert daskw2v("export", version, tmp_path / "vectors.bin").returncode == 0
    exported = import_word2vec(str(tmp_path / "vectors.bin"))
    assert exported.vocabulary.words == Vectors.open(version).vocabulary.words

    info = json.loads(daskw2v("info", work, "--json").stdout)
    assert info["params"]["vector_size"] == 8


def test_command__says_what_is_wrong_in_one_line(tmp_path):
    failed = daskw2v("train", tmp_path / "absent.txt", "--work", tmp_path / "work", *TRAIN)
    assert failed.returncode == 2
    assert "absent.txt" in failed.stderr
    assert "Traceback" not in failed.stderr
