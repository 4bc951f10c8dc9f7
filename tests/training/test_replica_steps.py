"""Rounds of several steps: rows of frequent words are merged after each, those of rarer ones less often."""

import pickle
import threading
from functools import partial

import numpy as np
import pytest
from dask.sizeof import sizeof

from daskw2v import Params, Resources, train
from daskw2v.corpus.sources import find_sources
from daskw2v.models.stored.tables import open_table
from daskw2v.objectives.registry import find_objective
from daskw2v.progress import silent
from daskw2v.stages import Store
from daskw2v.training.averaging.averaging import AveragingRun
from daskw2v.training.averaging.curvature import compute_curvatures, compute_moments, touches_per_window
from daskw2v.training.averaging.merge import (
    BlockTraining,
    Delta,
    find_merge_rule,
    merge_block,
    subtract_rows,
)
from daskw2v.training.averaging.pulling import ReplicaText
from daskw2v.training.averaging.replica import Replica, ReplicaStep, make_replica, train_replica
from daskw2v.training.averaging.round_schedule import AveragingRounds, ReplicaWork, level_ends
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.devices import Threads, find_device, read_piece, replica_trainer
from daskw2v.training.devices.cpu import CpuReplicaTrainer
from daskw2v.training.devices.settings import CPU
from daskw2v.training.preparation.planned import PlannedRun, settled_params
from daskw2v.training.preparation.request import read_text
from daskw2v.training.rotation.rotation import RotationRun
from daskw2v.training.start import blocks
from daskw2v.training.start.initial_rows import get_prepared, make_initial_rows

PARAMS = Params(
    vector_size=12,
    min_count=1,
    epochs=2,
    sample=1e-2,
    n_replicas=3,
    rounds_per_epoch=2,
    merges_per_round=6,
    frequent_rows=20,
)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "text.txt"
    words = rng.zipf(1.2, (400, 12)) % 300
    path.write_text("".join(" ".join(f"w{word}" for word in sentence) + "\n" for sentence in words))
    return path


def reference(run, length):
    """Return the tables, trained by plain loops: each replica has tables of its own, and parts of them are merged."""
    params, objective = run.params, find_objective(run.params.objective.name)
    rule, trainer = find_merge_rule(Averaging.of(params).merge), find_device("cpu").replica_trainer
    sizes = objective.tables(params, run.vocabulary.size)
    model = {table: make_initial_rows(run, table, np.arange(rows)) for table, rows in sizes.items()}
    table_blocks, moments = blocks.cut_tables(sizes, params.vector_size, level_ends(params, run.vocabulary.size)), {}

    def trained(work, tables):
        whole = {table: [rows] for table, rows in tables.items()}
        replica = trainer(
            objective, params, get_prepared(run), partial(touches_per_window, run), whole, Threads(1, CPU())
        )
        replica.train(ReplicaText(run, work, trainer.positions, read_piece).loads())
        return {table: rows for table, (rows,) in replica.take().items()}

    rounds = AveragingRounds(params, length, run.vocabulary.size)
    for this in rounds:
        replicas = [{table: rows.copy() for table, rows in model.items()} for _ in range(this.n_replicas)]
        merged_at = dict.fromkeys(table_blocks, this.start)
        for number, step in enumerate(this.steps, 1):
            replicas = [trained(work, tables) for work, tables in zip(step.works, replicas, strict=True)]
            moments = {
                block: moments.get(block) or compute_moments(run, block, model[block.table][block.start : block.stop])
                for block in table_blocks
            }
            curvatures = compute_curvatures(run, table_blocks, [moments[block] for block in table_blocks])
            last = step is this.steps[-1]
            often = [number % 4**level == 0 or last for level in range(3)]
            for block in table_blocks:
                if not often[np.searchsorted([20, 80], block.start, side="right")]:
                    continue
                rows = slice(block.start, block.stop)
                base = model[block.table][rows].copy()
                rate = rounds.sum_rates(merged_at[block], step.stop) / this.n_replicas
                training = BlockTraining(run, block, rate).row_training(curvatures if rule.fade else {})
                deltas = [Delta(subtract_rows(base, replica[block.table][rows])[0]) for replica in replicas]
                merged = merge_block(rule, base, deltas, training)
                for tables in (model, *replicas):
                    tables[block.table][rows] = merged
                merged_at[block] = step.stop
                del moments[block]
    return model


