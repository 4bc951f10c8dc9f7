"""Finds input files by name, and divides them into blocks, each of which one task reads.

A name is the name of a file, the name of a folder, which means all files below the folder, or a pattern.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from fsspec.core import has_magic

from daskw2v.config.filters import Filters
from daskw2v.corpus.files import Source, TextBlock, get_version, open_source
from daskw2v.corpus.formats import TEXT, Format, find_format
from daskw2v.corpus.formats.base import empty_file_error
from daskw2v.corpus.inputs import Inputs, list_names, shorten
from daskw2v.corpus.names import check_readable, detect_compression, detect_format, filter_sources, select_format
from daskw2v.corpus.streams import read_file_chunks
from daskw2v.errors import Daskw2vError, InputError, StoreError, counted
from daskw2v.extras import needed
from daskw2v.progress import Listener, message_sender, silent
from daskw2v.store.retries import TIMEOUT, with_retries
from daskw2v.store.threads import in_threads
from daskw2v.store.urls import Location, filesystem, make_absolute

_CHECK = "Check the path, broken links, and the rights to its folders; workers must see the same files."
_BROKEN = "broken link"  # a type of files, beside those of fsspec's info
_ARRAYS = "zarr.json"  # a file in each folder of a Zarr store
_Info = Mapping[str, Any]  # fsspec's info of a path
_Ask = Callable[..., Any]  # calls a function with arguments, with retries


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
    """Find the input files that names and patterns stand for.

    Parameters
    ----------
    inputs
        fsspec URL, local path or glob pattern, or a list of these. A folder means all files below the folder, sorted,
        except files with names, or with names of folders, that begin with `.` or `_`. A pattern means the files that
        the pattern matches, sorted, and all files in the folders that it matches.
    format
        Name of a `Format`, such as "text", "jsonl" or "parquet". If None, each file's name decides: `.jsonl`,
        `.ndjson` and `.json` are JSONL, `.parquet` and `.pq` are Parquet, and so on; further names are text. In
        folders, only files whose names have the format are read; if None, all files of a folder must have one format.
        Compression is always decided by the name.
    storage_options
        Options for fsspec.
    timeout
        Seconds to wait for each answer of the store.
    folders
        Whether to search folders. If not, a named folder is refused, and a matched folder is skipped.
    work
        URL of the work directory, which is skipped.
    filters
        Conditions on columns that folders name, which select files.
    errors
        "strict" refuses links in folders that lead nowhere; "replace" and "skip" pass over them.
    listener
        Called with messages about files that are named more than once, and links that are passed over.

    Returns
    -------
    list of Source
        Files in the order of `inputs`, each once, even if a file is named again, also by another path or a link.

    Raises
    ------
    InputError
        If no file matches or passes the filters, a pipe is named, a folder has files of several formats or a broken
        link, a file has an unknown compression or is not text by its name, or the filesystem does not answer.
    MissingExtraError
        If reading needs a package that is not installed.
    ParameterError
        If `format` is unknown, or an input is not a URL or path, or holds a secret.
    """
    wanted = None if format is None else find_format(format)
    sources: list[Source] = []
    report = message_sender(listener, "find", "files")
    for name in list_names(inputs):
        files, in_folders, broken = _find_files(name, storage_options or {}, timeout, folders=folders, work=work)
        if broken:
            _pass_over(broken, errors, report)
        if in_folders:
            selected = set(select_format(name, [url for url, _ in files], wanted))
            files = [(url, info) for url, info in files if url in selected]
        sources += [_make_source(url, info, wanted) for url, info in files]
    return filter_sources(_drop_duplicates(sources, report), filters)


def plan_blocks(
    sources: Sequence[Source],
    block_bytes: int,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float = TIMEOUT,
) -> list[TextBlock]:
    """Divide files into blocks, in order. Of tables, only metadata is read; of text files, at most the first bytes.

    Parameters
    ----------
    sources
        Files from `find_sources`. An empty text file has no block; a compressed file is a single block.
    block_bytes
        Size of a block in bytes; for Parquet, the minimum uncompressed size of the block's row groups together;
        for Arrow IPC and ORC, the size as stored.
    storage_options
        Options for fsspec.
    timeout
        Seconds to wait for each answer of the store.

    Raises
    ------
    InputError
        If a table cannot be read, a table or compressed file is empty, or a file is no text by its first bytes.
    StoreError
        If the store fails repeatedly, or does not answer.
    """
    cut = partial(_cut_file, block_bytes=block_bytes, options=storage_options or {}, timeout=timeout)
    return [block for blocks in in_threads(cut, sources) for block in blocks]


def read_chunks(url: Location, options: Mapping[str, Any], max_bytes: int, timeout: float) -> Iterator[bytes]:
    """Yield the decompressed content of a file, or of all files that a pattern matches, in chunks of bounded size.

    Parameters
    ----------
    url
        URL, path or pattern.
    options
        Options for fsspec.
    max_bytes
        Maximum size of the content of all files together.
    timeout
        Seconds to wait for each answer of the store.

    Raises
    ------
    InputError
        If a file does not exist or cannot be read, or the content has more than `max_bytes` bytes.
    """
    n_bytes = 0
    for source in find_sources(url, TEXT.name, options, timeout, folders=False):
        with open_source(source, options, timeout) as file:
            for chunk in read_file_chunks(file, source.compression, source.url):
                n_bytes += len(chunk)
                if n_bytes > max_bytes:
                    raise InputError(f"{url} is longer than {max_bytes:,} bytes.", "Give a shorter one.")
                yield chunk


def _find_files(
    name: str, storage_options: Mapping[str, Any], timeout: float, *, folders: bool, work: str | None
) -> tuple[list[tuple[str, _Info]], bool, list[str]]:
    """Find the files that a name stands for.

    A folder means all files below the folder, except files with names, or with names of folders, that begin with `.` or
    `_`: Spark, Hive and Dask give such names to files that are not data. Links are followed, to each folder once. A
    pattern means the files that it matches. If a pattern matches folders with files that it does not match, these
    folders are searched, too.

    Parameters
    ----------
    name
        URL, path or pattern.
    storage_options, timeout, folders, work
        As in `find_sources`.

    Returns
    -------
    files
        URL and fsspec's info of each file, sorted by URL.
    in_folders
        Whether the name is that of a folder, or a pattern matches folders with files that it does not match.
    broken
        Links that lead nowhere.

    Raises
    ------
    InputError
        If no file matches, the name is that of a pipe or device, or the filesystem does not answer.
    """
    if "::" in name:
        problem = f"{shorten(name)} is a chain of filesystems, which cannot be read in blocks."
        raise InputError(problem, "Name the files themselves.")
    fs, path = filesystem(name, storage_options)
    ask = partial(with_retries, location=name, timeout=timeout)
    with _convert_errors(name):
        fs.invalidate_cache()
        if ask(fs.isfile, path):  # first, as a file's name may look like a pattern
            return [(_url_prefix(name, fs, path) + path, ask(fs.info, path))], False, []
        is_folder = ask(fs.isdir, path)
        if is_folder and not folders:
            raise InputError(f"{name} is a directory.", f"Give {name.rstrip('/')}/* for all files in it.")
        if not is_folder and ask(fs.exists, path):
            problem = f"{name} is a pipe, a socket or a device, which cannot be read in blocks."
            raise InputError(problem, "Copy it to a file first.")
        infos = _read_infos(fs, ask, sorted(ask(fs.glob, path)) if not is_folder and has_magic(path) else [])
        searched = [path] if is_folder else [p for p, info in infos.items() if folders and info["type"] == "directory"]
        in_folders = False
        if searched:
            root, work_path = path if is_folder else _root_folder(path), _path_on(fs, work, storage_options)
            if is_folder and path == work_path:
                raise InputError(f"{name} is the work directory.", "Give the text; it may be in a folder there.")
            infos, in_folders = _search_folders(fs, ask, searched, infos, root, work_path)
            _refuse_arrays(name, infos)
    prefix = _url_prefix(name.rstrip("/") if path else name, fs, path)
    files = [(prefix + p, info) for p, info in infos.items() if info["type"] == "file"]
    broken = [prefix + p for p, info in infos.items() if info["type"] == _BROKEN]
    if not files:
        raise broken_link_error(broken[0], _CHECK) if broken else _no_files_error(name, is_folder=is_folder)
    return files, in_folders, broken


def _search_folders(
    fs: Any, ask: _Ask, folders: Sequence[str], infos: dict[str, _Info], root: str, work: str | None
) -> tuple[dict[str, _Info], bool]:
    """Return fsspec's info of each path that is selected, sorted by path, and whether some of them are not in `infos`.

    Parameters
    ----------
    fs, ask
        As in `_read_infos`.
    folders
        Paths of the folders to search: a named folder, or those that a pattern matches.
    infos
        Info of each path that a pattern matches; the call adds the info of the files below the folders.
    root
        Path of the folder that contains all of these.
    work
        Path of the work directory, which is skipped; None if it is on another filesystem.
    """
    may_be_text = partial(_may_be_text, root=root, work=work)
    below = {p for p in ask(_list_files, fs, folders) if may_be_text(p) and _is_data(p, root)}
    in_folders = not below <= infos.keys()  # otherwise the pattern matches all files below its folders
    selected = {p for p in infos if may_be_text(p) and (not in_folders or _is_data(p, root))} | below
    infos |= _read_infos(fs, ask, sorted(below - infos.keys()))
    return {p: infos[p] for p in sorted(selected)}, in_folders


def _refuse_arrays(name: str, paths: Iterable[str]) -> None:
    """Refuse folders that hold Zarr arrays: a work directory or a model, whose files' names do not show it."""
    if array := next((path for path in paths if path.rpartition("/")[2] == _ARRAYS), None):
        problem = f"{name} holds Zarr arrays, as a work directory does: {array}."
        raise InputError(problem, "Move them elsewhere, or give a pattern that matches files of text only.")


