/* The part of paths.h that is compiled once for each number of lanes, N_LANES. */

typedef double OF(lanes) __attribute__((vector_size(8 * N_LANES), aligned(8), may_alias));
typedef int64_t OF(mask) __attribute__((vector_size(8 * N_LANES), aligned(8), may_alias));
#define LANES OF(lanes)
#define MASK OF(mask)

/* All by depth; the last four also by point. */
typedef struct {
    int64_t *forks; /* those on the way to the present one */
    MASK *ways;     /* which rows go left, and which go right */
    LANES *products, *below, *sums, *adds;
} OF(room);
#define ROOM OF(room)

TARGET INLINE LANES OF(chosen)(const int64_t *table, const MASK *ways, const int has_above) {
    MASK found = table[0] ^ (ways[0] & table[1]);
    if (has_above)
        found ^= ways[1] & table[2];
    return (LANES)found;
}

TARGET INLINE MASK OF(goes_left)(const Fork *fork, const LANES *value) {
    const MASK is_nan = *value != *value;
    MASK left = is_nan & -(int64_t)fork->missing_left;
    if (!fork->bits)
        return left | (*value <= fork->cut);
    for (int row = 0; row < N_LANES; row++)
        if (!is_nan[row]) {
            const int64_t code = (int64_t)(*value)[row];
            left[row] = -(int64_t)(fork->bits[code / 32] >> (code % 32) & 1);
        }
    return left;
}

TARGET INLINE void OF(enter_as)(const int64_t n, const int has_above_parent, const int has_above, const int has_leaf,
                                const int in_pairs, const Fork *fork, const int64_t *tables, const ROOM *room,
                                LANES *out) {
    const MASK *ways = room->ways + 2 * fork->depth;
    LANES *products = room->products + n * fork->depth, *below = room->below + n * fork->depth;
    LANES *sums = room->sums + n * fork->depth, *adds = room->adds + n * fork->depth;
    LANES sum = {};
    for (int64_t p = 0; p < n; p++) {
        LANES own = {}, added = {};
        if (fork->depth) {
            products[p] = products[p - n] * OF(chosen)(tables + THROUGH * n + 3 * p, ways - 2, has_above_parent);
            if (in_pairs)
                adds[p] = OF(chosen)(tables + ADDS * n + 3 * p, ways - 2, has_above_parent);
        }
        if (has_leaf) {
            own = products[p] * OF(chosen)(tables + LEAVES * n + 3 * p, ways, has_above);
            added = products[p] * OF(chosen)(tables + LEAVES_ADD * n + 3 * p, ways, has_above);
            sum += added;
        }
        below[p] = own;
        if (in_pairs)
            sums[p] = added;
    }
    if (!in_pairs && has_leaf)
        out[fork->place] += sum;
}

TARGET INLINE void OF(enter)(const int64_t n, const int has_above_parent, const int in_pairs, const Fork *fork,
                             const int64_t *tables, const ROOM *room, LANES *out) {
    if (fork->above < 0 && !fork->has_leaf)
        OF(enter_as)(n, has_above_parent, 0, 0, in_pairs, fork, tables, room, out);
    else if (fork->above < 0)
        OF(enter_as)(n, has_above_parent, 0, 1, in_pairs, fork, tables, room, out);
    else if (!fork->has_leaf)
        OF(enter_as)(n, has_above_parent, 1, 0, in_pairs, fork, tables, room, out);
    else
        OF(enter_as)(n, has_above_parent, 1, 1, in_pairs, fork, tables, room, out);
}

/* The child of ``parent`` whose tables these are has been left. */
TARGET INLINE void OF(add_child)(const int64_t n, const int has_above, const int in_pairs, const Fork *parent,
                                 const int64_t *tables, const ROOM *room, LANES *out) {
    const MASK *ways = room->ways + 2 * parent->depth;
    LANES *below = room->below + n * parent->depth, *sums = room->sums + n * parent->depth;
    const LANES *adds = room->adds + n * (parent->depth + 1);
    LANES sum = {};
    for (int64_t p = 0; p < n; p++) {
        const LANES own = below[n + p];
        below[p] += own;
        if (in_pairs)
            sums[p] += own * adds[p];
        else
            sum += own * OF(chosen)(tables + ADDS * n + 3 * p, ways, has_above);
    }
    if (!in_pairs)
        out[parent->place] += sum;
}

