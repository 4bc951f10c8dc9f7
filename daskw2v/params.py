"""What the user may choose: `Params` changes the vectors, `Resources` never does.

Each field states its default, help text and range once; validation, command line and documentation read
them from there.
"""

import dataclasses
import os
import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import reduce
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from dask.utils import parse_bytes

from daskw2v.credentials import Options, refuse_secret
from daskw2v.errors import ParameterError
from daskw2v.locations import absolute, is_location

_FINITE = sys.float_info.max
_SHOWN = 200  # characters of a value that a message shows


class _Rule(NamedTuple):
    """Which values a field takes, in code and in words, and what makes equal ones look the same."""

    check: Callable[[Any], bool]
    bound: str
    convert: Callable[[Any], Any] | None = None


def _integer(low: int, high: int | None = None) -> _Rule:
    bound = f"an integer >= {low}" if high is None else f"an integer in {low}..{high}"
    return _Rule(lambda v: is_number(v, Integral) and v >= low and (high is None or v <= high), bound, int)


def _number(low: float, high: float = _FINITE, *, open_low: bool = False) -> _Rule:
    def between(v: Any) -> bool:
        return bool((v > low if open_low else v >= low) and v <= high)

    bound = f"a finite number {'>' if open_low else '>='} {low:g}" + ("" if high == _FINITE else f" and <= {high:g}")
    return _Rule(
        lambda v: is_number(v, Real) and between(v.item() if isinstance(v, np.generic) else v),
        bound,
        lambda v: float(v) + 0.0,  # 1 and 1.0, 0.0 and -0.0 are equal, but are not written alike
    )


def is_number(value: Any, kind: type) -> bool:
    """Tell whether a value is a number of that kind; NumPy's are, which loops over settings give."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _one_of(*names: str) -> _Rule:
    return _Rule(lambda v: isinstance(v, str) and v in names, "one of " + ", ".join(names))


def _is_size(value: Any) -> bool:
    try:
        given = bool(value.strip()) if isinstance(value, str) else is_number(value, Real)
        return given and parse_bytes(_plain(value)) > 0
    except (ValueError, OverflowError):
        return False


def _plain(size: Any) -> str | int:
    """Return text as it is, and a number as Python's own."""
    return size if isinstance(size, str) else int(size)


def _is_tokenizer(value: Any) -> bool:
    return bool(value) if isinstance(value, str) else callable(value) and _is_importable(value)


def _public(url: str | os.PathLike[str]) -> str:
    """Return a URL, which holds no secret, or a path as workers find it."""
    return refuse_secret(absolute(os.fspath(url)), ParameterError)


def _are_urls(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(is_location, value))


def _are_options(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _is_importable(function: Any) -> bool:
    """Tell whether a module holds this very object under its own name: only then the name stands for it."""
    module, path = (getattr(function, name, None) for name in ("__module__", "__qualname__"))
    if not (isinstance(module, str) and isinstance(path, str) and isinstance(function, Hashable)):
        return False
    found = reduce(lambda holder, name: getattr(holder, name, None), path.split("."), sys.modules.get(module))
    return found is function


_flag = _Rule(lambda v: isinstance(v, bool | np.bool_), "true or false", bool)
_text = _Rule(lambda v: isinstance(v, str) and bool(v), "a non-empty string")
_tokenizer = _Rule(
    _is_tokenizer,
    "whitespace, lower, normalize, regex:PATTERN, package.module:function, or a function that a module holds under "
    "its name (no lambda, local function, partial, method or object: write a function in a module)",
)
_size = _Rule(_is_size, "a size in bytes, as a number or as text such as '32 MiB'", _plain)
_urls = _Rule(_are_urls, "a list of URLs or paths", lambda urls: tuple(map(_public, urls)))
_url = _Rule(_text.check, _text.bound, lambda url: refuse_secret(url, ParameterError))
_options = _Rule(_are_options, "a mapping whose keys are text", Options)


def tokenizer_name(tokenizer: str | Callable[..., Any]) -> str:
    """Return the text that stands for a tokenizer: module:function for a function."""
    return tokenizer if isinstance(tokenizer, str) else f"{tokenizer.__module__}:{tokenizer.__qualname__}"


def _choice(default: Any, help: str, rule: _Rule, *, optional: bool = False) -> Any:
    """Declare a field with its help and rule; `optional` fields also take None, meaning "chosen for you"."""
    metadata = {"help": help, **rule._asdict(), "optional": optional}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: dict(default), metadata=metadata, repr=False)  # secrets
    return field(default=default, metadata=metadata)


def _shown(f: "Field[Any]", value: Any) -> str:
    """Return a value as a message shows it: not its end where it is long, and nothing of what may hold secrets."""
    if not f.repr:
        return f"a {type(value).__name__} (not shown: it may hold secrets)"
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python writes
        return f"(a {type(value).__name__} too large to write)"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


