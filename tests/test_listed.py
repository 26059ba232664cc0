"""Parameters that list values: keys are respected if there are any, and unordered values are refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, OrdinalRanker, make_ranking
from ranktrees.datasets import make_clicks
from ranktrees.measures import NDCG
from ranktrees.support.listed import by_key, in_order

GAINS = [0, 1, 3, 7, 15]
NAMES = list("abcdef")


@given(st.permutations(range(6)), st.integers(0, 2))
def test_the_order_of_keys_does_not_matter(order, first):
    values = [10.0 * k for k in range(6)]
    entries = {first + k: values[k] for k in order}
    assert in_order(entries, "gain", first) == in_order(values, "gain", first) == values
    assert in_order(pd.Series(entries), "gain", first) == values
    assert by_key(pd.Series(entries), "gain") in (entries, values)


@pytest.mark.parametrize(
    "entries", [{0: 1.0, 2: 2.0}, {1: 1.0, 2: 2.0}, {"a": 1.0}, pd.Series([1.0], index=[3])]
)
def test_a_gap_among_keys_is_refused(entries):
    with pytest.raises(ValueError, match=r"gain has the keys \[.*expected 0, 1, \.\.\. without a gap"):
        in_order(entries, "gain")


@pytest.mark.parametrize("values", [{1.0, 2.0}, frozenset([1.0]), {0: 1.0}.keys()])
def test_what_has_no_order_is_refused(values):
    with pytest.raises(TypeError, match="has no order; expected a list"):
        in_order(values, "gain")


def test_a_key_that_is_there_twice_is_refused():
    with pytest.raises(ValueError, match="monotonic_cst has 'a' twice in its index"):
        by_key(pd.Series([1, 2], index=["a", "a"]), "monotonic_cst")


@pytest.mark.parametrize("kind", [dict, pd.Series])
def test_gains_discounts_and_propensities_go_by_their_keys(kind):
    assert NDCG(gain=kind(dict(reversed(list(enumerate(GAINS)))))) == NDCG(gain=GAINS)
    assert NDCG(discount=kind({2: 0.5, 1: 1.0})) == NDCG(discount=[1.0, 0.5])
    X, y, qid = make_ranking(5, random_state=0, return_X_y_qid=True)
    logs = [
        make_clicks(y, qid=qid, n_shown=2, propensities=propensities, random_state=0)
        for propensities in (kind({2: 0.25, 1: 1.0}), [1.0, 0.25])
    ]
    assert np.array_equal(logs[0].propensities, logs[1].propensities)
    with pytest.raises(ValueError, match="propensities has the keys"):
        LambdaMARTRanker(propensities=kind({3: 1.0, 4: 0.5})).fit(X, y > 2, qid=qid, position=np.ones(len(y)))


@pytest.fixture(scope="module")
def frame():
    X, y, _ = make_ranking(20, n_features=6, random_state=0, return_X_y_qid=True)
    return pd.DataFrame(np.round(3 * X).clip(0, 5), columns=NAMES), y


def digest(frame, **parameters):
    model = HistGBRTRegressor(max_iter=5, min_samples_leaf=5, random_state=0, **parameters)
    return model.fit(*frame).ensemble_.digest()


@pytest.mark.parametrize(
    ("parameter", "entries", "listed"),
    [
        ("monotonic_cst", {"c": 0, "b": 0, "a": -1, "d": 0, "e": 1, "f": 0}, [-1, 0, 0, 0, 1, 0]),
        ("feature_costs", {"f": 0.0, "b": 1e6, "a": 0.0, "c": 0.0, "e": 0.0, "d": 0.0}, [0, 1e6, 0, 0, 0, 0]),
        ("categorical_features", {"f": True, "a": False, "b": True}, ["b", "f"]),
    ],
)
def test_a_series_goes_by_the_names_in_its_index(frame, parameter, entries, listed):
    digests = {digest(frame, **{parameter: kind(entries)}) for kind in (dict, pd.Series)}
    assert digests == {digest(frame, **{parameter: listed})} != {digest(frame)}


def test_series_that_list_categorical_features(frame):
    mask = [False] * 5 + [True]
    for features in (pd.Series(mask), pd.Series(mask, index=NAMES), pd.Series(["f"], index=[7]), {"f": True}):
        assert digest(frame, categorical_features=features) == digest(frame, categorical_features=mask)
    assert digest(frame, categorical_features={"f": False}) == digest(frame, categorical_features=None)
    with pytest.raises(ValueError, match="expected True or False for each name or index"):
        digest(frame, categorical_features={"f": "yes"})
    with pytest.raises(ValueError, match="mask of shape"):
        digest(frame, categorical_features=pd.Series([True] * 5))


@pytest.mark.parametrize("parameter", ["monotonic_cst", "feature_costs", "categorical_features"])
def test_a_series_that_counts_does_not_go_with_columns_of_numbers_in_another_order(frame, parameter):
    X, y = frame
    values = pd.Series([parameter == "categorical_features"] * len(NAMES))
    model = HistGBRTRegressor(max_iter=2, **{parameter: values})
    model.fit(X.set_axis(range(6), axis=1), y)
    with pytest.raises(
        ValueError, match=rf"{parameter} has 0, .* may be the position of a column or its name"
    ):
        model.fit(X.set_axis(range(5, -1, -1), axis=1), y)


@pytest.mark.parametrize("names", [[("f", j) for j in range(6)], pd.date_range("2024-01-01", periods=6)])
def test_names_that_are_no_strings_are_keys(frame, names):
    X, y = frame
    X = X.set_axis(names, axis=1)
    model = HistGBRTRegressor(max_iter=5, min_samples_leaf=5, random_state=0)
    digests = {
        clone(model).set_params(monotonic_cst=signs).fit(X, y).ensemble_.digest()
        for signs in ({2: -1}, {X.columns[2]: -1}, [0, 0, -1, 0, 0, 0])
    }
    assert len(digests) == 1
    with pytest.raises(ValueError, match="names 'c', which is not a feature of X; X has"):
        model.set_params(monotonic_cst={"c": -1}).fit(X, y)


def test_grades_of_a_series(frame):
    X, y = frame
    values = {4: 10, 3: 5, 2: 2, 1: 1, 0: 0}
    models = [
        OrdinalRanker(HistGBRTRegressor(max_iter=2), scoring=kind(values)) for kind in (dict, pd.Series)
    ]
    one, other = (model.fit(X, y, qid=np.zeros(len(y))) for model in models)
    assert np.array_equal(one.values_, other.values_)
    with pytest.raises(TypeError, match=r"scoring=.* has no order"):
        OrdinalRanker(HistGBRTRegressor(max_iter=2), scoring={1, 2}).fit(X, y, qid=np.zeros(len(y)))


@pytest.mark.parametrize("flat", [["a", "b"], [0, 1]])
def test_sets_of_features_that_interact_need_brackets(frame, flat):
    with pytest.raises(TypeError, match=r"interaction_cst has the entry .*; expected sets of features"):
        digest(frame, interaction_cst=flat)
