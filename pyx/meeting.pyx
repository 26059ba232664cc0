"""A meeting of ranks: each says where it is and, with it, what it has to say if that is short enough.

    rank 0   | n_bytes | state | number | call | size | step | message ... |
    rank 1   | n_bytes | state | number | call | size | step | message ... |
                         '---- the same on all, or an error on all --'

Some twenty of them make a tree, and after each pass over the rows all code must be fetched anew: here it is
little.
"""
import numpy as np

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp, memcpy, memset

from records cimport start_of

cdef enum:
    STEP = 88  # bytes

cdef struct Header:
    int64_t n_bytes   # of the message, which is not there if it is too long
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
        What each says, a message included that may be so long.

    Attributes
    ----------
    own : ndarray of uint8
        What this rank says.
    all : ndarray of uint8, shape (n_ranks, len(own))
        What all have said.
    room : int
        Bytes of a message.
    """

    cdef readonly object own, all
    cdef readonly int64_t room
    cdef Header* header
    cdef const uint8_t* heard
    cdef int64_t n_ranks, length

    def __init__(self, n_ranks, n_bytes):
        self.n_ranks, self.length, self.room = n_ranks, n_bytes, n_bytes - sizeof(Header)
        self.own, self.all = np.zeros(n_bytes, np.uint8), np.zeros((n_ranks, n_bytes), np.uint8)
        self.header = <Header*>start_of(self.own)
        self.heard = <const uint8_t*>start_of(self.all)

    def at(self, bytes step):
        """Where training is; of a long one the first bytes."""
        memset(self.header.step, 0, STEP)
        memcpy(self.header.step, <const char*>step, min(len(step), <Py_ssize_t>STEP))

    def say(self, int64_t state, int64_t call, int64_t size, message):
        """This rank is at the next meeting, in this state, for this call. A message is bytes or an array."""
        cdef Py_buffer buffer
        PyObject_GetBuffer(message, &buffer, PyBUF_SIMPLE)
        self.header.n_bytes, self.header.state, self.header.call = buffer.len, state, call
        self.header.size = size
        self.header.number += 1
        if buffer.len <= self.room:
            memcpy(<uint8_t*>self.header + sizeof(Header), buffer.buf, buffer.len)
        PyBuffer_Release(&buffer)

    cdef const Header* header_of(self, int64_t rank) noexcept:
        return <const Header*>(self.heard + rank * self.length)

    def agree(self):
        """Whether all are at the same place, whatever they have to say."""
        cdef int64_t rank, skipped = sizeof(int64_t)
        for rank in range(self.n_ranks):
            if memcmp(
                <const uint8_t*>self.header_of(rank) + skipped, <const uint8_t*>self.header + skipped,
                sizeof(Header) - skipped,
            ):
                return False
        return True

    def stack(self, array):
        """The arrays of all ranks, which are of one shape and type and were their messages."""
        cdef int64_t n_bytes = array.nbytes, rank
        stacked = np.empty((self.n_ranks, *array.shape), array.dtype)
        cdef uint8_t* to = <uint8_t*>start_of(stacked)
        for rank in range(self.n_ranks):
            memcpy(to + rank * n_bytes, <const uint8_t*>self.header_of(rank) + sizeof(Header), n_bytes)
        return stacked

    def n_bytes(self):
        """int64[n_ranks], of their messages."""
        return np.array([self.header_of(rank).n_bytes for rank in range(self.n_ranks)])

    def states(self):
        """int64[n_ranks]."""
        return np.array([self.header_of(rank).state for rank in range(self.n_ranks)])

    def places(self):
        """[(number, call, size, step), ...] of all ranks."""
        cdef const Header* header
        places = []
        for rank in range(self.n_ranks):
            header = self.header_of(rank)
            step = bytes(header.step[:STEP]).rstrip(b"\0").decode(errors="replace")
            places.append((header.number, header.call, header.size, step))
        return places

    def messages(self, n_bytes):
        """[ndarray of uint8, ...] of all ranks, of which none is too long: so much of each."""
        first = sizeof(Header)
        return [said[first : first + n] for said, n in zip(self.all, n_bytes, strict=True)]
