"""How much of the text a new version is trained on, and from where it begins."""

from collections.abc import Sequence
from dataclasses import dataclass

from daskw2v.checked import FLAG, Checked, choice, integer, number, one_of
from daskw2v.objectives import find_objective
from daskw2v.params import Params
from daskw2v.sampling.excerpt import Range, excerpt, other_ranges, sample_ranges
from daskw2v.shards.layout import Corpus
from daskw2v.strategies import find_strategy
from daskw2v.strategies.schedule import ROUNDS

_EPOCHS = 3  # unless there are fewer
_GROWTH = 0.7  # a power of the new text's share: so far from its row before may a word be led


@dataclass(frozen=True, kw_only=True)
class Policy(Checked):
    """What a night's run does with new text, and with what it made.

    A version begins with the vectors of the one that is served, where that was trained by the same Params; else it is
    trained from scratch, on all text. The defaults were chosen on Wikipedia, a tenth to a third of it new (`python -m
    benchmarks.nightly --tables cost week`): a part of the text at a high learning rate spoils words that the rest is
    about, all of it at a low one hardly moves new words, and a mean of old rows and trained ones has the best of both.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.
    """

    text: str = choice(
        "sample", "what to train on: new text only, with a sample of the old, or all", one_of("new", "sample", "all")
    )
    old_share: float = choice(0.05, "share of the old text that a sample takes", number(0, 1, open_low=True))
    alpha: float | None = choice(
        None, "initial learning rate after the first version; that of Params by default, and half of it without anchor",
        number(0, open_low=True), optional=True,
    )  # fmt: skip
    epochs: int | None = choice(
        None, "epochs after the first version; 3 by default, and no more than those of Params", integer(1),
        optional=True,
    )  # fmt: skip
    anchor: float | None = choice(
        None,
        "share of its row in the version before that a word keeps; by default 1 less the new text's share to the power "
        "of 0.7, and 0 where a network makes rows",
        number(0, 1), optional=True,
    )  # fmt: skip
    align: bool = choice(True, "whether versions are turned into the space of the one before", FLAG)
    index: bool = choice(False, "whether an index for approximate neighbours is built with each version", FLAG)
    keep: int = choice(7, "versions that are kept, besides those with tags", integer(2))

    def params_after(self, params: Params, parent: str, new: float, trained: float) -> Params:
        """Return the Params of a version that begins with its parent's vectors.

        Parameters
        ----------
        params, parent
            Those of all versions, and the parent's name.
        new, trained
            Shares of the text that no version has seen, and that is trained on.
        """
        assert params.alpha is not None  # they are settled
        anchor = self.anchor
        if anchor is None:
            anchor = 0.0 if find_objective(params.objective).follows else round(1 - new**_GROWTH, 4)
        chosen = {
            "alpha": self.alpha or max(params.alpha / (1 if anchor else 2), params.min_alpha),
            "epochs": self.epochs or min(_EPOCHS, params.epochs),
            "anchor": anchor,
        }
        if _rounds_are_free(params):
            chosen["rounds_per_epoch"] = max(1, round(ROUNDS * trained))
        return params.replace(base_model=parent, **chosen)

    def choose(self, corpus: Corpus, unread: Sequence[Range], seed: int) -> Corpus:
        """Return what of a corpus is to be trained on, of which no version has seen some ranges; it may be empty."""
        if self.text == "all":
            return corpus
        ranges = list(unread)
        if self.text == "sample":
            ranges = sorted(ranges + sample_ranges(other_ranges(ranges, corpus.n_tokens), self.old_share, seed))
        return excerpt(corpus, ranges)


def _rounds_are_free(params: Params) -> bool:
    """Tell whether rounds are but interruptions, which cost more than the words between them where these are few."""
    reads = "rounds_per_epoch" in find_strategy(params.strategy).options
    return reads and params.n_replicas == 1 and params.rounds_per_epoch is None
