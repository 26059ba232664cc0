"""Columns of codes, as kernels read them."""
from libc.stdint cimport int32_t, int64_t, uint8_t

from ranktrees._core.support.records cimport Bin

cdef extern from "support/codes.h" nogil:
    ctypedef struct AllColumns "code_columns":
        const uint8_t* first
        int64_t stride
        int is_long
        const int32_t* column_of
        const int32_t* joint_of
        const uint8_t* tables
        const int64_t* first_pair
        const uint8_t* values
        const uint8_t* codes
    const uint8_t* column_with(const AllColumns* all, int64_t feature)
    void spread_sums(
        const AllColumns* all, int64_t feature, const int64_t* sums, int64_t total, int64_t n_codes,
        int64_t* cells,
    )
    void spread_bins(
        const AllColumns* all, int64_t feature, const Bin* sums, Bin total, int64_t n_codes, Bin* cells
    )


cdef class CodeColumns:
    cdef readonly int64_t n_features, n_joint
    cdef AllColumns all
    cdef object kept
