"""The text of a compiled kernel (PTX) carried out in NumPy, a block at a time: what it computes, and how often.

So instructions are counted as they are carried out, whatever loops the compiler unrolled, and compiled code can be held
to the truth where there is no GPU. A vector has an element for each thread of the block. Threads that stand elsewhere
wait: those that are furthest behind go on first, and meet the others there. Only what our kernels are made of is known.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

WARP = 32
_BASE = 1 << 12  # address of the first byte of the arena: 0 is none
_TYPES: dict[str, Any] = {"pred": np.bool_, "f32": np.float32, "f64": np.float64} | {
    f"{letter}{bits}": np.dtype(f"{'i' if letter == 's' else 'u'}{bits // 8}").type
    for letter in "sub"
    for bits in (8, 16, 32, 64)
}
_COMPARED: dict[str, Any] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "neu": np.not_equal,  # of NaN, too
}


def _divided(a: Any, b: Any) -> Any:
    """Return a / b as C has it: towards 0."""
    return np.fix(a / b).astype(a.dtype) if a.dtype.itemsize < 8 else _by_integers(lambda x, y: int(_cut(x, y)), a, b)


def _cut(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _by_integers(function: Callable[[int, int], int], a: Any, b: Any) -> Any:
    info = np.iinfo(a.dtype)
    results = [function(int(x), int(y)) if y else 0 for x, y in zip(a, b, strict=True)]
    return np.array([(r - info.min) % (info.max - info.min + 1) + info.min for r in results], a.dtype)


def _shifted(a: Any, b: Any, function: Callable[[Any, Any], Any]) -> Any:
    by, bits = b.astype(np.uint64), 8 * a.dtype.itemsize
    return np.where(by < bits, function(a, np.minimum(by, bits - 1).astype(a.dtype)), 0).astype(a.dtype)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": lambda a, b: _shifted(a, b, np.left_shift),
    "shr": lambda a, b: _shifted(a, b, np.right_shift),
}


def _inserted(a: Any, b: Any, start: Any, length: Any) -> Any:
    """Return b with the lowest bits of a in place of its bits from `start` on."""
    one = a.dtype.type(1)
    mask = (one << length.astype(a.dtype)) - one
    return (b & ~(mask << start.astype(a.dtype))) | ((a & mask) << start.astype(a.dtype))


_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative,
    "not": np.invert,
    "mov": np.array,
    "cvta": np.array,
    "ex2": np.exp2,
    "lg2": np.log2,
    "popc": lambda x: np.array([int(bits).bit_count() for bits in x], np.uint32),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcp": lambda x: 1 / x,
    "sqrt": np.sqrt,
    "abs": np.abs,
}
_STATEMENT = re.compile(
    r"(?P<label>\$\w+):|\.loc[^\n]*|\.\w[^;]*;"
    r"|(?:@(?P<unless>!?)(?P<guard>%p\d+)\s+)?(?<![.%\w])(?P<name>[a-z][\w.]*(?:::\w+)*)(?P<operands>[^;:]*);"
)
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")


class Step(NamedTuple):
    """An instruction: the register that guards it and its meaning there, its name, and its operands."""

    guard: str
    unless: bool
    name: tuple[str, ...]
    operands: tuple[str, ...]


class Kernel:
    """A kernel, as its PTX says.

    Parameters
    ----------
    ptx
        The text; it has one entry.
    ring
        Bytes of shared memory that it is launched with: of the array that the text gives no length.
    """

    def __init__(self, ptx: str, ring: int = 0) -> None:
        text = re.sub(r"//[^\n]*", "", ptx)
        head, body = text.partition(".entry")[2].split("{", 1)
        self.ring = ring
        self.shared = {name: int(size or ring) for name, size in re.findall(r"\.shared [^;]*?(\w+)\[(\d*)\];", text)}
        params = re.findall(r"\.param \.(\w+) (?:\.ptr (?:\.\w+ )*\d+ )?(\w+)", head)
        self.params = {name: _TYPES[of] for of, name in params}
        self.registers = {name: _TYPES[of] for of, name in re.findall(r"\.reg \.(\w+)\s+(%\w+?)<", body)}
        self.labels: dict[str, int] = {}
        self.steps = list(self._steps(body))

    def _steps(self, body: str) -> Iterator[Step]:
        """Yield the instructions among what stands between semicolons and labels."""
        n = 0
        for found in _STATEMENT.finditer(body):
            if found["label"]:
                self.labels[found["label"]] = n
            elif not found[0].startswith("."):
                operands = tuple(part.strip() for part in _OPERAND.findall(found["operands"]))
                yield Step(found["guard"] or "", bool(found["unless"]), tuple(found["name"].split(".")), operands)
                n += 1

    def launch(self, arguments: Sequence[Any], threads: tuple[int, int] = (WARP, 1), blocks: int = 1) -> Any:
        """Carry it out, block after block; arrays among the arguments are changed in place.

        Returns
        -------
        array
            How often warps carried out each step, shape (steps,) int64.
        """
        arena = _Arena(arguments)
        values = dict(zip(self.params, arena.flat, strict=True))
        done = np.zeros(len(self.steps), np.int64)
        for block in range(blocks):
            _Block(self, arena.bytes, values, threads, block, blocks).run(done)
        arena.give_back()
        return done


class _Arena:
    """Global memory with all arrays in it, and the arguments as a kernel takes them."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self._arrays: list[tuple[int, Any]] = []
        self._end = _BASE
        self.flat = list(self._flattened(arguments))
        self.bytes = np.zeros(self._end + 64, np.uint8)
        for start, array in self._arrays:
            self.bytes[start : start + array.nbytes] = array.reshape(-1).view(np.uint8)

    def _flattened(self, values: Sequence[Any]) -> Iterator[Any]:
        for value in values:
            if isinstance(value, np.ndarray):
                yield from (0, 0, value.size, value.itemsize, self._end, *value.shape, *value.strides)
                self._arrays.append((self._end, value))
                self._end += -(-value.nbytes // 256) * 256 + 256
            elif isinstance(value, tuple):
                yield from self._flattened(value)
            else:
                yield value

    def give_back(self) -> None:
        for start, array in self._arrays:
            array[...] = self.bytes[start : start + array.nbytes].view(array.dtype).reshape(array.shape)


class _Block:
    """A block of threads that carries a kernel out."""

    def __init__(
        self, kernel: Kernel, memory: Any, values: dict[str, Any], threads: tuple[int, int], block: int, blocks: int
    ) -> None:
        self.kernel, self.n = kernel, threads[0] * threads[1]
        self.values, self.memory = values, memory
        number = np.arange(self.n, dtype=np.uint32)
        self.special = {
            "%tid.x": number % threads[0],
            "%tid.y": number // threads[0],
            "%ctaid.x": self._all(block),
            "%nctaid.x": self._all(blocks),
            "%ntid.x": self._all(threads[0]),
            "%ntid.y": self._all(threads[1]),
            "%dynamic_smem_size": self._all(kernel.ring),
        }
        self.symbols, size = dict[str, int](), 0
        for name, length in kernel.shared.items():
            self.symbols[name], size = size, size + -(-length // 16) * 16
        self.shared = np.zeros(size + 16, np.uint8)
        self.registers: dict[str, Any] = {}
        self.active: Any = None  # the threads that carry an instruction out; None for all of them

    def _all(self, value: int) -> Any:
        return np.full(self.n, value, np.uint32)

    def run(self, done: Any) -> None:
        """Carry the kernel out; add how often warps did each step."""
        steps, end = self.kernel.steps, len(self.kernel.steps)
        places, warps = np.zeros(self.n, np.int64), self.n // WARP
        place = 0
        with np.errstate(all="ignore"):
            while True:
                step = steps[place]
                done[place] += warps if self.active is None else int(self.active.reshape(-1, WARP).any(axis=1).sum())
                to = self._carry_out(step)
                if to is None and self.active is None:
                    place += 1
                    continue
                # Somebody goes elsewhere, or is there already
                active = np.ones(self.n, bool) if self.active is None else self.active
                places[active] = place + 1
                if to is not None:
                    leaving, target = to
                    places[active & leaving] = target
                if places.min() == end:
                    return
                place = self._next(places, steps, end)
                self.active = places == place
                if self.active.all():
                    self.active = None

    def _next(self, places: Any, steps: list[Step], end: int) -> int:
        """Return the first place at which threads may go on: one where they meet waits for all of them."""
        for place in np.unique(places):
            name = steps[place].name if place < end else ()
            here, alive = places == place, places < end
            if name[:1] in (("shfl",), ("vote",)) or name[:2] == ("bar", "warp"):
                waits = (here != alive).reshape(-1, WARP)[here.reshape(-1, WARP).any(axis=1)].any()
            else:
                waits = name[:2] == ("bar", "sync") and (here != alive).any()
            if place < end and not waits:
                return int(place)
        raise RuntimeError("All threads wait for each other.")

    def _read(self, operand: str, of: str) -> Any:
        dtype = _TYPES[of]
        if operand in self.registers:
            value = self.registers[operand]
            same = value.dtype.itemsize == np.dtype(dtype).itemsize
            return value.view(dtype) if same else value.astype(dtype)
        if operand in self.special:
            return self.special[operand].astype(dtype)
        if operand in self.symbols:
            return np.full(self.n, self.symbols[operand], dtype)
        if operand[:2].lower() in ("0f", "0d"):
            bits = np.array(int(operand[2:], 16), np.uint32 if operand[1] in "fF" else np.uint64)
            return np.full(self.n, bits.view(dtype))
        size = np.dtype(dtype).itemsize
        return (
            np.full(self.n, int(operand, 0) % (1 << 8 * size), f"u{size}").view(dtype)
            if of != "pred"
            else (np.full(self.n, bool(int(operand, 0))))
        )

    def _write(self, register: str, value: Any) -> None:
        dtype = np.dtype(self.kernel.registers[register.rstrip("0123456789")])
        value = value.view(dtype) if value.dtype.itemsize == dtype.itemsize else value.astype(dtype)
        if self.active is not None:
            before = self.registers.get(register)
            value = np.where(self.active, value, np.zeros(self.n, dtype) if before is None else before)
        self.registers[register] = value

    def _carry_out(self, step: Step) -> tuple[Any, int] | None:
        """Return who goes elsewhere, and where; None where nobody does."""
        guard, unless, name, operands = step
        if guard:
            met = self.registers[guard] != unless
            if name[0] == "bra":
                taken = met if self.active is None else met & self.active
                return (taken, self.kernel.labels[operands[0]]) if taken.any() else None
            before = self.active
            self.active = met if before is None else met & before
            self._compute(name, operands)
            self.active = before
            return None
        if name[0] == "bra":
            return np.ones(self.n, bool), self.kernel.labels[operands[0]]
        if name[0] == "ret":
            return np.ones(self.n, bool), len(self.kernel.steps)
        self._compute(name, operands)
        return None

    def _compute(self, name: tuple[str, ...], operands: tuple[str, ...]) -> None:
        op, of = name[0], name[-1]
        if op == "bar":
            return
        if op in ("ld", "st", "red", "atom"):
            self._touch(name, operands)
        elif op == "shfl":
            lanes = np.arange(self.n) ^ self._read(operands[2], "s32")
            self._write(operands[0].split("|")[0], self._read(operands[1], of)[lanes])
        elif op == "vote":
            met = self.registers[operands[1]].reshape(-1, WARP)
            self._write(operands[0], np.repeat((met << np.arange(WARP, dtype=np.uint32)).sum(axis=1), WARP))
        elif op == "bfi":
            of_each = zip(operands[1:], (of, of, "u32", "u32"), strict=True)
            self._write(operands[0], _inserted(*(self._read(operand, kind) for operand, kind in of_each)))
        elif op == "setp":
            a, b = (self._read(operand, of) for operand in operands[1:])
            self._write(operands[0], _COMPARED[name[1]](a, b))
        elif op == "selp":
            a, b = (self._read(operand, of) for operand in operands[1:3])
            self._write(operands[0], np.where(self.registers[operands[3]], a, b))
        elif op == "cvt":
            self._write(operands[0], self._read(operands[1], of).astype(_TYPES[name[-2]]))
        elif op == "fma" or (op == "mad" and name[1] == "lo"):
            a, b, c = (self._read(operand, of) for operand in operands[1:])
            self._write(operands[0], a * b + c)
        else:
            values = [self._read(operand, of) for operand in operands[1:]]
            self._write(operands[0], self._arithmetic(name, values))

    def _arithmetic(self, name: tuple[str, ...], values: list[Any]) -> Any:
        op, of = name[0], name[-1]
        if len(values) == 1:
            return _UNARY[op](values[0])
        if op == "mul" and name[1] == "wide":
            wide = np.dtype(f"{'i' if of[0] == 's' else 'u'}{int(of[1:]) // 4}")
            return values[0].astype(wide) * values[1].astype(wide)
        if op == "mul" and name[1] == "hi":
            return _by_integers(lambda a, b: a * b >> int(of[1:]), *values)
        if op == "div":
            return values[0] / values[1] if of[0] == "f" else _divided(*values)
        if op == "rem":
            return _by_integers(lambda a, b: a - b * _cut(a, b), *values)
        return _BINARY[op](*values)

    def _touch(self, name: tuple[str, ...], operands: tuple[str, ...]) -> None:
        """Read or write memory."""
        op, dtype = name[0], np.dtype(_TYPES[name[-1]])
        place = operands[1] if op in ("ld", "atom") else operands[0]
        base, _, offset = place.strip("[]").partition("+")
        if "param" in name:
            self._write(operands[0], np.full(self.n, self.values[base]).astype(dtype))
            return
        memory = (self.shared if "shared" in name else self.memory).view()
        where = self._read(base, "s64") + int(offset or 0)
        who = slice(None) if self.active is None else self.active
        if not len(where[who]):
            return
        memory = memory[: len(memory) // dtype.itemsize * dtype.itemsize].view(dtype)
        first = where[who] // dtype.itemsize
        registers = [part.strip() for part in operands[0 if op == "ld" else -1].strip("{}").split(",")]
        for k, register in enumerate(registers):
            if op == "ld":
                value = np.zeros(self.n, dtype)
                value[who] = memory[first + k]
                self._write(register, value)
            elif op == "st":
                memory[first + k] = self._read(register, name[-1])[who]
            else:
                np.add.at(memory, first + k, self._read(register, name[-1])[who])
