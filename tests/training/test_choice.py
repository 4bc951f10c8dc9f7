"""Strategy "auto": what is chosen, and that a run keeps it."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from daskw2v import Params, Resources, train
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import ParameterError
from daskw2v.models.versions.versions import Versions
from daskw2v.objectives.registry import OBJECTIVES, settle_params
from daskw2v.stages import Store
from daskw2v.training.averaging.work import advice
from daskw2v.training.estimates.seconds import find_constants, forecast
from daskw2v.training.preparation import choice
from daskw2v.training.preparation.before_reading import parse_rate
from daskw2v.training.preparation.choice import choose, list_candidates, make_candidate
from daskw2v.training.sizes import Text, Workers, guess_text
from daskw2v.training.strategies import make_work, with_usable_strategies
from tests.support.command_line import invoke

GB = 1 << 30
AUTO, PLAIN = Params(), Params(strategy="averaging", n_replicas=1)
SMALL = Params(vector_size=4, min_count=1, epochs=1, sample=0, window=2)
SMALL_TEXT = Text(
    words=10**6,
    types=40_000,
    subsampled=6 * 10**5,
    vocabulary=10**4,
    blocks=1,
    shards=1,
    shard_words=10**6,
    shard_types=40_000,
    entries=40_000,
)
LONG_TEXT = replace(SMALL_TEXT, words=2 * 10**10, subsampled=10**10, vocabulary=10**5, blocks=2000, shards=2000)
MANY_WORDS = replace(LONG_TEXT, vocabulary=30 * 10**6, types=40 * 10**6)


def workers_like(n=8, threads=4, limit=math.inf, network=10e9 / 8):
    return [Workers(n, threads, n * limit, limit=limit, network=network)]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_forecast__of_next_to_no_text_is_a_number(objective):
    for params in with_usable_strategies(Params(objective=objective), Resources()):
        for words, left, vocabulary, n in itertools.product((1, 60), (0, 1, 60), (8, 70_000), (1, 3)):
            text = Text(words, vocabulary, min(left, words), vocabulary, 1, 1, words, vocabulary, vocabulary)
            candidate = choice.make_candidate(settle_params(params), Resources(), text, workers_like(n=n, threads=2))
            assert candidate.forecast is None or 0 < candidate.forecast.total < 100


def chosen(text, where, params=AUTO, resources=Resources()):  # noqa: B008 (frozen)
    return choose(list_candidates(params, resources, text, where), where)


def test_choose__keeps_one_replica_where_there_is_one_worker():
    for text in (SMALL_TEXT, LONG_TEXT):
        assert chosen(text, workers_like(n=1, threads=1))[0].params == PLAIN


@pytest.mark.parametrize("objective", ["sgns", "sg_hs"])
def test_choose__takes_one_threads_bits_where_a_worker_has_several(objective):
    best, why = chosen(SMALL_TEXT, workers_like(n=1, threads=2), AUTO.replace(objective=objective))
    assert best.params == Params(objective=objective, n_partitions=8)
    assert "2 threads" in why


@pytest.mark.parametrize(
    ("params", "resources", "vocabulary"),
    [
        (AUTO.replace(objective="cbow_ns"), Resources(), 10**4),
        (AUTO.replace(n_replicas=1), Resources(hot_rows=20), 10**4),
        (AUTO, Resources(), 3000),
    ],
    ids=["has_no_other_kernel", "is_asked_for", "has_few_words"],
)
def test_choose__keeps_one_replica_of_several_threads_where_it(params, resources, vocabulary):
    text = replace(SMALL_TEXT, vocabulary=vocabulary)
    assert chosen(text, workers_like(n=1), params, resources)[0].params.strategy.name == "averaging"


def test_choose__keeps_one_replica_on_a_gpu():
    where = [Workers(1, 16, device_limit=80 * GB)]
    assert chosen(LONG_TEXT, where, resources=Resources(device="cuda"))[0].params == PLAIN


def test_choose__keeps_one_replica_where_text_is_short():
    best, why = chosen(SMALL_TEXT, workers_like(n=64))
    assert best.params == PLAIN
    assert "n_replicas=2" in why


def test_choose__divides_much_text_among_workers():
    best, why = chosen(LONG_TEXT, workers_like(n=8))
    assert best.params != PLAIN
    plain = list_candidates(AUTO, Resources(), LONG_TEXT, workers_like(n=8))[0]
    assert best.forecast.total < 0.8 * plain.forecast.total
    assert f"{plain}" in why or best.params.strategy.name == plain.params.strategy.name


def test_choose__cuts_tables_that_no_worker_holds():
    where = workers_like(n=4, limit=16 * GB)
    candidates = list_candidates(AUTO, Resources(), MANY_WORDS, where)
    assert not any(candidate.fits for candidate in candidates if candidate.params.strategy.name == "averaging")
    best, why = choose(candidates, where)
    assert (best.params.strategy.name, best.fits) == ("rotation", True)
    assert "does not fit into memory" in why


def test_choose__takes_the_only_strategy_of_an_objective():
    assert chosen(LONG_TEXT, workers_like(), AUTO.replace(objective="subwords"))[0].params.strategy.name == "columns"
    assert chosen(LONG_TEXT, workers_like(), AUTO.replace(objective="cbow_hs"))[0].params.strategy.name == "averaging"


def test_choose__leaves_options_unchanged():
    """Settings of a strategy choose it."""
    assert AUTO.replace(n_replicas=3) == PLAIN.replace(n_replicas=3)
    assert AUTO.replace(n_partitions=24) == Params(strategy="rotation", n_partitions=24)
    assert AUTO.replace(n_partitions=8) == Params(strategy="rotation", n_partitions=8)


def test_choose__has_no_forecast_of_kernels_that_were_not_measured():
    best, why = chosen(LONG_TEXT, workers_like(), AUTO.replace(negative_sharing="pair"))
    assert best.params == PLAIN.replace(negative_sharing="pair")
    assert "no forecast" in why


@pytest.mark.parametrize(
    ("params", "chosen_settings"),
    [
        (Params(strategy="averaging"), {"n_replicas": 8}),
        (Params(strategy="averaging", merge="mean"), {"n_replicas": 8}),
        (Params(strategy="rotation"), {"n_partitions": 64, "n_groups": 8, "copied_words": 1}),
        (Params(negative_rule="sns"), {"n_partitions": 64}),
    ],
    ids=["replicas", "and_a_rule", "partitions", "and_noise"],
)
def test_choose__decides_what_a_named_strategy_leaves_open(params, chosen_settings):
    """As "auto" would, but of this strategy alone, and with the settings that are given."""
    where = workers_like(n=8, threads=16)
    assert choice.is_open(params)
    tried = list_candidates(params, Resources(), LONG_TEXT, where)
    assert len({way.params for way in tried}) == len(tried) > 3
    best, why = choose(tried, where)
    changed = {name: value for name, value in best.params.flat().items() if value != params.flat()[name]}
    assert changed == chosen_settings
    assert "of training forecast" in why


def test_choose__has_nothing_to_decide_where_all_is_given():
    for params in (PLAIN, Params(n_partitions=24), Params(objective="context_matrix", strategy="columns")):
        assert not choice.is_open(params)
        assert [way.params for way in list_candidates(params, Resources(), LONG_TEXT, workers_like(n=8))] == [params]


def test_choose__gives_few_words_the_plain_number_of_partitions():
    few = replace(SMALL_TEXT, vocabulary=3000)
    (way,) = list_candidates(Params(strategy="rotation"), Resources(), few, workers_like())
    assert way.params == Params(strategy="rotation", n_partitions=8)


def test_choose__gives_each_worker_a_group_of_partitions_where_that_is_faster():
    where = workers_like(n=8, threads=16)
    best, _ = chosen(MANY_WORDS, where)
    settings = best.params.strategy.flat()
    assert (settings["n_groups"], settings["n_partitions"] % 8) == (8, 0)
    by_default = make_candidate(best.params.replace(n_groups=None), Resources(), MANY_WORDS, where)
    assert best.seconds < 0.8 * by_default.seconds


@pytest.mark.parametrize(("objective", "n"), [("cbow_ns", 8), ("cbow_hs", 1)])
def test_choose__takes_as_many_replicas_as_keep_quality_and_pay(objective, n):
    """Merges of more than eight replicas would take longer than CBOW saves on this text."""
    tried = list_candidates(AUTO.replace(objective=objective), Resources(), LONG_TEXT, workers_like(n=64))
    assert max(way.params.flat()["n_replicas"] for way in tried) == OBJECTIVES[objective].max_replicas
    best, _ = choose(tried, workers_like(n=64))
    assert best.params.flat()["n_replicas"] == n


def test_advice__is_given_on_more_replicas_than_were_measured():
    (message,) = advice(Params(objective="cbow_hs", n_replicas=2))
    assert message.startswith("n_replicas=2 may lose quality: 1 at most of cbow_hs")
    assert not list(advice(Params(objective="sgns", n_replicas=64)))


def test_forecast__of_an_objective_is_that_of_its_kernels():
    """CBOW touches rows of contexts and of targets once a window, skip-gram a target's row once a pair."""

    def seconds(**changes):
        return make_candidate(PLAIN.replace(**changes), Resources(), LONG_TEXT, workers_like(n=1)).forecast.total

    assert seconds(objective="cbow_ns") < seconds() < seconds(objective="sg_hs")
    more = [seconds(objective=name, negative=20) / seconds(objective=name) for name in ("cbow_ns", "sgns")]
    assert 1.3 < more[0] < more[1] < 3.5


