"""The command line with what it does not take: one line that names it, an exit code, and no traceback."""

import errno
import importlib
import os
from contextlib import contextmanager

import numpy as np
import pytest

from daskw2v.cli import formats
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke

ROWS = np.random.default_rng(1).standard_normal((4, 3), np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    models = Store(str(folder / "work" / "models"))
    create_model(models / "v0001-a", {"input": ROWS.shape}, row_block=4)
    write_table_rows(models / "v0001-a", "input", 0, ROWS)
    write_vocabulary(models / "v0001-a", Vocabulary.from_words(["one", "two", "three", "four"], [4, 3, 2, 1]))
    publish(models, "v0001-a", {"params": {"seed": 3}})
    return str(folder / "work")


@pytest.fixture
def run(monkeypatch, tmp_path, client):
    """Run a command in a folder of its own; the local cluster of `train` is the one of all tests."""

    @contextmanager
    def connect(*_):
        yield client

    monkeypatch.setattr(importlib.import_module("daskw2v.cluster.connecting"), "connect", connect)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("DASKW2V_")]:
        monkeypatch.delenv(name)

    def run(*words, env=None):
        return invoke(*words, env=env)

    return run


def refusal(result):
    """Return the line that tells what is wrong, after checking that it is the last, and no traceback is there."""
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    return last


TRAIN = ("train", "text.txt", "--work", "work")

MISUSED = {  # of click: what is given, and what is said
    ("nosuch",): "No such command 'nosuch'",
    ("--nosuch",): "No such option",
    ("train", "text.txt"): "Missing option '--work'",
    ("train", "--work", "work"): "Missing argument 'INPUT...'",
    (*TRAIN, "--nosuch", "1"): "No such option",
    ("similar", "--model", "work", "word"): "No such option '--model'",
    (*TRAIN, "--epochs"): "Option '--epochs' requires an argument",
    (*TRAIN, "--epochs", "many"): "Invalid value for '--epochs': 'many' is not a valid integer",
    (*TRAIN, "--epochs", "1.5"): "Invalid value for '--epochs': '1.5' is not a valid integer",
    (*TRAIN, "--alpha", "fast"): "Invalid value for '--alpha': 'fast' is not a valid float",
    (*TRAIN, "--config", "none.toml"): "Invalid value for '--config': File 'none.toml' does not exist",
    (*TRAIN, "--config", "."): "Invalid value for '--config': File '.' is a directory",
    (*TRAIN, "--storage-option", "anon"): "'--storage-option': it is not KEY=VALUE",
    ("similar", "MODEL"): "Missing argument 'WORD...'",
    ("similar", "MODEL", "one", "--topn", "0"): "0 is not in the range x>=1",
    ("similar", "MODEL", "one", "--topn", "ten"): "'ten' is not a valid integer",
    ("analogy", "MODEL", "one", "two"): "Missing argument 'C'",
    ("analogy", "MODEL", "one", "two", "three", "four"): "Got unexpected extra argument (four)",
    ("import", "v.vec"): "Missing argument 'URL'",
    ("export", "MODEL"): "Missing argument 'URL'",
    ("info", "MODEL", "more"): "Got unexpected extra argument (more)",
    ("evaluate", "MODEL"): "Nothing to evaluate: give --similarity FILE... or",
    ("evaluate", "MODEL", "--analogy", "a", "--method", "3cosdiv"): "'3cosdiv' is not one of '3cosadd'",
    ("evaluate", "MODEL", "--analogy", "a", "--restrict-vocab", "0"): "0 is not in the range x>=1",
    ("compare", "MODEL"): "Missing argument 'SECOND'",
    ("report", "MODEL"): "Missing argument 'URL'",
    ("report", "MODEL", "r.html", "--map", "tsne"): "'tsne' is not one of 'graph', 'umap'",
}

