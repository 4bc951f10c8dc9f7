"""The fields of Params that the name of a result depends on.

A stage writes its result under a digest of its input and of the fields that change the result, each of which says its
`stage`. Names must stay the same from release to release, or finished work is not found. So the fields of the first
release always count, in one order; a field of a later release counts only where it does not have its default. A new
field with its default renames nothing.

A later field whose None means "chosen for you" must keep its None: a filled-in value would no longer be the default.
Where a field had another default in the first release, that default still counts in the names of runs to which the new
default does not apply.
"""

from collections.abc import Collection
from dataclasses import Field
from typing import Any

from daskw2v.config.choice import is_axis, known_fields
from daskw2v.config.params import REMOVED, Params
from daskw2v.config.settings import STAGE_NAMES, StageName, get_default, is_changed

# Never changed: digests have these fields in this order
FIRST_RELEASE = (
    "tokenizer", "format", "column", "errors", "max_bad_blocks", "phrases", "phrase_min_count", "phrase_threshold",
    "phrase_scoring", "phrase_delimiter", "min_count", "max_final_vocab", "vocabulary", "objective", "vector_size",
    "window", "shrink_windows", "sample", "negative", "negative_sharing", "ns_exponent", "cbow_mean", "optimizer",
    "alpha", "min_alpha", "epochs", "seed", "strategy", "n_replicas", "rounds_per_epoch", "merge", "warmup",
    "n_partitions", "n_groups", "passes_per_epoch", "negative_rule", "pair_epochs", "base_model", "anchor",
    "context_size", "base_matrix", "gather_every", "centered",
)  # fmt: skip


def identity_fields(params: Params, *stages: StageName, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the settings, as JSON types by name, that the names of the results of stages depend on.

    These are the stages' settings of the first release, including removed ones, and settings of later releases that
    differ from their defaults. Settings that the list of files depends on (`in_file_list`) are left out.

    Parameters
    ----------
    params
        The settings.
    stages
        The stages whose settings count, without the stages before them; all by default.
    without
        Names of settings to leave out, as the caller adds them to the name itself.
    """
    values = params.as_dict()
    known = known_fields(type(params)) | {f.name: f for f, _ in params.items()}
    wanted = stages or STAGE_NAMES
    read = {name: f for name, f in known.items() if f.metadata["stage"] in wanted and not f.metadata["in_file_list"]}
    fields = {name: f for name, f in read.items() if name not in without}
    changed = changed_fields(params)
    later = sorted(name for name in fields.keys() & changed if name not in FIRST_RELEASE)
    removed = {name: value for name, (stage, value) in REMOVED.items() if stage in wanted and name not in without}
    # The first release counted the defaults of settings that the choices do not read
    all_values = {name: values.get(name, get_default(f)) for name, f in fields.items()}
    counted = removed | {name: _as_in_first_release(f, params, all_values[name]) for name, f in fields.items()}
    first = {name: counted[name] for name in FIRST_RELEASE if name in counted}
    return {**first, **{name: values[name] for name in later}}


def changed_fields(params: Params) -> set[str]:
    """Return the names of fields, and of settings of choices and groups, that differ from their defaults.

    The choices themselves are left out.
    """
    return {f.name for f, value in params.items() if not is_axis(f) and is_changed(f, value)}


def _as_in_first_release(f: "Field[Any]", params: Params, value: Any) -> Any:
    """Return the value of a field, or its default of the first release where it is None and that default applies."""
    if value is not None or f.metadata["first"] is None:
        return value
    names = {params.objective.name, params.strategy.name, *changed_fields(params)}
    return value if names.intersection(f.metadata["first_ended_for"]) else f.metadata["first"]


def identity_values(params: Params, *stages: StageName, without: Collection[str] = ()) -> list[Any]:
    """Return `identity_fields` as a list: the values of the first release's fields, and a dict of later ones if any."""
    fields = identity_fields(params, *stages, without=without)
    later = {name: value for name, value in fields.items() if name not in FIRST_RELEASE}
    return [value for name, value in fields.items() if name not in later] + ([later] if later else [])
