"""Finds input files by name, and divides them into blocks, each of which one task reads.

A name is that of a file, of a folder, which means all files below it, or a pattern.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from fsspec.core import has_magic

from daskw2v.config.filters import Filters
from daskw2v.corpus.files import Source, TextBlock, open_source, version_of
from daskw2v.corpus.formats import TEXT, Format, find_format
from daskw2v.corpus.formats.base import cut_short
from daskw2v.corpus.inputs import Inputs, names_of, shortened
from daskw2v.corpus.names import check_readable, compression_of, filtered, format_of, of_one_format
from daskw2v.corpus.streams import chunks_of
from daskw2v.errors import Daskw2vError, InputError, StoreError, counted
from daskw2v.extras import needed
from daskw2v.progress import Listener, saying, silent
from daskw2v.store.retries import TIMEOUT, with_retries
from daskw2v.store.threads import in_threads
from daskw2v.store.urls import Location, filesystem, make_absolute

_CHECK = "Check the path, broken links, and the rights to its folders; workers must see the same files."
_BROKEN = "broken link"  # beside fsspec's types
_ARRAYS = "zarr.json"  # every folder of a Zarr store has this file


def find_sources(
    inputs: Inputs,
    format: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float = TIMEOUT,
    *,
    folders: bool = True,
    work: str | None = None,
    filters: Filters = (),
    errors: str = "strict",
    listener: Listener = silent,
) -> list[Source]:
    """Find the input files.

    Parameters
    ----------
    inputs
        fsspec URL, local path or glob pattern, or a list of these. A folder means all files below it, sorted, except
        files whose names, or whose folders' names, begin with `.` or `_`. A pattern means the files that it matches,
        sorted, and all files in the folders that it matches.
    format
        Name of a `Format`, such as "text", "jsonl" or "parquet". If None, each file's name decides: `.jsonl`,
        `.ndjson` and `.json` are JSONL, `.parquet` and `.pq` are Parquet, and so on; all others are text. In folders,
        only files whose names have this format are read; if None, all files of a folder must have one format.
        Compression is always decided by the name.
    storage_options
        Options for fsspec.
    timeout
        Seconds to wait for each answer of the store.
    folders
        Whether to search folders. If not, a named folder is refused and a matched one is skipped.
    work
        URL of the work directory, which is skipped.
    filters
        Which files are read, by columns that their folders name.
    errors
        "strict" refuses links in folders that lead nowhere; "replace" and "skip" pass over them.
    listener
        Called with messages about files that are named more than once, and links that are passed over.

    Returns
    -------
    list of Source
        Files in the order of `inputs`, each once, even if it is named again, also by another path or a link.

    Raises
    ------
    InputError
        If nothing is found or passes the filters, a pipe is named, a folder has files of several formats or a broken
        link, a file has an unknown compression or is not text by its name, or the filesystem does not answer.
    MissingExtraError
        If reading needs a package that is not installed.
    ParameterError
        If `format` is unknown, or an input is not a URL or path, or holds a secret.
    """
    wanted = None if format is None else find_format(format)
    found: list[Source] = []
    say = saying(listener, "find", "files")
    for name in names_of(inputs):
        files, in_folders, broken = find_files(name, storage_options or {}, timeout, folders=folders, work=work)
        if broken:
            _pass_over(broken, errors, say)
        if in_folders:
            read = set(of_one_format(name, [url for url, _ in files], wanted))
            files = [(url, info) for url, info in files if url in read]
        found += [_source(url, info, wanted) for url, info in files]
    return filtered(_each_once(found, say), filters)


def plan_blocks(
    sources: Sequence[Source],
    block_bytes: int,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float = TIMEOUT,
) -> list[TextBlock]:
    """Divide files into blocks. Only the metadata of tables is read.

    Parameters
    ----------
    sources
        Files from `find_sources`. An empty text file has no block; a compressed file is a single block.
    block_bytes
        Size of a block in bytes; for Parquet, the minimum uncompressed size of its row groups together;
        for Arrow IPC and ORC, the size as stored.
    storage_options
        Options for fsspec.
    timeout
        Seconds to wait for each answer of the store.

    Raises
    ------
    InputError
        If a table cannot be read, or a table or compressed file is empty.
    StoreError
        If the store fails repeatedly, or does not answer.
    """
    blocks_of = partial(_blocks, block_bytes=block_bytes, storage_options=storage_options or {}, timeout=timeout)
    return [block for blocks in in_threads(blocks_of, sources) for block in blocks]


def read_chunks(
    url: Location, storage_options: Mapping[str, Any], most: int, timeout: float = TIMEOUT
) -> Iterator[bytes]:
    """Yield the decompressed content of a file, or of all files that a pattern matches, in chunks of bounded size.

    Raises
    ------
    InputError
        If a file cannot be found or read, or the content has more than `most` bytes.
    """
    read = 0
    for source in find_sources(url, TEXT.name, storage_options, timeout, folders=False):
        with open_source(source, storage_options, timeout) as file:
            for chunk in chunks_of(file, source.compression, source.url):
                read += len(chunk)
                if read > most:
                    raise InputError(f"{url} is longer than {most:,} bytes.", "Give a shorter one.")
                yield chunk


def find_files(
    name: str, storage_options: Mapping[str, Any], timeout: float, *, folders: bool = True, work: str | None = None
) -> tuple[list[tuple[str, Mapping[str, Any]]], bool, list[str]]:
    """Find the files of a name.

    A folder means all files below it, except files whose names, or whose folders' names, begin with `.` or `_`: Spark,
    Hive and Dask name files that are not data so. Links are followed, to each folder once. A pattern means the files
    that it matches. If it matches folders with files that it does not match itself, these folders are searched, too.

    Parameters
    ----------
    name
        URL, path or pattern.
    storage_options
        Options for fsspec.
    timeout
        Seconds to wait for each answer.
    folders
        Whether to search folders. If not, a named folder is refused and a matched one is skipped.
    work
        The work directory, which is skipped.

    Returns
    -------
    files
        URL and fsspec's info of each file, sorted.
    in_folders
        Whether folders were searched.
    broken
        Links that lead nowhere.

    Raises
    ------
    InputError
        If nothing is found, the name is not a file, or the filesystem does not answer.
    """
    if "::" in name:
        raise InputError(
            f"{shortened(name)} is a chain of filesystems, which cannot be read in blocks.",
            "Name the files themselves.",
        )
    fs, path = filesystem(name, storage_options)
    ask = partial(with_retries, location=name, timeout=timeout)
    with _explained(name):
        fs.invalidate_cache()
        if ask(fs.isfile, path):  # first, as a file's name may look like a pattern
            return [(_prefix(name, fs, path) + path, ask(fs.info, path))], False, []
        named = ask(fs.isdir, path)
        if named and not folders:
            raise InputError(f"{name} is a directory.", f"Give {name.rstrip('/')}/* for all files in it.")
        if not named and ask(fs.exists, path):
            raise InputError(
                f"{name} is a pipe, a socket or a device, which cannot be read in blocks.", "Copy it to a file first."
            )
        found = _infos(fs, ask, sorted(ask(fs.glob, path)) if not named and has_magic(path) else [])
        within = [path] if named else [p for p, info in found.items() if folders and info["type"] == "directory"]
        whole = False
        if within:
            root = path if named else _root(path)
            passed = None if work is None else _path_on(fs, work, storage_options)
            if named and path == passed:
                raise InputError(f"{name} is the work directory.", "Give the text; it may be in a folder there.")
            text = partial(_is_text, root=root, work=passed)
            below = {p for p in ask(_below, fs, within) if text(p) and _is_data(p, root)}
            whole = not below <= found.keys()  # otherwise the pattern itself matches all of them
            read = {p for p in found if text(p) and (not whole or _is_data(p, root))} | below
            found |= _infos(fs, ask, sorted(below - found.keys()))
            found = {p: found[p] for p in sorted(read)}
    # Another work directory, or a model: its files are not text, which not all of their names show
    arrays = [p for p in found if p.rpartition("/")[2] == _ARRAYS] if within else []
    if arrays:
        raise InputError(
            f"{name} holds Zarr arrays, as a work directory does: {arrays[0]}.",
            "Move them elsewhere, or give a pattern that matches files of text only.",
        )
    start = _prefix(name.rstrip("/") if path else name, fs, path)
    files = [(start + p, info) for p, info in found.items() if info["type"] == "file"]
    broken = [start + p for p, info in found.items() if info["type"] == _BROKEN]
    if not files:
        raise leads_nowhere(broken[0], _CHECK) if broken else _nothing(name, named=named)
    return files, whole, broken


def leads_nowhere(link: str, remedy: str) -> InputError:
    """Return the error for a link that leads nowhere."""
    return InputError(f"{link} is a link to {os.readlink(link)}, which is not there.", remedy)


def _pass_over(broken: Sequence[str], errors: str, say: Callable[[str], None]) -> None:
    """Refuse links that lead nowhere, or report that they are passed over."""
    error = leads_nowhere(broken[0], "Remove the link, or give errors='replace' or 'skip' to pass over such links.")
    if errors == "strict":
        raise error
    others = f", with {counted(len(broken) - 1, 'other link')}" if len(broken) > 1 else ""
    say(f"{error.problem} It is passed over{others}.")


def _each_once(sources: Sequence[Source], say: Callable[[str], None]) -> list[Source]:
    """Return each file once, and report files that are named again, by another name or the same."""
    kept, again = dict[str, Source](), list[Source]()
    real = cache(os.path.realpath)
    for source in sources:
        place = source.url
        if os.path.isabs(place):  # of a local file; its name is looked at in its folder, which many share
            folder, name = os.path.split(place)
            place = os.path.join(real(folder), name)
            place = real(place) if os.path.islink(place) else place
        if kept.setdefault(place, source) is not source:
            again.append(source)
    if again:
        more = f", and {counted(len(again) - 1, 'other file')}" if len(again) > 1 else ""
        say(f"{again[0].url}{more}: named more than once, and read once.")
    return list(kept.values())


def _source(url: str, info: Mapping[str, Any], wanted: Format | None) -> Source:
    compression = compression_of(url)
    format = check_readable(url, wanted.name if wanted is not None else format_of(url))
    if compression == "zstd":
        needed("zstandard", "zstd", f"{url} cannot be read without it.")
    if format.requires is not None:
        needed(*format.requires, f"{url} cannot be read without it.")
    if info.get("size") is None:
        raise InputError(f"{url} has no known size, so it cannot be read in blocks.", "Copy it to a file first.")
    return Source(url, int(info["size"]), version_of(info), format.name, compression)


def _blocks(source: Source, *, block_bytes: int, storage_options: Mapping[str, Any], timeout: float) -> list[TextBlock]:
    if not source.compression:
        return find_format(source.format).cut(source, block_bytes, storage_options, timeout)
    if not source.size:
        raise cut_short(source, source.compression)
    return [TextBlock(source, 0, source.size)]


def _infos(fs: Any, ask: Callable[..., Any], paths: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return fsspec's info of each path.

    The infos of a listing are not used: `open_source` compares with `info`, whose values differ on some filesystems.
    """
    return dict(zip(paths, in_threads(partial(ask, _info, fs), paths), strict=True))