def broken_link_error(link: str, remedy: str) -> InputError:
    """Return the error for a local link that leads nowhere."""
    return InputError(f"{link} is a link to {os.readlink(link)}, which is not there.", remedy)


def _pass_over(broken: Sequence[str], errors: str, report: Callable[[str], None]) -> None:
    """Refuse links that lead nowhere, if `errors` is "strict"; else report that they are passed over."""
    error = broken_link_error(broken[0], "Remove the link, or give errors='replace' or 'skip' to pass over such links.")
    if errors == "strict":
        raise error
    more = f", with {counted(len(broken) - 1, 'other link')}" if len(broken) > 1 else ""
    report(f"{error.problem} It is passed over{more}.")


def _drop_duplicates(sources: Sequence[Source], report: Callable[[str], None]) -> list[Source]:
    """Return each file once, in order, also if it is named again by another path; report such files."""
    distinct, duplicates = dict[str, Source](), list[Source]()
    resolve = cache(os.path.realpath)
    for source in sources:
        path = source.url
        if os.path.isabs(path):  # of a local file; folders are resolved apart, since many files share one
            folder, name = os.path.split(path)
            path = os.path.join(resolve(folder), name)
            path = resolve(path) if os.path.islink(path) else path
        if distinct.setdefault(path, source) is not source:
            duplicates.append(source)
    if duplicates:
        more = f", and {counted(len(duplicates) - 1, 'other file')}" if len(duplicates) > 1 else ""
        report(f"{duplicates[0].url}{more}: named more than once, and read once.")
    return list(distinct.values())


