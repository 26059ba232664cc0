"""Read records, each a dict or a list of Python values, as rows of numbers.

    {"price": 3, "site": "uk"}       3.0  1.0    a number, or the code of a level
    {"site": None}              ->   nan  nan    what is None or absent is missing
    [2.5, "fr"]                      2.5  0.0    a list has the order of the columns

What is none of these goes to a function of Python, which returns a number or raises.
"""
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check
from libc.math cimport NAN

cdef enum:
    EXACT_BITS = 53

cdef object ABSENT = object()


cdef class RecordReader:
    """What is known of the columns. It does not change, so that threads can share it.

    Parameters
    ----------
    keys : tuple, or None
        The keys of the columns in a dict. If None, there are none.
    codes : tuple of dict or None, of length n_columns
        The codes of the levels of a category column.
    ignored : tuple
        Keys that a dict may have as well.
    ignores_all : bool
        Whether it may have any other.
    read_other : callable
        Gets a value, the number of its record and its column if it is neither a plain number nor a level, and
        returns a float or raises.
    plain : callable
        Gets a record and its number if it is neither a dict nor a list, and returns one or raises.
    refuse : callable
        Gets a record and its number if it does not fit the columns, and raises.
    """

    cdef tuple keys, codes, ignored
    cdef bint ignores_all
    cdef object read_other, plain, refuse

    def __init__(self, keys, codes, ignored, ignores_all, read_other, plain, refuse):
        self.keys, self.codes, self.ignored, self.ignores_all = keys, codes, ignored, ignores_all
        self.read_other, self.plain, self.refuse = read_other, plain, refuse

    def read(
        self,
        list records,                        # IN
        double[:, ::1] rows,                 # OUT  n_records x n_columns
    ):
        """Read all records."""
        cdef Py_ssize_t i
        for i in range(rows.shape[0]):
            record = records[i]
            if not isinstance(record, (dict, list, tuple)):
                record = self.plain(record, i)
            if isinstance(record, dict):
                self.read_dict(<dict> record, i, rows)
            else:
                self.read_values(tuple(record), i, rows)

    cdef int read_dict(self, dict record, Py_ssize_t i, double[:, ::1] rows) except -1:
        cdef Py_ssize_t j, n_found = 0
        if self.keys is None:
            self.refuse(record, i)
        for j in range(rows.shape[1]):
            value = record.get(self.keys[j], ABSENT)
            if value is ABSENT:
                rows[i, j] = NAN
            else:
                rows[i, j] = self.number_of(value, i, j)
                n_found += 1
        if n_found < len(record) and not self.ignores_all:
            for key in self.ignored:
                n_found += key in record
            if n_found < len(record):
                self.refuse(record, i)
        return 0

    cdef int read_values(self, tuple record, Py_ssize_t i, double[:, ::1] rows) except -1:
        cdef Py_ssize_t j
        if len(record) != rows.shape[1]:
            self.refuse(record, i)
        for j in range(rows.shape[1]):
            rows[i, j] = self.number_of(record[j], i, j)
        return 0

    cdef double number_of(self, object value, Py_ssize_t i, Py_ssize_t j) except? -1:
        cdef object codes = self.codes[j]
        cdef long long whole
        cdef int overflow = 0
        if value is None:
            return NAN
        if codes is not None:
            try:
                code = (<dict> codes).get(value)
            except TypeError:  # it has no hash
                code = None
            if code is not None:
                return PyFloat_AS_DOUBLE(code)
        elif PyFloat_Check(value):
            return PyFloat_AS_DOUBLE(value)
        elif PyLong_Check(value):
            whole = PyLong_AsLongLongAndOverflow(value, &overflow)
            if not overflow and -(1LL << EXACT_BITS) <= whole <= 1LL << EXACT_BITS:
                return <double> whole
        return self.read_other(value, i, j)
