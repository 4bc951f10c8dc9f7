"""The errors of daskw2v; every message names the value, the rule it broke and the remedy."""

from daskw2v.escapes import escaped_lines
from daskw2v.masking import masked


class Daskw2vError(Exception):
    """Base class of the package's errors.

    Parameters
    ----------
    problem
        The value that was found, and the rule it breaks.
    remedy
        What the user can do about it.
    """

    # Both are positional arguments, so that an error of a worker can be pickled and unpickled.
    def __init__(self, problem: str, remedy: str = "") -> None:
        # They may quote what the user gave, or an error of a library, which may name any URL
        self.problem, self.remedy = masked(problem), masked(remedy)
        super().__init__(self.problem, self.remedy)

    def __str__(self) -> str:
        return escaped_lines(f"{self.problem} {self.remedy}".rstrip())  # it may quote what others wrote


class ParameterError(Daskw2vError, ValueError):
    """A parameter or argument outside its documented range."""


class UnknownParameterError(ParameterError, TypeError):
    """A parameter that does not exist; also a TypeError, as Python raises for unknown arguments."""


class InputError(Daskw2vError):
    """Input text that cannot be found, opened, decoded or understood."""


class StoreError(Daskw2vError):
    """A store that is missing, damaged, of another format, or used against its rules."""

    @classmethod
    def no_space(cls, place: str) -> "StoreError":
        """Return the error of a full disk."""
        return cls(f"No space is left where {place} should be written.", "Make room; the same command goes on.")


class FormatError(StoreError):
    """Content of a store that this daskw2v does not write: that of another one, or of others."""


class DamageError(StoreError):
    """Content of a store that differs from what was written.

    Parameters
    ----------
    problem, remedy
        As in `Daskw2vError`.
    url
        URL of the damaged file.
    """

    def __init__(self, problem: str, remedy: str = "", url: str = "") -> None:
        super().__init__(problem, remedy)
        self.url = masked(url)
        self.args = (*self.args, self.url)

    @classmethod
    def of(cls, url: str, what: str) -> "DamageError":
        """Return the error for the file at a URL; `what` says what is wrong with it."""
        return cls(
            f"{url} {what}.",
            "In a work directory the same command makes it again where it can. For a published model, restore a copy, "
            "train again, or serve another version: `daskw2v versions rollback`. Check the disk.",
            url,
        )


class BusyError(StoreError):
    """Another run holds the lease of a work directory or of a part of it."""


class VocabularyError(Daskw2vError):
    """A vocabulary that cannot be built or used."""


class UnknownWordError(Daskw2vError, KeyError):
    """A word that the model does not know."""

    __str__ = Daskw2vError.__str__  # KeyError's shows a repr


class TrainingError(Daskw2vError):
    """Training that cannot continue: divergence, or a task that keeps killing its workers."""


class ClusterError(Daskw2vError):
    """A Dask cluster that cannot do the work: no workers, mixed versions, a work URL it does not share."""


class NotFittedError(Daskw2vError, ValueError, AttributeError):
    """An estimator that was not fitted, where scikit-learn, which has an error of this name, is not installed."""


class MissingExtraError(Daskw2vError, ImportError):
    """An optional dependency of the requested feature that is not installed."""


def counted(number: int, thing: str) -> str:
    """Return a number and a regular noun, in the plural if needed: "1 file", "2,000 files"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
