import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from ranks import together

from ranktrees.processes.communicator import Communicator, RankError

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@given(st.lists(arrays(np.float64, st.integers(0, 20), elements=finite), min_size=1, max_size=4))
def test_a_sum_of_floats_is_rounded_once_whoever_holds_them(parts):
    whole = math.fsum(np.concatenate(parts).tolist())
    assert together(len(parts), lambda ranks: ranks.exact_sum(parts[ranks.rank])) == [whole] * len(parts)


any_float = st.floats(allow_nan=False) | st.sampled_from([1.7e308, -1.7e308, 5e-324])


@given(
    parts=st.lists(arrays(np.float64, st.integers(0, 9), elements=any_float), min_size=1, max_size=3),
    random=st.randoms(),
)
def test_a_sum_that_overflows_only_on_the_way_does_not_and_one_that_does_is_infinite(parts, random):
    values = np.concatenate(parts).tolist()
    if infinite := [value for value in values if math.isinf(value)]:
        whole = sum(infinite)
    else:
        exact = sum(map(Fraction, values))
        try:
            whole = float(exact)
        except OverflowError:
            whole = math.inf if exact > 0 else -math.inf
    random.shuffle(values)
    np.testing.assert_equal(Communicator().exact_sum(values), whole)
    of_ranks = together(len(parts), lambda ranks: ranks.exact_sum(parts[ranks.rank]))
    np.testing.assert_equal(of_ranks, [whole] * len(parts))


@pytest.mark.parametrize("values", [[np.nan, 1.0], [np.inf, -np.inf], [np.nan, np.inf]])
def test_a_sum_of_what_has_none_is_nan(values):
    assert np.isnan(Communicator().exact_sum(values))
    assert np.isnan(together(2, lambda ranks: ranks.exact_sum(values[ranks.rank :: 2]))).all()


def test_each_rank_gets_its_part_of_the_sum():
    parts = together(3, lambda ranks: ranks.reduce_scatter(np.arange(6) + ranks.rank, [1, 0, 5]))
    assert [part.tolist() for part in parts] == [[3], [], [6, 9, 12, 15, 18]]


@pytest.mark.parametrize("size", [1, 3])
def test_sums_and_extremes_are_put_together_in_place(size):
    def all_three(ranks):
        own = np.array([ranks.rank, -ranks.rank])
        return [ranks.allreduce(own.copy(), op).tolist() for op in ("sum", "max", "min")]

    last = size - 1
    n = size * last // 2
    assert together(size, all_three) == [[[n, -n], [last, 0], [0, -last]]] * size


@pytest.mark.parametrize("size", [1, 3])
def test_arrays_of_all_are_stacked(size):
    stacked = together(size, lambda ranks: ranks.stack(np.full((2, 1), ranks.rank)).tolist())
    assert stacked == size * [[[[rank], [rank]] for rank in range(size)]]


@pytest.mark.parametrize("size", [1, 3])
def test_records_of_all_are_stacked(size):
    stacked = together(size, lambda ranks: ranks.stack(np.array([(ranks.rank, 0.5)], "i8, f8")).tolist())
    assert stacked == size * [[[(rank, 0.5)] for rank in range(size)]]


def test_what_one_passes_all_get():
    assert together(3, lambda ranks: ranks.bcast(ranks.rank * 10, root=2)) == [20] * 3


def test_everyone_gets_what_is_meant_for_them():
    got = together(2, lambda ranks: ranks.alltoall([f"{ranks.rank} to 0", f"{ranks.rank} to 1"]))
    assert got == [["0 to 0", "1 to 0"], ["0 to 1", "1 to 1"]]


@pytest.mark.parametrize("size", [1, 3])
def test_what_is_made_in_turn_is_gathered_on_its_rank(size):
    def of_each(ranks):
        return ranks.gather_in_turn((f"{part} of {ranks.rank}", part % ranks.size) for part in range(4))

    assert together(size, of_each) == [
        [[f"{part} of {rank}" for rank in range(size)] for part in range(4) if part % size == root]
        for root in range(size)
    ]


def test_a_failure_reaches_the_others():
    heard = []

    def fit(ranks):
        ranks.at("tree 3")
        if ranks.rank == 1:
            raise ValueError("boom")
        try:
            ranks.allreduce(np.zeros(1, np.int64))
        except RankError as error:
            heard.append(str(error))
            raise

    with pytest.raises(ValueError, match="boom"):
        together(3, fit)
    assert heard == ["rank 1 failed at tree 3: ValueError: boom"] * 2


def test_parts_of_a_sum_are_the_whole():
    with pytest.raises(TypeError, match=r"cannot scatter sums of 3 int64 in parts of \[1, 1\]"):
        Communicator().reduce_scatter(np.zeros(3, np.int64), [1, 1])


@pytest.mark.parametrize("array", [np.zeros(2), np.zeros(2, np.int32)])
def test_only_integers_are_summed(array):
    with pytest.raises(TypeError, match="cannot scatter sums of 2 "):
        Communicator().reduce_scatter(array, [2])
    with pytest.raises(TypeError, match="cannot take the sum of"):
        Communicator().allreduce(array)


def test_ranks_agree_on_what_prints_the_same():
    def of(ranks):
        def measure():
            return ranks

        ranks.agree(measure=measure, rate=0.1)
        with pytest.raises(
            ValueError, match="rate is 0 on rank 0 and 1 on rank 1; expected the same on all ranks"
        ):
            ranks.agree(rate=ranks.rank)

    together(2, of)


def test_ranks_agree_on_equal_values_and_on_no_others():
    def of(ranks):
        ranks.agree(cst=[{0, 8} if ranks.rank else {8, 0}])
        costs = np.zeros(2000)
        costs[1000] = ranks.rank
        with pytest.raises(ValueError, match=r"^costs is not the same on rank 0 and on rank 1; expected"):
            ranks.agree(costs=costs)

    together(2, of)


def test_ranks_disagree_where_one_says_nothing():
    def of(ranks):
        with pytest.raises(ValueError, match="rate is 1 on rank 0 and not there on rank 1"):
            ranks.agree(**({} if ranks.rank else {"rate": 1}))
        with pytest.raises(ValueError, match="rate is not there on rank 0 and 1 on rank 1"):
            ranks.agree(**({"rate": 1} if ranks.rank else {}))

    together(2, of)
