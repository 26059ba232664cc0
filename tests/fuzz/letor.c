/* LETOR files that are well-formed, or nearly so, read by the kernel and by a slow reader. Each is drawn from a seed and
 * its number, so that the one that fails can be drawn again.
 *
 *     letor read SEED FIRST COUNT POWERS     compare, and count what was read; stop at the first difference
 *     letor print SEED FIRST COUNT           write the files, each after its length in four bytes
 *
 * POWERS is a file with the powers of ten by which numbers are written. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "rows/letor.h"

enum { MOST_BYTES = 8192, MOST_ROWS = 1024, MOST_PAIRS = 2048, MOST_STRETCHES = 4, LONGEST = 1000 };

static uint64_t seed, number;

static void end_at_file(void) {
    fprintf(stderr, "file %" PRIu64 " of seed %" PRIu64 "\n", number, seed);
    _exit(1);
}

static void end_by_signal(int signal) {
    fprintf(stderr, "%s, in ", signal == SIGALRM ? "no end within a minute" : "the sanitizers have found a fault");
    end_at_file();
}

const char *__asan_default_options(void) { return "abort_on_error=1"; }
const char *__ubsan_default_options(void) { return "abort_on_error=1:print_stacktrace=1"; }

static void *room(size_t n_bytes) {
    void *memory = malloc(n_bytes ? n_bytes : 1);
    if (!memory)
        exit(2);
    return memory;
}

/* ---- drawing -------------------------------------------------------------------------------------------------- */

static uint64_t key, n_drawn;

/* Below n. */
static size_t draw(size_t n) { return (size_t)(portable_draw(key, n_drawn++) % n); }

#define ONE_OF(texts) texts[draw(sizeof texts / sizeof *texts)]

typedef struct {
    char bytes[MOST_BYTES];
    size_t n;
} File;

static void add(File *file, const char *text, size_t n) {
    n = n < MOST_BYTES - file->n ? n : MOST_BYTES - file->n;
    memcpy(file->bytes + file->n, text, n);
    file->n += n;
}

static void add_text(File *file, const char *text) { add(file, text, strlen(text)); }

static void add_digits(File *file, size_t n) {
    for (; n > 0; n--)
        add(file, "0123456789" + draw(10), 1);
}

static void add_number(File *file) {
    static const char *const SPECIAL[] = {"0",
                                          "-0",
                                          "1",
                                          "nan",
                                          "-nan",
                                          "inf",
                                          "-Infinity",
                                          "1e39",
                                          "4e38",
                                          "1e400",
                                          "1e-400",
                                          "5e-324",
                                          "2.5e-324",
                                          "1.7976931348623158e308",
                                          "1.8e308",
                                          ".5",
                                          "7.",
                                          "1e22",
                                          "1e23",
                                          "9007199254740993",
                                          "18446744073709551616",
                                          "3.4028235677973366e38",
                                          "-1e-46",
                                          "NULL"};
    char text[40];
    switch (draw(5)) {
    case 0: add_text(file, ONE_OF(SPECIAL)); break;
    case 1: { /* any bits */
        const uint64_t bits = portable_draw(key, n_drawn++);
        const uint32_t some = (uint32_t)bits;
        double value;
        float single;
        memcpy(&value, &bits, sizeof value);
        memcpy(&single, &some, sizeof single);
        snprintf(text, sizeof text, "%.*g", (int)(1 + draw(18)), draw(8) ? (double)single : value);
        add_text(file, text);
        break;
    }
    case 2:
        snprintf(text, sizeof text, "%d", (int)draw(1000));
        add_text(file, text);
        break;
    case 3:
        snprintf(text, sizeof text, "%.6f", (double)draw(1000000) / 1e6);
        add_text(file, text);
        break;
    default:
        add_text(file, draw(2) ? "-" : draw(2) ? "+" : "");
        add_digits(file, draw(4) ? draw(4) : draw(30));
        if (draw(2)) {
            add_text(file, ".");
            add_digits(file, draw(4) ? draw(8) : draw(40));
        }
        if (draw(2)) {
            snprintf(text, sizeof text, "%c%d", draw(2) ? 'e' : 'E',
                     draw(8) ? (int)draw(60) - 30 : (int)draw(700) - 360);
            add_text(file, text);
        }
    }
}

