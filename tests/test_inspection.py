"""Trees as a table, and the contributions of features to scores."""

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


def test_sparse_rows_go_in_parts(monkeypatch):
    ensemble = random_ensemble(7)
    rows = sp.csr_array(np.nan_to_num(reference.random_rows(np.random.default_rng(7), ensemble, 23)))
    parts, start = contributions(ensemble, rows)
    monkeypatch.setattr("ranktrees.inspection.contributing.VALUES_AT_ONCE", 20)
    found, found_start = contributions(ensemble, rows)
    assert found.toarray().tobytes() == parts.toarray().tobytes()
    assert found_start.tobytes() == start.tobytes()


CONTRIBUTIONS_OF_DEEP_TREES = """
from ranktrees import RandomForestRanker, contributions, make_ranking
X, y, qid = make_ranking(40, random_state=0, return_X_y_qid=True)
forest = RandomForestRanker(3, random_state=0).fit(X, y, qid=qid)
digests = set()
for n_jobs in (1, 3):
    parts, start = contributions(forest.set_params(n_jobs=n_jobs), X[:200])
    digests.add(parts.tobytes() + start.tobytes())
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