def test_train__refuses_options_that_no_strategy_reads_together(tmp_path):
    settings = {"params": AUTO.replace(maxn=3), "resources": Resources(word_losses=True)}
    with pytest.raises(ParameterError, match="No strategy reads all settings") as refused:
        train("text.txt", work=tmp_path, **settings, listener=None)
    assert "maxn=3 changes nothing for strategy='rotation'" in str(refused.value)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{' '.join(f'w{(i * k) % 23}' for k in range(1, 12))}\n" for i in range(200)))
    return path


def pick(name):
    """Return a choice that takes the first candidate of a strategy."""
    return lambda candidates, _: (next(c for c in candidates if c.params.strategy.name == name), "it was picked")


def candidates_in_parts(*args):
    """Return one replica, and a rotation of so few words as a test has."""
    plain = choice.make_candidate(args[0].replace(strategy="averaging"), *args[1:])
    return [plain, plain._replace(params=plain.params.replace(strategy="rotation", n_partitions=2))]


def test_train__with_auto_is_the_run_of_what_is_chosen(client, text, tmp_path):
    """One worker: one replica, under the name that it always had."""
    plain = train(text, work=tmp_path, params=SMALL.replace(strategy="averaging"), client=client, listener=None)
    reports = []
    auto = train(text, work=tmp_path, params=SMALL, client=client, listener=reports.append)
    assert auto.url == plain.url
    assert any("strategy=averaging" in (p.message or "") and "one worker" in p.message for p in reports)


