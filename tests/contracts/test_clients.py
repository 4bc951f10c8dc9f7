"""Every call that runs on a cluster takes the client given, or a scheduler's, or Dask's current one, or its own."""

import asyncio
import copy
import gc
import inspect
import logging
from importlib import import_module

import dask
import dask.bag
import pytest
from distributed import Client, LocalCluster, Scheduler, SpecCluster, Worker, get_client, worker_client

import daskw2v
from daskw2v import Params, Resources
from daskw2v.errors import ClusterError, ParameterError
from daskw2v.stages import Store
from daskw2v.training import pipeline

PARAMS = Params(vector_size=4, min_count=1, epochs=1, sample=0)
SENTENCES = ["a b c d a c e"] * 20


def corpus_of(text, store, **given):
    return daskw2v.stages.build_corpus(text, store, PARAMS, Resources(), **given)


def words_of(corpus, store, **given):
    return daskw2v.stages.build_vocabulary(corpus, store, PARAMS, Resources(), **given)


class Call:
    """A call of each function: on little text of a folder, with a client, resources and a listener that are given."""

    def __init__(self, folder, other):
        self._text, self._events, self._edges = folder / "text.txt", folder / "events.csv", folder / "edges.txt"
        self._text.write_text("\n".join(SENTENCES) + "\n")
        self._events.write_text("user,item,time\n" + "".join(f"{i // 6},i{i % 5},{i}\n" for i in range(60)))
        self._edges.write_text("".join(f"{i} {(i + 1) % 9}\n" for i in range(9)))
        self._folder, self._other, self._number = folder, {"client": other, "listener": None}, 0

    def _store(self):
        self._number += 1
        return Store(str(self._folder / f"work-{self._number}"))

    def _built(self):
        store = self._store()
        corpus = corpus_of(self._text, store, **self._other)
        return corpus, words_of(corpus, store, **self._other), store

    def train(self, **given):
        return daskw2v.train(self._text, work=self._store().url, params=PARAMS, **given)

    def retrain(self, **given):
        return daskw2v.retrain(self._text, work=self._store().url, params=PARAMS, **given)

    def items(self, **given):
        return daskw2v.items(self._events, work=self._store().url, params=PARAMS.replace(window=4), **given)

    def walks(self, **given):
        walks = daskw2v.Walks(number=1, length=5)
        return daskw2v.walks(self._edges, work=self._store().url, walks=walks, params=PARAMS, **given)

    def estimate(self, **given):
        return daskw2v.estimate(self._text, params=PARAMS, **given)

    def plan(self, **given):
        return daskw2v.plan(self._text, params=PARAMS, **given)

    def build_corpus(self, **given):
        return daskw2v.stages.build_corpus(self._text, self._store(), PARAMS, given.pop("resources"), **given)

    def build_vocabulary(self, **given):
        store = self._store()
        corpus = corpus_of(self._text, store, **self._other)
        return daskw2v.stages.build_vocabulary(corpus, store, PARAMS, given.pop("resources"), **given)

    def build_phrases(self, **given):
        store = self._store()
        corpus = corpus_of(self._text, store, **self._other)
        return daskw2v.stages.build_phrases(corpus, store, PARAMS.replace(phrases=1), given.pop("resources"), **given)

    def build_matrix(self, **given):
        corpus, vocabulary, store = self._built()
        params = PARAMS.replace(objective="context_matrix")
        return daskw2v.stages.build_matrix(corpus, vocabulary, store, params, given.pop("resources"), **given)

    def train_model(self, **given):
        corpus, vocabulary, store = self._built()
        return daskw2v.stages.train_model(corpus, vocabulary, store, PARAMS, given.pop("resources"), **given)


PUBLIC = {name: getattr(module, name) for module in (daskw2v, daskw2v.stages) for name in module.__all__}
TAKE_A_CLIENT = sorted(
    name
    for name, value in PUBLIC.items()
    if inspect.isfunction(value) and "client" in inspect.signature(value).parameters
)


@pytest.fixture
def call(tmp_path, client):
    pytest.importorskip("dask.dataframe", reason="events need daskw2v[events]")
    return Call(tmp_path, client)


@pytest.fixture(scope="module")
def cluster():
    """A cluster beside that of the session's client: one worker, and one thread."""
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster:
        yield cluster


