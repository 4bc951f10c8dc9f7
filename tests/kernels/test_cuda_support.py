"""What tests of CUDA kernels stand on: bytes counted from text, drawn text, PTX carried out in NumPy."""

import numpy as np
import pytest

from daskw2v import Params
from daskw2v.sampling.segments import Segment
from tests.support import zipf
from tests.support.cuda import emulated, traffic

FLOAT = 4
TEXT = Segment(np.array([0, 1, 2, 1, 3], np.int32), np.arange(5), np.array([0, 3, 5]))  # "0 1 2", "1 3"


@pytest.mark.parametrize(
    ("how", "read", "added"),
    [
        # Each token's row comes into the ring once; a window meets its center and two negatives
        ({}, 5 + 5 * 3, 5 + 5 * 3),
        # In windows of one word each way there are 2 + 4 contexts; three of them are 0 or 1
        ({"hot_rows": 2}, 2 + 4 + 5 * 3, 2 + 4 + 5 * 3),
        ({"ring": False}, 6 + 5 * 3, 6 + 5 * 3),
        ({"objective": "cbow_ns", "ring": False}, 2 * 6 + 5 * 3, 6 + 5 * 3),
        ({"negative_sharing": "pair"}, 5 + 6 * 3, 5 + 6 * 3),
    ],
)
def test_rows__are_those_of_a_text_counted_by_hand(how, read, added):
    options = {key: how.pop(key) for key in ("objective", "negative_sharing") if key in how}
    params = Params(vector_size=20, window=1, shrink_windows=False, negative=2, **options)
    rows = traffic.rows_of(params, TEXT, None, **how)
    assert (5 * rows.read, 5 * rows.added) == (pytest.approx(read), pytest.approx(added))
    assert rows.bytes_of(params) == pytest.approx(FLOAT * 32 * (read + added) / 5), "rows are padded"


def test_drawn_text__has_the_words_and_sentences_of_its_law():
    counts = zipf.zipf_counts(1000, 10**6)
    assert len(counts) == 1000
    assert (np.diff(counts) <= 0).all()
    segment = zipf.zipf_segment(counts, 50_000, 0.0)
    actual = np.bincount(segment.tokens, minlength=1000) / 50_000
    np.testing.assert_allclose(actual[:20], counts[:20] / counts.sum(), rtol=0.15)
    assert segment.bounds[-1] == 50_000
    assert np.diff(segment.bounds).mean() == pytest.approx(zipf.SENTENCE, rel=0.1)
    fewer = zipf.zipf_segment(counts, 50_000, 1e-3)
    assert len(fewer.tokens) == len(fewer.positions) == fewer.bounds[-1] < 50_000


PTX = """
.version 9.0
.target sm_90
.address_size 64
.visible .shared .align 4 .b8 kept[128];
.visible .entry doubled(.param .u64 doubled_param_0, .param .u64 doubled_param_1)
{
    .reg .pred %p<3>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [doubled_param_0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    mov.u32 %r2, 0;
    setp.ge.u32 %p1, %r1, 3;
    @%p1 bra $L__BB0_2;
$L__BB0_1:
    add.s32 %r2, %r2, 2; // for lanes 0 to 2, as often as their number says
    setp.lt.u32 %p2, %r2, %r1;
    @%p2 bra $L__BB0_1;
$L__BB0_2:
    st.global.u32 [%rd3], %r2;
    ret;
}
"""


def test_emulator__lets_lanes_part_and_meet_again():
    kernel = emulated.Kernel(PTX)
    values = np.zeros(32, np.uint32)
    address = emulated._BASE
    kernel.params = dict.fromkeys(kernel.params, np.uint64)
    arguments = np.zeros(0, np.uint32), values
    arena = emulated._Arena(arguments)
    done = np.zeros(len(kernel.steps), np.int64)
    place = dict(zip(kernel.params, (address + 256, 0), strict=True))
    emulated._Block(kernel, arena.bytes, place, (32, 1), 0, 1).run(done)
    arena.give_back()
    assert values.tolist() == [2, 2, 2] + [0] * 29
    assert done.tolist() == [1] * 12