REFUSED = {  # of daskw2v
    (*TRAIN, "--epochs", "0"): "epochs=0 is not an integer >= 1. Give epochs (",
    (*TRAIN, "--alpha", "nan"): "alpha=nan is not a finite number > 0 and <= 10 or None. Give alpha (",
    (*TRAIN, "--alpha", "inf"): "alpha=inf is not a finite number",
    (*TRAIN, "--errors", "ignore"): "errors='ignore' is not one of strict, replace, skip. Give errors",
    (*TRAIN, "--block-size", "big"): "block_size='big' is not a size in bytes",
    (*TRAIN, "--objective", "glove"): "objective='glove' does not exist. Choose one of: sgns",
    (*TRAIN, "--tokenizer", "regex:("): "text.txt matches no file",  # text is looked for first
    (*TRAIN, "--scheduler", "tcp://h:1", "--workers", "2"): "workers=2 would be ignored",
    TRAIN: "text.txt matches no file. Check the path, broken links",
    ("train", "", "--work", "work"): "input='' is no URL or path. Give text that is not empty",
    ("train", ".", "--work", "work"): ". is a folder without files to read. Names that begin with . or _ are skipped",
    ("train", "nosuch://a", "--work", "work"): "A URL of nosuch:// cannot be opened: Protocol not known: nosuch. Give",
    ("train", "new\nline", "--work", "work"): "new line matches no file",
    ("train", "text.txt", "--work", ""): "work='' is no URL or path",
    ("train", "text.txt", "--work", "/dev/null"): "/dev/null cannot be",
    ("train", "text.txt", "--work", "nosuch://a"): "A URL of nosuch:// cannot be opened",
    ("similar", "nowhere", "one"): "There is no model at nowhere. Give a work directory",
    ("similar", "", "one"): "model='' is no URL or path",
    ("similar", "MODEL", "none"): "'none' is not among the 4 words of the vocabulary. Look for another form",
    ("similar", "MODEL", ""): "'' is not among the 4 words",
    ("analogy", "MODEL", "one", "two", "none"): "'none' is not among the 4 words",
    ("import", "none.vec", "m"): "none.vec cannot be read: [Errno 2] No such file",
    ("import", "v.vec", "m", "--format", "glove"): "format='glove' of v.vec is unknown. Give one of text, binary",
    ("export", "MODEL", "v.doc"): "The name v.doc has no suffix of a format. Give one of text, binary",
    ("export", "MODEL", ""): "url='' is no URL or path",
    ("export", "MODEL", "v.txt", "--format", "xml"): "format='xml' of v.txt is unknown",
    ("export", "MODEL", "v.parquet.gz"): "parquet is not compressed with gzip",
    ("export", "MODEL", "/dev/null/v.txt"): "File exists: '/dev/null'",
    ("export", "MODEL", "folder.txt"): "Is a directory",
    ("export", "MODEL", "nosuch://v.txt"): "A URL of nosuch:// cannot be opened",
    ("info", "nowhere"): "There is no model at nowhere",
    ("evaluate", "MODEL", "--similarity", "none.tsv"): "none.tsv cannot be read: [Errno 2] No such file",
    ("evaluate", "MODEL", "--similarity", "."): "cannot be read",
    ("evaluate", "MODEL", "--outliers", "none"): "none contains no .txt file",
    ("evaluate", "MODEL", "--analogy", "a.txt", "b/a.txt"): "a.txt and b/a.txt have the same name, 'a'. Rename one",
    ("compare", "MODEL", "nowhere"): "There is no model at nowhere",
    ("report", "MODEL", "out/"): "url='out/' names no file. Give the URL of a file",
    ("report", "MODEL", "r.html", "--word", "none"): "'none' is not among the 4 words",
    ("report", "MODEL", "folder.txt"): "Is a directory",
    ("datasets", "nosuch"): "There is no set 'nosuch'. Give one of: ws353",
}


@pytest.mark.parametrize("words", [*MISUSED, *REFUSED], ids=" ".join)
def test_command__that_means_nothing_is_refused_in_one_line(run, model, tmp_path, words):
    (tmp_path / "folder.txt").mkdir()
    if words[:3] == TRAIN[:3] and words[3] != "work":
        (tmp_path / "text.txt").write_text("a b\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    result = run(*(model if word == "MODEL" else word for word in words))
    assert {**MISUSED, **REFUSED}[words] in refusal(result)
    assert [name for name in sorted(path.name for path in tmp_path.iterdir()) if name != "work"] == before


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("DASKW2V_EPOCHS", "many", "Invalid value for '--epochs'"),
        ("DASKW2V_EPOCHS", "-1", "epochs=-1 is not an integer >= 1"),
        ("DASKW2V_SHRINK_WINDOWS", "maybe", "'maybe' is not a valid boolean"),
        ("DASKW2V_CONFIG", "none.toml", "File 'none.toml' does not exist"),
    ],
)
def test_environment__is_checked_as_options_are(run, name, value, message):
    assert message in refusal(run(*TRAIN, env={name: value}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"epochs = 0", "epochs=0 is not an integer >= 1"),
        (b"epochs = '5'", "epochs='5' is not an integer >= 1"),
        (b"epochs = nan", "epochs=nan is not an integer >= 1"),
        (b"eval_similarity = 'ws353.tsv'", "eval_similarity='ws353.tsv' is not a list of URLs or paths"),
        (b"storage_options = ['hunter2']", "storage_options=a list (not shown: it may hold secrets) is not a mapping"),
        (b"epoch = 5", "c.toml sets epoch, which is not a parameter. The names are: tokenizer"),
        (b"epochs 5", "c.toml is not TOML: "),
        (b"epochs = 5\nepochs = 6", "c.toml is not TOML: "),
        (b"column = '\xff'", "c.toml is not TOML: "),
    ],
)
def test_config__is_checked_as_options_are(run, tmp_path, content, message):
    (tmp_path / "c.toml").write_bytes(content)
    line = refusal(run(*TRAIN, "--config", "c.toml"))
    assert message in line
    assert "hunter2" not in line


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO, errno.EDQUOT])
def test_error_of_the_system__is_one_line_too(run, model, monkeypatch, number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number), "v.txt")

    monkeypatch.setattr(formats, "export", fail)
    assert refusal(run("export", model, "v.txt")) == f"Error: [Errno {number}] {os.strerror(number)}: 'v.txt'"
    assert "Traceback" in run("export", model, "v.txt", "--debug").stderr


@pytest.mark.parametrize("words", [(), ("train",), ("similar",), ("analogy",), ("export",), ("info",), ("evaluate",)])
def test_command__without_anything_shows_its_help(run, words):
    result = run(*words)
    assert result.exit_code == 2
    assert "Usage: daskw2v" in result.output
    assert "Traceback" not in result.output