@pytest.fixture
def current(cluster):
    """Dask's current client."""
    with Client(cluster) as current:
        yield current


def cluster_line(call, name, resources=None, **given):
    """Return what a call says of its cluster, and check that it says so first."""
    said = []
    getattr(call, name)(resources=resources or Resources(), listener=said.append, **given)
    lines = [progress.message for progress in said if progress.stage == "cluster"]
    assert (said[0].stage, len(lines)) == ("cluster", 1)
    return lines[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TAKE_A_CLIENT)
def test_calls__take_the_client_given_then_the_current_one(call, name, client, current):
    given = cluster_line(call, name, client=client)
    assert given.startswith(f"the given client at {client.scheduler.address}")
    assert cluster_line(call, name).startswith(f"Dask's current client at {current.scheduler.address}")
    assert (Client.current() is current, futures_of(current)) == (True, {})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TAKE_A_CLIENT)
def test_calls__refuse_clients_that_cannot_be_waited_for(call, name, cluster):
    closed = Client(cluster, set_as_default=False)
    closed.close()
    how = {"resources": Resources(), "listener": None}
    with pytest.raises(ParameterError, match=r"^client is closed\. Give one that is connected"):
        getattr(call, name)(client=closed, **how)

    async def called():
        async with Client(cluster, asynchronous=True, set_as_default=False) as client:
            with pytest.raises(ParameterError, match=r"^client is asynchronous.* Give .*asyncio\.to_thread"):
                getattr(call, name)(client=client, **how)

    asyncio.run_coroutine_threadsafe(called(), cluster.loop.asyncio_loop).result(60)


def test_calls__are_all_those_that_run_on_a_cluster():
    assert sorted(name for name in vars(Call) if not name.startswith("_")) == TAKE_A_CLIENT
    for name in TAKE_A_CLIENT:
        assert inspect.signature(PUBLIC[name]).parameters["client"].default is None


def test_train__takes_a_scheduler_or_a_local_cluster_that_is_asked_for_before_the_current_client(call, client, current):
    address = client.scheduler.address
    assert cluster_line(call, "train", Resources(scheduler=address)).startswith(f"the scheduler at {address}")
    assert cluster_line(call, "train", Resources(processes=False)) == "one worker in this process"
    assert Client.current() is current
    with Client(current.scheduler.address, set_as_default=False) as closed:
        closed.close()
    with closed.as_current(), pytest.raises(ParameterError, match=r"^Dask's current client is closed\."):
        call.train()


def test_train__starts_a_cluster_of_its_own_where_no_client_is_current(call):
    with pytest.raises(ValueError, match="No clients"):
        Client.current()
    assert cluster_line(call, "train") == "one worker in this process"
    assert cluster_line(call, "train", Resources(processes=True, threads=1)).startswith("1 local worker, dashboard at ")
    with pytest.raises(ValueError, match="No clients"):
        Client.current()


@pytest.mark.slow
def test_train__compiles_ahead_only_for_workers_of_its_own(call, client, current, monkeypatch):
    started = []
    monkeypatch.setattr(pipeline.CompileAhead, "start", lambda _: started.append(1))
    for resources, given in (
        (Resources(), {"client": client}),
        (Resources(), {}),
        (Resources(scheduler=client.scheduler.address), {}),
    ):
        call.train(resources=resources, listener=None, **given)
    assert not started
    call.train(resources=Resources(processes=False), listener=None)
    assert started


@pytest.mark.parametrize("function", [daskw2v.train, daskw2v.retrain])
def test_train__refuses_a_local_cluster_beside_another(call, tmp_path, client, function):
    for beside, resources, given in (
        ("client", Resources(workers=2, memory_limit="1 GiB"), {"client": client}),
        ("scheduler", Resources(workers=2, memory_limit="1 GiB", scheduler="tcp://host:8786"), {}),
    ):
        match = rf"^workers=2 and memory_limit='1 GiB' would be ignored.* or leave out {beside}\.$"
        with pytest.raises(ParameterError, match=match):
            function("text.txt", work=tmp_path, resources=resources, **given)


