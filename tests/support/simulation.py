"""A simulator of processes that change what a work directory serves: the real code, a fake store, a fake clock.

Each process is a greenlet, and its signs of life another one. The store is a dictionary of files. Before each of its
calls, and between the check of a lease and the write, another process may go on. Calls fail, are done though their
answer is lost, or answer with old content; processes pause for longer than a lease lasts, or die; clocks are set.

All that a schedule does follows from a list of small numbers (`Choices`): drawn by a seed, or given, to repeat or
shrink a schedule. `simulate` runs one schedule and raises `Violated` if an invariant does not hold:

* the history is a line: each state has the number after the one it was made from, and is what its action makes of it;
* a change that was acknowledged is in the history once, a change that was refused is not, however often it was tried;
* a night serves its version only in place of the version that was served when it began;
* the served version is always whole, and a reader always finds one;
* nothing is deleted that is served, tagged or held, unless it is served and damaged;
* a process whose lease was taken over changes no state after the new holder has begun;
* no process says that a lease was taken over unless another one has it.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from fsspec.spec import AbstractFileSystem
from greenlet import getcurrent, greenlet

from daskw2v.config.resources import Resources
from daskw2v.errors import BusyError, DamageError, StoreError
from daskw2v.models.versions import finished, state
from daskw2v.models.versions import versions as versions_module
from daskw2v.models.versions.finished import next_version
from daskw2v.models.versions.resolving import read_resolved
from daskw2v.models.versions.state import State
from daskw2v.models.versions.versions import Versions, fence_versions, latest_version
from daskw2v.retraining import retrain as retrain_module
from daskw2v.retraining.outcome import Outcome
from daskw2v.store import lease, numbered, retries
from daskw2v.store.storage import MANIFEST, Store
from tests.support.choices import Choices
from tests.support.state_model import model

URL = "sim://work"
NAMES = ("v0001-aaaaaaaaaaaa", "v0002-bbbbbbbbbbbb", "v0003-cccccccccccc")
OLD = {"created": "2001-01-01T00:00:00+00:00", "params": {}, "tables": {"input": [1, 2]}}
DAMAGE = "damaged"  # a file of versions whose files are damaged
PAUSES = (1.0, 20.0, 70.0, 500.0)  # seconds; a lease lasts 60
FAULTS = ("pause", "die before", "die after", "fail", "lose the answer", "old answer", "set the clock")
LONGEST = 20_000  # steps of a schedule


class Violated(AssertionError):
    """An invariant does not hold."""


@dataclass
class Process:
    """A process, its machine, and how its operation ended."""

    number: int
    machine: str
    operation: str
    key: str
    paused_until: float = 0.0
    dead: bool = False
    result: Any = None
    base: str | None = None
    leases: dict[str, int] = field(default_factory=dict)


class World:
    """The files, the clock, and all that runs."""

    def __init__(self, choices: Choices, files: dict[str, bytes]) -> None:
        self.choices, self.files = choices, dict(files)
        self.clock, self.wall = 1000.0, datetime(2026, 1, 1, tzinfo=UTC)
        self.running: list[tuple[greenlet, Process]] = []
        self.wakes: dict[greenlet, float] = {}
        self.before: list[tuple[str, bytes | None]] = []  # content of files before each change
        self.faults: dict[tuple[str, int], tuple[str, float]] = {}  # by kind of call and its number: fault, seconds
        self.calls, self.writes, self.tokens, self.old = 0, 0, 0, 0
        self.states: list[tuple[int, Process | None, State]] = []
        self.fenced: set[tuple[int, str, int]] = set()  # leases of processes that others have taken over, and begun
        self.violation: Violated | None = None
        self.latest = self.wall  # to which the clock was ever set
        self.holders: dict[str, dict[int, int]] = {}  # processes by names of leases and numbers of their entries

    @property
    def process(self) -> Process:
        return getcurrent().process

    def spawn(self, process: Process, target: Callable[[], None]) -> greenlet:
        made = greenlet(target)
        made.process = process
        self.running.append((made, process))
        return made

    def step(self) -> None:
        """Let others go on."""
        getcurrent().parent.switch()

    def sleep(self, seconds: float) -> None:
        self.wakes[getcurrent()] = self.clock + seconds
        self.step()

    def token(self) -> SimpleNamespace:
        self.tokens += 1
        return SimpleNamespace(hex=f"{self.tokens:08x}" * 4)

    def die(self) -> None:
        self.process.dead = True
        self.step()

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], timeout: float) -> Any:
        """Make a call of the store, perhaps with a fault."""
        self.step()
        self.calls += 1
        fault, seconds = self.faults.get(("call", self.calls), ("", 0.0))
        if getattr(function, "__name__", "") == "change":
            self.writes += 1
            fault, seconds = self.faults.get(("write", self.writes), (fault, seconds))
        match fault:
            case "pause":
                self.process.paused_until = self.clock + seconds
                self.step()
            case "die before":
                self.die()
            case "fail":
                raise ConnectionResetError("failed")
            case "old answer":
                self.old = 1 + int(seconds) % 3
            case "set the clock":
                self.wall += timedelta(hours=seconds - 60)
                self.latest = max(self.latest, self.wall)
        try:
            answer = function(*args)
        finally:
            self.old = 0
        if fault == "die after":
            self.die()
        if fault == "lose the answer":
            raise ConnectionResetError("lost")
        return answer

    def seen(self) -> dict[str, bytes]:
        """Return the files; without the last changes for an answer that is old."""
        if not self.old:
            return self.files
        files = dict(self.files)
        for path, content in reversed(self.before[-self.old :]):
            if content is None:
                files.pop(path, None)
            else:
                files[path] = content
        return files

    def put(self, path: str, content: bytes) -> None:
        self._check_write(path, content)
        self.before.append((path, self.files.get(path)))
        self.files[path] = content
        if path.startswith("work/models/state/"):
            self._check_state(path)
        elif path.startswith("work/leases/"):
            name, number = path.split("/")[2], int(path[-13:-5])
            self.holders.setdefault(name, {}).setdefault(number, self.process.number)

    def delete(self, path: str) -> None:
        for name in [name for name in self.files if name == path or name.startswith(f"{path}/")]:
            self._check_delete(name)
            self.before.append((name, self.files.pop(name)))

    def _violate(self, problem: str) -> None:
        """End the schedule; an error here would be retried, as one of the store."""
        self.violation = Violated(problem)
        self.die()

    def _check_write(self, path: str, content: bytes) -> None:
        if path.startswith("work/models/state/") and self.files.get(path, content) != content:
            self._violate(f"{path} was changed after it was created")

    def _check_state(self, path: str) -> None:
        number, values = int(path[-13:-5]), json.loads(self.files[path])
        made = State(
            tuple(values["served"]),
            values["tags"],
            tuple(values["condemned"]),
            {key: state.Hold(**hold) for key, hold in values["holds"].items()},
            values["frozen"],
            number=number,
            change=state.Change(**values["change"]),
        )
        last = self.states[-1]
        if number == last[0]:
            return  # the same content again
        if number != last[0] + 1:
            self._violate(f"state {number} was created after state {last[0]}")
        if made != model(last[2], made, self.latest, self._undamaged()):
            self._violate(f"{made.change.action} made {made} of {last[2]}")
        process = self.process
        if made != last[2] and any((process.number, *held) in self.fenced for held in process.leases.items()):
            self._violate(f"process {process.number} made state {number}, but its lease was taken over before")
        is_night = process.operation.startswith("night") and made.change.request.startswith(process.key)
        if is_night and last[2].name not in (process.base, made.name):
            self._violate(f"the night that began at {process.base} replaced {last[2].name}")
        if made.name and f"work/models/{made.name}/{MANIFEST}" not in self.files:
            self._violate(f"{made.name} is served and not there")
        self.states.append((number, process, made))

    def _undamaged(self) -> set[str]:
        """Return the names of the first versions that are there and undamaged."""
        folders = {name: f"work/models/{name}/" for name in NAMES}
        return {name for name, at in folders.items() if at + MANIFEST in self.files and at + DAMAGE not in self.files}

    def _check_delete(self, path: str) -> None:
        version = path.split("/")[2] if path.startswith("work/models/v") else ""
        newest = self.states[-1][2]
        now = self.wall.isoformat()
        held = {hold.version for hold in newest.holds.values() if not hold.until or hold.until > now}
        served = set() if newest.name in newest.condemned else {newest.name}  # the model says when
        if version and version in {*served, *newest.tags.values(), *held}:
            self._violate(f"{path} was deleted, but it is needed by {newest}")
        if path.startswith("work/models/state/"):
            self._violate(f"{path} was deleted")


class Files(AbstractFileSystem):
    """The files of the world, as fsspec has them."""

    protocol = "sim"
    cachable = False

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        files = self._world.seen()
        if path not in files:
            raise FileNotFoundError(path)
        return files[path][start:end]

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        if mode == "create" and path in self._world.files:
            raise FileExistsError(path)
        self._world.put(path, value)

    def ls(self, path: str, detail: bool = False, **_: Any) -> list[str]:
        below = {name[len(path) + 1 :].split("/")[0] for name in self._world.seen() if name.startswith(f"{path}/")}
        if not below:
            raise FileNotFoundError(path)
        return [f"{path}/{name}" for name in below]

    def exists(self, path: str, **_: Any) -> bool:
        return any(name == path or name.startswith(f"{path}/") for name in self._world.seen())

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return {"name": path, "size": len(self.cat_file(path)), "type": "file"}

    def size(self, path: str) -> int:
        return len(self.cat_file(path))

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        if not self.exists(path):
            raise FileNotFoundError(path)
        self._world.delete(path)


class _Event:
    """`threading.Event` on the world's clock."""

    def __init__(self, world: World) -> None:
        self._world, self._is_set = world, False

    def set(self) -> None:
        self._is_set = True

    def wait(self, seconds: float) -> bool:
        end = self._world.clock + seconds
        while not self._is_set and self._world.clock < end:
            self._world.sleep(min(10.0, end - self._world.clock))
        return self._is_set


