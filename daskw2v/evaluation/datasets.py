"""Downloads of published evaluation sets, converted to the layouts that this package reads."""

import ast
import csv
import hashlib
import io
import posixpath
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from typing import Literal

from daskw2v.errors import InputError, MissingExtraError, ParameterError
from daskw2v.evaluation.reading import MAX_BYTES
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location, as_url, filesystem

Kind = Literal["similarity", "analogy", "categorization", "classification", "outliers"]
FileLayout = Literal["ready", "word classes", "analogy table", "labels", "labels cp1252", "topics", "zip"]
_MAX_UNPACKED = 1 << 28  # bytes to unpack from an archive
Files = dict[str, bytes]  # content by name below the set's folder; "" for a set that is a single file


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One evaluation set.

    Parameters
    ----------
    name
        Name of the set, for `datasets`.
    kind
        Evaluation that reads it.
    url
        URL of the download; None if no direct download is known.
    page
        Page that describes the set or links to it.
    licence
        Terms of use, as far as known.
    checksum
        Digest of the download, `sha1:` or `sha256:` and hexadecimal digits; None if unknown.
    citation
        Authors, year and title of the paper to cite.
    note
        Size of the set, and remarks on its use.
    layout
        Layout of the downloaded file, as in `unpack`.
    path
        File or folder that it was downloaded to, for `evaluate`; None for a set that is only listed.
    """

    name: str
    kind: Kind
    url: str | None = None
    page: str
    licence: str = "not stated"
    checksum: str | None = None
    citation: str
    note: str
    layout: FileLayout = "ready"
    path: str | None = None

    @property
    def file(self) -> str:
        """Name of the file or folder that `datasets` writes."""
        if self.layout in ("topics", "zip"):
            return self.name
        return f"{self.name}.txt" if self.kind == "analogy" else f"{self.name}.tsv"


_CATALOGUE = tomllib.loads(resources.files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8"))
DATASETS = {name: Dataset(name=name, **entries) for name, entries in _CATALOGUE.items()}


def datasets(*names: str, folder: Location = "datasets") -> dict[str, Dataset]:
    """List published evaluation sets, or download sets by name.

    Parameters
    ----------
    names
        Sets to download; without names, all sets are listed, and nothing is downloaded. Each set has its own terms of
        use: see its `licence` and `page`.
    folder
        Folder to download to, a path or any fsspec URL. A set that the folder has is not downloaded again.

    Returns
    -------
    sets
        The sets by name. Downloaded sets have a `path`, for `evaluate`.

    Raises
    ------
    ParameterError
        If a name is unknown, or a set has no direct download and is not in the folder.
    InputError
        If a download fails, or its checksum or layout is wrong.
    StoreError
        If the folder's `NAME.json`, which names a set's origin, was not written by this function.
    MissingExtraError
        If fsspec needs a package to read the URL that is not installed: aiohttp for https.

    Examples
    --------
    >>> sets = daskw2v.datasets()
    >>> sets["simlex999"].kind, sets["simlex999"].path
    ('similarity', None)

    `daskw2v.datasets("simlex999")["simlex999"].path` is the file to evaluate on.
    """
    folder = as_url(folder, "folder")
    if not names:
        return dict(DATASETS)
    for name in names:
        if not isinstance(name, str) or name not in DATASETS:
            raise ParameterError(f"There is no set {name!r}.", f"Give one of: {', '.join(DATASETS)}.")
    return {name: replace(DATASETS[name], path=fetch(DATASETS[name], Store(folder))) for name in names}


def fetch(dataset: Dataset, store: Store) -> str:
    """Download a set, unless the folder has it, and return the URL, or absolute path, of its file or folder.

    A file `NAME.json` beside the set says where it comes from. It is written last: a set without it is downloaded
    again, if that is possible. Raises as `datasets` does.
    """
    name, origin = dataset.name, f"{dataset.name}.json"
    target = store / dataset.file
    is_present = target.exists()
    if dataset.url is None:
        if not is_present:
            remedy = f"Get it from {dataset.page} and save it as {target.url}, in the layout for {dataset.kind}."
            raise ParameterError(f"No direct download of {name} is known.", remedy)
    elif not is_present or (store.read_manifest(origin) or {}).get("url") != dataset.url:
        for part, content in _download(dataset, dataset.url).items():
            parent, file = posixpath.split(f"{dataset.file}/{part}" if part else dataset.file)
            (store / parent if parent else store).write_bytes(file, content)
        kept = ("name", "url", "page", "licence", "checksum", "citation")
        store.write_manifest({key: getattr(dataset, key) for key in kept}, origin)
    return target.url


def _download(dataset: Dataset, url: str) -> Files:
    """Download a set from a URL, check and unpack it, and return its files, as `unpack` does; raises as `datasets`."""
    remedy = f"get {dataset.name} from {dataset.page}."
    try:
        fs, path = filesystem(url, {})
        with fs.open(path, "rb") as f:
            content: bytes = f.read(MAX_BYTES + 1)
    except ImportError as error:
        install = "Install the missing package; for https, run: pip install aiohttp."
        raise MissingExtraError(f"{url} cannot be read: {error}.", install) from error
    except Exception as error:  # each fsspec protocol raises its own errors
        check = f"Check the network and try again, or {remedy}"
        raise InputError(f"{url} cannot be downloaded: {error!r}.", check) from error
    if len(content) > MAX_BYTES:
        raise InputError(f"{url} has more than {MAX_BYTES:,} bytes.", f"The file may have been replaced: {remedy}")
    if dataset.checksum is not None:
        algorithm, _, expected = dataset.checksum.partition(":")
        digest = hashlib.new(algorithm, content).hexdigest()
        if digest != expected:
            problem = f"{url} returned {len(content):,} bytes with {algorithm} {digest}, not {expected}."
            raise InputError(problem, f"Try again; if the error stays, the file was replaced: {remedy}")
    try:
        return unpack(dataset.layout, content)
    except (ValueError, LookupError, SyntaxError, zipfile.BadZipFile) as error:
        problem = f"{url} is not in the layout '{dataset.layout}': {error!r}."
        raise InputError(problem, f"The file may have been replaced: {remedy}") from error


def unpack(layout: FileLayout, content: bytes) -> Files:
    """Convert a published file to the layouts that this package reads.

    Parameters
    ----------
    layout
        Layout of the published file:

        - `ready`: needs no conversion;
        - `word classes`: CSV with the columns category and word;
        - `analogy table`: CSV with the columns type, word1, word2, word3 and target;
        - `labels`, `labels cp1252`: lines of a label, a space and a text, in UTF-8 or in cp1252;
        - `topics`: CSV with the columns category, words and outliers, the last two written as Python lists;
        - `zip`: archive of text files.
    content
        Bytes of the file.

    Returns
    -------
    files
        Content of the converted files by name below the set's folder, or by "" if the set is a single file.

    Raises
    ------
    ValueError, LookupError, SyntaxError, zipfile.BadZipFile
        If the content is not in the layout.
    """
    return _UNPACKERS[layout](content)


def _convert_classes(content: bytes) -> Files:
    """Convert a CSV of categories and words to lines of a word, a tab and a class."""
    return _as_file(f"{row['word']}\t{row['category']}" for row in _read_csv(content) if row["word"].strip())


def _convert_analogies(content: bytes) -> Files:
    """Convert a CSV of analogies to lines of four words, below lines `: type`."""
    categories: dict[str, list[str]] = {}
    for row in _read_csv(content):
        question = " ".join(row[column] for column in ("word1", "word2", "word3", "target"))
        categories.setdefault(row["type"], []).append(question)
    return _as_file(line for name, questions in categories.items() for line in (f": {name}", *questions))


def _convert_labels(content: bytes, encoding: str = "utf-8") -> Files:
    """Convert lines of a label, a space and a text to lines with a tab between; empty texts are left out."""
    split_lines = (line.split(maxsplit=1) for line in content.decode(encoding).split("\n"))
    return _as_file("\t".join(parts).rstrip() for parts in split_lines if len(parts) == 2)


def _convert_topics(content: bytes) -> Files:
    """Convert a CSV of topics to a file for each: its words, a blank line, its outliers."""
    files = {}
    for row in _read_csv(content):
        groups = [[word for word in ast.literal_eval(row[column]) if word] for column in ("words", "outliers")]
        files[f"{row['category']}.txt"] = "\n\n".join("\n".join(group) for group in groups).encode() + b"\n"
    return files


def _unpack_zip(content: bytes) -> Files:
    """Unpack the .txt files of an archive; their names lose the outermost folder."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".txt") and not name.startswith("__MACOSX/")]
        if any(".." in name.split("/") for name in names):
            raise ValueError("a name contains '..'")
        # zipfile unpacks no more than these sizes
        if sum(archive.getinfo(name).file_size for name in names) > _MAX_UNPACKED:
            raise ValueError(f"its files have more than {_MAX_UNPACKED:,} bytes")
        return {name.partition("/")[2] or name: archive.read(name) for name in names}


def _read_csv(content: bytes) -> Iterator[dict[str, str]]:
    """Return an iterator of the rows of a CSV file, each a dict by the names of columns."""
    return csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))


def _as_file(lines: Iterable[str]) -> Files:
    """Return a set that is a single file of these lines."""
    return {"": "".join(f"{line}\n" for line in lines).encode()}


_UNPACKERS: dict[str, Callable[[bytes], Files]] = {
    "ready": lambda content: {"": content},
    "word classes": _convert_classes,
    "analogy table": _convert_analogies,
    "labels": _convert_labels,
    "labels cp1252": partial(_convert_labels, encoding="cp1252"),
    "topics": _convert_topics,
    "zip": _unpack_zip,
}
