"""Matches of a pattern of Python's `re`, with a bound on the processor time of a line.

`re` holds the interpreter's lock, and nothing but a signal in the main thread interrupts it. Tasks do not run in the
main thread. Therefore a separate process matches. Other engines (regex, RE2) find other matches of the same pattern.
"""

import atexit
import os
import struct
import subprocess
import sys
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import numpy as np

from daskw2v.corpus import matching_process
from daskw2v.corpus.pieces import Tokens, tokens_from_lengths
from daskw2v.errors import InputError

SECONDS = 60.0  # of processor time that a line may take
_SHOWN = 60  # characters of a line in a message
_MAX_IDLE = 4  # idle processes of a pattern
_LENGTH = struct.Struct("<q")


class _Process:
    """A process that matches a pattern (see `matching_process`); it ends with the current process."""

    def __init__(self, pattern: str) -> None:
        # -I and -S: nothing is imported but the standard library
        command = [sys.executable, "-I", "-S", str(Path(matching_process.__file__)), str(SECONDS)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._send(pattern.encode("utf-8", "surrogatepass"))

    def _send(self, content: bytes) -> None:
        """Send a message to the process."""
        self._requests.write(_LENGTH.pack(len(content)) + content)
        self._requests.flush()

    def _read(self, size: int) -> bytes:
        """Read `size` bytes from the process; raises an EOFError if it ends before."""
        content = self._answers.read(size)
        if len(content) < size:
            raise EOFError
        return content

    def _receive(self) -> bytes:
        """Receive a message from the process."""
        return self._read(*_LENGTH.unpack(self._read(_LENGTH.size)))

    def ask(self, data: bytes) -> list[bytes]:
        """Match lines of text; return three messages, or one if a line takes too long.

        Parameters
        ----------
        data
            Lines of UTF-8.

        Returns
        -------
        list of bytes
            UTF-8 of all tokens; length of each token in bytes, as int64; number of tokens of each line, as int64. Or,
            alone, the index of the line that takes too long, in decimal digits.
        """
        self._send(data)
        return [self._receive() for _ in range(*_LENGTH.unpack(self._receive()))]

    def end(self) -> int:
        """End the process; return its exit code."""
        self._process.kill()
        for pipe in (self._requests, self._answers):
            with suppress(BrokenPipeError):  # what was not sent yet
                pipe.close()
        return self._process.wait()


_idle: dict[tuple[int, str, float], list[_Process]] = defaultdict(list)  # by pid of the starter, pattern, SECONDS


@atexit.register
def _end_all() -> None:
    """End all idle processes that the current process started."""
    for (owner, *_), processes in _idle.items():
        while owner == os.getpid() and processes:
            processes.pop().end()


def _ask(idle: list[_Process], pattern: str, data: bytes) -> list[bytes]:
    """Return the answer of `_Process.ask` about lines, from an idle process or else from a new process.

    A new process is also started if an idle process has ended meanwhile.

    Raises
    ------
    InputError
        If a new process ends before it answers.
    """
    while True:
        try:
            process, is_new = idle.pop(), False
        except IndexError:
            process, is_new = _Process(pattern), True
        try:
            answer = process.ask(data)
        except (EOFError, BrokenPipeError) as error:
            code = process.end()
            if is_new:
                raise InputError(
                    f"The process that matches regex:{pattern} ended with exit code {code}.",
                    "The usual cause is memory: give a smaller block_size or fewer threads for each worker.",
                ) from error
        except BaseException:
            process.end()
            raise
        else:
            if len(idle) < _MAX_IDLE:
                idle.append(process)
            else:
                process.end()
            return answer


def matches(pattern: str, data: bytes) -> Tokens:
    """Return the matches of a pattern in each line, as `re.finditer` finds them, as tokens; empty matches are left out.

    Parameters
    ----------
    pattern
        A pattern of Python's `re`.
    data
        Lines of UTF-8.

    Raises
    ------
    InputError
        If a line takes more than `SECONDS` of processor time, or the process that matches is killed.
    """
    answer = _ask(_idle[os.getpid(), pattern, SECONDS], pattern, data)
    if len(answer) == 1:
        number = int(answer[0])
        line = data.decode().split("\n")[number]
        raise InputError(
            f"The tokenizer regex:{pattern} takes more than {SECONDS:g} s of processor time for one line, number "
            f"{number + 1} of the {data.count(bytes([10])):,} lines read at once, which begins {line[:_SHOWN]!r}.",
            "Give a pattern that matches a text in one way only, such as [a-z]+ for ([a-z]+)+, or cut the line.",
        )
    content, lengths, counts = answer
    return tokens_from_lengths(content, np.frombuffer(lengths, np.int64), np.frombuffer(counts, np.int64))
