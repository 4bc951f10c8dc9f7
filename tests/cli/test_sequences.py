"""`daskw2v items` and `daskw2v walks`: what is derived from other data is trained on as text is."""

import re
from dataclasses import fields

import pytest

from daskw2v import EdgeList, Events, Graph, Params, Resources, Sessions, Walks
from daskw2v.cli import training
from daskw2v.cli.printing import Output
from tests.support.command_line import invoke


@pytest.fixture
def calls(monkeypatch):
    """Replace what trains and prints; return its arguments."""
    seen = []

    def train_on(*given):
        seen.append(given)
        return Output({}, lambda: None)

    monkeypatch.setattr(training, "train_on", train_on)
    return seen


def run(*args, **env):
    return invoke(*args, env=env)


def test_items__defaults_are_those_of_events(calls):
    assert run("items", "a.csv", "b.csv", "--work", "w", "--report", "r.html").exit_code == 0
    assert calls == [(Events(["a.csv", "b.csv"], Sessions()), "w", Events.params, Resources(), "r.html")]
    assert (Events.params.window, Events.params.shrink_windows) == (100, False)


def test_items__prefer_the_command_line_then_the_environment_then_the_file(calls, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text('window = 7\nepochs = 2\n[events]\nuser = "a"\nitem = "b"\ntime = "c"\ngap = 600\n')
    given = ("--user", "x", "--window", "9", "--config", config)
    assert run("items", "a.csv", "--work", "w", *given, DASKW2V_USER="y", DASKW2V_ITEM="z").exit_code == 0
    ((events, _, params, *_),) = calls
    assert events.sessions == Sessions(user="x", item="z", time="c", gap="600")
    assert params == Events.params.replace(window=9, epochs=2)


def test_items__draw_from_the_markets_of_a_column(calls):
    assert run("items", "a.csv", "--work", "w", "--market", "city", "--market-negative", "5").exit_code == 0
    ((events, _, params, *_),) = calls
    assert (events.sessions, params) == (Sessions(market="city"), Events.params.replace(market_negative=5))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("events = 3", "sets events, which is a table"),
        ("[events]\nusers = 'a'", "sets users, which is not one of its fields"),
        ("[events]\nleast = 0", "least=0 is not an integer >= 1"),
        ("[events]\ngap = 0", "gap=0 is not a number > 0, or a duration"),
        ("[policy]\nkeep = 3", "sets policy, which is not a parameter"),
    ],
)
def test_items__refuse_what_is_wrong_in_the_file(calls, tmp_path, text, problem):
    config = tmp_path / "c.toml"
    config.write_text(text)
    result = run("items", "a.csv", "--work", "w", "--config", config)
    assert (result.exit_code, calls) == (2, [])
    assert problem in result.stderr


def test_items__show_every_field_of_sessions_in_their_help(calls):
    text = " ".join(run("items", "--help").output.split())
    assert "Events: --user TEXT Column of who was there. [default: user]" in text
    assert all(f"--{f.name.replace('_', '-')}" in text for f in fields(Sessions))
    assert "[default: 100]" in text
    assert "[default: no-shrink-windows]" in text


def test_items__have_one_meaning_for_each_option():
    names = [f.name for cls in (Sessions, Params, Resources) for f in fields(cls)]
    assert len({*names}) == len(names)


def test_walks__take_options_of_edges_walks_and_training(calls, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text('epochs = 2\n[graph]\nsource = "a"\ntarget = "b"\n[walks]\np = 0.5\nlength = 9\n')
    given = ("--weight", "x", "--directed", "--seed", "7", "--q", "2", "--length", "8", "--partitions", "4")
    assert run("walks", "a.csv", "--work", "w", *given, "--config", config).exit_code == 0
    edges = EdgeList(source="a", target="b", weight="x", directed=True)
    graph = Graph(["a.csv"], edges, Walks(p=0.5, q=2, length=8, seed=7, partitions=4))
    assert calls == [(graph, "w", Graph.params.replace(epochs=2, seed=7), Resources(), None)]


@pytest.mark.parametrize("place", ["options", "environment", "file"])
def test_walks__take_types_and_a_metapath(calls, tmp_path, place):
    config, given, env = tmp_path / "c.toml", [], {}
    config.write_text("")
    if place == "options":
        given = ["--source-type", "s", "--target-type", "t", "--metapath", "a", "b", "a"]
    elif place == "environment":
        env = {"DASKW2V_SOURCE_TYPE": "s", "DASKW2V_TARGET_TYPE": "t", "DASKW2V_METAPATH": "a b a"}
    else:
        config.write_text('[graph]\nsource_type = "s"\ntarget_type = "t"\n[walks]\nmetapath = ["a", "b", "a"]\n')
    assert run("walks", "a.csv", "--work", "w", *given, "--config", config, **env).exit_code == 0
    edges, walks = EdgeList(source_type="s", target_type="t"), Walks(metapath=("a", "b", "a"))
    assert calls == [(Graph(["a.csv"], edges, walks), "w", Graph.params, Resources(), None)]


def test_walks__refuse_a_metapath_without_types(calls):
    result = run("walks", "a.csv", "--work", "w", "--metapath", "a", "b", "a")
    assert (result.exit_code, calls) == (2, [])
    assert "metapath=('a', 'b', 'a'), but the edges have no types." in result.stderr


def test_walks__have_defaults_of_their_own(calls):
    assert run("walks", "a.txt", "--work", "w").exit_code == 0
    assert calls == [(Graph(["a.txt"]), "w", Graph.params, Resources(), None)]
    assert (Graph.params.min_count, Graph.params.sample) == (1, 0)


def test_walks__show_every_field_once_in_their_help(calls):
    text = " ".join(run("walks", "--help").output.split())
    assert "Graph: --source TEXT Column of the node that an edge leaves. [default: source]" in text
    for f in (*fields(EdgeList), *fields(Walks)):
        name = f.name.replace("_", "-")
        assert len(re.findall(rf" --{name} (/ --no-{name}|TEXT|INTEGER|FLOAT|TYPE\.\.\.) ", text)) == 1
    assert "[default: 128]" in text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[graph]\nsources = 'a'", "sets sources, which is not one of its fields"),
        ("[walks]\npartitions = 3", "partitions=3 is not a power of two in 1..65536 or None"),
        ("[walks]\nmetapath = ['a', 'b']", "is not a list of two or more types, the last of which is the first"),
        ("[events]\ngap = 3", "sets events, which is not a parameter"),
    ],
)
def test_walks__refuse_what_is_wrong_in_the_file(calls, tmp_path, text, problem):
    config = tmp_path / "c.toml"
    config.write_text(text)
    result = run("walks", "a.csv", "--work", "w", "--config", config)
    assert (result.exit_code, calls) == (2, [])
    assert problem in result.stderr
