import pytest

from daskw2v.errors import InputError
from daskw2v.evaluation.similarity import ScoredPair, read_pairs

# Each public layout with two invented pairs of its form.
LAYOUTS = {
    "WordSim-353, tab": "Word 1\tWord 2\tHuman (mean)\nTiger\tcat\t7.35\nnight\tday\t10\n",
    "WordSim-353, combined.csv": "Word 1,Word 2,Human (mean)\nTiger,cat,7.35\nnight,day,10.00\n",
    "WordSim-353, set1.csv": "Word 1,Word 2,Human (mean),1,2\nTiger,cat,7.35,9,7\nnight,day,10.00,8,8\n",
    "WordSim-353, split": "Tiger\tcat\t7.35\nnight\tday\t10\n",
    "SimLex-999": (
        "word1\tword2\tPOS\tSimLex999\tconc(w1)\tconc(w2)\tconcQ\tAssoc(USF)\tSimAssoc333\tSD(SimLex)\n"
        "Tiger\tcat\tN\t7.35\t2.72\t2.81\t2\t7.25\t1\t0.41\nnight\tday\tN\t10\t1.75\t2.46\t1\t7.11\t1\t0.67\n"
    ),
    "MEN, words": "Tiger cat 7.350000\nnight day 10.000000\n",
    "MEN, lemmas": "Tiger-n cat-n 7.350000\nnight-n day-j 10.000000\n",
    "MTurk": "Tiger,cat,7.35\r\nnight,day,10\r\n",
    "RW": "Tiger\tcat\t7.35\t7\t7\t6\t1\nnight\tday\t10\t10\t9\t10\t2\n",
    "SimVerb-3500": "Tiger\tcat\tV\t7.35\tSYNONYMS\nnight\tday\tV\t10\tNONE\n",
    "R, write.csv": '"","word1","word2","score"\n"1","Tiger","cat",7.35\n"2","night","day",10\n',
    "R, no names of rows": '"word1","word2","score"\n"Tiger","cat",7.35\n"night","day",10\n',
    "R, write.table": '"word1" "word2" "score"\n"1" "Tiger" "cat" 7.35\n"2" "night" "day" 10\n',
    "R, tabs": '"word1"\t"word2"\t"score"\n"1"\t"Tiger"\t"cat"\t7.35\n"2"\t"night"\t"day"\t10\n',
    "pandas": ",word1,word2,score\n0,Tiger,cat,7.35\n1,night,day,10\n",
    "comments": "\ufeff# by us\n\nw1 w2 score\nTiger  cat 7.35\n#\nnight day 10\n",
}


def write(tmp_path, text):
    path = tmp_path / "set.txt"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_read_pairs__reads_every_layout(tmp_path, text):
    assert read_pairs(write(tmp_path, text)) == [ScoredPair("Tiger", "cat", 7.35), ScoredPair("night", "day", 10)]


def test_read_pairs__removes_tags_only_if_each_word_has_one(tmp_path):
    assert read_pairs(write(tmp_path, "vitamin-c pill-n 3\nx-y cat 5\n")) == [
        ScoredPair("vitamin-c", "pill-n", 3),
        ScoredPair("x-y", "cat", 5),
    ]


def test_read_pairs__reads_one_line_and_none(tmp_path):
    assert read_pairs(write(tmp_path, "new york\tcity\t5\n")) == [ScoredPair("new york", "city", 5)]
    assert read_pairs(write(tmp_path, "# nothing\n")) == []
    assert read_pairs(write(tmp_path, '"york, new","5"" disk",5\n')) == [ScoredPair("york, new", '5" disk', 5)]


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("a\tb\t1\na\tb\tx\n", 2, 3),
        ("a\tb\n", 1, 3),
        ("a\tb\n1\t2\n", 1, 3),
        ("The pairs\na\tb\t1\n", 1, 3),
        ("a\tb\tc\nd\te\tf\n", 2, 3),
        ("a\tb\t1\na\tb\tnan\n", 2, 3),
        ("a\tb\tN\t1\na\tb\tN\t2\na\tb\t3\n", 3, 4),
    ],
)
def test_read_pairs__names_a_malformed_line(tmp_path, text, line, field):
    with pytest.raises(InputError, match=rf"Line {line} of .*two words with a score in field {field}: .*<TAB>score"):
        read_pairs(write(tmp_path, text))


def test_read_pairs__names_a_line_that_is_not_utf8(tmp_path):
    (tmp_path / "set.tsv").write_bytes(b"a\tb\t1\nw\xff\tb\t1\n")
    with pytest.raises(InputError, match=r"Line 2 of .* not UTF-8.*Convert"):
        read_pairs(tmp_path / "set.tsv")


def test_read_pairs__names_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read.*Check that"):
        read_pairs(tmp_path / "absent")
