"""What the tests of scikit-learn's forests take for granted, of `RandomForestRanker`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.tree import DecisionTreeRegressor

from ranktrees import RandomForestRanker

pytestmark = pytest.mark.filterwarnings("ignore::ranktrees.MissingQueryWarning")


@pytest.fixture(scope="module")
def rows():
    return make_friedman1(400, 6, random_state=0)


def forest(n=10, **parameters):
    return RandomForestRanker(
        n, **{"min_samples_leaf": 1, "max_features": None, "random_state": 0} | parameters
    )


def test_a_tree_of_all_rows_is_scikit_learns(rows):
    X, y = np.round(rows[0] * 20), np.round(rows[1])
    ours = forest(1, bootstrap=False, split_search="exact", max_depth=4, max_leaf_nodes=None).fit(X, y)
    theirs = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    assert (
        np.isclose(ours.predict(X), theirs.predict(X), atol=1e-5).mean() > 0.95
    )  # cuts that gain the same differ


def test_forests_are_as_good_as_scikit_learns(rows):
    X, X_test, y, y_test = train_test_split(*rows, random_state=0)
    ours = forest(60, measure="rmse", max_features=0.5).fit(X, y)
    theirs = RandomForestRegressor(60, max_features=0.5, random_state=0).fit(X, y)
    errors = [np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) for model in (ours, theirs)]
    assert errors[0] < 1.1 * errors[1]


def test_out_of_bag_error_foretells_that_of_new_rows(rows):
    X, X_test, y, y_test = train_test_split(*rows, random_state=0)
    model = forest(60, measure="rmse", oob_score=True).fit(X, y)
    assert model.oob_score_ == pytest.approx(model.score(X_test, y_test), rel=0.2)
    assert model.oob_prediction_.shape == y.shape


def test_out_of_bag_scores_need_a_bootstrap(rows):
    with pytest.raises(ValueError, match="bootstrap"):
        forest(bootstrap=False, oob_score=True).fit(*rows)


@pytest.mark.parametrize("max_samples", [0, -0.5, 2.0, 401, "half"])
def test_samples_that_cannot_be_drawn_are_refused(max_samples, rows):
    with pytest.raises(ValueError, match="max_samples"):
        forest(max_samples=max_samples).fit(*rows)


def test_a_sample_of_all_rows_is_the_default(rows):
    models = [forest(max_samples=size).fit(*rows) for size in (None, 1.0, 400)]
    assert models[0].ensemble_ == models[1].ensemble_ == models[2].ensemble_


def test_smaller_samples_grow_smaller_trees(rows):
    sizes = [len(forest(5, max_samples=share).fit(*rows).ensemble_.nodes) for share in (0.1, 0.5, 1.0)]
    assert sizes == sorted(sizes)


def test_importances_add_up_to_one_and_find_what_matters():
    X, y = make_friedman1(400, 8, random_state=0)
    importances = forest(20).fit(X, y).feature_importances_
    assert importances.sum() == pytest.approx(1.0)
    assert importances[:5].min() > importances[5:].max()


def test_labels_without_a_difference_make_no_feature_important(rows):
    model = forest(3).fit(rows[0], np.ones(400))
    assert_array_equal(model.feature_importances_, np.zeros(6))
    assert_allclose(model.predict(rows[0]), 1.0)


@pytest.mark.parametrize("max_leaf_nodes", [2, 5])
@pytest.mark.parametrize("max_depth", [1, 3])
def test_both_limits_of_a_tree_hold(max_leaf_nodes, max_depth, rows):
    model = forest(3, max_leaf_nodes=max_leaf_nodes, max_depth=max_depth).fit(*rows)
    leaves = [np.count_nonzero(tree.nodes["left"] < 0) for tree in model.ensemble_]
    assert max(leaves) <= min(max_leaf_nodes, 2**max_depth)


LAYOUTS = {
    "by column": np.asfortranarray,
    "every other": lambda X: np.repeat(X, 2, axis=0)[::2],
    "from the end": lambda X: X[::-1].copy()[::-1],
    "single": lambda X: X.astype(np.float32).astype(np.float64),
    "lists": lambda X: X.tolist(),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_matrix,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_how_numbers_lie_in_memory_changes_no_tree(layout, rows):
    X, y = np.round(4 * rows[0]) / 4, rows[1]
    assert forest(3).fit(LAYOUTS[layout](X), y).ensemble_ == forest(3).fit(X, y).ensemble_


def test_rows_that_are_one_dimensional_say_how_to_reshape(rows):
    with pytest.raises(ValueError, match=r"(?i)expected 2d array"):
        forest(1).fit(rows[0][:, 0], rows[1])
    model = forest(1).fit(*rows)
    with pytest.raises(ValueError, match=r"(?i)expected 2d array"):
        model.predict(rows[0][0])


def test_trees_differ_because_of_their_samples_and_seeds(rows):
    trees = list(forest(8).fit(*rows).ensemble_)
    assert len({tree.nodes.tobytes() for tree in trees}) == 8
    seeds = [forest(2, random_state=seed).fit(*rows).ensemble_ for seed in (0, 0, 1)]
    assert seeds[0] == seeds[1] != seeds[2]


def test_weights_of_zero_are_rows_that_are_not_there_for_their_means(rows):
    X, y = rows
    weight = (np.arange(400) % 2).astype(float)
    spoiled = np.where(weight > 0, y, 1e6)
    assert np.abs(forest(5).fit(X, spoiled, weight).predict(X)).max() < 100


def test_searches_find_parameters_of_forests(rows):
    search = GridSearchCV(forest(4, measure="rmse"), {"max_depth": [1, 6]}, cv=2).fit(*rows)
    assert search.best_params_ == {"max_depth": 6}
