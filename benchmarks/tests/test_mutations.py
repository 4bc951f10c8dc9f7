"""Mutations change what they say, where they say it, and are judged by tests that pass without them."""

import io
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import mutations
from benchmarks.harness import Session
from benchmarks.mutations import Checkout, choose, known, modules, mutations_of, stages

SOURCE = '''
@decorated(frozen=True)
def is_short(words: list[str] | None, most: int = 3) -> bool:
    """Not in 1 + 1 words."""
    kinds, é = {**KINDS}, f"{most + 1}"; n = 0 if words is not None else len(words)
    for word in words:
        n += 1
    return n <= most and not any(kinds)
'''
THING = """
MOST = 8  # tuned

def double(n):
    found = 0
    while n > 0:
        found, n = found + 2, n - 1
    return found
"""
TESTS = """
import pytest
from daskw2v.thing import double

def test_double():
    assert double(3) == 6

@pytest.mark.slow
def test_slow():
    assert False
"""


def test_mutations_of__are_tokens_that_are_neither_types_nor_decorators_nor_text():
    found = [*mutations_of("a.py", SOURCE)]
    assert Counter(one.old for one in found if mutations._parses(one.applied(SOURCE))) == Counter(
        ["3", "0", "not", "+=", "1", "return", "<=", "and", "not", "any"]
    )
    lines = SOURCE.split("\n")
    for one in found:
        changed = one.applied(SOURCE).split("\n")
        assert [n for n, (a, b) in enumerate(zip(lines, changed, strict=True), 1) if a != b] == [one.line]
        assert changed[one.line - 1].startswith(lines[one.line - 1][: one.column] + one.new)


def test_choose__draws_by_the_seed_from_all_packages_two_of_a_module():
    files = modules()
    chosen = choose(3, 40, files)
    assert chosen == choose(3, 40, files)
    assert {one.key for one in chosen} != {one.key for one in choose(4, 40, files)}
    assert {*Counter(one.file for one in chosen).values()} == {2}
    assert {Path(one.file).parts[1:-1][:1] for one in chosen} == {Path(file).parts[1:-1][:1] for file in files}
    assert not any("kernels" in file or "cuda" in file for file in files)
    assert choose(3, 40, files[:50] + files[51:])[:10] == [one for one in chosen if one.file != files[50]][:10]


def test_known__are_mutations_of_the_code_of_today():
    there = {one.key for file in modules() for one in mutations_of(file, (mutations.ROOT / file).read_text())}
    assert [key for key in known() if key not in there] == []
    assert all(known().values())


def test_stages__are_files_that_are_named_like_a_module_or_import_it_then_the_package():
    first, *_, last = stages("daskw2v/store/numbered.py")
    assert {"tests/store/test_numbered.py", "tests/store/test_lease.py"} <= {*first}
    assert last == ("tests/store",)
    assert stages("daskw2v/safe_text.py") == [("tests/security/test_secrets.py", "tests/test_safe_text.py")]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A copy of a repository with one module and its test."""
    root = tmp_path / "root"
    for name, text in {"daskw2v/thing.py": THING, "tests/test_thing.py": TESTS, "tests/test_red.py": "x"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "pytest.ini").write_text("[pytest]\nmarkers = slow: takes long\naddopts = -ra\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.setattr(mutations, "ROOT", root)
    monkeypatch.setattr(mutations, "_MORE", 2)
    return Checkout(Session(None, tmp_path, io.StringIO()))


def test_judge__says_who_noticed_a_mutation(checkout):
    found = {one.key[1:]: one for one in mutations_of("daskw2v/thing.py", THING)}
    tests = [("tests/test_thing.py",)]

    def judge(text, change, tests=tests):
        return checkout.judge(found[text, change], tests)[:2]

    step = "found, n = found + 2, n - 1"
    assert judge(step, "+ -> -") == ("killed", "tests/test_thing.py::test_double")
    assert judge("MOST = 8  # tuned", "8 -> 9") == ("survived", "tests/test_thing.py")
    assert judge("MOST = 8  # tuned", "8 -> 9", [("tests/test_red.py",)]) == ("not judged", "no tests that pass")
    assert judge("found = 0", "0 -> 1", [("tests/test_red.py",), *tests])[0] == "killed"
    outcome, by = judge(step, "- -> +")
    assert (outcome, by[:14]) == ("killed", "no end within ")
    assert "tests/test_red.py: left out" in checkout._session.out.getvalue()
    assert (mutations.ROOT / "daskw2v/thing.py").read_text() == THING
    assert (checkout._root / "daskw2v/thing.py").read_text() == THING
