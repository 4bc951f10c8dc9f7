"""Nothing that the package reads is run: it does not import or call what turns data into code."""

import ast
from pathlib import Path

import pytest

import daskw2v

_PACKAGE = Path(daskw2v.__file__).parent
_MODULES = {
    "pickle",
    "cPickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "yaml",
    "runpy",
    "code",
    "xmlrpc",
}
_NAMES = {"eval", "exec", "compile", "__import__", "execfile"}
_METHODS = {"torch.load", "np.load", "numpy.load", "np.fromregex", "numba.core.serialize", "subprocess", "os.system"}

# What is done all the same, and why nothing that a file holds is run by it:
# - `re.compile` makes patterns of the user's own tokenizer; `importlib.import_module` imports a tokenizer that the user
#   names in Params, and commands and packages by our own tables. No name is read from a model, shard or manifest.
# - A process that matches such a pattern (corpus.matching) runs a module of this package.
# - A model or corpus may name a plug-in. What is imported then (config.registry) is what an installed distribution
#   declares by an entry point, and nothing that the file holds.
# - `ast.literal_eval` reads lists of Python's from one published set (evaluation.datasets): literals only.
# - Dask pickles tasks and results between the processes of a cluster, which trust each other (TLS, loopback).
# - Numba unpickles its cache of machine code, below a folder of the user's own (daskw2v.kernels.cache).
_IMPORTERS = {
    "corpus/tokenizers.py",
    "__init__.py",
    "cli/program.py",
    "cli/training.py",
    "cli/versions.py",
    "config/choice.py",
    "kernels/cuda/__init__.py",
    "models/stored/quantization.py",
    "estimators/base.py",
    "models/index/kinds.py",
    "models/queries/outputs.py",
    "models/queries/shortcuts.py",
    "models/queries/features.py",
    "extras.py",
}


def _dotted(node):
    """Return `a.b.c` of a name or attribute; nothing of what is neither."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _offences(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] in _MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _MODULES:
            yield node.module
        elif isinstance(node, ast.Call):
            name = _dotted(node.func)
            if name in _NAMES or name in _METHODS:
                yield name
            yield from (k.arg for k in node.keywords if k.arg == "allow_pickle" and _is_true(k.value))


def _is_true(node):
    return not (isinstance(node, ast.Constant) and node.value is False)


def test_package__never_makes_code_of_data():
    found = {str(p.relative_to(_PACKAGE)): list(_offences(p.read_text())) for p in _PACKAGE.rglob("*.py")}
    assert {path: offences for path, offences in found.items() if offences} == {}


def test_package__imports_by_name_in_few_places():
    found = {str(p.relative_to(_PACKAGE)) for p in _PACKAGE.rglob("*.py") if "import_module" in p.read_text()}
    assert found <= _IMPORTERS


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "eval('1')",
        "np.load(f, allow_pickle=True)",
        "torch.load(f)",
        "import yaml",
        "exec(text)",
        "np.load(f)",
        "x(allow_pickle=flag)",
    ],
)
def test_offences__are_found(source):
    assert list(_offences(source))


@pytest.mark.parametrize("source", ["re.compile('a')", "ast.literal_eval('1')", "model.eval()", "json.loads(text)"])
def test_offences__are_no_others(source):
    assert not list(_offences(source))
