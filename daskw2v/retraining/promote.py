"""Promotion: a finished version that is not served is checked against the gates, then served."""

from typing import Any

from daskw2v.config.arguments import check_type
from daskw2v.config.resources import Resources
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.versions.versions import Versions
from daskw2v.retraining.gates import Evaluated, Gates, Verdict, check_gates, evaluate_sets, judge
from daskw2v.store.urls import Location


def promote(
    work: Location,
    version: str,
    *,
    gates: Gates | None = None,
    resources: Resources | None = None,
    reason: str = "",
    request: str = "",
    **settings: Any,
) -> Verdict:
    """Check a staged version against the gates and the served version, and serve it if it passes.

    Parameters
    ----------
    work
        The work directory.
    version
        Name or tag of the version.
    gates
        The checks; by default those of `Gates()`. `resources` has their evaluation sets. Those of new text,
        `max_unknown` and `max_shift`, are left out: the text is not read.
    resources, **settings
        `Resources`, and values that replace their fields: evaluation sets, storage options, timeout of the store.
    reason, request
        As in `Versions.publish`.

    Returns
    -------
    Verdict
        The results of all gates. The version is served if `passed` is true.

    Raises
    ------
    ParameterError
        If a gate needs an evaluation set that `resources` lack.
    InputError
        If an evaluation set cannot be read.
    SupersededError
        If another version was served meanwhile.
    FrozenError
        If the versions are frozen.
    StoreError
        If there is no such version.

    Examples
    --------
    >>> vectors = daskw2v.train("text.txt", work="staged", stage=True, vector_size=8, min_count=1, listener=None)
    >>> versions, version = daskw2v.Versions.open("staged"), vectors.url.rpartition("/")[2]
    >>> versions.name_of("LATEST") is None
    True
    >>> daskw2v.promote("staged", version, reason="its neighbours of king are right").passed
    True
    >>> versions.name_of("LATEST") == version
    True
    """
    gates = Gates() if gates is None else gates
    check_type("gates", gates, Gates, "daskw2v.Gates(...)")
    resources = (Resources() if resources is None else resources).replace(**settings)
    check_gates(gates, resources.eval_sets)
    versions = Versions.open(work, resources.storage_options, resources.store_timeout)
    candidate, served = versions.find(version), versions.name_of()

    def evaluate_version(name: str) -> Evaluated:
        url, timeout = (versions.models / name).url, resources.store_timeout
        vectors = Vectors.open(url, resources.storage_options, store_timeout=timeout)
        return Evaluated(vectors, evaluate_sets(vectors, resources))

    published = None if served in (None, candidate.name) else evaluate_version(str(served))
    verdict = judge(gates, evaluate_version(candidate.name), published)
    if verdict.passed:
        versions.publish(candidate.name, expected=served, reason=reason or "promoted", request=request)
    return verdict
