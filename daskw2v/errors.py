"""The errors of daskw2v. A message has the value, the rule that the value breaks, and the remedy."""

from daskw2v.safe_text import escaped_lines, masked


class Daskw2vError(Exception):
    """Base class of the package's errors.

    Parameters
    ----------
    problem
        A sentence with the value, and the rule that it breaks.
    remedy
        A sentence that says what the user can do; "" if nothing.

    Examples
    --------
    >>> try:
    ...     daskw2v.train("absent.txt", listener=None)
    ... except daskw2v.Daskw2vError as error:
    ...     caught = error
    >>> caught.problem
    'absent.txt matches no file.'
    >>> caught.remedy.partition(",")[0]
    'Check the path'
    """

    # Both are positional arguments, so that an error of a worker can be pickled and unpickled
    def __init__(self, problem: str, remedy: str = "") -> None:
        # Both may quote a value of the user's, or an error of a library, with any URL
        self.problem, self.remedy = masked(problem), masked(remedy)
        super().__init__(self.problem, self.remedy)

    def __str__(self) -> str:
        return escaped_lines(f"{self.problem} {self.remedy}".rstrip())  # a message may quote text of another program


class ParameterError(Daskw2vError, ValueError):
    """A parameter or argument outside its documented range.

    Examples
    --------
    >>> from daskw2v.errors import ParameterError
    >>> try:
    ...     daskw2v.Params(window=0)
    ... except ParameterError as error:
    ...     print(error.problem)
    window=0 is not an integer in 1..1024.
    """


class UnknownParameterError(ParameterError, TypeError):
    """A parameter that does not exist; also a TypeError, as Python raises for unknown arguments.

    Examples
    --------
    >>> from daskw2v.errors import UnknownParameterError
    >>> try:
    ...     daskw2v.Params(size=100)
    ... except UnknownParameterError as error:
    ...     print(error)
    Params got an unexpected keyword argument 'size'. Give vector_size.
    """


class InputError(Daskw2vError):
    """Input text that cannot be found, opened, decoded or understood.

    Examples
    --------
    >>> from daskw2v.errors import InputError
    >>> try:
    ...     daskw2v.train("texts/*.txt", listener=None)
    ... except InputError as error:
    ...     print(error.problem)
    texts/*.txt matches no file.
    """


class StoreError(Daskw2vError):
    """A store that is missing, damaged, of another format, or used against its rules.

    Examples
    --------
    >>> from daskw2v.errors import StoreError
    >>> try:
    ...     daskw2v.open("no-model")
    ... except StoreError as error:
    ...     print(error.problem)
    There is no model at no-model.
    """

    @classmethod
    def no_space(cls, location: str) -> "StoreError":
        """Return the error for a file or folder that cannot be written because the disk is full."""
        return cls(f"No space is left where {location} should be written.", "Make room; the same command goes on.")


class FormatError(StoreError):
    """Content of a store in a format that this daskw2v does not read: another release or program wrote it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from daskw2v.errors import FormatError
    >>> daskw2v.Vectors(["king"], [[3, 1]]).save("foreign")
    >>> _ = Path("foreign/manifest.json").write_text('{"format_version": 99}')
    >>> try:
    ...     daskw2v.open("foreign")
    ... except FormatError as error:
    ...     print(error.remedy)
    Open it with the daskw2v that wrote it, or give another work directory.
    """


class DamageError(StoreError):
    """Content of a store that differs from what was written.

    Parameters
    ----------
    problem, remedy
        As in `Daskw2vError`.
    url
        URL of the damaged file or array.

    Examples
    --------
    >>> from pathlib import Path
    >>> from daskw2v.errors import DamageError
    >>> daskw2v.Vectors(["king"], [[3, 1]]).save("damaged")
    >>> Path("damaged/input/zarr.json").unlink()  # by accident
    >>> try:
    ...     daskw2v.open("damaged")
    ... except DamageError as error:
    ...     print(error.url.endswith("damaged/input"))
    True
    """

    def __init__(self, problem: str, remedy: str = "", url: str = "") -> None:
        super().__init__(problem, remedy)
        self.url = masked(url)
        self.args = (*self.args, self.url)

    @classmethod
    def of(cls, url: str, damage: str) -> "DamageError":
        """Return the error for the file at a URL; `damage` continues the sentence after the URL: "is missing"."""
        return cls(
            f"{url} {damage}.",
            "In a work directory the same command makes it again where it can. For a published model, restore a copy, "
            "train again, or serve another version: `daskw2v versions rollback`. Check the disk.",
            url,
        )


