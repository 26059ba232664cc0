import numpy as np
import pytest

from ranktrees import HistGBRTRegressor
from ranktrees.constraints import Constraints
from ranktrees.searching import MANY_FEATURES, CoarseToFine, DirectSearch, FullSearch, searches
from reference import growing as slow


def kind_of(split_search, n_features, *, categorical=(), usable=None, **constraints):
    """The search that is chosen."""
    n_bins = [20] * n_features
    codes = slow.random_codes(np.random.default_rng(0), 30, n_bins)
    usable = np.arange(n_features) if usable is None else usable
    found = searches(
        split_search,
        codes,
        slow.mapper_of(n_bins, categorical),
        Constraints(usable, n_features, **constraints),
        1,
    )
    return found.func


@pytest.mark.parametrize(
    ("n_features", "options", "expected"),
    [
        (MANY_FEATURES - 1, {}, FullSearch),
        (MANY_FEATURES, {}, CoarseToFine),
        (MANY_FEATURES, {"categorical": {3}}, FullSearch),
        (MANY_FEATURES + 1, {"categorical": {3}, "usable": np.r_[:3, 4:65]}, CoarseToFine),
        (MANY_FEATURES, {"usable": np.arange(1, 64)}, FullSearch),
        (2 * MANY_FEATURES, {"max_features": 16}, CoarseToFine),
        (2 * MANY_FEATURES, {"max_features": 15}, DirectSearch),
        (MANY_FEATURES, {"interactions": [{0, 1}]}, CoarseToFine),
        (MANY_FEATURES - 1, {"interactions": [{0, 1}]}, DirectSearch),
        (MANY_FEATURES, {"usable": np.empty(0, int)}, DirectSearch),
    ],
)
def test_auto_looks_coarsely_first_where_splits_choose_among_many_numbers(n_features, options, expected):
    assert kind_of("auto", n_features, **options) is expected


def test_what_is_asked_for_is_done():
    assert kind_of("full", 40) is FullSearch
    assert kind_of("full", 40, max_features=39) is DirectSearch
    assert kind_of("full", 3, interactions=[{0, 1}]) is DirectSearch
    assert kind_of("coarse_to_fine", 1) is CoarseToFine
    assert kind_of("coarse_to_fine", 3, max_features=1) is CoarseToFine
    assert kind_of("coarse_to_fine", 3, categorical={1}, usable=np.array([0, 2])) is CoarseToFine


def test_categories_have_no_neighbours():
    with pytest.raises(ValueError, match="categories have no neighbours"):
        kind_of("coarse_to_fine", 3, categorical={1})
    X, y = np.arange(40.0).reshape(20, 2) // 4, np.arange(20.0)
    model = HistGBRTRegressor(split_search="coarse_to_fine", categorical_features=[1], max_iter=2, n_jobs=1)
    with pytest.raises(ValueError, match='split_search="auto"'):
        model.fit(X, y)


def test_cells_hide_what_happens_within_them():
    """Where the coarse search fails: a wave in step with the cells, whose two halves cancel in each."""
    codes = np.repeat(np.arange(240, dtype=np.uint8), 2)[:, None]
    gradients = np.where(codes[:, 0] % 16 < 8, 1.0, -1.0)
    mapper = slow.mapper_of([240])
    full, coarse = (
        slow.grower_of(codes, mapper, split_search=search).grow(gradients, np.ones(480))
        for search in ("full", "coarse_to_fine")
    )
    assert full.is_leaf.sum() == 30
    assert coarse.is_leaf.sum() == 1
    out_of_step = np.where(codes[:, 0] % 20 < 10, 1.0, -1.0)
    grower = slow.grower_of(codes, mapper, split_search="coarse_to_fine")
    assert grower.grow(out_of_step, np.ones(480)).is_leaf.sum() > 10
    X, y = codes.astype(float), -gradients
    rules = {"max_iter": 1, "learning_rate": 1.0, "min_samples_leaf": 1, "max_leaf_nodes": 31, "n_jobs": 1}
    rules["gradient_levels"] = None
    for search, error in (("full", 0.0), ("coarse_to_fine", 1.0), ("auto", 0.0)):
        model = HistGBRTRegressor(split_search=search, **rules).fit(X, y)
        assert np.square(model.predict(X) - y).mean() == error


@pytest.mark.parametrize("max_features", [1.0, 0.5])
def test_predicts_about_as_well_by_cells(max_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=600)
    errors = []
    for search in ("full", "coarse_to_fine"):
        model = HistGBRTRegressor(
            max_iter=60,
            learning_rate=0.1,
            max_features=max_features,
            split_search=search,
            random_state=0,
            n_jobs=1,
        )
        predicted = model.fit(X[:500], y[:500]).predict(X[500:])
        errors.append(np.square(predicted - y[500:]).mean())
    assert errors[1] < 1.5 * errors[0] < 0.1 * y.var()
