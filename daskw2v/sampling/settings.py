"""Settings that sampling reads, of objectives and strategies that are derived from these classes."""

from dataclasses import dataclass

from daskw2v.config.choice import TrainingChoice
from daskw2v.config.settings import TEXT, integer, number, one_of, setting


@dataclass(frozen=True, kw_only=True)
class NegativeSampling(TrainingChoice):
    """An objective that separates a word's contexts from drawn words."""

    axis = "objective"

    negative: int = setting(5, "negative samples of each pair", integer(1, 1024), stage="train")
    ns_exponent: float | None = setting(
        None,
        "power of the counts that negatives are drawn by; when not given 0.75, or 1 for contexts of a matrix",
        number(-10, 10),
        stage="train",
        first=0.75,
    )


@dataclass(frozen=True, kw_only=True)
class SampledContexts(NegativeSampling):
    """An objective that is trained on a word-context matrix."""

    ns_exponent: float | None = setting(
        None,
        "power of the counts of contexts that negatives are drawn by; 1 when not given",
        number(-10, 10),
        stage="train",
    )
    context_size: int = setting(
        1024, "contexts sampled for each word: columns of the word-context matrix", integer(1, 1 << 24), stage="matrix"
    )
    context_sample: float = setting(
        0.0,
        "frequency above which words are randomly dropped from the contexts of the word-context matrix; they stay in "
        "the text, so that windows keep their width; 0 drops none",
        number(0, 1),
        stage="matrix",
    )
    base_matrix: str | None = setting(
        None, "name of an earlier word-context matrix that new text extends", TEXT, stage="matrix"
    )


@dataclass(frozen=True, kw_only=True)
class Partitioned(TrainingChoice):
    """A strategy that cuts the vocabulary into partitions."""

    axis = "strategy"

    n_partitions: int | None = setting(
        None,
        "partitions of each table; as many tasks train in parallel; when not given, as many as are forecast to be "
        "fastest",
        integer(1, 65536),
        stage="train",
        plain=8,
    )
    negative_rule: str = setting(
        "tns",
        "where a pair's negatives are drawn: tns, in the partition of its center; sns, all in one drawn partition; "
        "bns, each in a drawn partition of its own",
        one_of("tns", "sns", "bns"),
        stage="train",
    )

    @property
    def partitions(self) -> int:
        """`n_partitions`, or 8 where it is not chosen yet."""
        return self.n_partitions or 8
