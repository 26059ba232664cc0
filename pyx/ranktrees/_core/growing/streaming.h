/* Streaming histograms: a limited number of centroids stands for all rows seen so far; see streaming.pyx.
 *
 *   value   p_0      p_1   p_2              p_3      ascending
 *   gap         g_0     g_1        g_2               between neighbours, as bits: for doubles that are not
 *                                                    negative, these have the order of integers
 *   place   2        0     3                1        where the sums of each centroid are: sums never move
 *
 * A row between two values becomes a centroid, and then the nearest two neighbours are merged into one:
 *
 *   p_0      p_1  x   p_2              p_3           lists are shifted only between x and these two
 */
#ifndef RANKTREES_STREAMING_H
#define RANKTREES_STREAMING_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "support/bins.h"
#include "support/codes.h"
#include "support/simd.h"

enum {
    MOST_CENTROIDS = 255,
    ROOM = 2 * 256 + 8 /* two histograms while they are merged, and a register that may be read behind the last */
};

#define NO_GAP INT64_MAX

typedef struct {
    double mass, gradient, hessian;
} centroid_sums;

typedef struct {
    int32_t n, most, nearest; /* the first of the nearest two neighbours, if n is most */
    int32_t unused;
    double value[ROOM];
    int64_t gap[ROOM]; /* NO_GAP from the last value on */
    uint16_t place[ROOM];
    centroid_sums sums[ROOM];
} streamed;

INLINE int64_t gap_between(double low, double high) {
    const double gap = high - low;
    int64_t bits;
    memcpy(&bits, &gap, sizeof bits);
    return bits;
}

INLINE void clear_streamed(streamed *histogram, int32_t most) {
    histogram->n = 0;
    histogram->most = most;
    histogram->nearest = -1;
    for (int32_t i = 0; i < 2 * most + 8; i++)
        histogram->gap[i] = NO_GAP;
}

/* The first of the nearest two neighbours; of equal gaps, the lowest. */
INLINE int32_t nearest_of(const streamed *histogram) {
    const int32_t n = (histogram->n + 7) & ~7;
    int64_t least = NO_GAP, first = NO_GAP;
    for (int32_t i = 0; i < n; i++)
        least = histogram->gap[i] < least ? histogram->gap[i] : least;
    for (int32_t i = 0; i < n; i++) {
        const int64_t here = histogram->gap[i] == least ? i : NO_GAP;
        first = here < first ? here : first;
    }
    return (int32_t)first;
}

/* The mean of two values, p <= q, weighted by their masses. */
INLINE double mean_of(double p, double p_mass, double q, double q_mass) {
    const double mean = p + (q - p) * (q_mass / (p_mass + q_mass));
    return mean < q ? mean : q;
}

INLINE void add_sums(centroid_sums *histogram, const centroid_sums *more) {
    histogram->mass += more->mass;
    histogram->gradient += more->gradient;
    histogram->hessian += more->hessian;
}

/* Set the gaps on both sides of value i. */
INLINE void measure_gaps(streamed *histogram, int32_t i) {
    if (i > 0)
        histogram->gap[i - 1] = gap_between(histogram->value[i - 1], histogram->value[i]);
    if (i + 1 < histogram->n)
        histogram->gap[i] = gap_between(histogram->value[i], histogram->value[i + 1]);
}

/* The number of values below x. */
INLINE int32_t n_below(const streamed *histogram, double x) {
    const double *value = histogram->value;
    int32_t below = 0, n = histogram->n;
    if (n == 0)
        return 0;
    while (n > 1) {
        const int32_t half = n >> 1;
        below += value[below + half - 1] < x ? half : 0;
        n -= half;
    }
    return below + (value[below] < x);
}

/* Move the entries first .. last - 1 up by one; shift_down moves first + 1 .. last down by one. */
INLINE void shift_up(streamed *histogram, int32_t first, int32_t last) {
    for (int32_t i = last; i > first; i--) {
        histogram->value[i] = histogram->value[i - 1];
        histogram->gap[i] = histogram->gap[i - 1];
        histogram->place[i] = histogram->place[i - 1];
    }
}

INLINE void shift_down(streamed *histogram, int32_t first, int32_t last) {
    for (int32_t i = first; i < last; i++) {
        histogram->value[i] = histogram->value[i + 1];
        histogram->gap[i] = histogram->gap[i + 1];
        histogram->place[i] = histogram->place[i + 1];
    }
}

/* Merge the neighbours i and i + 1 into i. */
INLINE void join(streamed *histogram, int32_t i) {
    centroid_sums *sums = &histogram->sums[histogram->place[i]], *others = &histogram->sums[histogram->place[i + 1]];
    histogram->value[i] = mean_of(histogram->value[i], sums->mass, histogram->value[i + 1], others->mass);
    add_sums(sums, others);
}

