"""Kernels for NVIDIA GPUs compiled without one: to PTX by Numba, to machine code by NVIDIA's linker.

Needs the extra `cuda` only. Tests use it, too.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from daskw2v.extras import needed
from daskw2v.kernels.simd import padded
from daskw2v.objectives.noise import Markets, Negatives
from daskw2v.objectives.windows import Windows
from daskw2v.sampling.segments import Segment
from daskw2v.vocabulary.huffman import Tree
from tests.support.cuda.occupancy import MULTIPROCESSORS

Capability = tuple[int, int]
DEPTH = 40  # nodes of the longest way: deeper than Huffman's trees over a billion words
_Launched = tuple[Any, int, tuple[Any, ...]]  # a kernel, bytes that it is launched with, and types of its arguments
_FLOATS, _INTEGERS, _WORDS = np.zeros(2, np.float32), np.zeros(2, np.int32), np.zeros(2, np.uint64)
_LONGS, _KEY = np.zeros(2, np.int64), np.uint64(1)
_NEGATIVES = Negatives(5, _WORDS, _KEY, 0, Markets(_WORDS, _INTEGERS, _WORDS))


class Setting(NamedTuple):
    """What a kernel is compiled for."""

    vector_size: int
    capability: Capability = (9, 0)
    window: int = 5
    negative: int = 5
    market_negative: int = 0

    @property
    def at_once(self) -> bool:
        """Whether four floats are added in one instruction."""
        return self.capability >= (9, 0)

    @property
    def shape(self) -> Any:
        shapes, limits = needed("daskw2v.objectives.cuda.shape", "cuda"), MULTIPROCESSORS[self.capability]
        share = shapes.shared_bytes_of_warp(limits.shared, limits.reserved)
        return shapes.Shape(padded(self.vector_size), self.window, self.at_once, share)


class Code(NamedTuple):
    """A compiled kernel: its text for any GPU, the machine code for one, and what the linker says of it.

    `ring` are the bytes of shared memory that it is launched with.
    """

    ptx: str
    cubin: bytes
    log: str
    ring: int = 0

    def figure(self, pattern: str) -> int:
        """Return a number of the linker's log, such as that before "registers"."""
        found = re.search(rf"(\d+) {pattern}", self.log)
        return int(found[1]) if found else 0

    @property
    def registers(self) -> int:
        return self.figure("registers")

    @property
    def spilled(self) -> int:
        """Bytes that are written to local memory for want of registers, and read again."""
        return self.figure("bytes spill stores") + self.figure("bytes spill loads")

    @property
    def local(self) -> int:
        """Bytes of local memory of a lane."""
        return self.figure("bytes lmem") + self.figure("stack")

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block, without those that CUDA keeps: for some GPUs the linker counts them."""
        end = 0
        for align, size in re.findall(r"\.shared \.align (\d+) \.b8 \w+\[(\d+)\];", self.ptx):
            end = -(-end // int(align)) * int(align) + int(size)
        return end + self.ring


def _tables() -> Any:
    shapes = needed("daskw2v.objectives.cuda.shape", "cuda")
    return shapes.KernelTables(_FLOATS, _FLOATS, np.int32(0), _FLOATS, _FLOATS)


def _over_pieces(kernel: Any, aim: Any) -> _Launched:
    types = needed("numba.cuda", "cuda").types
    windows, segment = Windows(5, True, 0.1, 0.1, 0, _KEY), Segment(_INTEGERS, _LONGS, _LONGS)
    values = _tables(), segment, _LONGS, _LONGS, windows, aim
    return *kernel, (*map(numba.typeof, values), types.float64[::1])


def _sgns(setting: Setting, each: bool) -> _Launched:
    kernels = needed("daskw2v.objectives.sgns.cuda", "cuda")
    return _over_pieces(
        kernels.compile_kernel(setting.shape, setting.negative, each, setting.market_negative), _NEGATIVES
    )


def _cbow_ns(setting: Setting) -> _Launched:
    kernels = needed("daskw2v.objectives.cbow_ns.cuda", "cuda")
    kernel = kernels.compile_kernel(setting.shape, setting.negative, True, True, setting.market_negative)
    return _over_pieces(kernel, _NEGATIVES)


def _sg_hs(setting: Setting) -> _Launched:
    kernel = needed("daskw2v.objectives.sg_hs.cuda", "cuda").compile_kernel(setting.shape, DEPTH)
    return _over_pieces(kernel, Tree(_INTEGERS, _LONGS))


def _cbow_hs(setting: Setting) -> _Launched:
    kernel = needed("daskw2v.objectives.cbow_hs.cuda", "cuda").compile_kernel(setting.shape, DEPTH, True)
    return _over_pieces(kernel, Tree(_INTEGERS, _LONGS))


def _buckets(setting: Setting) -> _Launched:
    types, kernels = needed("numba.cuda", "cuda").types, needed("daskw2v.objectives.sgns.buckets.cuda", "cuda")
    tables = numba.typeof(_tables())
    items = numba.typeof(kernels.Items(np.zeros(2, np.uint32), 5, _KEY))
    kernel = kernels.compile_kernel(padded(setting.vector_size), setting.negative, setting.at_once)
    return *kernel, (tables, items, items, types.int64, types.float32, types.uint64[::1], types.float64[::1])


def _path_buckets(setting: Setting) -> _Launched:
    types, kernels = needed("numba.cuda", "cuda").types, needed("daskw2v.objectives.sg_hs.buckets.cuda", "cuda")
    tables = numba.typeof(_tables())
    kernel, number = kernels.compile_kernel(padded(setting.vector_size), DEPTH, setting.at_once), types.int64
    return *kernel, (
        tables, types.uint32[::1], number[::1], number, types.float32, types.uint64[::1], types.float64[::1],
    )  # fmt: skip


def _columns(setting: Setting, adam: bool) -> _Launched:
    types, kernels = needed("numba.cuda", "cuda").types, needed("daskw2v.objectives.context_matrix.cuda", "cuda")
    real, bits, number = types.float32[::1], types.uint64, types.int64
    kernel = kernels.compile_kernel(padded(setting.vector_size), setting.negative, adam)
    return kernel, 0, (
        real, real, types.int32[:, ::1], bits[::1], real, bits, number, number, number, number, real,
    )  # fmt: skip


KERNELS: dict[str, Callable[[Setting], _Launched]] = {
    "sgns": lambda setting: _sgns(setting, each=False),
    "sgns, pair": lambda setting: _sgns(setting, each=True),
    "cbow_ns": _cbow_ns,
    "sg_hs": _sg_hs,
    "cbow_hs": _cbow_hs,
    "sgns, buckets": _buckets,
    "sg_hs, buckets": _path_buckets,
    "context_matrix": lambda setting: _columns(setting, adam=True),
    "context_matrix, sgd": lambda setting: _columns(setting, adam=False),
}


def _helper(module: str, name: str, *arguments: str) -> Callable[[Setting], tuple[Any, tuple[Any, ...]]]:
    """Return what names a kernel that does not depend on the setting; arguments are of types as "int32[]", "int64"."""

    def found(_: Setting) -> tuple[Any, tuple[Any, ...]]:
        types = needed("numba.cuda", "cuda").types
        named = [getattr(types, argument.removesuffix("[]")) for argument in arguments]
        kinds = [of[::1] if argument.endswith("[]") else of for of, argument in zip(named, arguments, strict=True)]
        return getattr(needed(module, "cuda"), name), tuple(kinds)

    return found


_TEXT = "daskw2v.sampling.cuda"
HELPERS = {
    "look up": _helper(
        _TEXT, "_look_up", "int32[]", "int32[]", "uint64[]", "uint64", *["int64"] * 3, "int32[]", "int64[]"
    ),
    "count": _helper(_TEXT, "_count_kept", "int32[]", "int32[]"),
    "place": _helper(_TEXT, "_write_kept", "int32[]", "int32[]", "int64", "int32[]", "int64[]", "int32[]"),
    "bound": _helper(_TEXT, "_write_bounds", "int64[]", "int64", "int32[]", "int64[]"),
    "close": _helper(_TEXT, "_write_ends", "int32[]", "int64", "int64", "int64[]", "int64[]"),
    "add squares": _helper("daskw2v.kernels.cuda.finite", "_add_squares", "float32[]", "float64[]"),
}
"""Kernels around those that train: they cut text, and look for NaN."""


@contextmanager
def _gpu_of(capability: Capability) -> Iterator[None]:
    """Stand in for the GPU that functions ask about which kernels call."""
    dispatcher: Any = needed("numba.cuda.dispatcher", "cuda")
    asked = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: type("GPU", (), {"compute_capability": capability})
    try:
        yield
    finally:
        dispatcher.get_current_device = asked


@cache
def compiled(name: str, setting: Setting) -> Code:
    """Return a kernel of KERNELS, or of HELPERS, as machine code.

    Raises
    ------
    MissingExtraError
        If numba-cuda, or the toolkit, is not installed.
    """
    needed("numba_cuda", "cuda")
    if name in HELPERS:
        return compiled_for(setting.capability, *HELPERS[name](setting))
    kernel, ring, signature = KERNELS[name](setting)
    return compiled_for(setting.capability, kernel, signature, ring)


def compiled_for(capability: Capability, kernel: Any, signature: tuple[Any, ...], ring: int = 0) -> Code:
    """Return a kernel as machine code, for arguments of these types, and a ring of so many bytes."""
    with _gpu_of(capability):
        ptx, _ = needed("numba.cuda", "cuda").compile_ptx(kernel.py_func, signature, fastmath=True, cc=capability)
    return linked(ptx, capability, ring)


@cache
def linked(ptx: str, capability: Capability, ring: int = 0) -> Code:
    """Return a kernel's text as machine code."""
    linker = needed("cuda.bindings.nvjitlink", "cuda")
    options = [f"-arch=sm_{capability[0]}{capability[1]}", "-verbose"]
    text, link = ptx.encode(), linker.create(len(options), options)
    try:
        linker.add_data(link, linker.InputType.PTX, text, len(text), "kernel")
        linker.complete(link)
        log, cubin = bytearray(linker.get_info_log_size(link)), bytearray(linker.get_linked_cubin_size(link))
        linker.get_info_log(link, log)
        linker.get_linked_cubin(link, cubin)
    finally:
        linker.destroy(link)
    return Code(ptx, bytes(cubin), log.decode(), ring)
