"""Retraining: only new text is read, a version that passes is served, and a run that was cut short is called again."""

import importlib
import shutil
import threading
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from nights_of_text import LOOSE, ONE, PARAMS

from daskw2v import Averaging, Gates, Notices, Params, Policy, Resources, Vectors, Versions, promote, retrain, train
from daskw2v.errors import InputError, ParameterError, TrainingError
from daskw2v.models.index.vectors import IndexedVectors
from daskw2v.retraining.outcome import Outcome
from daskw2v.store.lease import hold
from daskw2v.store.storage import Store
from daskw2v.training.preparation import choice
from tests.support.days import write_day

gates_module = importlib.import_module("daskw2v.retraining.gates")
retrain_module = importlib.import_module("daskw2v.retraining.retrain")  # the package has the function by that name

STRICT = Gates(max_long=0.0, times_median=1.01)  # nothing passes


def nights_in(place, client):
    """Return a folder, and what runs on the text in it."""
    folder = place / "text"

    def run(**changes):
        given = {"params": PARAMS, "resources": ONE, "gates": LOOSE, **changes}
        return retrain(str(folder / "*.txt"), work=place / "work", client=client, **given)

    return SimpleNamespace(
        folder=folder, work=place / "work", run=run, write=lambda day, **size: write_day(folder, day, **size)
    )


@pytest.fixture
def nights(tmp_path, client):
    """A folder with the text of a day, and what runs on it."""
    (tmp_path / "text").mkdir()
    write_day(tmp_path / "text", 0)
    return nights_in(tmp_path, client)


@pytest.fixture(scope="module")
def first_night(tmp_path_factory, client):
    """Where a first night ran, its summary, and a copy of all that it left."""
    place, copy = (tmp_path_factory.mktemp(name) for name in ("night", "copy"))
    (place / "text").mkdir()
    write_day(place / "text", 0)
    summary = nights_in(place, client).run()
    shutil.copytree(place, copy, dirs_exist_ok=True)
    return place, summary, copy


@pytest.fixture
def later(first_night, client):
    """As `nights`, after a first night, whose summary is `first`."""
    place, summary, copy = first_night
    shutil.rmtree(place)
    shutil.copytree(copy, place)
    return SimpleNamespace(first=summary, **vars(nights_in(place, client)))


def manifest(nights, version):
    return Versions.open(nights.work).find(version).manifest


def test_first_run__trains_on_all_text(nights):
    summary = nights.run()
    assert (summary.outcome, summary.served) == (Outcome.PUBLISHED, summary.version)
    assert summary.figures["tokens_trained"] == summary.figures["tokens"] == 150 * 11
    assert summary.alignment is None
    assert len(Vectors.open(nights.work)) == summary.figures["words"] == 61


def test_first_run__has_the_bits_of_train(later, tmp_path, client):
    trained = train(later.folder / "0.txt", work=tmp_path / "other", params=PARAMS, resources=ONE, client=client)
    np.testing.assert_array_equal(Vectors.open(later.work).vectors, trained.vectors)


def test_same_text__changes_nothing_and_needs_no_cluster(later, monkeypatch):
    first = later.first
    monkeypatch.setattr(retrain_module, "open_cluster", lambda *_: pytest.fail("a cluster was asked for"))
    again = later.run()
    assert (again.outcome, again.served, again.version) == (Outcome.NOTHING_NEW, first.version, None)


@pytest.mark.slow
def test_model_of_train__is_gone_on_from(nights, client):
    trained = train(nights.folder / "0.txt", work=nights.work, params=PARAMS, resources=ONE, client=client)
    assert nights.run().outcome is Outcome.NOTHING_NEW
    nights.write(1)
    assert manifest(nights, nights.run().version)["retraining"]["parent"] == trained.url.rsplit("/", 1)[1]


def test_new_file__is_read_alone_and_trained_on_from_the_version_before(later):
    parent = later.first.version
    later.write(1, sentences=40)
    read = []
    summary = later.run(listener=lambda p: read.append(p.total) if p.stage == "encode" and p.unit == "bytes" else None)
    assert read[-1] == sum((later.folder / f"{day}.txt").stat().st_size for day in (0, 1))
    actual = manifest(later, summary.version)
    assert (actual["retraining"]["parent"], actual["params"]["base_model"]) == (parent, parent)
    assert summary.figures["tokens_trained"] == 40 * 11 + 83  # 5 % of the old text
    assert "day1" in Vectors.open(later.work)
    assert summary.alignment.shared == 61


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("text", "tokens"), [("new", 440), ("sample", 440 + 825), pytest.param("all", 440 + 1650, marks=pytest.mark.slow)]
)
def test_policy__says_what_is_trained_on(later, text, tokens):
    later.write(1, sentences=40)
    summary = later.run(policy=Policy(text=text, old_share=0.5, alpha=0.01, epochs=3))
    assert summary.figures["tokens_trained"] == tokens
    params = manifest(later, summary.version)["params"]
    assert (params["alpha"], params["epochs"]) == (0.01, 3)


