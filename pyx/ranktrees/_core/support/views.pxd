"""Where runs of items begin in a view.

A run may be empty, at the end of a view or in one that has no items. That is no access, but a build that
checks bounds would stop at ``&view[i]``. That is for an item that has to be there.
"""
cimport cython
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from ranktrees._core.support.records cimport (
    Bin, Centroid, Column, Digit, Group, Leaf, Node, Plan, Plane,
)

ctypedef fused item:
    int8_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double
    Bin
    Centroid
    Column
    Digit
    Group
    Leaf
    Node
    Plan
    Plane


cdef inline item* run_in(const item[::1] view, Py_ssize_t i) noexcept nogil:
    """Where the items from view[i] on begin."""
    with cython.boundscheck(False), cython.initializedcheck(False):
        return <item*>&view[i]


cdef inline item* line_in(const item[:, ::1] view, Py_ssize_t i) noexcept nogil:
    """Where the items of view[i] begin."""
    with cython.boundscheck(False), cython.initializedcheck(False):
        return <item*>&view[i, 0]


cdef inline item* block_in(const item[:, :, ::1] view, Py_ssize_t i) noexcept nogil:
    """Where the items of all lines of view[i] begin."""
    with cython.boundscheck(False), cython.initializedcheck(False):
        return <item*>&view[i, 0, 0]


cdef inline const uint8_t* bytes_in(const uint8_t[:, :] rows) noexcept nogil:
    """Where the bytes of the first row begin; there may be gaps between rows."""
    with cython.boundscheck(False), cython.initializedcheck(False):
        return &rows[0, 0]
