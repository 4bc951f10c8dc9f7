"""Values that a kernel reads, in the memory of its device."""

from collections.abc import Callable
from typing import Any

import numpy as np


def lent(put: Callable[[Any], Any], values: Any) -> Any:
    """Return a NamedTuple with all arrays in it, and in NamedTuples in it, put into a device's memory."""

    def there(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return put(value)
        return lent(put, value) if hasattr(value, "_fields") else value

    return type(values)(*map(there, values))
