"""Files of safetensors: checks of their headers."""

import json

import numpy as np
import pytest

from daskw2v import Vectors, export, import_vectors
from daskw2v.errors import InputError
from daskw2v.vocabulary.vocabulary import Vocabulary

NOTHING = Vectors(Vocabulary.from_words([], []), np.empty((0, 3), np.float32))


@pytest.mark.parametrize(
    "shape", [(2**70, 1), (2**32, 2**32), (2**70, 0), (0, 2**63 - 1), (2**48, 0), (-1, 0), (True, 0), (1.0, 0)]
)
def test_import__believes_no_shape_without_its_bytes(tmp_path, shape):
    """NumPy's product of a shape overflows, to 0 for the second one."""
    export(NOTHING, tmp_path / "v.safetensors")
    content = (tmp_path / "v.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["vectors"]["shape"] = shape
    written = json.dumps(header).encode()
    (tmp_path / "v.safetensors").write_bytes(len(written).to_bytes(8, "little") + written + content[8 + size :])
    with pytest.raises(InputError, match=r"Give a file that daskw2v exported"):
        import_vectors(tmp_path / "v.safetensors")
