"""Splitters keep queries whole, and scorers never treat a test fold as one query."""

import pickle
import warnings
from datetime import timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from interleaved import N_DOCUMENTS, N_QUERIES, data
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import StackingRegressor
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranktrees import FitWarning, ModelFeatures
from ranktrees.evaluation.model_selection import (
    QueryKFold,
    QueryShuffleSplit,
    QueryTimeSeriesSplit,
    query_scorer,
    train_test_split_by_query,
)
from ranktrees.measures import as_measure
from ranktrees.rows import check_fit, check_rows, check_score
from ranktrees.rows.values import SKLEARN_VERSION


def with_index(y, qid):
    return pd.Series(y, index=pd.Index(qid, name="qid"))


class ToyRanker(RegressorMixin, BaseEstimator):
    """Scores by one column; its fit and score go through validation as those of a real ranker do."""

    __metadata_request__fit = {"qid": True, "groups": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True, "groups": True}  # noqa: RUF012

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y, sample_weight=None, *, qid=None, groups=None):
        self.n_queries_ = check_fit(self, X, y, sample_weight, qid=qid, groups=groups).n_queries
        return self

    def predict(self, X):
        return np.asarray(check_rows(self, X, reset=False)[:, self.column], np.float64)

    def score(self, X, y, sample_weight=None, *, qid=None, groups=None):
        test = check_score(self, X, y, sample_weight, qid=qid, groups=groups)
        scores = self.predict(X)
        scores = scores if test.order is None else scores[test.order]
        return as_measure("ndcg@10").mean(test.labels, scores, test.offsets, test.weights, 1)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# ------------------------------------------------------------------------------------------------- splitters


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=60).filter(lambda qid: len(set(qid)) > 1),
    st.booleans(),
    st.integers(0, 3),
    st.data(),
)
@settings(deadline=None)
def test_folds_partition_the_rows_and_keep_queries_whole(qid, shuffle, seed, drawn):
    n_splits = drawn.draw(st.integers(2, len(set(qid))))
    splitter = QueryKFold(n_splits, shuffle=shuffle, random_state=seed if shuffle else None)
    qid = np.array(qid)
    splits = list(splitter.split(np.zeros(len(qid)), groups=qid))
    assert len(splits) == splitter.get_n_splits() == n_splits
    assert_array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(len(qid)))
    for train, test in splits:
        assert len(train)
        assert len(test)
        assert not set(qid[train]) & set(qid[test])
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(qid)))
    sizes = [len(test) for _, test in splits]
    assert max(sizes) - min(sizes) <= max(np.bincount(qid))


def test_folds_that_are_not_shuffled_take_no_seed():
    with pytest.raises(ValueError, match=r"random_state=0, but shuffle=False .* pass shuffle=True"):
        QueryKFold(2, random_state=0)


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=60).filter(lambda q: len(set(q)) > 1), st.integers(0, 3)
)
@settings(deadline=None)
def test_shuffled_splits_keep_queries_whole(qid, seed):
    qid = np.array(qid)
    splits = list(QueryShuffleSplit(3, test_size=1, random_state=seed).split(np.zeros(len(qid)), groups=qid))
    assert len(splits) == 3
    for train, test in splits:
        assert len(set(qid[test])) == 1
        assert not set(qid[train]) & set(qid[test])
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(qid)))