@pytest.mark.slow
def test_sample__is_another_one_each_night(later):
    identities = set()
    for day in (1, 2):
        later.write(day, sentences=10)
        policy = Policy(old_share=0.1)
        version = later.run(policy=policy).version
        identities.add(manifest(later, version)["corpus"]["identity"])
    assert len(identities) == 2


@pytest.mark.slow
def test_unaligned__versions_are_as_they_were_trained(later):
    later.write(1)
    summary = later.run(policy=Policy(align=False))
    assert summary.alignment is None
    assert "rotation" not in Store(str(later.work / "models" / summary.version)).children()


@pytest.mark.slow
def test_changed_file__is_read_again_and_its_words_leave(nights):
    nights.write(1)
    nights.run()
    nights.write(2)
    (nights.folder / "2.txt").rename(nights.folder / "1.txt")
    summary = nights.run()
    assert (summary.figures["files_changed"], summary.figures["files_new"]) == (1, 0)
    vectors = Vectors.open(nights.work)
    assert "day2" in vectors
    assert "day1" not in vectors


@pytest.mark.slow
def test_file_that_is_gone__alone_makes_no_version_of_new_text(nights):
    nights.write(1)
    served = nights.run().version
    (nights.folder / "1.txt").unlink()
    summary = nights.run(policy=Policy(text="new"))
    assert (summary.outcome, summary.served) == (Outcome.NOTHING_NEW, served)
    assert "No file is new; 1 file removed" in summary.message
    assert "day1" not in Vectors.open(nights.run(policy=Policy(text="all")).work)


def test_bad_day__is_stopped_and_the_version_before_is_served(later):
    served = later.first.version
    before = Vectors.open(later.work).vectors
    rng = np.random.default_rng(0)
    letters = rng.choice(list("abcdefgh"), (400, 4))
    (later.folder / "1.txt").write_text(" ".join("".join(word) for word in letters) + " w1" * 100)
    stopped = later.run(gates=Gates(min_kept=None, min_stability=None))
    assert (stopped.outcome, stopped.served, stopped.version) == (Outcome.STOPPED, served, None)
    assert [gate.name for gate in stopped.verdict.failed] == ["max_unknown", "max_shift"]
    assert stopped.verdict.failed[0].value == 400 / 500
    np.testing.assert_array_equal(Vectors.open(later.work).vectors, before)
    (later.folder / "1.txt").unlink()
    assert later.run().outcome is Outcome.NOTHING_NEW


@pytest.mark.slow
@pytest.mark.parametrize("block_size", ["64 MiB", pytest.param("400 B", marks=pytest.mark.slow)])
def test_unknown_words__are_counted_in_new_text_only(nights, block_size):
    given = {"resources": ONE.replace(block_size=block_size)}
    nights.run(**given)
    nights.write(1)  # sentences of ten words that are known, and one that is new
    gates = {gate.name: gate.value for gate in nights.run(**given).verdict.gates}
    assert gates["max_unknown"] == pytest.approx(1 / 11)
    counts = [Counter((nights.folder / f"{day}.txt").read_text().split()) for day in (0, 1)]
    every = {word for count in counts for word in count}
    shift = sum(abs(counts[0][word] - counts[1][word]) for word in every) / (2 * counts[0].total())
    assert gates["max_shift"] == pytest.approx(shift)


def test_spam__of_known_words_is_stopped_by_their_frequencies(later):
    (later.folder / "1.txt").write_text("w1 w2 w3\n" * 500)
    stopped = later.run()
    assert [gate.name for gate in stopped.verdict.failed] == ["max_shift"]


def test_stopped_run__names_the_files_that_are_new(later):
    later.write(1)
    message = later.run(gates=STRICT).message
    assert f"New since the served version: {later.folder / '1.txt'}." in message


