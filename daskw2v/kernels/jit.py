"""Decorators that compile functions with Numba on the CPU, with the same flags and cache for all kernels.

Kernels release the GIL and are never `parallel=True` (its fallback layer aborts the process when two Dask
threads enter it); threads are explicit, inside a task.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numba
from numba.core import event
from numba.extending import intrinsic

from daskw2v.kernels import compilation
from daskw2v.kernels.cache import KernelCache

event.register("numba:compile", compilation.clock)

# NaN and infinity keep their meaning, as the check for divergence needs them; all other fast arithmetic is allowed.
FAST = ("nsz", "arcp", "contract", "afn", "reassoc")


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on its first call: without GIL and bounds checks, with fast arithmetic; cached on disk.

    A division by zero raises no error, as in NumPy.
    """
    return _compile(function, fastmath=set(FAST))


def exact(function: Callable[..., Any]) -> Any:
    """Compile a function like `kernel`, but without fast arithmetic: its results have the same bits in every kernel."""
    return _compile(function)


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function on its first call, with options of `numba.njit`; cached on disk."""
    compiled = numba.njit(nogil=True, boundscheck=False, error_model="numpy", **options)(function)
    if not numba.config.DISABLE_JIT:
        compiled._cache = KernelCache(function)
    return compiled


def inline(function: Callable[..., Any]) -> Any:
    """Compile a function as part of the kernels that call it."""
    return numba.njit(nogil=True, inline="always", error_model="numpy", fastmath=set(FAST))(function)


def emitting(returns: Any, *takes: Any, intrinsic: Any = intrinsic) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that turns a function that emits LLVM code into an intrinsic, which kernels can call.

    The decorated function takes an LLVM builder and the LLVM value of each argument; for an array, this is a pointer to
    its first element. It returns the LLVM value of the result, a list of the values of a tuple, or None.

    Parameters
    ----------
    returns, takes
        Numba's types of the result and of the arguments; None for an argument of any type.
    intrinsic
        Numba's decorator of intrinsics for the processor.
    """

    def decorate(emit: Callable[..., Any]) -> Any:
        @intrinsic
        @wraps(emit)
        def typed(typingctx: Any, *actual_types: Any) -> Any:
            types = [actual if kind is None else kind for kind, actual in zip(takes, actual_types, strict=True)]

            def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                pointers = [
                    context.make_array(kind)(context, builder, value).data if hasattr(kind, "ndim") else value
                    for kind, value in zip(types, values, strict=True)
                ]
                result = emit(builder, *pointers)
                if isinstance(result, list):
                    return context.make_tuple(builder, signature.return_type, result)
                return context.get_dummy_value() if result is None else result

            return returns(*types), codegen

        return typed

    return decorate
