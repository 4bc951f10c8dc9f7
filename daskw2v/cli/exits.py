"""Errors of programs: one sentence on stderr, and an exit code. URLs in them are shown without secrets.

Those of libraries, which a traceback shows too, may name a URL of `storage_options`.
"""

import _thread
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any

import click

from daskw2v.errors import Daskw2vError
from daskw2v.safe_text import escaped, escaped_lines, masked

FAILED, INTERRUPTED = 2, 130


@contextmanager
def one_sentence(wants_traceback: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Exit with 2 after a Daskw2vError or OSError, with 130 after Ctrl-C.

    Parameters
    ----------
    wants_traceback
        Called after an error; whether to print the traceback instead of one sentence.
    """
    before = sys.unraisablehook
    sys.unraisablehook = partial(_interrupt_again, before)
    try:
        yield
    except BrokenPipeError:  # as in `daskw2v similar ... | head`, which is not an error
        raise
    except click.UsageError as error:  # it may quote any word of the command line
        message = error.format_message()
        if (safe := masked(message)) == message:
            raise
        raise click.UsageError(safe, error.ctx) from None
    except (Daskw2vError, OSError) as error:
        if wants_traceback():
            show_traceback(type(error), error, error.__traceback__)
        else:
            print(f"Error: {escaped(masked(' '.join(str(error).splitlines())))}", file=sys.stderr)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on where it stopped.", file=sys.stderr)
        sys.exit(INTERRUPTED)
    finally:
        sys.unraisablehook = before


def show_traceback(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    """Print the traceback of an error on stderr, as `sys.excepthook` does."""
    print(escaped_lines(masked("".join(traceback.format_exception(kind, error, at)))), end="", file=sys.stderr)


def _interrupt_again(otherwise: Callable[[Any], object], ignored: Any) -> None:
    """Repeat a Ctrl-C that came while an object was deleted: Python ignores what is raised then, and the run goes on.

    Dask's futures send a message when they are deleted, after each round.
    """
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        if sys.platform == "win32":
            again: Callable[[], object] = _thread.interrupt_main
        else:  # a signal to the main thread ends what it waits for
            again = partial(signal.pthread_kill, threading.main_thread().ident or 0, signal.SIGINT)
        threading.Timer(0.05, again).start()
    else:
        otherwise(ignored)
