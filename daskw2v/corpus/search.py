"""From a name to the files that it stands for: itself, all files below a folder, or what a pattern matches."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from fsspec.core import has_magic

from daskw2v.corpus.inputs import shortened
from daskw2v.credentials import refuse_secret
from daskw2v.errors import Daskw2vError, InputError, StoreError
from daskw2v.locations import absolute, filesystem
from daskw2v.steady import steadily

_THREADS = 16  # of metadata requests at once
_CHECK = "Check the path, broken links, and the rights to its folders; workers must see the same files."
_ARRAYS = "zarr.json"  # a file of every folder that Zarr makes


class Matches(NamedTuple):
    """URL and fsspec's info of each file that a name stands for, sorted; and whether some lie in folders it names."""

    files: list[tuple[str, Mapping[str, Any]]]
    in_folders: bool


def find_files(
    name: str, storage_options: Mapping[str, Any], patience: float, *, folders: bool = True, work: str | None = None
) -> Matches:
    """Find the files that a name stands for.

    Of a folder all files below it count but those whose names, or whose folders' names, begin with `.` or `_`: so
    Spark, Hive and Dask name what is no data. Links are followed, to each folder once. The same goes for a pattern that
    matches folders with files that it does not match; of any other all files count that it matches.

    Parameters
    ----------
    name
        URL, path or pattern.
    storage_options
        Options for fsspec.
    patience
        Seconds to wait for each answer.
    folders
        Take files below folders; else a folder is refused where it is named, and passed over where it is matched.
    work
        A folder that is passed over: the work directory.

    Raises
    ------
    InputError
        If nothing is found, it is no file, the name holds a secret, or the filesystem does not answer.
    """
    refuse_secret(name)
    if "::" in name:
        raise InputError(
            f"{shortened(name)} is a chain of filesystems, which cannot be read in blocks.",
            "Name the files themselves.",
        )
    fs, path = filesystem(name, storage_options)
    ask = partial(steadily, place=name, patience=patience)
    with _explained(name):
        fs.invalidate_cache()
        if ask(fs.isfile, path):  # first: a file's name may look like a pattern
            return Matches([(_prefix(name, fs, path) + path, ask(fs.info, path))], False)
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
                raise InputError(f"{name} is the work directory.", "Give the text; it may lie in a folder there.")
            text = partial(_is_text, root=root, work=passed)
            below = {p for p in ask(_below, fs, within) if text(p) and _is_data(p, root)}
            whole = not below <= found.keys()  # else a pattern matches all of these itself
            read = {p for p in found if text(p) and (not whole or _is_data(p, root))} | below
            found |= _infos(fs, ask, sorted(below - found.keys()))
            found = {p: found[p] for p in sorted(read)}
    if within:
        _refuse_arrays(name, found)
    start = _prefix(name.rstrip("/") if path else name, fs, path)
    files = [(start + p, info) for p, info in found.items() if info["type"] == "file"]
    if not files:
        raise _nothing(name, named=named)
    return Matches(files, whole)


def _infos(fs: Any, ask: Callable[..., Any], paths: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return infos, not the listing's: open_source compares with them, and some filesystems tell two things."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(zip(paths, pool.map(partial(ask, fs.info), paths), strict=True))


def _path_on(fs: Any, url: str, storage_options: Mapping[str, Any]) -> str | None:
    """Return the path of a URL if it lies on that filesystem."""
    other, path = filesystem(absolute(url), storage_options)
    return path if type(other) is type(fs) else None


def _root(pattern: str) -> str:
    """Return the folder that all of a pattern's matches lie below."""
    parts = pattern.split("/")
    return "/".join(parts[: next(i for i, part in enumerate(parts) if has_magic(part))])


def _is_text(path: str, root: str, work: str | None) -> bool:
    """Tell whether a path does not lie in the work directory; that may hold all that is looked for, too."""
    return work is None or f"{root}/".startswith(f"{work}/") or not f"{path}/".startswith(f"{work}/")


def _is_data(path: str, root: str) -> bool:
    """Tell whether a path below a folder is one of data, not hidden; nor a store's marker of a folder, "day=1/"."""
    return all(map(_is_shown, path[len(root) :].lstrip("/").split("/")))


def _is_shown(part: str) -> bool:
    return not part.startswith((".", "_")) and bool(part)


def _below(fs: Any, folders: Sequence[str]) -> list[str]:
    """Return the files below folders."""
    if "file" in fs.protocol:
        return list(_below_local(folders))
    return [path for folder in folders for path in fs.find(folder)]


def _below_local(roots: Sequence[str]) -> Iterator[str]:
    """Yield local files: fsspec would leave out what may not be seen, and follow a link round and round."""
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


def _refuse_arrays(name: str, paths: Iterable[str]) -> None:
    """Stop at another work directory, or a model: its files are no text, and some of their names tell nothing."""
    for path in paths:
        if path.rpartition("/")[2] == _ARRAYS:
            raise InputError(
                f"{name} holds Zarr arrays, as a work directory does: {path}.",
                "Move them elsewhere, or give a pattern that matches files of text only.",
            )


def _nothing(name: str, *, named: bool) -> InputError:
    """Return the error where nothing is found."""
    if named:
        return InputError(
            f"{name} is a folder without files to read.", f"Names that begin with . or _ do not count. {_CHECK}"
        )
    is_text = any(character.isspace() for character in name)
    hint = " Inputs are names of files: write text to a file, and name this." if is_text else ""
    return InputError(f"{shortened(name)} matches no file.", f"{_CHECK}{hint}")


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn what a filesystem raises into our error."""
    try:
        yield
    except Exception as error:  # each protocol's package has errors of its own
        said = error.__cause__ if isinstance(error, StoreError) else error
        if isinstance(said, Daskw2vError):
            raise
        raise InputError(
            f"{shortened(name)} cannot be looked for ({type(said).__name__}: {said}).",
            "Check the path, broken links, the rights and the network.",
        ) from error


def _prefix(name: str, fs: Any, path: str) -> str:
    """Return what makes a URL of a path: protocol, and for some filesystems the host; "" for local files."""
    if "file" in fs.protocol:
        return ""
    return name[: len(name) - len(path)] if name.endswith(path) else fs.unstrip_protocol(path)[: -len(path)]
