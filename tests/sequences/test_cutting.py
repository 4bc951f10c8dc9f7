"""What a session is made of: how often events count, and where its goal is repeated."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v import Params, Resources, Sessions
from daskw2v.errors import InputError, ParameterError
from daskw2v.progress import silent
from daskw2v.sequences.cutting import Cut, cut_sessions, split_ended
from daskw2v.sequences.sources import Events
from daskw2v.stages import Store

pd = pytest.importorskip("pandas")


def frame(**columns):
    return pd.DataFrame(columns)


def lists(events, sessions, cut):
    items, edges, _ = cut_sessions(events, sessions, cut)
    return [items.to_pylist()[a:b] for a, b in pairwise(edges)]


TIMES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200)), min_size=1, max_size=60)


@given(TIMES, st.integers(0, 200), st.integers(1, 30))
def test_split_ended__hands_on_what_cuts_the_same_later(events, midnight, gap):
    """Sessions of two parts, the second with what the first handed on, are those of both together."""
    users, times = zip(*events, strict=True)
    events = frame(user=users, time=times, item=range(len(users)))
    sessions, first = Sessions(gap=gap, per="file", least=1), events[events["time"] < midnight]
    ended, carried = split_ended(first, sessions, Cut(gap, first["time"].max()))
    rest = pd.concat([carried, events[events["time"] >= midnight]])
    actual = [lists(some, sessions, Cut(gap)) for some in (ended, rest)]
    assert sorted(actual[0] + actual[1]) == sorted(lists(events, sessions, Cut(gap)))


def test_weights__are_numbers_of_times():
    events = frame(user=[1] * 4, time=[0, 1, 2, 3], item=[5, 6, 7, 8], weight=[1.0, 3.0, 0.0, 2.0])
    assert lists(events, Sessions(event_weight="weight"), Cut(None)) == [[5, 6, 6, 6, 8, 8]]
    assert lists(events, Sessions(event_weight="weight", least=4), Cut(None)) == [], "copies are no events"


def test_weights__between_numbers_are_drawn_by_content():
    n = 20_000
    events = frame(user=[1] * n, time=range(n), item=range(n), weight=[1.25] * n)
    (drawn,) = lists(events, Sessions(event_weight="weight"), Cut(None))
    assert len(drawn) / n == pytest.approx(1.25, abs=0.02)
    (some,) = lists(events[5000:6000].sample(frac=1, random_state=1), Sessions(event_weight="weight"), Cut(None))
    assert some == [item for item in drawn if 5000 <= item < 6000], "whatever is around them"


def test_half_life__halves_what_is_older():
    n = 20_000
    events = frame(user=[1] * 2 * n, time=[0] * n + [1000] * n, item=range(2 * n))
    (drawn,) = lists(events, Sessions(half_life="500"), Cut(None, latest=1000, half_life=500))
    assert sum(item < n for item in drawn) / n == pytest.approx(0.25, abs=0.02)
    assert sum(item >= n for item in drawn) == n


@pytest.mark.parametrize("window", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [*range(2, 34)])
@pytest.mark.parametrize("at", [0, -1])
def test_goal__is_in_the_window_of_each_item(window, n, at):
    items = list(range(n))
    goal = [item == items[at] for item in items]
    (actual,) = lists(
        frame(user=[1] * n, time=items, item=items, goal=goal), Sessions(goal="goal"), Cut(None, window=window)
    )
    goals = [i for i, item in enumerate(actual) if item == items[at]]
    assert [item for item in actual if item != items[at]] == [item for item in items if item != items[at]]
    assert all(min(abs(i - place) for place in goals) <= window for i in range(len(actual)))
    added = len(actual) - n
    assert added <= -(-n // (2 * window)) + 1
    assert (added > 0) == (n > window + 1)


def test_goal__is_the_last_of_its_session_alone():
    events = frame(
        user=[1] * 12, time=[*range(6), *range(50, 56)], item=range(12), goal=[i in (1, 2) for i in range(12)]
    )
    actual = lists(events, Sessions(goal="goal", gap=9), Cut(9, window=2))
    assert actual == [[0, 1, 2, 2, 3, 4, 5, 2], [6, 7, 8, 9, 10, 11]]


def test_goal__that_drop_repeats_drops_is_still_one():
    events = frame(user=[1] * 5, time=range(5), item=[3, 4, 5, 6, 6], goal=[False] * 4 + [True])
    actual = lists(events, Sessions(goal="goal", drop_repeats=True), Cut(None, window=1))
    assert actual == [[3, 6, 4, 5, 6, 6]]


def test_events__have_weights_and_goals_in_columns(client, tmp_path):
    events = frame(
        user=[1] * 4, time=[0, 1, 2, 3], item=[5, 6, 7, 8], times=[2, 1, 1, 0.0], bought=[False, True, False, False]
    )
    events.to_parquet(tmp_path / "a.parquet")
    source = Events(str(tmp_path / "a.parquet"), Sessions(event_weight="times", goal="bought"))
    params = Events.params.replace(window=1, column="items")
    (file,) = source.write(Store(str(tmp_path / "work")), params, Resources(), lambda: client, silent)
    assert pd.read_parquet(file.url)["items"].tolist()[0].tolist() == [5, 6, 5, 6, 6, 7]


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        (
            {"weight": [1.0, -0.5]},
            {"event_weight": "weight"},
            "'weight' of an event of .*a.parquet is -0.5, which",
        ),
        (
            {"weight": [1.0, 1e12]},
            {"event_weight": "weight"},
            r"'weight' of an event of .* is 1e\+12, which",
        ),
        (
            {"weight": [math.inf, 1.0]},
            {"event_weight": "weight"},
            "'weight' of an event of .* is inf, which",
        ),
        ({"weight": ["a", "b"]}, {"event_weight": "weight"}, "column 'weight' of weights in .* is of type"),
        ({"goal": ["yes", "no"]}, {"goal": "goal"}, "column 'goal' of goals in .* is of type"),
        ({"weight": [1.0, None]}, {"event_weight": "weight"}, "1 events lack user, item, time or weight"),
        ({}, {"event_weight": "weight"}, "no single column 'weight'. Its columns are: user, time, item"),
    ],
)
def test_weights_and_goals__that_are_none_are_refused(client, tmp_path, columns, options, problem):
    frame(user=[1, 1], time=[0, 1], item=[5, 6], **columns).to_parquet(tmp_path / "a.parquet")
    source = Events(str(tmp_path / "a.parquet"), Sessions(**options))
    with pytest.raises(InputError, match=problem):
        source.write(Store(str(tmp_path / "work")), Events.params, Resources(), lambda: client, silent)


def test_sessions__do_not_depend_on_the_order_of_events():
    events = frame(user=[1] * 3, time=[0, 0, 1], item=[5, 5, 6], weight=[1.0, 3.0, 1.0])
    sessions = Sessions(event_weight="weight", drop_repeats=True)
    orders = ([0, 1, 2], [1, 0, 2], [2, 1, 0])
    assert len({str(lists(events.iloc[order], sessions, Cut(None))) for order in orders}) == 1


def test_settings__that_do_not_go_together_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="half_life='30 days' would change all sessions with each new file"):
        Sessions(half_life="30 days", per="file")
    with pytest.raises(ParameterError, match=r"goal='bought' with shrink_windows=True"):
        Events("a.parquet", Sessions(goal="bought")).write(Store(str(tmp_path)), Params(), Resources(), None, silent)


@pytest.mark.parametrize("name", ["gap", "half_life"])
@pytest.mark.parametrize("value", [0, -1, True, "", [5]])
def test_durations__are_numbers_or_text(name, value):
    with pytest.raises(ParameterError, match=rf"{name}=.* is not a number > 0, or a duration"):
        Sessions(**{name: value})
    assert Sessions(gap=600) == Sessions(gap="600")
