/* The part of units.h that is compiled once for each kind of REGISTER. */

enum { OF(rows) = sizeof(REGISTER) };

TARGET INLINE void OF(do_unit)(int n_rows, int n_questions, int n_below, const unit *u, const uint8_t *planes,
                               uint8_t *bench) {
    prefetch_line(u + UNITS_AHEAD);
    const uint64_t slots = u->slots;
    const uint8_t *high = ROWS_OF(bench, slots >> 16 & 0xffff), *low = ROWS_OF(bench, slots >> 32 & 0xffff);
    uint8_t *to = ROWS_OF(bench, slots & 0xffff);
    const TABLE table = OF(table)(u->table);
    const uint8_t *plane[MOST_QUESTIONS];
    REGISTER code[MOST_QUESTIONS];
    for (int q = 0; q < n_questions; q++) {
        plane[q] = ROWS_OF(planes, plane_of_question(u, q));
        code[q] = OF(all)(u->codes[q]);
    }
    EACH_ON_ITS_OWN
    for (int i = 0; i < n_rows; i += OF(rows)) {
        REGISTER found = OF(all)(0);
        for (int q = n_questions - 1; q >= 0; q--)
            found = OF(add_if)(found, OF(load)(plane[q] + i), code[q], OF(all)((uint8_t)(1 << q)));
        found = OF(look_up)(n_questions, table, found);
        if (n_below > 0)
            found = OF(lower)(found, OF(load)(high + i));
        if (n_below > 1)
            found = OF(higher)(found, OF(load)(low + i));
        OF(store)(to + i, found);
    }
}

#define OF_SHAPE(n_questions, n_below)                                                                     \
    case SHAPE(n_questions, n_below):                                                                      \
        do                                                                                                 \
            OF(do_unit)(n_rows, n_questions, n_below, u++, planes, bench);                                 \
        while (u < end && u->shape == SHAPE(n_questions, n_below));                                        \
        break;
#define OF_QUESTIONS(n_questions) OF_SHAPE(n_questions, 0) OF_SHAPE(n_questions, 1) OF_SHAPE(n_questions, 2)

TARGET INLINE void OF(do_all)(int n_rows, const unit *u, const unit *end, const uint8_t *planes, uint8_t *bench) {
    while (u < end)
        switch (u->shape) {
            OF_QUESTIONS(1)
            OF_QUESTIONS(2)
            OF_QUESTIONS(3)
            OF_QUESTIONS(4)
        }
}

TARGET static void OF(do_units)(int n_rows, const unit *units, int64_t n, const uint8_t *planes, uint8_t *bench) {
    if (n_rows <= 32 && OF(rows) <= 32)
        OF(do_all)(32, units, units + n, planes, bench);
    else if (n_rows <= 64)
        OF(do_all)(64, units, units + n, planes, bench);
    else
        OF(do_all)(BLOCK_ROWS, units, units + n, planes, bench);
}

#undef OF_QUESTIONS
#undef OF_SHAPE
#undef TABLE
#undef REGISTER
#undef TARGET
#undef OF