class _Thread:
    """`threading.Thread` as a greenlet of the same process."""

    def __init__(self, world: World, target: Callable[[], None], daemon: bool = True) -> None:
        self._world, self._target = world, target

    def start(self) -> None:
        self._world.spawn(self._world.process, self._target)

    def join(self) -> None:
        """Signs of life end by themselves."""


def _damage(version: Store, *, full: bool = False) -> list[DamageError]:
    is_damaged = version.read_manifest() is None or version.read_bytes(DAMAGE) is not None
    return [DamageError.of(f"{version.url}/{MANIFEST}", "is damaged")] if is_damaged else []


def _check_version(version: Store) -> None:
    for error in _damage(version):
        raise error


@contextmanager
def simulated(world: World) -> Iterator[None]:
    """Replace the store, the clock, threads and names of processes by those of the world."""
    files = Files(world)
    clock = SimpleNamespace(monotonic=lambda: world.clock, sleep=world.sleep)
    threading = SimpleNamespace(
        Thread=partial(_Thread, world), Event=partial(_Event, world), get_ident=lambda: world.process.number
    )
    now = SimpleNamespace(now=lambda _: world.wall, fromisoformat=datetime.fromisoformat)

    def taking(folder: Store, name: str, what: str, waiting: Any) -> Any:
        token, dead = acquire(folder, name, what, waiting)
        world.process.leases.pop(name, None)  # the last one is the newest
        world.process.leases[name] = token.number
        return token, dead

    def fencing(work: Store, holder: str) -> None:
        fence_versions(work, holder)
        name, taken = list(world.process.leases.items())[-1]
        for _, process in world.running:  # whoever lost the lease to this process may not change a state any more
            if process.leases.get(name, taken) < taken:
                world.fenced.add((process.number, name, process.leases[name]))

    acquire = lease._acquire
    patches = {
        (retries, "call_in_time"): world.call,
        (retries, "time"): clock,
        (retries, "random"): SimpleNamespace(uniform=lambda low, high: 1.0),
        (lease, "time"): clock,
        (lease, "POLL"): 15.0,  # instead of 1 s: fewer calls
        (lease, "threading"): threading,
        (lease, "os"): SimpleNamespace(getpid=lambda: world.process.number),
        (lease, "_get_machine"): lambda: world.process.machine,
        (lease, "_get_start_time"): partial(_born, world),
        (lease, "_acquire"): taking,
        (numbered, "uuid"): SimpleNamespace(uuid4=world.token),
        (versions_module, "uuid"): SimpleNamespace(uuid4=world.token),
        (versions_module, "datetime"): now,
        (state, "datetime"): now,
        (versions_module, "check_version"): _check_version,
        (versions_module, "fence_versions"): fencing,
        (finished, "find_version_damage"): _damage,
        (Store, "_filesystem"): lambda self: (files, self.url.partition("://")[2]),
    }
    with ExitStack() as stack:
        for (owner, name), value in patches.items():
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


