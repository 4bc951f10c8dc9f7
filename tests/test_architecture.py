import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import daskw2v
from daskw2v import errors
from daskw2v.training.axes import AXES
from pipelines.docs.picture import PICTURE, picture

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "daskw2v"
OUR_ERRORS = {name for name in vars(errors) if name.endswith("Error")}

# Run in a fresh interpreter: what importing all public names compiled, and what it pulled in without need.
IMPORT_PROBE = """
import sys
from daskw2v import *
from numba.core.dispatcher import Dispatcher
ours = [module for name, module in sys.modules.items() if name.startswith("daskw2v")]
compiled = {n for m in ours for n, v in vars(m).items() if isinstance(v, Dispatcher) and v.overloads}
print(sorted(compiled | ({"numba.cuda", "gensim", "torch"} & set(sys.modules))))
"""


@pytest.fixture(scope="module")
def trees():
    """The syntax tree of each module of the package."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def line_of(path, node):
    return f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"


def is_field(node):
    """Whether it is a field of a Protocol, whose class documents it: a property without a body."""
    (first, *_) = node.body
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.value.value is ...


def public_definitions(node, prefix=""):
    """Yield public classes and functions, and the public methods of public classes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef) and not child.name.startswith("_") and not is_field(child):
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


def test_public_names__are_told_to_mypy_from_where_they_are_imported(trees):
    told = {
        alias.asname or alias.name: node.module
        for block in trees[PACKAGE / "__init__.py"].body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        for alias in node.names
    }
    assert told.pop("stages") == "daskw2v"
    assert told == {name: f"daskw2v.{module}" for name, module in daskw2v._MODULES.items()}
    assert sorted(told) == sorted(daskw2v.__all__) == dir(daskw2v)


def test_public_names__are_all_there_is():
    with pytest.raises(AttributeError, match="module 'daskw2v' has no attribute 'trian'"):
        daskw2v.trian  # noqa: B018


def test_public_names__that_moved_say_where_to():
    for name in daskw2v.stages.__all__:
        with pytest.raises(AttributeError, match=rf"^daskw2v\.{name} is daskw2v\.stages\.{name} now\.$"):
            getattr(daskw2v, name)
        assert getattr(daskw2v.stages, name).__doc__
    assert sorted(daskw2v._STAGES) == sorted(daskw2v.stages.__all__)


def test_public_names__are_no_names_of_modules():
    """A module that is imported becomes an attribute of its package, and would replace what is public by its name."""
    assert not {path.stem for path in PACKAGE.iterdir()} & {*daskw2v.__all__}


def test_sources__are_short(trees):
    long = [path for path in trees if len(path.read_text(encoding="utf-8").splitlines()) >= 600]
    assert long == []


def test_sources__document_what_is_public(trees):
    assert [path for path, tree in trees.items() if not ast.get_docstring(tree)] == []
    missing = [
        f"{line_of(path, node)} {name}"
        for path, tree in trees.items()
        for name, node in public_definitions(tree)
        if not ast.get_docstring(node)
    ]
    assert missing == []


def test_sources__import_at_the_top_only(trees):
    late = [
        line_of(path, node)
        for path, tree in trees.items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert late == []


def test_sources__reach_gpu_code_by_one_door(trees):
    """Modules named `cuda`, and those of package `cuda`, import Numba's CUDA target; others get them by `cuda.load`."""
    door = {f"daskw2v.kernels.cuda.{name}" for name in ("load", "call", "check_gpu")}
    wrong = []
    for path, tree in trees.items():
        if path.name == "cuda.py" or (path.parent.name == "cuda" and path.name != "__init__.py"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {f"{node.module}.{a.name}" if isinstance(node, ast.ImportFrom) else a.name for a in node.names}
                gpu = {name for name in names if re.search(r"(numba|daskw2v\b.*)\.cuda\b", name)}
                wrong += [f"{line_of(path, node)} {name}" for name in gpu - door]
    assert wrong == []


# Modules of one kind of device: the words GPU and CUDA stand in no other one
OF_GPUS = re.compile(r"(.+/)?cuda(\.py|/.*)|training/devices/.*|cluster/gpus\.py|objectives/\w+/__init__\.py")
NAMING_GPUS = {  # why others name them
    "__init__.py": "public names",
    "config/resources.py": "help texts of settings",
    "kernels/cache.py": "the sources of compiled kernels, and numba-cuda's classes",
    "objectives/subwords/training.py": "PyTorch's builds",
    "training/estimates/check.py": "messages about its memory",
    "training/estimates/memory.py": "the column of an estimate, which is published as `gpu`",
    "training/preparation/plan.py": "the same",
}


def test_sources__name_gpus_in_their_own_modules_alone(trees):
    """What a module does for one device, it would not do for that of a plug-in: a `Device` says what it needs."""
    naming = {
        module
        for path in trees
        if not OF_GPUS.fullmatch(module := path.relative_to(PACKAGE).as_posix())
        if re.search("gpu|cuda", path.read_text(encoding="utf-8"), re.IGNORECASE)
    }
    assert sorted(naming - NAMING_GPUS.keys()) == []


# What is asked of a filesystem of fsspec: each takes a name as it is, where `rm`, `cat`, `get`, `put`, `copy`, `mv` and
# others take it for a pattern
LITERAL = {
    "cat_file",
    "exists",
    "find",
    "info",
    "invalidate_cache",
    "isdir",
    "isfile",
    "ls",
    "makedirs",
    "open",
    "pipe_file",
    "protocol",
    "size",
    "transaction",
    "unstrip_protocol",
}
EXPANDING = {"store/literal.py": None, "corpus/sources.py": {"glob"}}  # where there may be others: any, or these
FSSPEC = {"fsspec.core.has_magic", "fsspec.core.url_to_fs", "zarr.storage.FsspecStore"}


def test_sources__ask_filesystems_by_calls_that_expand_no_names(trees):
    found = []
    for path, tree in trees.items():
        module = path.relative_to(PACKAGE).as_posix()
        allowed = EXPANDING.get(module, set())
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id="fs"), attr=name) if allowed is not None:
                    found += [f"{line_of(path, node)} fs.{name}"] * (name not in LITERAL | allowed)
                case ast.Import(names=names):
                    found += [line_of(path, node) for each in names if each.name.partition(".")[0] == "fsspec"]
                case ast.ImportFrom(module=str(source), names=names):
                    taken = {f"{source}.{each.name}" for each in names}
                    found += [line_of(path, node) for each in taken - FSSPEC if re.match(r"fsspec|.*FsspecStore", each)]
    assert found == []


