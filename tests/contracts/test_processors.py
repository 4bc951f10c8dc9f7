"""The same kernels on other processors: narrower registers here, and arm64 as far as a compiler can tell.

Each x86 runs in a process of its own, since registers are chosen when the package is imported.
"""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import pytest

ROOT = Path(__file__).parents[2]
SSE = "+64bit,+cmov,+cx8,+fxsr,+mmx,+sse,+sse2"
AVX2 = f"{SSE},+cx16,+sahf,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
PROCESSORS = {"haswell": (AVX2, 8), "x86-64": (SSE, 4)}

# A contract of each kernel, then the code that was compiled for them.
SCRIPT = """
import sys
from importlib import import_module
from pathlib import Path

import pytest

lanes, folder = sys.argv[1:]
contracts = ["tests/contracts/test_kernels.py", "tests/contracts/test_column_kernels.py"]
if code := pytest.main([*contracts, "-q", "-k", "range_of_centers or leave_words", "-p", "no:cacheprovider"]):
    sys.exit(code)
from daskw2v.config.params import Params
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.kernels.simd import LANES

assert int(lanes) == LANES
for name, objective in OBJECTIVES.items():
    if objective.has_network:
        continue  # its rows move by the kernel of another
    module = import_module(f"daskw2v.objectives.{name}.cpu")
    train = module.find_trainer(Params(objective=name)).kernel if objective.trainers else module._train
    (kernel,) = train.signatures  # no contract, no signature
    Path(folder, f"{name}.ll").write_text(train.inspect_llvm(kernel))
    Path(folder, f"{name}.s").write_text(train.inspect_asm(kernel))
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Start all processes side by side; return what waits for one and gives the folder of its kernels' code."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("only an x86-64 can act as a smaller one")
    features = llvmlite.binding.get_host_cpu_features()
    if not (features.get("avx2") and features.get("fma")):
        pytest.skip("this processor cannot act as one with AVX2 and FMA")
    running, folders = {}, {}
    for name, (told, lanes) in PROCESSORS.items():
        folder = folders[name] = tmp_path_factory.mktemp(name)
        environment = {
            **os.environ,
            "NUMBA_CPU_NAME": name,
            "NUMBA_CPU_FEATURES": told,
            "NUMBA_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": str(ROOT),
        }
        running[name] = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(lanes), folder],
            cwd=ROOT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def wait(name):
        if name in running:
            process = running.pop(name)
            told, _ = process.communicate(timeout=600)
            assert process.returncode == 0, told
        return folders[name]

    yield wait
    for process in running.values():  # whose test was not asked for
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.timeout(700)  # all kernels are compiled
@pytest.mark.parametrize("name", PROCESSORS)
def test_kernels__equal_their_references_on_a_smaller_processor(compiled, name):
    for path in sorted(compiled(name).glob("*.s")):
        code = path.read_text()
        assert "zmm" not in code
        assert ("ymm" in code) == ("vfmadd" in code) == (name == "haswell")
        assert "fmaf" not in code, "what the processor cannot fuse is no call for each number"


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["sgns", "cbow_ns", "sg_hs", "cbow_hs", "context_matrix"])
def test_kernels__are_vector_code_on_arm64(compiled, objective):
    """LLVM makes NEON's fused multiply-add of the very code that was compared with the reference here."""
    code = (compiled("x86-64") / f"{objective}.ll").read_text()
    llvmlite.binding.initialize_all_targets()
    llvmlite.binding.initialize_all_asmprinters()
    triple = "aarch64-unknown-linux-gnu"
    machine = llvmlite.binding.Target.from_triple(triple).create_target_machine(opt=3)
    code = re.sub('target triple = ".*"', f'target triple = "{triple}"', code)
    code = re.sub('target datalayout = ".*"', f'target datalayout = "{machine.target_data}"', code)
    code = re.sub('"target-(cpu|features)"="[^"]*"', "", code)
    # How Numba's arrays count their references, outside of all loops, is for x86 by now: a call stands in for it
    code = re.sub(r"@llvm\.x86\.atomic(.*)", lambda found: "@atomic" + found[1].replace("immarg", ""), code)
    assert "llvm.x86" not in code
    module = llvmlite.binding.parse_assembly(code)
    module.verify()
    assembly = machine.emit_assembly(module)
    assert re.search(r"fmla\s+v\d+\.4s", assembly)
    assert re.search(r"prfm\s+pst", assembly)
