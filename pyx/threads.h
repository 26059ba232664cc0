/* How threads of one parallel region wait for each other, and share a count. */
#ifndef RANKTREES_THREADS_H
#define RANKTREES_THREADS_H
#include <stdint.h>

/* Between two loops, where the second reads what the first wrote: Cython's loops end without waiting. */
static inline void wait_for_all(void) {
#ifdef _OPENMP
#pragma omp barrier
#endif
}

/* Its value before, which no other thread gets. */
static inline int64_t count_up(int64_t *number) {
    int64_t before;
#ifdef _OPENMP
#pragma omp atomic capture
#endif
    before = (*number)++;
    return before;
}

/* Its value, while others may count it up. */
static inline int64_t seen(const int64_t *number) {
    int64_t value;
#ifdef _OPENMP
#pragma omp atomic read
#endif
    value = *number;
    return value;
}

#endif
