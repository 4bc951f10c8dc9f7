"""The manifest of a finished version. It may come from a stranger, so the types of its entries are checked.

It may also come from a release that took URLs with secrets which are refused now, so it is read without these.
"""

from typing import Any

from daskw2v.safe_text import without_secrets
from daskw2v.store.limits import refused, shown
from daskw2v.store.storage import MANIFEST, Store

_PARTS = ("corpus", "metrics", "params", "resources", "retraining", "tables", "vocabulary")


def read_finished(store: Store) -> dict[str, Any] | None:
    """Return the manifest of a version, without secrets; None if the version is not finished.

    Raises
    ------
    DamageError
        If it is damaged.
    FormatError
        If another daskw2v wrote it, or an entry has the wrong type.
    """
    manifest = store.read_manifest()
    if manifest is None or "tables" not in manifest:
        return None
    place = f"{store.url}/{MANIFEST}"
    for name in _PARTS:
        if manifest.get(name) is None:
            manifest.pop(name, None)
        elif not isinstance(manifest[name], dict):
            raise refused(place, f"holds {name}={shown(manifest[name])}")
    return dict(without_secrets(manifest))
