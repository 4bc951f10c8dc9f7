"""A model of the state of a work directory's versions: what each action makes of the state before."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from daskw2v.models.versions.state import State


def model(before: State, after: State, latest: datetime, undamaged: Collection[str]) -> State:
    """Return the state that the action of `after` makes of `before`; what the action leaves open is as in `after`.

    No clock was later than `latest`; `undamaged` are the first versions that are there and undamaged.
    """
    match after.change.action.split():
        case ["publish", version]:
            allowed = before.frozen is None or version == before.name
            names = before.names if version == before.name else (version, *before.names)
            return replace(before, names=names) if allowed else before
        case ["rollback", *_]:
            rest = [before.names[index:] for index in range(len(before.names))]
            return replace(before, names=after.names) if after.names in rest else before
        case ["tag", version, tag]:
            return replace(before, tags={**before.tags, tag: version})
        case ["untag", tag]:
            return replace(before, tags={other: version for other, version in before.tags.items() if other != tag})
        case ["hold", version]:
            added = {key: hold for key, hold in after.holds.items() if key not in before.holds}
            new = {key: hold for key, hold in added.items() if hold.version == version}
            return replace(before, holds={**before.holds, **new}) if len(new) == 1 else before
        case ["release", key]:
            return replace(before, holds={k: hold for k, hold in before.holds.items() if k != key})
        case ["freeze" | "unfreeze" as action]:
            return replace(before, frozen="" if action == "freeze" else None)
        case ["gc"]:
            needed = {*before.tags.values(), *(hold.version for hold in after.holds.values())}
            deleted = set(after.condemned) - set(before.condemned)
            ended = [hold for key, hold in before.holds.items() if key not in after.holds]
            is_allowed = needed.isdisjoint(deleted) and all(h.until and h.until <= latest.isoformat() for h in ended)
            if before.name in deleted:  # only if it is damaged; then an undamaged version is served if there is one
                left = set(undamaged) - set(after.condemned)
                is_allowed &= before.name not in undamaged and (after.name not in deleted or not left)
            elif after.names != before.names:
                is_allowed = False
            after = replace(before, names=after.names, condemned=after.condemned, holds=after.holds)
            return after if is_allowed else before
        case ["gc:", *_]:
            return replace(before, condemned=())
    return before  # a process took over