class BusyError(StoreError):
    """A lease, such as that of a run, that another process or call holds.

    Examples
    --------
    >>> from daskw2v.errors import BusyError
    >>> from daskw2v.stages import Store
    >>> from daskw2v.store.lease import hold
    >>> with hold(Store("busy"), "publish", "a change"):  # as another process
    ...     try:
    ...         with hold(Store("busy"), "publish", "a change"):
    ...             pass
    ...     except BusyError as error:
    ...         print(error.remedy)
    Wait until it is done, stop it, or give another work directory.
    """


class SupersededError(StoreError):
    """A change that is refused, as another version is served than the caller expected.

    Examples
    --------
    >>> from daskw2v.errors import SupersededError
    >>> for window in (2, 3):
    ...     _ = daskw2v.train("text.txt", work="two", vector_size=8, min_count=1, window=window, listener=None)
    >>> versions = daskw2v.Versions.open("two")
    >>> first, second = (version.name for version in versions.all())
    >>> try:
    ...     versions.publish(first, expected=None)
    ... except SupersededError as error:
    ...     print(error.problem.replace(first, "v0001").replace(second, "v0002"))
    v0001 was to be served instead of no version, but v0002 is served.
    """


class FrozenError(StoreError):
    """A version that cannot be published, as the versions of its work directory are frozen.

    Examples
    --------
    >>> from daskw2v.errors import FrozenError
    >>> for window in (2, 3):
    ...     _ = daskw2v.train("text.txt", work="frozen", vector_size=8, min_count=1, window=window, listener=None)
    >>> versions = daskw2v.Versions.open("frozen")
    >>> versions.freeze("audit")
    >>> first = versions.all()[0].name
    >>> try:
    ...     versions.publish(first)
    ... except FrozenError as error:
    ...     print(error.problem.replace(first, "v0001"))
    v0001 is not served: the versions are frozen (audit).
    """


class VocabularyError(Daskw2vError):
    """A vocabulary that cannot be built or used.

    Examples
    --------
    >>> from daskw2v.errors import VocabularyError
    >>> try:
    ...     daskw2v.train("text.txt", min_count=1000, listener=None)
    ... except VocabularyError as error:
    ...     print(error.remedy)
    Lower min_count or give more text.
    """


class UnknownWordError(Daskw2vError, KeyError):
    """A word that the model does not know.

    Examples
    --------
    >>> vectors = daskw2v.Vectors(["king", "queen"], [[3, 1], [2, 2]])
    >>> try:
    ...     vectors["emperor"]
    ... except KeyError as error:
    ...     print(type(error).__name__, error.problem, sep=": ")
    UnknownWordError: 'emperor' is not among the 2 words of the vocabulary.
    """

    __str__ = Daskw2vError.__str__  # KeyError's shows a repr


class TrainingError(Daskw2vError):
    """Training that cannot continue: divergence, or a task that keeps killing its workers.

    Examples
    --------
    >>> from daskw2v.errors import TrainingError
    >>> try:
    ...     daskw2v.train(iter(["king", "queen"]), min_count=1, listener=None)
    ... except TrainingError as error:
    ...     print(error.problem.partition(",")[0])
    No pair of words was left to train
    """


class ClusterError(Daskw2vError):
    """A Dask cluster that cannot do the work: without workers, with mixed versions, or with a folder it cannot read.

    Examples
    --------
    >>> from daskw2v.errors import ClusterError
    >>> try:
    ...     daskw2v.train("text.txt", scheduler="tcp://10.0.0.1:8786", listener=None)
    ... except ClusterError as error:
    ...     print(error.remedy.partition(",")[0])
    Give work
    """


class NotFittedError(Daskw2vError, ValueError, AttributeError):
    """An estimator that was not fitted; where scikit-learn is installed, its error of the same name is raised instead.

    Examples
    --------
    >>> model = daskw2v.Word2Vec()
    >>> try:
    ...     model.transform(["the king"])
    ... except ValueError as error:  # scikit-learn's NotFittedError, too
    ...     print(error)
    This Word2Vec is not fitted. Call fit first.
    """


class MissingExtraError(Daskw2vError, ImportError):
    """An optional dependency that the requested feature needs and that is not installed.

    Examples
    --------
    >>> from daskw2v.extras import needed
    >>> try:
    ...     needed("absent_module", extra="polars")
    ... except ImportError as error:
    ...     print(type(error).__name__, error, sep=": ")
    MissingExtraError: absent_module is not installed. Run: pip install 'daskw2v[polars]'.
    """


def counted(number: int, thing: str) -> str:
    """Return a number and a singular noun, with an s added for the plural: "1 file", "2,000 files"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
