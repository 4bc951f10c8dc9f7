"""A run whose text is read: everything that is decided before its first step, and the run's name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from daskw2v.config.identity import identity_fields
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.tokenizers import tokenizer_name
from daskw2v.objectives.registry import settle_params
from daskw2v.phrases.settings import with_threshold
from daskw2v.sampling.excerpt import Range
from daskw2v.sampling.run import Run
from daskw2v.shards.layout import Corpus, digest
from daskw2v.store.lease import Lease
from daskw2v.store.storage import Store
from daskw2v.training.sizes import Text, known_text
from daskw2v.training.watch.events import Callbacks, TrainedRun
from daskw2v.training.watch.held_out import SplitText, split_text
from daskw2v.vocabulary.count import StoredVocabulary


@dataclass(frozen=True)
class PlannedRun:
    """A run on text that is read, with all decisions made.

    Parameters
    ----------
    corpus, vocabulary
        The encoded text with its phrases joined, and its words.
    store
        The work directory.
    params
        Settings that change the vectors; what they leave open is chosen by `training.preparation.choice`.
    resources
        Settings that do not change the vectors.
    callbacks
        Objects that follow the training, and may stop it.
    new
        Ranges of positions that the base was not trained on, from which text is held out; None for all text.
    choice
        The record of the choice, with its reason as "why"; None where Params leave nothing open.
    """

    corpus: Corpus
    vocabulary: StoredVocabulary
    store: Store
    params: Params
    resources: Resources
    callbacks: Callbacks = field(default_factory=Callbacks)
    new: Sequence[Range] | None = None
    choice: Mapping[str, Any] | None = None

    @cached_property
    def name(self) -> str:
        """Name of the run, the end of its version's name: `run_identity`."""
        return run_identity(self.corpus, self.vocabulary, self.params, self.callbacks.rules)

    @cached_property
    def text(self) -> SplitText:
        """The text that is trained, and the sample of the held-out text, if any."""
        return split_text(self.corpus, self.params, self.new)

    @cached_property
    def sizes(self) -> Text:
        """The sizes of the trained text, which memory and time depend on."""
        return known_text(self.text.trained, self.vocabulary, self.params)

    @property
    def folder(self) -> Store:
        """The folder of the run's files until its version is published."""
        return run_folder(self.store, self.name)

    @property
    def trained(self) -> TrainedRun:
        """The facts of the run for callbacks, without its plan."""
        return TrainedRun(self.name, self.store.url, self.params, self.text.trained.n_tokens * self.params.epochs)

    def guarded(self, lease: Lease) -> Self:
        """Return the run with a work directory that can be written only as long as the lease is held."""
        return replace(self, store=lease.guard(self.store))

    def for_tasks(self) -> Run:
        """Return the run for tasks, without base, markets and features; save its text as `SplitText.save` does."""
        self.text.save(self.store)
        # The tokenizer by its name: tasks do not call it, and would have to carry the function
        params = self.params.replace(tokenizer=tokenizer_name(self.params.tokenizer))
        return Run(self.store, self.text.trained.name, self.vocabulary, params, self.resources.device.name)


def run_folder(store: Store, name: str) -> Store:
    """Return the folder, in a work directory, of the run of this name."""
    return store / "runs" / name


def settled_params(params: Params) -> Params:
    """Return Params in which the objective's defaults and the phrase threshold are filled in."""
    return with_threshold(settle_params(params))


def run_identity(corpus: Corpus, vocabulary: StoredVocabulary, params: Params, rules: Sequence[str] = ()) -> str:
    """Return the name of a run, 12 hex digits: equal for equal text, words and Params, however the text was cut.

    `rules` are the rules by which the run may be stopped early, besides its Params: runs with other rules have other
    names.
    """
    stopping = [list(rules)] if rules else []
    return digest([corpus.identity, vocabulary.identity, identity_fields(params), *stopping])[:12]
