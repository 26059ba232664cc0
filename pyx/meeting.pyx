"""A meeting of ranks: each says where it is and, with it, what it has to say if that is short enough.

    rank 0   | n_bytes | state | number | call | size | step | message ... |
    rank 1   | n_bytes | state | number | call | size | step | message ... |
                         '---- the same on all, or an error on all --'

Some twenty of them make a tree, and after each pass over the rows all code must be fetched anew: here it is
little.

Ranks of one machine say it on a board, memory that all of them see, and say more there:

    numbers   | rank 0 | rank 1 | ...     of the last meeting at which a rank has said something
    halves    | rank 0 | rank 1 | ...  | rank 0 | rank 1 | ...

Meetings take the halves in turn: who is at the next one has read what was said two meetings before.
"""
import numpy as np

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from records cimport start_of

cdef extern from "board.h" nogil:
    void publish(int64_t* number, int64_t value) noexcept
    int64_t published(const int64_t* number) noexcept

cdef enum:
    STEP = 88  # bytes
    LINE = 64  # bytes, of the cache

cdef struct Header:
    int64_t n_bytes   # of the message, which is not there if it is too long
    int64_t state
    int64_t number    # of the meeting
    int64_t call
    int64_t size
    char[STEP] step


cdef int64_t whole_lines(int64_t n_bytes) noexcept:
    """So many bytes or more, which are whole lines of the cache."""
    return (n_bytes + LINE - 1) // LINE * LINE


def bytes_of_board(n_ranks, n_bytes):
    """Of memory for meetings at which each of so many ranks says so much."""
    return n_ranks * (LINE + 2 * whole_lines(n_bytes))


cdef class Meeting:
    """What all ranks say when they meet.

    Parameters
    ----------
    n_ranks : int
    n_bytes : int
        What each says, a message included that may be so long: a multiple of 8.
    rank : int, default=0
        This one's place on the board.
    board : ndarray of uint8, shape (bytes_of_board(n_ranks, n_bytes),), default=None
        Of zeros at first, and begins a line of the cache. None where ranks send each other what they say.

    Attributes
    ----------
    own : ndarray of uint8
        What this rank says: to be sent to the others where there is no board.
    all : ndarray of uint8, shape (n_ranks, len(own))
        What all have said: to be received there.
    room : int
        Bytes of a message.
    """

    cdef readonly object own, all
    cdef readonly int64_t room
    cdef object board
    cdef Header* header
    cdef const uint8_t* heard
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
            self.heard = <const uint8_t*>start_of(self.all)
        else:
            self.own = np.zeros(sizeof(Header), np.uint8)
            self.numbers = <uint8_t*>start_of(board)
            self.halves = self.numbers + self.n_ranks * LINE
        self.header = <Header*>start_of(self.own)

    def at(self, bytes step):
        """Where training is; of a long one the first bytes."""
        memset(self.header.step, 0, STEP)
        memcpy(self.header.step, <const char*>step, min(len(step), <Py_ssize_t>STEP))

    def say(self, int64_t state, int64_t call, int64_t size, message):
        """This rank is at the next meeting, in this state, for this call. A message is bytes or an array."""
        cdef Py_buffer buffer
        cdef uint8_t* said = <uint8_t*>self.header
        PyObject_GetBuffer(message, &buffer, PyBUF_SIMPLE)
        self.header.n_bytes, self.header.state, self.header.call = buffer.len, state, call
        self.header.size = size
        self.header.number += 1
        if self.board is not None:
            self.heard = self.halves + (self.header.number & 1) * self.n_ranks * self.length
            said = <uint8_t*>self.heard + self.rank * self.length
            memcpy(said, self.header, sizeof(Header))
        if buffer.len <= self.room:
            memcpy(said + sizeof(Header), buffer.buf, buffer.len)
        PyBuffer_Release(&buffer)
        if self.board is not None:
            publish(self.number_of(self.rank), self.header.number)

    cdef int64_t* number_of(self, int64_t rank) noexcept:
        return <int64_t*>(self.numbers + rank * LINE)

    def all_arrived(self):
        """On a board: whether all have said something at this meeting."""
        cdef int64_t rank
        for rank in range(self.n_ranks):
            if published(self.number_of(rank)) < self.header.number:
                return False
        return True

    cdef const Header* header_of(self, int64_t rank) noexcept:
        return <const Header*>(self.heard + rank * self.length)

    cdef const uint8_t* message_of(self, int64_t rank) noexcept:
        return <const uint8_t*>self.header_of(rank) + sizeof(Header)

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
            memcpy(to + rank * n_bytes, self.message_of(rank), n_bytes)
        return stacked

    def add_up(self, array, int64_t first=0):
        """Becomes the sum of the arrays of int64 that were the messages of all ranks, from ``first`` on."""
        cdef Py_buffer buffer
        PyObject_GetBuffer(array, &buffer, PyBUF_WRITABLE)
        cdef uint64_t* total = <uint64_t*>buffer.buf  # sums in words may fill the bit of the sign
        cdef const uint64_t* theirs
        cdef int64_t n = buffer.len // sizeof(int64_t), rank, i
        memset(total, 0, buffer.len)
        for rank in range(self.n_ranks):
            theirs = <const uint64_t*>self.message_of(rank) + first
            for i in range(n):
                total[i] += theirs[i]
        PyBuffer_Release(&buffer)

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
        """[bytes, ...] of all ranks, of which none is too long: so much of each."""
        cdef int64_t rank, n
        messages = []
        for rank in range(self.n_ranks):
            n = n_bytes[rank]
            messages.append(self.message_of(rank)[:n])
        return messages
