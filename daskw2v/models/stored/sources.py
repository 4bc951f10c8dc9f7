"""The list of files that a version's text was read from, in the version's folder."""

from collections.abc import Iterable
from dataclasses import asdict

from daskw2v.corpus.files import Source
from daskw2v.errors import DamageError
from daskw2v.models.stored.attempts import ATTEMPT, attempt_of, check_attempt
from daskw2v.store.limits import typed
from daskw2v.store.storage import Store

_SOURCES = "sources"
_FILE = f"{_SOURCES}.json"


def write_sources(store: Store, sources: Iterable[Source]) -> None:
    """Write the list of files that a version's text was read from."""
    values = {_SOURCES: [asdict(source) for source in sources], ATTEMPT: attempt_of(store)}
    store.finish_manifest(values, _FILE, portable=True)


def read_sources(store: Store) -> list[Source] | None:
    """Read the list of files that a version's text was read from; None if the version has none.

    Raises
    ------
    StoreError
        If the list is damaged, or of another version.
    """
    values = store.read_manifest(_FILE)
    if values is None:
        return None
    check_attempt(store, values, _FILE)
    place = f"{store.url}/{_FILE}"
    match values:
        case {"sources": [*sources]}:
            return [typed(Source, source, place) for source in sources]
    raise DamageError.of(place, "is not a list of a version's files")
