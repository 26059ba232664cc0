/* The part of keys.h that is compiled once for float and once for double: for REAL and its KEY. */

#define SIGN ((KEY)1 << (8 * sizeof(KEY) - 1))

/* -0.0 has the key of 0.0. The key of a NaN is above that of infinity or below that of -infinity. */
INLINE KEY OF(key_of_bits)(KEY bits) { return bits & SIGN ? (KEY)0 - bits : bits | SIGN; }

INLINE KEY OF(key_of)(REAL x) {
    KEY bits;
    memcpy(&bits, &x, sizeof bits);
    return OF(key_of_bits)(bits);
}

INLINE REAL OF(number_of)(KEY key) {
    const KEY bits = key & SIGN ? key ^ SIGN : (KEY)0 - key;
    REAL x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* How many marks of a side are passed on the way to a key: none for a key before the side, all for one behind it. */
INLINE KEY OF(marks_passed)(const key_side side, KEY key) {
    const KEY low = (KEY)side.low, high = (KEY)side.high;
    const KEY at_least = key < low ? low : key, held = at_least > high ? high : at_least;
    return (held - low) >> side.shift;
}

/* The mark of a key. A key off the ruler has the mark at the end of its side. The marks passed on both sides are
 * added, which saves a branch; one of the two further steps from the negative to the positive side is for zero. */
INLINE KEY OF(mark_on)(const key_side below, const key_side above, KEY key) {
    return OF(marks_passed)(below, key) + OF(marks_passed)(above, key) + (key < SIGN ? 0 : 2);
}

INLINE int32_t OF(mark_of)(const key_ruler *ruler, KEY key) {
    return (int32_t)OF(mark_on)(ruler->sides[0], ruler->sides[1], key);
}

/* Turn the bits of numbers (no NaN) into their keys, and make the ruler span them. */
EACH_WIDTH_OF_TYPE(void, OF(make_keys), (int64_t n, KEY *keys, key_ruler *ruler), (n, keys, ruler)) {
    KEY least = (KEY)-1, most_negative = 0, least_positive = (KEY)-1, most = 0;
    for (int64_t i = 0; i < n; i++) {
        const KEY key = OF(key_of_bits)(keys[i]);
        const KEY negative = (key >> (8 * sizeof(KEY) - 1)) - 1; /* all bits or none */
        const KEY or_low = key & negative, or_high = key | negative;
        least = key < least ? key : least;
        most = key > most ? key : most;
        most_negative = or_low > most_negative ? or_low : most_negative;
        least_positive = or_high < least_positive ? or_high : least_positive;
        keys[i] = key;
    }
    ruler->sides[0] = (key_side){least < SIGN ? least : 1, least < SIGN ? most_negative : 0, 0};
    ruler->sides[1] = (key_side){most < SIGN ? 1 : least_positive, most < SIGN ? 0 : most, 0};
}

/* Append the numbers that are neither missing nor zero to `kept`, and count the zeros. */
EACH_WIDTH_OF_TYPE(int64_t, OF(append),
                   (int64_t n, const REAL *RESTRICT numbers, REAL *RESTRICT kept, int64_t *zeros),
                   (n, numbers, kept, zeros)) {
    int64_t n_kept = 0;
    uint32_t n_zeros = 0;
    for (int64_t i = 0; i < n; i++)
        n_zeros += numbers[i] == 0;
    for (int64_t i = 0; i < n; i++) {
        kept[n_kept] = numbers[i];
        n_kept += (numbers[i] < 0) | (numbers[i] > 0);
    }
    *zeros += n_zeros;
    return n_kept;
}

EACH_WIDTH_OF_TYPE(void, OF(find_marks),
                   (int64_t n, const KEY *RESTRICT keys, const key_ruler *ruler, uint32_t *RESTRICT marks),
                   (n, keys, ruler, marks)) {
    const key_side below = ruler->sides[0], above = ruler->sides[1];
    for (int64_t i = 0; i < n; i++)
        marks[i] = (uint32_t)OF(mark_on)(below, above, keys[i]);
}

/* Turn the bits of numbers (no NaN) into their keys, and find the marks of these keys. */
EACH_WIDTH_OF_TYPE(void, OF(make_and_mark_keys),
                   (int64_t n, KEY *RESTRICT keys, const key_ruler *ruler, uint32_t *RESTRICT marks),
                   (n, keys, ruler, marks)) {
    const key_side below = ruler->sides[0], above = ruler->sides[1];
    for (int64_t i = 0; i < n; i++) {
        keys[i] = OF(key_of_bits)(keys[i]);
        marks[i] = (uint32_t)OF(mark_on)(below, above, keys[i]);
    }
}

/* Finds the place of a number among the edges of a feature. codes_at[m] is the number of edges below the mark m, so
 * that only the edges at the mark, at most `depth`, remain to be searched. */
typedef struct {
    key_ruler ruler;
    int32_t n_marks, depth;
    KEY edges[MOST_EDGES + MOST_EDGES / 2 + 1];    /* padded with a key that is below no other */
    uint8_t codes_at[MOST_MARKS(CODING_BITS) + 1]; /* the last one is for NaN */
} OF(finder);

static void OF(make_finder)(const REAL *edges, int64_t n, uint8_t missing, int bits, OF(finder) *finder) {
    memset(finder->edges, 0xff, sizeof finder->edges);
    memcpy(finder->edges, edges, (size_t)n * sizeof *edges);
    OF(make_keys)(n, finder->edges, &finder->ruler);
    finder->n_marks = divide_ruler(&finder->ruler, bits);
    finder->depth = 0;
    int32_t code = 0;
    for (int32_t mark = 0; mark < finder->n_marks; mark++) {
        const int32_t before = code;
        while (code < n && OF(mark_of)(&finder->ruler, finder->edges[code]) == mark)
            code++;
        finder->codes_at[mark] = (uint8_t)before;
        finder->depth = code - before > finder->depth ? code - before : finder->depth;
    }
    finder->codes_at[finder->n_marks] = missing;
}

/* Add to each code the number of the next `depth` edges, which are ascending, that are below the key. */
INLINE void OF(pass_edges)(int depth, int64_t n, const KEY *RESTRICT keys, const uint32_t *RESTRICT marks,
                           const OF(finder) *finder, uint8_t *RESTRICT codes) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t code = finder->codes_at[marks[i]];
        for (int step = 0; step < depth; step++)
            code += finder->edges[code] < keys[i];
        codes[i] = (uint8_t)code;
    }
}

