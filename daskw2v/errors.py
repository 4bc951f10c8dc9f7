"""One hierarchy of errors; every message names the value, the rule it broke and the remedy."""


class Daskw2vError(Exception):
    """Base of every error this package raises on purpose.

    Parameters
    ----------
    problem
        What was found and which rule it breaks.
    remedy
        What the user can do about it.
    """

    # Both travel as positional arguments so that the error pickles back from a worker unchanged.
    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}".rstrip()


class ParameterError(Daskw2vError, ValueError):
    """A parameter or argument outside its documented range."""


class UnknownParameterError(ParameterError, TypeError):
    """A parameter that does not exist; Python's own error for that is a TypeError, so this is one too."""


class InputError(Daskw2vError):
    """Input text that cannot be found, opened, decoded or understood."""


class StoreError(Daskw2vError):
    """A store that is missing, damaged, of another format, or written against its rules."""


class DamageError(StoreError):
    """What a store holds is not what was written there.

    Parameters
    ----------
    problem, remedy
        As always.
    url
        Where the damage is.
    """

    def __init__(self, problem: str, remedy: str = "", url: str = "") -> None:
        super().__init__(problem, remedy)
        self.args = (problem, remedy, url)
        self.url = url

    @classmethod
    def of(cls, url: str, what: str) -> "DamageError":
        """Return the error for the file at a URL; `what` says what is wrong with it."""
        return cls(
            f"{url} {what}.",
            "In a work directory the same command makes again what can be made again; a published model has to come "
            "from a copy, or be deleted and trained again. Look after the disk.",
            url,
        )


class BusyError(StoreError):
    """Somebody else is at work there."""


class VocabularyError(Daskw2vError):
    """A vocabulary that cannot be built or used."""


class UnknownWordError(Daskw2vError, KeyError):
    """A word that the model does not know."""

    __str__ = Daskw2vError.__str__  # KeyError would show a repr


class TrainingError(Daskw2vError):
    """Training that cannot go on: divergence, or a task that keeps killing its workers."""


class ClusterError(Daskw2vError):
    """A Dask cluster that cannot do the work: no workers, mixed versions, a work URL it does not share."""


class MissingExtraError(Daskw2vError, ImportError):
    """An optional dependency that the requested feature needs is not installed."""
