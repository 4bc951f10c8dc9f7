"""Machine code of NVIDIA GPUs (SASS), as NVIDIA's disassembler shows it, with the lines that it was made of."""

import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_SECTION = re.compile(r"\.section\s+\.text\.([^,\s]+)")
_LINE = re.compile(r'//## File "[^"]*", line (\d+)')
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;")
_CONTROL = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_GUARD = re.compile(r"^@!?U?P\w+\s+")
_CALLED = re.compile(r"CALL\S*\s+.*?\(([\w$.]+)\)")


class Instruction(NamedTuple):
    """An instruction.

    Parameters
    ----------
    line
        The line that it was made of, from 1 on; 0 where that is not known.
    text
        As the disassembler shows it.
    control
        Its bits 105 to 121, which tell the hardware when to go on (`benchmarks.cuda.chain`).
    """

    line: int
    text: str
    control: int = 0

    @property
    def opcode(self) -> str:
        """Its name, without the predicate that guards it."""
        return _GUARD.sub("", self.text).split()[0]


def disassembler() -> str | None:
    """Return the path of nvdisasm: on PATH, or from the wheel nvidia-cuda-nvdisasm; None where there is none."""
    beside = sorted(Path(sysconfig.get_paths()["platlib"]).glob("nvidia/*/bin/nvdisasm"))
    return shutil.which("nvdisasm") or (str(beside[-1]) if beside else None)


def functions_of(cubin: bytes, program: str) -> dict[str, list[Instruction]]:
    """Return the instructions of each function, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        command = [program, "-g", "-c", "-hex", str(path)]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return parsed(shown.splitlines())


def parsed(lines: Sequence[str]) -> dict[str, list[Instruction]]:
    """Return the instructions of each function from what the disassembler prints."""
    functions: dict[str, list[Instruction]] = {}
    here, line = list[Instruction](), 0
    for text in lines:
        if found := _SECTION.search(text):
            here, line = functions.setdefault(found[1], []), 0
        elif found := _LINE.search(text):
            line = int(found[1])
        elif found := _INSTRUCTION.search(text):
            here.append(Instruction(line, found[1]))
        elif here and (found := _CONTROL.match(text)):  # the upper half of the instruction before
            here[-1] = here[-1]._replace(control=int(found[1], 16) >> 41 & 0x1FFFF)
    return functions


def warm(instructions: Sequence[Instruction]) -> list[Instruction]:
    """Return the instructions but for those behind the last exit, to which warps come that have fallen apart."""
    last = max(i for i, instruction in enumerate(instructions) if "EXIT" in instruction.text)
    return list(instructions[: last + 1])


def carried_out(functions: Mapping[str, Sequence[Instruction]], kernel: str, done: Sequence[float]) -> float:
    """Return the instructions that warps carry out, where line n + 1 was carried out done[n] times.

    What is called is counted whole, and what has no line not at all: there the kernel begins and ends.
    """
    total = 0.0
    for instruction in warm(functions[kernel]):
        times = done[instruction.line - 1] if instruction.line else 0
        called = _CALLED.search(instruction.text)
        total += times * (1 + (len(functions[called[1]]) if called and called[1] in functions else 0))
    return float(total)
