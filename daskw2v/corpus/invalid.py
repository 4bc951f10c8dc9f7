"""Handling of invalid input: stop, repair or skip."""

import re
from dataclasses import dataclass

from daskw2v.corpus.pieces import ReadReport
from daskw2v.errors import InputError

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class InvalidInput:
    """The handling of invalid input that the user chose, and a report that counts it.

    Parameters
    ----------
    errors
        "strict", "replace" or "skip".
    report
        Counts what is repaired or skipped.
    """

    errors: str
    report: ReadReport

    def offence(self, place: str, problem: str) -> None:
        """Record invalid input, or stop in strict mode.

        Raises
        ------
        InputError
            If errors is "strict".
        """
        if self.errors == "strict":
            raise InputError(f"{place}: {problem}.", "Repair the file, or give errors='replace' or 'skip'.")
        self.report.first_offence = self.report.first_offence or f"{place}: {problem}"

    def skip(self, place: str, problem: str) -> None:
        """Count a skipped line, or stop in strict mode.

        Raises
        ------
        InputError
            If errors is "strict".
        """
        self.offence(place, problem)
        self.report.skipped += 1

    def utf8(self, data: bytes, url: str, offset: int) -> bytes:
        """Return `data` as valid UTF-8. A skipped line becomes an empty line, so that sentences stay separate.

        Raises
        ------
        InputError
            If errors is "strict" and the data is invalid.
        """
        if data.isascii():
            return data
        try:
            data.decode()
        except UnicodeDecodeError as error:
            self.offence(f"{url} at byte {offset + error.start}", error.reason)
            return b"\n".join([self._repaired(line) for line in data.split(b"\n")])
        return data

    def _repaired(self, line: bytes) -> bytes:
        try:
            line.decode()
        except UnicodeDecodeError:
            if self.errors == "replace":
                self.report.replaced += 1
                return line.decode(errors="replace").encode()
            self.report.skipped += 1
            return b""
        return line

    def scalars(self, texts: list[str], place: str) -> list[str]:
        r"""Handle lone surrogates in strings, as JSON's "\ud800" makes them, in the same way.

        Raises
        ------
        InputError
            If errors is "strict" and a string has one.
        """
        if not any(_SURROGATE.search(text) for text in texts if not text.isascii()):
            return texts
        self.offence(place, "a lone surrogate, which UTF-8 cannot write")
        if self.errors == "replace":
            self.report.replaced += 1
            return [_SURROGATE.sub("\ufffd", text) for text in texts]
        self.report.skipped += 1
        return []
