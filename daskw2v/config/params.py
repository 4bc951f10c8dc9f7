"""`Params`: the settings that change the vectors; `TextParams`: the settings among them from text to words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Self

from daskw2v.config.choice import Choice, WithChoices, axis, group, is_axis, known_fields
from daskw2v.config.filters import FILTERS
from daskw2v.config.settings import (
    FLAG,
    SEPARATOR,
    TEXT,
    URL,
    Settings,
    StageName,
    get_default,
    integer,
    is_changed,
    number,
    one_of,
    setting,
)
from daskw2v.config.tokenizers import TOKENIZER, tokenizer_name
from daskw2v.errors import ParameterError, UnknownParameterError

# Parameters of earlier releases: the stage of each, and its value, which names of results still depend on
REMOVED: Mapping[str, tuple[StageName, Any]] = {"warmup": ("train", None), "pair_epochs": ("train", 1)}


_input = partial(setting, stage="read", honoured_by=("input",))
_column = partial(setting, stage="read", honoured_by=("input", "format"))
_words = partial(setting, stage="vocabulary")
_matrix = partial(setting, stage="matrix")
_train = partial(setting, stage="train")
_train_axis = partial(axis, stage="train")
_train_group = partial(group, stage="train")


@dataclass(frozen=True, kw_only=True)
class TextParams(Settings):
    """The fields of `Params` from text to words."""

    _staged = _is_part = True

    tokenizer: str | Callable[[list[str]], list[list[str]]] | Any = _input(
        "whitespace", "how a line becomes tokens", TOKENIZER, heading="Input"
    )
    format: str | None = _input(None, "format of the input; decided by the names of files when not given", TEXT)
    column: str = _column(
        "text",
        "column (of tables) or key (of JSONL) that holds text or tokens; doc.body is the field body of doc",
        TEXT,
    )
    weight: str | None = _column(
        None, "column or key of integers: how often the text of a row counts; 0 leaves it out", TEXT
    )
    delimiter: str | None = _column(
        None, "character between the fields of CSV; a comma, or a tab in TSV, when not given", SEPARATOR
    )
    filters: tuple[Any, ...] = _input(
        (),
        "which files are read, by columns that their folders name, as in day=2026-11-01: conditions such as "
        "day>=2026-11-01, which all hold",
        FILTERS,
        in_file_list=True,
    )
    errors: str = _input(
        "replace",
        "what becomes of invalid input: strict stops; replace puts U+FFFD for invalid UTF-8, skip drops the line; both "
        "drop lines that are no readable JSONL and rows of CSV of another number of fields, and count what they change",
        one_of("strict", "replace", "skip"),
    )
    min_count: int = _words(5, "fewest occurrences of a word that is kept", integer(1), heading="Vocabulary")
    max_final_vocab: int | None = _words(None, "most words to keep, by exact count; min_count still holds", integer(1))
    vocabulary: str | None = _words(
        None,
        "URL of a list of words, one a line, alone or with its count in the list, which is left out: only these are "
        "kept, whatever their count",
        URL,
    )
    phrases: Any = group("phrases that are joined", "daskw2v.phrases.settings:CLASSES", stage="phrases")


@dataclass(frozen=True, kw_only=True, init=False)
class Params(WithChoices, TextParams):
    """Everything that changes the vectors: equal Params and an equal corpus are an equal experiment.

    The names are gensim's wherever gensim has the setting. A function as tokenizer counts by its name and by its code:
    where the code is edited, text is read again. Edits of functions that it calls, or of globals that it reads, are not
    noticed; give the function another name then. A tokenizer of Hugging Face counts by its content.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> params = daskw2v.Params(vector_size=50, negative=10)
    >>> params.vector_size, params.objective.negative
    (50, 10)
    >>> params.replace(objective="cbow_ns").objective.negative
    10
    """

    _is_part = False

    objective: Choice = _train_axis(
        "sgns", "training objective", "daskw2v.objectives.settings:OBJECTIVES", heading="Model"
    )
    vector_size: int = _train(100, "dimensions of a vector", integer(1, 65536))
    window: int = _matrix(5, "largest distance between center and context", integer(1, 1024))
    shrink_windows: bool = _matrix(True, "draw the size of each window from 1..window", FLAG)
    sample: float = _matrix(1e-4, "frequency above which words are randomly dropped; 0 keeps all", number(0, 1))
    features: Any = _train_group("features that words' vectors are composed of", "daskw2v.features.settings:CLASSES")
    start: Any = _train_group("vectors that words begin with", "daskw2v.training.start.base_settings:CLASSES")
    strategy: Choice = _train_axis(
        "auto",
        "how workers train one model together; auto: the one that is forecast to be fastest, among those that fit into "
        "memory and read all settings",
        "daskw2v.training.strategy_choices:STRATEGIES",
        heading="Training",
    )
    epochs: int = _train(5, "passes over the corpus, or over the word-context matrix", integer(1))
    alpha: float | None = _train(
        None, "learning rate at the start; the objective's own when not given", number(0, 10, open_low=True)
    )
    min_alpha: float = _train(1e-4, "learning rate at the end", number(0, 10))
    optimizer: str | None = _train(None, "how gradients become updates; the objective's own when not given", TEXT)
    held_out: float = _matrix(
        0.0,
        "share of the text that a run never trains on, of the new text where `retrain` starts from a version: the loss "
        "there is measured after each epoch; its words count",
        number(0, 0.5),
    )
    seed: int = _matrix(1, "seed of all random draws", integer(0, 2**63 - 1))
    early_stopping: Any = _train_group("when training ends early", "daskw2v.training.watch.stopping_settings:CLASSES")
    max_bad_blocks: int = _input(
        0,
        "blocks of text (of block_size each) that may be left out because they cannot be read or kill their workers; "
        "the model's metadata names them",
        integer(0),
        heading="Faults",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha is not None and self.min_alpha > self.alpha:
            problem = f"min_alpha={self.min_alpha} is above alpha={self.alpha}; the learning rate only falls."
            raise ParameterError(problem, "Give a min_alpha of at most alpha.")

    def as_dict(self) -> dict[str, Any]:
        """Return all values as JSON types, by name; settings of choices and groups stand beside the fields.

        A choice becomes its name, a tokenizer function its import path, and `base_vectors` in memory the name of their
        type.

        Examples
        --------
        >>> import json
        >>> json.loads(json.dumps(daskw2v.Params(window=3).as_dict()))["window"]
        3
        """
        values = self.flat()
        if "prefix_sizes" in values:
            values["prefix_sizes"] = list(values["prefix_sizes"])
        values["filters"] = [[list(condition) for condition in group] for group in self.filters]
        values["feature_weights"] = [list(pair) for pair in values["feature_weights"]]
        base = values["base_vectors"]
        if not (base is None or isinstance(base, str)):
            values["base_vectors"] = type(base).__name__
        return {**values, "tokenizer": tokenizer_name(self.tokenizer)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return Params from a result of `as_dict`, also of an earlier release.

        Raises
        ------
        ParameterError
            If a name is unknown, a value is out of range, or a removed parameter does not have its default.

        Examples
        --------
        >>> params = daskw2v.Params(window=3)
        >>> daskw2v.Params.from_dict(params.as_dict()) == params
        True
        """
        known = known_fields(cls)
        for name, value in values.items():
            if name not in known and not (name in REMOVED and value == REMOVED[name][1]):
                raise UnknownParameterError(f"{name!r} is no parameter.", cls.remedy(name))
        # Earlier releases wrote all fields, also fields that their choices did not read, with their defaults
        read = cls(**{f.name: values[f.name] for f in fields(cls) if is_axis(f) and f.name in values}).flat()
        unread = {n for n, f in known.items() if n not in read and not is_changed(f, values.get(n, get_default(f)))}
        return cls(**{name: value for name, value in values.items() if name in known and name not in unread})


def published(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Params of a manifest, a result of `as_dict`, for published files: True replaces each URL or path.

    Names that this release does not know are left out, as their values may be locations.
    """
    known = known_fields(Params)
    return {
        name: True if known[name].metadata["is_location"] and value is not None else value
        for name, value in params.items()
        if name in known
    }
