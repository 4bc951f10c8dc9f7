import sys

import pytest

from daskw2v.errors import MissingExtraError
from daskw2v.extras import needed


def test_needed__imports_what_is_installed():
    assert needed("json.decoder", "evaluation") is sys.modules["json.decoder"]


@pytest.mark.parametrize("name", ["absent_package", "absent_package.part"])
def test_needed__names_the_extra_of_what_is_not(name):
    with pytest.raises(MissingExtraError, match=r"absent_package is not .*pip install 'daskw2v\[evaluation\]'"):
        needed(name, "evaluation")


def test_needed__hides_no_fault_of_an_installed_module(tmp_path, monkeypatch):
    (tmp_path / "faulty_package.py").write_text("import absent_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="absent_package") as caught:
        needed("faulty_package", "evaluation")
    assert not isinstance(caught.value, MissingExtraError)
