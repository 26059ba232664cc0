/* The part of units.h that is written once for each kind of REGISTER. */

enum { OF(rows) = sizeof(REGISTER), OF(most) = BLOCK_ROWS / OF(rows) };

/* What a unit found, for so many registers of rows. */
TARGET INLINE void OF(do_unit)(int n, int n_questions, int n_below, const unit *u, const uint8_t *planes,
                               uint8_t *bench) {
    const uint64_t slots = u->slots;
    const uint8_t *high = ROWS_OF(bench, slots >> 16 & 0xffff), *low = ROWS_OF(bench, slots >> 32 & 0xffff);
    uint8_t *to = ROWS_OF(bench, slots & 0xffff);
    REGISTER found[OF(most)];
    for (int r = 0; r < n; r++)
        found[r] = OF(all)(0);
    for (int q = 0; q < n_questions; q++) {
        const uint8_t *plane = ROWS_OF(planes, plane_of_question(u, q));
        const REGISTER code = OF(all)(u->codes[q]), bit = OF(all)((uint8_t)(1 << q));
        for (int r = 0; r < n; r++)
            found[r] = OF(add_if)(found[r], OF(load)(plane + r * OF(rows)), code, bit);
    }
    for (int r = 0; r < n; r++)
        found[r] = OF(look_up)(n_questions, u->table, found[r]);
    if (n_below > 0)
        for (int r = 0; r < n; r++)
            found[r] = OF(lower)(found[r], OF(load)(high + r * OF(rows)));
    if (n_below > 1)
        for (int r = 0; r < n; r++)
            found[r] = OF(higher)(found[r], OF(load)(low + r * OF(rows)));
    for (int r = 0; r < n; r++)
        OF(store)(to + r * OF(rows), found[r]);
}

#define OF_SHAPE(n_questions, n_below)                                                                     \
    case SHAPE(n_questions, n_below):                                                                      \
        do                                                                                                 \
            OF(do_unit)(n_rows / OF(rows), n_questions, n_below, u++, planes, bench);                      \
        while (u < end && u->shape == SHAPE(n_questions, n_below));                                        \
        break;
#define OF_QUESTIONS(n_questions) OF_SHAPE(n_questions, 0) OF_SHAPE(n_questions, 1) OF_SHAPE(n_questions, 2)

TARGET INLINE void OF(do_all)(int n_rows, const unit *u, const unit *end, const uint8_t *planes,
                              uint8_t *bench) {
    while (u < end)
        switch (u->shape) {
            OF_QUESTIONS(1)
            OF_QUESTIONS(2)
            OF_QUESTIONS(3)
            OF_QUESTIONS(4)
        }
}

TARGET static void OF(do_units)(int n_rows, const unit *units, int64_t n, const uint8_t *planes,
                                uint8_t *bench) {
    if (n_rows <= 32 && OF(rows) <= 32)
        OF(do_all)(32, units, units + n, planes, bench);
    else if (n_rows <= 64)
        OF(do_all)(64, units, units + n, planes, bench);
    else
        OF(do_all)(BLOCK_ROWS, units, units + n, planes, bench);
}

#undef OF_QUESTIONS
#undef OF_SHAPE
#undef REGISTER
#undef TARGET
#undef OF