def test_sources__name_filesystems_fs(trees):
    """Otherwise the test above would not see what is asked of them."""
    calls = {"filesystem", "_filesystem", "url_to_fs"}
    wrong = []
    for path, tree in trees.items():
        named = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
            if isinstance(first := node.targets[0].elts[0], ast.Name) and first.id in ("fs", "url_fs")
        } | {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Return)}
        wrong += [
            line_of(path, node)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and ast.unparse(node.func).rpartition(".")[2] in calls
            and id(node) not in named
        ]
    assert wrong == []


# Where the values of each axis are: what concerns one of them alone stands there, and asks for no other's name
OWNERS = {
    "tokenizer": ("corpus/tokenizers.py",),
    "format": ("corpus/formats/",),
    "objective": ("objectives/{name}/",),
    "strategy": ("training/{name}/",),
    "merge": ("training/averaging/merge.py",),
    "device": ("training/devices/",),
}
NAMES = {name: field for field, registry in AXES.items() for name in registry}
# Words that are names of an axis, and there of something else: a format that models are exported to
HOMONYMS = {"models/formats/export.py": {"text"}}


def branches_on_axes(tree):
    """Yield each node that compares a name of an axis, or looks something up by one, and the names if they are known.

    They are comparisons with "sgns", ROTATION.name or ROTATION, patterns of a `match`, and TABLE[params.strategy].
    """
    values = {name.upper() for name in NAMES}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for operand in (part for side in (node.left, *node.comparators) for part in ast.walk(side)):
                if isinstance(operand, ast.Constant) and operand.value in NAMES:
                    yield node, operand.value
                elif isinstance(operand, ast.Name) and operand.id in values:
                    yield node, operand.id.lower()
        elif isinstance(node, ast.MatchValue) and isinstance(node.value, ast.Constant) and node.value.value in NAMES:
            yield node, node.value.value
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Attribute) and node.slice.attr in AXES:
            yield node, None


def is_owned(path, name):
    """Whether a module, by its path in the package, belongs to what has a name."""
    return name is not None and path.startswith(tuple(owner.format(name=name) for owner in OWNERS[NAMES[name]]))


def test_sources__branch_on_no_name_of_an_axis(trees):
    """A value says itself what must be known of it: what asks for its name would forget a plug-in's."""
    assert OWNERS.keys() == AXES.keys()
    found = []
    for path, tree in trees.items():
        module = path.relative_to(PACKAGE).as_posix()
        for node, name in branches_on_axes(tree):
            if not is_owned(module, name) and name not in HOMONYMS.get(module, ()):
                found.append(f"{line_of(path, node)} {ast.unparse(node)}")
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "params.objective in ('sg_hs', 'cbow_hs')",
        "'cuda' == resources.device",
        "x != 'rotation' or y",
        "strategy.name == ROTATION.name",
        "strategy is ROTATION",
        "TRAINING[params.strategy](params)",
        "match device:\n case 'cuda': pass",
        "name not in {'normalize': 1}",
    ],
)
def test_branches_on_axes__are_found(source):
    assert list(branches_on_axes(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "params.negative_sharing == 'shared'",
        "find_strategy(params.strategy)",
        "device='cuda'",
        "{'cpu': 1, 'cuda': 2}",
        "name in registry",
        "strategy.name == name",
        "tables['input']",
    ],
)
def test_branches_on_axes__are_no_others(source):
    assert not list(branches_on_axes(ast.parse(source)))