/* Insert x before value k of a full histogram, and merge the nearest two neighbours, one of which may be x. */
INLINE void squeeze_in(streamed *histogram, int32_t k, double x, const centroid_sums *row) {
    const int32_t n = histogram->n, pair = histogram->nearest;
    const int64_t least = histogram->gap[pair];
    const int64_t left = k > 0 ? gap_between(histogram->value[k - 1], x) : NO_GAP;
    const int64_t right = k < n ? gap_between(x, histogram->value[k]) : NO_GAP;
    const int64_t near = left <= right ? left : right;
    if (pair == k - 1 || (pair < k - 1 ? near < least : near <= least)) {
        const int32_t i = left <= right ? k - 1 : k;
        centroid_sums *sums = &histogram->sums[histogram->place[i]];
        histogram->value[i] = left <= right ? mean_of(histogram->value[i], sums->mass, x, row->mass)
                                            : mean_of(x, row->mass, histogram->value[i], sums->mass);
        add_sums(sums, row);
        measure_gaps(histogram, i);
        const int32_t shrunk = k - 1, grown = left <= right ? k - 2 : k;
        if (pair == grown || shrunk < 0 || shrunk >= n - 1)
            histogram->nearest = pair == grown ? nearest_of(histogram) : pair;
        else if (histogram->gap[shrunk] < least || (histogram->gap[shrunk] == least && shrunk < pair))
            histogram->nearest = shrunk;
        return;
    }
    const uint16_t place = histogram->place[pair + 1];
    join(histogram, pair);
    if (pair < k) { /* x moves down by one, as the merged pair has left room */
        shift_down(histogram, pair + 1, k - 1);
        k--;
    } else {
        shift_up(histogram, k, pair + 1);
    }
    histogram->value[k] = x;
    histogram->place[k] = place;
    histogram->sums[place] = *row;
    measure_gaps(histogram, k);
    measure_gaps(histogram, pair < k ? pair : pair + 1);
    histogram->gap[n - 1] = NO_GAP;
    histogram->nearest = nearest_of(histogram);
}

/* Add some rows of one value. */
INLINE void add_to_streamed(streamed *histogram, double x, const centroid_sums *row) {
    const int32_t k = n_below(histogram, x), n = histogram->n;
    if (k < n && histogram->value[k] == x) {
        add_sums(&histogram->sums[histogram->place[k]], row);
        return;
    }
    if (n == histogram->most) {
        squeeze_in(histogram, k, x, row);
        return;
    }
    shift_up(histogram, k, n);
    histogram->value[k] = x;
    histogram->place[k] = (uint16_t)n;
    histogram->sums[n] = *row;
    histogram->n = n + 1;
    measure_gaps(histogram, k);
    if (histogram->n == histogram->most)
        histogram->nearest = nearest_of(histogram);
}

/* Add the values of rows by one feature; rows without a value are added to ``lacking``. */
INLINE void add_rows(streamed *histogram, int is_long, const uint8_t *column, const double *values, uint32_t missing,
                     const uint32_t *rows, const int64_t *sums, int64_t n, int bits, centroid_sums *lacking) {
    const int64_t hessians = ((int64_t)1 << bits) - 1;
    fetch_first(column, size_of_code(is_long), rows, n);
    for (int64_t i = 0; i < n; i++) {
        fetch_coming(column, size_of_code(is_long), rows, i, n);
        const uint32_t code = code_at(is_long, column, rows[i]);
        const centroid_sums row = {1.0, (double)(sums[i] >> bits), (double)(sums[i] & hessians)};
        if (code == missing)
            add_sums(lacking, &row);
        else
            add_to_streamed(histogram, values[code], &row);
    }
}

EACH_WIDTH(void, stream_rows,
           (int is_long, const uint8_t *column, const double *values, uint32_t missing, const uint32_t *rows,
            const int64_t *sums, int64_t n, int bits, streamed *histogram, centroid_sums *lacking),
           (is_long, column, values, missing, rows, sums, n, bits, histogram, lacking)) {
    if (is_long)
        add_rows(histogram, 1, column, values, missing, rows, sums, n, bits, lacking);
    else
        add_rows(histogram, 0, column, values, missing, rows, sums, n, bits, lacking);
}

EACH_WIDTH(void, stream_values, (streamed *histogram, const double *values, const centroid_sums *sums, int64_t n),
           (histogram, values, sums, n)) {
    for (int64_t i = 0; i < n; i++)
        add_to_streamed(histogram, values[i], &sums[i]);
}

INLINE void centroids_of(const streamed *histogram, Centroid *out) {
    for (int32_t i = 0; i < histogram->n; i++) {
        const centroid_sums *sums = &histogram->sums[histogram->place[i]];
        const Centroid one = {histogram->value[i], sums->mass, sums->gradient, sums->hessian};
        out[i] = one;
    }
}

/* Merge two histograms: put their centroids side by side, equal values as one, and then merge the nearest two
 * neighbours until there are few enough. */