@pytest.mark.slow
def test_scores__of_the_served_version_are_those_that_it_was_published_with(nights, monkeypatch):
    sets = nights.folder.parent / "pairs.tsv"
    sets.write_text("".join(f"w{a}\tw{b}\t{10 - abs(a - b) % 11}\n" for a in range(9) for b in (11, 30)))
    given = {"resources": ONE.replace(eval_similarity=[str(sets)]), "gates": LOOSE.replace(max_drop=1.0)}
    nights.run(**given)
    asked, whole = [], gates_module.evaluate
    monkeypatch.setattr(gates_module, "evaluate", lambda vectors, **k: asked.append(vectors.url) or whole(vectors, **k))
    nights.write(1)
    report = manifest(nights, nights.run(**given).version)["retraining"]
    assert [url.rsplit("/", 2)[1] for url in asked] == ["candidates"]
    assert report["scores"]["similarity/pairs"]["items"] == 18
    sets.write_text(sets.read_text() + "w1\tw50\t1\n")  # another set: all is asked anew
    nights.write(2)
    nights.run(**given)
    assert [url.rsplit("/", 2)[1] for url in asked[1:]] == ["candidates", "models"]


def test_stopped_candidate__passes_other_gates_without_being_trained_again(later, monkeypatch):
    later.write(1)
    assert later.run(gates=STRICT).outcome is Outcome.STOPPED
    monkeypatch.setattr(retrain_module, "write_version", lambda folder, *_: folder.open_group())
    assert later.run(gates=STRICT).outcome is Outcome.STOPPED
    assert later.run().outcome is Outcome.PUBLISHED


def test_other_params__are_trained_from_scratch_on_all_text(later):
    summary = later.run(params=PARAMS.replace(window=3))
    assert summary.figures["tokens_trained"] == summary.figures["tokens"]
    assert manifest(later, summary.version)["params"]["base_model"] is None
    assert summary.alignment is not None


@pytest.mark.slow
def test_full__is_trained_from_scratch_once(later):
    later.write(1)
    later.run()
    summary = later.run(full=True)
    assert manifest(later, summary.version)["params"]["base_model"] is None
    assert summary.alignment.after > summary.alignment.before
    assert later.run(full=True).outcome is Outcome.NOTHING_NEW


@pytest.mark.slow
def test_rolled_back_version__is_not_published_again(later):
    first = later.first.version
    later.write(1)
    second = later.run().version
    Versions.open(later.work).rollback()
    summary = later.run()
    assert (summary.outcome, summary.served) == (Outcome.NOTHING_NEW, first)
    assert second in summary.message
    later.write(2)
    assert manifest(later, later.run().version)["retraining"]["parent"] == first


def during(monkeypatch, action):
    """Let `action` happen while a night trains."""
    write = retrain_module.write_version

    def write_version(*args):
        action()
        write(*args)

    monkeypatch.setattr(retrain_module, "write_version", write_version)


def test_rollback__during_a_night_is_not_undone_by_that_night(later, monkeypatch):
    first, versions = later.first.version, Versions.open(later.work)
    later.write(1)
    second = later.run().version
    later.write(2)
    during(monkeypatch, versions.rollback)
    summary = later.run()
    assert (summary.outcome, summary.served) == (Outcome.SUPERSEDED, first)
    assert f"instead of {second}, but {first} is served" in summary.message
    assert not versions.find(summary.version).served
    monkeypatch.undo()
    after = later.run()
    assert (after.outcome, manifest(later, after.version)["retraining"]["parent"]) == (Outcome.PUBLISHED, first)


def test_stage__finishes_a_version_that_is_not_served_and_a_later_night_serves_it(later, monkeypatch):
    later.write(1)
    staged = later.run(resources=ONE.replace(stage=True))
    assert (staged.outcome, staged.served) == (Outcome.STAGED, later.first.version)
    assert "day1" in Vectors.open(later.work, version=staged.version)
    monkeypatch.setattr(retrain_module, "write_version", lambda *_: pytest.fail("it is trained again"))
    summary = later.run()
    assert (summary.outcome, summary.version, summary.served) == (Outcome.PUBLISHED, staged.version, staged.version)


def test_frozen__versions_are_staged(later):
    versions = Versions.open(later.work)
    versions.freeze("audit")
    later.write(1)
    summary = later.run()
    assert (summary.outcome, summary.served) == (Outcome.STAGED, later.first.version)
    assert "frozen (audit)" in summary.message
    versions.unfreeze()
    assert later.run().version == summary.version


