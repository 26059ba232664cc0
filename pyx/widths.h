#ifndef RANKTREES_WIDTHS_H
#define RANKTREES_WIDTHS_H

/* The same C for narrow and wide registers; the loader picks. Without fused operations
 * (-ffp-contract=off) the results do not differ. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define EACH_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EACH_WIDTH
#endif

#endif