def _make_source(url: str, info: _Info, wanted: Format | None) -> Source:
    """Return the description of a file, from its URL and fsspec's info; refuse a file that cannot be read.

    `wanted` is the format in Params; None if they have none.
    """
    compression = detect_compression(url)
    format = check_readable(url, wanted.name if wanted is not None else detect_format(url))
    if compression == "zstd":
        needed("zstandard", "zstd", f"{url} cannot be read without it.")
    if format.requires is not None:
        needed(*format.requires, f"{url} cannot be read without it.")
    if info.get("size") is None:
        raise InputError(f"{url} has no known size, so it cannot be read in blocks.", "Copy it to a file first.")
    return Source(url, int(info["size"]), get_version(info), format.name, compression)


def _cut_file(source: Source, *, block_bytes: int, options: Mapping[str, Any], timeout: float) -> list[TextBlock]:
    """Return the blocks of a file; arguments and errors are as in `plan_blocks`."""
    if not source.compression:
        return find_format(source.format).cut(source, block_bytes, options, timeout)
    if not source.size:
        raise empty_file_error(source, source.compression)
    return [TextBlock(source, 0, source.size)]


def _read_infos(fs: Any, ask: _Ask, paths: Sequence[str]) -> dict[str, _Info]:
    """Return fsspec's info of each path, by path.

    The infos of a listing are not used: `open_source` compares with `fs.info`, whose values differ from a listing's on
    some filesystems.

    Parameters
    ----------
    fs
        A filesystem of fsspec.
    ask
        Calls a function with arguments, with retries.
    paths
        Paths on the filesystem.
    """
    return dict(zip(paths, in_threads(partial(ask, _read_info, fs), paths), strict=True))


