"""Who entered, who left, and why: reasons are held to the counts of all words, which a version does not keep."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.errors import StoreError
from daskw2v.vocabulary.ids import StableIds
from daskw2v.vocabulary.turnover import Reason, WordRules, compare_words
from daskw2v.vocabulary.vocabulary import Vocabulary

LISTS = {"odd.txt": "acegi", "even.txt": "bdfhj"}
COUNTS = st.fixed_dictionaries({word: st.integers(0, 6) for word in "abcdefghij"})
RULES = st.builds(
    WordRules,
    min_count=st.integers(1, 5),
    max_final_vocab=st.none() | st.integers(1, 8),
    vocabulary=st.none() | st.none() | st.sampled_from([*LISTS]),
)


def kept(counts, rules):
    """Return the words that rules keep, in order."""
    listed = LISTS.get(rules.vocabulary)
    words = [w for w, n in counts.items() if (n >= rules.min_count if listed is None else n and w in listed)]
    return sorted(words, key=lambda w: (-counts[w], w))[: rules.max_final_vocab if listed is None else None]


def vocabulary_of(counts, rules):
    words = kept(counts, rules)
    return Vocabulary.from_words(words, [counts[word] for word in words])


def reasons_of(moved):
    return {moved.vocabulary.word(row): Reason(r) for row, r in zip(moved.rows.tolist(), moved.reasons, strict=True)}


def check_reason(reason, word, having, lacking, rules, bar):
    """Check what a reason says of a word by its counts in both texts and by the rules of both versions."""
    reached = word in kept(having, bar)  # the bar of the version that lacks it, in the other text
    match reason:
        case Reason.MIN_COUNT:
            assert lacking[word] < bar.min_count <= having[word]
            assert reached
        case Reason.MAX_FINAL_VOCAB:
            assert len(kept(lacking, bar)) == bar.max_final_vocab
            assert reached
        case Reason.VOCABULARY:
            assert rules.vocabulary == bar.vocabulary
            assert not lacking[word]
        case Reason.MIN_COUNT_CHANGED:
            assert rules.min_count <= having[word] < bar.min_count
            assert not reached
        case Reason.MAX_FINAL_VOCAB_CHANGED:
            assert rules.max_final_vocab is None or rules.max_final_vocab > bar.max_final_vocab
            assert not reached
        case Reason.VOCABULARY_CHANGED:
            assert rules.vocabulary != bar.vocabulary
        case _:
            raise AssertionError(reason)


@given(COUNTS, COUNTS, RULES, st.data())
def test_compare_words__tell_what_is_true_of_all_counts(before, now, rules_before, data):
    rules_now = data.draw(st.just(rules_before) | RULES)
    known, new = vocabulary_of(before, rules_before), vocabulary_of(now, rules_now)
    turnover = compare_words(known, new, rules_before, rules_now)
    entered, left = reasons_of(turnover.entered), reasons_of(turnover.left)
    assert list(entered) == [word for word in new.words if word not in known]
    assert list(left) == [word for word in known.words if word not in new]
    assert turnover.kept == len(set(known.words) & set(new.words))
    for word, reason in entered.items():
        check_reason(reason, word, now, before, rules_now, rules_before)
    for word, reason in left.items():
        check_reason(reason, word, before, now, rules_before, rules_now)
    told = turnover.as_dict()
    assert sum(told["entered"].values()) == len(turnover.entered)
    assert sum(told["left"].values()) == len(turnover.left)
    if rules_before == rules_now:
        assert not any("changed" in name for name in [*told["entered"], *told["left"]])


BEFORE = {"the": 9, "cat": 7, "sat": 5, "mat": 4, "hat": 3}
NOW = {"the": 9, "cat": 3, "sat": 6, "mat": 4, "dog": 5, "hat": 3}


def told(rules_before, rules_now, before=BEFORE, now=NOW):
    """Return the turnover as words with their counts, ids and reasons."""
    known, new = vocabulary_of(before, rules_before), vocabulary_of(now, rules_now)
    turnover, ids = compare_words(known, new, rules_before, rules_now), StableIds.first(known)
    return [tuple(e) for e in turnover.entered.entries(ids.grow(known, new))], [
        tuple(e) for e in turnover.left.entries(ids)
    ]


def test_entries__name_the_bar():
    rules = WordRules(min_count=5)
    assert told(rules, rules) == (
        [("dog", 5, "at least min_count=5", 3)],
        [("cat", 7, "fewer than min_count=5", 1)],
    )
    rules = WordRules(min_count=2, max_final_vocab=3)
    assert told(rules, rules) == (
        [("dog", 5, "among the 3 most frequent, of which the last occurs 5 times", 3)],
        [("cat", 7, "not among the 3 most frequent, of which the last occurs 5 times", 1)],
    )


def test_entries__of_a_limit_that_has_room_name_min_count():
    rules = WordRules(min_count=5, max_final_vocab=100)
    assert [entry[2] for entry in told(rules, rules)[1]] == ["fewer than min_count=5"]


def test_entries__name_the_list(monkeypatch):
    monkeypatch.setitem(LISTS, "list.txt", ("the", "cat", "dog"))
    rules = WordRules(min_count=5, vocabulary="list.txt")
    entered, left = told(rules, rules, now={"the": 1, "dog": 1, "sat": 8})
    assert [(entry[0], entry[2]) for entry in entered] == [("dog", "in the list and in the text")]
    assert [(entry[0], entry[2]) for entry in left] == [("cat", "not in the list or not in the text")]
    entered, _ = told(WordRules(min_count=5), rules, before={"dog": 5})
    assert {entry[2] for entry in entered} == {"vocabulary is list.txt now, was None"}


def test_entries__name_a_rule_only_where_it_decides():
    entered, left = told(WordRules(min_count=5), WordRules(min_count=3))
    assert [(entry[0], entry[2]) for entry in entered] == [
        ("dog", "at least min_count=5"),  # it would have entered anyway
        ("mat", "min_count is 3 now, was 5"),
        ("hat", "min_count is 3 now, was 5"),
    ]
    assert not left
    _, left = told(WordRules(min_count=3), WordRules(min_count=3, max_final_vocab=4))
    assert [(entry[0], entry[2]) for entry in left] == [
        ("cat", "not among the 4 most frequent, of which the last occurs 4 times"),
        ("hat", "max_final_vocab is 4 now, was None"),
    ]


def test_compare_words__of_versions_that_do_not_tell_their_rules():
    known, new = (Vocabulary.from_words([word], [3]) for word in "ab")
    turnover = compare_words(known, new, WordRules(), WordRules(min_count=1))
    assert turnover.as_dict() == {"kept": 0, "entered": {"unknown": 1}, "left": {"unknown": 1}}
    assert [tuple(entry) for entry in turnover.left.entries()] == [
        ("a", 3, "unknown: the Params of a version are not known", None)
    ]


def test_rules__are_those_of_params():
    params = Params(min_count=7, max_final_vocab=50)
    assert WordRules.from_params(params.as_dict(), "x") == WordRules(min_count=7, max_final_vocab=50)
    assert WordRules.from_params({"window": 5}, "x") == WordRules()


@pytest.mark.parametrize("change", [{"min_count": "5"}, {"max_final_vocab": -1}, {"vocabulary": ["a"]}], ids=str)
def test_rules__of_another_type_are_refused(change):
    with pytest.raises(StoreError, match=r"v0001-a holds a WordRules with"):
        WordRules.from_params({"min_count": 5, **change}, "v0001-a")


def test_compare_words__of_many_words():
    n, step = 300_000, 100_000

    def numbered(first):
        words = np.char.mod("%07d", np.arange(first, first + n)).astype("S7")
        return Vocabulary(words.view(np.uint8), np.arange(n + 1) * 7, np.full(n, 4))

    rules = WordRules(min_count=4)
    turnover = compare_words(numbered(0), numbered(step), rules, rules)
    assert turnover.as_dict() == {"kept": n - step, "entered": {"min_count": step}, "left": {"min_count": step}}
