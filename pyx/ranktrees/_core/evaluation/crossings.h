/* For two scores that are linear in a weight: where they cross, and which one is higher at a given weight, exactly.
 *
 *     additive    s(w) = a + w b                      convex    s(w) = (1 - w) a + w b
 *
 * The difference of the scores of two rows is fall(w) = lead - w * rise. The lead is the difference of their a's.
 * The rise is the difference of their b's, to which convex adds that of the a's. Both are held as sums of two
 * doubles. An estimate in twice the usual precision nearly always determines the sign of the difference. If it
 * does not, all terms are added without any rounding (Shewchuk, Adaptive Precision Floating-Point Arithmetic,
 * 1997). No number may be near the limits of the exponent: the caller scales by a power of two. */
#ifndef RANKTREES_CROSSINGS_H
#define RANKTREES_CROSSINGS_H

#include <math.h>

#include "support/simd.h"

typedef struct {
    double high, low; /* high is the rounded sum of the two */
} Two;

typedef struct {
    Two lead, tail;  /* a_u - a_v and b_v - b_u */
    double rise;     /* how fast the difference falls, rounded ... */
    double rise_low; /* ... and the error of this rounding */
    double size;     /* the magnitude of the terms of rise, for the bound on the error */
} Gap;

INLINE Two two_sum(double x, double y) {
    double sum = x + y, of_y = sum - x;
    Two both = {sum, (x - (sum - of_y)) + (y - of_y)};
    return both;
}

INLINE Two two_product(double x, double y) {
    double xs = x * 134217729.0, ys = y * 134217729.0; /* 2^27 + 1 */
    double xh = xs - (xs - x), yh = ys - (ys - y);
    double xl = x - xh, yl = y - yh;
    double product = x * y;
    Two both = {product, xl * yl - (((product - xh * yh) - xl * yh) - xh * yl)};
    return both;
}

/* By how much a row (a_u, b_u) scores above a row (a_v, b_v). */
INLINE Gap gap_between(double a_u, double b_u, double a_v, double b_v, int convex) {
    Gap gap;
    gap.lead = two_sum(a_u, -a_v);
    gap.tail = two_sum(b_v, -b_u);
    gap.rise = gap.tail.high;
    gap.rise_low = gap.tail.low;
    gap.size = fabs(gap.tail.high);
    if (convex) {
        Two sum = two_sum(gap.lead.high, gap.tail.high);
        double low = sum.low + (gap.lead.low + gap.tail.low);
        gap.rise = sum.high + low;
        gap.rise_low = low - (gap.rise - sum.high);
        gap.size += fabs(gap.lead.high);
    }
    return gap;
}

/* The sign of a sum of doubles, without rounding: the terms that hold a partial sum do not overlap. */
static int sign_of_sum(const double *terms, int n) {
    double sums[16];
    int n_sums = 0;
    for (int i = 0; i < n; ++i) {
        double carried = terms[i];
        int kept = 0;
        for (int k = 0; k < n_sums; ++k) {
            Two both = two_sum(carried, sums[k]);
            carried = both.high;
            if (both.low != 0.0)
                sums[kept++] = both.low;
        }
        n_sums = kept;
        if (carried != 0.0)
            sums[n_sums++] = carried;
    }
    return n_sums == 0 ? 0 : sums[n_sums - 1] > 0.0 ? 1 : -1;
}

static int exact_side(const Gap *gap, double w, int convex) {
    double terms[10], factors[4] = {gap->tail.high, gap->tail.low, gap->lead.high, gap->lead.low};
    int n = convex ? 4 : 2;
    terms[0] = gap->lead.high;
    terms[1] = gap->lead.low;
    for (int i = 0; i < n; ++i) {
        Two product = two_product(-w, factors[i]);
        terms[2 + 2 * i] = product.high;
        terms[3 + 2 * i] = product.low;
    }
    return sign_of_sum(terms, 2 + 2 * n);
}

/* 1 if the first row scores higher at weight w, -1 if it scores lower, 0 if the scores are equal. */
INLINE int side_at(const Gap *gap, double w, int convex) {
    Two product = two_product(w, gap->rise);
    double fall = (gap->lead.high - product.high) + ((gap->lead.low - product.low) - w * gap->rise_low);
    double bound = 0x1p-96 * (fabs(gap->lead.high) + fabs(w) * gap->size);
    return fall > bound ? 1 : fall < -bound ? -1 : exact_side(gap, w, convex);
}

/* Set `*at` to the lowest weight up to `last` at which the upper row is no longer above; return 0 if there is none.
 *
 * `*met` says whether the scores are equal at this weight, or were equal shortly before it. */
INLINE int crossing(const Gap *gap, double last, int convex, double *at, int *met) {
    double w;
    int side;
    if (convex ? gap->lead.high < 0.0 || gap->tail.high < 0.0 : gap->tail.high <= 0.0)
        return 0;
    if (!(gap->rise > 0.0))
        return 0;
    w = gap->lead.high / gap->rise;
    if (w - last > 0x1p-40 * fabs(w))
        return 0;
    side = side_at(gap, w, convex);
    if (side > 0) {
        do {
            w = nextafter(w, INFINITY);
            side = side_at(gap, w, convex);
        } while (side > 0);
    } else if (side < 0) {
        for (;;) {
            double before = nextafter(w, -INFINITY);
            int side_before = side_at(gap, before, convex);
            if (side_before > 0)
                break;
            w = before;
            side = side_before;
            if (side == 0)
                break;
        }
    }
    *at = w + 0.0;
    *met = side == 0;
    return w <= last;
}

#endif
