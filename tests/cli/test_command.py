"""The command line for real: train and ask in processes of its own; evaluate and export what was trained."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import daskw2v
from daskw2v import Vectors
from daskw2v.models.formats.word2vec import import_word2vec
from tests.support.command_line import invoke

# What an installed program is: Python finds the modules beside it, and none in the current directory.
PROGRAM = """
import signal

from daskw2v.cli import main

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it starts with & ignore it
    main()
"""
TOKENIZER = "def split(lines):\n    return [line.replace('+', ' ').split() for line in lines]\n"
TRAIN = ("--vector-size", "8", "--min-count", "1", "--epochs", "2", "--sample", "0", "--workers", "1", "--threads", "1")


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """Run the program in a directory of its own, where a module lies."""
    program = tmp_path_factory.mktemp("bin") / "program.py"
    program.write_text(PROGRAM)
    here = tmp_path_factory.mktemp("here")
    (here / "own_words.py").write_text(TOKENIZER)

    def run(*words, path=str(Path(daskw2v.__file__).parents[1]), start=subprocess.run):
        line, env = [sys.executable, program, *map(str, words)], {**os.environ, "PYTHONPATH": path}
        limits = {"timeout": 200} if start is subprocess.run else {}
        return start(line, cwd=here, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **limits)

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


@pytest.mark.slow
def test_command__finds_a_tokenizer_in_the_current_directory(trained):
    words = "one two three four five six seven eight nine ten \ufffd"
    assert sorted(Vectors.open(str(trained[0])).vocabulary.words) == sorted(words.split())


def test_command__reports_progress_and_repairs(trained):
    _, result = trained
    assert "words/s" in result.stdout
    assert "cluster: one worker in this process" in result.stderr
    assert "Note: 1 line had invalid Unicode" in result.stderr
    assert "text.txt at byte 2450: invalid start byte." in result.stderr


def here(*words):
    """Run a command in this process, and return what it prints."""
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_command__asks_evaluates_and_exports(command, trained, tmp_path):
    work, _ = trained
    asked = command("similar", work, "one", "--topn", "3")
    assert len(asked.stdout.split("\n")) >= 4, asked.stderr

    (tmp_path / "pairs.tsv").write_text("one\ttwo\t9\nsix\tseven\t8\none\tsix\t1\nnone\tsix\t1\n")
    (tmp_path / "quads.txt").write_text(": numbers\none two six seven\none two six absent\n")
    evaluated = here(
        "evaluate", work, "--similarity", tmp_path / "pairs.tsv", "--analogy", tmp_path / "quads.txt", "--json"
    )
    report = json.loads(evaluated)
    assert report["similarity"]["pairs"]["pairs"] == 3
    assert report["similarity"]["pairs"]["missing"] == 1
    assert report["analogy"]["quads"]["questions"] == report["analogy"]["quads"]["skipped"] == 1

    version = Vectors.open(str(work)).url
    here("export", version, tmp_path / "vectors.bin")
    exported = import_word2vec(str(tmp_path / "vectors.bin"))
    assert exported.vocabulary.words == Vectors.open(version).vocabulary.words

    info = json.loads(here("info", work, "--json"))
    assert info["params"]["vector_size"] == 8


@pytest.mark.slow
def test_command__says_what_is_wrong_in_one_line(command, tmp_path):
    failed = command("train", tmp_path / "absent.txt", "--work", tmp_path / "work", *TRAIN)
    assert failed.returncode == 2
    assert "absent.txt" in failed.stderr
    assert "Traceback" not in failed.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("option", "where"), [("--no-processes", "one worker"), ("--processes", "1 local worker")])
def test_command__does_not_show_what_workers_say_of_an_error(command, tmp_path, option, where):
    (tmp_path / "text.txt").write_bytes(b"one \xff two\n")
    failed = command("train", tmp_path / "text.txt", "--work", tmp_path / "work", "--errors", "strict", option, *TRAIN)
    assert failed.returncode == 2
    said, error = (line for line in failed.stderr.splitlines() if not line.startswith(("encode:", "compile:")))
    assert said.startswith(f"cluster: {where}")
    assert error.startswith("Error: ")


@pytest.mark.slow
def test_command__says_that_an_extra_is_missing_and_no_more(command, tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text("one two\n")
    hidden = tmp_path / "hidden" / "numba_cuda"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ModuleNotFoundError('hidden', name='numba_cuda')\n")
    paths = f"{hidden.parent}{os.pathsep}{Path(daskw2v.__file__).parents[1]}"
    failed = command("train", tmp_path / "text.txt", "--work", tmp_path / "work", "--device", "cuda", path=paths)
    assert failed.returncode == 2
    said, error = failed.stderr.splitlines()
    assert said.startswith("cluster: one worker in this process")
    assert error.startswith("Error: numba_cuda is not installed. Run: pip install 'daskw2v[cuda]'.")


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--no-processes", "--processes"])
def test_command__ends_an_interrupted_run_with_one_sentence(command, tmp_path, option):
    (tmp_path / "text.txt").write_text("one two three four five six seven\n" * 20_000)
    endless = ("--epochs", "100000", "--min-count", "1", "--sample", "0", "--threads", "1", option)
    began = command("train", tmp_path / "text.txt", "--work", tmp_path / "work", *endless, start=subprocess.Popen)
    with began:
        lines = []
        for line in began.stderr:
            lines.append(line)
            if line.startswith("train: ") and "words/s" in line:
                began.send_signal(signal.SIGINT)
                break
        lines += began.stderr.readlines()
    assert began.returncode == 130
    assert lines[-1] == "Interrupted. The same command goes on where it stopped.\n"
    stages = {line.partition(": ")[0] for line in lines[:-1]}
    assert stages <= {"cluster", "encode", "compile", "vocabulary", "choose", "train"}
