"""Which GPUs a process may use: told by their driver, and not by CUDA, which would keep what it saw first.

Nothing here needs the extra `cuda`.
"""

import ctypes
import os
from itertools import takewhile

RESOURCE = "GPU"  # what workers declare that have one: `dask worker --resources GPU=1`
VARIABLE = "CUDA_VISIBLE_DEVICES"
_LIBRARY = "libnvidia-ml.so.1"  # NVML comes with every driver


def visible_gpus() -> list[str]:
    """Return what CUDA_VISIBLE_DEVICES calls each GPU of this process: those that it names, or else all."""
    named = os.environ.get(VARIABLE)
    if named is None:
        return [str(number) for number in range(_count())]
    # CUDA reads no further than the first that is none
    names = takewhile(_is_name, (name.strip() for name in named.split(",")))
    return list(dict.fromkeys(names))


def _is_name(name: str) -> bool:
    return name.isdecimal() or name.startswith(("GPU-", "MIG-"))


def _count() -> int:
    """Return the number of GPUs of this machine; 0 where there is no driver."""
    try:
        nvml = ctypes.CDLL(_LIBRARY)
    except OSError:
        return 0
    if nvml.nvmlInit_v2():  # anything but 0 is an error
        return 0
    count = ctypes.c_uint(0)
    failed = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    nvml.nvmlShutdown()
    return 0 if failed else count.value