def in_a_task(text, work, how):
    """Task: train."""
    said = []
    given = {"work": work, "params": PARAMS, "listener": said.append}
    if how == "the current client":
        words = daskw2v.train(text, **given)
    elif how == "its own":
        words = daskw2v.train(text, resources=Resources(processes=False), **given)
    elif how == "get_client":
        words = daskw2v.train(text, client=get_client(), **given)
    else:
        with worker_client() as client:
            words = daskw2v.train(text, client=client if "given" in how else None, **given)
    return said[0].message, sorted(words.vocabulary.words)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "how", ["the current client", "its own", "get_client", "worker_client", "worker_client, given"]
)
def test_train__runs_in_a_task_of_the_only_thread(current, tmp_path, how):
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES))
    task = current.submit(in_a_task, str(tmp_path / "text.txt"), str(tmp_path / "work"), how, pure=False)
    said, words = task.result(timeout=120)
    title = "the given client" if how in ("get_client", "worker_client, given") else "the cluster of this task"
    where = "one worker in this process" if how == "its own" else f"{title} at {current.scheduler.address}"
    assert said.startswith(where)
    assert words
    assert current.submit(lambda: "free again", pure=False).result(timeout=60) == "free again"


def persisted(client):
    """What a client's cluster holds, by how it is given."""
    from_pandas = pytest.importorskip("dask.dataframe").from_pandas
    frame = pytest.importorskip("pandas").DataFrame({"text": SENTENCES})
    with client.as_current():
        bag, table = dask.bag.from_sequence(SENTENCES, npartitions=2).persist(), from_pandas(frame, 2).persist()
        future = client.submit(list, SENTENCES)
        return {
            "a bag": bag,
            "what is made of it": bag.map(str.upper),
            "its Delayed": bag.to_delayed(),
            "a DataFrame": table,
            "a Series of it": table["text"],
            "a future": future,
            "futures": [future],
            "Delayed of a future": dask.delayed(list)(future),
            "a Delayed": dask.delayed(list)(SENTENCES).persist(),
        }


@pytest.mark.slow
def test_train__reads_what_the_current_cluster_holds(current, tmp_path):
    for number, inputs in enumerate(persisted(current).values()):
        vectors = daskw2v.train(inputs, work=tmp_path / str(number), params=PARAMS, listener=None)
        assert len(vectors) > 4


def test_train__refuses_what_another_cluster_holds(client, current, tmp_path):
    there, here = (which.scheduler.address for which in (client, current))
    for name, inputs in persisted(client).items():
        hidden = name == "its Delayed"  # Dask leaves out of it what the cluster holds
        match = (
            "does not hold what partitions are made of.* give client"
            if hidden
            else f"held by .*{there}, .*{here}.* Give client"
        )
        with pytest.raises(ClusterError, match=match):
            daskw2v.train(inputs, work=tmp_path, params=PARAMS, listener=None)


def futures_of(client):
    """What a client still holds, once its loop has released what nobody refers to."""
    client.sync(asyncio.sleep, 0)
    return dict(client.futures)


def state(client):
    """What a call might change of its client's cluster, of Dask and of this process."""
    workers, scheduler = client.cluster.workers, client.cluster.scheduler
    gc.collect()  # processes of other tests' clusters, whose handlers go with them
    loggers = [logging.getLogger(), *map(logging.getLogger, list(logging.root.manager.loggerDict))]
    # Only those that are set up: threads of other tests import what makes them
    levels = {logger.name: (logger.level, logger.filters[:], logger.handlers[:]) for logger in loggers}
    return {
        "plugins": [sorted(scheduler.plugins), sorted(scheduler.worker_plugins), sorted(scheduler.nanny_plugins)],
        "workers": {name: (worker.name, worker.address, sorted(worker.plugins)) for name, worker in workers.items()},
        **{f"logger {name}": found for name, found in levels.items() if found != (0, [], [])},
        "topics": dict(client._event_handlers),
        "futures": futures_of(client),
        **copy.deepcopy(dask.config.config),
        "current": Client.current(),
    }


def test_train__leaves_the_client_as_it_was(call):
    workers = {name: {"cls": Worker, "options": {"nthreads": 1}} for name in ("alice", "bob")}
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": ":0"}}
    with SpecCluster(workers, scheduler) as cluster, Client(cluster) as client:
        import_module("distributed.nanny")  # its logger is new, if no test before needed it
        call.train(listener=None)  # imports what it needs, whose loggers are new
        before = state(client)
        call.train(listener=None)
        call.retrain(listener=None)
        after = state(client)
    assert {name: value for name, value in after.items() if value != before.get(name)} == {}
