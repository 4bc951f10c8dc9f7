"""Tasks of rotation on one worker, which trains whole passes: what they train together, write and tell."""

import itertools

import numpy as np
import pytest

from daskw2v import train
from daskw2v.config.params import Params
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.pairs import pair_type
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.training.devices.cpu import CpuPartitionTrainer
from daskw2v.training.devices.settings import CPU
from daskw2v.training.rotation import bucket_task, pass_schedule, pass_tasks
from daskw2v.training.rotation import work as rotation_work
from daskw2v.training.rotation.bucket_task import INPUT
from daskw2v.training.rotation.pass_tasks import PassTasks
from daskw2v.training.rotation.rotation import RotationRun
from daskw2v.training.watch.events import RunWatch
from tests.support.rotation import PARAMS, RESOURCES, VARIANTS, Stop, same, write_topics


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_topics(tmp_path_factory.mktemp("text") / "text.txt")


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [*VARIANTS, "files"])
def test_rotation__of_one_worker_is_the_same_in_a_task_a_pass_and_in_a_task_a_step(
    client, text, tmp_path, monkeypatch, name
):
    """What is known of each pass is the same, too: pairs and losses of its steps, and the rows that are evaluated."""
    reported, params, results = RotationRun._reports, PARAMS.replace(**VARIANTS.get(name, {})), {}
    files = name == "files"
    if files:
        monkeypatch.setattr(rotation_work, "fits_pairs", lambda *_: False)

    def watched(run, work, steps, waited):
        return reported(run, work, (record(run._context, step) for step in steps), waited)

    def record(context, step):
        rows = None if step.input is None else bucket_task.join_partitions(context, INPUT, *client.gather(step.input))
        seen.append((step.totals, rows))
        return step

    monkeypatch.setattr(RotationRun, "_reports", watched)
    monkeypatch.setattr(RunWatch, "needs_rows", lambda _, number: number != 2)
    for way, one_task, length in (("passes", True, 1 << 20), ("pass", True, 0), ("step", False, 1 << 20)):
        seen = []
        monkeypatch.setattr(pass_tasks, "fits_one_task", lambda *_, one_task=one_task: one_task)
        monkeypatch.setattr(pass_schedule, "TASK_LENGTH", length)
        vectors = train(text, work=tmp_path / way, params=params, resources=RESOURCES, client=client)
        trained = [[sum(getattr(t, of) for t in totals) for of in ("pairs", "loss")] for totals, _ in seen]
        results[way] = np.array(trained), [rows for _, rows in seen][1::2], vectors
        assert {len(totals) for totals, _ in seen} == {2 if way == "step" else 1}, "the groups, together or not"
    assert [rows is not None for rows in results["passes"][1]] == [True, True, files, True]
    for way in ("passes", "pass"):
        np.testing.assert_allclose(results[way][0], results["step"][0], rtol=1e-12)
        for rows, of_step in zip(results[way][1], results["step"][1], strict=True):
            assert rows is None or np.array_equal(rows, of_step)
        same(results[way][2], results["step"][2])


def test_rotation__in_this_process_trains_in_place_what_only_the_next_task_needs(client, text, tmp_path, monkeypatch):
    """Four tasks train 1, 1, 2 and 4 passes. The rows of the second are needed."""
    params, in_place, needed = PARAMS.replace(epochs=4), [], []
    make, play_together = CpuPartitionTrainer.__init__, PassTasks.play_together

    def record(trainer, *arguments, owned):
        in_place.append(owned)
        make(trainer, *arguments, owned=owned)

    def play(tasks, passes, key, **options):
        needed.append(options.get("needed", True))
        return play_together(tasks, passes, key, **options)

    monkeypatch.setattr(CpuPartitionTrainer, "__init__", record)
    monkeypatch.setattr(PassTasks, "play_together", play)
    monkeypatch.setattr(RunWatch, "needs_rows", lambda _, number: number == 1)
    found = train(text, work=tmp_path / "in place", params=params, resources=RESOURCES, client=client)
    assert in_place == [False, *(not rows for rows in needed[:-1])]
    assert needed[1:] == [True, False, False]
    in_place.clear()
    monkeypatch.setattr(RunWatch, "needs_rows", lambda *_: True)
    same(train(text, work=tmp_path / "copied", params=params, resources=RESOURCES, client=client), found)
    assert in_place == 8 * [False], "a task for each pass"


@pytest.mark.parametrize("owned", [True, False])
def test_trainer__trains_the_rows_in_place_if_nobody_else_needs_them(owned):
    objective, params, counts = (
        find_objective("sgns"),
        Params(strategy="rotation", vector_size=16),
        np.ones(4, np.int64),
    )
    rows = np.full((4, 16), 0.1, np.float32)
    before, output = rows.copy(), np.full((4, 16), 0.1, np.float32)
    arguments = {0: lambda: rows}, {0: lambda: output}, lambda _: counts, 4, CPU()
    trainer = CpuPartitionTrainer(objective, params, *arguments, owned=owned)
    pair = np.ones(1, pair_type(4))
    trainer.train(0, 0, Bucket(pair, pair[:0]), 0.1, objective.partition_table(params, counts), np.uint64(0))
    assert (rows == before).all() != owned
    assert (np.asarray(trainer.take("input", 0)) != before).any()


