/* Between two loops of one parallel region, where the second reads what the first wrote: Cython's loops end
 * without waiting. */
#ifndef RANKTREES_THREADS_H
#define RANKTREES_THREADS_H

static inline void wait_for_all(void) {
#ifdef _OPENMP
#pragma omp barrier
#endif
}

#endif