def planned(text, folder, client, params=PARAMS):
    """Return the run of a text, and the corpus."""
    params, resources, work = settled_params(params), Resources(threads=1), Store(str(folder))
    corpus, vocabulary = read_text(find_sources(text), work, params, resources, lambda: client, silent)
    return PlannedRun(corpus, vocabulary, work, params, resources).for_tasks(), corpus


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"objective": "sg_hs"},
        {"objective": "cbow_ns"},
        {"merge": "mean"},
        {"merges_per_round": 1},
        {"merges_per_round": 16, "rounds_per_epoch": 1},
    ],
    ids=str,
)
def test_steps__give_the_bits_of_plain_loops(client, text, tmp_path, monkeypatch, changes):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 100 * 4 * PARAMS.vector_size)  # blocks of 100 rows
    params, resources = settled_params(PARAMS.replace(**changes)), Resources(threads=1)
    vectors = train(text, work=tmp_path, params=params, resources=resources, client=client)
    run, corpus = planned(text, tmp_path, client, params)
    for table, rows in reference(run, corpus.n_tokens).items():
        np.testing.assert_array_equal(open_table(Store(vectors.url), table)[:], rows)


def test_steps__matter(client, text, tmp_path):
    """Or the test above could not tell one step from several."""
    resources = Resources(threads=1)
    one, several = (
        train(text, work=tmp_path, params=PARAMS.replace(merges_per_round=n), resources=resources, client=client)
        for n in (1, 6)
    )
    assert not np.array_equal(one.vectors, several.vectors)


def test_replica__counts_its_tables_and_is_sent_without_them(client, text, tmp_path):
    """Dask runs its steps on the worker that has them; another one makes them again."""
    run, _ = planned(text, tmp_path, client)
    sizes = find_objective("sgns").tables(PARAMS, run.vocabulary.size)
    table_blocks = blocks.cut_tables(sizes, PARAMS.vector_size)
    rows = {
        n: make_initial_rows(run, block.table, np.arange(block.start, block.stop))
        for n, block in enumerate(table_blocks)
    }
    replica = make_replica(run, Threads(1, CPU()), table_blocks, None, rows)
    sent = pickle.loads(pickle.dumps(replica))
    assert sizeof(replica) == replica.nbytes == sum(sizes.values()) * 16 * 4
    assert (replica.n_trained, sent.n_trained, sent.nbytes) == (0, None, 0)
    steps = [ReplicaStep(ReplicaWork(0, start, start + 200, 0.05, 0.04), (0,)) for start in (0, 200)]

    def changes(of, n):
        """Train the n-th step, and the steps before that it lacks; return the changes of the block."""
        trained = train_replica(of, steps[:n], rows, [{}] * n)
        assert [totals.pairs > 0 for totals in trained.totals] == [True]
        assert of.n_trained == n
        return trained.changes[0].bits

    first, second = changes(replica, 1), changes(replica, 2)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(changes(sent, 2), second)
    np.testing.assert_array_equal(changes(replica, 1), first)  # of a lost result: it begins again
    np.testing.assert_array_equal(changes(replica, 2), second)


@pytest.mark.slow
def test_steps__of_a_replica_that_is_gone_are_trained_again(client, text, tmp_path, monkeypatch):
    """As after a task that failed, or that Dask moved to another worker."""
    options = {"params": PARAMS, "resources": Resources(threads=1), "client": client}
    expected = train(text, work=tmp_path / "undisturbed", **options)
    begin, read_ahead, rng, begun, lost = Replica.begin_step, Replica.read_ahead, np.random.default_rng(2), [], []

    def fail(replica, work):
        begun.append(work)
        if len(begun) in (2, 9):  # the task is tried again
            raise RuntimeError
        return begin(replica, work)

    def lose(replica, work):
        read_ahead(replica, work)
        lost.append(rng.random() < 0.5)
        if lost[-1]:
            replica.n_trained = None

    monkeypatch.setattr(Replica, "begin_step", fail)
    monkeypatch.setattr(Replica, "read_ahead", lose)
    again = train(text, work=tmp_path / "work", **options)
    assert {True, False} == set(lost)
    np.testing.assert_array_equal(again.vectors, expected.vectors)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("resources", [{}, {"checkpoint_seconds": 0}, {"eval_every": 3}], ids=str)
