import gzip
import zipfile

import fsspec
import numpy as np
import pytest

from daskw2v.errors import InputError
from daskw2v.evaluation.analogy import KnownRelation, read_relations
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = [*"abcdef", "X"]
BATS = {
    "1_Inflectional/I01 [noun - plural].txt": "a\tb\nc\td/e\n",
    "1_Inflectional/I02 [verb].txt": "a\tb\n\nc\td\ne\tf\n",
    "3_Encyclopedic/E01 [x - y].txt": "a b/c\n",
    "3_Encyclopedic/notes.json": "{}",
    "3_Encyclopedic/._E01 [x - y].txt": "\x00",
}


def write(tmp_path, text, name="set.txt"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def spell_questions(relation):
    """Return the questions of a relation as texts: three words, and all right answers."""
    pairs = relation.pairs
    return [(pairs[i][0], pairs[i][1][0], pairs[j][0], "/".join(pairs[j][1])) for i, j in relation.questions]


def look_up(relation, words=WORDS, limit=7):
    return KnownRelation.look_up(relation, Vocabulary.from_words(words, [1] * len(words)), limit)


def test_read_relations__reads_google(tmp_path):
    url = write(tmp_path, "\ufeff: capital-world\nA b c d\nc d A b\n# x\n: gram1-adverb\na b e f\n\n: empty\n")
    capital, adverb, empty = read_relations(url)
    assert (capital.name, capital.group) == ("capital-world", "semantic")
    assert capital.pairs == [("A", ("b",)), ("c", ("d",))]
    assert spell_questions(capital) == [("A", "b", "c", "d"), ("c", "d", "A", "b")]
    assert (adverb.name, adverb.group) == ("gram1-adverb", "syntactic")
    assert spell_questions(adverb) == [("a", "b", "e", "f")]
    assert (empty.pairs, empty.questions.shape) == ([], (0, 2))


def test_read_relations__groups_only_google(tmp_path):
    (relation,) = read_relations(write(tmp_path, ": capital\na b c d\n"))
    assert relation.group is None


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_read_relations__reads_msr(tmp_path, separator):
    lines = "good better rough rougher\ngood better hot hotter\n"
    (relation,) = read_relations(write(tmp_path, lines.replace(" ", separator), "msr.txt"))
    assert (relation.name, relation.group) == ("msr", None)
    assert spell_questions(relation) == [("good", "better", "rough", "rougher"), ("good", "better", "hot", "hotter")]


@pytest.mark.parametrize("position", range(5))
def test_read_relations__reads_tagged_msr(tmp_path, position):
    words = ["good", "better", "rough", "rougher"]
    line = " ".join([*words[:position], "JJ_JJR", *words[position:]])
    first, second = read_relations(write(tmp_path, f"{line}\ndog dogs NN_NNPOS$ cat cats\n{line}\n"))
    assert (first.name, spell_questions(first)) == ("JJ_JJR", [tuple(words)] * 2)
    assert (second.name, spell_questions(second)) == ("NN_NNPOS$", [("dog", "dogs", "cat", "cats")])


def assert_is_bats(relations):
    assert [(r.name, r.group) for r in relations] == [
        ("I01 [noun - plural]", "1_Inflectional"),
        ("I02 [verb]", "1_Inflectional"),
        ("E01 [x - y]", "3_Encyclopedic"),
    ]
    assert spell_questions(relations[0]) == [("a", "b", "c", "d/e"), ("c", "d", "a", "b")]
    assert len(relations[1].questions) == 6
    assert (relations[2].pairs, len(relations[2].questions)) == ([("a", ("b", "c"))], 0)


@pytest.mark.parametrize("end", ["", "/"])
def test_read_relations__reads_a_folder_of_bats(tmp_path, monkeypatch, end):
    for name, text in BATS.items():
        (tmp_path / "bats" / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / "bats", text, name)
    assert_is_bats(read_relations(f"{tmp_path}/bats{end}"))
    monkeypatch.chdir(tmp_path)
    assert_is_bats(read_relations(f"bats{end}"))


def test_read_relations__reads_bats_in_memory_and_archives(tmp_path):
    fs = fsspec.filesystem("memory")
    with zipfile.ZipFile(tmp_path / "bats.zip", "w") as archive:
        for name, text in BATS.items():
            fs.pipe_file(f"/test_relations/bats/{name}", text.encode())
            archive.writestr(f"BATS_3.0/{name}", text)
    try:
        assert_is_bats(read_relations("memory://test_relations/bats"))
    finally:
        fs.rm("/test_relations", recursive=True)
    assert_is_bats(read_relations(f"zip://::{tmp_path}/bats.zip"))
    assert_is_bats(read_relations(f"zip://BATS_3.0::{tmp_path}/bats.zip"))


def test_read_relations__reads_one_file_of_pairs(tmp_path):
    (tmp_path / "E01.txt.gz").write_bytes(gzip.compress(b"a\tb\nc\td\n"))
    for url in (tmp_path / "E01.txt.gz", tmp_path):
        (relation,) = read_relations(url)
        assert (relation.name, relation.group, len(relation.questions)) == ("E01", None, 2)


def test_read_relations__refuses_a_folder_without_files(tmp_path):
    with pytest.raises(InputError, match=r"contains no file named \.txt.*Give the folder"):
        read_relations(tmp_path)


def test_read_relations__refuses_two_relations_of_one_name(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, "a\tb\n", "E01.txt")
    with pytest.raises(InputError, match=r"Two files in .* have a category 'E01'.*Rename"):
        read_relations(tmp_path)


@pytest.mark.parametrize(
    ("text", "line"),
    [(": a\na b c\n", 2), (": a\n\na b c d e\n", 3), ("a\t/\n", 1), ("a\n", 1), ("a b NN_NN NN_NN c\n", 1)],
)
def test_read_relations__names_a_malformed_line(tmp_path, text, line):
    with pytest.raises(InputError, match=rf"Line {line} of .*nor a pair: .*Write four words in each line"):
        read_relations(write(tmp_path, text))


@pytest.mark.parametrize(("text", "form"), [("a b c d\na b\n", "a pair"), ("a b\na b c d\n", "a question")])
def test_read_relations__refuses_pairs_among_questions(tmp_path, text, form):
    with pytest.raises(InputError, match=rf"Line 2 of .* is {form}, unlike those of 'set' above it: .*Write either"):
        read_relations(write(tmp_path, text))


def test_read_relations__names_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_relations(tmp_path / "absent")


def test_known_relation__keeps_the_pairs_that_the_model_knows(tmp_path):
    (relation,) = read_relations(write(tmp_path, "A\tno/B/f\nno\tb\nc\tno\nx\td\nX\te\n"))
    result = look_up(relation)
    assert result.pairs.tolist() == [[0, 1], [6, 4]]
    assert result.questions.tolist() == [[0, 1], [1, 0]]


def test_known_relation__prefers_the_word_as_written_among_the_first(tmp_path):
    (relation,) = read_relations(write(tmp_path, "A\tb\nc\td\n"))
    words = [*"abcd", "A"]
    assert look_up(relation, words, 5).pairs.tolist() == [[4, 1], [2, 3]]
    assert look_up(relation, words, 4).pairs.tolist() == [[0, 1], [2, 3]]
    assert look_up(relation, words, 3).pairs.tolist() == [[0, 1]]


def test_known_relation__counts_each_right_answer(tmp_path):
    (relation,) = read_relations(write(tmp_path, "a\tb/no/f\nc\td\n"))
    asked, answers = np.array([0, 0, 0, 1, 1, 1]), np.array([1, 5, 3, 3, -1, 1])
    right = [look_up(relation).count_correct(asked[[k]], answers[[k]]) for k in range(6)]
    assert right == [1, 1, 0, 1, 0, 0]
    assert look_up(relation).count_correct(asked, answers) == 3


def test_read_relations__reads_the_published_sets(data):
    google = read_relations(data / "eval" / "google_analogy.txt")
    assert sum(len(relation.questions) for relation in google) == 19544
    assert sum(len(relation.questions) for relation in google if relation.group == "syntactic") == 10675
    bats = read_relations(data / "eval" / "bats")
    groups = [relation.group for relation in bats]
    assert [groups.count(group) for group in sorted(set(groups))] == [10] * 4
    assert all(len(r.questions) == len(r.pairs) * (len(r.pairs) - 1) for r in bats)