def test_rotation__repeats_no_task_that_changed_the_rows_of_the_task_before(client, text, tmp_path, monkeypatch):
    train_bucket, n_trained = CpuPartitionTrainer.train, itertools.count()

    def fail_once(*arguments):
        if next(n_trained) == 100:  # in the second pass, of 64 buckets
            raise MemoryError("no room")
        return train_bucket(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(CpuPartitionTrainer, "train", fail_once)
        with pytest.raises(MemoryError, match="no room"):
            train(text, work=tmp_path / "failed", params=PARAMS, resources=RESOURCES, client=client)
    found = train(text, work=tmp_path / "failed", params=PARAMS, resources=RESOURCES, client=client)
    same(found, train(text, work=tmp_path / "undisturbed", params=PARAMS, resources=RESOURCES, client=client))


def test_rotation__reports_for_each_pass_of_a_task_its_share_of_the_time(client, text, tmp_path):
    vectors = train(text, work=tmp_path, params=PARAMS.replace(epochs=4), resources=RESOURCES, client=client)
    metrics = vectors.metadata["metrics"]
    pairs, seconds = (np.array([entry[of] for entry in metrics["history"]]) for of in ("pairs", "seconds"))
    assert len(seconds) == 8
    assert (seconds > 0).all()
    assert seconds.sum() <= metrics["stages"][-1]["seconds"]
    for task in (slice(2, 4), slice(4, 8)):
        share = pairs[task] / pairs[task].sum()
        np.testing.assert_allclose(seconds[task], share * seconds[task].sum(), atol=2e-4)


@pytest.mark.slow
def test_rotation__trains_passes_in_order_where_workers_come_and_go(client, text, tmp_path, monkeypatch):
    """A pass that waits for its turn is not overtaken by one that could be submitted at once."""
    asked = itertools.cycle([False, True, True, False, True])  # as if other workers were there at times
    monkeypatch.setattr(pass_tasks, "fits_one_task", lambda *_: next(asked))
    params = PARAMS.replace(epochs=4)
    found = train(text, work=tmp_path / "changing", params=params, resources=RESOURCES, client=client)
    monkeypatch.setattr(pass_tasks, "fits_one_task", lambda *_: False)
    same(found, train(text, work=tmp_path / "steady", params=params, resources=RESOURCES, client=client))


@pytest.mark.slow
def test_rotation__writes_checkpoints_between_tasks_and_goes_on_from_them(client, text, tmp_path, monkeypatch):
    params, resources = PARAMS.replace(epochs=4), RESOURCES.replace(checkpoint_seconds=0)  # passes: 1, 1, 2, 4 together
    undisturbed = train(text, work=tmp_path / "undisturbed", params=params, resources=RESOURCES, client=client)
    save, saved = RotationRun.save_checkpoint, []

    def watched(run, store):
        saved.append(int(store.name))
        return save(run, store)

    def stop(progress):
        if progress.loss is not None and progress.done > 0.6 * progress.total:  # in the last task
            raise Stop

    monkeypatch.setattr(RotationRun, "save_checkpoint", watched)
    options = {"work": tmp_path / "stopped", "params": params, "resources": resources, "client": client}
    with pytest.raises(Stop):
        train(text, **options, listener=stop)
    assert saved == [1, 2, 4]
    same(train(text, **options), undisturbed)
    assert saved == [1, 2, 4], "it goes on with the last task"


def test_rotation__submits_no_more_than_two_tasks(client, text, tmp_path, monkeypatch):
    """Pairs of more passes would be in memory."""
    most, together = [], PassTasks.play_together

    def submit(tasks, passes, key, **options):
        counts["submitted"] += len(passes)
        most.append(counts["submitted"] - counts["done"])
        return together(tasks, passes, key, **options)

    def done(progress):
        counts["done"] += progress.loss is not None and progress.done * 24 % progress.total == 0

    counts = {"submitted": 0, "done": 0}
    monkeypatch.setattr(PassTasks, "play_together", submit)
    monkeypatch.setattr(rotation_work, "max_passes_of_threads", lambda *_: 4)
    params = PARAMS.replace(epochs=4, passes_per_epoch=6)
    train(text, work=tmp_path, params=params, resources=RESOURCES, client=client, listener=done)
    assert counts["submitted"] == 24
    assert max(most) <= 8


def test_rotation__reports_for_each_pass_the_seconds_of_compilation(client, text, tmp_path, monkeypatch):
    reported, compiling = RotationRun._reports, {}

    def watched(run, work, steps, waited):
        for report in reported(run, work, steps, waited):
            compiling.setdefault(work.current.number, []).extend(total.compiling for total in report.totals)
            yield report

    monkeypatch.setattr(RotationRun, "_reports", watched)
    monkeypatch.setattr(bucket_task.TaskClock, "read", lambda _: (8.0, 4.0))
    train(text, work=tmp_path, params=PARAMS.replace(epochs=4), resources=RESOURCES, client=client)
    assert all(len(set(of_steps)) == 1 for of_steps in compiling.values())
    by_pass = [compiling[number][0] for number in range(8)]
    for task in (slice(0, 1), slice(1, 2), slice(2, 4), slice(4, 8)):
        assert sum(by_pass[task]) == pytest.approx(4.0)
