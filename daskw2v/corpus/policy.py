"""What is done with input that breaks the rules: stop, repair or leave out."""

import re
from dataclasses import dataclass

from daskw2v.corpus.pieces import ReadReport
from daskw2v.errors import InputError

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Policy:
    """The user's choice for invalid input, and the report that counts what it met.

    Parameters
    ----------
    errors
        "strict", "replace" or "skip".
    report
        Counts what is repaired or left out.
    """

    errors: str
    report: ReadReport

    def offence(self, place: str, problem: str) -> None:
        """Record an offence, or stop at it.

        Raises
        ------
        InputError
            If errors is "strict".
        """
        if self.errors == "strict":
            raise InputError(f"{place}: {problem}.", "Repair the file, or give errors='replace' or 'skip'.")
        self.report.first_offence = self.report.first_offence or f"{place}: {problem}"

    def skip(self, place: str, problem: str) -> None:
        """Leave a line out, or stop at it.

        Raises
        ------
        InputError
            If errors is "strict".
        """
        self.offence(place, problem)
        self.report.skipped += 1

    def utf8(self, data: bytes, url: str, offset: int) -> bytes:
        """Return `data` as valid UTF-8. A line left out stays as an empty line, so no sentences run together.

        Raises
        ------
        InputError
            If errors is "strict" and the data are not valid.
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
        r"""Do the same for strings that may hold lone surrogates, as JSON's "\ud800" makes them.

        Raises
        ------
        InputError
            If errors is "strict" and a string holds one.
        """
        if not any(_SURROGATE.search(text) for text in texts if not text.isascii()):
            return texts
        self.offence(place, "a lone surrogate, which UTF-8 cannot write")
        if self.errors == "replace":
            self.report.replaced += 1
            return [_SURROGATE.sub("\ufffd", text) for text in texts]
        self.report.skipped += 1
        return []
