"""The examples of docstrings are run, in a folder that has the files and models that they name."""

import doctest
import inspect

import pytest

import daskw2v

PUBLIC = {f"{module.__name__}.{name}": getattr(module, name) for module in (daskw2v, daskw2v.stages)
          for name in module.__all__}  # fmt: skip
PUBLIC["daskw2v.stages"] = daskw2v.stages
EXAMPLES = {name: value for name, value in PUBLIC.items() if ">>>" in (inspect.getdoc(value) or "")}
NEED = {"daskw2v.items": "dask.dataframe"}  # packages of extras


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


def test_examples__are_there():
    wanted = {"compare", "datasets", "estimate", "items", "report", "stages", "walks"}
    assert {f"daskw2v.{name}" for name in wanted} <= {*EXAMPLES}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example__gives_what_it_says(folder, monkeypatch, name):
    if name in NEED:
        pytest.importorskip(NEED[name], reason="it comes with an extra")
    monkeypatch.chdir(folder)
    value = EXAMPLES[name]
    runner, output = doctest.DocTestRunner(), []
    for test in doctest.DocTestFinder(recurse=False).find(value, name, globs={"daskw2v": daskw2v}):
        runner.run(test, out=output.append)
    assert (runner.failures, "".join(output)) == (0, "")
    assert runner.tries > 1
