"""`Params`: what the user may choose that changes the vectors.

Each field states its default, help text, range, stage and readers once; validation, identities, command line and
documentation read them from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from daskw2v.config.choice import Choice, WithChoices, axis, is_axis, known_fields
from daskw2v.config.settings import FLAG, TEXT, URL, VECTORS, AxisName, StageName, default_of, integer, number, setting
from daskw2v.config.text_params import TextParams
from daskw2v.config.tokenizers import tokenizer_name
from daskw2v.config.weights import WEIGHTS
from daskw2v.errors import ParameterError, UnknownParameterError

# Parameters of earlier releases: the stage of each, and the value that still stands in names of results and manifests
REMOVED: Mapping[str, tuple[StageName, Any]] = {"warmup": ("train", None), "pair_epochs": ("train", 1)}
_KERNEL: tuple[AxisName, ...] = ("objective", "strategy", "device")


def published(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Params of a manifest as what is published names them: of a place only that one was given.

    Names that this version does not know are left out, as their values may be places.
    """
    known = known_fields(Params)
    return {
        name: True if known[name].metadata["place"] and value is not None else value
        for name, value in params.items() if name in known
    }  # fmt: skip


@dataclass(frozen=True, kw_only=True, init=False)
class Params(WithChoices, TextParams):
    """Everything that changes the vectors: equal Params and an equal corpus are an equal experiment.

    The names are gensim's wherever it has one. A function as tokenizer counts by its name and by its code: where
    that is edited, text is read again. Edits of what it calls or of globals that it reads are not seen; give the
    function another name then. A tokenizer of Hugging Face counts by its content.

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

    objective: Choice = axis(
        "sgns", "training objective", "daskw2v.objectives.settings:OBJECTIVES", stage="train", heading="Model"
    )
    vector_size: int = setting(100, "dimensions of a vector", integer(1, 65536), stage="train")
    window: int = setting(5, "largest distance between center and context", integer(1, 1024), stage="matrix")
    shrink_windows: bool = setting(True, "draw the size of each window from 1..window", FLAG, stage="matrix")
    sample: float = setting(
        1e-4, "frequency above which words are randomly dropped; 0 keeps all", number(0, 1), stage="matrix"
    )
    minn: int = setting(
        3, "fewest characters of an n-gram, marks of the word's begin and end included", integer(1, 255),
        stage="train", needs=("maxn",),
    )  # fmt: skip
    maxn: int = setting(
        0, "most characters of an n-gram: a word's vector is composed of its own row and of its n-grams'; 0 for none",
        integer(0, 255), stage="train", honoured_by=_KERNEL,
    )  # fmt: skip
    bucket: int = setting(
        2_000_000, "numbers that n-grams are hashed to", integer(1, 2**31 - 1), stage="train", needs=("maxn",)
    )
    features: str | None = setting(
        None,
        "URL of a table with the column word, or item, and others, such as a brand (Parquet, CSV, or a folder of "
        "them): a word's vector is composed of its own row and of those of what the table says of it",
        URL, stage="train", honoured_by=_KERNEL, optional=True,
    )  # fmt: skip
    feature_weights: tuple[Any, ...] = setting(
        (), "weights of the columns of that table, 1 for those that are not named; 0 leaves a column out", WEIGHTS,
        stage="train", needs=("features",),
    )  # fmt: skip
    prior_count: int = setting(
        2000,
        "occurrences of a word at which its own row weighs as much as all of its n-grams and features: four times as "
        "much at twice as many, but never less than one of them; 0 gives all rows the same weight, as fastText",
        integer(0, 2**62), stage="train", needs=("maxn", "features"),
    )  # fmt: skip
    base_model: str | None = setting(
        None,
        "version in the same work directory to train on from: words it knows begin with its rows",
        TEXT,
        stage="train",
        optional=True,
    )
    base_vectors: str | Any = setting(
        None,
        "vectors that words begin with: a file (word2vec, fastText, safetensors), a model, or a work directory",
        VECTORS,
        stage="train",
        optional=True,
    )
    frozen_words: str | None = setting(
        None,
        "words whose vectors do not move, of those that the base knows: known, for all of them, or the URL of a list, "
        "one a line",
        URL,
        stage="train",
        honoured_by=_KERNEL,
        optional=True,
    )
    anchor: float = setting(
        0.0,
        "weight of the base's row in the final row of each word it knows; 0 ignores it",
        number(0, 1),
        stage="train",
    )
    strategy: Choice = axis(
        "auto",
        "how workers train one model together; auto: the one that is forecast to be fastest, among those that fit into "
        "memory and train all that is given",
        "daskw2v.training.strategy_choices:STRATEGIES",
        stage="train",
        heading="Training",
    )
    epochs: int = setting(5, "passes over the corpus, or over the word-context matrix", integer(1), stage="train")
    alpha: float | None = setting(
        None,
        "learning rate at the start; the objective's own when not given",
        number(0, 10, open_low=True),
        stage="train",
        optional=True,
    )
    min_alpha: float = setting(1e-4, "learning rate at the end", number(0, 10), stage="train")
    optimizer: str | None = setting(
        None, "how gradients become updates; the objective's own when not given", TEXT, stage="train", optional=True
    )
    held_out: float = setting(
        0.0,
        "share of the text that a run never trains on, of the new text where `retrain` starts from a version: the loss "
        "there is measured after each epoch; its words count",
        number(0, 0.5),
        stage="matrix",
    )
    seed: int = setting(1, "seed of all random draws", integer(0, 2**63 - 1), stage="matrix")
    monitor: str | None = setting(
        None,
        "what early stopping watches at the end of each epoch: held_out_loss, or an evaluation set, such as "
        "similarity/ws353; all epochs are trained when not given",
        TEXT,
        stage="train",
        optional=True,
    )
    patience: int = setting(
        2,
        "epochs in a row in which what is monitored may fail to get better before training stops",
        integer(1),
        stage="train",
        needs=("monitor",),
    )
    min_delta: float = setting(
        0.0, "least change of what is monitored that counts as better", number(0), stage="train", needs=("monitor",)
    )
    max_bad_blocks: int = setting(
        0,
        "blocks of text (of block_size each) that may be left out because they cannot be read or kill their workers; "
        "the model's metadata names them",
        integer(0),
        stage="read",
        honoured_by=("input",),
        heading="Faults",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha is not None and self.min_alpha > self.alpha:
            raise ParameterError(
                f"min_alpha={self.min_alpha} is above alpha={self.alpha}; the learning rate only falls.",
                "Give a min_alpha of at most alpha.",
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types; a callable tokenizer becomes its import path, vectors their type.

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
        values["feature_weights"] = [list(pair) for pair in self.feature_weights]
        base = values["base_vectors"]
        if not (base is None or isinstance(base, str)):
            values["base_vectors"] = type(base).__name__
        return {**values, "tokenizer": tokenizer_name(self.tokenizer)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make Params from `as_dict`'s result; names it does not know are refused.

        Raises
        ------
        ParameterError
            If a name is unknown or a value is out of range.

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
        # Earlier releases wrote all fields, also those that their choices did not read: these were as by default
        read = cls(**{f.name: values[f.name] for f in fields(cls) if is_axis(f) and f.name in values}).flat()
        unread = {n for n, f in known.items() if n not in read and values.get(n, default_of(f)) == default_of(f)}
        return cls(**{name: value for name, value in values.items() if name in known and name not in unread})
