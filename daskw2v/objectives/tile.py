"""The step that word vector training is made of: a tile of contexts against targets, in registers.

A tile takes one or two context rows x and up to eight target rows y, computes all dot products, and moves both
sides along the gradient of

    sum of log sigmoid(s * x.y),   s = +1 for the target, -1 for a negative, 0 for a pair that does not count.

With p = sigmoid(s * x.y) the gradient by x is s * (1 - p) * y, and the loss is -log p. All dots are taken before
any row moves; then the targets move in order, and each context gains what the targets (as they were just before
their own move) say. `objectives.sgns.reference` says the same in float64 NumPy.

Figures for d=100, five negatives, one core with AVX-512 (prototypes measured before the package existed): plain
loops 1.0, this vector type 1.3, prefetching 1.6, two contexts at a time 2.4 million words/s; the transposing
reduction and the vector sigmoid below add what `benchmarks.train_speed` shows.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from daskw2v import simd
from daskw2v.simd import LANES, SLOTS

MAX_TARGETS = SLOTS // 2  # of one tile: two contexts times eight targets fill the slots
SIGNS = 3 * MAX_TARGETS  # floats that describe a tile's pairs: signs twice, then zeros
_LIMIT = 30.0  # |x.y| beyond which a sigmoid is 0 or 1 to float32

_i32 = ir.IntType(32)


def group_sizes(n_targets: int) -> tuple[int, int]:
    """Return how many tiles n_targets are spread over, and the targets of each (the last may hold fewer)."""
    n_groups = -(-n_targets // MAX_TARGETS)
    return n_groups, -(-n_targets // n_groups)


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _step(contexts: int) -> Any:
    """Make the intrinsic for tiles of one or of two contexts."""

    @intrinsic
    def step(
        typingctx: Any,
        source: Any,
        x0: Any,
        x1: Any,
        output: Any,
        rows: Any,
        signs: Any,
        group: Any,
        width: Any,
        alpha: Any,
        mantissa: Any,
        exponent: Any,
        tile: Any,
    ) -> Any:
        """Train one tile.

        `source`, `output` are flat float32 tables; x0, x1 and rows[group * len(tile):] are offsets into them;
        signs[group * SIGNS:] says what each pair is. The loss is kept as a running product of 1/p, lane by lane:
        mantissa (16,) float32 and exponent (16,) int32. The length of the tuple `tile` is the number of
        targets: being part of a type, it lets the loops over targets unroll.
        """
        signature = types.void(
            source, types.intp, types.intp, output, rows, signs, types.intp, types.intp, types.float32,
            mantissa, exponent, tile,
        )  # fmt: skip
        targets = len(tile)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            w, c, row_list, sign_list, ones, powers = (
                _data(context, builder, sig.args[i], args[i]) for i in (0, 3, 4, 5, 9, 10)
            )
            index, rate = args[6], args[8]
            n = args[7]
            intp = n.type
            x = [builder.gep(w, [args[1 + i]]) for i in range(contexts)]
            first = builder.mul(index, intp(targets))
            y = [
                builder.gep(c, [builder.load(builder.gep(row_list, [builder.add(first, intp(t))]))])
                for t in range(targets)
            ]

            def at(pointer: Any, k: Any) -> Any:
                return builder.gep(pointer, [k])

            # 1. dot products
            zero = simd.constant(0.0, LANES)
            accumulators = [[cgutils.alloca_once_value(builder, zero) for _ in range(targets)] for _ in range(contexts)]
            with cgutils.for_range_slice(builder, intp(0), n, intp(LANES), intp) as (k, _):
                v = [simd.load(builder, at(p, k), LANES) for p in x]
                for t in range(targets):
                    o = simd.load(builder, at(y[t], k), LANES)
                    for i in range(contexts):
                        a = accumulators[i][t]
                        builder.store(simd.fma(builder, v[i], o, builder.load(a)), a)
            slots: list[Any] = [None] * SLOTS
            for i in range(contexts):
                for t in range(targets):
                    slots[i * MAX_TARGETS + t] = builder.load(accumulators[i][t])
            dots = simd.sums(builder, slots)

            # 2. gradient and loss of all pairs at once; one context reads the zeros behind the signs
            place = builder.add(builder.mul(index, intp(SIGNS)), intp((2 - contexts) * MAX_TARGETS))
            sign = simd.load(builder, at(sign_list, place), SLOTS)
            one = simd.constant(1.0, SLOTS)
            logit = simd.clamp(builder, builder.fmul(sign, dots), -_LIMIT, _LIMIT)
            odds = simd.exp(builder, builder.fneg(logit))  # (1 - p) / p
            counted = simd.call(builder, f"llvm.fabs.v{SLOTS}f32", sign.type, sign)
            inverse = builder.fadd(odds, one)  # 1 / p
            scale = builder.fmul(sign, simd.splat(builder, rate, SLOTS))
            gradient = builder.fdiv(builder.fmul(scale, odds), inverse, flags=simd.FAST)
            product = builder.fmul(simd.load(builder, ones, SLOTS), simd.fma(builder, odds, counted, one))
            bits = builder.bitcast(product, ir.VectorType(_i32, SLOTS))
            power = builder.sub(builder.lshr(bits, simd.integers(23, SLOTS)), simd.integers(127, SLOTS))
            total = builder.add(_load_integers(builder, powers), power)
            builder.store(total, builder.bitcast(powers, total.type.as_pointer()), align=4)
            bits = builder.sub(bits, builder.shl(power, simd.integers(23, SLOTS)))
            simd.store(builder, ones, builder.bitcast(bits, product.type))

            # 3. move targets and contexts
            g = [
                [simd.broadcast(builder, gradient, i * MAX_TARGETS + t, LANES) for t in range(targets)]
                for i in range(contexts)
            ]
            with cgutils.for_range_slice(builder, intp(0), n, intp(LANES), intp) as (k, _):
                v = [simd.load(builder, at(p, k), LANES) for p in x]
                moved = list(v)
                for t in range(targets):
                    o = simd.load(builder, at(y[t], k), LANES)
                    new = o
                    for i in range(contexts):
                        moved[i] = simd.fma(builder, g[i][t], o, moved[i])
                        new = simd.fma(builder, g[i][t], v[i], new)
                    simd.store(builder, at(y[t], k), new)
                for i in range(contexts):
                    simd.store(builder, at(x[i], k), moved[i])
            return context.get_dummy_value()

        return signature, codegen

    return step


def _load_integers(builder: Any, pointer: Any) -> Any:
    kind = ir.VectorType(_i32, SLOTS)
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=4, typ=kind)


step_one = _step(1)
step_two = _step(2)


@intrinsic
def prefetch(typingctx: Any, table: Any, offset: Any, width: Any) -> Any:
    """Bring the row of `width` floats at table[offset] close, for writing."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        row = builder.gep(_data(context, builder, sig.args[0], args[0]), [args[1]])
        kind = ir.FunctionType(ir.VoidType(), [byte, _i32, _i32, _i32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        n = args[2]
        with cgutils.for_range_slice(builder, n.type(0), n, n.type(simd.ROW_ALIGNMENT), n.type) as (k, _):
            builder.call(function, [builder.bitcast(builder.gep(row, [k]), byte), _i32(1), _i32(3), _i32(1)])
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp), codegen
