"""Columns of codes, as kernels read them: see codes.h."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from ranktrees._core.support.records cimport start_of


cdef class CodeColumns:
    """The codes of all features.

    Parameters
    ----------
    codes : ranktrees.binning.codes.Codes, or ndarray of uint8 or uint32, shape (n_rows, n_features)
        An array is feature by feature: each feature has a column of its own.

    Attributes
    ----------
    n_features : int
    n_joint : int
        The number of features that share a column with others.
    """

    def __init__(self, codes):
        columns = getattr(codes, "columns", codes)
        n_features = codes.shape[1]
        if columns is codes:
            parts = [np.arange(n_features, dtype=np.int32), np.full(n_features, -1, np.int32)]
            parts += [np.empty(0, dtype) for dtype in (np.uint8, np.int64, np.uint8, np.uint8)]
        else:
            parts = [
                codes.column_of, codes.joint_of, codes.tables, codes.first_pair, codes.pair_values,
                codes.pair_codes,
            ]
        self.kept = [columns, *parts]
        self.n_features, self.n_joint = n_features, len(codes.tables) if columns is not codes else 0
        self.all.first = <const uint8_t*><size_t>columns.ctypes.data
        self.all.stride = columns.strides[1]
        self.all.is_long = columns.itemsize > 1
        self.all.column_of = <const int32_t*>start_of(parts[0])
        self.all.joint_of = <const int32_t*>start_of(parts[1])
        self.all.tables = <const uint8_t*>start_of(parts[2])
        self.all.first_pair = <const int64_t*>start_of(parts[3])
        self.all.values = <const uint8_t*>start_of(parts[4])
        self.all.codes = <const uint8_t*>start_of(parts[5])