def _born(world: World, pid: int) -> str | None:
    return next((str(pid) for _, process in world.running if process.number == pid and not process.dead), None)


def _night(process: Process, stage: bool) -> Any:
    """Retrain as `retrain` does, with a version that needs no training."""
    store, none = Store(URL), cast(Any, None)
    fencing = partial(versions_module.fence_versions, store)
    try:
        with lease.hold(store, "retrain", "the retraining", taken_over=fencing) as held:
            work = held.guard(store)
            process.base = latest_version(work / "models")
            run = f"{process.number:012x}"
            with lease.hold_run(work, run, fencing) as own:
                guarded = own.guard(work)
                version = next_version(guarded / "models", run)
                (guarded / "models" / version).finish_manifest(OLD)
                resources = Resources(stage=stage)
                night = retrain_module.RetrainingRun(
                    none, guarded, none, resources, none, none, False, none, none, process.key
                )
                outcome, _ = night._serve(version, process.base)
            if outcome is Outcome.PUBLISHED:
                Versions(work).gc(keep=2)
            return outcome
    except BusyError:
        return Outcome.BUSY
    except StoreError as error:
        if retrain_module._served_by(store, process.key) is not None:
            return Outcome.PUBLISHED
        return error


OPERATIONS: dict[str, Callable[[Process, Versions], Any]] = {
    "night": lambda process, versions: _night(process, stage=False),
    "night, staged": lambda process, versions: _night(process, stage=True),
    "publish 1": lambda process, versions: versions.publish(NAMES[0], request=process.key),
    "publish 2": lambda process, versions: versions.publish(NAMES[1], request=process.key),
    "publish 1 twice": lambda process, versions: versions.publish(NAMES[0], request="twice"),
    "rollback": lambda process, versions: versions.rollback(request=process.key),
    "rollback twice": lambda process, versions: versions.rollback(request="back"),
    "rollback to 1": lambda process, versions: versions.rollback(NAMES[0], request=process.key),
    "tag 1": lambda process, versions: versions.tag(NAMES[0], "stable", reason=process.key),
    "tag 2": lambda process, versions: versions.tag(NAMES[1], "stable", reason=process.key),
    "publish 1 in place of 3": lambda process, versions: versions.publish(
        NAMES[0], expected=NAMES[2], request=process.key
    ),
    "untag": lambda process, versions: versions.untag("stable", reason=process.key),
    "gc": lambda process, versions: versions.gc(keep=1),
    "gc --damaged": lambda process, versions: versions.gc(keep=1, damaged=True),
    "damage 2": lambda process, versions: (versions.models / NAMES[1]).write_bytes(DAMAGE, b""),
    "damage 3": lambda process, versions: (versions.models / NAMES[2]).write_bytes(DAMAGE, b""),
    "freeze": lambda process, versions: versions.freeze(),
    "unfreeze": lambda process, versions: versions.unfreeze(),
    "hold 1": lambda process, versions: versions.hold(NAMES[0], process.key),
    "read": lambda process, versions: _read(versions),
}
# Operations that make one state, and what a state has after others
ONE_CHANGE = ("publish 1", "publish 2", "publish 1 in place of 3", "rollback", "rollback to 1", "hold 1")
EFFECTS: dict[str, Callable[[State], bool]] = {
    "publish 1 twice": lambda made: made.change.request == "twice",
    "rollback twice": lambda made: made.change.request == "back",
    "tag 1": lambda made: made.tags.get("stable") == NAMES[0],
    "tag 2": lambda made: made.tags.get("stable") == NAMES[1],
    "untag": lambda made: made.change.action == "untag stable",
    "freeze": lambda made: made.frozen is not None,
}


