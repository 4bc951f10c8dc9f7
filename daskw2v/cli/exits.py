"""Errors of programs: one sentence on stderr, and an exit code. URLs are shown without secrets.

Errors of libraries, which a traceback shows, too, may name a URL of `storage_options`.
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
    """Run a block; print an error as one sentence and exit: with 2 after a Daskw2vError or OSError, 130 after Ctrl-C.

    Errors of usage are raised with secrets masked. All other errors, including BrokenPipeError, are raised unchanged.

    Parameters
    ----------
    wants_traceback
        Function, called after an error, that returns whether to print the traceback instead of one sentence.
    """
    before = sys.unraisablehook
    sys.unraisablehook = partial(_interrupt_again, before)
    try:
        yield
    except BrokenPipeError:  # as in `daskw2v similar ... | head`, which is not an error
        raise
    except click.UsageError as error:  # the message may quote any word of the command line
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


def show_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of an error on stderr without secrets; a `sys.excepthook`."""
    print(escaped_lines(masked("".join(traceback.format_exception(kind, error, trace)))), end="", file=sys.stderr)


def _interrupt_again(hook: Callable[[Any], object], ignored: Any) -> None:
    """Repeat a Ctrl-C that came while an object was deleted, when Python ignores errors; else call the earlier hook.

    Dask's futures send a message when they are deleted, after each round. `ignored` is the argument of
    `sys.unraisablehook`.
    """
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        if sys.platform == "win32":
            interrupt: Callable[[], object] = _thread.interrupt_main
        else:  # a signal to the main thread ends what it waits for
            interrupt = partial(signal.pthread_kill, threading.main_thread().ident or 0, signal.SIGINT)
        threading.Timer(0.05, interrupt).start()
    else:
        hook(ignored)