def test_promote__serves_a_staged_version_that_passes_the_gates(later):
    first = later.first.version
    later.write(1)
    staged = later.run(resources=ONE.replace(stage=True)).version
    verdict = promote(later.work, staged, gates=STRICT, resources=ONE)
    assert [gate.name for gate in verdict.failed]
    assert Versions.open(later.work).name_of() == first
    assert promote(later.work, staged, gates=LOOSE, resources=ONE, reason="checked").passed
    last = Versions.open(later.work).log()[-1]
    assert (last.name, last.change.reason) == (staged, "checked")


def test_promoted_version__that_is_rolled_back_is_not_served_again(later):
    later.write(1)
    staged = later.run(resources=ONE.replace(stage=True)).version
    promote(later.work, staged, gates=LOOSE, resources=ONE)
    Versions.open(later.work).rollback()
    summary = later.run()
    assert (summary.outcome, summary.served) == (Outcome.NOTHING_NEW, later.first.version)


def test_failure__after_a_version_was_served_is_said_and_the_outcome_is_that_it_is_served(later, monkeypatch):
    later.write(1)
    monkeypatch.setattr(retrain_module, "clear_unused", raising(OSError("the disk is gone")))
    summary = later.run()
    assert (summary.outcome, summary.served) == (Outcome.PUBLISHED, summary.version)
    assert summary.message == f"{summary.version} is served. After that: OSError"
    monkeypatch.undo()
    again = later.run()
    assert (again.outcome, again.version) == (Outcome.PUBLISHED, summary.version)
    assert later.run().outcome is Outcome.NOTHING_NEW


def raising(error):
    def function(*_):
        raise error

    return function


@pytest.mark.slow
def test_words__keep_their_ids_whatever_is_rolled_back(later):
    first = Vectors.open(later.work)
    later.write(1)
    later.run()
    second = Vectors.open(later.work)
    Versions.open(later.work).rollback()
    (later.folder / "1.txt").unlink()
    later.write(2)
    later.run()
    third = Vectors.open(later.work)
    ids = [dict(zip(v.vocabulary.words, v.stable_ids.tolist(), strict=True)) for v in (first, second, third)]
    assert all(ids[0][word] == ids[1][word] == ids[2][word] for word in ids[0])
    assert ids[1]["day1"] == 61
    assert ids[2]["day2"] == 62  # 61 was given already


def test_manifest__tells_which_words_came_and_went(later):
    later.write(1)
    assert manifest(later, later.run().version)["retraining"]["vocabulary"] == {
        "kept": 61,
        "entered": {"min_count": 1},
        "left": {},
    }


def test_second_run__is_busy(later):
    later.write(1)
    held, done = threading.Event(), threading.Event()

    def work():
        with hold(Store(str(later.work)), "retrain", "it"):
            held.set()
            done.wait()

    other = threading.Thread(target=work)
    other.start()
    held.wait()
    try:
        summary = later.run()
    finally:
        done.set()
        other.join()
    assert summary.outcome is Outcome.BUSY
    assert "is at work on the retraining" in summary.message
    assert later.run().outcome is Outcome.PUBLISHED


def test_failure__is_notified_and_raised(later, monkeypatch):
    later.write(1)

    def diverge(*_, **__):
        raise TrainingError("It diverged.", "Lower alpha.")

    monkeypatch.setattr(retrain_module, "write_version", diverge)
    report = later.folder.parent / "summary.json"
    with pytest.raises(TrainingError, match="It diverged"):
        later.run(notices=Notices(summary=str(report)))
    assert '"outcome": "failed"' in report.read_text()
    assert "It diverged. Lower alpha." in report.read_text()


def test_missing_text__is_notified(nights, tmp_path, client):
    report = tmp_path / "summary.json"
    with pytest.raises(InputError, match="matches no file"):
        retrain(tmp_path / "none*", work=nights.work, client=client, notices=Notices(summary=str(report)))
    assert '"outcome": "failed"' in report.read_text()


def test_notice_that_fails__is_reported_and_changes_nothing(nights):
    messages = []
    notices = Notices(textfile="/dev/null/x.prom")
    assert nights.run(notices=notices, listener=messages.append).outcome is Outcome.PUBLISHED
    assert any("x.prom was not written" in progress.message for progress in messages)


