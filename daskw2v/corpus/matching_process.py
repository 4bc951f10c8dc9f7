"""The process of `daskw2v.corpus.matching`; it imports the standard library only.

Both ends write 8 bytes of length before each message. It gets a pattern, then pieces of text; it answers with the
number of messages that follow: bytes of tokens, their lengths, and the tokens of each line; or the number of a line.
"""

import re
import signal
import struct
import sys
from array import array
from typing import BinaryIO

_LENGTH = struct.Struct("<q")


class _SlowError(Exception):
    pass


def _stop(*_: object) -> None:
    raise _SlowError


def _received(file: BinaryIO) -> bytes | None:
    head = file.read(_LENGTH.size)
    return None if len(head) < _LENGTH.size else file.read(*_LENGTH.unpack(head))


def _answer(pattern: re.Pattern[str], data: bytes, seconds: float) -> list[bytes]:
    found: list[str] = []
    counts, number = array("q"), 0
    try:
        for number, line in enumerate(data.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")):  # noqa: B007
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds)  # of this process, however busy the machine is
            before = len(found)
            found += [token for match in pattern.finditer(line) if (token := match[0])]
            counts.append(len(found) - before)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except _SlowError:
        return [str(number).encode()]
    text = "".join(found)
    content = text.encode()
    lengths = map(len, found) if len(content) == len(text) else (len(token.encode()) for token in found)
    return [content, array("q", lengths).tobytes(), counts.tobytes()]


def main() -> None:
    """Answer until there is nothing more to read."""
    signal.signal(signal.SIGVTALRM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal; the other end decides
    requests, answers, seconds = sys.stdin.buffer, sys.stdout.buffer, float(sys.argv[1])
    pattern = re.compile((_received(requests) or b"").decode("utf-8", "surrogatepass"))
    while (data := _received(requests)) is not None:
        parts = _answer(pattern, data, seconds)
        for part in (_LENGTH.pack(len(parts)), *parts):
            answers.write(_LENGTH.pack(len(part)) + part)
        answers.flush()


if __name__ == "__main__":
    main()
