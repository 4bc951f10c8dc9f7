import pytest

from daskw2v.errors import StoreError
from daskw2v.sequences.stages import stage
from daskw2v.storage import Store


def test_stage__is_one_folder_for_what_was_asked_and_held_by_one(tmp_path):
    work, told = Store(str(tmp_path)), []
    with stage(work, "walks", [1, "a"], told.append) as (home, _):
        with stage(work, "walks", [2, "a"], told.append) as (other, _):
            assert home.url != other.url
        with pytest.raises(StoreError, match="own already"), stage(work, "walks", [1, "a"], told.append):
            pass
    with stage(work, "walks", [1, "a"], told.append) as (again, _):
        assert again == home
    assert not told
