import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ranks import together

from ranktrees import HistGBRTRegressor, RandomForestRanker
from ranktrees._core.growing import rounding
from ranktrees.binning.mapper import BinMapper
from ranktrees.growing.rounding import RoundedRows
from ranktrees.processes.sharing import Share
from reference import growing as slow

numbers = st.floats(-1e300, 1e300) | st.floats(-4, 4) | st.sampled_from([0.0, 5e-324, -2.5, 1e-310])


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(numbers, numbers.map(abs)), min_size=1, max_size=30), same=st.booleans())
@example([(0.0, 0.0)], False)
@example([(1.0, 1.0)] * 2, False)
@example([(0.3, 0.7)] * 9, True)
@example([(1e-320, 5e-324)] * 3, False)
@example([(1 - 2.0**-30, 1 - 2.0**-31)] * 8, True)
@example([(1.0, 1e300)] + [(1.0, 5e-324)] * 29, False)
@example([(1.0, 1.0)] * 7 + [(1.0, 1 - 12 * 2.0**-29)], False)  # one place more were too many, if only just
@example([(-2.5, 2.5), (1.5, 0.5), (2.0**51, 2.0**31), (0.5, 1.5), (-0.5, 1e-300)], False)  # halves
def test_rounds_as_fractions_do(rows, same):
    gradients, hessians = np.array(rows).T.copy()
    if same:
        hessians[:] = hessians[0]
    expected = slow.Rounded(gradients, hessians)
    order = np.flatnonzero(np.arange(len(rows)) % 3 != 1).astype(np.uint32)
    try:
        for some in (None, order):
            rounded = RoundedRows(len(rows)).round(gradients, hessians, 1, some)
            sums = expected.sums[slice(None) if some is None else some]
            assert rounded.sums[: len(sums)].tolist() == sums.tolist()
            assert (rounded.gradient_unit, rounded.hessian_unit) == (
                expected.gradient_unit,
                expected.hessian_unit,
            )
            assert (rounded.bits, rounded.same) == (expected.bits, expected.same)
            assert rounded.total == (
                int(sums.sum()) >> rounded.bits,
                int(sums.sum()) & (1 << rounded.bits) - 1,
            )
    except ValueError:  # too large to add up
        largest = float(len(rows) * max(map(abs, gradients.tolist())))
        assert not math.isfinite(largest * (largest / expected.hessian_unit))


def shaped(shape, n_rows):
    rng = np.random.default_rng(n_rows)
    return {
        "equal": np.full(n_rows, 0.7),
        "one large": np.r_[1.0, np.full(n_rows - 1, 1e-12)],
        "tiny beside large": np.where(np.arange(n_rows) % 2, 1e-30, 1.0),
        "half steps": np.where(np.arange(n_rows) % 5, 1 - 2.0**-31, 1 - 2.0**-30),
        "wide": 10 ** rng.uniform(-7, 7, n_rows),
        "some are zero": np.where(np.arange(n_rows) % 3, 0.0, 0.25),
    }[shape]


@pytest.mark.parametrize(
    "hessians", ["equal", "one large", "tiny beside large", "half steps", "wide", "some are zero"]
)
@pytest.mark.parametrize("gradients", ["equal", "one large", "half steps", "wide"])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 100, 1000, 70_000])
def test_no_field_overflows_for_any_rows(gradients, hessians, n_rows):
    """The sizes of all gradients, and all hessians, fit together; so do those of some rows."""
    gradients, hessians = shaped(gradients, n_rows), shaped(hessians, n_rows)
    gradients = gradients * np.where(np.arange(n_rows) % 2, -1, 1)
    rows = RoundedRows(n_rows).round(gradients, hessians, 2)
    whole, steps = rows.sums >> rows.bits, rows.sums & (1 << rows.bits) - 1
    assert np.abs(whole).sum() < 2 ** min(63 - rows.bits, 53)
    assert steps.sum() < 2**rows.bits
    assert ((steps > 0) == (hessians > 0)).all()
    assert np.abs(whole * rows.gradient_unit - gradients).max() <= 0.5 * rows.gradient_unit
    assert np.abs(steps * rows.hessian_unit - hessians).max() <= rows.hessian_unit
    for some in (gradients > 0, gradients < 0, np.arange(n_rows) % 7 == 0):
        total = rows.sums[some].sum()
        assert (total >> rows.bits, total & (1 << rows.bits) - 1) == (whole[some].sum(), steps[some].sum())


