"""The program of the process that `daskw2v.corpus.matching` starts; it imports the standard library only.

Both ends write 8 bytes of length before each message. The process receives a pattern, then pieces of text. It answers
each piece with the number of messages that follow, and the messages: bytes of tokens, lengths of tokens, and number of
tokens of each line; or the index of a line that takes too long.
"""

import re
import signal
import struct
import sys
from array import array
from typing import BinaryIO

_LENGTH = struct.Struct("<q")


class _SlowError(Exception):
    """A line takes too long."""


def _stop(*_: object) -> None:
    """Handle the signal of the timer."""
    raise _SlowError


def _receive(file: BinaryIO) -> bytes | None:
    """Return the next message in a file; None at its end."""
    head = file.read(_LENGTH.size)
    return None if len(head) < _LENGTH.size else file.read(*_LENGTH.unpack(head))


def _match(pattern: re.Pattern[str], data: bytes, seconds: float) -> list[bytes]:
    """Return the messages of an answer: the matches of a pattern in each line of UTF-8, or the index of a slow line.

    A line is slow if it takes more than `seconds` of processor time.
    """
    tokens: list[str] = []
    counts, number = array("q"), 0
    try:
        for number, line in enumerate(data.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")):  # noqa: B007
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds)  # of this process, however busy the machine is
            n_before = len(tokens)
            tokens += [token for match in pattern.finditer(line) if (token := match[0])]
            counts.append(len(tokens) - n_before)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except _SlowError:
        return [str(number).encode()]
    text = "".join(tokens)
    content = text.encode()
    lengths = map(len, tokens) if len(content) == len(text) else (len(token.encode()) for token in tokens)
    return [content, array("q", lengths).tobytes(), counts.tobytes()]


def main() -> None:
    """Answer requests on stdin until its end; answers go to stdout, and seconds are the first argument."""
    signal.signal(signal.SIGVTALRM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal; the other end decides
    requests, answers, seconds = sys.stdin.buffer, sys.stdout.buffer, float(sys.argv[1])
    pattern = re.compile((_receive(requests) or b"").decode("utf-8", "surrogatepass"))
    while (data := _receive(requests)) is not None:
        parts = _match(pattern, data, seconds)
        for part in (_LENGTH.pack(len(parts)), *parts):
            answers.write(_LENGTH.pack(len(part)) + part)
        answers.flush()


if __name__ == "__main__":
    main()
