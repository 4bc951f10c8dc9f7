"""What the user may choose: `Params` changes the vectors, `Resources` never does.

Each field states its default, help text and range once; validation, command line and documentation read
them from there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from dask.utils import parse_bytes

from daskw2v.checked import (
    DELIMITER,
    FLAG,
    MEMORY,
    OPTIONS,
    SIZE,
    TEXT,
    TOKENIZER,
    URL,
    URLS,
    Checked,
    choice,
    integer,
    number,
    one_of,
)
from daskw2v.errors import ParameterError, UnknownParameterError


def tokenizer_name(tokenizer: str | Callable[..., Any]) -> str:
    """Return the text that stands for a tokenizer: module:function for a function."""
    return tokenizer if isinstance(tokenizer, str) else f"{tokenizer.__module__}:{tokenizer.__qualname__}"


@dataclass(frozen=True, kw_only=True)
class Params(Checked):
    """Everything that changes the vectors: equal Params and an equal corpus are an equal experiment.

    The names are gensim's wherever it has one. A function as tokenizer counts by its name and by its code: where
    that is edited, text is read again. Edits of what it calls or of globals that it reads are not seen; give the
    function another name then.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.
    """

    tokenizer: str | Callable[[list[str]], list[list[str]]] = choice(
        "whitespace",
        "how a line becomes tokens: whitespace, lower, normalize, regex:PATTERN, package.module:function",
        TOKENIZER,
        heading="How text becomes tokens",
    )
    format: str | None = choice(
        None,
        "format of the input; by file name when not given",
        one_of("text", "jsonl", "parquet"),
        optional=True,
    )
    column: str = choice("text", "column (Parquet) or key (JSONL) that holds text or tokens", TEXT)
    errors: str = choice(
        "replace",
        "invalid input: strict stops; replace puts U+FFFD for invalid UTF-8, skip drops the line; both drop lines "
        "that are no readable JSONL; what is replaced and skipped is counted",
        one_of("strict", "replace", "skip"),
    )
    max_bad_blocks: int = choice(
        0,
        "blocks of text (of block_size each) that may be left out because they cannot be read or kill their workers; "
        "they are named in the model's metadata; more of them stop the run",
        integer(0),
    )
    phrases: int = choice(
        0,
        "passes that join bigrams which occur together often: one makes phrases of two words, two of four",
        integer(0, 8),
        heading="Which bigrams become words",
    )
    phrase_min_count: int = choice(
        5, "occurrences that a phrase has at least; the score counts so many less", integer(1)
    )
    phrase_threshold: float | None = choice(
        None,
        "score above which a bigram is a phrase; 10 for default, 0.5 for npmi when not given",
        number(-1),
        optional=True,
    )
    phrase_scoring: str = choice(
        "default",
        "score of a bigram: default, of Mikolov et al.; npmi, normalized pointwise mutual information, of -1 to 1",
        one_of("default", "npmi"),
    )
    phrase_delimiter: str = choice("_", "what stands between the words of a phrase", DELIMITER)
    min_count: int = choice(5, "rarest word kept, in occurrences", integer(1), heading="Which words")
    max_final_vocab: int | None = choice(
        None, "most words kept, by exact count; min_count still holds", integer(1), optional=True
    )
    vocabulary: str | None = choice(
        None,
        "URL of a list of words, one a line: only these are kept, whatever their count",
        URL,
        optional=True,
    )
    objective: str = choice("sgns", "what update is made", TEXT, heading="What is learned")
    vector_size: int = choice(100, "dimensions of a vector", integer(1, 65536))
    window: int = choice(5, "most words between center and context", integer(1, 1024))
    shrink_windows: bool = choice(True, "draw each window's size from 1..window", FLAG)
    sample: float = choice(1e-4, "frequency above which words are randomly dropped; 0 keeps all", number(0, 1))
    negative: int = choice(5, "negatives of each pair", integer(1, 1024))
    negative_sharing: str = choice(
        "shared",
        "shared: one draw of negatives for all pairs of a window (sgns) or for four windows (cbow_ns); "
        "pair: each pair its own, as word2vec.c, and slower",
        one_of("shared", "pair"),
    )
    ns_exponent: float = choice(0.75, "power of the counts that negatives are drawn by", number(-10, 10))
    cbow_mean: bool = choice(True, "CBOW predicts from the mean of the contexts, or else from their sum", FLAG)
    optimizer: str | None = choice(
        None, "how rows follow their gradient; the objective's own when not given", TEXT, optional=True
    )
    alpha: float | None = choice(
        None,
        "learning rate at the start; the objective's own when not given: 0.035 for sgns, 0.05 for cbow_ns, 0.025 for "
        "sg_hs and cbow_hs, 0.05 for context_matrix with sgd and 0.005 with adam, 0.001 for subwords",
        number(0, 10, open_low=True),
        optional=True,
    )
    min_alpha: float = choice(1e-4, "learning rate at the end", number(0, 10))
    epochs: int = choice(5, "passes over the corpus, or over the word-context matrix", integer(1))
    seed: int = choice(1, "seed of every random draw", integer(0, 2**63 - 1))
    strategy: str = choice("averaging", "how workers share the training of a model", TEXT, heading="How workers meet")
    n_replicas: int = choice(
        1, "models trained side by side and merged", integer(1, 65536), heading="How replicas meet"
    )
    rounds_per_epoch: int | None = choice(
        None, "merges an epoch; 8 a replica when not given", integer(1), optional=True
    )
    merge: str = choice("momentum", "rule that makes one model of the replicas'", TEXT)
    warmup: float | None = choice(
        None,
        "share of all work done by one replica before the others start; min(0.1, n_replicas/80) when not given",
        number(0, 1),
        optional=True,
    )
    n_partitions: int = choice(
        8,
        "parts that rotation cuts each table into; as many tasks train side by side",
        integer(1, 65536),
        heading="How partitions meet",
    )
    n_groups: int | None = choice(
        None,
        "groups that partitions stay together in, such as one a worker; of four partitions or fewer when not given",
        integer(1, 65536),
        optional=True,
    )
    passes_per_epoch: int = choice(8, "times an epoch that all partitions meet, each over its stretch", integer(1))
    negative_rule: str = choice(
        "tns",
        "where rotation draws a pair's negatives: tns, in the partition of its center; sns, all in one partition, "
        "drawn; bns, each in one of its own, drawn",
        one_of("tns", "sns", "bns"),
    )
    pair_epochs: int = choice(
        1, "epochs that rotation trains on the same draw of pairs, which are then dealt once", integer(1)
    )
    base_model: str | None = choice(
        None,
        "name of a version in the same work directory that training goes on from: words it knows begin with its rows",
        TEXT,
        optional=True,
        heading="Where training begins",
    )
    anchor: float = choice(
        0.0,
        "share of its row in the version of base_model that a word it knows has in the end, beside what was trained",
        number(0, 1),
    )
    context_size: int = choice(
        1024,
        "contexts sampled for each word, the columns of its row in the word-context matrix",
        integer(1, 1 << 24),
        heading="How a word-context matrix is made",
    )
    base_matrix: str | None = choice(
        None, "name of an earlier word-context matrix that new text extends", TEXT, optional=True
    )
    gather_every: int = choice(
        16,
        "columns that a table's rows train before those of the other table, which stand still, follow",
        integer(1),
        heading="How the rows of a word-context matrix meet",
    )
    centered: bool = choice(True, "take their mean off the rows of the finished model, where it is `columns`", FLAG)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha is not None and self.min_alpha > self.alpha:
            raise ParameterError(
                f"min_alpha={self.min_alpha} is above alpha={self.alpha}; the learning rate only falls.",
                "Give a min_alpha of at most alpha.",
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types; a callable tokenizer becomes its import path."""
        # Not dataclasses.asdict: it would copy the tokenizer.
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**values, "tokenizer": tokenizer_name(self.tokenizer)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make Params from `as_dict`'s result; names it does not know are refused.

        Raises
        ------
        ParameterError
            If a name is unknown or a value is out of range.
        """
        known = {f.name for f in fields(cls)}
        for name in values:
            if name not in known:
                raise UnknownParameterError(f"{name!r} is no parameter.", cls.remedy(name))
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class Resources(Checked):
    """Everything that must not change the vectors: where, how wide, and how much memory.

    More than one thread in a training task is the exception (Hogwild): results are then statistically, not
    bitwise, the same.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.
    """

    device: str = choice("cpu", "what the kernels run on", TEXT, heading="Where it runs")
    scheduler: str | None = choice(None, "address of a Dask scheduler, such as tcp://host:8786", TEXT, optional=True)
    host: str | None = choice(
        None,
        "address that a local cluster listens on, for workers elsewhere to join; this machine alone when not given. "
        "Whoever reaches it can run code on it, unless Dask is configured to use TLS",
        TEXT,
        optional=True,
    )
    workers: int = choice(
        1, "worker processes of a local cluster; where device is cuda, each has a GPU of its own", integer(1, 4096)
    )
    worker_timeout: float | None = choice(
        None,
        "seconds to wait for a worker, at the start and while all are gone; 3600 when not given, but 300 on a local "
        "cluster that is not adaptive",
        number(0, open_low=True),
        optional=True,
    )
    threads: int | None = choice(
        None,
        "threads of each worker, and of a training task; all cores when not given",
        integer(1, 4096),
        optional=True,
    )
    memory_limit: str | int = choice(
        "auto",
        "memory of each local worker, such as '4 GiB'",
        MEMORY,
    )
    hot_rows: int | None = choice(
        None,
        "most used rows: on cpu each thread trains its own copy of them, where there is more than one, 254 / threads "
        "when not given; on cuda no warp keeps a copy of them from window to window, 0 when not given",
        integer(0, 4096),
        optional=True,
        heading="How threads and warps share rows",
    )
    flush_words: int = choice(
        512, "centers after which a thread adds its copies of the 16 most used rows to the model", integer(1, 8192)
    )
    max_in_flight: int | None = choice(
        None,
        "warps of a GPU that train at the same time, at most; as many as it has room for when not given; never so many "
        "that each has less than 256 centers of the text loaded at a time",
        integer(1, 65536),
        optional=True,
    )
    block_size: str | int = choice(
        "64 MiB", "text read by one task and held by one shard", SIZE, heading="What a task reads and when it is saved"
    )
    checkpoint_seconds: float = choice(60.0, "time between checkpoints; 0 writes one a round", number(0))
    eval_every: int | None = choice(
        None,
        "rounds or passes between evaluations; only the last is evaluated when not given",
        integer(1),
        optional=True,
        heading="What is measured meanwhile",
    )
    eval_similarity: tuple[str, ...] = choice((), "word pairs with human scores, to evaluate training on", URLS)
    eval_analogy: tuple[str, ...] = choice((), "analogy questions, to evaluate training on", URLS)
    eval_categorization: tuple[str, ...] = choice((), "words with classes, to evaluate training on", URLS)
    word_losses: bool = choice(
        False, "keep the loss of every word in every step beside the model, where the strategy is columns", FLAG
    )
    store_timeout: float = choice(
        300.0,
        "seconds that an answer of a store is waited for; what fails or does not come is asked for again, four times",
        number(0, open_low=True),
        heading="Stores",
    )
    storage_options: Mapping[str, Any] = choice({}, "options for fsspec (credentials, endpoints)", OPTIONS, secret=True)

    @property
    def eval_sets(self) -> dict[str, tuple[str, ...]]:
        """The sets to evaluate training on, by kind."""
        kinds = ("similarity", "analogy", "categorization")
        return {kind: getattr(self, f"eval_{kind}") for kind in kinds}

    @property
    def block_bytes(self) -> int:
        """`block_size` in bytes."""
        return int(parse_bytes(self.block_size))
