"""Numbers of trees, rows and the like are whole numbers, of Python or of NumPy, and True is not one."""

import io

import numpy as np
import pytest

from ranktrees import LambdaMARTRanker, best_rows, load_letor, make_ranking, refine_weights, score_curves
from ranktrees.datasets import Batches
from ranktrees.support.numeric import is_real, is_whole


def test_numbers():
    for whole in (0, -3, 2**70, np.int8(-1), np.uint64(2**64 - 1)):
        assert is_whole(whole)
        assert is_real(whole)
    for fraction in (0.5, 2.0, np.float32(1), float("inf")):
        assert not is_whole(fraction)
        assert is_real(fraction)
    for other in (True, np.True_, "1", None, 1j, np.array(1), [1]):
        assert not is_whole(other)
        assert not is_real(other)


def test_both_ends_are_included():
    assert [is_whole(value, 1, 3) for value in range(5)] == [False, True, True, True, False]


X, Y, QID = make_ranking(10, rows_per_query=5, n_features=3, random_state=0, return_X_y_qid=True)
RANKER = LambdaMARTRanker(max_iter=2, random_state=0).fit(X, Y, qid=QID)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("every", lambda value: score_curves(RANKER, sets={"test": (X, Y, QID)}, every=value)),
        ("n_repeats", lambda value: refine_weights(RANKER.ensemble_, X, Y, qid=QID, n_repeats=value)),
        ("batch_rows", lambda value: Batches.from_numpy([(X, Y, QID)], batch_rows=value)),
        ("n_features", lambda value: load_letor(io.BytesIO(b"1 qid:1 1:2"), n_features=value)),
        ("n_jobs", lambda value: RANKER.ensemble_.predict(X, n_jobs=value)),
        ("k", lambda value: best_rows(Y, qid=QID, k=value)),
        ("n_trees", lambda value: RANKER.predict(X, n_trees=value)),
        ("n_jobs", lambda value: LambdaMARTRanker(n_jobs=value).fit(X, Y, qid=QID)),
    ],
)
def test_a_count_is_a_whole_number_and_true_is_not(name, call):
    call(np.int32(1))
    for value in (True, 1.0):
        with pytest.raises(ValueError, match=name):
            call(value)
