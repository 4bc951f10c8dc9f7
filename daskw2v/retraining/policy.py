"""The policy of retraining: changes of the text, the part to train on, learning rate and epochs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from daskw2v.config.params import Params
from daskw2v.config.settings import FLAG, Settings, integer, number, one_of, setting
from daskw2v.corpus.files import Source
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.excerpt import Range, complement_ranges, join_ranges, make_excerpt, sample_ranges
from daskw2v.shards.layout import Corpus
from daskw2v.training.watch.stopping_settings import HELD_OUT_LOSS, get_monitor

_EPOCHS = 3  # or the epochs of Params, if fewer
_GROWTH = 0.7  # exponent: the trained row has the weight share**0.7 for a share of new text
_TEXT = "text to train on: new (only new text), sample (new text and a sample of the old) or all"
_EPOCHS_HELP = "epochs after the first version; 3, or those of Params if fewer, when not given"
_ALPHA = "initial learning rate after the first version; that of Params when not given, half of it without anchor"
_ANCHOR = (
    "weight of a word's row in the served version in its final row; when not given, 1 - s^0.7 for a share s of new "
    "text, and 0 for subwords, whose network makes the rows"
)

_MAX_SHOWN = 3  # files that a message names


class Changes(NamedTuple):
    """Files that are new, changed (as they are now) and removed (`gone`, as they were)."""

    new: tuple[Source, ...]
    changed: tuple[Source, ...]
    gone: tuple[Source, ...]

    @property
    def unread(self) -> tuple[Source, ...]:
        """New and changed files, on whose text no version was trained."""
        return self.new + self.changed

    def figures(self) -> dict[str, float]:
        """Return the numbers of new, changed and removed files, for `Summary.figures`."""
        return {"files_new": len(self.new), "files_changed": len(self.changed), "files_gone": len(self.gone)}

    def name_new(self) -> str:
        """Return a sentence that names new and changed files, which may have caused a bad version."""
        urls = [source.url for source in self.unread]
        more = f" and {len(urls) - _MAX_SHOWN} more" if len(urls) > _MAX_SHOWN else ""
        return f"New since the served version: {', '.join(urls[:_MAX_SHOWN])}{more}." if urls else "No file is new."


def compare_sources(old_sources: Sequence[Source], sources: Sequence[Source]) -> Changes:
    """Return the changes of files since an earlier run; all of them empty without changes.

    Files are compared by URL, size and version: ETag, checksum or modification time, whichever the filesystem has.
    """
    known = {source.identity_name: source for source in old_sources}
    present = {source.identity_name for source in sources}
    new = tuple(source for source in sources if source.identity_name not in known)
    changed = tuple(s for s in sources if s.identity_name in known and s.content != known[s.identity_name].content)
    return Changes(new, changed, tuple(source for source in old_sources if source.identity_name not in present))


class ChosenText(NamedTuple):
    """Text to train on: a corpus, and the ranges of its positions that are new since the base, the served version."""

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

    text: str = setting("sample", _TEXT, one_of("new", "sample", "all"))
    old_share: float = setting(0.05, "share of the old text in a sample", number(0, 1, open_low=True))
    alpha: float | None = setting(None, _ALPHA, number(0, open_low=True))
    epochs: int | None = setting(None, _EPOCHS_HELP, integer(1))
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
        has_network = find_objective(params.objective.name).has_network
        anchor = (0.0 if has_network else round(1 - new**_GROWTH, 4)) if self.anchor is None else self.anchor
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

        `unread` are the ascending ranges (start, stop) of positions of new text; `seed` is for the sample of old text.
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
