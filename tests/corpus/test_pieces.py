import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.corpus.pieces import ReadReport, make_tokens

TOKENS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


def sentences_of(tokens):
    words = [bytes(tokens.data[a:b]).decode() for a, b in zip(tokens.offsets, tokens.offsets[1:], strict=False)]
    ends = [*tokens.starts[1:], len(words)]
    return [words[a:b] for a, b in zip(tokens.starts, ends, strict=False)]


@given(st.lists(st.lists(TOKENS, max_size=4), max_size=5))
def test_make_tokens__keeps_all_but_empty_tokens_and_sentences(sentences):
    tokens = make_tokens(sentences)
    kept = [[t for t in s if t] for s in sentences]
    assert sentences_of(tokens) == [s for s in kept if s]
    assert (tokens.data.dtype, tokens.offsets.dtype, tokens.starts.dtype) == ("uint8", "int64", "int64")


def test_make_tokens__refuses_lone_surrogates():
    with pytest.raises(UnicodeEncodeError):
        make_tokens([["\ud800"]])


def test_report__merges_and_keeps_the_first_offence():
    report = ReadReport(bytes_read=1, lines=2, replaced=3, skipped=4, cut=5)
    report.merge(ReadReport(10, 20, 30, 40, 50, "first"))
    report.merge(ReadReport(first_offence="second"))
    assert report == ReadReport(11, 22, 33, 44, 55, "first")
    assert json.loads(json.dumps(report.as_dict()))["first_offence"] == "first"
