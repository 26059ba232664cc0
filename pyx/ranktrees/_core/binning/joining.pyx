"""Join features with few unusual codes in one column: see ranktrees/binning/codes.py.

    column of f1       0 0 1 0 0 0 0 1
    entries of f2      row 2: code 3, row 5: code 3
    column of both     0 0 2 0 0 3 0 1      value 2: f1 has code 1 and f2 has code 3; value 3: f2 has code 3

Features are taken in turn. Each joins the first of a few open columns that has room for all combinations of
its codes with the values there are. If none has, it opens a column, and of too many open ones the fullest is
closed.
"""
import numpy as np

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset

cdef enum:
    VALUES = 256
    OPEN = 8       # columns that features may still join
    TOGETHER = 16  # columns that memory is allocated for
    SPARE = 8      # bytes behind the last column that kernels may read


cdef class Joiner:
    """Joins the features of some rows.

    Parameters
    ----------
    n_rows : int
    first : ndarray of int64, shape (n_features + 1,)
    rows : ndarray of uint32, shape (n_entries,)
    codes : ndarray of uint8, shape (n_entries,)
        The entries of feature f are first[f]:first[f + 1]. Other rows have its usual code.
    usual : ndarray of uint8, shape (n_features,)
    lone : ndarray of int32, shape (n_features,)
        A feature is not joined if some row has this code, or if it is -1.
    """

    cdef int64_t n_rows, n_features, n_columns
    cdef const int64_t[::1] first
    cdef const uint32_t[::1] rows
    cdef const uint8_t[::1] codes, usual
    cdef const int32_t[::1] lone
    cdef bytearray memory  # the columns so far, one after the other
    cdef int32_t[::1] column_of
    cdef uint8_t[:, ::1] tables
    cdef int64_t[::1] last_member, member_before, n_members  # of a column: its features, linked from the last
    cdef int32_t[::1] n_values
    cdef uint32_t[::1] seen        # by value and code: the attempt in which this combination was seen
    cdef uint8_t[::1] value_of     # and the value that it gets
    cdef uint32_t[::1] key_of      # by value: the combination that it stands for
    cdef uint32_t attempt
    cdef int32_t[OPEN] open
    cdef int n_open

    def __init__(self, n_rows, first, rows, codes, usual, lone):
        self.n_rows, self.n_features = n_rows, len(usual)
        self.first, self.rows, self.codes, self.usual, self.lone = first, rows, codes, usual, lone
        self.memory = bytearray(SPARE)
        self.column_of = np.empty(self.n_features, np.int32)
        self.tables = np.empty((self.n_features, VALUES), np.uint8)
        self.last_member, self.member_before = np.full((2, self.n_features), -1, np.int64)
        self.n_members = np.zeros(self.n_features, np.int64)
        self.n_values = np.empty(self.n_features, np.int32)
        self.seen, self.value_of = np.zeros(VALUES * VALUES, np.uint32), np.empty(VALUES * VALUES, np.uint8)
        self.key_of = np.empty(VALUES, np.uint32)

    def join(self):
        """Join all features: (columns, column_of, joint_of, tables), see `ranktrees.binning.codes.Codes`."""
        cdef int64_t f
        cdef int k
        for f in range(self.n_features):
            memset(&self.tables[f, 0], self.usual[f], VALUES)
            if self.is_lone(f):
                self.column_of[f] = self.new_column()
                self.keep_apart(f)
                continue
            for k in range(self.n_open):
                if self.joins(f, self.open[k]):
                    break
            else:
                self.joins(f, self.opened())
        joint_of = np.full(self.n_features, -1, np.int32)
        alone = np.asarray(self.n_members)[np.asarray(self.column_of)] == 1
        for f in np.flatnonzero(alone):
            decode(&self.tables[f, 0], self.column(self.column_of[f]), self.n_rows)
        joint = np.flatnonzero(~alone)
        joint_of[joint] = np.arange(len(joint))
        del self.memory[self.n_columns * self.n_rows + SPARE :]
        columns = np.ndarray((self.n_columns, self.n_rows), np.uint8, self.memory)
        return columns.T, np.asarray(self.column_of), joint_of, np.asarray(self.tables)[joint]

    cdef uint8_t* column(self, int64_t c):
        """Where a column begins, until the next one is added."""
        return <uint8_t*>PyByteArray_AS_STRING(self.memory) + c * self.n_rows

    cdef bint is_lone(self, int64_t f):
        cdef int64_t k
        if self.lone[f] < 0:
            return True
        for k in range(self.first[f], self.first[f + 1]):
            if self.codes[k] == self.lone[f]:
                return True
        return False

    cdef int32_t new_column(self):
        """Add a column of zeros, in memory that grows where it is: others have no views of it."""
        if (self.n_columns + 1) * self.n_rows + SPARE > len(self.memory):
            self.memory += bytes(TOGETHER * self.n_rows)
        self.n_columns += 1
        return <int32_t>(self.n_columns - 1)

    cdef void keep_apart(self, int64_t f):
        """Give a feature a column of its own, of codes."""
        cdef uint8_t* column = self.column(self.column_of[f])
        cdef int64_t k
        self.n_members[self.column_of[f]] = 1
        memset(column, self.usual[f], self.n_rows)
        for k in range(self.first[f], self.first[f + 1]):
            column[self.rows[k]] = self.codes[k]
        for k in range(VALUES):
            self.tables[f, k] = <uint8_t>k

    cdef int32_t opened(self):
        """A new column, which is open from now on."""
        cdef int32_t c = self.new_column()
        cdef int k, fullest = 0
        self.n_values[c] = 1
        if self.n_open == OPEN:
            for k in range(1, OPEN):
                if self.n_values[self.open[k]] > self.n_values[self.open[fullest]]:
                    fullest = k
            for k in range(fullest, OPEN - 1):
                self.open[k] = self.open[k + 1]
            self.n_open -= 1
        self.open[self.n_open] = c
        self.n_open += 1
        return c

    cdef bint joins(self, int64_t f, int32_t c):
        """Join a feature to a column. Return False, and do nothing, if there is no room."""
        cdef uint8_t* column = self.column(c)
        cdef int32_t n = self.n_values[c], value
        cdef int64_t k, member
        cdef uint32_t key
        self.attempt += 1
        for k in range(self.first[f], self.first[f + 1]):
            key = VALUES * column[self.rows[k]] + self.codes[k]
            if self.codes[k] != self.usual[f] and self.seen[key] != self.attempt:
                if n == VALUES:
                    return False
                self.seen[key], self.value_of[key], self.key_of[n] = self.attempt, <uint8_t>n, key
                n += 1
        for value in range(self.n_values[c], n):
            self.tables[f, value] = <uint8_t>(self.key_of[value] % VALUES)
            member = self.last_member[c]
            while member >= 0:
                self.tables[member, value] = self.tables[member, self.key_of[value] // VALUES]
                member = self.member_before[member]
        for k in range(self.first[f], self.first[f + 1]):
            if self.codes[k] != self.usual[f]:
                column[self.rows[k]] = self.value_of[VALUES * column[self.rows[k]] + self.codes[k]]
        self.column_of[f], self.n_values[c] = c, n
        self.member_before[f], self.last_member[c] = self.last_member[c], f
        self.n_members[c] += 1
        return True


cdef void decode(const uint8_t* table, uint8_t* column, int64_t n_rows) noexcept nogil:
    cdef int64_t i
    for i in range(n_rows):
        column[i] = table[column[i]]
