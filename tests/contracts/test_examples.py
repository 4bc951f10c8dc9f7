"""The examples of docstrings are run, in a folder that has the files and models that they name."""

import doctest
import inspect
import sys

import pytest

import daskw2v
from daskw2v import errors

NAMES = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (daskw2v, daskw2v.stages)
    for name in module.__all__
    if name != "__version__"
}
NAMES |= {
    f"daskw2v.errors.{name}": value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, daskw2v.Daskw2vError)
}
# Classes whose methods are called by users
CALLED = (
    "Vectors",
    "IndexedVectors",
    "Versions",
    "Follower",
    "Phrases",
    "Params",
    "Word2Vec",
    "Item2Vec",
    "Node2Vec",
)
# Methods of these that other modules of the package call
INTERNAL = {
    "blocks",
    "blocks_for",
    "norms",
    "pickles_as",
    "pieces",
    "rows",
    "slices",
    "units",
    "write_to",  # of Vectors
    "models",
    "newest_with_ids",  # of Versions
    "of",  # of Phrases
    "flat",
    "items",
    "names",
    "remedy",
    "replace",  # of Params: its own example shows replace
}
NEED = {  # packages of extras
    "daskw2v.items": "dask.dataframe",
    "daskw2v.Events": "dask.dataframe",
    "daskw2v.Item2Vec": "dask.dataframe",
    "daskw2v.MLflowLogger": "mlflow",
    "daskw2v.TensorBoardLogger": "tensorboardX",
    "daskw2v.from_gensim": "gensim",
    "daskw2v.to_gensim": "gensim",
}


def members(owner):
    """Yield public methods and properties of a class by name, inherited ones too."""
    for name in dir(owner):
        static = inspect.getattr_static(owner, name)
        documented = isinstance(static, property) or hasattr(static, "func") or inspect.isroutine(static)
        if documented and not name.startswith("_"):
            yield name, getattr(owner, name)


METHODS = {
    f"daskw2v.{owner}.{name}": member
    for owner in CALLED
    for name, member in members(getattr(daskw2v, owner))
    if name not in INTERNAL or (owner, name) == ("Vectors", "items")
}
EXAMPLES = {"daskw2v.stages": daskw2v.stages, **NAMES, **METHODS}


def run_here():
    """Return the names whose examples are run here, one of each method: `tests/models/test_doctests.py` has others."""
    run = {}
    for name, value in EXAMPLES.items():
        of = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
        if name not in METHODS or not of.__module__.startswith("daskw2v.models"):
            run.setdefault(of, name)
    return list(run.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text, events, edges, and models of the text with windows of 5 and of 2."""
    folder = tmp_path_factory.mktemp("examples")
    text = "the king and the queen\nthe man and the woman\nthe queen and the king of the land\n"
    (folder / "text.txt").write_text(text * 40)
    (folder / "events.csv").write_text("user,item,time\n" + "".join(f"{i // 6},i{i % 5},{i}\n" for i in range(60)))
    (folder / "edges.txt").write_text("".join(f"{i} {(i + 1) % 9}\n" for i in range(9)))
    for work, window in (("last-week", 5), ("work", 2)):
        params = daskw2v.Params(vector_size=8, min_count=1, epochs=1, window=window)
        daskw2v.train(folder / "text.txt", work=folder / work, params=params, listener=None)
    return folder


@pytest.mark.parametrize("name", EXAMPLES)
def test_name__has_an_example(name):
    before, heading, shown = (inspect.getdoc(EXAMPLES[name]) or "").partition("\n\nExamples\n--------\n")
    assert before
    assert heading
    assert shown.startswith(">>> ")


@pytest.mark.parametrize("name", run_here())
def test_example__gives_what_it_says(folder, monkeypatch, name):
    needed = next((package for of, package in NEED.items() if f"{name}.".startswith(f"{of}.")), None)
    if needed is not None:
        pytest.importorskip(needed, reason="it comes with an extra")
    if name == "daskw2v.warm_up":  # all kernels would be compiled, for minutes
        (folder / f"warm-up-{sys.implementation.cache_tag}.txt").touch()
        monkeypatch.setattr("daskw2v.training.warm_up.cache_folder", lambda: str(folder))
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(folder)
    value = EXAMPLES[name]
    runner, output = doctest.DocTestRunner(), []
    for test in doctest.DocTestFinder(recurse=False).find(value, name, globs={"daskw2v": daskw2v}):
        runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)
    assert runner.tries > 1
