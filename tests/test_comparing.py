"""Comparisons of rankers: against SciPy, against slow twins, and by their laws."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ranktrees import compare, compare_to_baseline
from ranktrees._core.rows import sampling
from ranktrees.evaluation.comparing import Comparison, compare_values, holm, mean_interval, per_query_table
from ranktrees.measures import NDCG, RMSE, Measure
from reference import comparing as slow

TESTS = ["t", "bootstrap", "randomization"]
values_of_queries = st.lists(
    st.tuples(st.floats(0, 1, width=16), st.floats(0, 1, width=16)), min_size=2, max_size=9
)


def two_rankers(n=200, shift=0.0, seed=0):
    a, b = np.random.default_rng(seed).random((2, n))
    return a + shift, b


def rows(n_queries=40, seed=0):
    """Labels, query ids, and the scores of a good and a bad ranker."""
    random = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), random.integers(1, 9, n_queries))
    y = random.integers(0, 3, len(qid))
    return y, qid, y + random.normal(size=len(qid)), random.normal(size=len(qid))


# ---- values of queries -----------------------------------------------------------------------------


def test_per_query_table():
    y, qid = [3, 0, 1, 0, 2, 0], ["x", "y", "x", "y", "x", "z"]
    scores = {"good": y, "bad": [-label for label in y]}
    table = per_query_table(y, scores, qid=qid, measure=["rr", NDCG @ 2])
    assert list(table.index) == ["x", "y", "z"]
    assert table.index.name == "qid"
    assert list(table.columns) == list(itertools.product(["good", "bad"], ["RR", "NDCG @ 2"]))
    assert table["good"]["RR"].tolist() == [1, 0, 0]
    assert table["good"]["NDCG @ 2"]["x"] == 1.0
    assert table["bad"]["NDCG @ 2"].isna().tolist() == [False, True, True]
    indexed = pd.Series(y, index=pd.Index(qid, name="qid"))
    pd.testing.assert_frame_equal(per_query_table(indexed, scores, measure=["rr", NDCG @ 2]), table)
    assert len(per_query_table(y, scores)) == 1


def test_measures_of_a_table_are_told_by_their_names():
    y, scores = [1, 0], {"good": [1, 0]}
    first, last = (lambda labels, scores: labels[0]), (lambda labels, scores: labels[-1])
    with pytest.raises(ValueError, match=r"measure has 2 that print as <lambda>, .* a different name"):
        per_query_table(y, scores, measure=[first, "rr", last])
    assert per_query_table(y, scores, measure=[NDCG @ 2, "ndcg@2", first]).shape == (1, 2)


# ---- one ranker ------------------------------------------------------------------------------------


def test_mean_interval_is_students():
    values = np.random.default_rng(0).random(30)
    interval = mean_interval([*values, np.nan], 0.9)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert interval.mean == pytest.approx(values.mean())
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert interval.n_queries == 30
    assert str(interval) == f"{interval.mean:.4f} ± {interval.high - interval.mean:.4f}"
    with pytest.raises(ValueError, match="at least two queries with a value, got 1"):
        mean_interval([0.5, np.nan])
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        mean_interval(values, 95)


@pytest.mark.parametrize(
    "values",
    [
        np.ma.array([0.5, 99.0, 0.75], mask=[False, True, False]),
        np.ma.array([1, 99, 2], mask=[False, True, False]),
        pd.Series([0.5, None, 0.75], dtype="Float64"),
        pd.Series([0.5, pd.NA, 0.75], dtype=object),
        [0.5, None, 0.75],
    ],
)
def test_values_that_are_missing_are_left_out(values):
    first, last = values[0], values[2]
    assert mean_interval(values) == mean_interval([first, last])
    found = compare_values(values, [0.25, 0.25, 0.5])
    assert (found.n_queries, found.n_skipped) == (2, 1)
    assert found.difference == (first + last - 0.75) / 2


def test_whole_numbers_of_pandas_are_values():
    """In pandas 2 they refuse a value for those that are missing, of which there are none."""
    assert mean_interval(pd.Series([1, 2, 4])) == mean_interval([1, 2, 4])


@pytest.mark.parametrize(
    "values", [["0.5", "0.75"], np.array([1 + 2j, 2]), np.array(["2020-01-01", "2020-01-03"], "M8[D]")]
)
def test_values_that_are_no_numbers_are_refused(values):
    with pytest.raises(ValueError, match="values must be numbers, one per query: "):
        mean_interval(values)


def test_values_of_any_size():
    values = np.array([1.0, 2.0, -3.0, 4.0])
    plain = compare_values(values, np.zeros(4))
    for power in (-1000, -560, 560, 1020):
        scaled = compare_values(np.ldexp(values, power), np.zeros(4))
        assert scaled.p_value == plain.p_value
        assert scaled.interval == tuple(np.ldexp(plain.interval, power))


def test_infinite_values_are_refused():
    rows = [1.0, 0.0, 1.0, 0.0], [np.inf, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="RMSE of scores_a must hold one finite value per query"):
        compare(*rows, qid=[0, 0, 1, 1], measure="rmse")


# ---- the three tests -------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 0.1, -0.3])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_t_test_is_scipys(shift, confidence):
    a, b = two_rankers(30, shift)
    found = compare_values([*a, np.nan], [*b, 0], confidence=confidence)
    expected = stats.ttest_rel(a, b)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval(confidence)))
    assert found.difference == pytest.approx((a - b).mean())


@settings(deadline=None, max_examples=40)
@given(values_of_queries)
def test_few_queries_are_flipped_in_every_way(values):
    a, b = np.array(values).T
    found = compare_values(a, b, test="randomization")
    assert found.p_value == slow.every_flip(a - b)  # halves of halves: the differences are exact


@settings(deadline=None, max_examples=60)
@given(
    st.integers(2, 12), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=9)
)
def test_sums_that_tie_as_fractions_tie(parts, values):
    """Thirds are rounded, each on its own; sums of them that are as far from 0 count as such."""
    a, b = (np.array(each) / parts for each in zip(*values, strict=True))
    found = compare_values(a, b, test="randomization")
    assert found.p_value == slow.every_flip(one - other for one, other in values)


def test_draws_that_tie_as_fractions_tie():
    """Of the same query drawn twice nothing is left: it is as far away as the mean itself."""
    thirds = compare_values([2 / 3, 0, 1 / 3], [0, 1 / 3, 1 / 3], test="bootstrap", n_resamples=999)
    whole = compare_values([2, 0, 1], [0, 1, 1], test="bootstrap", n_resamples=999)
    assert thirds.p_value == whole.p_value


def test_queries_alike_for_both_need_no_flips():
    a, b = two_rankers(10)
    with_ties = [*a, *np.full(50, 0.5)], [*b, *np.full(50, 0.5)]
    found = compare_values(*with_ties, test="randomization")
    assert found.p_value == compare_values(a, b, test="randomization").p_value
    assert found.p_value * 2**10 % 2 == 0  # exact: a choice of signs and its opposite count alike


def test_differences_of_rounding_are_ties():
    a, b = np.array([0.1 + 0.2, 0.5, 0.7]), np.array([0.3, 0.5, 0.6])
    found = compare_values(a, b, test="randomization")
    assert (found.wins, found.ties, found.losses) == (1, 2, 0)
    assert found.p_value == 1.0
    thirds = compare_values([0.9, 0.7, 0.6], [0.7, 0.5, 0.4], test="randomization")  # 0.2, up to rounding
    assert thirds.p_value == 0.25


@pytest.mark.parametrize("test", TESTS)
def test_ties_alone_tell_nothing(test):
    found = compare_values([0.1 + 0.2] * 5, [0.3] * 5, test=test)
    assert (found.difference, found.p_value, found.statistic, found.ties) == (0, 1, 0, 5)
    assert found.interval == (0, 0)


def test_randomization_is_nearly_scipys():
    a, b = two_rankers(60, 0.1)
    found = compare_values(a, b, test="randomization", n_resamples=20_000)
    expected = stats.permutation_test(
        (a - b,), np.mean, permutation_type="samples", n_resamples=20_000, vectorized=True, random_state=0
    )
    assert found.p_value == pytest.approx(expected.pvalue, rel=0.2)
    assert found.interval == compare_values(a, b).interval


def test_bootstrap_is_nearly_scipys():
    a, b = two_rankers(100, 0.1)
    found = compare_values(a, b, test="bootstrap", n_resamples=20_000)
    expected = stats.bootstrap((a - b,), np.mean, n_resamples=20_000, method="percentile", random_state=0)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval), abs=0.005)
    assert found.p_value == pytest.approx(compare_values(a, b).p_value, rel=0.3)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**31), values=st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=140))
def test_resamples_are_those_of_the_slow_twins(seed, values):
    sums, values_ = np.empty(7, np.int64), np.array(values)
    for n_threads in (1, 3):
        sampling.drawn_sums(seed, 5, values_, sums, n_threads)
        assert sums.tolist() == slow.drawn_sums(seed, 5, values, 7)
        sampling.flipped_sums(seed, 5, values_, False, sums, n_threads)
        assert sums.tolist() == slow.flipped_sums(seed, 5, values, 7)


@pytest.mark.parametrize("test", TESTS)
def test_p_values_are_uniform_where_there_is_no_difference(test):
    rankers = [two_rankers(40, seed=seed) for seed in range(400)]
    p_values = [compare_values(a, b, test=test, n_resamples=499).p_value for a, b in rankers]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p_values) <= level) == pytest.approx(level, abs=0.07)


# ---- laws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", TESTS)
@settings(deadline=None, max_examples=20)
@given(values=values_of_queries, order=st.randoms(use_true_random=False))
def test_the_order_of_queries_does_not_matter(test, values, order):
    found = compare_values(*np.array(values).T, test=test, n_resamples=50)
    order.shuffle(values)
    assert compare_values(*np.array(values).T, test=test, n_resamples=50) == found


@pytest.mark.parametrize("shift", [0.0, 0.1])
@pytest.mark.parametrize("test", TESTS)
def test_the_other_way_round(test, shift):
    a, b = two_rankers(50, shift)
    one, two = compare_values(a, b, test=test), compare_values(b, a, test=test)
    assert (one.wins, one.ties, one.losses) == (two.losses, two.ties, two.wins)
    assert (one.p_value, one.difference) == (two.p_value, -two.difference)
    assert one.interval == (-two.interval[1], -two.interval[0])


@pytest.mark.parametrize("test", TESTS)
def test_a_ranker_is_as_good_as_itself(test):
    a, _ = two_rankers(30)
    found = compare_values(a, a, test=test)
    assert (found.difference, found.p_value, found.statistic, found.ties) == (0, 1, 0, 30)
    assert found.interval == (0, 0)
    zeros = compare_values([0, 0, 0], [0, 0, 0], test=test)
    assert (zeros.p_value, zeros.ties) == (1, 3)


def test_always_better_by_as_much():
    found = compare_values([1, 2, 3], [0, 1, 2])
    assert (found.p_value, found.statistic, found.interval) == (0, math.inf, (1, 1))
    found = compare_values([0.1] * 3, [0] * 3)  # a third of their sum is not 0.1
    assert (found.p_value, found.statistic, found.interval) == (0, math.inf, (0.1, 0.1))
    found = compare_values([0.1, 0.1], [0, 0], test="bootstrap")
    assert found.interval == (found.difference, found.difference) == (0.1, 0.1)


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_resamples_depend_on_the_seed_alone(test):
    a, b = two_rankers(50, 0.05)
    first, again, other = (compare_values(a, b, test=test, random_state=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.p_value != other.p_value
    assert first.p_value == pytest.approx(other.p_value, abs=0.05)


def test_smaller_errors_win():
    found = compare_values([1, 2, 3], [2, 3, 3], greater_is_better=False)
    assert (found.difference, found.wins, found.ties, found.losses) == (-2 / 3, 2, 1, 0)
    y, qid, good, bad = rows()
    by_rows = compare(y, good, bad, qid=qid, measure=RMSE)
    assert by_rows.difference < 0
    assert by_rows.wins > by_rows.losses


# ---- of scores -------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", TESTS)
def test_scores_are_compared_by_their_values(test):
    y, qid, good, bad = rows()
    found = compare(y, good, bad, qid=qid, measure="ndcg@5", test=test)
    table = per_query_table(y, {"a": good, "b": bad}, qid=qid, measure="ndcg@5")
    a, b = table["a"]["NDCG @ 5"], table["b"]["NDCG @ 5"]
    by_values = compare_values(a, b, test=test)
    assert found.p_value == by_values.p_value < 0.05
    assert found.interval == by_values.interval
    assert found.measure == NDCG @ 5
    assert by_values.measure is None
    np.testing.assert_array_equal(found.values_a, a)
    np.testing.assert_array_equal(found.values_b, b)
    assert found.mean_a == pytest.approx(np.nanmean(a))
    assert found.difference == pytest.approx(found.mean_a - found.mean_b)
    assert found.n_queries + found.n_skipped == 40
    assert found.wins + found.ties + found.losses == found.n_queries
    order = np.random.default_rng(3).permutation(len(y))
    rows_in_order = [values[order] for values in (y, good, bad)]
    assert compare(*rows_in_order, qid=qid[order], measure="ndcg@5", test=test) == found


def test_queries_whose_labels_are_all_the_same():
    y, qid = [1, 0, 0, 2, 0, 0, 1, 1, 0, 0], list("aabbcccddd")
    y[7:] = [1, 1, 1]
    y[4:7] = [0, 0, 0]
    good, bad = y, [-label for label in y]
    left_out = compare(y, good, bad, qid=qid)
    assert (left_out.n_queries, left_out.n_skipped) == (3, 1)  # c has no relevant row
    assert (left_out.wins, left_out.ties) == (2, 1)  # d is perfect in any order
    counted = compare(y, good, bad, qid=qid, measure=NDCG(empty_query=0) @ 10)
    assert (counted.n_queries, counted.n_skipped) == (4, 0)
    assert (counted.wins, counted.ties) == (2, 2)
    assert np.isnan(left_out.values_a).tolist() == [False, False, True, False]


def test_query_ids_ride_in_the_index():
    y, qid, good, bad = rows()
    indexed = pd.Series(y, index=pd.Index(qid, name="qid"))
    assert compare(indexed, good, bad) == compare(y, good, bad, qid=qid)


def test_a_measure_of_your_own():
    class TopIsBest(Measure):
        name = "TopIsBest"

        def of_query(self, labels, scores):
            return float(labels[scores.argmax()] == labels.max())

    y, qid, good, bad = rows()
    assert compare(y, good, bad, qid=qid, measure=TopIsBest()).difference > 0.1


# ---- several ---------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_smallest_level_at_which_a_step_down_rejects(p_values):
    adjusted = holm(p_values)
    for level in {*adjusted, 0.05, 0.5}:
        rejected, alive = set(), sorted(range(len(p_values)), key=lambda i: p_values[i])
        for i, number in enumerate(alive):
            if min(1.0, p_values[number] * (len(p_values) - i)) > level:
                break
            rejected.add(number)
        assert {i for i, p in enumerate(adjusted) if p <= level} == rejected


def test_compare_to_baseline():
    y, qid, good, bad = rows()
    scores = {"bad": bad, "good": good, "best": y}
    found = compare_to_baseline(y, scores, "bad", qid=qid, measure="err", test="randomization")
    assert list(found) == ["good", "best"]
    assert found["good"] == compare(y, good, bad, qid=qid, measure="err", test="randomization")
    p_values = holm([found["good"].p_value, found["best"].p_value]).tolist()
    assert found.p_values == dict(zip(found, p_values, strict=True))
    for text in ("ERR of 40 queries, against bad", "good", "best", f"{found['best'].difference:+.4f}"):
        assert text in repr(found)


@pytest.mark.parametrize("scores", [{"a": [1, 2]}, {"b": [1, 2], "c": [1, 2]}, [1, 2]])
def test_a_baseline_and_another_are_needed(scores):
    with pytest.raises(ValueError, match="scores must be a dict with the scores of the baseline, 'a'"):
        compare_to_baseline([1, 0], scores, "a")


# ---- what is shown, and what cannot be compared ----------------------------------------------------


def test_a_comparison_reads_well():
    text = repr(compare_values([0.9, 0.8, np.nan, 0.7], [0.7, 0.7, 1, 0.6]))
    assert text.splitlines() == [
        "values of 3 queries, 1 left out",
        "a        0.8000",
        "b        0.6667",
        "a - b   +0.1333, 95 % interval -0.0101 to +0.2768, p = 0.057 by Student's t test",
        "a is better in 3, as good in 0, worse in 0",
    ]


def test_a_comparison_cannot_be_changed():
    found = compare_values([1, 2], [1, 3])
    assert isinstance(found, Comparison)
    with pytest.raises(AttributeError):
        found.p_value = 0


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2], [1, 2, 3]), {}, "values_a has 2 queries and values_b 3"),
        (([1, np.nan], [1, 2]), {}, "at least two queries where both rankers have a value, got 1"),
        (([1, 2], ["a", "b"]), {}, "values_b must be numbers, one per query: could not convert string"),
        (
            ([1e308, 0], [-1e308, 0]),
            {},
            "the values differ by more than a float can hold; expected values on a",
        ),
        (([[1, 2]], [1, 2]), {}, "values_a must hold one finite value per query, or NaN, got shape"),
        (([1, 2], [1, np.inf]), {}, "values_b must hold one finite value per query, or NaN, got an infinite"),
        (([1, 2], [1, 2]), {"test": "sign"}, "test must be one of 't', 'bootstrap', 'randomization', got"),
        (([1, 2], [1, 2]), {"test": ["t"]}, "test must be one of 't', 'bootstrap', 'randomization', got"),
        (([1, 2], [1, 2]), {"n_resamples": 0}, "n_resamples must be a whole number >= 1, got 0"),
        (([1, 2], [1, 2]), {"confidence": 95}, "confidence must be between 0 and 1, got 95"),
    ],
)
def test_what_cannot_be_compared(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        compare_values(*arguments, **options)


def test_values_go_together_by_the_ids_of_their_queries():
    """A Series has the ids in its index, as the columns of `per_query_table`."""
    a, b = pd.Series([0.9, 0.2, 0.4], ["q", "r", "s"]), pd.Series([0.3, 0.8, 0.1], ["s", "q", "r"])
    with pytest.raises(ValueError, match=r"indexes of values_a and values_b differ.*values_b.loc"):
        compare_values(a, b)
    assert compare_values(a, b.loc[a.index]).difference == pytest.approx(0.1)
    assert compare_values(a, b.to_numpy()).n_queries == 3


@pytest.mark.parametrize("scores", [[[1, 0], [0, 1]], np.ones(2)])
def test_a_table_needs_names_of_rankers(scores):
    with pytest.raises(TypeError, match="expected a dict of the scores of each ranker by its name"):
        per_query_table([1, 0], scores)


@pytest.mark.parametrize("p_values", [[0.01, 1.04], [-0.1], [np.nan]])
def test_what_holm_refuses(p_values):
    with pytest.raises(ValueError, match="p_values must"):
        holm(p_values)


def test_what_cannot_be_scored():
    with pytest.raises(ValueError, match="scores_b has 3 rows, but y_true has 2"):
        compare([1, 0], [1, 0], [1, 0, 2])
    with pytest.raises(ValueError, match="unknown measure"):
        compare([1, 0], [1, 0], [1, 0], measure="best")
    with pytest.raises(
        ValueError, match=r"at least two queries .* got 1: without qid= all rows are one query"
    ):
        compare([1, 0], [1, 0], [1, 0])