static void add_line(File *file) {
    static const char *const BLANK[] = {" ", " ", " ", "\t", "  ", " \v\f"};
    static const char *const QUERY[] = {
        "1", "2", "-7", "+3", "007", "q", "a-b", "9223372036854775807", "9223372036854775808"};
    static const char *const END[] = {"\n", "\n", "\n", "\r\n", " # id 1 \n", "#GX\n", " \n\n", "\n# 9:1\n", ""};
    static const char *const LABEL[] = {"0", "1", "2", "3", "4", "0.5", "-1"};
    if (draw(30))
        add_text(file, ONE_OF(LABEL));
    else
        add_number(file);
    add_text(file, ONE_OF(BLANK));
    add_text(file, "qid:");
    add_text(file, ONE_OF(QUERY));
    size_t feature = 0;
    for (size_t n = draw(6); n > 0; n--) {
        char text[40];
        feature += 1 + draw(draw(30) ? 3 : 1000000000);
        snprintf(text, sizeof text, "%s%zu:", ONE_OF(BLANK), feature);
        add_text(file, text);
        add_number(file);
    }
    add_text(file, ONE_OF(END));
}

/* Change a few bytes, or some. */
static void mutate(File *file) {
    static const char BYTES[] = "0123456789.:#+-eEqidnaf_xNULL \t\n\r\v\f\0\0\x80\xff";
    File old = *file;
    const size_t n = old.n, at = draw(n + 1), length = draw(draw(4) ? 4 : 200);
    const size_t some = at + length < n ? length : n - at;
    const char byte = draw(8) ? BYTES[draw(sizeof BYTES - 1)] : (char)draw(256);
    file->n = at;
    switch (draw(6)) {
    case 0: /* another byte */
        if (at < n) {
            add(file, &byte, 1);
            add(file, old.bytes + at + 1, n - at - 1);
        }
        break;
    case 1: /* one more */
        add(file, &byte, 1);
        add(file, old.bytes + at, n - at);
        break;
    case 2: /* the same one many times */
        for (size_t i = draw(8) ? draw(30) : LONGEST - 10 + draw(20); i > 0; i--)
            add(file, &byte, 1);
        add(file, old.bytes + at, n - at);
        break;
    case 3: /* some fewer */ add(file, old.bytes + at + some, n - at - some); break;
    case 4: /* some twice, at another place */
        add(file, old.bytes + draw(n - some + 1), some);
        add(file, old.bytes + at, n - at);
        break;
    default: /* the end is lost */ break;
    }
}

static void draw_file(File *file) {
    key = portable_key(seed, number);
    n_drawn = 0;
    file->n = 0;
    for (size_t n = draw(6); n > 0; n--)
        add_line(file);
    if (draw(4))
        for (size_t n = 1 + draw(draw(2) ? 1 : 4); n > 0; n--)
            mutate(file);
}

/* ---- the slow reader ------------------------------------------------------------------------------------------ */

typedef struct {
    const char *p;
    size_t n;
} Text;

typedef struct {
    double label;
    Text query, id;
    size_t first, n;
    const char *line;
} SlowRow;

typedef struct {
    SlowRow rows[MOST_ROWS];
    int64_t features[MOST_PAIRS];
    double values[MOST_PAIRS];
    size_t n_rows, n_pairs;
    const char *problem;
} Slow;

static int is_space(char c) { return c && strchr(" \t\n\v\f\r", c); }

static int is_numeral(char c) { return c && strchr("0123456789", c); }

static Text stripped(Text text) {
    while (text.n && is_space(*text.p))
        text.p++, text.n--;
    while (text.n && is_space(text.p[text.n - 1]))
        text.n--;
    return text;
}