def test_train__keeps_what_was_chosen_first(client, text, tmp_path, monkeypatch):
    options = {"work": tmp_path, "params": SMALL, "client": client, "listener": None}
    monkeypatch.setattr(choice, "list_candidates", candidates_in_parts)
    monkeypatch.setattr(choice, "choose", pick("rotation"))
    first = train(text, **options)
    assert (first.metadata["params"]["strategy"], first.metadata["params"]["n_partitions"]) == ("rotation", 2)
    assert first.metadata["plan"]["why"] == "it was picked"
    monkeypatch.setattr(choice, "choose", pick("averaging"))  # as on another cluster
    assert train(text, **options).url == first.url
    versions = Versions(Store(str(tmp_path)))
    assert len(versions.all()) == 1
    (Store(str(tmp_path)) / "models" / versions.all()[0].name).remove()
    anew = train(text, **options)  # nothing of the first run is left
    assert anew.metadata["params"]["strategy"] == "averaging"


def test_train__finds_the_run_of_a_release_that_chose_no_settings(client, text, tmp_path, monkeypatch):
    """Then a named strategy had its plain settings, under the name that the run has today."""
    options = {"work": tmp_path, "client": client, "listener": None}
    before = train(text, params=SMALL.replace(n_partitions=8), **options)
    monkeypatch.setattr(choice, "list_candidates", lambda *_: pytest.fail("there is a choice"))
    again = train(text, params=SMALL.replace(strategy="rotation"), **options)
    assert again.url == before.url
    assert again.metadata["params"]["n_partitions"] == 8