def _info(fs: Any, path: str) -> Mapping[str, Any]:
    try:
        return dict(fs.info(path))
    except OSError:
        if "file" in fs.protocol and os.path.islink(path) and not os.path.exists(path):
            return {"type": _BROKEN}
        raise


def _path_on(fs: Any, url: str, storage_options: Mapping[str, Any]) -> str | None:
    """Return the path of a URL if it is on this filesystem."""
    other, path = filesystem(make_absolute(url), storage_options)
    return path if type(other) is type(fs) else None


def _root(pattern: str) -> str:
    """Return the folder that contains all matches of a pattern."""
    parts = pattern.split("/")
    return "/".join(parts[: next(i for i, part in enumerate(parts) if has_magic(part))])


def _is_text(path: str, root: str, work: str | None) -> bool:
    """Return whether a path may be text: it is not in the work directory, unless `root` itself is."""
    return work is None or f"{root}/".startswith(f"{work}/") or not f"{path}/".startswith(f"{work}/")


def _is_data(path: str, root: str) -> bool:
    """Return whether a path below a folder is data: not hidden, and not an object store's folder marker, "day=1/"."""
    return all(map(_is_shown, path[len(root) :].lstrip("/").split("/")))


def _is_shown(part: str) -> bool:
    return not part.startswith((".", "_")) and bool(part)