/* What is before the first such byte; the text goes on after it. */
static Text split(Text *text, char at, int *found) {
    const char *end = text->n ? memchr(text->p, at, text->n) : NULL;
    const Text before = {text->p, end ? (size_t)(end - text->p) : text->n};
    *found = end != NULL;
    text->p += before.n + (size_t)*found;
    text->n -= before.n + (size_t)*found;
    return before;
}

static Text next_token(Text *line) {
    *line = stripped(*line);
    Text token = {line->p, 0};
    while (token.n < line->n && !is_space(token.p[token.n]))
        token.n++;
    line->p += token.n, line->n -= token.n;
    return token;
}

static char *copy(Text text) {
    char *bytes = room(text.n + 1);
    memcpy(bytes, text.p, text.n);
    bytes[text.n] = 0;
    return bytes;
}

static int is_word(Text text, const char *word) {
    if (text.n != strlen(word))
        return 0;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != word[i] && text.p[i] != word[i] - 'a' + 'A')
            return 0;
    return 1;
}

static size_t count_numerals(Text text) {
    size_t n = 0;
    while (n < text.n && is_numeral(text.p[n]))
        n++;
    return n;
}

static Text without(Text text, size_t n) { return (Text){text.p + n, text.n - n}; }

static int has_sign(Text text) { return text.n && (*text.p == '-' || *text.p == '+'); }

/* [+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf(inity)?) in any case: what strtod reads of it. */
static int slow_number(Text text, double *value, int *is_named) {
    Text rest = without(text, (size_t)has_sign(text));
    *is_named = is_word(rest, "nan") || is_word(rest, "inf") || is_word(rest, "infinity");
    if (!*is_named) {
        size_t n = count_numerals(rest), n_digits = n;
        rest = without(rest, n);
        if (rest.n && *rest.p == '.') {
            rest = without(rest, 1);
            n = count_numerals(rest);
            n_digits += n;
            rest = without(rest, n);
        }
        if (!n_digits)
            return 0;
        if (rest.n && (*rest.p == 'e' || *rest.p == 'E')) {
            rest = without(rest, 1);
            rest = without(rest, (size_t)has_sign(rest));
            n = count_numerals(rest);
            if (!n)
                return 0;
            rest = without(rest, n);
        }
        if (rest.n)
            return 0;
    }
    char *bytes = copy(text);
    *value = strtod(bytes, NULL);
    free(bytes);
    return 1;
}

/* Digits, at most so many of them; what is larger than any index is INT64_MAX. */
static int slow_integer(Text text, int64_t *integer) {
    const Text digits = without(text, (size_t)has_sign(text));
    if (digits.n < 1 || digits.n > LONGEST || count_numerals(digits) != digits.n)
        return 0;
    char *bytes = copy(text);
    *integer = strtoll(bytes, NULL, 10);
    free(bytes);
    return 1;
}

static int is_missing(Text text, const char *texts) {
    for (; *texts; texts += strlen(texts) + 1)
        if (text.n == strlen(texts) && !memcmp(text.p, texts, text.n))
            return 1;
    return 0;
}

/* Read a line. Return 0 if it is malformed. */
static int slow_line(Slow *slow, const LetorOptions *options, Text line) {
    SlowRow row = {.line = line.p, .first = slow->n_pairs};
    int found, is_named;
    int64_t feature, previous = 0;
    Text text = split(&line, '#', &found), token = next_token(&text);
    row.id = stripped(line);
    if (!token.n)
        return 1;
    if (!slow_number(token, &row.label, &is_named) || !isfinite(row.label))
        return 0;
    token = next_token(&text);
    if (token.n < 4 || memcmp(token.p, "qid:", 4))
        return 0;
    row.query = without(token, 4);
    if (row.query.n < 1 || row.query.n > LONGEST || memchr(row.query.p, ':', row.query.n) ||
        memchr(row.query.p, 0, row.query.n))
        return 0;
    for (token = next_token(&text); token.n; token = next_token(&text)) {
        Text name = split(&token, ':', &found);
        if (!found || !slow_integer(name, &feature) || feature <= previous || feature > options->most_features)
            return 0;
        double value = (double)NAN;
        if (!is_missing(token, options->missing)) {
            if (!slow_number(token, &value, &is_named))
                return 0;
            value = options->is_single ? (double)(float)value : value;
            if (isinf(value) && !is_named)
                return 0;
        }
        if (slow->n_pairs == MOST_PAIRS)
            exit(3);
        slow->features[slow->n_pairs] = previous = feature;
        slow->values[slow->n_pairs++] = value;
    }
    row.n = slow->n_pairs - row.first;
    if (slow->n_rows == MOST_ROWS)
        exit(3);
    slow->rows[slow->n_rows++] = row;
    return 1;
}

