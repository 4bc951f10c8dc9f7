import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import daskw2v
from daskw2v import errors

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "daskw2v"
SOURCES = sorted(PACKAGE.rglob("*.py"))
OUR_ERRORS = {name for name in vars(errors) if name.endswith("Error")}

# Run in a fresh interpreter: what `import daskw2v` compiled, and what it pulled in without need.
IMPORT_PROBE = """
import sys
import daskw2v
from numba.core.dispatcher import Dispatcher
ours = [module for name, module in sys.modules.items() if name.startswith("daskw2v")]
compiled = {n for m in ours for n, v in vars(m).items() if isinstance(v, Dispatcher) and v.overloads}
print(sorted(compiled | ({"numba.cuda", "gensim", "torch"} & set(sys.modules))))
"""


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def source_id(path):
    return path.relative_to(PACKAGE).as_posix()


def public_definitions(node, prefix=""):
    """Yield public classes and functions, and the public methods of public classes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef) and not child.name.startswith("_"):
            yield f"{prefix}{child.name}", child
            if isinstance(child, ast.ClassDef):
                yield from public_definitions(child, f"{child.name}.")


def test_layers__nothing_flows_back():
    pytest.importorskip("importlinter", reason="import-linter comes with daskw2v[dev]")
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command as lint; lint()",
            "--no-cache",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_import__compiles_nothing_and_loads_no_gpu_code():
    result = subprocess.run([sys.executable, "-c", IMPORT_PROBE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_public_names__exist_and_are_documented():
    assert daskw2v.__all__
    for name in daskw2v.__all__:
        assert getattr(daskw2v, name).__doc__, name


@pytest.mark.parametrize("path", SOURCES, ids=source_id)
def test_source__is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 400


@pytest.mark.parametrize("path", SOURCES, ids=source_id)
def test_source__documents_what_is_public(path):
    tree = tree_of(path)
    assert ast.get_docstring(tree), "the module"
    missing = [name for name, node in public_definitions(tree) if not ast.get_docstring(node)]
    assert missing == []


@pytest.mark.parametrize("path", SOURCES, ids=source_id)
def test_source__imports_at_the_top_only(path):
    functions = [n for n in ast.walk(tree_of(path)) if isinstance(n, ast.FunctionDef)]
    late = [n.lineno for f in functions for n in ast.walk(f) if isinstance(n, ast.Import | ast.ImportFrom)]
    assert late == []


@pytest.mark.parametrize("path", SOURCES, ids=source_id)
def test_source__reaches_gpu_code_by_one_door(path):
    """Modules named `cuda`, and those of package `cuda`, import Numba's CUDA target; others get them by `cuda.load`."""
    imports = [n for n in ast.walk(tree_of(path)) if isinstance(n, ast.Import | ast.ImportFrom)]
    names = {f"{n.module}.{a.name}" if isinstance(n, ast.ImportFrom) else a.name for n in imports for a in n.names}
    gpu = {name for name in names if re.search(r"(numba|daskw2v\b.*)\.cuda\b", name)}
    behind = path.name == "cuda.py" or (path.parent.name == "cuda" and path.name != "__init__.py")
    assert behind or gpu <= {"daskw2v.cuda.load", "daskw2v.cuda.check_gpu"}


@pytest.mark.parametrize("path", SOURCES, ids=source_id)
def test_errors__carry_problem_and_remedy(path):
    raised = [n.exc for n in ast.walk(tree_of(path)) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)]
    bare = [
        call.lineno
        for call in raised
        if isinstance(call.func, ast.Name) and call.func.id in OUR_ERRORS and len(call.args) != 2
    ]
    assert bare == []