/* Encode at most LAID_OUT numbers: the number of edges below each, or the code of NaN. All numbers take each step of
 * the search together, so no step waits for the one before, and none is a branch. */
EACH_WIDTH_OF_TYPE(void, OF(encode),
                   (int64_t n, const REAL *RESTRICT numbers, const OF(finder) *finder,
                    uint8_t *RESTRICT codes),
                   (n, numbers, finder, codes)) {
    const key_side below = finder->ruler.sides[0], above = finder->ruler.sides[1];
    const KEY *RESTRICT edges = finder->edges;
    const KEY unknown = (KEY)finder->n_marks;
    KEY keys[LAID_OUT];
    uint32_t found[LAID_OUT];
    for (int64_t i = 0; i < n; i++) {
        const KEY key = OF(key_of)(numbers[i]);
        keys[i] = key;
        found[i] = (uint32_t)(numbers[i] == numbers[i] ? OF(mark_on)(below, above, key) : unknown);
    }
    switch (finder->depth) {
    case 0:
    case 1: OF(pass_edges)(1, n, keys, found, finder, codes); return;
    case 2: OF(pass_edges)(2, n, keys, found, finder, codes); return;
    }
    for (int64_t i = 0; i < n; i++)
        found[i] = finder->codes_at[found[i]];
    for (int32_t left = finder->depth; left > 0; left -= (left + 1) / 2) {
        const uint32_t half = (uint32_t)(left + 1) / 2;
        for (int64_t i = 0; i < n; i++)
            found[i] += edges[found[i] + half - 1] < keys[i] ? half : 0;
    }
    for (int64_t i = 0; i < n; i++)
        codes[i] = (uint8_t)found[i];
}

#undef SIGN