@pytest.mark.slow
def test_old_text_and_words__are_deleted_once_two_nights_do_not_use_them(nights):
    for day in range(1, 5):
        nights.run(policy=Policy(keep=2))
        nights.write(day)
    work = Store(str(nights.work))
    assert len((work / "vocabulary").children()) == 2
    assert (work / "runs").children() == []
    (shards,) = ((work / "shards" / name).children() for name in (work / "shards").children())
    assert len(shards) == 4
    for day in range(3):
        (nights.folder / f"{day}.txt").unlink()
    nights.run()
    nights.write(5)
    nights.run()
    (shards,) = ((work / "shards" / name).children() for name in (work / "shards").children())
    assert len(shards) == 3


def test_index__is_there_when_a_version_is_served(nights):
    pytest.importorskip("usearch")
    nights.run(policy=Policy(index=True))
    assert IndexedVectors.open(nights.work).most_similar("w1", topn=3)


def test_index__is_built_by_the_threads_of_a_task(nights, monkeypatch):
    """One thread gives the same bits each time."""
    built = []
    monkeypatch.setattr("daskw2v.retraining.retrain.index_version", lambda version, threads: built.append(threads))
    nights.run(policy=Policy(index=True))
    assert built == [1]


MODELS = {
    "rotation": PARAMS.replace(strategy="rotation", n_partitions=3),
    "columns": PARAMS.replace(objective="context_matrix", strategy="columns", context_size=8, alpha=None),
    "subwords": Params(objective="subwords", strategy="columns", vector_size=8, min_count=2, epochs=1, context_size=8),
    "hierarchical softmax": PARAMS.replace(objective="sg_hs"),
    "phrases": PARAMS.replace(phrases=1),
}


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "model", [name if name != "rotation" else pytest.param(name, marks=pytest.mark.slow) for name in MODELS]
)
def test_models_of_all_kinds__are_retrained(nights, model, request):
    if model == "subwords":
        request.getfixturevalue("torch")
    first = nights.run(params=MODELS[model])
    nights.write(1)
    second = nights.run(params=MODELS[model])
    assert (first.outcome, second.outcome) == (Outcome.PUBLISHED, Outcome.PUBLISHED)
    assert manifest(nights, second.version)["params"]["base_model"] == first.version
    assert second.alignment.after >= second.alignment.before


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"params": PARAMS.replace(base_model="v0001-a")}, "base_model='v0001-a' cannot be used in retraining"),
        ({"params": MODELS["columns"].replace(base_matrix="x")}, "base_matrix='x' cannot be used in retraining"),
        ({"resources": Resources(word_losses=True)}, "word_losses"),
        ({"gates": Gates(min_score={"similarity/ws": 0.5})}, "min_score asks for similarity/ws"),
        ({"policy": Gates()}, "policy must be a daskw2v.Policy, not a Gates"),
    ],
)
def test_what_cannot_be__is_refused_before_anything_is_read(nights, given, problem):
    with pytest.raises(ParameterError, match=problem):
        nights.run(**given)
    assert not nights.work.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", "some"),
        ("text", None),
        ("old_share", 0),
        ("old_share", 1.5),
        ("alpha", 0),
        ("alpha", float("nan")),
        ("epochs", 0),
        ("epochs", 1.5),
        ("align", "yes"),
        ("index", 1),
        ("keep", 1),
        ("keep", None),
    ],
)
def test_policy__refuses(field, value):
    with pytest.raises(ParameterError, match=f"{field}="):
        Policy(**{field: value})


@pytest.mark.slow
def test_night__keeps_the_strategy_that_was_chosen_for_the_served_version(nights, monkeypatch):
    """Also where another one would be chosen by now; Params of "auto" and of its choice are the same Params."""

    def unasked(*_):
        raise AssertionError("a choice was made")

    first = nights.run(params=PARAMS.replace(strategy=Averaging()))
    monkeypatch.setattr(choice, "list_candidates", unasked)
    nights.write(1)
    summary = nights.run(params=PARAMS.replace(strategy="auto"))
    assert summary.outcome is Outcome.PUBLISHED
    assert manifest(nights, summary.version)["params"]["base_model"] == first.version
    assert manifest(nights, summary.version)["retraining"]["params"]["strategy"] == "averaging"


def test_first_night__chooses(nights):
    summary = nights.run(params=PARAMS.replace(strategy="auto"))
    assert manifest(nights, summary.version)["plan"]["strategy"] == "averaging"
    assert nights.run(params=PARAMS.replace(strategy="auto")).outcome is Outcome.NOTHING_NEW
