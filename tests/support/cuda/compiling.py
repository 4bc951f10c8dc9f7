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
from daskw2v.objectives.noise import Negatives
from daskw2v.objectives.windows import Windows
from daskw2v.sampling.segments import Segment
from daskw2v.vocabulary.huffman import Tree

Capability = tuple[int, int]
DEPTH = 40  # nodes of the longest way: deeper than Huffman's trees over a billion words
_FLOATS, _INTEGERS, _WORDS = np.zeros(2, np.float32), np.zeros(2, np.int32), np.zeros(2, np.uint64)
_LONGS, _KEY = np.zeros(2, np.int64), np.uint64(1)


class Setting(NamedTuple):
    """What a kernel is compiled for."""

    vector_size: int
    capability: Capability = (9, 0)
    window: int = 5
    negative: int = 5

    @property
    def at_once(self) -> bool:
        """Whether four floats are added in one instruction."""
        return self.capability >= (9, 0)

    @property
    def shape(self) -> Any:
        pieces = needed("daskw2v.objectives.cuda.pieces", "cuda")
        return pieces.Shape(padded(self.vector_size), self.window, self.at_once)


class Code(NamedTuple):
    """A compiled kernel: its text for any GPU, the machine code for one, and what the linker says of it."""

    ptx: str
    cubin: bytes
    log: str

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
        """Bytes of shared memory of a block."""
        return self.figure("bytes smem")


def _over_pieces(kernel: Any, aim: Any) -> tuple[Any, tuple[Any, ...]]:
    types, pieces = needed("numba.cuda", "cuda").types, needed("daskw2v.objectives.cuda.pieces", "cuda")
    tables = pieces.WarpTables(_FLOATS, _FLOATS, np.int32(0), _FLOATS, _FLOATS, np.float32(1))
    windows, segment = Windows(5, True, 0.1, 0.1, 0, _KEY), Segment(_INTEGERS, _LONGS, _LONGS)
    values = map(numba.typeof, (tables, segment))
    return kernel, (*values, types.int64, types.int64, *map(numba.typeof, (windows, aim)), types.float64[::1])


def _sgns(setting: Setting, each: bool) -> tuple[Any, tuple[Any, ...]]:
    kernels = needed("daskw2v.objectives.sgns.cuda", "cuda")
    kernel = kernels.compiled(setting.shape, setting.negative, each)
    return _over_pieces(kernel, Negatives(setting.negative, _WORDS, _KEY))


def _cbow_ns(setting: Setting) -> tuple[Any, tuple[Any, ...]]:
    kernels = needed("daskw2v.objectives.cbow_ns.cuda", "cuda")
    kernel = kernels.compiled(setting.shape, setting.negative, True, True)
    return _over_pieces(kernel, Negatives(setting.negative, _WORDS, _KEY))


def _sg_hs(setting: Setting) -> tuple[Any, tuple[Any, ...]]:
    kernel = needed("daskw2v.objectives.sg_hs.cuda", "cuda").compiled(setting.shape, DEPTH)
    return _over_pieces(kernel, Tree(_INTEGERS, _LONGS))


def _cbow_hs(setting: Setting) -> tuple[Any, tuple[Any, ...]]:
    kernel = needed("daskw2v.objectives.cbow_hs.cuda", "cuda").compiled(setting.shape, DEPTH, True)
    return _over_pieces(kernel, Tree(_INTEGERS, _LONGS))


def _buckets(setting: Setting) -> tuple[Any, tuple[Any, ...]]:
    types, kernels = needed("numba.cuda", "cuda").types, needed("daskw2v.objectives.sgns.buckets.cuda", "cuda")
    pieces = needed("daskw2v.objectives.cuda.pieces", "cuda")
    tables = numba.typeof(pieces.WarpTables(_FLOATS, _FLOATS, 0, _FLOATS, _FLOATS, np.float32(1)))
    items = numba.typeof(kernels.Items(np.zeros(2, np.uint32), 5, _KEY))
    kernel = kernels.compiled(padded(setting.vector_size), setting.negative, setting.at_once)
    return kernel, (tables, items, items, types.int64, types.float32, types.uint64[::1], types.float64[::1])


def _path_buckets(setting: Setting) -> tuple[Any, tuple[Any, ...]]:
    types, kernels = needed("numba.cuda", "cuda").types, needed("daskw2v.objectives.sg_hs.buckets.cuda", "cuda")
    pieces = needed("daskw2v.objectives.cuda.pieces", "cuda")
    tables = numba.typeof(pieces.WarpTables(_FLOATS, _FLOATS, 0, _FLOATS, _FLOATS, np.float32(1)))
    kernel, number = kernels.compiled(padded(setting.vector_size), DEPTH, setting.at_once), types.int64
    return kernel, (
        tables, types.uint32[::1], number[::1], number, types.float32, types.uint64[::1], types.float64[::1],
    )  # fmt: skip


def _columns(setting: Setting, adam: bool) -> tuple[Any, tuple[Any, ...]]:
    types, kernels = needed("numba.cuda", "cuda").types, needed("daskw2v.objectives.context_matrix.cuda", "cuda")
    real, bits, number = types.float32[::1], types.uint64, types.int64
    kernel = kernels.compiled(padded(setting.vector_size), setting.negative, adam)
    return kernel, (
        real, real, types.int32[:, ::1], bits[::1], real, bits, number, number, number, number, real,
    )  # fmt: skip


KERNELS: dict[str, Callable[[Setting], tuple[Any, tuple[Any, ...]]]] = {
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
    """Return a kernel of KERNELS as machine code.

    Raises
    ------
    MissingExtraError
        If numba-cuda, or the toolkit, is not installed.
    """
    needed("numba_cuda", "cuda")
    kernel, signature = KERNELS[name](setting)
    with _gpu_of(setting.capability):
        ptx, _ = needed("numba.cuda", "cuda").compile_ptx(
            kernel.py_func, signature, fastmath=True, cc=setting.capability
        )
    return linked(ptx, setting.capability)


def linked(ptx: str, capability: Capability) -> Code:
    """Return a kernel's text as machine code."""
    linker = needed("cuda.bindings.nvjitlink", "cuda")
    options = [f"-arch=sm_{capability[0]}{capability[1]}", "-verbose", "-lineinfo"]
    text, link = ptx.encode(), linker.create(len(options), options)
    try:
        linker.add_data(link, linker.InputType.PTX, text, len(text), "kernel")
        linker.complete(link)
        log, cubin = bytearray(linker.get_info_log_size(link)), bytearray(linker.get_linked_cubin_size(link))
        linker.get_info_log(link, log)
        linker.get_linked_cubin(link, cubin)
    finally:
        linker.destroy(link)
    return Code(ptx, bytes(cubin), log.decode())
