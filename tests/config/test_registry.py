"""A registry: the package's own values, and those that installed distributions add by entry points."""

import re
import subprocess
import sys

import pytest

from daskw2v.config.registry import Registry
from daskw2v.errors import ParameterError
from daskw2v.training.averaging.merge import MergeRule

RULE = """
from daskw2v.training.averaging.merge import MergeRule
RULE = MergeRule(name={!r}, title="a rule", finish=print)
"""


@pytest.fixture
def rules():
    mean = MergeRule(name="mean", title="the mean", finish=print)
    return Registry("merge", "daskw2v.merge_rules", MergeRule, {"mean": mean})


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return what installs a distribution with one entry point, and a module of its own."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(distribution, name, value, source=""):
        info = tmp_path / f"{distribution}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n")
        (info / "entry_points.txt").write_text(f"[daskw2v.merge_rules]\n{name} = {value}\n")
        (tmp_path / f"{value.partition(':')[0]}.py").write_text(source)

    return install


def refused(rules, name):
    with pytest.raises(ParameterError) as caught:
        rules.find(name)
    return str(caught.value)


def test_find__returns_the_packages_own(rules):
    assert rules.find("mean") is rules["mean"]
    assert rules.names() == ("mean",)


def test_find__loads_a_plug_in_when_it_is_asked_for(rules, install):
    source = RULE.format("median")
    install("some-rules", "median", "rules_of_median:RULE", source)
    assert rules.names() == ("mean", "median")
    assert "rules_of_median" not in sys.modules
    assert rules.find("median") is sys.modules["rules_of_median"].RULE is rules.find("median")


def test_find__keeps_the_packages_own_before_a_plug_in(rules, install):
    install("impostor", "mean", "rules_of_impostor:RULE", "raise ImportError")
    assert rules.find("mean") is rules["mean"]
    assert rules.names() == ("mean",)


def test_find__lists_all_names_of_what_does_not_exist(rules, install):
    install("some-rules", "median", "rules_of_nobody:RULE", "raise ImportError")
    assert refused(rules, "mode") == "merge='mode' does not exist. Choose one of: mean, median."


def test_known__is_nothing_where_there_is_none_or_a_broken_one(rules, install):
    install("some-rules", "median", "rules_of_known:RULE", "raise ImportError")
    assert rules.known("mean") is rules["mean"]
    assert rules.known("mode") is rules.known("median") is None


def test_including__has_one_plug_in_beside_the_packages_own(rules, install):
    install("some-rules", "median", "rules_included:RULE", RULE.format("median"))
    assert rules.including("mean") == {"mean": rules["mean"]}
    assert rules.including("median") == {"mean": rules["mean"], "median": rules.find("median")}
    assert "does not exist" in refused(rules, "mode")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import absent_package", "cannot be loaded (ModuleNotFoundError: No module named 'absent_package')"),
        ("OTHER = 1", "cannot be loaded (AttributeError: "),
        ("RULE = 3", "is of type int; it must be a MergeRule"),
        (RULE.format("mode"), "calls itself 'mode'; the names must be equal"),
    ],
)
def test_find__names_the_distribution_of_a_broken_plug_in(rules, install, source, problem, tmp_path):
    name = f"broken_{tmp_path.name}"
    install("some-rules", name, f"{name}:RULE", source)
    message = refused(rules, name)
    assert message.startswith(f"merge={name!r} {problem}")
    assert message.endswith(f"Repair or uninstall some-rules 1.5, which adds it by '{name}:RULE'.")


def test_find__refuses_a_name_that_two_distributions_add(rules, install):
    install("some-rules", "median", "rules_of_one:RULE")
    install("other-rules", "median", "rules_of_two:RULE")
    message = refused(rules, "median")
    assert re.search(r"merge='median' is added by (some|other)-rules 1.5 and (some|other)-rules 1.5\.", message)


def test_import__loads_no_plug_in(install, tmp_path):
    install("some-rules", "median", "rules_of_import:RULE", "raise SystemExit('loaded')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import daskw2v, daskw2v.cli; "
    code += "print('rules_of_import' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
