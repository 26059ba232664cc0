/* One binary for every x86-64: the same C is compiled for narrow and for wide registers, and the widest version that
 * the processor supports is called. Every operation is rounded on its own (-ffp-contract=off), so all versions give
 * the same bits. To test that, RANKTREES_SIMD=portable, avx2 or avx512 limits the width.
 *
 *   EACH_WIDTH(double, sum, (int n, const double *values), (n, values)) { ... }
 *
 * defines three versions of sum(), and a sum() that chooses one. What the body calls must be INLINE. In the body,
 * ``width`` is PORTABLE, AVX2 or AVX512, as a constant at compile time. */
#ifndef RANKTREES_SIMD_H
#define RANKTREES_SIMD_H

#include <stdlib.h>
#include <string.h>

#ifndef __GNUC__
#error "ranktrees needs GCC or Clang"
#endif

#define INLINE static inline __attribute__((always_inline))
#define APART __attribute__((noinline)) static /* keeps a function out of loops that need all registers */
#define RESTRICT __restrict__
#define prefetch_line(address) __builtin_prefetch(address)

enum { PORTABLE, AVX2, AVX512 };

#define LISTED(...) __VA_ARGS__ /* strips the parentheses off a list */

#ifdef __x86_64__
#define HAS_SIMD 1
#define FOR_AVX2 __attribute__((target("avx2,bmi,bmi2")))
#define FOR_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2")))

static inline int simd_of_processor(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2"))
        return AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
        return AVX2;
    return PORTABLE;
}

/* Threads that call this at the same time compute the same number. */
static inline int simd_level(void) {
    static int found = -1;
    int known = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (known < 0) {
        const char *asked = getenv("RANKTREES_SIMD");
        const int most = simd_of_processor();
        int level = most;
        if (asked && !strcmp(asked, "portable"))
            level = PORTABLE;
        if (asked && !strcmp(asked, "avx2"))
            level = AVX2;
        known = level < most ? level : most;
        __atomic_store_n(&found, known, __ATOMIC_RELAXED);
    }
    return known;
}

#define EACH_WIDTH(returns, name, parameters, arguments)                                                   \
    INLINE returns name##_of_any_width(int width, LISTED parameters);                                      \
    FOR_AVX512 static returns name##_avx512 parameters {                                                   \
        return name##_of_any_width(AVX512, LISTED arguments);                                              \
    }                                                                                                      \
    FOR_AVX2 static returns name##_avx2 parameters { return name##_of_any_width(AVX2, LISTED arguments); } \
    static returns name##_portable parameters { return name##_of_any_width(PORTABLE, LISTED arguments); }  \
    static inline returns name parameters {                                                                \
        const int level = simd_level();                                                                    \
        return level == AVX512 ? name##_avx512 arguments                                                   \
                               : level == AVX2 ? name##_avx2 arguments : name##_portable arguments;        \
    }                                                                                                      \
    INLINE returns name##_of_any_width(int width, LISTED parameters)
#else
#define HAS_SIMD 0
static inline int simd_of_processor(void) { return PORTABLE; }
static inline int simd_level(void) { return PORTABLE; }
#define EACH_WIDTH(returns, name, parameters, arguments)                                                   \
    INLINE returns name##_of_any_width(int width, LISTED parameters);                                      \
    static returns name parameters { return name##_of_any_width(PORTABLE, LISTED arguments); }             \
    INLINE returns name##_of_any_width(int width, LISTED parameters)
#endif

#endif
