"""Turn values into codes, in single or in double precision; see coding.h."""
from cython cimport floating
from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef extern from "binning/coding.h" nogil:
    ctypedef struct coder_float:
        pass

    ctypedef struct coder_double:
        pass

    void make_coder_float(const float* cuts, int64_t n, uint8_t missing, int bits, coder_float* coder)
    void make_coder_double(const double* cuts, int64_t n, uint8_t missing, int bits, coder_double* coder)
    void encode_floats(int64_t n, const float* values, const coder_float* coder, uint8_t* codes)
    void encode_doubles(int64_t n, const double* values, const coder_double* coder, uint8_t* codes)


cdef inline void make_coder(
    const floating* cuts, int64_t n, uint8_t missing, int bits, uint64_t* coder
) noexcept nogil:
    if floating is float:
        make_coder_float(cuts, n, missing, bits, <coder_float*> coder)
    else:
        make_coder_double(cuts, n, missing, bits, <coder_double*> coder)


cdef inline void encode(
    int64_t n, const floating* values, const uint64_t* coder, uint8_t* codes
) noexcept nogil:
    if floating is float:
        encode_floats(n, values, <const coder_float*> coder, codes)
    else:
        encode_doubles(n, values, <const coder_double*> coder, codes)
