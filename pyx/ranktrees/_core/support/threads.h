/* How the threads of a parallel region wait for each other and share a counter. */
#ifndef RANKTREES_THREADS_H
#define RANKTREES_THREADS_H
#include <stdint.h>

/* Put this between two loops if the second reads what the first wrote: Cython's loops end without waiting. */
static inline void wait_for_all(void) {
#ifdef _OPENMP
#pragma omp barrier
#endif
}

/* Increment a counter, and return its value before that. No other thread gets the same value. */
static inline int64_t count_up(int64_t *number) {
    int64_t before;
#ifdef _OPENMP
#pragma omp atomic capture
#endif
    before = (*number)++;
    return before;
}

/* The value of a counter that other threads may increment at the same time. */
static inline int64_t seen(const int64_t *number) {
    int64_t value;
#ifdef _OPENMP
#pragma omp atomic read
#endif
    value = *number;
    return value;
}

#endif
