"""Deletes files and folders of this machine as a whole or not at all."""

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress


def remove_local(path: str, check: Callable[[], None]) -> None:
    """Delete a file or a folder of this machine; if a check raises an error after it was renamed, rename it back."""
    folder, name = os.path.split(path)
    aside = f"{folder}/.{name}.deleted"
    _remove_tree(aside)  # what an interrupted deletion left
    while True:
        try:
            os.rename(path, aside)
            break
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:  # another process deletes, too
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            _remove_tree(aside)
    try:
        check()
    except Exception:
        with suppress(OSError):  # another process has created it again
            (os.rename if os.path.isdir(aside) else os.link)(aside, path)
        if os.path.isfile(aside):
            os.unlink(aside)
        raise
    _remove_tree(aside)


def _remove_tree(path: str) -> None:
    while os.path.lexists(path):
        with suppress(FileNotFoundError):  # another process deletes it, too
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
