"""The policy of retraining: the text on which a new version is trained, its learning rate and its epochs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from daskw2v.config.params import Params
from daskw2v.config.settings import FLAG, Settings, integer, number, one_of, setting
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.excerpt import Range, complement_ranges, join_ranges, make_excerpt, sample_ranges
from daskw2v.shards.layout import Corpus
from daskw2v.training.watch.stopping_settings import HELD_OUT_LOSS, get_monitor

_EPOCHS = 3  # or the epochs of Params, if fewer
_GROWTH = 0.7  # exponent: the trained row has the weight share**0.7 for a share of new text
_ALPHA = "initial learning rate after the first version; that of Params when not given, half of it without anchor"
_ANCHOR = (
    "weight of a word's row in the served version in its final row; when not given, 1 - s^0.7 for a share s of new "
    "text, and 0 for subwords, whose network makes the rows"
)


class ChosenText(NamedTuple):
    """Text to train on: a corpus, and its ranges of positions that are new since the base; None without a base."""

    text: Corpus
    new: Sequence[Range] | None


@dataclass(frozen=True, kw_only=True)
class Policy(Settings):
    """The rules of a retraining run: its training on new text, and the handling of the new version.

    A version starts from the vectors of the served one if that was trained with the same Params; otherwise it is
    trained from scratch, on all text. The defaults were chosen on Wikipedia, with a tenth to a third of it new (`python
    -m benchmarks.nightly --tables cost week`). Training on part of the text at a high learning rate harms words of the
    other text; training on all text at a low rate hardly moves new words. A mean of old and trained rows avoids both.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> policy = daskw2v.Policy(text="new", keep=3)
    >>> policy.replace(align=False).keep
    3
    """

    text: str = setting(
        "sample",
        "text to train on: new (only new text), sample (new text and a sample of the old) or all",
        one_of("new", "sample", "all"),
    )
    old_share: float = setting(0.05, "share of the old text in a sample", number(0, 1, open_low=True))
    alpha: float | None = setting(None, _ALPHA, number(0, open_low=True))
    epochs: int | None = setting(
        None, "epochs after the first version; 3, or those of Params if fewer, when not given", integer(1)
    )
    anchor: float | None = setting(None, _ANCHOR, number(0, 1))
    align: bool = setting(True, "rotate each version into the space of the served one", FLAG)
    index: bool = setting(False, "build an index for approximate nearest neighbours of each version", FLAG)
    keep: int = setting(7, "versions to keep, besides those with tags", integer(2))

    def params_after(self, params: Params, parent: str, new: float) -> Params:
        """Return the Params of a version that starts from its parent's vectors.

        Without new text they hold no text out, nor monitor a loss of held-out text: the parent was trained on all text.

        Parameters
        ----------
        params, parent
            Params of all versions, and the parent's name.
        new
            Share of the text that is new, 0..1.
        """
        assert params.alpha is not None  # Params are settled
        anchor = self.anchor
        if anchor is None:
            anchor = 0.0 if find_objective(params.objective.name).has_network else round(1 - new**_GROWTH, 4)
        chosen: dict[str, Any] = {
            "alpha": self.alpha or max(params.alpha / (1 if anchor else 2), params.min_alpha),
            "epochs": self.epochs or min(_EPOCHS, params.epochs),
            "anchor": anchor,
        }
        if not new:
            monitor = get_monitor(params)
            chosen |= {"held_out": 0.0, "monitor": None if monitor == HELD_OUT_LOSS else monitor}
        return params.replace(base_model=parent, base_vectors=None, **chosen)

    def choose(self, corpus: Corpus, unread: Sequence[Range], seed: int) -> ChosenText:
        """Return the part of a corpus to train on, which may be empty.

        `unread` are the ranges of positions of new text; `seed` is for the sample of old text.
        """
        if self.text == "all":
            return ChosenText(corpus, unread)
        ranges = list(unread)
        if self.text == "sample":
            ranges = sorted(ranges + sample_ranges(complement_ranges(ranges, corpus.n_tokens), self.old_share, seed))
        bounds = accumulate((stop - start for start, stop in ranges), initial=0)
        unread_ranges = set(unread)
        new = [new for new, old in zip(pairwise(bounds), ranges, strict=True) if old in unread_ranges]
        return ChosenText(make_excerpt(corpus, ranges), join_ranges(new))