def test_tests__import_nothing_from_benchmarks():
    """What both need is in tests/support."""
    wanted = re.compile(r"""^\s*(from|import) benchmarks|["']benchmarks\.""", re.MULTILINE)
    tests = sorted((ROOT / "tests").rglob("*.py"))
    assert [str(path.relative_to(ROOT)) for path in tests if wanted.search(path.read_text(encoding="utf-8"))] == []


def test_tests__have_names_of_their_own():
    """pytest imports files by their stems; two of a name are found out only where nothing skips one of them."""
    names = Counter(path.name for folder in (ROOT / "tests", ROOT / "benchmarks") for path in folder.rglob("test_*.py"))
    assert [name for name, n in names.items() if n > 1] == []


PRIVATE = re.compile(r"(.*\.)?_[A-Za-z]\w*")
PATCHES = {"setattr", "delattr", "setitem", "delitem", "patch", "object", "multiple"}


def is_private(node):
    """Whether it is an attribute of another object that is not for others, or a text that may be the name of one."""
    match node:
        case ast.Attribute(value=ast.Name(id="self" | "cls")):
            return False
        case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return PRIVATE.fullmatch(name) is not None
    return False


def patching_calls(tree):
    """Return calls such as `monkeypatch.setattr(...)`, `mock.patch(...)` and `client.run(setattr, ...)`."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return [
        call
        for call in calls
        if {getattr(part, "attr", getattr(part, "id", None)) for part in (call.func, *call.args)} & PATCHES
    ]


def private_patches(tree):
    """Yield each place where a private name is replaced, or something within what has one.

    Where a patch gets its name from a loop or a parameter, all private names in that function are counted.
    """
    for call in patching_calls(tree):
        if any(map(is_private, [*call.args, *ast.walk(call.args[0])])):
            yield call
        yield from (keyword.value for keyword in call.keywords if PRIVATE.fullmatch(keyword.arg or ""))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del) and is_private(node):
            yield node
        elif isinstance(node, ast.FunctionDef):
            calls = patching_calls(node)
            told = {id(part) for call in calls for part in call.args}
            if any(isinstance(part, ast.Name) for call in calls for part in call.args[1:2]):
                texts = (part for part in ast.walk(node) if isinstance(part, ast.Constant) and id(part) not in told)
                yield from filter(is_private, texts)


def test_tests__replace_few_private_names():
    """Each place breaks when what is inside changes: set a size of work, give an argument, or fake what is outside."""
    found = [
        f"{line_of(path, node)} {ast.unparse(node)}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in private_patches(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert len(found) <= 30, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "monkeypatch.setattr(module, '_SIZE', 3)",
        "monkeypatch.setattr('a.b._SIZE', 3)",
        "mock.patch('a._b.c._d')",
        "mock.patch.object(module, '_find')",
        "mock.patch.multiple(module, SIZE=3, _find=None)",
        "client.run(setattr, module, '_SIZE', 3)",
        "a._b = 3",
        "a, b._c = 1, 2",
        "monkeypatch.setattr(module._held, 'size', 3)",
        "monkeypatch.setitem(registry._added, 'name', 3)",
        "def f():\n for name in ['_a']:\n  patch.setattr(module, name, 3)",
    ],
)
def test_private_patches__are_found(source):
    assert len(list(private_patches(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "monkeypatch.setattr(module, 'SIZE', 3)",
        "self._a = 3",
        "pair._replace(a=3)",
        "patch.setattr(a, '__len__', 3)",
        "def f():\n for name in ['a']:\n  patch.setattr(module, name, 3)",
    ],
)
def test_private_patches__are_no_others(source):
    assert not list(private_patches(ast.parse(source)))


def test_errors__carry_problem_and_remedy(trees):
    raised = [
        (path, node.exc)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
    ]
    assert len([call for _, call in raised if call.func.id in OUR_ERRORS]) > 100
    bare = [line_of(path, call) for path, call in raised if call.func.id in OUR_ERRORS and len(call.args) != 2]
    assert bare == []


def test_picture__is_as_its_command_draws_it():
    assert PICTURE.read_text(encoding="utf-8") == picture(), "run python -m pipelines.docs.picture"


def test_picture__has_every_folder():
    drawn = re.findall(r"[>\s]([\w/]+)/(?=[:<\s])", PICTURE.read_text(encoding="utf-8"))
    folders = (path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)
    assert Counter(drawn) == Counter("/".join(folder.parts[1:] or folder.parts) for folder in folders)