@pytest.mark.parametrize("shape", ["equal", "one large", "half steps", "wide"])
@pytest.mark.parametrize("n_rows", [1, 100, 1000, 70_000])
def test_all_bits_are_used(shape, n_rows):
    """No more than two bits of a sum are spared, unless the largest gradient has 50."""
    gradients = shaped(shape, n_rows)
    for hessians in (np.ones(n_rows), np.r_[0.5, np.ones(n_rows - 1)]):
        rows = RoundedRows(n_rows).round(gradients, hessians, 1)
        whole, steps = rows.sums >> rows.bits, rows.sums & (1 << rows.bits) - 1
        room = min(63 - rows.bits, 53)
        assert whole.sum() >= 2 ** (room - 2) or 2**49 <= whole.max() <= 2**50
        assert rows.same or steps.sum() >= 2**30


def test_where_all_hessians_are_the_same_they_count_rows():
    rows = RoundedRows(5).round(np.arange(5.0), np.full(5, 0.3), 1)
    assert (rows.same, rows.bits, rows.hessian_unit) == (True, 3, 0.3)
    assert (rows.sums & 0b111).tolist() == [1] * 5
    for hessians in ([0.0] * 5, [0.3, 0.3, 0.3, 0.3, 0.3 + 1e-16], [0.0, 0.3, 0.3, 0.3, 0.3]):
        rows.round(np.arange(5.0), np.array(hessians), 1)
        assert (rows.same, rows.bits) == (False, 32)


def test_rows_of_the_tree_are_the_first_sums():
    gradients, order = np.arange(8.0), np.array([1, 4, 5], np.uint32)
    rows = RoundedRows(8)
    whole = rows.round(gradients, np.ones(8), 1).sums.copy()
    rows.sums[:] = -7
    assert rows.round(gradients, np.ones(8), 1, order).sums.tolist() == [*whole[order], *[-7] * 5]
    assert rows.total == (whole[order].sum() >> 4, 3)


@pytest.mark.parametrize("same", [False, True])
def test_rounding_does_not_depend_on_threads(every_thread, same):
    rng = np.random.default_rng(0)
    n_rows = 5000
    gradients = rng.normal(size=n_rows) * 10 ** rng.uniform(-7, 7, n_rows)
    hessians = np.full(n_rows, 0.4) if same else 10 ** rng.uniform(-7, 7, n_rows)
    order = np.flatnonzero(rng.random(n_rows) < 0.6).astype(np.uint32)
    for some in (None, order):
        seen = set()
        for n_threads in (1, 2, 3, 4):
            rows = RoundedRows(n_rows)
            rows.sums[:] = 0
            rows.round(gradients, hessians, n_threads, some)
            seen.add((rows.gradient_unit, rows.hessian_unit, rows.same, rows.total, rows.sums.tobytes()))
        assert len(seen) == 1


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5])
def test_more_threads_than_rows(every_thread, n_rows):
    seen = {
        RoundedRows(n_rows).round(np.ones(n_rows), np.ones(n_rows), t).sums.tobytes() for t in (1, 2, 4, 8)
    }
    assert len(seen) == 1


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1700, 3999])
def test_diverged_scores_are_refused(every_thread, bad, place):
    for which in (0, 1):
        arrays = [np.ones(4000), np.ones(4000)]
        arrays[which][place] = bad
        with pytest.raises(ValueError, match="the scores have diverged"):
            RoundedRows(4000).round(*arrays, 2)


def steps_of(rows):
    return rows.sums >> rows.bits, rows.sums & ((1 << rows.bits) - 1)


@pytest.mark.parametrize("kind", ["all the same", "even", "uneven"])
@pytest.mark.parametrize("sampling", [0.3, 1, 1.5, 4, 100])
def test_samples_are_right_on_average(sampling, kind):
    rng = np.random.default_rng(0)
    hessians = {
        "all the same": np.full(500, 3.0),
        "even": rng.random(500),
        "uneven": rng.exponential(size=500) ** 4,
    }
    gradients, hessians = rng.normal(size=500), hessians[kind]
    sure = abs(gradients).max() / sampling, max(hessians.max(), 8 * hessians.mean()) / sampling
    rows, totals, n_drawn = RoundedRows(500), np.zeros((2, 500)), np.zeros(500)
    for tree in range(400):
        rows.round(gradients, hessians, 1, sampling=sampling, key=(3, tree))
        steps = steps_of(rows)
        assert abs(steps[0]).max() <= math.floor(8 * max(1, sampling) + 0.5)
        totals += steps
        n_drawn += rows.sums != 0
    odds = np.minimum(1, np.maximum(abs(gradients) / sure[0], hessians / sure[1]))
    assert abs(n_drawn / 400 - odds).max() < 4.5 * 0.5 / 400**0.5
    units = rows.gradient_unit, rows.hessian_unit
    for total, unit, own, values in zip(totals, units, sure, (gradients, hessians), strict=True):
        assert unit == pytest.approx(own / 8)
        error = np.sqrt((values**2 * (1 / odds - 1) + unit**2 / 4) / 400)
        far = abs(total / 400 * unit - values) / error
        assert far.max() < 6
        assert (far**2).mean() < 1.2  # the largest error a step's rounding can make is in it
        assert abs(total.sum() / 400 * unit - values.sum()) < 4 * np.sqrt((error**2).sum())


