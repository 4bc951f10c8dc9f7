"""How many warps there is room for, by the figures of NVIDIA's occupancy calculator."""

import pytest

from tests.support.cuda.occupancy import MULTIPROCESSORS


@pytest.mark.parametrize(
    ("capability", "registers", "shared", "warps", "room"),
    [
        ((9, 0), 32, 0, 1, 32),  # no more blocks
        ((9, 0), 32, 0, 4, 64),  # no more warps
        ((9, 0), 128, 11_392, 1, 16),  # registers: 512 bytes a lane
        ((9, 0), 129, 11_392, 1, 12),  # the next 256 registers of a warp: three fit into a quarter of the file
        ((8, 0), 255, 11_392, 1, 8),
        ((9, 0), 129, 11_392, 4, 12),
        ((9, 0), 104, 51_200, 1, 4),  # shared memory, a kilobyte of each block reserved
        ((8, 0), 104, 51_200, 1, 3),
        ((7, 5), 104, 16_384, 1, 4),  # none reserved
        ((7, 5), 104, 16_385, 1, 3),
    ],
)
def test_room__is_what_runs_out_first(capability, registers, shared, warps, room):
    assert MULTIPROCESSORS[capability].room(registers, shared, warps) == room