def _below(fs: Any, folders: Sequence[str]) -> list[str]:
    """Return the files below folders."""
    if "file" in fs.protocol:
        return list(_below_local(folders))
    return [path for folder in folders for path in fs.find(folder)]


def _below_local(roots: Sequence[str]) -> Iterator[str]:
    """Yield local files. fsspec would ignore folders without permission, and follow links in circles."""
    seen = set()
    for root in roots:
        for place, folders, files in os.walk(root, onerror=_raise, followlinks=True):
            real = os.path.realpath(place)
            folders[:] = [] if real in seen else sorted(filter(_is_shown, folders))
            if real not in seen:
                yield from (os.path.join(place, file) for file in files)
            seen.add(real)


def _raise(error: OSError) -> None:
    raise error


def _nothing(name: str, *, named: bool) -> InputError:
    """Return the error for a name without files."""
    if named:
        return InputError(
            f"{name} is a folder without files to read.", f"Names that begin with . or _ are skipped. {_CHECK}"
        )
    is_text = any(character.isspace() for character in name)
    hint = " Inputs are names of files: write text to a file, and give its name; in Python, iter(texts) is text."
    return InputError(f"{shortened(name)} matches no file.", f"{_CHECK}{hint if is_text else ''}")


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn errors of a filesystem into an InputError."""
    try:
        yield
    except Exception as error:  # each fsspec protocol raises its own errors
        said = error.__cause__ if isinstance(error, StoreError) else error
        if isinstance(said, Daskw2vError):
            raise
        raise InputError(
            f"{shortened(name)} cannot be searched ({type(said).__name__}: {said}).",
            "Check the path, broken links, the rights and the network.",
        ) from error


def _prefix(name: str, fs: Any, path: str) -> str:
    """Return the prefix that makes a path a URL: protocol and, for some filesystems, host; "" for local files."""
    if "file" in fs.protocol:
        return ""
    return name[: len(name) - len(path)] if name.endswith(path) else fs.unstrip_protocol(path)[: -len(path)]
