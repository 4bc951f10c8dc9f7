import pickle
import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.corpus.pieces import RawText, make_tokens
from daskw2v.corpus.tokenizers import fingerprint, make_tokenizer, tokenize, tokenizer_identity
from daskw2v.errors import InputError, ParameterError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" '-\n\r’aÄΣ"), max_size=30)


def on_commas(lines):
    return [line.split(",") for line in lines]


not_a_function = 3


def same(a, b):
    return all((x == y).all() for x, y in zip(vars(a).values(), vars(b).values(), strict=True))


def test_whitespace__passes_the_very_bytes():
    data = b"one  two\0three\n"
    assert make_tokenizer("whitespace")(data).data is data


@given(TEXTS)
def test_lower__is_unicode_lower_with_blanks_for_white_space(text):
    expected = "".join(" " if c.isspace() and c > " " else c for c in text.lower())
    assert make_tokenizer("lower")(text.encode()) == RawText(expected.encode())


def test_lower__separates_tokens_where_str_split_does():
    text = "a".join(map(chr, (*range(0x20, 0xD800), *range(0xE000, sys.maxunicode + 1))))
    lowered = make_tokenizer("lower")(text.encode()).data
    assert lowered.split() == [word.encode() for word in text.lower().split()]


def test_lower__knows_the_final_sigma():
    assert make_tokenizer("lower")("ΟΔΟΣ ΣΑΣ\n".encode()).data.decode() == "οδος σας\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop--'now'! well-known -x y-", "don't stop now well-known x y"),
        ("l’été, ＦＵＬＬ ﬁne x²", "l'été full fine x2"),
        ("e\u0301a नमस्ते 42,5 _", "éa नमस्ते 42 5"),
        ("top\u2010down a\u2011b", "top-down a-b"),
        ("'", ""),
    ],
)
def test_normalize__keeps_words_only(text, words):
    assert make_tokenizer("normalize")(text.encode()).data.decode().split() == words.split()


@given(TEXTS)
def test_normalize__keeps_lines_and_only_the_characters_of_words(text):
    result = make_tokenizer("normalize")(text.encode()).data.decode()
    assert result.count("\n") == text.count("\n")
    assert all(unicodedata.category(c)[0] in "LMN" or c in " \n'-" for c in result)
    assert not re.search(r"(?<!\S)['-]|['-](?!\S)|['-]{2}", result)


@given(TEXTS, TEXTS)
def test_normalize__does_not_care_where_text_is_cut_between_words(left, right):
    normalize = make_tokenizer("normalize")
    both = normalize(f"{left}\n{right}".encode()).data
    assert both == normalize(f"{left}\n".encode()).data + normalize(right.encode()).data


@pytest.mark.parametrize("spec", [r"regex:[a-z]+|\d", r"regex:([a-z])[a-z]*|(\d)"])
def test_regex__makes_each_match_a_token(spec):
    tokens = make_tokenizer(spec)(b"ab,c 1\r\n\n,,\nx")
    assert same(tokens, make_tokens([["ab", "c", "1"], ["x"]]))


def test_regex__may_match_spaces_and_nothing():
    assert same(make_tokenizer("regex:(New York)?")(b"in New York\n"), make_tokens([["New York"]]))


def test_function__is_given_lines_without_their_ends():
    lines_seen = []

    def spy(lines):
        lines_seen.extend(lines)
        return [[line] for line in lines]

    make_tokenizer(spy)("é x\r\n\u2028b\n".encode())
    assert lines_seen == ["é x", "\u2028b"]


def test_function__is_imported_by_name():
    tokens = make_tokenizer(f"{__name__}:on_commas")(b"a b,c\n\nd\n")
    assert same(tokens, make_tokens([["a b", "c"], ["d"]]))


@pytest.mark.parametrize("spec", ["whitespace", "lower", "normalize", "regex:a", on_commas])
def test_make_tokenizer__makes_what_can_travel(spec):
    tokenizer = make_tokenizer(spec)
    assert type(pickle.loads(pickle.dumps(tokenizer))(b"a\n")) is type(tokenizer(b"a\n"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("whitspace", "whitspace.*unknown.*whitespace, lower, normalize, regex"),
        ("regex:", "no pattern"),
        ("regex:(", r"'\('.*invalid"),
        (":f", "unknown"),
        ("no.such.module:f", "cannot be imported"),
        ("math:no_such", "cannot be imported"),
        (f"{__name__}:not_a_function", "is a int"),
    ],
)
def test_make_tokenizer__refuses_bad_specs(spec, message):
    with pytest.raises(ParameterError, match=message):
        make_tokenizer(spec)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([], "0 for 2 lines"),
        (None, "a NoneType for 2 lines"),
        (["a", "b"], "a str for a line"),
        ([["a"], [1]], "tokens that are not strings"),
        ([["a"], ["\ud800"]], "not valid Unicode"),
    ],
)
def test_function__must_return_a_list_of_tokens_a_line(answer, message):
    with pytest.raises(ParameterError, match=message):
        make_tokenizer(lambda lines: answer)(b"a\nb\n")


def test_tokenizer_identity__is_name_and_code():
    name = f"{__name__}:on_commas"
    assert tokenizer_identity(on_commas) == tokenizer_identity(name) == [name, fingerprint(on_commas)]
    assert tokenizer_identity("normalize") == ["normalize"]
    assert tokenizer_identity("lower") == ["lower", "2"]
    assert tokenizer_identity("regex:a") == ["regex:a"]
    with pytest.raises(ParameterError, match="cannot be imported"):
        tokenizer_identity("no.such.module:f")


def fails(lines):
    raise KeyError(lines[0])


def has_no_memory(lines):
    raise MemoryError


def test_tokenize__names_tokenizer_file_and_error():
    with pytest.raises(InputError, match=r"test_tokenizers:fails failed on text of a\.txt \(KeyError: 'x'\)") as caught:
        tokenize(make_tokenizer(fails), "a.txt", b"x\n")
    assert isinstance(caught.value.__cause__, KeyError)


def test_tokenize__leaves_other_errors_alone():
    with pytest.raises(MemoryError):
        tokenize(make_tokenizer(has_no_memory), "a.txt", b"x\n")
    with pytest.raises(ParameterError, match="The tokenizer builtins:len returned a int"):
        tokenize(make_tokenizer(len), "a.txt", b"x\n")