class _Checked:
    """Checks and conversions shared by the two dataclasses."""

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if value is None and f.metadata["optional"]:
                continue
            if not f.metadata["check"](value):
                bound = f.metadata["bound"] + (" or None" if f.metadata["optional"] else "")
                raise ParameterError(
                    f"{f.name}={_shown(f, value)} is not {bound}.", f"Give {f.name} ({f.metadata['help']}) {bound}."
                )
            if f.metadata["convert"] is not None:
                object.__setattr__(self, f.name, f.metadata["convert"](value))  # frozen

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


@dataclass(frozen=True, kw_only=True)
class Params(_Checked):
    """Everything that changes the vectors: equal Params and an equal corpus are an equal experiment.

    The names are gensim's wherever it has one. A function as tokenizer counts by its name and by its code: where
    that is edited, text is read again. Edits of what it calls or of globals that it reads are not seen; give the
    function another name then.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.
    """

    # How text becomes tokens
    tokenizer: str | Callable[[list[str]], list[list[str]]] = _choice(
        "whitespace",
        "how a line becomes tokens: whitespace, lower, normalize, regex:PATTERN, package.module:function",
        _tokenizer,
    )
    format: str | None = _choice(
        None,
        "format of the input: text, jsonl or parquet; by file name when not given",
        _one_of("text", "jsonl", "parquet"),
        optional=True,
    )
    column: str = _choice("text", "column (Parquet) or key (JSONL) that holds text or tokens", _text)
    errors: str = _choice(
        "replace",
        "invalid input: strict stops; replace puts U+FFFD for invalid UTF-8, skip drops the line; both drop lines "
        "that are no readable JSONL; what is replaced and skipped is counted",
        _one_of("strict", "replace", "skip"),
    )
    max_bad_blocks: int = _choice(
        0,
        "blocks of text (of block_size each) that may be left out because they cannot be read or kill their workers; "
        "they are named in the model's metadata; more of them stop the run",
        _integer(0),
    )
    # Which words
    min_count: int = _choice(5, "rarest word kept, in occurrences", _integer(1))
    max_final_vocab: int | None = _choice(
        None, "most words kept, by exact count; min_count still holds", _integer(1), optional=True
    )
    vocabulary: str | None = _choice(
        None,
        "URL of a list of words, one a line: only these are kept, whatever their count",
        _url,
        optional=True,
    )
    # What is learned
    objective: str = _choice(
        "sgns", "what update is made: sgns, cbow_ns, sg_hs, cbow_hs, context_matrix or subwords", _text
    )
    vector_size: int = _choice(100, "dimensions of a vector", _integer(1, 65536))
    window: int = _choice(5, "most words between center and context", _integer(1, 1024))
    shrink_windows: bool = _choice(True, "draw each window's size from 1..window", _flag)
    sample: float = _choice(1e-4, "frequency above which words are randomly dropped; 0 keeps all", _number(0, 1))
    negative: int = _choice(5, "negatives of each pair", _integer(1, 1024))
    negative_sharing: str = _choice(
        "shared",
        "shared: one draw of negatives for all pairs of a window (sgns) or for four windows (cbow_ns); "
        "pair: each pair its own, as word2vec.c, and slower",
        _one_of("shared", "pair"),
    )
    ns_exponent: float = _choice(0.75, "power of the counts that negatives are drawn by", _number(-10, 10))
    cbow_mean: bool = _choice(True, "CBOW predicts from the mean of the contexts, or else from their sum", _flag)
    optimizer: str | None = _choice(
        None, "how rows follow their gradient: adam or sgd; the objective's own when not given", _text, optional=True
    )
    alpha: float | None = _choice(
        None,
        "learning rate at the start; the objective's own when not given: 0.035 for sgns, 0.05 for cbow_ns, 0.025 for "
        "sg_hs and cbow_hs, 0.05 for context_matrix with sgd and 0.005 with adam, 0.001 for subwords",
        _number(0, 10, open_low=True),
        optional=True,
    )
    min_alpha: float = _choice(1e-4, "learning rate at the end", _number(0, 10))
    epochs: int = _choice(5, "passes over the corpus, or over the word-context matrix", _integer(1))
    seed: int = _choice(1, "seed of every random draw", _integer(0, 2**63 - 1))
    # How replicas meet
    strategy: str = _choice("averaging", "how workers meet", _text)
    n_replicas: int = _choice(1, "models trained side by side and merged", _integer(1, 65536))
    rounds_per_epoch: int | None = _choice(
        None, "merges an epoch; 8 a replica when not given", _integer(1), optional=True
    )
    merge: str = _choice("momentum", "merge rule: momentum, touched or mean", _text)
    warmup: float | None = _choice(
        None,
        "share of all work done by one replica before the others start; min(0.1, n_replicas/80) when not given",
        _number(0, 1),
        optional=True,
    )
    # How partitions meet
    n_partitions: int = _choice(
        8, "parts that rotation cuts each table into; as many tasks train side by side", _integer(1, 65536)
    )
    n_groups: int | None = _choice(
        None,
        "groups that partitions stay together in, such as one a worker; of four partitions or fewer when not given",
        _integer(1, 65536),
        optional=True,
    )
    passes_per_epoch: int = _choice(8, "times an epoch that all partitions meet, each over its stretch", _integer(1))
    negative_rule: str = _choice(
        "tns",
        "where rotation draws a pair's negatives: tns, in the partition of its center; sns, all in one partition, "
        "drawn; bns, each in one of its own, drawn",
        _one_of("tns", "sns", "bns"),
    )
    pair_epochs: int = _choice(
        1, "epochs that rotation trains on the same draw of pairs, which are then dealt once", _integer(1)
    )
    # Where training begins
    base_model: str | None = _choice(
        None,
        "name of a version in the same work directory that training goes on from: words it knows begin with its rows",
        _text,
        optional=True,
    )
    # How a word-context matrix is made
    context_size: int = _choice(
        1024, "contexts sampled for each word, the columns of its row in the word-context matrix", _integer(1, 1 << 24)
    )
    base_matrix: str | None = _choice(
        None, "name of an earlier word-context matrix that new text extends", _text, optional=True
    )
    # How the rows of a word-context matrix meet
    gather_every: int = _choice(
        16, "columns that a table's rows train before those of the other table, which stand still, follow", _integer(1)
    )
    centered: bool = _choice(True, "take their mean off the rows of the finished model, where it is `columns`", _flag)

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
                raise ParameterError(f"{name!r} is no parameter.", f"The parameters are: {', '.join(sorted(known))}.")
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class Resources(_Checked):
    """Everything that must not change the vectors: where, how wide, and how much memory.

    More than one thread in a training task is the exception (Hogwild): results are then statistically, not
    bitwise, the same.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.
    """

    device: str = _choice("cpu", "what the kernels run on", _text)
    scheduler: str | None = _choice(None, "address of a Dask scheduler, such as tcp://host:8786", _text, optional=True)
    host: str | None = _choice(
        None,
        "address that a local cluster listens on, for workers elsewhere to join; this machine alone when not given. "
        "Whoever reaches it can run code on it, unless Dask is configured to use TLS",
        _text,
        optional=True,
    )
    workers: int = _choice(1, "worker processes of a local cluster", _integer(1, 4096))
    threads: int | None = _choice(
        None,
        "threads of each worker, and of a training task; all cores when not given",
        _integer(1, 4096),
        optional=True,
    )
    hot_rows: int | None = _choice(
        None,
        "most used rows: on cpu each thread trains its own copy of them, where there is more than one, 254 / threads "
        "when not given; on cuda no warp keeps a copy of them from window to window, 0 when not given",
        _integer(0, 4096),
        optional=True,
    )
    flush_words: int = _choice(
        512, "centers after which a thread adds its copies of the 16 most used rows to the model", _integer(1, 8192)
    )
    max_in_flight: int | None = _choice(
        None,
        "warps of a GPU that train at the same time, at most; as many as it has room for when not given; never so many "
        "that each has less than 256 centers of the text loaded at a time",
        _integer(1, 65536),
        optional=True,
    )
    memory_limit: str | int = _choice(
        "auto",
        "memory of each local worker, such as '4 GiB'",
        _Rule(
            lambda v: (isinstance(v, str) and v == "auto") or _is_size(v),
            "'auto' or a size in bytes, as a number or as text such as '4 GiB'",
            _plain,
        ),
    )
    block_size: str | int = _choice("64 MiB", "text read by one task and held by one shard", _size)
    checkpoint_seconds: float = _choice(60.0, "time between checkpoints; 0 writes one a round", _number(0))
    eval_every: int | None = _choice(
        None,
        "rounds or passes between evaluations; only the last is evaluated when not given",
        _integer(1),
        optional=True,
    )
    eval_similarity: tuple[str, ...] = _choice((), "word pairs with human scores, to evaluate training on", _urls)
    eval_analogy: tuple[str, ...] = _choice((), "analogy questions, to evaluate training on", _urls)
    eval_categorization: tuple[str, ...] = _choice((), "words with classes, to evaluate training on", _urls)
    word_losses: bool = _choice(
        False, "keep the loss of every word in every step beside the model, where the strategy is columns", _flag
    )
    store_timeout: float = _choice(
        300.0,
        "seconds that an answer of a store is waited for; what fails or does not come is asked for again, four times",
        _number(0, open_low=True),
    )
    storage_options: Mapping[str, Any] = _choice({}, "options for fsspec (credentials, endpoints)", _options)

    @property
    def eval_sets(self) -> dict[str, tuple[str, ...]]:
        """The sets to evaluate training on, by kind."""
        kinds = ("similarity", "analogy", "categorization")
        return {kind: getattr(self, f"eval_{kind}") for kind in kinds}

    @property
    def block_bytes(self) -> int:
        """`block_size` in bytes."""
        return int(parse_bytes(self.block_size))
