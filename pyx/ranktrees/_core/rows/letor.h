/* Lines of LETOR files: label qid:query feature:value ... # id. The block of lines ends at a zero byte. */
#ifndef RANKTREES_LETOR_H
#define RANKTREES_LETOR_H

#include <stdint.h>
#include <string.h>

#include "rows/decimals.h"

enum { LONGEST_TOKEN = 1000 }; /* bytes of a query, and digits of a feature */

typedef struct {
    double label;
    int64_t n_pairs, n_stored; /* of which those that are not zero */
    const char *query, *id;
    int64_t query_bytes, id_bytes;
} LetorRow;

/* Whole lines, which one thread reads. */
typedef struct {
    const char *begin, *end;
    LetorRow *rows;
    int32_t *features;
    double *values;
    int64_t n_rows, n_pairs, n_stored;
    int64_t largest;             /* feature that a line names */
    const char *line_of_largest; /* the first such line */
    const char *problem;         /* the first malformed line, at which reading has ended, or NULL */
} LetorStretch;

typedef struct {
    int64_t most_features; /* that a line may name */
    int is_single;         /* whether values are rounded to float32 */
    const char *missing;   /* what stands for NaN: texts with a zero byte after each, and another after all */
} LetorOptions;

INLINE int is_white(char c) { return c == ' ' || (unsigned char)(c - '\t') < 5; }

INLINE int is_blank(char c) { return is_white(c) && c != '\n'; }

INLINE int ends_token(const char *p, const char *end) { return is_white(*p) || *p == '#' || p == end; }

INLINE const char *end_of_line(const char *p, const char *end) {
    const char *found = memchr(p, '\n', (size_t)(end - p));
    return found ? found : end;
}

/* Cut a block at ends of lines into n stretches of about equal length. */
static void cut_block(const char *begin, int64_t n_bytes, int64_t n, LetorStretch *stretches) {
    const char *at = begin, *end = begin + n_bytes;
    memset(stretches, 0, (size_t)n * sizeof *stretches);
    for (int64_t s = 0; s < n; s++) {
        const char *target = begin + n_bytes * (s + 1) / n;
        stretches[s].begin = at;
        if (target > at) {
            at = end_of_line(target - 1, end);
            at += at < end;
        }
        stretches[s].end = at;
    }
}

/* What follows the text for NaN at p, or NULL. */
static inline const char *read_missing(const char *p, const char *end, const char *texts) {
    for (; *texts; texts += strlen(texts) + 1) {
        const size_t length = strlen(texts);
        if (strncmp(p, texts, length) == 0 && ends_token(p + length, end))
            return p + length;
    }
    return NULL;
}

INLINE const char *read_feature(const char *p, int64_t *feature) {
    uint64_t number = 0;
    if (*p == '+')
        p++;
    const char *digits = p;
    while (*p == '0')
        p++;
    const char *significant = p;
    p = read_digits(p, &number);
    *feature = p - significant > 10 || p - digits > LONGEST_TOKEN ? 0 : (int64_t)number;
    return *p == ':' ? p + 1 : NULL;
}

/* Read the line at p, which is not blank. Return where it ends, or NULL if it is malformed. */
INLINE const char *read_row(LetorStretch *s, const LetorOptions *options, const char *p, const char *end) {
    LetorRow *row = s->rows + s->n_rows;
    int32_t *features = s->features + s->n_pairs;
    double *values = s->values + s->n_pairs;
    int64_t n_pairs = 0, n_stored = 0, feature, previous = 0;

    p = read_number(p, &row->label);
    if (!p || !is_blank(*p) || !isfinite(row->label))
        return NULL;
    while (is_blank(*p))
        p++;
    if (strncmp(p, "qid:", 4))
        return NULL;
    row->query = p += 4;
    while (!is_white(*p) && *p != '#' && *p != ':' && *p)
        p++;
    row->query_bytes = p - row->query;
    if (row->query_bytes < 1 || row->query_bytes > LONGEST_TOKEN)
        return NULL;

    for (;;) {
        if (!ends_token(p, end))
            return NULL;
        while (is_blank(*p))
            p++;
        if (*p == '\n' || *p == '#' || p == end)
            break;
        p = read_feature(p, &feature);
        if (!p || feature <= previous || feature > options->most_features)
            return NULL;
        double value;
        const char *after = *options->missing ? read_missing(p, end, options->missing) : NULL;
        if (after)
            value = (double)NAN;
        else {
            after = read_number(p, &value);
            if (!after)
                return NULL;
            if (options->is_single)
                value = (double)(float)value;
            if (isinf(value) && (is_digit(after[-1]) || after[-1] == '.'))
                return NULL; /* too large, and not spelled as an infinity */
        }
        features[n_pairs] = (int32_t)(feature - 1);
        values[n_pairs] = value;
        n_pairs++;
        n_stored += value != 0;
        previous = feature;
        p = after;
    }
    row->id = p;
    row->id_bytes = 0;
    if (*p == '#') {
        const char *id = p + 1;
        const char *id_end = p = end_of_line(p, end);
        while (id < id_end && is_white(*id))
            id++;
        while (id < id_end && is_white(id_end[-1]))
            id_end--;
        row->id = id;
        row->id_bytes = id_end - id;
    }
    row->n_pairs = n_pairs;
    row->n_stored = n_stored;
    s->n_rows++;
    s->n_pairs += n_pairs;
    s->n_stored += n_stored;
    if (previous > s->largest)
        s->largest = previous;
    return p;
}

