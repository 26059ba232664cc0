/* One binary for every x86-64: the same C is compiled for narrow and for wide registers, and the widest version that
 * the processor supports is called. Every operation is rounded on its own (-ffp-contract=off), so all versions give
 * the same bits. To test that, RANKTREES_SIMD=portable, avx2 or avx512 limits the width. Every 64-bit Arm has NEON, for
 * which compilers use it by themselves; what is written for it by hand is off with RANKTREES_SIMD=portable.
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

enum { PORTABLE, NEON, AVX2, AVX512, SIMD_LEVELS };

#define LISTED(...) __VA_ARGS__ /* strips the parentheses off a list */

#ifdef __x86_64__
#define HAS_X86 1
#define FOR_AVX2 __attribute__((target("avx2,bmi,bmi2")))
#define FOR_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2")))
#else
#define HAS_X86 0
#endif

#ifdef __ARM_NEON
#define HAS_NEON 1
#else
#define HAS_NEON 0
#endif

/* Whether there are instructions that shift 64-bit integers and convert them to doubles, as EACH_WIDTH is compiled. */
#define KNOWS_LONGS(width) (HAS_NEON || (width) == AVX512)

static inline int simd_of_processor(void) {
#if HAS_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2"))
        return AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
        return AVX2;
#endif
    return HAS_NEON ? NEON : PORTABLE;
}

static inline int simd_supports(int level) {
    return level == PORTABLE || (level <= simd_of_processor() && (level == NEON) == HAS_NEON);
}

/* Threads that call this at the same time compute the same number. */
static inline int simd_level(void) {
    static const char *const names[SIMD_LEVELS] = {"portable", "neon", "avx2", "avx512"};
    static int found = -1;
    int known = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (known < 0) {
        const char *asked = getenv("RANKTREES_SIMD");
        known = simd_of_processor();
        for (int level = 0; asked && level < SIMD_LEVELS; level++)
            if (!strcmp(asked, names[level]) && simd_supports(level))
                known = level;
        __atomic_store_n(&found, known, __ATOMIC_RELAXED);
    }
    return known;
}

#if HAS_X86
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
#define EACH_WIDTH(returns, name, parameters, arguments)                                                   \
    INLINE returns name##_of_any_width(int width, LISTED parameters);                                      \
    static returns name parameters { return name##_of_any_width(PORTABLE, LISTED arguments); }             \
    INLINE returns name##_of_any_width(int width, LISTED parameters)
#endif

#endif
