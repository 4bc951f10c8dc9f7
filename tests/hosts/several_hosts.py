"""A scheduler, two workers, an object store and a client, each on a host of its own, with files of its own."""

import json
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import fsspec
from distributed import Client

from daskw2v import Params, Vectors
from daskw2v.config.identity import changed_fields

BUCKET = "s3://bucket"
CREDENTIALS = {"key": "a-key", "secret": "a-secret"}
DASK = {  # a lost host is given up after seconds, not minutes
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "11s",  # the least that Dask takes
}
ONE_THREAD = {"threads": 1, "block_size": "32 KiB"}
COMMON = Params(vector_size=16, min_count=1, epochs=1, sample=1e-2)
PARAMS = {
    "averaging": COMMON.replace(n_replicas=2, rounds_per_epoch=3, frequent_rows=20),
    "rotation": COMMON.replace(strategy="rotation", n_partitions=4, n_groups=2, passes_per_epoch=1),
    "columns": COMMON.replace(objective="context_matrix", strategy="columns", context_size=32, gather_every=8),
}
AGAIN = 'while "$0" "$@"; [ $? -lt 100 ]; do sleep 1; done'  # a worker that loses its scheduler ends, nanny and all
PORTS = {"scheduler": 8786, "store": 5000}


@dataclass
class Job:
    """A training that runs on the client's host."""

    process: object
    site: "Site"
    work: str

    def outcome(self, timeout=200):
        """Wait for its end; return its exit status, what it printed, and what it printed as errors."""
        output, errors = self.process.communicate(timeout=timeout)
        return self.process.returncode, output.decode(), errors.decode()

    def vectors(self, timeout=200):
        """Wait for its end; return the model, read by this process, which is another machine to all of them."""
        status, output, errors = self.outcome(timeout)
        assert status == 0, f"{output}\n{errors}\n{self.site.logs()}"
        return Vectors.open(self.work, self.site.options)


class Site:
    """All hosts."""

    def __init__(self, namespaces, net, cache):
        self.network, self.python = net, namespaces.PYTHON
        self.scheduler, self.store, self.client, *self.workers = (net.host(cache) for _ in range(5))
        self.hosts = [self.scheduler, self.store, self.client, *self.workers]
        self.url = f"http://{self.store.address}:{PORTS['store']}"
        self.address = f"tcp://{self.scheduler.address}:{PORTS['scheduler']}"
        self.options = {
            **CREDENTIALS,
            "endpoint_url": self.url,
            "config_kwargs": {"connect_timeout": 3, "read_timeout": 3, "retries": {"total_max_attempts": 1}},
        }
        program = Path(__file__).with_name("object_store.py")
        self.store.start(*self.python, str(program), str(PORTS["store"]), log="store.log")
        self._dask(self.scheduler, "scheduler", "--port", str(PORTS["scheduler"]), "--no-dashboard")
        for worker in self.workers:
            self._dask(worker, "worker", self.address, "--nthreads", "1", "--memory-limit", "0", "--no-dashboard")
        await_that(lambda: self.ask(""))

    def _dask(self, host, program, *options):
        command = (*self.python, "-m", f"distributed.cli.dask_{program}", *options, "--host", host.address)
        host.start("sh", "-c", AGAIN, *command, log="dask.log", environment=DASK)

    def ask(self, path, content=None):
        """Send a request of no S3 client to the store."""
        request = urllib.request.Request(f"{self.url}/{path}", content, method="GET" if content is None else "PUT")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read()

    def files(self):
        """Return the store's files, as they are now."""
        return fsspec.filesystem("s3", **self.options, use_listings_cache=False)

    def fault(self, kind, **what):
        """Make the store ill."""
        self.ask("-/faults", json.dumps({"kind": kind, **what}).encode())

    def requests(self):
        """Return whether the fault has struck, and what the store was asked for since the last time."""
        return json.loads(self.ask("-/requests"))

    def await_request(self, method, part):
        """Wait until the store is asked for such an object."""
        await_that(lambda: any(m == method and part in path for m, path, *_ in self.requests()[1]))

    def train(self, *inputs, work, params, environment=None, **resources):
        """Start a training from the client's command line."""
        values = {**_changed(params), **ONE_THREAD, "scheduler": self.address, **resources}
        flags = [word for name, value in values.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        for name, value in self.options.items():
            flags += ["--storage-option", f"{name}={json.dumps(value)}"]
        command = (*self.python, "-m", "daskw2v", "train", *inputs, "--work", work, *flags)
        return Job(self.client.start(*command, environment={**DASK, **(environment or {})}), self, work)

    def run(self, program, work):
        """Start a Python program on the client's host."""
        return Job(self.client.start(*self.python, "-c", program, environment=DASK), self, work)

    @contextmanager
    def apart(self, host):
        """Part a host from the others for the time of the block."""
        host.cut()
        try:
            yield
        finally:
            host.mend()

    def dask(self):
        """Return a client in this process."""
        return Client(self.address)

    def await_workers(self, number):
        """Wait until the scheduler has so many workers."""
        with self.dask() as client:
            await_that(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) == number)

    def logs(self):
        """Return the ends of what all others printed."""
        logs = (log for host in self.hosts for log in (host.root / "tmp").glob("*.log"))
        return "\n".join(f"{log}:\n{log.read_text()[-3000:]}" for log in logs)


def _changed(params):
    """Return what is to be given: choices, and what is not as by default."""
    given = {"objective", "strategy", *changed_fields(params)}
    return {name: value for name, value in params.as_dict().items() if name in given}


def await_that(condition, seconds=60):
    """Wait until a condition holds; until then, it may also fail as networks do."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition() is not False:
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise TimeoutError(f"not within {seconds} s")
