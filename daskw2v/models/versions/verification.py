"""Checks finished versions, which a power loss, a disk or a person may have damaged."""

from daskw2v.errors import DamageError, VocabularyError
from daskw2v.models.stored.index_files import FOLDER as INDEX
from daskw2v.models.stored.index_files import read_file, read_summary
from daskw2v.models.stored.store import (
    attempt_of,
    check_attempt,
    open_tables,
    read_features,
    read_finished,
    read_ids,
    read_sources,
    read_subwords,
    read_vocabulary,
)
from daskw2v.store.checksums import METADATA
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.store.verification import find_damage


def damage_of(version: Store, *, full: bool = False) -> list[DamageError]:
    """Return the damage of a version, without its index.

    Parameters
    ----------
    version
        Folder of a version that was finished.
    full
        Whether to read the whole version. By default only manifests and metadata are read, and sizes compared.

    Returns
    -------
    list of DamageError
        One for each damaged or missing file; empty if the version is whole.

    Raises
    ------
    FormatError
        If another daskw2v wrote the version.
    StoreError
        If the store fails.
    """
    damage = find_damage(version, full=full, skip=INDEX)
    if version.read_bytes(MANIFEST) is None:
        damage.append(DamageError.of(f"{version.url}/{MANIFEST}", "is missing"))
    return damage or _contradictions(version, full=full)


def check_version(version: Store) -> None:
    """Check a version's manifests, metadata and sizes.

    Raises
    ------
    DamageError
        If a file is damaged or missing.
    StoreError
        As `damage_of`.
    """
    for damage in damage_of(version):
        raise damage


def _contradictions(version: Store, *, full: bool) -> list[DamageError]:
    """Return errors of a version whose files are whole: parts are missing, or do not fit each other."""
    try:
        tables = open_tables(version)
        for table in tables.values():
            if is_bound(version) and not table.array.is_finished:
                raise DamageError.of(f"{table.array.url}/{METADATA}", "lacks the checksums of its chunks")
        check_attempt(version, read_finished(version) or {})
        read_sources(version)
        if full:
            for read in (read_vocabulary, read_subwords, read_features, read_ids):
                read(version)
    except DamageError as damage:
        return [damage]
    except VocabularyError as error:
        return [DamageError(error.problem, error.remedy, version.url)]
    return []


def is_bound(version: Store) -> bool:
    """Return whether the files of a version are bound to it; the files that an older daskw2v wrote are not.

    Raises
    ------
    DamageError
        If the version is damaged.
    """
    return bool(attempt_of(version))


def damage_of_index(version: Store) -> list[DamageError]:
    """Return the damage of a version's index, which can be built again; raises as `damage_of`."""
    try:
        if (version / INDEX).read_manifest() is not None:
            summary = read_summary(version)
            read_file(version, summary, (summary.words, summary.dimensions))
    except DamageError as damage:
        return [damage]
    return []
