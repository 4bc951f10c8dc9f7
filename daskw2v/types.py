"""Types of the arrays that modules pass to each other."""

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
Int8Array = npt.NDArray[np.int8]
Int16Array = npt.NDArray[np.int16]
UInt8Array = npt.NDArray[np.uint8]
UInt16Array = npt.NDArray[np.uint16]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt32Array = npt.NDArray[np.uint32]
UInt64Array = npt.NDArray[np.uint64]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]

RowIds = Int64Array  # indices of rows of a table: ids of words, or numbers of nodes of the tree