EACH_WIDTH(void, merge_streamed,
           (streamed *histogram, const Centroid *ours, int32_t n_ours, const Centroid *theirs, int32_t n_theirs),
           (histogram, ours, n_ours, theirs, n_theirs)) {
    int32_t i = 0, j = 0, n = 0;
    while (i < n_ours || j < n_theirs) {
        const int first = j == n_theirs || (i < n_ours && ours[i].value <= theirs[j].value);
        const Centroid *next = first ? &ours[i++] : &theirs[j++];
        const centroid_sums sums = {next->mass, next->gradient, next->hessian};
        if (n > 0 && histogram->value[n - 1] == next->value) {
            add_sums(&histogram->sums[n - 1], &sums);
        } else {
            histogram->value[n] = next->value;
            histogram->place[n] = (uint16_t)n;
            histogram->sums[n++] = sums;
        }
    }
    histogram->n = n;
    for (i = 0; i < n; i += 2)
        measure_gaps(histogram, i);
    while (histogram->n > histogram->most) {
        i = nearest_of(histogram);
        join(histogram, i);
        shift_down(histogram, i + 1, histogram->n - 1);
        histogram->n--;
        histogram->gap[histogram->n] = histogram->gap[histogram->n - 1] = NO_GAP;
        measure_gaps(histogram, i);
    }
    histogram->nearest = histogram->n == histogram->most ? nearest_of(histogram) : -1;
}

/* Merge centroids into a histogram one by one, as if each were a row: never more than one has to be made room for. */
EACH_WIDTH(void, merge_one_by_one, (streamed *histogram, const Centroid *theirs, int32_t n), (histogram, theirs, n)) {
    for (int32_t i = 0; i < n; i++) {
        const centroid_sums sums = {theirs[i].mass, theirs[i].gradient, theirs[i].hessian};
        add_to_streamed(histogram, theirs[i].value, &sums);
    }
}

/* Set the sums of all centroids before each one and, at the end, of all of them. */
INLINE void add_up(const Centroid *centroid, int32_t n, centroid_sums *before) {
    memset(before, 0, sizeof *before);
    for (int32_t i = 0; i < n; i++) {
        const centroid_sums sums = {centroid[i].mass, centroid[i].gradient, centroid[i].hessian};
        before[i + 1] = before[i];
        add_sums(&before[i + 1], &sums);
    }
}

/* The sum up to a share of the way from one centroid to the next: those before it, half of its own, and a trapezoid. */
INLINE double up_to_share(double before, double here, double next, double share) {
    return before + 0.5 * here + share * (here + 0.5 * (next - here) * share);
}

INLINE centroid_sums sums_at(const Centroid *centroid, const centroid_sums *before, int32_t i, double share) {
    const Centroid *next = share > 0 ? &centroid[i + 1] : &centroid[i];
    const centroid_sums found = {
        up_to_share(before[i].mass, centroid[i].mass, next->mass, share),
        up_to_share(before[i].gradient, centroid[i].gradient, next->gradient, share),
        up_to_share(before[i].hessian, centroid[i].hessian, next->hessian, share),
    };
    return found;
}

INLINE double value_at(const Centroid *centroid, int32_t i, double share) {
    const Centroid *next = share > 0 ? &centroid[i + 1] : &centroid[i];
    const double value = centroid[i].value + (next->value - centroid[i].value) * share;
    return value < next->value ? value : next->value;
}

/* The share of the way from centroid i to the next at which the mass up to it is ``aim``; i is moved on to that
 * centroid. There the trapezoid, m share + (m' - m) share^2 / 2, is the mass from the middle of i to aim. */
INLINE double share_of_mass(const Centroid *centroid, const centroid_sums *before, int32_t n, double aim,
                            int32_t *i) {
    while (*i + 1 < n && before[*i + 1].mass + 0.5 * centroid[*i + 1].mass <= aim)
        ++*i;
    const double here = centroid[*i].mass, more = aim - (before[*i].mass + 0.5 * here);
    if (*i + 1 == n || !(more > 0))
        return 0.0;
    const double square = here * here + 2.0 * (centroid[*i + 1].mass - here) * more;
    const double share = 2.0 * more / (here + sqrt(square > 0 ? square : 0.0));
    return share < 1.0 ? share : 1.0;
}

/* The sum and number of a leaf's rows whose code is at most ``last``, and of its rows without a value. */
typedef struct {
    int64_t sum, n, missing_sum, n_missing;
} side;

INLINE void add_side(int is_long, const uint8_t *column, uint32_t last, uint32_t missing, const uint32_t *rows,
                     const int64_t *sums, int64_t n, side *found) {
    fetch_first(column, size_of_code(is_long), rows, n);
    for (int64_t i = 0; i < n; i++) {
        fetch_coming(column, size_of_code(is_long), rows, i, n);
        const uint32_t code = code_at(is_long, column, rows[i]);
        const int64_t up_to = code <= last, lacks = code == missing, sum = sums[i];
        found->sum += sum & -up_to;
        found->n += up_to;
        found->missing_sum += sum & -lacks;
        found->n_missing += lacks;
    }
}

EACH_WIDTH(void, sum_side,
           (int is_long, const uint8_t *column, uint32_t last, uint32_t missing, const uint32_t *rows,
            const int64_t *sums, int64_t n, side *found),
           (is_long, column, last, missing, rows, sums, n, found)) {
    if (is_long)
        add_side(1, column, last, missing, rows, sums, n, found);
    else
        add_side(0, column, last, missing, rows, sums, n, found);
}

#endif
