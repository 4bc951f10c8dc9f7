"""Errors of programs: one sentence on stderr, and an exit code."""

import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from daskw2v.errors import Daskw2vError
from daskw2v.escapes import escaped, escaped_lines

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
    except (Daskw2vError, OSError) as error:
        if wants_traceback():
            print(escaped_lines(traceback.format_exc()), end="", file=sys.stderr)
        else:
            print(f"Error: {escaped(' '.join(str(error).splitlines()))}", file=sys.stderr)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on where it stopped.", file=sys.stderr)
        sys.exit(INTERRUPTED)
    finally:
        sys.unraisablehook = before


def _interrupt_again(otherwise: Callable[[Any], object], ignored: Any) -> None:
    """Repeat a Ctrl-C that came while an object was deleted: Python ignores what is raised then, and the run goes on.

    Dask's futures send a message when they are deleted, after each round.
    """
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        main = threading.main_thread().ident  # a signal to it ends what it waits for
        threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT)).start()
    else:
        otherwise(ignored)