def test_a_row_that_is_sure_to_be_drawn_is_itself():
    gradients, hessians = np.array([-4.0, -3.0, 0, 0, 1.0, 4.0] + 18 * [0]), np.array([12.0, 3.0] + 22 * [0])
    rows = RoundedRows(24)
    for tree in range(50):
        gradient_steps, hessian_steps = steps_of(
            rows.round(gradients, hessians, 1, sampling=4, key=(0, tree))
        )
        assert gradient_steps.tolist() == (8 * gradients).tolist()
        assert hessian_steps.tolist() == (8 * hessians / 3).tolist()


@pytest.mark.parametrize("sampling", [0.01, 1.5, 1e9])
def test_sums_fit_whatever_is_drawn(sampling):
    n_rows = 3000
    for size in (1e-100, 1.0, 1e100):
        for gradients in (np.full(n_rows, size), np.zeros(n_rows), np.eye(1, n_rows)[0] * size):
            rows = RoundedRows(n_rows).round(gradients, gradients / size, 1, sampling=sampling)
            assert np.isfinite([rows.gradient_unit, rows.hessian_unit]).all()
            for steps, total, room in zip(steps_of(rows), rows.total, (31, 32), strict=True):
                assert int(steps.sum()) == total
                assert 0 <= total < 1 << room


def test_a_draw_is_the_row_s_own(every_thread):
    rng = np.random.default_rng(1)
    gradients, hessians = rng.normal(size=3000), rng.random(3000)
    drawn = np.arange(0, 3000, 7, dtype=np.uint32)
    whole = RoundedRows(3000).round(gradients, hessians, 1, sampling=3, key=(1, 2)).sums.copy()
    for n_threads in (1, 3):
        rows = RoundedRows(3000).round(gradients, hessians, n_threads, drawn, sampling=3, key=(1, 2))
        assert rows.sums[: len(drawn)].tolist() == whole[drawn].tolist()
    other = RoundedRows(3000).round(gradients, hessians, 1, sampling=3, key=(1, 3))
    assert (other.sums != whole).mean() > 0.3


@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 512, 5000])
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("sampling", [None, 2])
def test_rows_that_round_to_nothing_are_set_apart(every_thread, n_rows, same, sampling):
    rng = np.random.default_rng(n_rows)
    gradients = rng.normal(size=n_rows) ** 5 * (rng.random(n_rows) < 0.7)
    hessians = np.ones(n_rows) if same else abs(gradients)
    whole = RoundedRows(n_rows).round(gradients, hessians, 1, None, sampling, (1, 2))
    for drawn in (None, np.flatnonzero(rng.random(n_rows) < 0.6).astype(np.uint32)):
        drawn_or_all = np.arange(n_rows) if drawn is None else drawn
        sums = whole.sums[drawn_or_all]
        loud = sums != 0
        if loud.sum() > len(loud) - len(loud) // 8:
            loud[:] = True
        for n_threads in (1, 2, 3):
            rows = RoundedRows(n_rows)
            rows.sums[:] = -7
            rows.round(gradients, hessians, n_threads, drawn, sampling, (1, 2), apart=True)
            assert rows.n_loud == loud.sum()
            assert rows.order[: len(loud)].tolist() == [*drawn_or_all[loud], *drawn_or_all[~loud]]
            assert rows.sums.tolist() == [*sums[loud], *[-7] * (n_rows - rows.n_loud)]
            assert rows.total == (sums.sum() >> rows.bits, sums.sum() & ((1 << rows.bits) - 1))
    if n_rows == 5000 and not (same and sampling is None):
        assert rows.n_loud < 0.8 * len(drawn)