@pytest.mark.filterwarnings("ignore:most of what begins")
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), min_size=2, max_size=60),
    st.integers(1, 4),
    st.integers(0, 3),
    st.one_of(st.none(), st.integers(1, 3)),
)
@settings(deadline=None, max_examples=50)
def test_what_is_trained_on_is_earlier_than_what_is_tested(rows, n_splits, gap, max_train_size):
    qid, time = np.array(rows).T
    splitter = QueryTimeSeriesSplit(n_splits, gap=gap, max_train_size=max_train_size)
    assert splitter.get_n_splits() == n_splits
    try:
        splits = list(splitter.split(np.zeros(len(qid)), groups=qid, time=time))
    except ValueError:  # too few queries, or times, for so many parts
        reject()
    assert len(splits) == n_splits
    tested = np.concatenate([test for _, test in splits])
    assert len(set(tested)) == len(tested)
    n_queries = len(set(qid))
    assert len(set(qid[tested])) >= n_splits * (n_queries // (n_splits + 1))
    for (train, test), after in zip(splits, [*splits[1:], None], strict=True):
        assert time[train].max() < time[test].min()
        assert time[train].max() + gap <= time[test].min()
        for part in (train, test):
            assert_array_equal(np.sort(np.flatnonzero(np.isin(qid, qid[part]))), part)
        if max_train_size is None:  # nothing is left out that might be trained on
            start = time[test].min()
            may_be = {
                q
                for q in set(qid)
                if (time[qid == q] < start).all() and (start - time[qid == q] >= gap).all()
            }
            assert set(qid[train]) == may_be
        else:
            assert len(set(qid[train])) <= max_train_size
        if after is not None:
            assert time[test].min() < time[after[1]].min()


DAYS = pd.date_range("2024-03-01", periods=8, freq="36h")


@pytest.mark.parametrize(
    "time",
    [
        np.arange(8),
        np.arange(8).astype(np.uint8),
        np.arange(8) / 8,
        pd.Series(range(8), dtype="Int64"),
        pl.Series(range(8)),
        DAYS,
        DAYS.tz_localize("Europe/Paris"),
        DAYS.to_period("h"),
        DAYS.date,
        DAYS.to_pydatetime().tolist(),
        DAYS.to_numpy("datetime64[s]"),
        pl.Series(DAYS.to_numpy()),
        DAYS.strftime("%Y-%m-%dT%H:%M:%SZ"),
        pd.Series(DAYS.astype(str), dtype="category"),
        [*DAYS.astype(str)[:4], *DAYS.tz_localize("UTC")[4:]],
    ],
    ids=lambda time: getattr(time, "dtype", type(time)),
)
def test_times_of_every_kind_are_in_order(time):
    qid = [3, 3, 1, 1, 2, 2, 0, 0]
    order = np.argsort([5, 2, 7, 0, 1, 4, 6, 3])
    shuffled = time[order] if not isinstance(time, list) else [time[i] for i in order]
    if isinstance(time, pd.Series):
        shuffled = time.iloc[order]
    (train, test), _ = QueryTimeSeriesSplit(2, test_size=1).split(
        qid, groups=np.array(qid)[order], time=shuffled
    )
    assert sorted(order[train]) == [0, 1, 2, 3]
    assert sorted(order[test]) == [4, 5]


def test_times_are_found_in_an_index_or_a_column():
    X, y, qid = data()
    time, splitter = np.unique(qid, return_inverse=True)[1] % 7, QueryTimeSeriesSplit(2)
    expected = list(splitter.split(X, y, qid, time=time))
    index = pd.MultiIndex.from_arrays([qid, time], names=["qid", "time"])
    frame = pd.DataFrame(X, index=pd.Index(qid, name="qid"))
    for split in (
        splitter.split(X, pd.Series(y, index=index)),
        splitter.split(pd.DataFrame(X, index=index)),
        splitter.split(frame.assign(time=time)),
        pickle.loads(pickle.dumps(splitter)).split(
            pl.DataFrame(X).with_columns(time=pl.Series(time)), groups=qid
        ),
        QueryTimeSeriesSplit(2, time="day").split(frame.assign(day=time, time=0)),
        splitter.split(frame.assign(time=0), time=time),
    ):
        for parts, theirs in zip(split, expected, strict=True):
            assert_array_equal(parts[0], theirs[0])
            assert_array_equal(parts[1], theirs[1])


def test_searches_split_by_time(routing):
    X, y, qid = data()
    grid = {"column": [0, 1]}
    search = GridSearchCV(ToyRanker(), grid, cv=QueryTimeSeriesSplit(2), scoring=query_scorer())
    time = np.unique(qid, return_inverse=True)[1] % 7
    routed = search.fit(X, y, qid=qid, time=time).cv_results_
    with sklearn.config_context(enable_metadata_routing=False):
        index = pd.MultiIndex.from_arrays([qid, time], names=["qid", "time"])
        carried = search.fit(X, pd.Series(y, index=index)).cv_results_
    assert_array_equal(routed["mean_test_score"], carried["mean_test_score"])
    assert np.isfinite(routed["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("settings", "time", "parts"),
    [
        ({}, None, ["found no times", "pass time=", "level named 'time'"]),
        ({}, [1, 2, 3], [r"time has shape \(3,\)", "each of the 8 rows"]),
        ({}, [1.0, np.nan] * 4, ["time is missing in row 1"]),
        ({}, [None] + ["2024-01-01"] * 7, ["time is missing in row 0"]),
        ({}, ["1/2/2024"] * 8, ["time holds '1/2/2024'", "such as '2024-12-31'", "pandas.to_datetime"]),
        ({}, [("a",)] * 8, ["time has shape", "one column"]),
        ({}, [True] * 8, ["time holds True"]),
        ({}, np.zeros(8), ["n_splits=3 and test_size=None of 4 queries", "begin at different times"]),
        ({"n_splits": 4}, np.arange(8), ["n_splits=4 test parts of 0 queries"]),
        ({"test_size": 2}, np.arange(8), ["n_splits=3 test parts of 2 queries"]),
        ({"test_size": timedelta(days=1)}, np.arange(8), ["test_size=.* the first time is 0", "are dates"]),
        ({"test_size": timedelta(0)}, DAYS, ["test_size=", "a duration above"]),
        ({"test_size": timedelta(days=5)}, DAYS, ["n_splits=3", "times are from 2024-03-01", "fewer splits"]),
        ({"gap": 7}, np.arange(8), ["no query ends before 2", "gap=7"]),
        ({"gap": 7}, DAYS, ["gap=7, but times are dates", "timedelta"]),
        ({"gap": timedelta(days=1)}, np.arange(8), ["but times are numbers"]),
        ({"gap": np.timedelta64(1, "D")}, np.arange(8), ["but times are numbers"]),
        ({"gap": timedelta(days=-1)}, DAYS, ["gap=", "at least 0"]),
        ({"gap": -1}, np.arange(8), ["'gap' parameter"]),
        ({"n_splits": 0}, np.arange(8), ["'n_splits' parameter"]),
    ],
)
def test_times_that_cannot_be_split_are_refused(settings, time, parts):
    splitter = QueryTimeSeriesSplit(**{"n_splits": 3} | settings)
    with pytest.raises(ValueError, match=".*".join(parts)):
        list(splitter.split(np.zeros(8), groups=np.repeat([3, 1, 0, 2], 2), time=time))


@pytest.mark.parametrize("size", [timedelta(days=3), np.timedelta64(72, "h")])
def test_parts_of_a_duration_have_the_queries_that_begin_within_it(size):
    begins = pd.DatetimeIndex([f"2024-03-{day:02}" for day in (1, 2, 5, 6, 6, 7, 8, 9)])
    order = np.random.default_rng(0).permutation(8)
    splits = list(
        QueryTimeSeriesSplit(2, test_size=size).split(order, groups=np.arange(8)[order], time=begins[order])
    )
    assert [sorted(begins[order[test]].day) for _, test in splits] == [[5, 6, 6], [7, 8, 9]]
    assert [sorted(begins[order[train]].day) for train, _ in splits] == [[1, 2], [1, 2, 5, 6, 6]]


def test_queries_that_go_on_and_are_left_out_are_told():
    qid, time, splitter = [0, 0, 1, 1, 1, 2, 3], [0, 1, 2, 3, 9, 7, 8], QueryTimeSeriesSplit(1, test_size=2)
    with pytest.warns(
        FitWarning, match="most of what begins before 7, .* goes on after it.* ids of sessions"
    ):
        ((train, test),) = splitter.split(qid, groups=qid, time=time)
    assert_array_equal(train, [0, 1])
    assert_array_equal(test, [5, 6])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(splitter.split(qid[1:], groups=[0, 0, 0, 1, 2, 3], time=[0, 1, 2, 9, 7, 8]))


def test_a_query_that_is_asked_all_the_time_is_in_no_training():
    with pytest.raises(ValueError, match="ids that differ for what is asked again"):
        list(QueryTimeSeriesSplit(1).split(np.zeros(8), groups=[0, 1] * 4, time=[0, 4, 1, 5, 2, 6, 7, 3]))


SPLITTERS = [
    QueryKFold(3),
    QueryKFold(3, shuffle=True, random_state=0),
    QueryShuffleSplit(3, random_state=0),
    QueryShuffleSplit(2, test_size=0.5, train_size=2, random_state=0),
]


@pytest.mark.parametrize("splitter", SPLITTERS, ids=repr)
def test_every_source_of_ids_gives_the_same_splits(splitter):
    X, y, qid = data()
    expected = list(splitter.split(X, y, qid))
    for split in (
        splitter.split(X, y, qid=qid),
        splitter.split(X, with_index(y, qid)),
        splitter.split(pd.DataFrame(X, index=pd.Index(qid, name="qid"))),
        splitter.split(X, with_index(y, qid), qid, qid=qid),
        splitter.split(sp.csr_array(X), groups=list(qid)),
        splitter.split(X, y, pl.Series(qid)),
        pickle.loads(pickle.dumps(splitter)).split(X, y, qid),
    ):
        for (train, test), (expected_train, expected_test) in zip(split, expected, strict=True):
            assert_array_equal(train, expected_train)
            assert_array_equal(test, expected_test)


def test_tools_that_lose_the_index_take_the_folds():
    X, y, qid = data()
    labels, lines = with_index(y, qid), [("one", LinearRegression()), ("two", LinearRegression())]
    stack = StackingRegressor(lines, LinearRegression(), cv=QueryKFold(3))
    message = r"found no query ids.*pass them the folds, cv=list\(QueryKFold\(...\).split\(X, y\)\)"
    with pytest.raises(ValueError, match=message):
        stack.fit(X, labels)
    stack.set_params(cv=list(QueryKFold(3).split(X, labels))).fit(X, labels)


def test_shuffling_follows_the_random_state():
    X, y, qid = data()

    def folds(splitter):
        return [test.tolist() for _, test in splitter.split(X, y, qid)]

    assert folds(QueryKFold(3, shuffle=True, random_state=0)) == folds(
        QueryKFold(3, shuffle=True, random_state=0)
    )
    assert folds(QueryKFold(3, shuffle=True, random_state=0)) != folds(
        QueryKFold(3, shuffle=True, random_state=1)
    )
    assert folds(QueryShuffleSplit(2, random_state=0)) != folds(QueryShuffleSplit(2, random_state=1))


@pytest.mark.parametrize(
    ("splitter", "qid", "parts"),
    [
        (
            QueryKFold(),
            None,
            ["QueryKFold found no query ids", "groups=", "level named 'qid', which also reaches"],
        ),
        (QueryShuffleSplit(), None, ["QueryShuffleSplit found no query ids"]),
        (QueryKFold(3), [1, 1, 2, 2], ["n_splits=3", "number of queries, 2"]),
        (QueryKFold(1), [1, 1, 2, 2], ["'n_splits' parameter of QueryKFold", r"int in the range \[2"]),
        (QueryKFold(2.0), [1, 1, 2, 2], ["'n_splits' parameter", "int"]),
        (QueryKFold(True), [1, 1, 2, 2], ["'n_splits' parameter", "Got True"]),
        (QueryKFold(2, shuffle="no"), [1, 1, 2, 2], ["'shuffle' parameter", "Got 'no'"]),
        (QueryKFold(2, shuffle=True, random_state=1.5), [1, 1, 2, 2], ["'random_state' parameter"]),
        (QueryShuffleSplit(0), [1, 1, 2, 2], ["'n_splits' parameter", r"int in the range \[1"]),
        (QueryShuffleSplit(test_size="half"), [1, 1, 2, 2], ["'test_size' parameter", "Got 'half'"]),
        (QueryShuffleSplit(train_size=1.0), [1, 1, 2, 2], ["'train_size' parameter", "Got 1.0"]),
        (QueryShuffleSplit(random_state="a"), [1, 1, 2, 2], ["'random_state' parameter"]),
        (QueryShuffleSplit(test_size=0.9), [1, 1, 2, 2], ["test_size=0.9 and train_size=None of 2 queries"]),
        (QueryShuffleSplit(), [1, 1, 1, 1], ["1 query"]),
        (QueryKFold(2), [1, 1, 2, np.nan], ["groups is missing"]),
        (QueryKFold(2), [1, 2], ["groups has length 2", "4 in all"]),
        (QueryShuffleSplit(test_size=5), [1, 1, 2, 2], ["test_size=5"]),
    ],
)
def test_wrong_splits_are_refused(splitter, qid, parts):
    with pytest.raises(ValueError, match=".*".join(parts)):
        list(splitter.split(np.zeros(4), groups=qid))


def test_train_test_split_keeps_kinds_and_queries():
    X, y, qid = data()
    arrays = [X, sp.csr_array(X), pd.DataFrame(X), with_index(y, qid), y.tolist(), pl.Series(y), qid]
    parts = train_test_split_by_query(*arrays, qid=qid, test_size=0.25, random_state=0)
    assert [type(part) for part in parts] == [type(array) for array in arrays for _ in range(2)]
    qid_train, qid_test = parts[-2:]
    assert len(set(qid_test)) == N_QUERIES // 4
    assert set(qid_train) | set(qid_test) == set(qid)
    assert not set(qid_train) & set(qid_test)
    assert parts[1].shape[0] == len(qid_test)
    by_index = train_test_split_by_query(X, with_index(y, qid), test_size=0.25, random_state=0)
    assert_array_equal(by_index[1], parts[1])
    for ids in (pd.Index(qid.astype(str)), pd.MultiIndex.from_arrays([qid, np.arange(len(qid))])):
        some = train_test_split_by_query(X, ids, qid=qid, test_size=0.25, random_state=0)
        assert type(some[2]) is type(ids)
        assert some[2].get_level_values(0).astype(qid.dtype).tolist() == qid_train.tolist()
    weightless = train_test_split_by_query(None, X, None, qid=qid, test_size=0.25, random_state=0)
    assert [part is None for part in weightless] == [True, True, False, False, True, True]
    assert_array_equal(weightless[3], parts[1])


def test_wrong_arrays_to_split_are_refused():
    X, y, qid = data()
    _, test = train_test_split_by_query(X, qid=qid, test_size=np.uint8(3), random_state=0)
    assert len(test) == 3 * N_DOCUMENTS
    for nothing in ([], [None, None]):
        for ids in ({"qid": qid}, {}):
            with pytest.raises(ValueError, match=r"no arrays; expected at least one: pass X, y, qid\."):
                train_test_split_by_query(*nothing, **ids)
    other = with_index(y, np.sort(qid))
    with pytest.raises(ValueError, match=r"qid and the index level 'qid' of arrays\[1\] disagree"):
        train_test_split_by_query(X, other, qid=qid)
    with pytest.raises(
        ValueError, match=r"'qid' of arrays\[0\] and the index level 'qid' of arrays\[2\] dis"
    ):
        train_test_split_by_query(with_index(y, qid), X, other)
    with pytest.raises(ValueError, match=r"found no query ids.* qid="):
        train_test_split_by_query(X, y)
    with pytest.raises(ValueError, match="'test_size' parameter of train_test_split_by_query"):
        train_test_split_by_query(X, y, qid=qid, test_size=[0.5])
    with pytest.raises(ValueError, match="qid has length 71"):
        train_test_split_by_query(X, y, qid=qid[1:])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        train_test_split_by_query(X, y[1:], qid=qid)


# --------------------------------------------------------------------------------------------------- scorers


def by_hand(X, y, qid, column=0, measure="ndcg@10"):
    return as_measure(measure)(y, X[:, column], qid=qid)


def test_a_scorer_takes_the_mean_over_queries():
    X, y, qid = data()
    ranker = ToyRanker().fit(X, y, qid=qid)
    scorer = query_scorer("ndcg@10")
    expected = by_hand(X, y, qid)
    assert_allclose(scorer(ranker, X, with_index(y, qid)), expected)
    assert_allclose(scorer(ranker, pd.DataFrame(X, index=pd.Index(qid, name="qid")), y), expected)
    assert_allclose(pickle.loads(pickle.dumps(scorer))(ranker, X, with_index(y, qid)), expected)
    assert "NDCG @ 10" in repr(scorer)
    weight = np.arange(len(y)) + 1.0
    weighted = as_measure("ndcg@10")(y, X[:, 0], qid=qid, sample_weight=weight)
    assert_allclose(scorer(ranker, X, with_index(y, qid), sample_weight=weight), weighted)
    for routing in (False, True):
        with sklearn.config_context(enable_metadata_routing=routing):
            assert_allclose(scorer(ranker, X, y, groups=qid), expected)
            assert_allclose(scorer(ranker, X, y, qid=qid), expected)
            assert_allclose(scorer(ranker, X, y, qid=qid, groups=qid), expected)
            with pytest.raises(ValueError, match="qid and groups disagree"):
                scorer(ranker, X, y, qid=qid, groups=qid[::-1])
            assert sklearn.get_config()["enable_metadata_routing"] is routing
    with pytest.raises(ValueError, match="y_true must not be NaN or infinite, got nan in row 0"):
        scorer(ranker, X, np.ma.array(y, mask=np.arange(len(y)) == 0), qid=qid)


def test_a_scorer_refuses_ids_that_disagree_wherever_they_are():
    X, y, qid = data()
    ranker, frame = ToyRanker().fit(X, y, qid=qid), pd.DataFrame(X, index=pd.Index(qid[::-1], name="qid"))
    with pytest.raises(ValueError, match="index level 'qid' of X and the index level 'qid' of y disagree"):
        query_scorer()(ranker, frame, with_index(y, qid))
    with pytest.raises(ValueError, match="qid and the index level 'qid' of X disagree"):
        query_scorer()(ranker, frame, y, qid=qid)


@pytest.mark.parametrize("routing", [False, True])
def test_thresholds_are_measured_by_classes_that_are_grades(routing):
    """Other classes would all be relevant, or none a number."""
    X, y, qid = data()
    good = with_index(y > 1, qid)
    tuned = TunedThresholdClassifierCV(
        LogisticRegression(), cv=QueryKFold(3), scoring=query_scorer("p@3"), thresholds=[0.2, 0.5, 0.8]
    )
    with sklearn.config_context(enable_metadata_routing=routing):
        found = clone(tuned).fit(X, good).best_threshold_
        assert clone(tuned).fit(X, good.astype(int)).best_threshold_ == found
        if routing:
            assert clone(tuned).fit(X, good.to_numpy(), groups=qid).best_threshold_ == found
        for classes, seen in (((1, 2), "2"), (("bad", "good"), "'bad'")):
            with pytest.raises(
                ValueError, match=f"y holds the class {seen}, but a threshold is measured by the classes"
            ):
                clone(tuned).fit(X, good.map(dict(zip((False, True), classes, strict=True))))


def test_more_than_two_classes_are_numbers():
    X, y, qid = data()
    grades = pd.Series(y.astype(int), index=pd.Index(qid, name="qid"))
    assert query_scorer()(LogisticRegression().fit(X, grades), X, grades) > 0.5
    words = grades.map(dict(enumerate("abcde")))
    model = LogisticRegression().fit(X, words)
    message = "LogisticRegression predicts classes such as 'a', by which rows cannot be ranked; expected"
    for ask in (
        lambda: query_scorer()(model, X, words),
        lambda: ModelFeatures(model, cv="prefit").fit(X).transform(X),
        lambda: ModelFeatures(LogisticRegression(), cv=2).fit_transform(X, words),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
    ModelFeatures(model, cv="prefit", add="probabilities").fit(X).transform(X)


def test_less_is_better_turns_the_sign():
    X, y, qid = data()
    ranker = ToyRanker().fit(X, y, qid=qid)
    assert_allclose(query_scorer("rmse")(ranker, X, with_index(y, qid)), -by_hand(X, y, qid, measure="rmse"))


def test_a_scorer_without_ids_raises():
    X, y, qid = data()
    ranker = ToyRanker().fit(X, y, qid=qid)
    with pytest.raises(
        ValueError, match=r"NDCG @ 10 found no query ids.*groups=.*level named 'qid'.*72 rows"
    ):
        query_scorer()(ranker, X, y)
    assert query_scorer()(ranker, X[y > 0][:1], y[y > 0][:1]) == 1.0
    with pytest.raises(ValueError, match="ndgc"):
        query_scorer("ndgc@10")


SCORINGS = [None, query_scorer("ndcg@10")]
GRID = {"column": [0, 1, 2]}


def expected_scores(X, y, qid, cv, column=0):
    return [by_hand(X[test], y[test], qid[test], column) for _, test in cv.split(X, y, qid)]


@pytest.mark.parametrize("scoring", SCORINGS, ids=["own score", "scorer"])
@pytest.mark.parametrize("cv", [GroupKFold(3), QueryKFold(3), QueryShuffleSplit(3, random_state=0)], ids=repr)
@pytest.mark.usefixtures("routing")
def test_routing_on(scoring, cv):
    X, y, qid = data()
    expected = expected_scores(X, y, qid, cv)
    scores = cross_validate(ToyRanker(), X, y, params={"groups": qid}, cv=cv, scoring=scoring)["test_score"]
    assert_allclose(scores, expected)
    search = GridSearchCV(ToyRanker(), GRID, cv=cv, scoring=scoring).fit(X, y, groups=qid)
    assert search.best_params_ == {"column": 0}
    assert_allclose(search.best_score_, np.mean(expected))
    assert search.best_estimator_.n_queries_ == N_QUERIES
    if scoring is None and SKLEARN_VERSION < (1, 9):
        return  # older pipelines do not route to the score of their last step
    search = GridSearchCV(make_pipeline(StandardScaler(), ToyRanker()), {}, cv=cv, scoring=scoring)
    assert_allclose(search.fit(X, y, groups=qid).best_score_, np.mean(expected))


@pytest.mark.parametrize("scoring", SCORINGS, ids=["own score", "scorer"])
@pytest.mark.parametrize("cv", [QueryKFold(3), QueryShuffleSplit(3, random_state=0)], ids=repr)
@pytest.mark.usefixtures("routing")
def test_routing_by_the_name_qid(scoring, cv):
    X, y, qid = data()
    search = GridSearchCV(ToyRanker(), GRID, cv=cv, scoring=scoring).fit(X, y, qid=qid)
    assert_allclose(search.best_score_, np.mean(expected_scores(X, y, qid, cv)))


@pytest.mark.parametrize("holder", ["y", "X"])
@pytest.mark.parametrize("scoring", SCORINGS, ids=["own score", "scorer"])
def test_routing_off(scoring, holder):
    X, y, qid = data()
    cv = QueryKFold(3)
    expected = expected_scores(X, y, qid, cv)
    rows = pd.DataFrame(X, index=pd.Index(qid, name="qid")) if holder == "X" else X
    labels = with_index(y, qid) if holder == "y" else y
    assert_allclose(cross_val_score(ToyRanker(), rows, labels, cv=cv, scoring=scoring), expected)
    search = GridSearchCV(ToyRanker(), GRID, cv=cv, scoring=scoring).fit(rows, labels)
    assert_allclose(search.best_score_, np.mean(expected))
    search = GridSearchCV(ToyRanker(), {}, cv=GroupKFold(3), scoring=scoring).fit(rows, labels, groups=qid)
    assert search.best_estimator_.n_queries_ == N_QUERIES


def test_several_measures_at_once():
    X, y, qid = data()
    cv = QueryKFold(3)
    measures = ["ndcg@10", "err", "rmse"]
    scoring = {name: query_scorer(name) for name in measures}
    scores = cross_validate(LinearRegression(), X, with_index(y, qid), cv=cv, scoring=scoring)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_validate(LinearRegression(), X, y, params={"groups": qid}, cv=cv, scoring=scoring)
        search = GridSearchCV(ToyRanker(), GRID, cv=cv, scoring=scoring, refit="err").fit(X, y, groups=qid)
    for name in measures:
        assert_allclose(scores[f"test_{name}"], routed[f"test_{name}"])
        assert f"mean_test_{name}" in search.cv_results_
    assert (scores["test_rmse"] < 0).all()


def test_weights_reach_the_scorer():
    X, y, qid = data()
    weight = np.arange(len(y)) + 1.0
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = query_scorer().set_score_request(sample_weight=True)
        ranker = ToyRanker().set_fit_request(sample_weight=True)
        params = {"groups": qid, "sample_weight": weight}
        scores = cross_val_score(ranker, X, y, params=params, cv=QueryKFold(3), scoring=scorer)
    for score, (_, test) in zip(scores, QueryKFold(3).split(X, y, qid), strict=True):
        expected = as_measure("ndcg@10")(y[test], X[test, 0], qid=qid[test], sample_weight=weight[test])
        assert_allclose(score, expected)


def test_curves_and_importances():
    X, y, qid = data()
    labels, cv, scoring = with_index(y, qid), QueryKFold(3), query_scorer()
    expected = expected_scores(X, y, qid, cv)
    _, _, test_scores = learning_curve(ToyRanker(), X, labels, cv=cv, scoring=scoring, train_sizes=[0.5, 1.0])
    assert_allclose(test_scores[-1], expected)
    _, test_scores = validation_curve(
        ToyRanker(), X, labels, param_name="column", param_range=[0, 1], cv=cv, scoring=scoring
    )
    assert_allclose(test_scores[0], expected)
    assert cross_val_predict(ToyRanker(), X, labels, cv=cv).shape == y.shape
    ranker = ToyRanker().fit(X, labels)
    importances = permutation_importance(ranker, X, labels, scoring=scoring, random_state=0).importances_mean
    assert importances[0] > 0.01
    assert_allclose(importances[1:], 0, atol=1e-12)


def test_monitoring_of_training():
    callback = pytest.importorskip("sklearn.callback")
    monitor = callback.ScoringMonitor(scoring=query_scorer())
    assert "score" in monitor._scoring


def test_splitters_and_scorers_can_be_cloned():
    assert (
        repr(clone(QueryKFold(3), safe=False)) == "QueryKFold(n_splits=3, random_state=None, shuffle=False)"
    )
    assert "n_splits=2" in repr(QueryShuffleSplit(2))
    search = clone(GridSearchCV(ToyRanker(), GRID, scoring=query_scorer(), cv=QueryKFold(3)))
    X, y, qid = data()
    assert search.fit(X, with_index(y, qid)).best_params_ == {"column": 0}
