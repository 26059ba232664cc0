"""Trees as a table, and the contributions of features to scores."""

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranktrees import (
    Ensemble,
    EnsembleRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    as_measure,
    contributions,
    interactions,
    make_ranking,
    tree_table,
)
from ranktrees.inspection import local_optimum
from reference import inspection as slow
from reference import scoring as reference
from widths import outputs_of

X, Y, QID = make_ranking(30, rows_per_query=15, n_features=8, random_state=0, return_X_y_qid=True)


def random_ensemble(seed, **others):
    ensemble = reference.random_ensemble(np.random.default_rng(seed), 3, 12, n_features=5, **others)
    nodes = ensemble.nodes.copy()
    nodes["count"] += 1
    return ensemble._replace(nodes=nodes)


def check_sums(model, rows, scores):
    parts, start = contributions(model, rows)
    assert parts.shape == (len(scores), model.n_features_in_)
    np.testing.assert_allclose(start + parts.sum(axis=1), scores, rtol=1e-9, atol=1e-12)
    return parts, start


# ---- contributions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_contributions_are_shapley_values(seed, dtype):
    ensemble = random_ensemble(seed, average=seed % 2 == 1, base=0.25, many=seed % 3 == 1)
    rows = reference.random_rows(np.random.default_rng(seed), ensemble, 6, dtype)
    parts, start = contributions(ensemble, rows)
    expected, expected_start = slow.contributions(ensemble, rows)
    np.testing.assert_allclose(parts, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(start, expected_start, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_interactions_are_shapley_interaction_values(seed):
    ensemble = random_ensemble(seed, average=seed % 2 == 1, many=seed == 2)
    rows = reference.random_rows(np.random.default_rng(seed), ensemble, 6)
    pairs = interactions(ensemble, rows)
    np.testing.assert_allclose(pairs, slow.interactions(ensemble, rows), rtol=1e-9, atol=1e-12)
    assert (pairs == pairs.transpose(0, 2, 1)).all()


@pytest.mark.parametrize(
    "model",
    [
        HistGBRTRegressor(max_iter=5, max_leaf_nodes=100, min_samples_leaf=1, random_state=0),
        HistGBRTClassifier(max_iter=5, random_state=0),
    ],
    ids=["regressor", "classifier"],
)
def test_interactions_add_up_to_contributions(model):
    model = model.fit(X, Y)
    pairs, parts = interactions(model, X[:20]), contributions(model, X[:20]).values
    np.testing.assert_allclose(pairs.sum(axis=-1), parts, rtol=1e-9, atol=1e-12)
    several = parts.ndim == 3
    of_sparse = interactions(model, sp.csr_array(X[:20]))
    for k, of_class in enumerate(of_sparse if several else [of_sparse]):
        dense = pairs[:, k] if several else pairs
        np.testing.assert_array_equal([each.toarray() for each in of_class], dense)


def test_rows_and_trees_go_in_parts(monkeypatch):
    ensemble = random_ensemble(7)
    dense = np.nan_to_num(reference.random_rows(np.random.default_rng(7), ensemble, 23))
    rows = sp.csr_array(dense)
    parts, start = contributions(ensemble, rows)
    pairs = interactions(ensemble, dense)
    monkeypatch.setattr("ranktrees.inspection.paths.VALUES_AT_ONCE", 20)
    monkeypatch.setattr("ranktrees.inspection.paths.NODES_AT_ONCE", 1)
    found, found_start = contributions(ensemble, rows)
    assert found.toarray().tobytes() == parts.toarray().tobytes()
    np.testing.assert_allclose(found_start, start, rtol=1e-15)
    assert interactions(ensemble, dense).tobytes() == pairs.tobytes()


CONTRIBUTIONS_OF_DEEP_TREES = """
from ranktrees import RandomForestRanker, contributions, interactions, make_ranking
X, y, qid = make_ranking(40, random_state=0, return_X_y_qid=True)
forest = RandomForestRanker(3, random_state=0).fit(X, y, qid=qid)
digests = set()
for n_jobs in (1, 3):
    parts, start = contributions(forest.set_params(n_jobs=n_jobs), X[:200])
    digests.add(parts.tobytes() + start.tobytes() + interactions(forest, X[:9]).tobytes())
[digest] = digests
print(digest.hex())
"""


def test_contributions_are_the_same_for_any_threads_and_registers():
    assert len(outputs_of(CONTRIBUTIONS_OF_DEEP_TREES)) == 1


@pytest.mark.parametrize(
    "model",
    [
        LambdaMARTRanker(max_iter=10, random_state=0),
        LambdaMARTRanker(max_iter=5, init=RandomForestRanker(3, random_state=0), random_state=0),
        LambdaMARTRanker(max_iter=5, init=Ridge(), random_state=0),
        HistGBRTRegressor(max_iter=10, max_depth=1, random_state=0),
        RandomForestRanker(3, random_state=0),
    ],
    ids=["lambdamart", "from a forest", "from another model", "stumps", "forest"],
)
def test_contributions_sum_to_scores(model):
    model = model.fit(X, Y, qid=QID)
    _, start = check_sums(model, X, model.predict(X))
    check_sums(model, sp.csr_array(X), model.predict(sp.csr_array(X)))
    assert (len(set(start)) == 1) != isinstance(getattr(model, "init_", None), Ridge)
    assert (contributions(model, X[:3])[0] == contributions(model, X)[0][:3]).all()


def test_contributions_of_sparse_rows_are_sparse():
    """A hundred thousand columns of which few are used: dense they would take 400 MB."""
    columns = np.sort(np.random.default_rng(0).permutation(100_000)[: X.shape[1]])
    wide = sp.coo_array(X)
    wide = sp.csr_matrix((wide.data, (wide.row, columns[wide.col])), shape=(len(X), 100_000))
    for model in (
        HistGBRTRegressor(max_iter=5, random_state=0),
        HistGBRTClassifier(max_iter=5, random_state=0),
    ):
        expected = contributions(model.fit(X, Y), X)
        parts, start = contributions(model.fit(wide, Y), wide)
        several = isinstance(parts, list)
        assert several == (len(expected[0].shape) == 3)
        np.testing.assert_array_equal(start, expected[1])
        for number, part in enumerate(parts if several else [parts]):
            dense = expected[0][:, number] if several else expected[0]
            assert part.shape == wide.shape
            assert part.nnz == np.count_nonzero(dense)
            np.testing.assert_allclose(part[:, columns].toarray(), dense, rtol=1e-9, atol=1e-12)


def test_contributions_are_of_the_score_before_a_link():
    classifier = HistGBRTClassifier(max_iter=5, random_state=0).fit(X, Y > 1)
    check_sums(classifier, X, classifier.decision_function(X))
    counts = HistGBRTRegressor("poisson", max_iter=5, random_state=0).fit(X, Y)
    check_sums(counts, X, np.log(counts.predict(X)))


def test_contributions_to_each_of_several_classes():
    model = HistGBRTClassifier(max_iter=5, random_state=0).fit(X, Y)
    parts, start = contributions(model, X)
    assert parts.shape == (len(X), len(model.classes_), X.shape[1])
    np.testing.assert_allclose(start + parts.sum(axis=2), model.decision_function(X), atol=1e-12)
    with pytest.raises(AttributeError, match=r"has no ensemble_.*expected two classes, or ensembles_\[k\]"):
        tree_table(model)
    table = tree_table(model.ensembles_[2])
    assert table["tree"].nunique() == 5


def test_what_trees_do_not_ask_for_adds_nothing():
    constant = np.column_stack([X, np.ones(len(X))])
    model = LambdaMARTRanker(max_iter=5, random_state=0).fit(constant, Y, qid=QID)
    parts, _ = check_sums(model, constant, model.predict(constant))
    assert (parts[:, -1] == 0).all()
    leaf = LambdaMARTRanker(max_iter=2, min_samples_leaf=len(X), random_state=0).fit(X, Y, qid=QID)
    assert (check_sums(leaf, X, leaf.predict(X))[0] == 0).all()


def test_models_without_contributions_are_refused():
    with pytest.raises(TypeError, match="model is a Ridge; expected a tree estimator"):
        contributions(Ridge(), X)
    pipeline = make_pipeline(StandardScaler(), LambdaMARTRanker(max_iter=2))
    with pytest.raises(TypeError, match=r"model is a Pipeline; .* Pass its last step, pipeline\[-1\]"):
        contributions(pipeline, X)
    search = GridSearchCV(HistGBRTRegressor(max_iter=2), {"max_leaf_nodes": [4]}, cv=2).fit(X, Y)
    with pytest.raises(TypeError, match=r"model is a GridSearchCV; .* Pass its best_estimator_"):
        contributions(search, X)
    with pytest.raises(NotFittedError):
        contributions(LambdaMARTRanker(), X)
    nodes = reference.stump()
    nodes["count"][2] = 0
    with pytest.raises(ValueError, match="tree 0 has nodes with a count of 0"):
        contributions(Ensemble.from_trees([nodes], n_features=1), [[0.0]])


# ---- contributions as a result -----------------------------------------------------------------------------

NAMES = list("abcdefgh")


def frame_with_sites(n=40):
    frame = pd.DataFrame(X[:n].copy(), columns=NAMES, index=[f"row {i}" for i in range(n)])
    frame["site"] = pd.Categorical(np.where(Y[:n] > 1, "uk", "fr"))
    frame.loc[::4, "c"] = np.nan
    return frame


def explained(n=40):
    """Contributions to the scores of a frame, and these scores."""
    frame = frame_with_sites(len(X))
    model = HistGBRTRegressor(max_iter=5, max_features=0.6, random_state=0).fit(frame, Y)
    return contributions(model, frame[:n]), model.predict(frame[:n])


def test_contributions_unpack_as_a_pair():
    found, scores = explained()
    parts, start = found
    assert parts is found.values is found[0]
    assert start is found.start is found[1]
    assert len(found) == 2
    assert repr(found) == "Contributions(40 rows, 9 features)"
    np.testing.assert_allclose(start + parts.sum(axis=1), scores)


@pytest.mark.parametrize("of", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_contributions_become_a_frame(of):
    model = HistGBRTRegressor(max_iter=5, random_state=0).fit(of(X), Y)
    found = contributions(model, of(X[:7]))
    frame = found.to_frame()
    assert frame.columns.tolist() == list(found.feature_names) == list(range(8))
    dense = found.values.toarray() if sp.issparse(found.values) else found.values
    np.testing.assert_array_equal(frame.to_numpy(), dense)
    assert found._repr_html_() == frame._repr_html_()


def test_a_frame_keeps_its_names_and_index():
    found, _ = explained()
    frame = found.to_frame()
    assert found.feature_names == (*NAMES, "site")
    assert frame.columns.tolist() == [*NAMES, "site"]
    assert frame.index.tolist() == frame_with_sites().index.tolist()


def test_a_difference_adds_up_to_that_of_the_scores():
    found, scores = explained()
    why, back = found.difference(3, 8), found.difference(8, 3)
    np.testing.assert_allclose(why.scores, scores[[3, 8]])
    assert why.values.sum() == pytest.approx(scores[3] - scores[8], rel=1e-12)
    np.testing.assert_array_equal(why.values, -back.values)
    by_way = found.difference(3, 20).values + found.difference(20, 8).values
    np.testing.assert_allclose(why.values, by_way, atol=1e-12)
    frame, rows = why.to_frame(), frame_with_sites()
    assert frame["adds"].abs().is_monotonic_decreasing
    assert frame["above"].to_dict() == rows.iloc[3].to_dict()
    assert frame.loc["c", "below"] is None
    assert frame.loc["site", "above"] == rows["site"].iloc[3]
    assert repr(why).startswith(f"ScoreDifference({scores[3] - scores[8]:+.4g}: {frame.index[0]} ")


def test_a_difference_has_what_another_model_tells_apart():
    model = LambdaMARTRanker(max_iter=5, init=Ridge(), random_state=0).fit(X, Y, qid=QID)
    scores = model.predict(X[:2])
    why = contributions(model, X[:2]).difference(0, 1)
    assert why.start != 0
    assert why.start + why.values.sum() == pytest.approx(scores[0] - scores[1], rel=1e-9)


def test_of_several_classes_one_is_picked():
    model = HistGBRTClassifier(max_iter=5, random_state=0).fit(X, Y)
    for rows in (X, sp.csr_array(X)):
        found = contributions(model, rows)
        assert found._repr_html_() is None
        for use, given in ((found.to_frame, ()), (found.plot, ()), (found.difference, (0, 1))):
            with pytest.raises(ValueError, match=r"5 classes; expected one: .* of_class\(0\)"):
                use(*given)
        one = found.of_class(2)
        np.testing.assert_allclose(
            one.start + one.values.sum(axis=1), model.decision_function(X)[:, 2], atol=1e-12
        )
        with pytest.raises(ValueError, match=r"label=7; expected one of the classes .* \[0, 1, 2, 3, 4\]"):
            found.of_class(7)


@pytest.mark.parametrize("row", [-1, 40, 1.5])
def test_rows_that_there_are_not(row):
    found, _ = explained()
    for use, name in ((found.plot, "row"), (lambda row: found.difference(0, row), "below")):
        with pytest.raises(ValueError, match=f"{name}={row}; expected the position .* from 0 to 39"):
            use(row)
    with pytest.raises(ValueError, match="max_features=0; expected a whole number of at least 1"):
        found.plot(max_features=0)


def labels_and_bars(ax):
    return [each.get_text() for each in ax.get_yticklabels()], [bar.get_width() for bar in ax.patches]


def test_bars_lead_from_the_start_to_the_score():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    found, scores = explained()
    ax = found.plot(4, max_features=3)
    labels, widths = labels_and_bars(ax)
    order = np.argsort(-abs(found.values[4]))
    assert labels[0] == "others"
    assert [label.split(" = ")[0] for label in labels[:0:-1]] == [found.feature_names[f] for f in order[:3]]
    np.testing.assert_allclose(widths[:0:-1], found.values[4, order[:3]])
    ends = ax.patches[0].get_x(), ax.patches[-1].get_x() + widths[-1]
    assert ends == pytest.approx((found.start[4], scores[4]))
    everything, _ = labels_and_bars(found.plot(4, ax=ax.figure.add_subplot()))
    assert {"c = missing", f"site = {frame_with_sites()['site'].iloc[4]}"} <= set(everything)
    ax = found.difference(4, 9).plot()
    labels, widths = labels_and_bars(ax)
    assert "c: missing, not " in " ".join(labels)
    ends = ax.patches[0].get_x(), ax.patches[-1].get_x() + widths[-1]
    assert ends == pytest.approx((scores[9], scores[4]))
    pyplot.close("all")


@pytest.mark.parametrize("of", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_dot_for_each_row_and_feature(of):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    rows = X[:50].copy()
    rows[:5, 0] = np.nan
    model = HistGBRTRegressor(max_iter=5, random_state=0).fit(X, Y)
    found = contributions(model, of(rows))
    ax = pyplot.subplots()[1]
    assert found.plot(max_features=8, ax=ax) is ax
    missing, known = ax.collections[::2], ax.collections[1::2]
    order = np.argsort(-abs(contributions(model, rows).values).mean(axis=0), kind="stable")[::-1]
    for feature, label, grey, dots in zip(order, ax.get_yticklabels(), missing, known, strict=True):
        is_nan = np.isnan(rows[:, feature])
        assert label.get_text() == f"feature {feature}"
        assert len(grey.get_offsets()) == is_nan.sum()
        adds = contributions(model, rows).values[~is_nan, feature]
        np.testing.assert_allclose(dots.get_offsets()[:, 0], adds)
        by_value = np.argsort(rows[~is_nan, feature])
        assert (np.diff(dots.get_array()[by_value]) >= 0).all()
        assert (dots.get_array().min(), dots.get_array().max()) == (0, 1)
    pyplot.close("all")


def test_contributions_are_an_explanation_of_shap():
    shap = pytest.importorskip("shap")
    found, _ = explained()
    told = found.to_shap()
    assert isinstance(told, shap.Explanation)
    np.testing.assert_array_equal(told.values, found.values)
    np.testing.assert_array_equal(told.base_values, found.start)
    assert told.feature_names == [*NAMES, "site"]
    assert told.display_data[3].tolist()[-1] == frame_with_sites()["site"].iloc[3]
    model = HistGBRTClassifier(max_iter=3, random_state=0).fit(X, Y)
    dense, of_sparse = (contributions(model, of(X[:9])) for of in (np.asarray, sp.csr_array))
    for each in (dense.to_shap(), of_sparse.to_shap()):
        np.testing.assert_array_equal(each.values, dense.values.transpose(0, 2, 1))
        np.testing.assert_array_equal(each[..., 2].values, dense.of_class(2).values)


@pytest.mark.parametrize(
    ("package", "use", "message"),
    [
        ("matplotlib", lambda found: found.plot(), r"pip install .ranktrees\[plot\]"),
        ("shap", lambda found: found.to_shap(), r"pip install .ranktrees\[shap\]"),
        ("pandas", lambda found: found.to_frame(), "pip install pandas"),
    ],
    ids=["matplotlib", "shap", "pandas"],
)
def test_what_is_not_installed_is_named(package, use, message, monkeypatch):
    found = contributions(random_ensemble(0), np.zeros((3, 5)))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=message):
        use(found)
    assert package != "pandas" or found._repr_html_() is None


# ---- tables ------------------------------------------------------------------------------------------------


def test_a_table_tells_the_nodes():
    ensemble = random_ensemble(1)
    table = tree_table(ensemble)
    assert table.columns.tolist() == [
        *("tree", "node", "depth", "feature", "cut", "categories", "missing", "left", "right"),
        *("gain", "value", "count"),
    ]
    assert len(table) == len(ensemble.nodes)
    for t, tree in enumerate(ensemble):
        of_tree = table[table["tree"] == t].set_index("node")
        assert of_tree["depth"].max() == tree.depth
        for i, node in enumerate(tree.nodes):
            told = of_tree.loc[i]
            assert (told["value"], told["count"]) == (node["value"], node["count"])
            if node["feature"] < 0:
                assert told[["feature", "cut", "categories", "missing", "gain"]].isna().all()
                assert (told["left"], told["right"]) == (-1, -1)
                continue
            assert told["feature"] == node["feature"]
            assert (told["left"], told["right"], told["gain"]) == (node["left"], node["right"], node["gain"])
            assert told["missing"] == ("left" if node["missing_left"] else "right")
            if node["categories"] < 0:
                assert told["cut"] == node["cut"]
                assert told["categories"] is None
            else:
                values = ensemble.categories[node["feature"]]
                assert np.isnan(told["cut"])
                assert told["categories"] == tuple(
                    value for value in values if reference.goes_left(ensemble, node, value)
                )


def test_a_table_calls_features_and_categories_by_their_names():
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["site"] = pd.Categorical(np.where(Y > 1, "uk", "fr"))
    ranker = LambdaMARTRanker(max_iter=2, max_features=1.0, random_state=0).fit(frame, Y, qid=QID)
    table = tree_table(ranker)
    root = table.iloc[0]
    assert root["feature"] == "site"
    assert root["categories"] in (("uk",), ("fr",))
    assert set(table["feature"].dropna()) <= {"a", "b", "site"}
    check_sums(ranker, frame, ranker.predict(frame))
    pd.testing.assert_frame_equal(tree_table(EnsembleRanker.average([ranker])), table)
    nameless = ranker.ensemble_._with_columns(None, {})
    with pytest.raises(
        ValueError, match=r"category_levels\[2\] has 1 levels, but .* split by the code 1; expe"
    ):
        tree_table(EnsembleRanker(nameless, category_levels={2: ["fr"]}))
    with pytest.raises(TypeError, match="model is a Ridge"):
        tree_table(Ridge())


# ---- a local optimum ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["ndcg@10", "map", "kendall_tau"])
@pytest.mark.parametrize("model", [LambdaMARTRanker(max_iter=4), RandomForestRanker(4)], ids=repr)
def test_all_leaves_are_moved_at_random(model, measure):
    ensemble = model.set_params(random_state=0).fit(X, Y, qid=QID).ensemble_
    mixed = np.random.default_rng(0).permutation(len(Y))
    found = local_optimum(
        model,
        X[mixed],
        Y[mixed],
        qid=QID[mixed],
        measure=measure,
        n_directions=9,
        distance=0.5,
        random_state=3,
    )
    measure, random = as_measure(measure), np.random.RandomState(3)
    n_reached, _ = slow.moved(ensemble, X, Y, QID, measure, 0.5, [])
    directions = [random.normal(size=n_reached) for _ in range(9)]
    np.testing.assert_allclose(found.values, slow.moved(ensemble, X, Y, QID, measure, 0.5, directions)[1])
    assert found.value == pytest.approx(measure(Y, ensemble.predict(X), qid=QID))
    assert found.n_better == (found.values > found.value).sum()
    assert len(set(found.values)) > 1


def test_in_none_of_459_directions_is_less_than_one_percent():
    best = HistGBRTRegressor(max_iter=50, min_samples_leaf=1, learning_rate=1.0, gradient_sampling=None)
    best.fit(X, Y)
    found = local_optimum(best, X, Y, qid=QID, distance=1e-4, random_state=0)
    assert (found.value, found.n_better) == (1.0, 0)
    assert found.share_at_most == pytest.approx(1 - 0.01 ** (1 / 459))
    assert found.share_at_most < 0.01
    fewer = local_optimum(best, X, Y, qid=QID, n_directions=458, distance=1e-4, random_state=0)
    assert fewer.share_at_most > 0.01
    ranker = LambdaMARTRanker(max_iter=30, random_state=0).fit(X, Y, qid=QID)
    lower, higher = (
        local_optimum(ranker, X, Y, qid=QID, distance=0.1, confidence=confidence, random_state=0)
        for confidence in (0.5, 0.99)
    )
    assert 0 < lower.n_better / 459 < lower.share_at_most < higher.share_at_most < 1
    assert (lower.n_better, lower.n_worse) == tuple(
        np.count_nonzero(part) for part in (lower.values > lower.value, lower.values < lower.value)
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_directions": 0}, "n_directions=0; expected a whole number >= 1"),
        ({"distance": 0}, "distance=0; expected a number > 0 and < inf"),
        ({"confidence": 1.0}, r"confidence=1.0; expected a number > 0 and < 1"),
        ({"measure": "rmse"}, "depends on the distances between scores"),
        ({"y": np.zeros(len(Y))}, "is not defined on any query"),
        ({"model": Ensemble.from_trees([], n_features=8)}, "model has no trees"),
    ],
    ids=lambda wrong: ", ".join(wrong) if isinstance(wrong, dict) else "",
)
def test_moves_that_cannot_be_meant(wrong, message):
    model = HistGBRTRegressor(max_iter=2, random_state=0).fit(X, Y)
    given = {"model": model, "X": X, "y": Y, "qid": QID, "n_directions": 2}
    with pytest.raises(ValueError, match=message):
        local_optimum(**given | wrong)