# ---- kernels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 3, 5000])
@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_largest(n, n_threads):
    def seen(gradients, hessians):
        return rounding.look_over(gradients, 1.0, hessians, 1.0, n_threads)[:3]

    values, same = np.random.default_rng(n).normal(size=n), np.full(n, 0.25)
    assert seen(values, values) == (*2 * (np.abs(values).max(initial=0),), n < 2)
    assert seen(-same, same) == (*2 * (0.25 if n else 0.0,), True)
    assert seen(values, np.ones(1)) == (np.abs(values).max(initial=0), 1.0, True)
    for place in {0, n // 2, n - 1} if n else ():
        for extreme in (1e300, np.inf):
            odd = values.copy()
            odd[place] = -extreme
            assert seen(odd, same) == (extreme, 0.25, True)
            assert seen(same, odd) == (0.25, extreme, n == 1)
        odd[place] = np.nan
        assert math.isnan(seen(odd, same)[0])
        assert math.isnan(seen(same, odd)[1])
        odd = np.full(n, 0.5)
        odd[place] = 0.25
        assert seen(values, odd)[2] == (n == 1)


@pytest.mark.parametrize("n", [0, 1, 3, 5000])
def test_total_rounds_each_size_half_to_even(n):
    gradients = np.round(np.random.default_rng(n).uniform(-9, 9, n) * 4) / 4
    hessians = np.abs(gradients[::-1])
    for scale in (1.0, 2.0, 2.0**28):
        steps = tuple(int(np.rint(np.abs(values) * scale).sum()) for values in (gradients, hessians / 2))
        for n_threads in (1, 2, 3):
            assert rounding.look_over(gradients, scale, hessians, scale / 2, n_threads)[3:] == steps
            one = rounding.look_over(gradients, scale, np.ones(1), scale, n_threads)
            assert one[3:] == (steps[0], scale)


def test_earlier_rounds_do_not_show():
    rng = np.random.default_rng(0)
    again = RoundedRows(5000)
    for factor in (1.0, 1.01, 1e-9, 1e200, 0.0, 3.0, 3.0):
        gradients, hessians = rng.normal(size=5000) * factor, rng.uniform(0, 1, 5000) * factor
        for sampling in (None, 4):
            again.round(gradients, hessians, 2, None, sampling, (1, 2))
            anew = RoundedRows(5000).round(gradients, hessians, 1, None, sampling, (1, 2))
            assert again.sums.tobytes() == anew.sums.tobytes()
            assert (again.total, again.gradient_unit, again.hessian_unit) == (
                anew.total,
                anew.gradient_unit,
                anew.hessian_unit,
            )


def test_the_hessian_of_all_rows_may_grow_by_any_factor_on_ranks():
    def units(rank):
        rows = RoundedRows(100, Share(rank, n_rows=200, row_numbers=np.arange(100)))
        return [
            rows.round(np.ones(100), np.array([hessian]), 1, None, 4, (1, 2)).hessian_unit
            for hessian in (1.0, 1e-9, 1e20)
        ]

    anew = [
        RoundedRows(200).round(np.ones(200), np.array([hessian]), 1, None, 4, (1, 2)).hessian_unit
        for hessian in (1.0, 1e-9, 1e20)
    ]
    assert together(2, units) == [anew, anew]


@pytest.mark.parametrize("sampling", [None, 4])
def test_a_single_hessian_of_nothing_is_that_of_all_rows(sampling):
    gradients = np.random.default_rng(0).normal(size=5000)
    one, each = (
        RoundedRows(5000).round(gradients, np.zeros(n), 1, None, sampling, (1, 2)) for n in (1, 5000)
    )
    assert one.sums.tobytes() == each.sums.tobytes()
    assert one.total == each.total


@pytest.mark.parametrize("room", [32, 45])
@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-300, 0.3, 1e300])
@pytest.mark.parametrize("sampling", [None, 2])
def test_as_many_steps_as_there_is_room_for(room, size, sampling):
    values = size * np.random.default_rng(0).uniform(0, 1, 1000)
    largest = values.max()
    *_, total, _ = rounding.look_over(values, rounding.first_scale(largest), np.ones(1), 0.0, 1)
    scale, sure = rounding.scale_of(largest, total, 1000, room, sampling)
    steps = np.maximum(values, 0 if sampling is None else sure) * scale
    assert 0 < scale < np.inf
    assert np.rint(steps).sum() + 1000 < 2**room
    if sampling is None:
        assert math.isnan(sure)
        assert size < 1e-290 or np.rint(2 * steps).sum() + 2000 >= 2**room or largest * scale >= 2**49
    else:
        assert sure == (max(largest / 2, np.finfo(float).tiny) if size else 1.0)
        assert sure * scale <= 8.0


@pytest.mark.parametrize("estimator", [HistGBRTRegressor(), RandomForestRanker()])
def test_more_rows_than_can_be_rounded_are_refused_before_they_are_cut(estimator, monkeypatch):
    monkeypatch.setattr("ranktrees.growing.rounding.MOST_ROWS", 2)
    monkeypatch.setattr(BinMapper, "fit", None)
    with pytest.raises(ValueError, match="X has 3 rows to learn from; expected at most 2"):
        estimator.fit(np.eye(3), np.arange(3), qid=np.zeros(3))
