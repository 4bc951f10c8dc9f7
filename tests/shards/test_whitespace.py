import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.shards.whitespace import split_tokens


def split_all(text, capacity=1 << 10):
    """All tokens and sentence starts, through as many calls as the capacity takes."""
    data = np.frombuffer(text, np.uint8)
    begins, ends, starts = np.empty((3, capacity), np.int64)
    tokens, sentences, position = [], [0], 0
    while position < len(data):
        position, n, n_starts = split_tokens(data, position, begins, ends, starts, sentences[-1] - len(tokens))
        sentences += (starts[:n_starts] + len(tokens)).tolist()
        tokens += [text[a:b] for a, b in zip(begins[:n], ends[:n], strict=True)]
    return tokens, sentences


def expected(text):
    """Python's own split: separators are all bytes up to 0x20."""
    separators = bytes(range(33))
    tokens, sentences = [], [0]
    lines = text.split(b"\n")
    for i, line in enumerate(lines):
        tokens += line.translate(bytes(b if b not in separators else 32 for b in range(256))).split()
        if i + 1 < len(lines) and sentences[-1] != len(tokens):
            sentences.append(len(tokens))
    return tokens, sentences


pieces = st.one_of(
    st.sampled_from([b" ", b"\n", b"\n\n", b"\t", b"\r\n", b"\x00", b"a", b"bc"]),
    st.binary(max_size=4),
    st.integers(1, 200).map(lambda n: b"x" * n),
)


@given(st.lists(pieces, max_size=150).map(b"".join))
def test_split_tokens__equals_python(text):
    assert split_all(text) == expected(text)


@given(st.lists(pieces, max_size=300).map(b"".join))
def test_split_tokens__goes_on_where_the_arrays_were_full(text):
    assert split_all(text, capacity=65) == expected(text)


@pytest.mark.parametrize("text", [b"", b" ", b"\n", b"\n\n\n", b" " * 64, b"a" * 64, b"a" * 65, b"a " * 500])
def test_split_tokens__handles_edges_of_64_bytes(text):
    assert split_all(text) == expected(text)
