"""A meeting of ranks: each says where it is and, in the same message, what it has to say, if that is short.

    rank 0   | n_bytes | state | number | call | size | step | message ... |
    rank 1   | n_bytes | state | number | call | size | step | message ... |
                         '---- the same on all, or an error on all --'

A tree takes some twenty meetings. After each pass over the rows, the code for them is no longer in the cache
and must be fetched anew, so there is little of it.

Ranks on one machine use a board, memory that all of them share, on which there is room to say more:

    numbers   | rank 0 | rank 1 | ...     the last meeting at which each rank has said something
    halves    | rank 0 | rank 1 | ...  | rank 0 | rank 1 | ...

Meetings use the halves in turn: when all ranks have come to one meeting, all have read what was said at the
meeting before, so the next meeting can use that half again.
"""
import numpy as np

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from ranktrees._core.support.records cimport start_of

cdef extern from "processes/board.h" nogil:
    void publish(int64_t* number, int64_t value) noexcept
    int64_t published(const int64_t* number) noexcept

cdef enum:
    STEP = 88  # bytes
    LINE = 64  # bytes of a cache line

cdef struct Header:
    int64_t n_bytes   # of the message, which is left out if it is too long
    int64_t state
    int64_t number    # of the meeting
    int64_t call
    int64_t size
    char[STEP] step


cdef int64_t whole_lines(int64_t n_bytes) noexcept:
    """Round a number of bytes up to whole cache lines."""
    return (n_bytes + LINE - 1) // LINE * LINE


def bytes_of_board(n_ranks, n_bytes):
    """The bytes of a board for meetings at which each of ``n_ranks`` ranks says ``n_bytes`` bytes."""
    return n_ranks * (LINE + 2 * whole_lines(n_bytes))


cdef class Meeting:
    """What all ranks say when they meet.

    Parameters
    ----------
    n_ranks : int
    n_bytes : int
        The number of bytes that each rank says, including a message as long as there is room for. A multiple
        of 8.
    rank : int, default=0
        The place of this rank on the board.
    board : ndarray of uint8, shape (bytes_of_board(n_ranks, n_bytes),), default=None
        Zeros at first, beginning at a cache line. If None, ranks send each other what they say.

    Attributes
    ----------
    own : ndarray of uint8
        What this rank says. Without a board, it must be sent to the other ranks.
    all : ndarray of uint8, shape (n_ranks, len(own))
        Without a board, where what all ranks have said must be received.
    room : int
        The most bytes of a message.
    """

    cdef readonly object own, all
    cdef readonly int64_t room
    cdef object board
    cdef Header* header
    cdef const uint8_t* received
    cdef uint8_t* numbers
    cdef uint8_t* halves
    cdef int64_t n_ranks, length, rank

    def __init__(self, n_ranks, n_bytes, rank=0, board=None):
        self.n_ranks, self.rank = n_ranks, rank
        self.length = n_bytes if board is None else whole_lines(n_bytes)
        self.room = n_bytes - sizeof(Header)
        self.board = board
        if board is None:
            self.own, self.all = np.zeros(n_bytes, np.uint8), np.zeros((n_ranks, n_bytes), np.uint8)
            self.received = <const uint8_t*>start_of(self.all)
        else:
            self.own = np.zeros(sizeof(Header), np.uint8)
            self.numbers = <uint8_t*>start_of(board)
            self.halves = self.numbers + self.n_ranks * LINE
        self.header = <Header*>start_of(self.own)

    def at(self, bytes step):
        """Set the step at which training is. Only its first bytes are kept if it is long."""
        memset(self.header.step, 0, STEP)
        memcpy(self.header.step, <const char*>step, min(len(step), <Py_ssize_t>STEP))

    def say(self, int64_t state, int64_t call, int64_t size, message):
        """Say that this rank is at the next meeting, its state, its call, and a message (bytes or array)."""
        cdef Py_buffer buffer
        cdef uint8_t* own = <uint8_t*>self.header
        PyObject_GetBuffer(message, &buffer, PyBUF_SIMPLE)
        self.header.n_bytes, self.header.state, self.header.call = buffer.len, state, call
        self.header.size = size
        self.header.number += 1
        if self.board is not None:
            self.received = self.halves + (self.header.number & 1) * self.n_ranks * self.length
            own = <uint8_t*>self.received + self.rank * self.length
            memcpy(own, self.header, sizeof(Header))
        if buffer.len <= self.room:
            memcpy(own + sizeof(Header), buffer.buf, buffer.len)
        PyBuffer_Release(&buffer)
        if self.board is not None:
            publish(self.number_of(self.rank), self.header.number)

    cdef int64_t* number_of(self, int64_t rank) noexcept:
        return <int64_t*>(self.numbers + rank * LINE)

    def all_arrived(self):
        """Whether all ranks have said something at this meeting; only with a board."""
        cdef int64_t rank
        for rank in range(self.n_ranks):
            if published(self.number_of(rank)) < self.header.number:
                return False
        return True

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
