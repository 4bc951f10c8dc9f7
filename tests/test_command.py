"""The command line for real: train, ask, evaluate, export, in processes of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import daskw2v
from daskw2v import Vectors
from daskw2v.models.word2vec import import_word2vec

# What an installed program is: Python finds the modules beside it, and none in the current directory.
PROGRAM = "from daskw2v.cli import main\n\nif __name__ == '__main__':\n    main()\n"
TOKENIZER = "def split(lines):\n    return [line.replace('+', ' ').split() for line in lines]\n"
TRAIN = ("--vector-size", "8", "--min-count", "1", "--epochs", "2", "--sample", "0", "--workers", "1", "--threads", "1")


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """Run the program in a directory of its own, where a module lies."""
    program = tmp_path_factory.mktemp("bin") / "program.py"
    program.write_text(PROGRAM)
    here = tmp_path_factory.mktemp("here")
    (here / "own_words.py").write_text(TOKENIZER)
    env = {**os.environ, "PYTHONPATH": str(Path(daskw2v.__file__).parents[1])}

    def run(*words):
        line = [sys.executable, program, *map(str, words)]
        return subprocess.run(line, cwd=here, env=env, capture_output=True, text=True, timeout=200)

    return run


@pytest.fixture(scope="module")
def trained(command, tmp_path_factory):
    """Train once; return the work directory and what was printed."""
    folder = tmp_path_factory.mktemp("trained")
    text, work = folder / "text.txt", folder / "work"
    text.write_bytes(b"one+two+three+four+five\nsix+seven+eight+nine+ten\n" * 50 + b"\xff+one\n")
    result = command("train", text, "--work", work, "--tokenizer", "own_words:split", *TRAIN)
    assert result.returncode == 0, result.stderr
    return work, result


def test_command__finds_a_tokenizer_in_the_current_directory(trained):
    words = "one two three four five six seven eight nine ten \ufffd"
    assert sorted(Vectors.open(str(trained[0])).vocabulary.words) == sorted(words.split())


def test_command__tells_how_it_went_and_what_it_repaired(trained):
    _, result = trained
    assert "words/s" in result.stdout
    assert "dashboard" in result.stderr
    assert "Note: 1 line held invalid Unicode" in result.stderr
    assert "text.txt at byte 2450: invalid start byte." in result.stderr


def test_command__asks_evaluates_and_exports(command, trained, tmp_path):
    work, _ = trained
    asked = command("similar", work, "one", "--topn", "3")
    assert len(asked.stdout.split("\n")) >= 4, asked.stderr

    (tmp_path / "pairs.tsv").write_text("one\ttwo\t9\nsix\tseven\t8\none\tsix\t1\nnone\tsix\t1\n")
    (tmp_path / "quads.txt").write_text(": numbers\none two six seven\none two six absent\n")
    evaluated = command(
        "evaluate", work, "--similarity", tmp_path / "pairs.tsv", "--analogy", tmp_path / "quads.txt", "--json"
    )
    report = json.loads(evaluated.stdout)
    assert report["similarity"]["pairs"]["pairs"] == 3
    assert report["similarity"]["pairs"]["missing"] == 1
    assert report["analogy"]["quads"]["questions"] == report["analogy"]["quads"]["skipped"] == 1

    version = Vectors.open(str(work)).url
    assert command("export", version, tmp_path / "vectors.bin").returncode == 0
    exported = import_word2vec(str(tmp_path / "vectors.bin"))
    assert exported.vocabulary.words == Vectors.open(version).vocabulary.words

    info = json.loads(command("info", work, "--json").stdout)
    assert info["params"]["vector_size"] == 8


def test_command__says_what_is_wrong_in_one_line(command, tmp_path):
    failed = command("train", tmp_path / "absent.txt", "--work", tmp_path / "work", *TRAIN)
    assert failed.returncode == 2
    assert "absent.txt" in failed.stderr
    assert "Traceback" not in failed.stderr
