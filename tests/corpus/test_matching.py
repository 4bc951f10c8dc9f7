"""Patterns of tokenizers: matched as `re` does, in bounded time."""

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.corpus import matching
from daskw2v.corpus.matching import matches
from daskw2v.corpus.pieces import make_tokens
from daskw2v.corpus.tokenizers import make_tokenizer, tokenize
from daskw2v.errors import InputError

PATTERNS = [r"[a-z]+|\d", r"\w+", r"(?i)([a-z])\1|.", r"(?<=a)b?", r"[^\s]+", r"\b", "", "東|京*", r"^.|.$", "\ud800|a"]


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("data", "offsets", "starts"))


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(max_examples=8)
@given(text=st.text(st.sampled_from("abAB1 \n\r\t東京é\x1c\u2028\0"), max_size=60))
def test_matches__are_those_of_re(pattern, text):
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    expected = make_tokens([[match[0] for match in re.finditer(pattern, line)] for line in lines])
    assert same(matches(pattern, text.encode()), expected)


@pytest.fixture
def impatient(monkeypatch):
    """A bound of a fifth of a second, as these patterns take for ever."""
    monkeypatch.setattr(matching, "SECONDS", 0.2)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [("(a+)+$", "a" * 60 + "b"), (r"(\w+\s?)+;", "aaaa " * 2000), ("(x+x+)+y", "x" * 60), ("(?=(a+)+b)|a", "a" * 60)],
)
def test_line__that_takes_for_ever_is_named_and_others_are_read(impatient, pattern, line):
    tokenizer = make_tokenizer(f"regex:{pattern}")
    with pytest.raises(InputError) as error:
        tokenize(tokenizer, "/text.txt", f"ab\r\n\n{line}\nab\n".encode())
    message = str(error.value)
    assert message.startswith(f"/text.txt: The tokenizer regex:{pattern} takes more than 0.2 s of processor time")
    assert f"number 3 of the 4 lines read at once, which begins {line[:60]!r}. Give a pattern that" in message
    expected = make_tokens([[match[0] for match in re.finditer(pattern, "aab;")]])
    assert same(tokenizer(b"aab;\n"), expected)


def test_matches__of_several_threads_are_their_own():
    texts = [f"{'ab ' * n}\n".encode() for n in range(1, 9)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda text: matches("[ab]+", text), texts))
    assert [len(tokens.offsets) - 1 for tokens in results] == [*range(1, 9)]
    assert len(matching._idle[os.getpid(), "[ab]+", matching.SECONDS]) <= 4


def test_process__that_was_killed_is_replaced():
    matches("[ck]+", b"ck\n")
    (process,) = matching._idle[os.getpid(), "[ck]+", matching.SECONDS]
    process._process.send_signal(signal.SIGKILL)
    process._process.wait()
    assert same(matches("[ck]+", b"ck\n" * 100_000), make_tokens([["ck"]] * 100_000))


def test_process__that_is_killed_each_time_is_told(monkeypatch, tmp_path):
    script = tmp_path / "killed.py"
    script.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    monkeypatch.setattr(matching.matching_process, "__file__", str(script))
    with pytest.raises(
        InputError, match=r"^/a\.txt: The process that matches regex:\[cl\]\+ ended with exit code -9\."
    ):
        tokenize(make_tokenizer("regex:[cl]+"), "/a.txt", b"cl\n")
