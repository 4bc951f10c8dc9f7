"""A store that lists new files late: the newest entry of a log is found all the same, and no number is used twice."""

import pytest

from daskw2v.errors import StoreError
from daskw2v.store.numbered import NumberedLog
from daskw2v.store.storage import Store


@pytest.fixture
def folder(tmp_path):
    return Store(f"memory://{tmp_path.name}/log")


@pytest.fixture
def list_only(monkeypatch):
    """Return what lets stores list these entries alone; any entry that is there can be read."""

    def list_only(*numbers):
        monkeypatch.setattr(Store, "children", lambda _: [f"{number:08}.json" for number in numbers])

    return list_only


@pytest.mark.parametrize(("listed", "known"), [((1, 2), 0), ((1,), 0), ((), 0), ((1,), 2), ((), 3), ((1, 2, 3, 4), 0)])
def test_newest_number__counts_entries_that_are_not_listed_yet(folder, list_only, listed, known):
    log = NumberedLog(folder, kept=9)
    for number in (1, 2, 3, 4):
        assert log.append(number, {})
    list_only(*listed)
    # Without a listing and a known number, counting begins at the first entry
    assert log.newest_number(known) == 4


def test_append__uses_no_number_that_was_deleted_where_later_ones_are_not_listed_yet(folder, list_only):
    log = NumberedLog(folder)
    assert log.append(1, {})
    entry = log.append(2, {})
    assert log.read(1) is None
    list_only()
    assert log.append(1, {}) is None
    assert log.read(1) is None
    assert log.ends_with(2, entry)


@pytest.mark.parametrize("is_written", [True, False])
def test_append__whose_try_was_written_though_a_later_one_is_refused_is_done(folder, monkeypatch, is_written):
    """The answer to the first try is lost, and the lease, too, before the second one."""
    create = Store.create_manifest

    def refused(self, values, name):
        if is_written:
            create(self, values, name)
        raise StoreError("Another process has taken over the lease.")

    log = NumberedLog(folder)
    monkeypatch.setattr(Store, "create_manifest", refused)
    if is_written:
        assert log.ends_with(1, log.append(1, {}))
    else:
        with pytest.raises(StoreError, match="taken over"):
            log.append(1, {})