def _read_info(fs: Any, path: str) -> _Info:
    """Return fsspec's info of a path; for a local link that leads nowhere, an info of the type `_BROKEN`."""
    try:
        return dict(fs.info(path))
    except OSError:
        if "file" in fs.protocol and os.path.islink(path) and not os.path.exists(path):
            return {"type": _BROKEN}
        raise


def _path_on(fs: Any, url: str | None, storage_options: Mapping[str, Any]) -> str | None:
    """Return the path of a URL on a filesystem of fsspec; None without URL, or on a filesystem of another type."""
    if url is None:
        return None
    url_fs, path = filesystem(make_absolute(url), storage_options)
    return path if type(url_fs) is type(fs) else None


def _root_folder(pattern: str) -> str:
    """Return the path of the folder that contains all matches of a pattern."""
    parts = pattern.split("/")
    return "/".join(parts[: next(i for i, part in enumerate(parts) if has_magic(part))])


def _may_be_text(path: str, root: str, work: str | None) -> bool:
    """Return whether a path below `root` may be text: it is not in the work directory, unless `root` is in it, too."""
    return work is None or f"{root}/".startswith(f"{work}/") or not f"{path}/".startswith(f"{work}/")


def _is_data(path: str, root: str) -> bool:
    """Return whether a path below a folder is data: not hidden, and not an object store's folder marker, "day=1/"."""
    return all(map(_is_visible, path[len(root) :].lstrip("/").split("/")))


def _is_visible(part: str) -> bool:
    """Return whether a part of a path is not empty, and does not begin with `.` or `_`."""
    return not part.startswith((".", "_")) and bool(part)


def _list_files(fs: Any, folders: Sequence[str]) -> list[str]:
    """Return the paths of the files below folders of a filesystem."""
    if "file" in fs.protocol:
        return list(_walk_local(folders))
    return [path for folder in folders for path in fs.find(folder)]


def _walk_local(roots: Sequence[str]) -> Iterator[str]:
    """Yield the paths of the files below local folders, of each folder once.

    fsspec would ignore folders without permission, and follow links in circles.
    """
    visited = set()
    for root in roots:
        for parent, folders, files in os.walk(root, onerror=_raise, followlinks=True):
            real = os.path.realpath(parent)
            folders[:] = [] if real in visited else sorted(filter(_is_visible, folders))
            if real not in visited:
                yield from (os.path.join(parent, file) for file in files)
            visited.add(real)


def _raise(error: OSError) -> None:
    """Raise an error that `os.walk` reports."""
    raise error


def _no_files_error(name: str, *, is_folder: bool) -> InputError:
    """Return the error for a name that stands for no files: of a folder, or a name or pattern that matches none."""
    if is_folder:
        problem = f"{name} is a folder without files to read."
        return InputError(problem, f"Names that begin with . or _ are skipped. {_CHECK}")
    is_text = any(character.isspace() for character in name)
    hint = " Inputs are names of files: write text to a file, and give its name; in Python, iter(texts) is text."
    return InputError(f"{shorten(name)} matches no file.", f"{_CHECK}{hint if is_text else ''}")


@contextmanager
def _convert_errors(name: str) -> Iterator[None]:
    """Turn errors that a filesystem raises in the block into an InputError about a name."""
    try:
        yield
    except Exception as error:  # each fsspec protocol has errors of its own
        cause = error.__cause__ if isinstance(error, StoreError) else error
        if isinstance(cause, Daskw2vError):
            raise
        problem = f"{shorten(name)} cannot be searched ({type(cause).__name__}: {cause})."
        raise InputError(problem, "Check the path, broken links, the rights and the network.") from error


def _url_prefix(name: str, fs: Any, path: str) -> str:
    """Return the prefix that makes a path a URL: protocol and, for some filesystems, host; "" for local files.

    Parameters
    ----------
    name, path
        The user's name of the path, and the path on the filesystem.
    fs
        The filesystem of fsspec.
    """
    if "file" in fs.protocol:
        return ""
    return name[: len(name) - len(path)] if name.endswith(path) else fs.unstrip_protocol(path)[: -len(path)]
