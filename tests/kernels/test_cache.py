import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import daskw2v
from daskw2v.kernels.cache import KernelCache, cache_folder, kernel_sources
from daskw2v.kernels.jit import kernel

PACKAGE = Path(daskw2v.__file__).parent
DECORATORS = {"kernel", "inline"}


def twice(x):
    return 2 * x


def compiled_functions(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and DECORATORS & {getattr(d, "id", "") for d in node.decorator_list}:
            yield node


def test_sources__hold_all_that_kernels_read():
    sources, seen = set(kernel_sources()), 0
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        functions = list(compiled_functions(tree))
        read = {node.id for function in functions for node in ast.walk(function) if isinstance(node, ast.Name)}
        seen += len(functions)
        assert path in sources or not functions, path
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("daskw2v"):
                names = {alias.asname or alias.name for alias in node.names} & read
                assert not names or Path(find_spec(node.module).origin) in sources, f"{path} reads {names}"
    assert seen > 90


def test_sources__leave_out_what_kernels_do_not_read():
    folders = {path.relative_to(PACKAGE).parts[0] for path in kernel_sources()}
    assert folders.isdisjoint({"cli", "report", "evaluation", "retraining", "models", "store", "config", "errors.py"})


@pytest.mark.slow
def test_key__holds_no_host_and_no_path(tmp_path):
    """An image that is built elsewhere, from a checkout at another place, has the kernels of this one."""
    script = "from daskw2v.kernels.cache import cache_folder; print(cache_folder())"
    folders = set()
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        os.symlink(PACKAGE, tmp_path / place / "daskw2v")
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "HOSTNAME": place}
        command = [sys.executable, "-c", script]
        done = subprocess.run(
            command, cwd=tmp_path / place, env=environment, capture_output=True, text=True, check=True
        )
        folders.add(done.stdout)
    assert len(folders) == 1


def test_folder_of_gpu_kernels__is_the_same_on_every_processor(tmp_path, monkeypatch):
    """So kernels that one host compiled are found on another, whose processor is of another kind."""
    caches = pytest.importorskip("daskw2v.kernels.cuda.cache", reason="numba-cuda comes with daskw2v[cuda]")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    here = {"processor": set(), "GPU": set()}
    try:
        for name in ("znver4", "sapphirerapids"):
            monkeypatch.setattr("llvmlite.binding.get_host_cpu_name", lambda name=name: name)
            cache_folder.cache_clear()
            here["processor"].add(KernelCache(twice).cache_path)
            here["GPU"].add(caches.CudaKernelCache(twice).cache_path)
    finally:
        cache_folder.cache_clear()
    assert {of: len(paths) for of, paths in here.items()} == {"processor": 2, "GPU": 1}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("folder", "kept"), [("cache", True), ("file/cache", False)])
def test_is_kept__tells_whether_another_process_finds_kernels(tmp_path, folder, kept):
    (tmp_path / "file").touch()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / folder), "TMPDIR": str(tmp_path)}
    script = "from daskw2v.kernels.cache import is_kept; print(is_kept())"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(kept)


def test_two_processes__do_not_take_one_name(tmp_path, monkeypatch):
    """Both read the index before either writes it: what each wrote is still what its key names."""
    monkeypatch.setattr("daskw2v.kernels.cache.cache_folder", lambda: str(tmp_path))
    one, other = KernelCache(twice), KernelCache(twice)
    one._impl.locator.ensure_cache_path()
    index = other._cache_file._load_index()
    one._cache_file.save("integers", "code for integers")
    monkeypatch.setattr(other._cache_file, "_load_index", lambda: index)
    other._cache_file.save("floats", "code for floats")
    actual = KernelCache(twice)._cache_file
    assert actual.load("floats") == "code for floats"
    assert actual.load("integers") in (None, "code for integers")


@pytest.mark.parametrize("lost", ["data", "index"])
def test_lost_file__is_made_again(tmp_path, monkeypatch, lost):
    monkeypatch.setattr("daskw2v.kernels.cache.cache_folder", lambda: str(tmp_path))
    assert kernel(twice)(np.int64(4)) == 8
    again = kernel(twice)
    assert again(np.int64(4)) == 8
    assert sum(again.stats.cache_hits.values()) == 1
    next(tmp_path.rglob({"data": "*.nbc", "index": "*.nbi"}[lost])).unlink()
    third = kernel(twice)
    assert third(np.int64(4)) == 8
    assert sum(third.stats.cache_misses.values()) == 1


MADE = """
import sys
from daskw2v.kernels.jit import inline, kernel

def made(step):
    @kernel
    def run(x):
        return step(x)
    return run

def adding(n):
    @inline
    def add(x):
        return x + n
    return add

run = made(adding(int(sys.argv[1])))
print(run(40), sum(run.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_kernel__made_by_a_function_is_cached_by_its_closure(tmp_path):
    (tmp_path / "made.py").write_text(MADE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)}

    def run(n):
        command = [sys.executable, "made.py", str(n)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert [run(1), run(2), run(1), run(2)] == [["41", "0"], ["42", "0"], ["41", "1"], ["42", "1"]]


LOADED = """
import sys
import numpy as np
from daskw2v.kernels.jit import kernel

@kernel
def doubled(values):
    result = np.empty_like(values)
    for i in range(len(values)):
        result[i] = np.sqrt(values[i]) + values[i]
    return result

for dtype in sys.argv[1:]:
    many = [doubled(np.array([4, 9], dtype)) for _ in range(1000)]
    print(many[-1].tolist(), "numba.typed.typeddict" in sys.modules)
"""


@pytest.mark.slow
def test_kernel__that_is_loaded_needs_no_compiler(tmp_path):
    """What compiles kernels takes .3 s to load, in each process and worker; one that is not there is still compiled."""
    (tmp_path / "loaded.py").write_text(LOADED)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)}

    def run(*dtypes):
        command = [sys.executable, "loaded.py", *dtypes]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert run("f8") == ["[6.0, 12.0] True"]
    assert run("f8", "i4") == ["[6.0, 12.0] False", "[6, 12] True"]


def test_kernel__that_closes_over_what_has_no_name_is_refused():
    things = [1.0]

    def first():
        return things[0]

    with pytest.raises(TypeError, match="closes over"):
        kernel(first)()