def _read(versions: Versions) -> list[str]:
    """Open what is served, and keep a version while it is read."""
    names = [read_resolved(lambda store: (store.read_manifest(), store.name)[1], URL) for _ in range(2)]
    with versions.holding(hours=24 * 3650) as version:  # however the clock is set
        for _ in range(3):
            if (versions.models / version.name).read_manifest() is None:
                raise Violated(f"{version.name} was deleted while it was held")
    return names


def first_files() -> dict[str, bytes]:
    """Return the files of a work directory in which three old versions were published in turn."""
    world = World(Choices([]), {})
    world.states.append((0, None, State()))
    process = Process(0, "first", "publish", "")

    def publish() -> None:
        numbered.NumberedLog(Store(URL) / "leases" / "probe").probe()
        for name in NAMES:
            (Store(URL) / "models" / name).write_manifest(OLD)
            versions_module.serve_version(Store(URL) / "models", name)

    with simulated(world):
        world.spawn(process, publish)
        _run(world)
    return world.files


FILES: dict[str, bytes] = {}


def simulate(choices: Choices) -> World:
    """Run one schedule.

    Raises
    ------
    Violated
        If an invariant does not hold.
    """
    if not FILES:
        FILES.update(first_files())
    world = World(choices, FILES)
    for number in (1, 2, 3):
        world.states.append((number, None, State(NAMES[:number][::-1], number=number)))
    for _ in range(choices.below(6)):
        kind = choices.of(("call", "write"))
        number = 1 + choices.below(160 if kind == "call" else 25)
        world.faults[kind, number] = choices.of(FAULTS), choices.of(PAUSES)
    processes = [
        Process(number, choices.of(("here", "there")), choices.of([*OPERATIONS, "night", "night"]), f"key{number}")
        for number in range(1, 3 + choices.below(3))
    ]
    with simulated(world):
        for process in processes:
            world.spawn(process, partial(_operate, process))
        _run(world)
        final = Process(0, "last", "read", "")
        world.spawn(final, partial(_operate, final))
        _run(world)
    _check_end(world, processes)
    return world


