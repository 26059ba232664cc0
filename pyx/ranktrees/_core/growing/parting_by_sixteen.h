/* The loop of parting.h that is shared by AVX-512, AVX2 and NEON: it parts sixteen rows at a time, unless by categories. */

TARGET int64_t OF(part_sixteen)(int is_long, int with_sums, int apart, const uint8_t *column, const way *way,
                                int64_t n, const uint32_t *rows, const int64_t *sums, uint32_t *row_scratch,
                                int64_t *sum_scratch, parted *found) {
    const int32_t last = way->last, missing = way->missing;
    const uint32_t missing_left = way->missing_left ? 0xffff : 0;
    uint32_t lacking = 0;
    int64_t i = 0, n_left = 0;
    for (; i + OF(room) <= n; i += 16) {
        if (apart && i + CODES_AHEAD + 16 <= n)
            fetch_each(column, size_of_code(is_long), rows + i + CODES_AHEAD, 16);
        uint32_t lacks;
        const uint32_t up_to = OF(compare_sixteen)(is_long, column, rows + i, last, missing, &lacks);
        const uint32_t left = up_to | (lacks & missing_left);
        const int64_t back = n - (i - n_left);
        OF(put_rows)(left, rows + i, row_scratch + n_left, row_scratch + back);
        if (with_sums)
            OF(put_sums)(left, sums + i, sum_scratch + n_left, sum_scratch + back);
        n_left += __builtin_popcount(left);
        lacking |= lacks;
    }
    *found = (parted){n_left, lacking != 0};
    return i;
}

#undef TARGET
#undef OF