static void read_stretch(LetorStretch *s, const LetorOptions *options, const char *end) {
    for (const char *line = s->begin; line < s->end; line++) {
        const char *p = line;
        const int64_t before = s->largest;
        while (is_blank(*p))
            p++;
        if (*p == '#')
            p = end_of_line(p, end);
        else if (*p != '\n' && p != end)
            p = read_row(s, options, p, end);
        if (!p) {
            s->problem = line;
            return;
        }
        if (s->largest > before)
            s->line_of_largest = line;
        line = p;
    }
}

/* Look at the last pair of each line only. A line that is malformed may count for less. */
static void scan_stretch(LetorStretch *s) {
    for (const char *line = s->begin, *after; line < s->end; line = after + 1) {
        after = end_of_line(line, s->end);
        const char *last = NULL;
        int64_t n_colons = 0;
        for (const char *p = line; p < after && *p != '#'; p++)
            if (*p == ':') {
                n_colons++;
                last = p;
            }
        if (!n_colons)
            continue;
        s->n_rows++;
        s->n_pairs += n_colons - 1; /* one is that of qid: */
        const char *p = last;
        while (p > line && is_digit(p[-1]))
            p--;
        const char *begin = p > line && p[-1] == '+' ? p - 1 : p;
        int64_t feature;
        if (begin > line && is_white(begin[-1]) && p < last && read_feature(p, &feature) && feature > s->largest) {
            s->largest = feature;
            s->line_of_largest = line;
        }
    }
}

/* The query as an integer. Return whether it is one, and of 64 bits. */
static int read_query(const char *p, int64_t n_bytes, int64_t *integer) {
    const char *end = p + n_bytes;
    const int is_negative = *p == '-';
    uint64_t number = 0;
    if (*p == '-' || *p == '+')
        p++;
    if (p == end)
        return 0;
    while (p < end && *p == '0')
        p++;
    if (end - p > 19)
        return 0;
    for (; p < end; p++) {
        if (!is_digit(*p))
            return 0;
        number = 10 * number + (uint64_t)(*p - '0');
    }
    if (number > INT64_MAX)
        return 0;
    *integer = is_negative ? -(int64_t)number : (int64_t)number;
    return 1;
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

enum {
    PAIR_BYTES = 22 + NUMBER_BYTES, /* of a space, a feature, a colon and a value, at most */
    HEAD_BYTES = NUMBER_BYTES + 6   /* of a label, " qid:" and a line feed */
};

INLINE char *write_text(char *p, const char *text, int64_t n_bytes) {
    if (n_bytes) /* otherwise text may be NULL */
        memcpy(p, text, (size_t)n_bytes);
    return p + n_bytes;
}

INLINE char *write_pair(char *p, const uint64_t *powers, int64_t feature, double value, int is_single) {
    *p++ = ' ';
    p = write_integer(p, (uint64_t)feature);
    *p++ = ':';
    return write_number(p, powers, value, is_single);
}

/* Write the pairs of a row, the values of which are a stride apart. Without features the row is dense: it has all of
 * them, and those that are NaN are left out. */
static char *write_pairs(char *p, const uint64_t *powers, const char *values, int64_t stride, const int64_t *features,
                         int64_t n, int is_single, int keep_zeros, int64_t last, double value_of_last) {
    for (int64_t j = 0; j < n; j++, values += stride) {
        const double value = is_single ? (double)*(const float *)values : *(const double *)values;
        const int64_t feature = (features ? features[j] : j) + 1;
        if ((value == 0 && !keep_zeros) || (!features && isnan(value)))
            continue;
        p = write_pair(p, powers, feature, value, is_single);
        if (feature == last)
            last = 0;
    }
    return last ? write_pair(p, powers, last, value_of_last, is_single) : p;
}

#endif