def _operate(process: Process) -> None:
    try:
        process.result = OPERATIONS[process.operation](process, Versions(Store(URL)))
    except StoreError as error:
        process.result = error


def _run(world: World) -> None:
    """Run until all processes have ended or died."""
    mains = {process.number: made for made, process in world.running}
    for _ in range(LONGEST):
        alive = [(made, process) for made, process in world.running if not (made.dead or process.dead)]
        world.running = [pair for pair in world.running if not pair[0].dead or pair[0] in mains.values()]
        if all(mains.get(process.number) is None or mains[process.number].dead for _, process in alive):
            return
        times = [max(world.wakes.get(made, 0.0), process.paused_until) for made, process in alive]
        ready = [made for (made, _), time in zip(alive, times, strict=True) if time <= world.clock]
        if not ready:
            world.wall += timedelta(seconds=min(times) - world.clock)
            world.latest = max(world.latest, world.wall)
            world.clock = min(times)
            continue
        chosen = ready[world.choices.below(len(ready))]
        for _ in range(1 + world.choices.below(30)):
            process = chosen.process
            if chosen.dead or process.dead or max(world.wakes.get(chosen, 0.0), process.paused_until) > world.clock:
                break
            chosen.switch()
            world.clock += 0.01
            if world.violation is not None:
                raise world.violation
    raise Violated(f"a schedule has not ended after {LONGEST} steps")


def _check_end(world: World, processes: Sequence[Process]) -> None:
    """Check what each process said against the history."""
    history = [made for _, _, made in world.states]
    for key in {made.change.request for made in history if made.change.request}:
        if sum(made.change.request == key for made in history) > 1:
            raise Violated(f"the request {key} was done twice")
    for process in processes:
        changes = [(made, made.change) for made in history]
        entries = [made for made, change in changes if process.key in (change.request.split(" ")[0], change.reason)]
        if process.dead:
            continue
        said = process.result
        refused = isinstance(said, StoreError) or (isinstance(said, Outcome) and said is not Outcome.PUBLISHED)
        if refused and entries:
            raise Violated(f"{process.operation} ended with {said!r}, but made {entries}")
        if said is Outcome.PUBLISHED and len(entries) != 1:
            raise Violated(f"{process.operation} was published, but made {entries}")
        if not refused and process.operation in ONE_CHANGE and len(entries) != 1:
            raise Violated(f"{process.operation} was done, but made {entries}")
        if not refused and not any(map(EFFECTS.get(process.operation, bool), history)):
            raise Violated(f"{process.operation} was done, but changed nothing")
        if "has taken over" in str(said) and process.number not in _losers(world, processes):
            raise Violated(f"process {process.number} said {said}, but its lease was not taken")
        if process.operation == "read" and isinstance(said, StoreError) and "has taken over" not in str(said):
            raise Violated(f"a reader met {said}")


def _losers(world: World, processes: Sequence[Process]) -> set[int]:
    """Return the processes after whose entries of a lease another one has made an entry."""
    return {
        process.number
        for process in processes
        for name, number in process.leases.items()
        if any(n > number and holder != process.number for n, holder in world.holders[name].items())
    }


def violation(numbers: Sequence[int]) -> Violated | None:
    """Run a schedule; return the violation, or None."""
    try:
        simulate(Choices(numbers))
    except Violated as violated:
        return violated
    return None