def test_recorded_choice__is_of_what_params_leave_open():
    record = {"strategy": "rotation", "n_partitions": 64, "n_groups": 4}
    chosen = Params(strategy="rotation", n_partitions=64, n_groups=4)
    for params in (AUTO, Params(strategy="rotation")):
        assert choice.with_recorded_choice(record, params) == chosen
    for params in (PLAIN, Params(strategy="averaging"), Params(n_partitions=8)):
        assert choice.with_recorded_choice(record, params) == params
    assert choice.with_recorded_choice({"strategy": "averaging"}, AUTO) == PLAIN


def test_train__goes_on_with_what_was_chosen(client, text, tmp_path, monkeypatch):
    """Killed after the first pass, from whose checkpoint another cluster goes on."""
    monkeypatch.setattr(choice, "list_candidates", candidates_in_parts)
    monkeypatch.setattr(choice, "choose", pick("rotation"))
    options = {"work": tmp_path, "params": SMALL, "client": client}
    resources = Resources(checkpoint_seconds=0, threads=1)

    def stop(progress):
        if progress.stage == "train" and 0 < progress.done < progress.total and (tmp_path / "runs").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(text, **options, resources=resources, listener=stop)
    monkeypatch.setattr(choice, "choose", pick("averaging"))
    assert train(text, **options, resources=resources, listener=None).metadata["params"]["strategy"] == "rotation"


def test_train__chooses_anew_where_the_record_is_damaged(client, text, tmp_path, monkeypatch):
    options = {"work": tmp_path, "params": SMALL, "client": client, "listener": None}
    first = train(text, **options)
    (record,) = (tmp_path / "choices").glob("*/*")
    record.write_bytes(record.read_bytes()[:-9])
    assert train(text, **options).url == first.url


def test_estimate__has_the_seconds_of_the_formulas(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one two three\n" * 100_000)
    given = ["--workers", "8", "--threads", "16", "--network", "10Gbps", "--words", "20000", "--types", "30000"]
    shown = invoke("estimate", str(path), "--strategy", "auto", *given, "--n-partitions", "16", env={"COLUMNS": "240"})
    assert shown.exit_code == 0, shown.output
    params = Params(strategy="rotation", n_partitions=16)
    text = guess_text(find_sources([str(path)], None, {}, 300), params, Resources(), 30_000, 20_000)
    workers = Workers(8, 16, network=parse_rate("10Gbps"))
    wanted = forecast(make_work(params, Resources(), text, workers), find_constants(params, "cpu"))
    (row,) = [line for line in shown.output.splitlines() if "n_partitions=16" in line and line.startswith("*")]
    terms = ("text", "train", "copies", "handling", "travel", "waiting", "tasks")
    assert all(f"{wanted.seconds[term]:,.1f}" in row.split() for term in terms)
    assert f"{wanted.total:,.1f}" in row.split()
    assert f"{wanted.total * 8 / 3600:.3g}" in row.split()


def test_forecast__has_a_replica_a_worker():
    candidates = list_candidates(AUTO, Resources(), LONG_TEXT, workers_like(n=4))
    params = PLAIN.replace(n_replicas=4)
    (four,) = [candidate for candidate in candidates if candidate.params == params]
    workers = replace(workers_like(n=4)[0], cores=16)
    wanted = forecast(make_work(params, Resources(), LONG_TEXT, workers), find_constants(params, "cpu"))
    assert four.forecast.seconds == pytest.approx(wanted.seconds)


@pytest.mark.parametrize(("text", "rate"), [("10Gbps", 1.25e9), ("100 Mbit/s", 12.5e6), ("2.5gbps", 312.5e6)])
def test_parse_rate__reads_bits_a_second(text, rate):
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "10", "0Gbps", "-1Gbps", "10 GB/s", "nanGbps"])
def test_parse_rate__refuses_other_texts(text):
    with pytest.raises(ParameterError, match="network="):
        parse_rate(text)