static void slow_read(Slow *slow, const LetorOptions *options, Text text) {
    int found = 1;
    slow->n_rows = slow->n_pairs = 0;
    slow->problem = NULL;
    while (text.n && !slow->problem) {
        const Text line = split(&text, '\n', &found);
        const size_t n_pairs = slow->n_pairs;
        if (!slow_line(slow, options, line)) {
            slow->problem = line.p;
            slow->n_pairs = n_pairs;
        }
    }
}

/* ---- comparing ------------------------------------------------------------------------------------------------ */

#define EXPECT(condition)                                                                                              \
    if (!(condition)) {                                                                                                \
        fputs("the kernel and the slow reader differ: " #condition ", in ", stderr);                                   \
        end_at_file();                                                                                                 \
    }

static int same_number(double x, double y) {
    return isnan(x) ? isnan(y) : portable_to_bits(x) == portable_to_bits(y);
}

static int same_text(const char *p, int64_t n, Text text) {
    return (size_t)n == text.n && !memcmp(p, text.p, text.n);
}

static void check_query(Text query) {
    int64_t integer, expected = 0;
    char *bytes = copy(query);
    errno = 0;
    const Text digits = without(query, (size_t)has_sign(query));
    int is_integer = digits.n && count_numerals(digits) == digits.n;
    if (is_integer) {
        expected = strtoll(bytes, NULL, 10);
        is_integer = errno == 0 && expected != INT64_MIN;
    }
    EXPECT(read_query(query.p, (int64_t)query.n, &integer) == is_integer);
    EXPECT(!is_integer || integer == expected);
    free(bytes);
}

/* What is written reads back, and there is room for it. */
static void check_writing(const uint64_t *powers, double value) {
    for (int is_single = 0; is_single < 2; is_single++) {
        const double written = is_single ? (double)(float)value : value;
        char *text = room(NUMBER_BYTES), *end = write_number(text, powers, written, is_single);
        EXPECT(end > text && end < text + NUMBER_BYTES);
        *end = 0;
        const double read = strtod(text, NULL);
        EXPECT(same_number(is_single ? (double)(float)read : read, written));
        free(text);
    }
}

typedef struct {
    uint64_t files, malformed, rows, pairs;
} Counts;

static void compare(const File *file, const uint64_t *powers, Counts *counts) {
    static const char *const MISSING[] = {"", "", "NULL\0", "-\0NULL\0001\0"};
    static Slow slow;
    LetorOptions options = {draw(2) ? INT32_MAX : 10, (int)draw(2), ONE_OF(MISSING)};
    char *block = room(file->n + 1);
    memcpy(block, file->bytes, file->n);
    block[file->n] = 0;
    slow_read(&slow, &options, (Text){block, file->n});

    LetorStretch stretches[MOST_STRETCHES];
    const int64_t n = 1 + (int64_t)draw(MOST_STRETCHES);
    cut_block(block, (int64_t)file->n, n, stretches);
    size_t row = 0, pair = 0;
    int64_t largest = 0, n_stored = 0;
    const char *problem = NULL, *line_of_largest = NULL;
    for (int64_t s = 0; s < n && !problem; s++) {
        LetorStretch *found = &stretches[s];
        const size_t begin = (size_t)(found->begin - block), end = (size_t)(found->end - block);
        found->rows = room((end / 8 - begin / 8 + 1) * sizeof(LetorRow));
        found->features = room((end / 4 - begin / 4 + 1) * sizeof(int32_t));
        found->values = room((end / 4 - begin / 4 + 1) * sizeof(double));
        read_stretch(found, &options, block + file->n);
        EXPECT(row + (size_t)found->n_rows <= slow.n_rows && pair + (size_t)found->n_pairs <= slow.n_pairs);
        for (int64_t i = 0, k = 0; i < found->n_rows; i++, row++) {
            const LetorRow *own = &found->rows[i];
            const SlowRow *expected = &slow.rows[row];
            EXPECT(same_number(own->label, expected->label));
            EXPECT(same_text(own->query, own->query_bytes, expected->query));
            EXPECT(same_text(own->id, own->id_bytes, expected->id));
            EXPECT((size_t)own->n_pairs == expected->n);
            check_query(expected->query);
            check_writing(powers, own->label);
            for (int64_t stop = k + own->n_pairs; k < stop; k++, pair++) {
                EXPECT(found->features[k] + (int64_t)1 == slow.features[pair]);
                EXPECT(same_number(found->values[k], slow.values[pair]));
                check_writing(powers, found->values[k]);
                n_stored += found->values[k] != 0;
            }
        }
        if (found->largest > largest) {
            largest = found->largest;
            line_of_largest = found->line_of_largest;
        }
        n_stored -= found->n_stored;
        problem = found->problem;
        free(found->rows);
        free(found->features);
        free(found->values);
    }
    EXPECT(problem == slow.problem);
    EXPECT(row == slow.n_rows && pair == slow.n_pairs && n_stored == 0);
    int64_t expected = 0;
    const char *line_of_expected = NULL;
    for (size_t i = 0; i < slow.n_rows; i++)
        if (slow.rows[i].n && slow.features[slow.rows[i].first + slow.rows[i].n - 1] > expected) {
            expected = slow.features[slow.rows[i].first + slow.rows[i].n - 1];
            line_of_expected = slow.rows[i].line;
        }
    EXPECT(largest == expected && line_of_largest == line_of_expected);

    cut_block(block, (int64_t)file->n, 1, stretches);
    scan_stretch(stretches); /* looks at the last pair of each line, well-formed or not */
    if (!slow.problem) {
        EXPECT((size_t)stretches->n_rows == slow.n_rows && (size_t)stretches->n_pairs == slow.n_pairs);
        EXPECT(stretches->largest == expected && stretches->line_of_largest == line_of_expected);
    }
    free(block);
    counts->files++;
    counts->malformed += slow.problem != NULL;
    counts->rows += slow.n_rows;
    counts->pairs += slow.n_pairs;
}

int main(int n_arguments, char **arguments) {
    static File file;
    static uint64_t powers[2 * (MOST_POWER - LEAST_POWER + 1)];
    Counts counts = {0, 0, 0, 0};
    if (n_arguments < 5 || !open_plain_locale())
        return 2;
    seed = strtoull(arguments[2], NULL, 10);
    const uint64_t first = strtoull(arguments[3], NULL, 10), count = strtoull(arguments[4], NULL, 10);
    const int prints = !strcmp(arguments[1], "print");
    if (!prints) {
        FILE *from = n_arguments == 6 ? fopen(arguments[5], "rb") : NULL;
        if (!from || fread(powers, sizeof powers, 1, from) != 1)
            return 2;
        fclose(from);
    }
    signal(SIGABRT, end_by_signal);
    signal(SIGALRM, end_by_signal);
    for (number = first; number < first + count; number++) {
        alarm(60);
        draw_file(&file);
        if (prints) {
            const uint32_t n = (uint32_t)file.n;
            fwrite(&n, sizeof n, 1, stdout);
            fwrite(file.bytes, 1, file.n, stdout);
        } else
            compare(&file, powers, &counts);
    }
    if (!prints)
        printf("%" PRIu64 " files, %" PRIu64 " of them malformed, %" PRIu64 " rows, %" PRIu64 " pairs\n",
               counts.files, counts.malformed, counts.rows, counts.pairs);
    return 0;
}
