"""A meeting of ranks: each says where it is and, in the same message, what it has to say, if that is short.

    rank 0   | n_bytes | state | number | call | size | step | message ... |
    rank 1   | n_bytes | state | number | call | size | step | message ... |
                         '---- the same on all, or an error on all --'

A tree takes some twenty meetings. After each pass over the rows, the code for them is no longer in the cache
and must be fetched anew, so there is little of it.
"""
import numpy as np

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from ranktrees._core.support.records cimport start_of

cdef enum:
    STEP = 88  # bytes

cdef struct Header:
    int64_t n_bytes   # of the message, which is left out if it is too long
    int64_t state
    int64_t number    # of the meeting
    int64_t call
    int64_t size
    char[STEP] step


cdef class Meeting:
    """What all ranks say when they meet.

    Parameters
    ----------
    n_ranks : int
    n_bytes : int
        The number of bytes that each rank says, including a message as long as there is room for. A multiple
        of 8.

    Attributes
    ----------
    own : ndarray of uint8
        What this rank says. It must be sent to the other ranks.
    all : ndarray of uint8, shape (n_ranks, len(own))
        Where what all ranks have said must be received.
    room : int
        The most bytes of a message.
    """

    cdef readonly object own, all
    cdef readonly int64_t room
    cdef Header* header
    cdef const uint8_t* received
    cdef int64_t n_ranks, length

    def __init__(self, n_ranks, n_bytes):
        self.n_ranks, self.length = n_ranks, n_bytes
        self.room = n_bytes - sizeof(Header)
        self.own, self.all = np.zeros(n_bytes, np.uint8), np.zeros((n_ranks, n_bytes), np.uint8)
        self.header = <Header*>start_of(self.own)
        self.received = <const uint8_t*>start_of(self.all)

    def at(self, bytes step):
        """Set the step at which training is. Only its first bytes are kept if it is long."""
        memset(self.header.step, 0, STEP)
        memcpy(self.header.step, <const char*>step, min(len(step), <Py_ssize_t>STEP))

    def say(self, int64_t state, int64_t call, int64_t size, message):
        """Say that this rank is at the next meeting, its state, its call, and a message (bytes or array)."""
        cdef Py_buffer buffer
        PyObject_GetBuffer(message, &buffer, PyBUF_SIMPLE)
        self.header.n_bytes, self.header.state, self.header.call = buffer.len, state, call
        self.header.size = size
        self.header.number += 1
        if buffer.len <= self.room:
            memcpy(self.header + 1, buffer.buf, buffer.len)
        PyBuffer_Release(&buffer)

    cdef const Header* header_of(self, int64_t rank) noexcept:
        return <const Header*>(self.received + rank * self.length)

    cdef const uint8_t* message_of(self, int64_t rank) noexcept:
        return <const uint8_t*>self.header_of(rank) + sizeof(Header)

    def agree(self):
        """Whether all ranks are at the same place, whatever their messages are."""
        cdef int64_t rank, skipped = sizeof(int64_t)
        for rank in range(self.n_ranks):
            if memcmp(
                <const uint8_t*>self.header_of(rank) + skipped, <const uint8_t*>self.header + skipped,
                sizeof(Header) - skipped,
            ):
                return False
        return True

    def stack(self, array):
        """Stack the arrays of all ranks, which were their messages and have the same shape and type."""
        cdef int64_t n_bytes = array.nbytes, rank
        stacked = np.empty((self.n_ranks, *array.shape), array.dtype)
        cdef uint8_t* to = <uint8_t*>start_of(stacked)
        for rank in range(self.n_ranks):
            memcpy(to + rank * n_bytes, self.message_of(rank), n_bytes)
        return stacked

    def add_up(self, array, int64_t first=0):
        """Write to ``array`` the sum of the int64 arrays in the messages of all ranks, from ``first`` on."""
        cdef Py_buffer buffer
        PyObject_GetBuffer(array, &buffer, PyBUF_WRITABLE)
        cdef uint64_t* total = <uint64_t*>buffer.buf  # unsigned, as sums in words may fill the sign bit
        cdef const uint64_t* theirs
        cdef int64_t n = buffer.len // sizeof(int64_t), rank, i
        memset(total, 0, buffer.len)
        for rank in range(self.n_ranks):
            theirs = <const uint64_t*>self.message_of(rank) + first
            for i in range(n):
                total[i] += theirs[i]
        PyBuffer_Release(&buffer)

    def n_bytes(self):
        """The lengths of the messages of all ranks: int64[n_ranks]."""
        return np.array([self.header_of(rank).n_bytes for rank in range(self.n_ranks)])

    def states(self):
        """The states of all ranks: int64[n_ranks]."""
        return np.array([self.header_of(rank).state for rank in range(self.n_ranks)])

    def places(self):
        """The places of all ranks: [(number, call, size, step), ...]."""
        cdef const Header* header
        places = []
        for rank in range(self.n_ranks):
            header = self.header_of(rank)
            step = bytes(header.step[:STEP]).rstrip(b"\0").decode(errors="replace")
            places.append((header.number, header.call, header.size, step))
        return places

    def messages(self, n_bytes):
        """The messages of all ranks, [bytes, ...], cut to ``n_bytes`` of each. None may be too long."""
        cdef int64_t rank, n
        messages = []
        for rank in range(self.n_ranks):
            n = n_bytes[rank]
            messages.append(self.message_of(rank)[:n])
        return messages
