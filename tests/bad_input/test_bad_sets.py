"""Evaluation sets that cannot be read, or hold a line that means nothing: file and line are named, and the remedy."""

import gzip

import numpy as np
import pytest

from daskw2v import Vectors, evaluate
from daskw2v.errors import InputError
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = ["one", "two", "three", "four"]
VECTORS = Vectors(Vocabulary.from_words(WORDS, [4, 3, 2, 1]), np.eye(4, dtype=np.float32))
READ = "Check that the file exists, is complete and may be read"

GOOD = {  # a line that each kind takes
    "similarity": "one\ttwo\t1",
    "analogy": "one two three four",
    "categorization": "one\tnumber",
    "classification": "good\tone two",
}
UNREADABLE = {  # name: content, None for no file; what is said
    "missing.tsv": (None, rf"missing\.tsv cannot be read: .*No such file.*{READ}"),
    "short.tsv.gz": (gzip.compress(b"#\n" * 999)[:-9], rf"short\.tsv\.gz cannot be read: .*{READ}"),
    "plain.tsv.gz": (b"one\ttwo\t1\n", rf"plain\.tsv\.gz cannot be read: .*{READ}"),
    "latin.tsv": (b"\xe9t\xe9\ttwo\t1\n", r"Line 1 of .*latin\.tsv is not UTF-8 \(.*\)\. Convert the file to UTF-8"),
    "wide.tsv": ("one\ttwo\t1\n".encode("utf-16"), r"Line 1 of .*wide\.tsv is not UTF-8"),
    "binary.tsv": (bytes(range(256)), r"Line \d of .*binary\.tsv (is not UTF-8|is not|is neither)"),
}


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize("name", UNREADABLE)
def test_set__that_cannot_be_read_is_named_with_the_reason(tmp_path, kind, name):
    content, message = UNREADABLE[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        evaluate(VECTORS, **{kind: [tmp_path / name]})


BAD_LINES = {  # by kind: lines that mean nothing, and what to write
    "similarity": (["one", "one\ttwo", "one\ttwo\tnan", "one\ttwo\tinf", "one\ttwo\tx", "\0"], "Write word1<TAB>word2"),
    "analogy": (["one", "one two three", "one two three four five", "one\t", "\0"], "Write four words in each line"),
    "categorization": (["one", "one\t", "\tnumber", "one\ttwo\tthree", "one two", "\0"], "Write word<TAB>class"),
    "classification": (["good", "good\t", "\tone", "good one", "\0"], "Write label<TAB>text in each line"),
}


@pytest.mark.parametrize(("kind", "line"), [(kind, line) for kind, (lines, _) in BAD_LINES.items() for line in lines])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_line__that_means_nothing_is_named_by_its_number(tmp_path, kind, line, end):
    path = tmp_path / "set.tsv"
    path.write_bytes(f"# comment\n{GOOD[kind]}\n\n{GOOD[kind]}\n{line}{end}".encode())
    with pytest.raises(InputError, match=rf"^Line 5 of .*set\.tsv is (not|neither) .*{BAD_LINES[kind][1]}"):
        evaluate(VECTORS, **{kind: [path]})


@pytest.mark.parametrize("kind", GOOD)
def test_line__of_any_length_is_shown_by_its_beginning_only(tmp_path, kind):
    path = tmp_path / "set.tsv"
    path.write_text(f"{GOOD[kind]}\n{GOOD[kind]}\n{'x' * 1_000_000}\n")
    with pytest.raises(InputError, match=r"^Line 3 of .*xxxxx") as caught:
        evaluate(VECTORS, **{kind: [path]})
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("kind", ["similarity", "analogy", "categorization"])
@pytest.mark.parametrize("content", [b"", b"\n\n", b"# nothing\n", b"\xef\xbb\xbf"])
def test_set__of_nothing_has_no_score(tmp_path, kind, content):
    (tmp_path / "set.tsv").write_bytes(content)
    assert set(evaluate(VECTORS, **{kind: [tmp_path / "set.tsv"]}).scores().values()) == {None}


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("similarity", rf"folder cannot be read: .*Is a directory.*{READ}"),
        ("analogy", r"folder contains no file named .*\. Give the folder that contains the set's files"),
        ("categorization", rf"folder cannot be read: .*Is a directory.*{READ}"),
        ("classification", rf"folder cannot be read: .*Is a directory.*{READ}"),
        ("outliers", r"folder contains no \.txt file\. Give the folder with a file TOPIC\.txt"),
    ],
)
def test_set__that_is_an_empty_folder_is_refused(tmp_path, kind, message):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=message):
        evaluate(VECTORS, **{kind: [tmp_path / "folder"]})
