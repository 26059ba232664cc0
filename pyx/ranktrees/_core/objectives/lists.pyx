"""Gradients and losses of listwise objectives, which compare all rows of a query at once.

A query is never shared between threads, and its sums are added in one fixed order (see softmax.h).
"""
from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport int64_t, uint64_t

from ranktrees._core.objectives.dealing cimport Deal
from ranktrees._core.support.records cimport portable_exp, portable_log
from ranktrees._core.support.views cimport run_in

cdef extern from "objectives/softmax.h" nogil:
    uint64_t portable_key(uint64_t seed, uint64_t stream) noexcept
    double highest_of_weight(int64_t n, const double* weights, const double* scores) noexcept
    void softmax_of_query(
        int64_t n, const double* masses, const double* weights, const double* scores, bint drawn,
        uint64_t key, uint64_t first, double* gradients, double* hessians,
    ) noexcept
    void centred_of_query(
        int64_t n, const double* labels, const double* weights, const double* scores, double* gradients,
        double* hessians,
    ) noexcept


cdef class Lists:
    """The rows of the queries of a fit.

    Parameters
    ----------
    of : PreparedObjective
        ``weights`` or None, ``offsets`` (query q is the rows offsets[q]:offsets[q + 1]), the ``deal`` of the
        queries, and ``n_threads``.
    """

    cdef const double[::1] weights
    cdef const int64_t[::1] offsets
    cdef Deal deal
    cdef int n_threads

    def __init__(self, of):
        self.weights, self.offsets, self.deal, self.n_threads = of.weights, of.offsets, of.deal, of.n_threads

    def gradients(
        self,
        const double[::1] scores,    # IN
        uint64_t stream,             # IN   of what is drawn
        double[::1] gradients,       # OUT
        double[::1] hessians,        # OUT
    ):
        """Each row's gradient and hessian."""
        if not scores.shape[0]:
            return
        self.deal.begin()
        with nogil, parallel(num_threads=self.n_threads):
            self.work(threadid(), stream, run_in(scores, 0), run_in(gradients, 0), run_in(hessians, 0))

    cdef void work(
        self, int thread, uint64_t stream, const double* scores, double* gradients, double* hessians
    ) noexcept nogil:
        """What one thread does."""
        cdef int64_t q = self.deal.take(thread)
        while q >= 0:
            self.of_query(q, stream, scores, gradients, hessians)
            q = self.deal.take(thread)

    cdef void of_query(
        self, int64_t q, uint64_t stream, const double* scores, double* gradients, double* hessians
    ) noexcept nogil:
        pass

    cdef inline int64_t n_rows(self, int64_t q) noexcept nogil:
        return self.offsets[q + 1] - self.offsets[q]

    cdef inline const double* weights_of(self, int64_t q) noexcept nogil:
        """The weights of a query's rows, or NULL."""
        return run_in(self.weights, self.offsets[q]) if self.weights is not None else NULL


cdef class Shares(Lists):
    """The cross entropy between the shares that masses and scores give the rows of each query.

    Parameters
    ----------
    masses : ndarray of float64, shape (n_rows,)
        >= 0; the share of a row in its query is proportional to its mass.
    offset : float
        If above 0, a uniform draw is subtracted from each mass, and this is the mean of the draws.
    of : PreparedObjective
        Also the ``seed`` of its objective, if it draws, and its ``share``, with the number of each query's
        first row among all.
    """

    cdef const double[::1] masses
    cdef const int64_t[::1] first_rows
    cdef double offset
    cdef uint64_t seed

    def __init__(self, masses, offset, of):
        super().__init__(of)
        self.masses, self.offset, self.first_rows = masses, offset, of.share.first_rows
        self.seed = of.objective.seed if offset > 0 else 0

    cdef void of_query(
        self, int64_t q, uint64_t stream, const double* scores, double* gradients, double* hessians
    ) noexcept nogil:
        cdef int64_t start = self.offsets[q]
        softmax_of_query(
            self.n_rows(q), run_in(self.masses, start), self.weights_of(q), scores + start, self.offset > 0,
            portable_key(self.seed, stream), self.first_rows[q] if self.first_rows is not None else start,
            gradients + start, hessians + start,
        )

    def losses(
        self,
        const double[::1] scores,    # IN
        double[::1] losses,          # OUT  one per query, times the query's weight
        double[::1] counts,          # OUT  one per query: its weight, or 0 if no row has a mass
    ):
        """log(sum of w e^score) - sum of share * score, for masses from which the mean draw is subtracted."""
        cdef int64_t n_queries = self.offsets.shape[0] - 1, q, i, start
        cdef double high, sum, mass, all_mass, scored, weight, total
        cdef const double* weights
        for q in prange(
            n_queries, nogil=True, num_threads=self.n_threads, use_threads_if=self.n_threads > 1,
            schedule="dynamic", chunksize=8,
        ):
            start = self.offsets[q]
            weights = self.weights_of(q)
            high = highest_of_weight(self.n_rows(q), weights, run_in(scores, start))
            sum = 0.0
            all_mass = 0.0
            scored = 0.0
            total = 0.0
            for i in range(self.n_rows(q)):
                weight = weights[i] if weights != NULL else 1.0
                if weight == 0:
                    continue
                mass = self.masses[start + i] - self.offset
                total = total + weight
                sum = sum + weight * portable_exp(scores[start + i] - high)
                all_mass = all_mass + weight * mass
                scored = scored + weight * mass * (scores[start + i] - high)
            counts[q] = 0.0
            losses[q] = 0.0
            if all_mass > 0:
                counts[q] = total / self.n_rows(q)
                losses[q] = counts[q] * (portable_log(sum) - scored / all_mass)


cdef class Centred(Lists):
    """The squared error without the part that is the same for all rows of a query.

    Parameters
    ----------
    of : PreparedObjective
        Also its ``labels``.
    """

    cdef const double[::1] labels

    def __init__(self, of):
        super().__init__(of)
        self.labels = of.labels

    cdef void of_query(
        self, int64_t q, uint64_t stream, const double* scores, double* gradients, double* hessians
    ) noexcept nogil:
        cdef int64_t start = self.offsets[q]
        centred_of_query(
            self.n_rows(q), run_in(self.labels, start), self.weights_of(q), scores + start, gradients + start,
            hessians + start,
        )
