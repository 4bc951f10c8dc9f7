"""The examples of docstrings have the results that they show."""

import doctest
import importlib
import pkgutil
import shutil

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import daskw2v.models
from tests.support.published import NEW, OLD, write_model

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(daskw2v.models.__path__, "daskw2v.models.") if not module.ispkg
)
NEEDED = {
    "to_polars": "polars",
    "to_gensim": "gensim",
    "from_gensim": "gensim",
    "to_arrow": "pyarrow",
    "to_pandas": "pandas",
    "record_batches": "pyarrow",
    "to_dask_dataframe": "dask.dataframe",
    "to_dask_neighbours": "pandas",
}  # packages of extras
FLAGS = doctest.NORMALIZE_WHITESPACE


def examples():
    """Yield each docstring of a module with examples."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in MODULES:
        module = importlib.import_module(name)
        yield from (test for test in finder.find(module, name) if test.examples)


EXAMPLES = {test.name: test for test in examples()}


@pytest.fixture(autouse=True)
def no_files_in_memory():
    """Give each example an empty store, in any process and at any repetition."""
    MemoryFileSystem.store.clear()
    yield
    MemoryFileSystem.store.clear()


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Publish two versions."""
    folder = tmp_path_factory.mktemp("published")
    write_model(folder, OLD, NEW)
    return folder


@pytest.mark.parametrize("name", EXAMPLES)
def test_docstring__shows_what_happens(name, monkeypatch, tmp_path, work):
    if (package := NEEDED.get(name.rpartition(".")[2])) is not None:
        pytest.importorskip(package)
    shutil.copytree(work, tmp_path / "work")
    monkeypatch.chdir(tmp_path)  # an example that wrote a file would leave it there
    test = EXAMPLES[name]
    test.globs = {}
    out = []
    failed, tried = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=out.append)
    assert (failed, tried > 0) == (0, True), "".join(out)


def test_examples__exist_for_each_query():
    shown = {name.rpartition(".")[2] for name in EXAMPLES}
    wanted = {
        "Vectors", "align", "analogy", "closer_than", "cosine_similarities", "distance", "distances", "doesnt_match",
        "encode", "evaluate", "exact", "find_alignment", "get_index", "get_mean_vector", "get_vecattr", "get_vector",
        "has_index_for", "index_to_key", "key_to_index", "most_similar", "most_similar_cosmul", "n_similarity",
        "nearest", "open", "predict_output_word", "prefix", "push_to_hub", "rank", "report", "save",
        "save_word2vec_format", "similar_by_vector", "similar_by_word", "similarity", "to_dask_neighbours",
        "to_gensim", "to_polars", "with_ngrams",
    }  # fmt: skip
    assert wanted <= shown
