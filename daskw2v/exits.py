"""How programs of ours end where they cannot go on: with one sentence on stderr, and an exit code."""

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from daskw2v.errors import Daskw2vError

FAILED, INTERRUPTED = 2, 130


@contextmanager
def one_sentence(wants_traceback: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Leave with 2 after an error of ours or of the system, with 130 after Ctrl-C.

    Parameters
    ----------
    wants_traceback
        Asked after an error: whether all of it is shown.
    """
    try:
        yield
    except BrokenPipeError:  # `daskw2v similar ... | head` is no error
        raise
    except (Daskw2vError, OSError) as error:
        if wants_traceback():
            traceback.print_exc()
        else:
            print(f"Error: {' '.join(str(error).splitlines())}", file=sys.stderr)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on where it stopped.", file=sys.stderr)
        sys.exit(INTERRUPTED)