def test_rounds_of_one_task__are_those_of_several(client, text, tmp_path, monkeypatch, resources):
    """Rounds of little text are one task on a GPU; here on the processor. It ends with what is evaluated."""
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("w1\tw2\t1\nw1\tw3\t2\nw2\tw3\t3\n")
    evaluation = {"eval_similarity": (str(pairs),)} if resources.get("eval_every") else {}
    options = {
        "params": PARAMS.replace(n_replicas=1, rounds_per_epoch=4, merges_per_round=None),
        "client": client,
        "resources": Resources(threads=1, **resources, **evaluation),
    }
    expected = train(text, work=tmp_path / "each", **options)
    monkeypatch.setattr(CpuReplicaTrainer, "task", 5 * 400 * 12 // 4)  # five rounds of eight
    made, start = [], Replica.make_tables
    monkeypatch.setattr(Replica, "make_tables", lambda replica, rows: made.append(rows) or start(replica, rows))
    found = train(text, work=tmp_path / "together", **options)
    assert len(made) == (3 if resources.get("eval_every") else 2)
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    histories = [vectors.metadata["metrics"]["history"] for vectors in (expected, found)]
    for one, other in zip(*histories, strict=True):
        assert all(one[name] == other[name] for name in ("round", "progress", "words", "pairs", "loss", "alpha"))
        assert one.get("scores") == other.get("scores")
    assert [("scores" in entry) for entry in histories[1]] == [
        bool(resources.get("eval_every")) and n in (2, 5, 7) for n in range(8)
    ]


def test_run__goes_on_in_the_middle_of_a_task(client, text, tmp_path, monkeypatch):
    """As one that was begun on a processor, where each round is a task."""
    params = PARAMS.replace(n_replicas=1, rounds_per_epoch=4, merges_per_round=None)
    options = {"params": params, "resources": Resources(threads=1, checkpoint_seconds=0), "client": client}
    expected, play, played = train(text, work=tmp_path / "undisturbed", **options), AveragingRun.play, []

    class StoppedError(Exception):
        pass

    def stop(run, number, needs_rows):
        if number == 3:
            raise StoppedError
        return play(run, number, needs_rows)

    with monkeypatch.context() as patch:
        patch.setattr(AveragingRun, "play", stop)
        with pytest.raises(StoppedError):
            train(text, work=tmp_path / "work", **options)
    monkeypatch.setattr(CpuReplicaTrainer, "task", 5 * 400 * 12 // 4)  # five rounds
    monkeypatch.setattr(AveragingRun, "play", lambda run, n, needs_rows: played.append(n) or play(run, n, needs_rows))
    again = train(text, work=tmp_path / "work", **options)
    assert played == [3, 4, 5, 6, 7]
    np.testing.assert_array_equal(again.vectors, expected.vectors)


def test_text_of_a_step__is_read_ahead_once(client, text, tmp_path, monkeypatch):
    """By a thread of its own, while rows are merged; but for the first step of a round."""
    read, read_text_of = [], replica_trainer.read_text

    def reading(run, *stretch):
        read.append((stretch, threading.current_thread().name.startswith("daskw2v-")))
        return read_text_of(run, *stretch)

    monkeypatch.setattr(replica_trainer, "read_text", reading)
    train(text, work=tmp_path, params=PARAMS, resources=Resources(threads=1), client=client)
    rounds = AveragingRounds(PARAMS, 400 * 12, 300)
    steps = [step for this in rounds for step in this.steps]
    first = sum(this.n_replicas for this in rounds)
    assert len(read) == len({stretch for stretch, _ in read}) >= sum(len(step.works) for step in steps)
    assert sum(ahead for _, ahead in read) == sum(len(step.works) for step in steps) - first > 0


ROTATED = Params(vector_size=12, min_count=1, epochs=2, sample=1e-2, strategy="rotation", n_partitions=2)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "params"), [(AveragingRun, PARAMS), (RotationRun, ROTATED)])
def test_checkpoint__of_other_rounds_is_made_again(client, text, tmp_path, monkeypatch, kind, params):
    """Those of daskw2v 0.1 had a merge of all rows in each round, and more rounds; or fewer passes."""
    save, restore, messages = kind.save_checkpoint, kind.restore, []
    options = {"params": params, "resources": Resources(threads=1, checkpoint_seconds=0), "client": client}
    expected = train(text, work=tmp_path / "undisturbed", **options)

    class StoppedError(Exception):
        pass

    def save_older(run, checkpoint):
        return {name: value for name, value in save(run, checkpoint).items() if name != "rounds"}

    def stop(run, number, checkpoint, manifest):
        if checkpoint is not None:
            raise StoppedError
        restore(run, number, checkpoint, manifest)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "save_checkpoint", save_older)
        patch.setattr(kind, "restore", stop)
        with pytest.raises(StoppedError):
            train(text, work=tmp_path / "work", **options)
    again = train(text, work=tmp_path / "work", listener=lambda p: messages.append(p.message), **options)
    np.testing.assert_array_equal(again.vectors, expected.vectors)
    assert any("older daskw2v, which cut runs into other rounds" in message for message in messages if message)
