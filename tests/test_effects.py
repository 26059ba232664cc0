"""How scores depend on a feature: against predictions of changed rows, and where effects add up."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.inspection import partial_dependence as of_scikit_learn
from sklearn.linear_model import Ridge

from ranktrees import HistGBRTRegressor, LambdaMARTRanker
from ranktrees.inspection import accumulated_local_effects, partial_dependence

RANDOM = np.random.default_rng(0)
N = 600
PRICE = RANDOM.normal(size=N)
FRAME = pd.DataFrame(
    {
        "price": PRICE,  # float64, with missing values
        "near": (PRICE + 0.1 * RANDOM.normal(size=N)).astype(np.float32),
        "count": RANDOM.integers(0, 6, N),
        "flag": RANDOM.random(N) < 0.5,
        "site": pd.Categorical(RANDOM.choice(["uk", "fr", "de", None], N)),
        "size": pd.Categorical(RANDOM.choice(["S", "M", "L"], N), ["S", "M", "L"], ordered=True),
    }
)
FRAME.loc[RANDOM.random(N) < 0.1, "price"] = np.nan
LABELS = (
    FRAME["price"].fillna(0.5)
    + 0.5 * FRAME["near"]
    + 0.2 * FRAME["count"] * (1 + (FRAME["site"] == "fr"))
    - (FRAME["site"] == "uk")
    + 0.5 * FRAME["flag"]
    + 0.4 * FRAME["size"].cat.codes
)
MODEL = HistGBRTRegressor(max_iter=30, max_leaf_nodes=8, min_samples_leaf=5, random_state=0).fit(
    FRAME, LABELS
)
STUMPS = HistGBRTRegressor(max_iter=200, max_leaf_nodes=2, random_state=0).fit(FRAME, LABELS)
FUNCTIONS = {"partial": partial_dependence, "ale": accumulated_local_effects}


@pytest.mark.parametrize("name", FRAME.columns)
def test_partial_dependence_is_the_mean_of_changed_rows(name):
    found = partial_dependence(MODEL, FRAME, name, grid_resolution=12)
    for value, effect in zip(found.values, found.effect, strict=True):
        column = pd.Series([value] * N, dtype=FRAME[name].dtype)
        assert MODEL.predict(FRAME.assign(**{name: column})).mean() == pytest.approx(effect)
    if not FRAME[name].isna().any():
        assert np.isnan(found.missing)
    else:
        lacking = FRAME.assign(**{name: pd.Series([None] * N, dtype=FRAME[name].dtype)})
        assert MODEL.predict(lacking).mean() == pytest.approx(found.missing)
    assert found.feature == name


def test_values_are_those_of_rows():
    assert partial_dependence(MODEL, FRAME, "count").values.tolist() == [0, 1, 2, 3, 4, 5]
    assert partial_dependence(MODEL, FRAME, "site").values.tolist() == ["de", "fr", "uk"]
    assert partial_dependence(MODEL, FRAME, "size").values.tolist() == ["S", "M", "L"]
    found = partial_dependence(MODEL, FRAME, "price", grid_resolution=11, percentiles=(0, 1))
    known = FRAME["price"].dropna()
    expected = known.quantile(np.linspace(0, 1, 11), interpolation="lower").tolist()
    assert (found.values[0], found.values[-1]) == (expected[0], expected[-1])
    assert set(found.values) <= set(known)
    np.testing.assert_array_equal(found.deciles, found.values[1:-1])
    narrow = partial_dependence(MODEL, FRAME, "price", percentiles=(0.25, 0.75)).values
    assert known.quantile([0.25, 0.75]).tolist() == pytest.approx([narrow[0], narrow[-1]], abs=0.02)


def test_partial_dependence_is_scikit_learns_where_it_has_one():
    X = FRAME[["price", "near"]].astype(float)
    model = LambdaMARTRanker(max_iter=5, random_state=0).fit(
        X, LABELS.rank(pct=True).round(1), qid=np.arange(N) // 20
    )
    found = partial_dependence(model, X, "price", grid_resolution=9)
    theirs = of_scikit_learn(model, X, ["price"], custom_values={"price": found.values})
    np.testing.assert_allclose(found.effect, theirs["average"][0])


@pytest.mark.parametrize("name", FRAME.columns)
@pytest.mark.parametrize("resolution", [4, 50])
def test_where_effects_add_up_both_are_the_same_up_to_a_constant(name, resolution):
    """Stumps are a sum of functions of one feature each."""
    partial, local = (of(STUMPS, FRAME, name, grid_resolution=resolution) for of in FUNCTIONS.values())
    by_value = dict(zip(partial.values, partial.effect, strict=True))
    expected = np.array([by_value[value] for value in local.values])
    np.testing.assert_allclose(local.effect - local.effect[0], expected - expected[0], atol=1e-12)
    if np.isnan(partial.missing):
        assert np.isnan(local.missing)
    else:
        assert local.missing - local.effect[0] == pytest.approx(partial.missing - expected[0])
    assert np.ptp(local.effect) > 0.1


def test_local_effects_are_those_of_rows_in_each_interval():
    found = accumulated_local_effects(MODEL, FRAME, "price", grid_resolution=6)
    z, price = found.values, FRAME["price"]
    steps, counts = [], []
    for lower, upper in itertools.pairwise(z):
        inside = FRAME[(price > lower) & (price <= upper) | (price == z[0]) & (lower == z[0])]
        ends = (MODEL.predict(inside.assign(price=end)) for end in (upper, lower))
        steps.append(np.subtract(*ends).mean())
        counts.append(len(inside))
    curve = np.append(0, np.cumsum(steps))
    curve -= np.average((curve[1:] + curve[:-1]) / 2, weights=counts)
    np.testing.assert_allclose(found.effect, curve)
    lacking = FRAME[price.isna()]
    nodes = (np.append(counts, 0) + np.append(0, counts)) / 2
    usual = np.average([MODEL.predict(lacking.assign(price=value)) for value in z], axis=0, weights=nodes)
    assert found.missing == pytest.approx((MODEL.predict(lacking) - usual).mean())


def test_categories_come_in_the_order_of_what_the_model_makes_of_them():
    partial, local = (of(MODEL, FRAME, "site") for of in FUNCTIONS.values())
    order = partial.values[np.argsort(partial.effect)].tolist()
    assert local.values.tolist() == order
    site, steps = FRAME["site"], []
    for one, other in itertools.pairwise(order):
        either = FRAME[site.isin([one, other])]
        ends = (
            MODEL.predict(either.assign(site=pd.Categorical([level] * len(either)))) for level in (other, one)
        )
        steps.append(np.subtract(*ends).mean())
    np.testing.assert_allclose(np.diff(local.effect), steps)
    shares = [(site == level).sum() for level in order]
    assert np.average(local.effect, weights=shares) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_sparse_rows_have_the_effects_of_dense_ones(function):
    rows = np.where(RANDOM.random((200, 3)) < 0.6, 0.0, RANDOM.random((200, 3)))
    rows[::7, 1] = np.nan
    model = HistGBRTRegressor(max_iter=10, random_state=0).fit(rows, np.nan_to_num(rows).sum(axis=1))
    for column in (0, 1):
        dense, found = (function(model, kind(rows), column) for kind in (np.asarray, sparse.csr_array))
        assert found.effect.tobytes() == dense.effect.tobytes()
        assert (found.missing == dense.missing) or column == 0


def test_codes_are_categories_if_they_are_named():
    codes = np.stack([np.arange(90) % 3, np.arange(90) // 3], axis=1)
    model = HistGBRTRegressor(max_iter=5, categorical_features=[0], min_samples_leaf=5).fit(
        codes, codes[:, 0] == 1
    )
    found = partial_dependence(model, codes, 0)
    assert found.values.tolist() == [0, 1, 2]
    assert found.deciles is None
    assert found.effect.argmax() == 1


def test_a_column_of_one_value_has_no_effect():
    rows = np.stack([np.ones(60), np.arange(60.0)], axis=1)
    model = HistGBRTRegressor(max_iter=3, min_samples_leaf=5).fit(rows, rows[:, 1])
    assert accumulated_local_effects(model, rows, 0).effect.tolist() == [0.0]
    assert partial_dependence(model, rows, 0).effect == pytest.approx([model.predict(rows).mean()])


def test_as_a_frame_and_as_text():
    found = partial_dependence(MODEL, FRAME, "site")
    frame = found.to_frame()
    assert frame["value"].tolist()[:3] == ["de", "fr", "uk"]
    assert frame["value"].isna().tolist() == [False, False, False, True]
    assert frame["effect"].tolist() == [*found.effect, found.missing]
    assert repr(found).startswith("FeatureEffect(site, partial: ")
    assert repr(found).endswith(f" over 3 values, {found.missing:.4g} if missing)")


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_what_cannot_be_asked(function):
    with pytest.raises(ValueError, match=r"feature names 'prize', .* the nearest are \['price', 'size'\]"):
        function(MODEL, FRAME, "prize")
    with pytest.raises(ValueError, match="grid_resolution=1; expected a whole number of at least 2"):
        function(MODEL, FRAME, "price", grid_resolution=1)
    for wrong in ((0.9, 0.1), (5, 95), 0.5, "ab"):
        with pytest.raises(
            ValueError, match=r"percentiles=.*; expected two numbers, 0 <= lowest < highest <= 1"
        ):
            function(MODEL, FRAME, "price", percentiles=wrong)
    with pytest.raises(ValueError, match="all values of the feature price are missing"):
        function(MODEL, FRAME.assign(price=np.nan), "price")
    started = HistGBRTRegressor(max_iter=2, init=Ridge()).fit(FRAME[["near"]], LABELS)
    with pytest.raises(ValueError, match=r"model starts from Ridge\(\), which reads X itself"):
        function(started, FRAME[["near"]], "near")
