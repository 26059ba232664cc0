"""Of two classes, the classifier is the logistic regressor with names for them; of more, each has a score."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from ranks import together
from sklearn.base import clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import compute_sample_weight

from ranktrees import (
    BlendRanker,
    EarlyExit,
    HistGBRTClassifier,
    HistGBRTRegressor,
    ModelFeatures,
    OrdinalRanker,
    QueryKFold,
    as_measure,
    make_ranking,
    pick_early_exit,
    query_scorer,
    score_curves,
)
from ranktrees.evaluation.predictions import scores_by
from ranktrees.objectives.pointwise import Softmax
from ranktrees.processes.communicator import training_with

SMALL = {"max_iter": 8, "max_leaf_nodes": 8, "random_state": 0, "n_jobs": 1}


@pytest.fixture(scope="module")
def rows():
    """X, relevant or not, qid."""
    X, y, qid = make_ranking(30, rows_per_query=20, n_features=6, random_state=0, return_X_y_qid=True)
    return X, (y >= 2).astype(float), qid


def make(**parameters):
    return HistGBRTClassifier(**(SMALL | parameters))


# The negative class first, as sorting puts it.
NAMES = {
    "numbers": [0, 1],
    "floats": [-1.0, 1.0],
    "bools": [False, True],
    "words": ["irrelevant", "relevant"],
    "long integers": [2**62, 2**62 + 1],
    "dates": [np.datetime64("2020-01-01"), np.datetime64("2021-01-01")],
}


@pytest.mark.parametrize("kind", NAMES)
def test_classes_of_any_kind(kind, rows):
    X, relevant, _ = rows
    names = np.array(NAMES[kind])
    y = names[relevant.astype(int)]
    model = make().fit(X, y)
    assert model.classes_.tolist() == names.tolist()
    assert model.ensemble_.digest() == make().fit(X, relevant).ensemble_.digest()
    predicted = model.predict(X)
    assert predicted.dtype == y.dtype
    assert model.score(X, y) == np.mean(predicted == y) > 0.7


COLUMNS = {
    "list": list,
    "objects": lambda y: y.astype(object),
    "pandas": pd.Series,
    "category": lambda y: pd.Series(y).astype("category"),
    "pandas strings": lambda y: pd.Series(y, dtype="string"),
    "polars": pl.Series,
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_any_kind(kind, rows):
    X, relevant, _ = rows
    y = np.where(relevant == 1, "yes", "no")
    model = make().fit(X, COLUMNS[kind](y))
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.ensemble_.digest() == make().fit(X, relevant).ensemble_.digest()
    assert model.score(X, COLUMNS[kind](y)) == accuracy_score(y, model.predict(X))


@pytest.mark.parametrize("balanced", [False, True])
def test_the_logistic_regressor_inside(balanced, rows):
    X, relevant, qid = rows
    weight = np.random.default_rng(0).random(len(relevant))
    model = make(balanced=balanced).fit(X, relevant, weight, qid=qid)
    regressor = HistGBRTRegressor("logistic", balanced=balanced, **SMALL).fit(X, relevant, weight, qid=qid)
    assert model.ensemble_.digest() == regressor.ensemble_.digest()
    probabilities = model.predict_proba(X)
    np.testing.assert_array_equal(probabilities[:, 1], regressor.predict(X))
    np.testing.assert_array_equal(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
    np.testing.assert_array_equal(model.predict(X) == 1, model.decision_function(X) > 0)


def test_other_names_for_the_two_classes_turn_the_odds_around(rows):
    X, relevant, _ = rows
    one = make(gradient_sampling=None).fit(X, relevant)
    other = make(gradient_sampling=None).fit(X, np.where(relevant == 1, "a", "b"))
    np.testing.assert_allclose(other.decision_function(X), -one.decision_function(X), atol=1e-9)


def test_balanced_finds_the_few(rows):
    X, _, _ = rows
    y = X[:, 0] > np.quantile(X[:, 0], 0.97)
    plain, balanced = (
        make(balanced=balanced, min_samples_leaf=1).fit(X, y).predict_proba(X)[:, 1]
        for balanced in (False, True)
    )
    assert plain.mean() == pytest.approx(y.mean(), rel=0.2)
    assert balanced.mean() > 2 * plain.mean()


def test_beside_scikit_learn(rows):
    X, relevant, _ = rows
    model = make(max_iter=50).fit(X, relevant)
    linear = LogisticRegression().fit(X, relevant)
    assert log_loss(relevant, model.predict_proba(X)) < log_loss(relevant, linear.predict_proba(X))


def test_stages(rows):
    X, relevant, _ = rows
    y = np.where(relevant == 1, "yes", "no")
    model = make().fit(X, y)
    stages = zip(
        model.staged_decision_function(X), model.staged_predict_proba(X), model.staged_predict(X), strict=True
    )
    for n_trees, (scores, probabilities, classes) in enumerate(stages, start=1):
        np.testing.assert_array_equal(scores, model.decision_function(X, n_trees=n_trees))
        np.testing.assert_array_equal(probabilities, model.predict_proba(X, n_trees=n_trees))
        np.testing.assert_array_equal(classes, model.predict(X, n_trees=n_trees))
    assert n_trees == 8


def test_measures_rank_by_the_odds(rows):
    X, relevant, qid = rows
    model = make(measure="auc").fit(X, relevant, qid=qid)
    per_query = [
        roc_auc_score(relevant[qid == q], model.decision_function(X[qid == q]))
        for q in range(30)
        if 0 < relevant[qid == q].mean() < 1
    ]
    assert model.score(X, relevant, qid=qid) == pytest.approx(np.mean(per_query))
    with pytest.raises(ValueError, match="score needs qid"):
        model.score(X, relevant)
    weight = np.random.default_rng(0).random(len(relevant))
    plain = make().fit(X, relevant, qid=qid)
    assert plain.score(X, relevant, weight) == accuracy_score(
        relevant, plain.predict(X), sample_weight=weight
    )


def test_rank_and_early_exit(rows):
    X, relevant, qid = rows
    model = make().fit(X, relevant, qid=qid)
    ranks = model.rank(X, qid=qid, k=1)
    np.testing.assert_array_equal(ranks["score"], model.decision_function(X)[ranks["row"]])
    scores, saved = model.decision_function(
        X, qid=qid, early_exit=EarlyExit(every=2, drop=0.5), return_saved=True
    )
    assert saved.share > 0.2
    assert (scores != model.decision_function(X)).any()


def test_early_stopping_on_named_classes(rows):
    X, relevant, qid = rows
    y = np.where(relevant == 1, "yes", "no")
    train = qid < 20
    model = make(max_iter=200, learning_rate=0.3, n_iter_no_change=5).fit(
        X[train], y[train], X_val=X[~train], y_val=y[~train]
    )
    assert len(model.ensemble_) == model.best_iteration_ < 200
    losses = [-log_loss(y[~train], p) for p in model.staged_predict_proba(X[~train])]
    np.testing.assert_allclose(model.validation_score_[: len(losses)], losses)
    only_yes = {"X_val": X[~train][y[~train] == "yes"], "y_val": y[~train][y[~train] == "yes"]}
    assert make().fit(X[train], y[train], **only_yes).validation_score_.size == 8
    with pytest.raises(ValueError, match="y_val holds the label 'maybe'; expected the classes of fit, 'no'"):
        make().fit(X[train], y[train], X_val=X[:2], y_val=["yes", "maybe"])


def test_dates_and_durations_are_the_same_in_any_unit(rows):
    X, relevant, _ = rows
    for names in (relevant.astype("M8[D]"), relevant.astype("m8[h]")):
        model = make().fit(X, names)
        expected = model.score(X, names)
        for same in (pd.Series(names), names.astype(f"{names.dtype.kind}8[ns]")):
            assert model.score(X, same) == make().fit(X, same).score(X, names) == expected


def test_warm_start_keeps_the_classes(rows):
    X, relevant, _ = rows
    y = np.where(relevant == 1, "yes", "no")
    model = make(warm_start=True).fit(X, y)
    model.set_params(max_iter=12).fit(X, y)
    assert model.ensemble_.digest() == make(max_iter=12).fit(X, y).ensemble_.digest()
    with pytest.raises(ValueError, match="y holds the label 'bad'"):
        model.set_params(max_iter=14).fit(X, np.where(relevant == 1, "good", "bad"))
    assert model.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize("fitted", [False, True])
def test_boosting_from_the_odds_of_another_classifier(fitted, rows):
    X, relevant, _ = rows
    init = LogisticRegression()
    model = make(init=init.fit(X, relevant) if fitted else init).fit(X, relevant)
    start = LogisticRegression().fit(X, relevant).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X, n_trees=0), start)
    assert model.score(X, relevant) > accuracy_score(relevant, start > 0)


@pytest.mark.parametrize("init", [make(), LogisticRegression()], ids=["ours", "another"])
def test_a_start_that_knows_other_classes_is_refused(init, rows):
    """Its odds may be those of the opposite class."""
    X, relevant, _ = rows
    init = clone(init).fit(X, relevant)
    with pytest.raises(ValueError, match=r"was fitted to the classes .* but y has .*'a'.*'b'"):
        make(init=init).fit(X, np.where(relevant == 1, "a", "b"))
    assert make(init=init).fit(X, relevant.astype(float)).classes_.tolist() == [0.0, 1.0]


# ------------------------------------------------------------------------------------- by what rows rank


def second(model, X):
    return model.predict_proba(X)[:, 1]


# What ranks rows, by the fitted model; in a fold, too.
RANKED_BY = {
    "ours": (make(), HistGBRTClassifier.decision_function),
    "ours, in a pipeline": (
        make_pipeline(StandardScaler(), make()),
        lambda model, X: model.decision_function(X),
    ),
    "odds": (LogisticRegression(), LogisticRegression.decision_function),
    "probabilities": (RandomForestClassifier(5, random_state=0), second),
    "not a classifier": (OrdinalRanker(make()), OrdinalRanker.predict),
}
each_kind = pytest.mark.parametrize("kind", RANKED_BY)


@each_kind
def test_everything_ranks_by_the_same_scores(kind, rows):
    X, relevant, qid = rows[0].astype(np.float64), *rows[1:]
    (model, ranked_by), y = RANKED_BY[kind], pd.Series(relevant, index=pd.Index(qid, name="qid"))
    model = clone(model).fit(X, y)
    scores = ranked_by(model, X)
    assert len(np.unique(scores)) > 4
    assert scores_by(FrozenEstimator(model), X).tolist() == scores.tolist()
    ndcg = as_measure("ndcg@5")(relevant, scores, qid=qid)
    assert query_scorer("ndcg@5")(model, X, y) == ndcg
    blend = BlendRanker([("one", model)], cv="prefit", measure="ndcg@5").fit(X, y)
    assert blend.value_ == ndcg
    np.testing.assert_array_equal(blend.predict(X), scores)
    said = ModelFeatures(model, keep=False, cv="prefit").fit_transform(X)
    np.testing.assert_array_equal(said[:, 0], scores)
    started = make(init=model).fit(X, y)
    np.testing.assert_array_equal(started.decision_function(X, n_trees=0), scores)


@pytest.mark.parametrize("kind", NAMES)
def test_scorers_and_exits_know_the_classes_by_any_name(kind, rows):
    X, relevant, qid = rows
    y = pd.Series(np.array(NAMES[kind])[relevant.astype(int)], index=pd.Index(qid, name="qid"))
    model = make(measure="auc").fit(X, y)
    assert query_scorer("auc")(model, X, y) == model.score(X, y)
    picked = pick_early_exit(model, X, y, measure="auc", tolerated_loss=0.05)
    assert picked.full_score == model.score(X, y)
    assert picked.score == pytest.approx(model.score(X, y, early_exit=picked.early_exit))
    assert picked.share_saved > 0


def test_of_more_classes_the_class_ranks_in_every_fold(rows):
    X, relevant, qid = rows
    y = np.where(qid == 2, 5.0, relevant)  # a class that one fold has not seen
    model = LogisticRegression().fit(X, y)
    assert scores_by(model, X).tolist() == model.predict(X).tolist()
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    assert query_scorer("ndcg@5")(model, X, labels) == as_measure("ndcg@5")(y, model.predict(X), qid=qid)
    folds = {"cv": QueryKFold(30)}
    told = ModelFeatures(LogisticRegression(), keep=False, **folds).fit_transform(X, y, qid=qid)
    assert set(np.unique(told)) <= {0.0, 1.0, 5.0}
    started = HistGBRTRegressor(init=LogisticRegression(), init_cv=folds["cv"], **SMALL).fit(X, y, qid=qid)
    assert started.init_scores_.tolist() == told[:, 0].tolist()
    blend = BlendRanker([("one", LogisticRegression())], measure="ndcg@5", **folds).fit(X, y, qid=qid)
    assert blend.value_ == as_measure("ndcg@5")(y, told[:, 0], qid=qid)
    words = np.array(["bad", "good", "perfect"])[np.searchsorted([0, 1, 5], y)]
    with pytest.raises(ValueError, match=r"predicts classes such as .bad., by which rows cannot be ranked"):
        scores_by(LogisticRegression().fit(X, words), X)


@pytest.mark.parametrize("lone", [0, 1])
@pytest.mark.parametrize("model", [GaussianNB(), RandomForestClassifier(5, random_state=0)])
def test_of_two_classes_the_second_has_probability_0_where_a_fold_lacks_it(model, lone, rows):
    X, _, qid = rows
    X, qid = X.astype(np.float64), qid.astype(int)
    y = np.where(np.arange(len(X)) == 7, float(lone), float(1 - lone))
    away = qid == qid[7]  # the models of other rows have seen both classes
    folds = {"cv": QueryKFold(3)}
    told = ModelFeatures(model, add=("score", "probabilities"), keep=False, **folds).fit_transform(
        X, y, qid=qid
    )
    assert (told[away, 0] == 1 - lone).all()
    np.testing.assert_array_equal(told[:, 0], told[:, 2])
    started = HistGBRTRegressor(init=model, init_cv=folds["cv"], **SMALL).fit(X, y, qid=qid)
    np.testing.assert_array_equal(started.init_scores_, told[:, 0])
    blend = BlendRanker([("one", model)], measure="ndcg@5", **folds).fit(X, y, qid=qid)
    assert blend.value_ == as_measure("ndcg@5")(y, told[:, 0], qid=qid)


def test_what_a_fold_of_one_class_cannot_tell_is_refused(rows):
    X, _, qid = rows
    y = np.where(np.arange(len(X)) == 7, 1.0, 0.0)
    for model, add, message in (
        (RidgeClassifier(), "score", "RidgeClassifier was fitted to a fold whose rows are all of class 0.0"),
        (
            MLPClassifier((2,), max_iter=200, tol=1, random_state=0),
            "score",
            "returned 2 columns, but classes_ has 1 entries",
        ),
        (
            MLPClassifier((2,), max_iter=200, tol=1, random_state=0),
            "probabilities",
            "MLPClassifier.predict_proba",
        ),
    ):
        features = ModelFeatures(model, add=add, cv=QueryKFold(3))
        with pytest.raises(ValueError, match=message):
            features.fit_transform(X, y, qid=qid)


def test_wrong_labels_say_what_to_do(rows):
    X, relevant, _ = rows
    for y, message in (
        (np.arange(len(X)) / 7, "y holds the fraction.*y >= 2"),
        (np.ones(len(X)), "one class, 1.0"),
        (np.where(relevant == 1, np.nan, 0.0), "y contains NaN"),
        ([None, *["yes", "no"] * 300][: len(X)], "NaN .* in row 0"),
        (np.array([1.0, np.nan] * 300, dtype=object), "NaN .* in row 1"),
        (np.array(["2020-01-01", "NaT"] * 300, dtype="datetime64[D]"), "NaN .* in row 1"),
        (pd.array(["yes", None] * 300), "NaN .* in row 1"),
        ([1, "yes"] * 299 + [(1, 2), 3], "cannot be sorted|1d array|could not be turned"),
        (["yes", 1] * (len(X) // 2), "y holds 1 beside strings"),
        (relevant[:-1], "y has length 599"),
        (np.column_stack([relevant, relevant]), "1d array"),
        (None, "y is None"),
    ):
        with pytest.raises(ValueError, match=message):
            make().fit(X, y)
    with pytest.raises(ValueError, match="y holds the label 2"):
        make().fit(X, relevant).score(X, relevant + 1)


def test_among_the_classifiers_of_scikit_learn(rows):
    X, relevant, qid = rows
    y = pd.Series(np.where(relevant == 1, "yes", "no"), index=pd.Index(qid, name="qid"))
    assert is_classifier(make())
    assert cross_val_score(make(), X, y, cv=QueryKFold(3)).shape == (3,)
    roc = cross_val_score(make(), X, y, cv=QueryKFold(3), scoring="roc_auc")
    assert roc.min() > 0.6
    search = GridSearchCV(make(measure="ndcg@5"), {"max_iter": [1, 8]}, cv=QueryKFold(3)).fit(X, y)
    assert search.best_params_ == {"max_iter": 8}
    piped = make_pipeline(StandardScaler(), make()).fit(X, y)
    np.testing.assert_array_equal(piped.predict(X), make().fit(X, y).predict(X))
    grades = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.6]))
    assert OneVsRestClassifier(make()).fit(X, grades).score(X, grades) > 0.9


def test_callbacks_see_the_classes_by_their_names(rows):
    callback = pytest.importorskip("sklearn.callback")
    X, relevant, _ = rows
    y = np.where(relevant == 1, "yes", "no")
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = make().set_callbacks(monitor).fit(X, y)
    logged = {entry["task_name"]: entry["accuracy"] for entry in monitor.get_logs().data}
    for n_trees in range(1, 9):
        assert logged[f"tree {n_trees}"] == accuracy_score(y, model.predict(X, n_trees=n_trees))


def test_copies(rows):
    X, relevant, qid = rows
    model = make().fit(X, relevant, qid=qid)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
    assert clone(model).fit(X, relevant, qid=qid).ensemble_.digest() == model.ensemble_.digest()
    assert set(HistGBRTClassifier._parameter_constraints) == set(model.get_params())
    assert all(name in HistGBRTClassifier.__doc__ for name in model.get_params())
    measured = as_measure("ndcg@10")(relevant, model.decision_function(X), qid=qid)
    assert measured > 0.7


def test_errors_are_those_of_probabilities_in_every_way():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=600) > 0).astype(int)
    qid = np.repeat(np.arange(60), 10)
    rules = {"max_iter": 60, "scoring": "rmse", "early_stopping": True, "random_state": 0}
    fit = {"qid": qid[:300], "X_val": X[300:], "y_val": y[300:], "qid_val": qid[300:]}
    model = HistGBRTClassifier(measure="rmse", **rules).fit(X[:300], y[:300], **fit)
    twin = HistGBRTRegressor("logistic", measure="rmse", **rules).fit(X[:300], y[:300], **fit)
    np.testing.assert_array_equal(model.validation_score_, twin.validation_score_)
    assert model.best_iteration_ == twin.best_iteration_
    expected = -np.sqrt(np.mean((model.predict_proba(X)[:, 1] - y) ** 2))
    assert model.score(X, y, qid=qid) == pytest.approx(expected)
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    assert query_scorer("rmse")(model, X, labels) == pytest.approx(expected)
    curves = score_curves(model, sets={"all": (X, y, qid)}, measure=["auc", "rmse", "ndcg"])
    assert curves["all", "rmse"][-1] == pytest.approx(-expected)
    assert [str(measure) for _, measure in curves.values] == ["AUC", "RMSE", "NDCG"]
    log_odds = model.decision_function(X)
    assert curves["all", "auc"][-1] == as_measure("auc")(y, log_odds, qid=qid)
    cost = model.cost_curve(X, y, qid=qid, measure="rmse", feature_costs=[1] * 4)
    assert cost.value[-1] == pytest.approx(-expected)


# ------------------------------------------------------------------------------------------- more classes


@pytest.fixture(scope="module")
def grades():
    """X, one of five names, qid."""
    X, y, qid = make_ranking(30, rows_per_query=20, n_features=6, random_state=0, return_X_y_qid=True)
    return X, np.array(["e", "d", "c", "b", "a"])[y.astype(int)], qid


def digests(model):
    return [ensemble.digest() for ensemble in model._ensembles]


@pytest.mark.parametrize("balanced", [False, True])
def test_of_several_classes_each_has_a_score(balanced, grades):
    X, y, _ = grades
    weight = np.random.default_rng(0).random(len(y))
    model = make(balanced=balanced).fit(X, y, weight)
    scores, probabilities = model.decision_function(X), model.predict_proba(X)
    assert scores.shape == probabilities.shape == (len(X), 5)
    for k, ensemble in enumerate(model.ensembles_):
        np.testing.assert_array_equal(ensemble.predict(X), scores[:, k])
    powers = np.exp(scores)
    np.testing.assert_allclose(probabilities, powers / powers.sum(axis=1, keepdims=True), rtol=1e-12)
    assert model.predict(X).tolist() == model.classes_[scores.argmax(axis=1)].tolist()
    assert model.score(X, y, weight) == accuracy_score(y, model.predict(X), sample_weight=weight) > 0.6
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.n_iter_ == model.best_iteration_ == 8
    assert {len(ensemble) for ensemble in model.ensembles_} == {8}
    bases = np.exp([ensemble.base for ensemble in model.ensembles_])
    shares = [weight[y == name].sum() / weight.sum() for name in model.classes_]
    np.testing.assert_allclose(bases, np.ones(5) if balanced else shares)


def test_the_first_tree_of_a_class_takes_the_newton_step(grades):
    """Of each leaf, from the probabilities that are the shares of the classes."""
    X, y, _ = grades
    model = make(max_iter=1, learning_rate=1.0, gradient_sampling=None).fit(X, y)
    for k, ensemble in enumerate(model.ensembles_):
        hit = y == model.classes_[k]
        p, leaves = hit.mean(), ensemble.leaves(X)[:, 0]
        for leaf in np.unique(leaves):
            own = hit[leaves == leaf]
            step = (own.mean() - p) / (5 / 4 * p * (1 - p))
            assert ensemble.nodes["value"][leaf] == pytest.approx(step, rel=1e-6)


def test_stages_of_several_classes(grades):
    X, y, _ = grades
    model = make().fit(X, y)
    stages = zip(
        model.staged_decision_function(X), model.staged_predict_proba(X), model.staged_predict(X), strict=True
    )
    for n_trees, (scores, probabilities, classes) in enumerate(stages, start=1):
        np.testing.assert_array_equal(scores, model.decision_function(X, n_trees=n_trees))
        np.testing.assert_array_equal(probabilities, model.predict_proba(X, n_trees=n_trees))
        np.testing.assert_array_equal(classes, model.predict(X, n_trees=n_trees))
    assert n_trees == 8
    shares = [np.mean(y == name) for name in model.classes_]
    np.testing.assert_allclose(model.predict_proba(X[:1], n_trees=0)[0], shares)


def test_early_stopping_of_several_classes(grades):
    X, y, qid = grades
    train = qid < 20
    rules = {"max_iter": 200, "learning_rate": 0.3, "n_iter_no_change": 5}
    held_out = {"X_val": X[~train], "y_val": y[~train], "qid_val": qid[~train]}
    model = make(**rules).fit(X[train], y[train], qid=qid[train], **held_out)
    assert {len(ensemble) for ensemble in model.ensembles_} == {model.best_iteration_}
    assert model.best_iteration_ < model.n_iter_ < 200
    losses = [-log_loss(y[~train], p) for p in model.staged_predict_proba(X[~train])]
    np.testing.assert_allclose(model.validation_score_[: len(losses)], losses)
    ranked = make(scoring="ndcg@5", measure="ndcg@5", **rules)
    ranked.fit(X[train], y[train], qid=qid[train], **held_out)
    expected = ranked.predict_proba(X[~train]) @ np.arange(5)
    best = as_measure("ndcg@5")(np.searchsorted(ranked.classes_, y[~train]), expected, qid=qid[~train])
    assert ranked.validation_score_.max() == pytest.approx(best)
    assert ranked.score(X[~train], y[~train], qid=qid[~train]) == pytest.approx(best)


def test_warm_start_and_copies_of_several_classes(grades):
    X, y, _ = grades
    whole = make(max_iter=12).fit(X, y)
    model = make(warm_start=True).fit(X, y)
    assert digests(model.set_params(max_iter=12).fit(X, y)) == digests(whole)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict_proba(X), whole.predict_proba(X))
    assert digests(clone(whole).fit(X, y)) == digests(make(max_iter=12, n_jobs=2).fit(X, y)) == digests(whole)
    with pytest.raises(ValueError, match="y holds the label 'z'"):
        model.set_params(max_iter=14).fit(X, np.where(y == "a", "z", y))
    assert digests(model) == digests(whole)


def test_a_warm_start_learns_new_levels_of_several_classes(grades):
    X, y, _ = grades
    level = pd.Series(np.where(X[:, 0] > 0, "up", "down"))
    first = pd.DataFrame(X).assign(c=level.astype("category"))
    more = pd.DataFrame(X).assign(c=level.replace("up", "above").astype("category"))
    model = make(warm_start=True, min_samples_leaf=5).fit(first.rename(columns=str), y)
    before = model.predict_proba(first.rename(columns=str))
    model.set_params(max_iter=9).fit(more.rename(columns=str), y)
    np.testing.assert_array_equal(model.predict_proba(first.rename(columns=str), n_trees=8), before)


def test_a_refit_forgets_the_number_of_classes(grades):
    X, y, _ = grades
    model = make().fit(X, y)
    assert digests(model.fit(X, y == "a")) == digests(make().fit(X, y == "a"))
    assert hasattr(model, "ensemble_")
    assert not hasattr(model, "ensembles_")
    assert digests(model.fit(X, y)) == digests(make().fit(X, y))
    assert hasattr(model, "ensembles_")
    assert not hasattr(model, "ensemble_")


def test_rows_of_all_kinds_of_several_classes(grades):
    X, y, qid = grades
    X = X.astype(np.float64)
    X[::7, 1] = np.nan
    X[:, 2] = np.digitize(X[:, 2], [-1, 0, 1])
    rules = {"categorical_features": [2], "subsample": 0.7, "query_subsample": 0.9}
    model = make(max_iter=30, **rules).fit(X, y, qid=qid)
    assert model.score(X, y) > 0.6
    costly = make(feature_costs=range(1, 7), cost_weight=1e-3).fit(X, y)
    assert costly.score(X, y) > 0.5


def test_what_takes_one_score_per_row_is_refused_for_several_classes(grades, tmp_path):
    X, y, qid = grades
    model = make().fit(X, y, qid=qid)
    for use in (
        lambda: model.rank(X, qid=qid),
        lambda: model.save(tmp_path / "model"),
        lambda: model.refit_leaves(X, y, qid=qid),
        lambda: model.decision_function(X, qid=qid, early_exit=EarlyExit(every=2, drop=0.5)),
    ):
        with pytest.raises(AttributeError, match=r"of 5 classes has no ensemble_, .* ensembles_\[k\]"):
            use()
    for parameters, message in (
        ({"init": LogisticRegression()}, "init=LogisticRegression.* each of 5 classes has its own"),
        ({"init": model}, "each of 5 classes has its own; expected None or a number"),
        ({"monotonic_cst": {0: 1}}, "monotonic_cst .* each of 5 classes"),
    ):
        with pytest.raises(ValueError, match=message):
            make(**parameters).fit(X, y)
    relevant = (y == "a").astype(float)
    for init, cv in ((model, None), (make(), 2)):
        with pytest.raises(ValueError, match="gives each of 5 classes a score; expected one score per row"):
            HistGBRTRegressor(init=init, init_cv=cv, **SMALL).fit(X, np.searchsorted(model.classes_, y))
    with pytest.raises(ValueError, match="expected a loss of one score per row: use HistGBRTClassifier"):
        HistGBRTRegressor(Softmax(2), **SMALL).fit(X, relevant)
    started = make(init=0.0).fit(X, y)
    assert {ensemble.base for ensemble in started.ensembles_} == {0.0}


# ------------------------------------------------------------------------------------------ class_weight


@pytest.mark.parametrize("class_weight", ["balanced", {"e": 0.5, "d": 2.0, "c": 0.0, "b": 1, "a": 7, "z": 1}])
def test_weights_of_classes_multiply_those_of_rows(class_weight, grades):
    X, y, qid = grades
    weight = np.random.default_rng(0).random(len(y))
    of_classes = compute_sample_weight(class_weight, y)
    weighted = make(class_weight=class_weight, max_iter=4)
    for given in (None, weight):
        expected = make(max_iter=4).fit(X, y, of_classes if given is None else of_classes * given, qid=qid)
        assert digests(weighted.fit(X, y, given, qid=qid)) == digests(expected)

    def fit(communicator):
        part = slice(0, 200) if communicator.rank else slice(200, None)
        with training_with(communicator):
            return clone(weighted).fit(X[part], y[part], weight[part], qid=qid[part])

    for model in together(2, fit):
        assert digests(model) == digests(weighted)


def test_validation_rows_and_refits_are_weighted_as_well(rows):
    X, relevant, _ = rows
    names = np.array(["no", "yes"])[relevant.astype(int)]
    of_rows = compute_sample_weight({"yes": 5.0}, names)
    model = make(class_weight={"yes": 5.0}, learning_rate=0.5).fit(X, names, X_val=X[::2], y_val=names[::2])
    same = make(learning_rate=0.5).fit(
        X, names, of_rows, X_val=X[::2], y_val=names[::2], sample_weight_val=of_rows[::2]
    )
    assert model.ensemble_ == same.ensemble_
    assert model.validation_score_.tolist() == same.validation_score_.tolist()
    refitted = model.refit_leaves(X[::3], names[::3], decay=0.5).ensemble_
    assert refitted == same.refit_leaves(X[::3], names[::3], of_rows[::3], decay=0.5).ensemble_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"class_weight": {0: 2.0, 7: 1.0}}, r"The classes, \[1(\.0)?\], are not in class_weight"),
        ({"class_weight": {0: -1.0, 1: 1.0}}, "class_weight=.*expected finite weights >= 0"),
        ({"class_weight": {0: 0.0, 1: 0.0}}, "class_weight=.*at least one"),
        ({"class_weight": "balanced", "balanced": True}, "both weigh the classes"),
        ({"class_weight": "equal"}, "class_weight.*balanced"),
    ],
)
def test_weights_of_classes_that_mean_nothing_are_refused(parameters, message, rows):
    with pytest.raises(ValueError, match=message):
        make(**parameters).fit(*rows[:2])