@pytest.mark.parametrize(
    ("params", "faster"),
    [
        (Params(strategy="rotation"), {"n_partitions"}),
        (Params(strategy="rotation", n_groups=4), {"n_partitions"}),
        (Params(strategy="rotation", n_partitions=24, n_groups=3), set()),
        (Params(strategy="averaging"), {"n_replicas"}),
        (Params(objective="context_matrix", strategy="columns"), set()),
    ],
    ids=lambda value: value.strategy.name if isinstance(value, Params) else "",
)
def test_tell_faster__names_the_setting_that_halves_the_seconds(params, faster, monkeypatch):
    """Of 64 machines, most are idle by the default; with the setting that it names, there is nothing more to say."""
    text, kinds, messages = replace(MANY_WORDS, vocabulary=10**5), workers_like(n=64, threads=16), []
    monkeypatch.setattr(choice, "find_machines", lambda client, resources: kinds)
    run = SimpleNamespace(params=settle_params(params), resources=Resources(), sizes=text)
    choice.tell_faster(run, None, lambda progress: messages.append(progress.message))
    named, *others = choice.find_faster(run.params, run.resources, run.sizes, kinds)
    changed = {f.name for way in others for f, value in way.params.strategy.items() if params.flat()[f.name] != value}
    assert changed == faster
    assert len(messages) == len(faster) == len(others)
    for way, message in zip(others, messages, strict=True):
        assert way.seconds < named.seconds / 2
        assert message.endswith("instead")
        assert str(way) in message
        assert choice.find_faster(way.params, run.resources, run.sizes, kinds)[1:] == []


def test_find_faster__says_nothing_of_little_text():
    for params in (Params(strategy="rotation"), Params(strategy="averaging")):
        assert len(choice.find_faster(settle_params(params), Resources(), SMALL_TEXT, workers_like(n=64))) == 1


@pytest.mark.parametrize("machines", [1, 8, 64])
def test_choose__is_near_the_fastest_of_all_numbers_of_partitions_and_replicas(machines):
    """From 10 MB to 10 TB, within what a plainer run is worth; one worker takes what gives the bits of one thread."""
    kinds, auto = workers_like(n=machines, threads=4), settle_params(AUTO)
    settings = [
        *({"strategy": "averaging", "n_replicas": n} for n in (1, 3, 8, 24, 64) if n <= machines),
        *({"strategy": "rotation", "n_partitions": 2**i} for i in range(3, 10)),
        *({"strategy": "rotation", "n_partitions": 2**i, "n_groups": machines} for i in range(8, 12)),
    ]
    for words in (2 * 10**6, 10**9, 10**12):
        text = replace(MANY_WORDS, words=words, subsampled=words // 2, vocabulary=10**6)
        ways = list_candidates(auto, Resources(), text, kinds)
        known = {way.params: way for way in ways}
        others = (auto.replace(**values) for values in settings)
        compared = [known.get(other) or make_candidate(other, Resources(), text, kinds) for other in others]
        best = min(way.seconds for way in compared if machines > 1 or way.params.strategy.name == "rotation")
        assert choose(ways, kinds)[0].seconds < 1.26 * best
