"""Protocols of leases and states with a part left out, which a simulation has to find."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from daskw2v.models.versions import state
from daskw2v.models.versions import versions as versions_module
from daskw2v.models.versions.versions import Versions
from daskw2v.retraining import retrain as retrain_module
from daskw2v.store import numbered
from daskw2v.store.storage import Store


def _append_without_reading_back(log: numbered.NumberedLog, number: int, values: dict[str, Any]) -> str | None:
    log.folder.create_manifest({**values, "entry": "any"}, f"{number:08}.json")
    return "any"


def _append_over_others(log: numbered.NumberedLog, number: int, values: dict[str, Any]) -> str | None:
    log.folder.write_manifest({**values, "entry": "any"}, f"{number:08}.json")
    return "any"


def _ends_with_once(log: numbered.NumberedLog, number: int, entry: str) -> bool:
    return log.newest_number(number) == number and (log.read(number) or {}).get("entry") == entry


_publish = Versions.publish

# Protocols with a part left out, which a simulation has to find
MUTATIONS: dict[str, tuple[object, str, Any]] = {
    "no state is created at a take-over": (versions_module, "fence", lambda models, action: None),
    "a state is written over another one": (numbered.NumberedLog, "append", _append_over_others),
    "a state is not read back": (numbered.NumberedLog, "append", _append_without_reading_back),
    "guards are not checked": (Store, "check", lambda self: None),
    "a night does not compare its base": (
        Versions,
        "publish",
        lambda self, name, expected="", **options: _publish(self, name, **options),
    ),
    "a request is not remembered": (state, "_MAX_REQUESTS", -(10**9)),
    "gc deletes what is held": (state.Hold, "expired", lambda self, now: True),
    "gc deletes the served version if it is damaged, and serves no other": (
        versions_module,
        "_serve_another",
        lambda state, removed, intact: state,
    ),
    "a failed night is not compared with the history": (retrain_module, "_served_by", lambda work, key: None),
    "one old answer ends a lease": (numbered.NumberedLog, "ends_with", _ends_with_once),
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """Leave a part of the protocol out."""
    owner, attribute, value = MUTATIONS[name]
    with mock.patch.object(owner, attribute, value):
        yield