/* What the feature of this fork adds, by itself and with each feature above. */
TARGET INLINE void OF(add_pairs)(const int64_t n, const Paths *paths, const Fork *fork, const ROOM *room,
                                 LANES *out) {
    const LANES *sums = room->sums + n * fork->depth;
    LANES alone = {};
    for (int64_t p = 0; p < n; p++)
        alone += sums[p];
    out[number_of_pair(fork->place, fork->place)] += alone;
    for (int64_t depth = 0; depth < fork->depth; depth++) {
        const int64_t other = paths->forks[room->forks[depth]].place;
        const LANES *adds = room->adds + n * (depth + 1);
        LANES together = {};
        if (other == fork->place)
            continue;
        for (int64_t p = 0; p < n; p++)
            together += sums[p] * adds[p];
        out[number_of_pair(fork->place, other)] += together;
    }
}

TARGET INLINE int64_t OF(leave)(const int64_t n, const int in_pairs, const Paths *paths, int64_t depth,
                                const ROOM *room, LANES *out) {
    const int64_t *tables = paths->tables + room->forks[depth] * IN_TABLES * n;
    if (in_pairs)
        OF(add_pairs)(n, paths, paths->forks + room->forks[depth], room, out);
    if (depth) {
        const Fork *parent = paths->forks + room->forks[depth - 1];
        if (parent->above < 0)
            OF(add_child)(n, 0, in_pairs, parent, tables, room, out);
        else
            OF(add_child)(n, 1, in_pairs, parent, tables, room, out);
    }
    return depth - 1;
}

TARGET INLINE void OF(walk)(const int64_t n, const int in_pairs, const Paths *paths, const LANES *values,
                            const ROOM *room, LANES *out) {
    int64_t depth = -1;
    for (int64_t p = 0; p < n; p++)
        room->products[p] = paths->weights[p] + (LANES){};
    for (int64_t i = 0; i < paths->n_forks; i++) {
        const Fork *fork = paths->forks + i;
        while (depth >= fork->depth)
            depth = OF(leave)(n, in_pairs, paths, depth, room, out);
        depth = fork->depth;
        room->forks[depth] = i;
        const MASK left = OF(goes_left)(fork, values + fork->column);
        const MASK here = fork->above < 0 ? ~(MASK){} : room->ways[fork->above];
        room->ways[2 * depth] = here & left;
        room->ways[2 * depth + 1] = here & ~left;
        const int64_t *tables = paths->tables + i * IN_TABLES * n;
        if (depth && paths->forks[room->forks[depth - 1]].above >= 0)
            OF(enter)(n, 1, in_pairs, fork, tables, room, out);
        else
            OF(enter)(n, 0, in_pairs, fork, tables, room, out);
    }
    while (depth >= 0)
        depth = OF(leave)(n, in_pairs, paths, depth, room, out);
}

TARGET static void OF(contribute)(const Paths *paths, int64_t n_blocks, int in_pairs, double *memory,
                                  const double *from, double *to) {
    const int64_t n = paths->n_points;
    const LANES *values = (const LANES *)from;
    LANES *out = (LANES *)to, *free = (LANES *)memory;
    ROOM room = {.ways = (MASK *)free};
    free += 2 * paths->n_levels;
    LANES **parts[] = {&room.products, &room.below, &room.sums, &room.adds};
    for (int part = 0; part < 4; part++, free += n * paths->n_levels)
        *parts[part] = free;
    room.forks = (int64_t *)free;
    const int64_t n_out = in_pairs ? number_of_pair(paths->n_places, 0) : paths->n_places;
    for (int64_t block = 0; block < n_blocks; block++, values += paths->n_columns, out += n_out)
        if (in_pairs)
            OF(walk)(n, 1, paths, values, &room, out);
        else
            OF(walk)(n, 0, paths, values, &room, out);
}

#undef ROOM
#undef MASK
#undef LANES
#undef N_LANES
#undef TARGET
#undef OF
