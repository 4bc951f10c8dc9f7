"""Published evaluation sets, downloaded once and kept in the layouts that this package reads."""

import hashlib
import posixpath
import zipfile

import fsspec

from daskw2v.errors import InputError, MissingExtraError, ParameterError
from daskw2v.evaluation.catalogue import DATASETS, Dataset
from daskw2v.evaluation.layouts import unpack
from daskw2v.locations import Location, as_url
from daskw2v.storage import Store


def fetch(name: str, folder: Location) -> str:
    """Download a set, unless the folder has it already.

    Parameters
    ----------
    name
        One of `DATASETS`. The terms of use are the set's own: see its `licence` and `page`.
    folder
        Where sets are kept, a path or any fsspec URL. Beside the set, `name.json` says where it comes from; it is
        written last, so that a set without it is downloaded again.

    Returns
    -------
    path
        The file that its evaluation reads, or the folder of files.

    Raises
    ------
    ParameterError
        If there is no such set, or no direct download of it is known and nobody has put it into the folder.
    InputError
        If the download fails, or brings something else than it should.
    StoreError
        If `name.json` is not what this function writes.
    MissingExtraError
        If fsspec lacks a package to read the URL: aiohttp for https.
    """
    dataset = DATASETS.get(name)
    if dataset is None:
        raise ParameterError(f"There is no set {name!r}.", f"Give one of: {', '.join(DATASETS)}.")
    store = Store(as_url(folder, "folder"))
    target, origin = store / dataset.file, f"{name}.json"
    there = target.exists()
    if dataset.url is None:
        if not there:
            raise ParameterError(
                f"No direct download of {name} is known.",
                f"Get it from {dataset.page} and save it as {target.url}, in the layout for {dataset.kind}.",
            )
    elif not there or (store.read_manifest(origin) or {}).get("url") != dataset.url:
        for part, content in _download(dataset, dataset.url).items():
            below, file = posixpath.split(f"{dataset.file}/{part}" if part else dataset.file)
            (store / below if below else store).write_bytes(file, content)
        kept = ("name", "url", "page", "licence", "checksum", "citation")
        store.write_manifest({key: getattr(dataset, key) for key in kept}, origin)
    return target.url


def _download(dataset: Dataset, url: str) -> dict[str, bytes]:
    """Return the files of a set by their names below its folder; "" names the one file of others."""
    try:
        with fsspec.open(url, "rb") as f:
            content: bytes = f.read()
    except ImportError as error:
        raise MissingExtraError(
            f"{url} cannot be read: {error}.", "Install what is missing; for https, run: pip install aiohttp."
        ) from error
    except Exception as error:  # each protocol's package has errors of its own
        raise InputError(
            f"{url} cannot be downloaded: {error!r}.",
            f"Check the network and try again, or get {dataset.name} from {dataset.page}.",
        ) from error
    _check(dataset, url, content)
    try:
        return unpack(dataset.layout, content)
    except (ValueError, LookupError, SyntaxError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{url} is not in the layout '{dataset.layout}': {error!r}.",
            f"Another file may lie there now: get {dataset.name} from {dataset.page}.",
        ) from error


def _check(dataset: Dataset, url: str, content: bytes) -> None:
    if dataset.checksum is None:
        return
    algorithm, _, expected = dataset.checksum.partition(":")
    found = hashlib.new(algorithm, content).hexdigest()
    if found != expected:
        raise InputError(
            f"{url} brought {len(content):,} bytes with {algorithm} {found}, not {expected}.",
            f"Try again; if it stays so, the file was replaced: get {dataset.name} from {dataset.page}.",
        )
