/* How processes that share memory wait for each other. */
#ifndef RANKTREES_BOARD_H
#define RANKTREES_BOARD_H
#include <stdint.h>

/* A process that sees the number also sees everything that was written before it. */
static inline void publish(int64_t *number, int64_t value) { __atomic_store_n(number, value, __ATOMIC_RELEASE); }

static inline int64_t published(const int64_t *number) { return __atomic_load_n(number, __ATOMIC_ACQUIRE); }

#endif
