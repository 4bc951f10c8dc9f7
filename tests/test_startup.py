"""What starts fast imports little: asked of fresh interpreters, by the names of modules, which no load slows down."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from daskw2v.models.stored.store import write_ids, write_subwords, write_vocabulary
from daskw2v.models.stored.tables import create_model, write_partition, write_table_rows
from daskw2v.models.versions.versions import publish
from daskw2v.objectives.subwords.network import Alphabet, Subwords
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.store.storage import Store
from daskw2v.vocabulary.ids import StableIds
from daskw2v.vocabulary.partition import Partitions
from daskw2v.vocabulary.vocabulary import Vocabulary

ROOT = Path(__file__).parents[1]

CLUSTER = {"dask", "distributed", "bokeh", "tornado"}
COMPILER = {"numba", "llvmlite"}
TABLES = {"pandas", "pyarrow", "sklearn", "matplotlib"}
HEAVY = CLUSTER | COMPILER | TABLES | {"rich.console", "zarr", "torch", "gensim"}


def imported(lines, *arguments):
    """Return the packages and modules that are imported when some lines have run."""
    print_them = "import atexit, sys; atexit.register(lambda: print('imported:', *sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", f"{print_them}\n{lines}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = result.stdout.rpartition("imported: ")[2].split()
    assert "daskw2v" in names
    return {*names, *(name.partition(".")[0] for name in names)}


def test_import__loads_no_package_that_is_not_asked_for():
    assert imported("import daskw2v").isdisjoint(HEAVY | {"numpy"})


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_command_line__lists_commands_and_loads_none(option):
    assert imported("from daskw2v.cli import main; main()", option).isdisjoint(HEAVY | {"numpy"})


WORDS = ["king", "queen", "man", "woman"]
ASKED = """
import sys
from daskw2v import Vectors
vectors = Vectors.open(sys.argv[1])
vectors.most_similar("king"), vectors.analogy("man", "king", "woman"), vectors.similarity("man", "woman")
if vectors.subwords is not None:
    vectors["kings"]
"""


@pytest.fixture(params=["plain", "partitions", "subwords"])
def model(request, tmp_path):
    """A published model with stable ids; its rows lie in partitions, or a network makes them of characters."""
    subwords, n_partitions = request.param == "subwords", 2 if request.param == "partitions" else 1
    models, vocabulary = Store(str(tmp_path)) / "models", Vocabulary.from_words(WORDS, [4, 3, 2, 1])
    store, rows = models / "v0001-a", np.eye(4, dtype=np.float32) + 1
    create_model(store, {"input": rows.shape}, 4, n_partitions, subwords=subwords)
    write_vocabulary(store, vocabulary)
    write_ids(store, StableIds.first(vocabulary))
    if subwords:
        write_subwords(
            store, Subwords(Alphabet.from_words(WORDS), initial_weights(4, len(Alphabet.from_words(WORDS)), seed=1))
        )
    if n_partitions == 1:
        write_table_rows(store, "input", 0, rows)
    else:
        for partition in range(n_partitions):
            write_partition(store, "input", partition, rows[Partitions(len(rows), n_partitions).words(partition)])
    publish(models, "v0001-a", {})
    return str(tmp_path)


@pytest.mark.sampled(1)
def test_queries__load_what_reads_a_model_and_no_more(model):
    assert imported(ASKED, model).isdisjoint(HEAVY - {"zarr"})


@pytest.mark.slow
def test_training__loads_no_plots_and_no_tables(tmp_path):
    (tmp_path / "text.txt").write_text("one two three four\n" * 50)
    options = ("--work", str(tmp_path / "work"), "--min-count", "1", "--sample", "0", "--threads", "1")
    train = ("train", str(tmp_path / "text.txt"), *options)
    assert imported("from daskw2v.cli import main; main()", *train).isdisjoint({"bokeh"} | TABLES)


OTHERS = [["analogy", "man", "king", "woman"], ["info"]]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "command", [["similar", "king"], *(pytest.param(command, marks=pytest.mark.slow) for command in OTHERS)]
)
def test_commands__that_ask_a_model_load_what_reads_it_and_no_more(model, command):
    name, *words = command
    assert imported("from daskw2v.cli import main; main()", name, model, *words).isdisjoint(HEAVY - {"zarr"})
