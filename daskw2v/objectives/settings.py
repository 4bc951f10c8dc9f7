"""The objectives that Params can name, and the settings of each."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from daskw2v.config.choice import Choices, TrainingChoice
from daskw2v.config.params import Params
from daskw2v.config.settings import FLAG, URL, Constraint, integer, one_of, setting
from daskw2v.errors import ParameterError
from daskw2v.sampling.settings import NegativeSampling, SampledContexts

MAX_PREFIXES = 7  # that kernels have room for
_PREFIX_STEP = 16  # columns that a processor's kernels take at once
_MAX_PREFIX = 65520  # below the largest vector_size


def _as_int(value: Any) -> int:
    """Return a number of columns as an integer; the command line passes texts. Raises a TypeError or ValueError."""
    if isinstance(value, str):
        return int(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(value)
    return int(value)


def _as_sizes(values: Any) -> tuple[int, ...]:
    """Return sizes of prefixes as integers."""
    return tuple(map(_as_int, values))


def _are_sizes(values: Any) -> bool:
    """Return whether a value is a list or tuple, perhaps empty, of valid, rising sizes of prefixes."""
    if not isinstance(values, list | tuple):
        return False
    try:
        sizes = _as_sizes(values)
    except (TypeError, ValueError):
        return False
    are_rising = all(a < b for a, b in pairwise((0, *sizes)))
    are_valid = all(size % _PREFIX_STEP == 0 and size <= _MAX_PREFIX for size in sizes)
    return len(sizes) <= MAX_PREFIXES and are_rising and are_valid


_PREFIX_SIZES = Constraint(
    _are_sizes,
    f"a list of at most {MAX_PREFIXES} rising multiples of {_PREFIX_STEP}, {_MAX_PREFIX:,} at most",
    _as_sizes,
    item="COLUMNS",
)


@dataclass(frozen=True, kw_only=True)
class TrainsPrefixes(TrainingChoice):
    """An objective of windows, which can train the first columns alone."""

    axis = "objective"

    prefix_sizes: tuple[int, ...] = setting(
        (),
        "numbers of first columns that are to be models by themselves, such as 32 64: two of three windows "
        "train all columns, the third one of these prefixes",
        _PREFIX_SIZES,
        stage="train",
        honoured_by=("strategy", "device"),
    )

    def check(self, settings: Params) -> None:
        """Raise a ParameterError if a prefix is not shorter than a vector."""
        super().check(settings)
        if self.prefix_sizes and self.prefix_sizes[-1] >= settings.vector_size:
            raise ParameterError(
                f"prefix_sizes={self.prefix_sizes} are not all below vector_size={settings.vector_size}.",
                "Leave out what is not: all columns together are always trained.",
            )


@dataclass(frozen=True, kw_only=True)
class SharedNegatives(NegativeSampling):
    """An objective of windows that draws negatives."""

    negative_sharing: str = setting(
        "shared",
        "shared draws negatives once for all pairs of a window (sgns) or for four windows (cbow_ns); pair draws them "
        "for each pair, as word2vec.c, and is slower",
        one_of("shared", "pair"),
        stage="train",
    )
    market_negative: int = setting(
        0,
        "further negative samples, of the words of the target's market: of each window, or of each pair where "
        "negative_sharing is pair (sgns)",
        integer(0, 1024),
        stage="train",
        honoured_by=("strategy",),
    )
    markets: str | None = setting(
        None,
        "URL of a table with the columns word, or item, and market (Parquet, CSV, or a folder of them); the markets of "
        "the events when not given",
        URL,
        stage="train",
    )

    def check(self, settings: Params) -> None:
        """Raise a ParameterError for a table of markets if no negative is drawn from a market."""
        super().check(settings)
        if self.markets is not None and not self.market_negative:
            raise ParameterError(
                f"markets={self.markets!r} changes nothing for market_negative=0.",
                "Give market_negative=1 or more, or leave markets out.",
            )


@dataclass(frozen=True, kw_only=True)
class ContextsTogether(TrainingChoice):
    """An objective that predicts a word from all of its contexts."""

    axis = "objective"

    cbow_mean: bool = setting(
        True, "predict from the mean of the contexts; otherwise from their sum", FLAG, stage="train"
    )


@dataclass(frozen=True, kw_only=True)
class SGNS(SharedNegatives, TrainsPrefixes):
    """Skip-gram with negative sampling (Mikolov et al. 2013b, section 2.2).

    Examples
    --------
    >>> params = daskw2v.Params(objective=daskw2v.SGNS(negative=10, ns_exponent=0.5))
    >>> params == daskw2v.Params(objective="sgns", negative=10, ns_exponent=0.5)
    True
    """

    name = "sgns"


@dataclass(frozen=True, kw_only=True)
class CBOW(SharedNegatives, TrainsPrefixes, ContextsTogether):
    """CBOW with negative sampling (Mikolov et al. 2013a, section 3.1; 2013b, section 2.2).

    Examples
    --------
    >>> params = daskw2v.Params(objective=daskw2v.CBOW(cbow_mean=False))
    >>> params.objective.name, params.objective.negative
    ('cbow_ns', 5)
    """

    name = "cbow_ns"


@dataclass(frozen=True, kw_only=True)
class SkipGramHS(TrainsPrefixes):
    """Skip-gram with hierarchical softmax (Mikolov et al. 2013b, section 2.1).

    Examples
    --------
    >>> params = daskw2v.Params(objective=daskw2v.SkipGramHS(prefix_sizes=(32, 64)))
    >>> params == daskw2v.Params(objective="sg_hs", prefix_sizes=(32, 64))
    True
    """

    name = "sg_hs"


@dataclass(frozen=True, kw_only=True)
class CBOWHS(TrainsPrefixes, ContextsTogether):
    """CBOW with hierarchical softmax (Mikolov et al. 2013a, section 3.1).

    Examples
    --------
    >>> params = daskw2v.Params(objective=daskw2v.CBOWHS(cbow_mean=False))
    >>> params.as_dict()["objective"], params.as_dict()["cbow_mean"]
    ('cbow_hs', False)
    """

    name = "cbow_hs"


@dataclass(frozen=True, kw_only=True)
class WordContextMatrix(SampledContexts):
    """Word vectors from a sampled word-context matrix (Li et al. 2017).

    Examples
    --------
    >>> params = daskw2v.Params(objective=daskw2v.WordContextMatrix(context_size=256))
    >>> params.objective.context_size
    256
    """

    name = "context_matrix"


@dataclass(frozen=True, kw_only=True)
class SubwordNetwork(SampledContexts):
    """Word vectors that a network of characters computes, trained on the word-context matrix; experimental, by PyTorch.

    Examples
    --------
    >>> params = daskw2v.Params(objective=daskw2v.SubwordNetwork(negative=10))
    >>> params.objective.name
    'subwords'
    """

    name = "subwords"


OBJECTIVES = Choices(
    "objective", "daskw2v.objectives", SGNS, CBOW, SkipGramHS, CBOWHS, WordContextMatrix, SubwordNetwork
)
