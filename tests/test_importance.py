"""What features are worth: by hand, row by row, and by their laws."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from ranktrees import HistGBRTClassifier, HistGBRTRegressor, LambdaMARTRanker, as_measure, make_ranking
from ranktrees.evaluation import mean_interval
from ranktrees.inspection import importances, permutation_importance
from ranktrees.measures import NDCG

X, Y, QID = make_ranking(40, rows_per_query=10, n_features=6, random_state=0, return_X_y_qid=True)
ORDER = np.random.default_rng(0).permutation(len(Y))
X, Y, QID = X[ORDER], Y[ORDER], QID[ORDER]
X[:, 4] = QID % 7  # the same within queries
X[:, 5] = 1.0  # of no use
NAMES = ["title", "body", "clicks", "age", "length", "one"]
MODEL = LambdaMARTRanker(max_iter=8, random_state=0).fit(X, Y + 0.2 * X[:, 4], qid=QID)


def losses(measure, changed, model=MODEL, rows=X):
    """The loss of each query, by order of first appearance, if the model is given other rows."""
    found = []
    for query in pd.unique(QID):
        of_query = query == QID
        before, after = (
            measure(Y[of_query], model.predict(each)[of_query], qid=QID[of_query]) for each in (rows, changed)
        )
        found.append(before - after)
    return np.array(found)


@pytest.mark.parametrize("columns", [[0], [1, 3]])
def test_a_loss_is_that_of_rows_whose_values_were_shuffled(columns):
    groups = {"group": columns}
    found = permutation_importance(MODEL, X, Y, qid=QID, n_repeats=2, random_state=5, feature_groups=groups)
    random, expected = np.random.RandomState(5), 0.0
    for _ in range(2):
        changed, others = X.copy(), random.permutation(len(Y))
        changed[:, columns] = X[np.ix_(others, columns)]
        expected = expected + losses(NDCG @ 10, changed) / 2
    assert found.names[0] == "group"
    assert len(found.names) == 7 - len(columns)
    np.testing.assert_allclose(found.by_query[0], expected, atol=1e-12)
    assert (found.values[0], found.low[0], found.high[0]) == mean_interval(found.by_query[0])[:3]


def test_rows_of_a_query_trade_their_values():
    within = permutation_importance(MODEL, X, Y, qid=QID, among="query")
    assert within.by_query[4].tolist() == [0.0] * 40
    assert within.values[0] > 0
    among_all = permutation_importance(MODEL, X, Y, qid=QID)
    assert among_all.values[4] != 0
    assert within.what == "loss of NDCG @ 10 if shuffled within queries, 95 % interval"
    one_query = [
        permutation_importance(MODEL, X, Y, qid=QID, among="query", random_state=s) for s in (0, 0, 1)
    ]
    assert (
        one_query[0].by_query.tobytes() == one_query[1].by_query.tobytes() != one_query[2].by_query.tobytes()
    )


def test_rows_within_a_query_get_all_of_its_values():
    """A model that ranks by a column cannot but lose what a shuffle within the query does to it."""
    seen = []

    class Spy(type(MODEL)):
        def _finish(self, scores):
            seen.append(scores)
            return scores

    spy = Spy(max_iter=20, random_state=0).fit(X[:, :1], Y, qid=QID)
    seen.clear()
    permutation_importance(spy, X[:, :1], Y, qid=QID, among="query", n_repeats=1)
    before, after = seen
    for query in pd.unique(QID):
        assert sorted(before[query == QID]) == sorted(after[query == QID])
    assert (before != after).any()


def test_features_that_no_tree_uses_are_worth_nothing():
    found = permutation_importance(MODEL, X, Y, qid=QID)
    assert found.by_query[5].tolist() == [0.0] * 40
    assert (found.values[5], found.low[5], found.high[5]) == (0, 0, 0)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, "frame", np.float64])
def test_rows_of_any_kind(kind):
    rows = np.where(X < 0.3, 0.0, X).astype(np.float32)
    rows[::9, 1] = np.nan
    given = pd.DataFrame(rows, columns=NAMES) if kind == "frame" else kind(rows) if callable(kind) else rows
    given = rows.astype(np.float64) if kind is np.float64 else given
    model = LambdaMARTRanker(max_iter=5, random_state=0).fit(given, Y, qid=QID)
    of_array = LambdaMARTRanker(max_iter=5, random_state=0).fit(rows, Y, qid=QID)
    found = permutation_importance(model, given, Y, qid=QID, feature_groups={"both": [1, 2]}, n_repeats=2)
    expected = permutation_importance(
        of_array, rows, Y, qid=QID, feature_groups={"both": [1, 2]}, n_repeats=2
    )
    assert found.by_query.tobytes() == expected.by_query.tobytes()
    assert found.names == (("both", "title", *NAMES[3:]) if kind == "frame" else expected.names)


def test_categories_and_names():
    frame = pd.DataFrame(X, columns=NAMES).assign(site=pd.Categorical(np.array(list("abcd"))[QID % 4]))
    model = LambdaMARTRanker(max_iter=5, random_state=0).fit(frame, Y + (frame["site"] == "b"), qid=QID)
    found = permutation_importance(
        model, frame, Y + (frame["site"] == "b"), qid=QID, feature_groups={"text": ["title", "body"]}
    )
    assert found.names == ("text", *NAMES[2:], "site")


def test_errors_are_worth_something_where_they_rise():
    model = HistGBRTRegressor("poisson", max_iter=10, random_state=0).fit(X, Y, qid=QID)
    found = permutation_importance(model, X, Y, qid=QID, measure="rmse", n_repeats=1, random_state=0)
    changed = X.copy()
    changed[:, 0] = X[np.random.RandomState(0).permutation(len(Y)), 0]
    np.testing.assert_allclose(found.by_query[0], -losses(as_measure("rmse"), changed, model))
    assert found.values[0] > 0


def test_queries_that_tell_nothing_are_left_out():
    labels = np.where(QID[0] == QID, 0, Y)
    found = permutation_importance(MODEL, X, labels, qid=QID, n_repeats=1)
    assert np.isnan(found.by_query).tolist() == [[True] + [False] * 39] * 6
    assert found.values[0] == mean_interval(found.by_query[0, 1:]).mean


def test_what_they_are_to_trees():
    for kind, what in (("gain", "share of the gain"), ("split", "share of the splits")):
        found = importances(MODEL, kind)
        assert found.values.tolist() == MODEL.feature_importances(kind).tolist()
        assert found.names == tuple("012345")
        assert found.what == what
        assert found.to_frame().columns.tolist() == ["importance"]
    assert importances(MODEL.ensemble_).values.tolist() == MODEL.feature_importances_.tolist()


def test_as_a_frame_and_as_text():
    found = permutation_importance(MODEL, X, Y, qid=QID)
    frame = found.to_frame()
    assert frame["importance"].is_monotonic_decreasing
    best = int(found.values.argmax())
    assert frame.loc[str(best)].tolist() == [found.values[best], found.low[best], found.high[best]]
    lines = repr(found).splitlines()
    assert lines[0] == found.what
    interval = f"{found.low[best]:+.4f} to {found.high[best]:+.4f}"
    assert lines[1] == f"{best}  {found.values[best]:.4f}, {interval}"
    assert len(lines) == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"among": "rows"}, "among='rows'; expected 'all' or 'query'"),
        ({"n_repeats": 0}, "n_repeats=0; expected a whole number of at least 1"),
        ({"confidence": 95}, "confidence must be between 0 and 1, got 95"),
        ({"measure": "pooled_auc"}, "is one number for the rows of all queries together"),
        ({"feature_groups": [[0, 1]]}, "feature_groups is a list; expected a dict of lists"),
        ({"feature_groups": {"a": [0], "b": [0]}}, "feature_groups has feature 0 twice"),
        ({"feature_groups": {"a": [6]}}, "feature_groups has the index 6, but X has 6 features"),
        ({"feature_groups": {"a": []}}, r"feature_groups\['a'\] is empty; expected one or more features"),
        ({"feature_groups": {"2": [0]}}, "has a group called '2', which is also a feature outside of it"),
    ],
)
def test_what_cannot_be_asked(options, message):
    with pytest.raises(ValueError, match=message):
        permutation_importance(MODEL, X, Y, qid=QID, **options)


def test_models_that_are_not_one_sum_of_trees_are_refused():
    started = LambdaMARTRanker(max_iter=2, init=Ridge(), random_state=0).fit(X, Y, qid=QID)
    with pytest.raises(
        ValueError, match=r"model starts from Ridge\(\), which reads X itself; expected trees"
    ):
        permutation_importance(started, X, Y, qid=QID)
    several = HistGBRTClassifier(max_iter=2, random_state=0).fit(X, Y.astype(int), qid=QID)
    with pytest.raises(ValueError, match="of 5 classes, which gives each row a score for each class"):
        permutation_importance(several, X, Y.astype(int), qid=QID)
    two = HistGBRTClassifier(max_iter=2, random_state=0).fit(X, Y > 1, qid=QID)
    with pytest.raises(ValueError, match="measure is RMSE, which depends on the distances between scores"):
        permutation_importance(two, X, Y > 1, qid=QID, measure="rmse")
    assert permutation_importance(two, X, Y > 1, qid=QID, measure="auc").values[0] > 0
    without_ids = HistGBRTRegressor(max_iter=2).fit(X, Y)
    with pytest.raises(
        ValueError, match="two queries with a value, got 1: without qid= all rows are one query"
    ):
        permutation_importance(without_ids, X, Y)
    with pytest.raises(TypeError, match="model is a Ridge; expected a tree estimator"):
        permutation_importance(Ridge().fit(X, Y), X, Y, qid=QID)
