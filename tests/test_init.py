"""Boosting that starts from a forest, another model, or the scores of models that have not seen the row."""

import pickle
import warnings

import lightgbm
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import BaggingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

from ranktrees import (
    BlendRanker,
    EarlyExit,
    Ensemble,
    EnsembleRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    QueryKFold,
    RandomForestRanker,
    as_measure,
    pick_early_exit,
)
from ranktrees.support.warning import FitWarning

SMALL = {"random_state": 0, "n_jobs": 1, "min_samples_leaf": 3}
FOREST = RandomForestRanker(6, max_leaf_nodes=12, **SMALL)

each_booster = pytest.mark.parametrize(
    "cls", [HistGBRTRegressor, LambdaMARTRanker], ids=lambda cls: cls.__name__
)
each_start = pytest.mark.parametrize("init_cv", [None, "oob", 3])


def make(cls=HistGBRTRegressor, init=FOREST, **parameters):
    return cls(**SMALL | {"max_iter": 7, "max_leaf_nodes": 6, "init": init} | parameters)


@pytest.fixture(scope="module")
def rows():
    """X with missing values, y and qid, the queries' rows mixed; do not change them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)).round(2)
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(0, 0.4, 400) + 1), 0, 4)
    X[rng.random(X.shape) < 0.1] = np.nan
    qid = rng.permutation(np.repeat(np.arange(20), 20))
    for array in (X, y, qid):
        array.flags.writeable = False
    return X, y, qid


class Given(RegressorMixin, BaseEstimator):
    """A model of another kind that says what it is told to say."""

    def __init__(self, scores_of=None):
        self.scores_of = scores_of

    def predict(self, X):
        return self.scores_of(X)


def trees(ensemble):
    return [tree.nodes.tobytes() for tree in ensemble]


# ------------------------------------------------------------------------------ the algorithms of the survey

CART = {"split_search": "exact", "min_samples_leaf": 1}
GBRT = HistGBRTRegressor(
    max_iter=12, max_depth=3, max_leaf_nodes=None, max_features=1.0, gradient_sampling=None,
    learning_rate=0.1, init=0.0, random_state=0, n_jobs=1, **CART,
)  # fmt: skip


@pytest.fixture(scope="module")
def uneven():
    """X, y without ties, so that each best split is the only one."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(250, 8))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(0, 0.3, 250)


def boosted_by_hand(X, y, start, tree):
    """Algorithms 3 and 4 of Mohan's survey, sections 2.3 and 2.4."""
    scores = start.copy()
    for _ in range(GBRT.max_iter):
        scores += 0.1 * clone(tree).fit(X, y - scores).predict(X)
    return scores


@pytest.mark.parametrize("init", [0.0, RandomForestRanker(30, max_features=3, random_state=0, **CART)])
def test_boosting_is_that_of_the_survey(uneven, init):
    """GBRT from nothing, and IGBRT from what a forest of full trees says of the rows that it has seen."""
    X, y = uneven
    qid = np.zeros(len(y))
    start = qid if init == 0.0 else clone(init).fit(X, y, qid=qid).predict(X)
    expected = boosted_by_hand(X, y, start, DecisionTreeRegressor(max_depth=3, random_state=0))
    model = clone(GBRT).set_params(init=init).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-6)


def test_ksgbrt_draws_features_and_no_rows(uneven):
    """The trees differ from those of GBRT, but leaves have the mean residual of all rows that reach them."""
    X, y = uneven
    model = clone(GBRT).set_params(max_features=0.25).fit(X, y)
    assert trees(model.ensemble_) != trees(clone(GBRT).fit(X, y).ensemble_)
    stages = [np.zeros(len(y)), *model.staged_predict(X)]
    for before, after, leaves in zip(stages[:-1], stages[1:], model.ensemble_.leaves(X).T, strict=True):
        of_leaves = pd.Series(y - before).groupby(leaves).transform("mean")
        np.testing.assert_allclose(after - before, 0.1 * of_leaves, atol=1e-6)


# ---------------------------------------------------------------------------------------------- one ensemble


@each_booster
@pytest.mark.parametrize("fitted", ["unfitted", "fitted", "frozen", "ensemble", "ranker"])
def test_forest_and_boosted_trees_are_one_ensemble(cls, fitted, rows):
    X, y, qid = rows
    forest = clone(FOREST).fit(X, y, qid=qid)
    init = {
        "unfitted": FOREST,
        "fitted": forest,
        "frozen": FrozenEstimator(forest),
        "ensemble": forest.ensemble_,
        "ranker": EnsembleRanker(forest.ensemble_),
    }[fitted]
    model = make(cls, init).fit(X, y, qid=qid)
    start = Ensemble.joined([forest.ensemble_])
    assert (len(model.ensemble_), model.n_init_trees_, model.n_iter_) == (13, 6, 7)
    assert model.ensemble_.first(6) == start
    assert model.predict(X, n_trees=0).tobytes() == start.predict(X).tobytes()
    np.testing.assert_allclose(model.predict(X, n_trees=0), forest.predict(X), rtol=1e-12)
    assert model.predict(X).tobytes() == model.ensemble_.predict(X).tobytes()
    # the trees are those that are grown from just these scores
    again = make(cls, Given(start.predict)).fit(X, y, qid=qid)
    assert trees(model.ensemble_.after(6)) == trees(again.ensemble_)


def test_trees_after_a_forest_explain_what_it_leaves(rows):
    """Without chance, the first tree's root adds the mean residual."""
    X, y, qid = rows
    model = make(max_iter=1, max_leaf_nodes=2, min_samples_leaf=150, learning_rate=1.0, max_features=1.0)
    model.fit(X, y, qid=qid)
    left = y - model.predict(X, n_trees=0)
    leaf = model.ensemble_.leaves(X)[:, -1]
    for value in np.unique(leaf):
        added = model.predict(X)[leaf == value] - model.predict(X, n_trees=0)[leaf == value]
        np.testing.assert_allclose(added, left[leaf == value].mean(), atol=1e-9)


@each_start
@each_booster
def test_bytes_do_not_depend_on_jobs(cls, init_cv, rows):
    X, y, qid = rows
    forest = clone(FOREST).set_params(n_estimators=25)
    digests = {
        make(cls, clone(forest).set_params(n_jobs=n_jobs), init_cv=init_cv, n_jobs=n_jobs)
        .fit(X, y, qid=qid)
        .ensemble_.digest()
        for n_jobs in (1, 2, 3)
    }
    assert len(digests) == 1


@each_booster
def test_saved_and_read_again(cls, rows, tmp_path):
    X, y, qid = rows
    model = make(cls).fit(X, y, qid=qid)
    model.save(tmp_path / "model.rkt")
    again = EnsembleRanker(Ensemble.load(tmp_path / "model.rkt"), n_jobs=1)
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    twin = pickle.loads(pickle.dumps(model))
    assert twin.predict(X, n_trees=3).tobytes() == model.predict(X, n_trees=3).tobytes()
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)


def test_importances_are_those_of_all_trees(rows):
    X, y, qid = rows
    model = make().fit(X, y, qid=qid)
    of_forest = model.init_.ensemble_.feature_importances() / 6
    of_boosting = model.ensemble_.after(6).feature_importances()
    np.testing.assert_allclose(model.ensemble_.feature_importances(), of_forest + of_boosting)
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_boosting_from_boosting_from_a_forest(rows):
    X, y, qid = rows
    model = make(LambdaMARTRanker, make()).fit(X, y, qid=qid)
    assert len(model.ensemble_) == 6 + 7 + 7
    assert model.n_init_trees_ == 13
    assert model.predict(X, n_trees=0).tobytes() == model.init_.predict(X).tobytes()


def test_what_boosting_started_from_may_be_of_another_kind_further_back(rows):
    X, y, qid = rows
    X = np.nan_to_num(X)
    inner = make(init=Ridge()).fit(X, y, qid=qid)
    model = make(init=inner).fit(X, y, qid=qid)
    assert len(model.ensemble_) == 14
    assert model.predict(X, n_trees=0).tobytes() == inner.predict(X).tobytes()
    assert list(model.staged_predict(X))[-1].tobytes() == model.predict(X).tobytes()


# ----------------------------------------------------------------------------------- what is counted, and not


@each_booster
def test_stages_are_those_of_boosting(cls, rows):
    X, y, qid = rows
    model = make(cls).fit(X, y, qid=qid)
    stages = list(model.staged_predict(X))
    assert len(stages) == 7
    for i, scores in enumerate(stages, start=1):
        assert scores.tobytes() == model.predict(X, n_trees=i).tobytes()
    assert stages[-1].tobytes() == model.predict(X).tobytes()
    with pytest.raises(ValueError, match="from 0 to 7, the number of trees after those of init"):
        model.predict(X, n_trees=8)


def test_early_exits_come_after_the_trees_of_init(rows):
    X, y, qid = rows
    model = make(LambdaMARTRanker).fit(X, y, qid=qid)
    scores, saved = model.predict(X, qid=qid, early_exit=EarlyExit(every=2, drop=0.5), return_saved=True)
    assert saved.stages == (0, 2, 4, 6)
    for n_trees in np.unique(saved.trees):
        assert (scores == model.predict(X, n_trees=int(n_trees)))[saved.trees == n_trees].all()
    assert saved.share == pytest.approx((7 - saved.trees).sum() / (13 * len(X)))
    picked = pick_early_exit(model, X, y, qid=qid, tolerated_loss=0.5, confidence=None)
    assert 0 < picked.share_saved < 7 / 13
    assert max(picked.early_exit.at) < 7


@each_start
@each_booster
def test_warm_start_gives_the_model_of_one_fit(cls, init_cv, rows):
    X, y, qid = rows
    forest = clone(FOREST).set_params(n_estimators=25)
    at_once = make(cls, forest, init_cv=init_cv).fit(X, y, qid=qid)
    model = make(cls, forest, init_cv=init_cv, max_iter=3, warm_start=True).fit(X, y, qid=qid)
    model.set_params(max_iter=7).fit(X, y, qid=qid)
    assert model.ensemble_ == at_once.ensemble_
    assert model.n_init_trees_ == 25
    with pytest.raises(ValueError, match="max_iter=6 is less than the 7 trees"):
        model.set_params(max_iter=6).fit(X, y, qid=qid)
    model.set_params(max_iter=8)
    if init_cv is not None:
        with pytest.raises(ValueError, match=r"starting scores of the 400 rows of the first fit.*same rows"):
            model.fit(X[:300], y[:300], qid=qid[:300])


def test_rows_that_were_held_out_have_no_score_to_start_from(rows):
    X, y, qid = rows
    model = make(init_cv=3, warm_start=True, early_stopping=True, validation_fraction=0.2)
    model.fit(X, y, qid=qid).set_params(early_stopping=False, max_iter=20)
    message = r"but 80 of the rows to learn from were held out in the first fit.*set early_stopping and"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, qid=qid)


@pytest.mark.parametrize(
    ("before", "after"), [(None, FOREST), (FOREST, None), (1.5, FOREST), (FOREST, 1.5), (1.5, 2.5)]
)
def test_warm_start_from_another_init_is_refused(before, after, rows):
    X, y, qid = rows
    model = make(init=before, warm_start=True).fit(X, y, qid=qid)
    trees = model.ensemble_
    with pytest.raises(
        ValueError, match=r"(?s)init=.*, but with warm_start=True .* expected the init of that fit"
    ):
        model.set_params(init=after, max_iter=8).fit(X, y, qid=qid)
    assert model.ensemble_ is trees
    assert len(model.set_params(init=before).fit(X, y, qid=qid).ensemble_) == len(trees) + 1


@each_start
@each_booster
def test_early_stopping_keeps_the_trees_of_init(cls, init_cv, rows):
    X, y, qid = rows
    apart = qid >= 14
    forest = clone(FOREST).set_params(n_estimators=25)
    model = make(
        cls, forest, init_cv=init_cv, max_iter=40, n_iter_no_change=3, scoring="ndcg@10", measure="ndcg@10"
    )
    model.fit(X[~apart], y[~apart], qid=qid[~apart], X_val=X[apart], y_val=y[apart], qid_val=qid[apart])
    assert len(model.ensemble_) == 25 + model.best_iteration_
    assert model.score(X[apart], y[apart], qid=qid[apart]) == max(model.validation_score_)
    held_out = make(cls, forest, init_cv=init_cv, early_stopping=True).fit(X, y, qid=qid)
    if init_cv is not None:
        n_held_out = np.count_nonzero(np.isnan(held_out.init_scores_))
        assert n_held_out == 2 * 20
        held_out.set_params(warm_start=True, max_iter=9).fit(X, y, qid=qid)


@pytest.mark.parametrize(
    ("before", "changed", "message"),
    [
        ({"init": Ridge()}, {"init": Ridge(alpha=2.0)}, "init=Ridge.alpha=2.0., but with warm_start=True"),
        ({"init": FOREST}, {"init__n_estimators": 30}, "(?s)init=.*=30.* expected the init of that fit"),
        ({"init": 1.5}, {"init": None}, "init=None, but with warm_start=True .* started from 1.5"),
        ({"init": FOREST}, {"init_cv": 3}, "init_cv=3, but with warm_start=True .* with init_cv=None"),
    ],
)
def test_warm_start_from_a_changed_init_is_refused(before, changed, message, rows):
    X, y, qid = rows
    X = np.nan_to_num(X)
    model = clone(make(**before, warm_start=True)).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=message):
        model.set_params(**changed, max_iter=8).fit(X, y, qid=qid)


def test_signs_that_change_with_warm_start_are_doubted(rows):
    X, y, qid = rows
    model = make(init=None, warm_start=True).fit(X, y, qid=qid)
    with pytest.warns(FitWarning, match="what earlier trees predict, which does not have the same"):
        model.set_params(monotonic_cst=[1, 0, 0, 0, 0], max_iter=8).fit(X, y, qid=qid)
    model.set_params(max_iter=9).fit(X, y, qid=qid)


# ------------------------------------------------------------------- rows that init has not seen the label of


@each_booster
def test_boosting_from_out_of_bag_scores(cls, rows):
    X, y, qid = rows
    forest = clone(FOREST).set_params(n_estimators=30, oob_score="ndcg@5", bootstrap_unit="query")
    model = make(cls, forest, init_cv="oob").fit(X, y, qid=qid)
    forest.fit(X, y, qid=qid)
    assert model.ensemble_.first(30) == Ensemble.joined([forest.ensemble_])
    np.testing.assert_array_equal(model.init_scores_, forest.oob_prediction_)
    assert model.init_.oob_score_ == forest.oob_score_
    again = make(cls, Given(lambda X: forest.oob_prediction_)).fit(X, y, qid=qid)
    assert trees(model.ensemble_.after(30)) == trees(again.ensemble_)
    # new rows start from the whole forest
    np.testing.assert_allclose(model.predict(X, n_trees=0), forest.predict(X), rtol=1e-12)


def test_out_of_bag_leaves_more_to_explain(rows):
    """A forest of full depth fits the rows it has seen, not those it has not."""
    X, y, qid = rows
    full = RandomForestRanker(40, max_features=None, **SMALL | {"min_samples_leaf": 1})
    model = make(init=full, init_cv="oob").fit(X, y, qid=qid)
    assert np.mean((y - model.init_scores_) ** 2) > 3 * np.mean((y - model.predict(X, n_trees=0)) ** 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["forest", "Ridge", "pipeline"])
def test_boosting_from_scores_out_of_fold(kind, weighted, rows):
    X, y, qid = np.nan_to_num(rows[0]), *rows[1:]
    init = {"forest": FOREST, "Ridge": Ridge(), "pipeline": make_pipeline(FOREST)}[kind]
    weights = {"sample_weight": np.linspace(0.5, 1.5, 400)} if weighted and kind != "pipeline" else {}
    model = make(init=init, init_cv=4).fit(X, y, qid=qid, **weights)
    order = np.argsort(np.unique(qid, return_index=True)[1][qid], kind="stable")  # by first appearance
    X_in, y_in, qid_in = X[order], y[order], qid[order]
    expected = np.empty(400)
    for train, test in QueryKFold(4).split(X_in, groups=qid_in):
        inside = {name: values[order][train] for name, values in weights.items()}
        ids = {"forest": {"qid": qid_in[train]}, "pipeline": {"randomforestranker__qid": qid_in[train]}}.get(
            kind, {}
        )
        expected[order[test]] = clone(init).fit(X_in[train], y_in[train], **inside, **ids).predict(X_in[test])
    np.testing.assert_allclose(model.init_scores_, expected, rtol=1e-12)
    again = make(init=Given(lambda X: model.init_scores_)).fit(X, y, qid=qid, **weights)
    boosted = model.ensemble_.after(model.n_init_trees_)
    assert trees(boosted) == trees(again.ensemble_)


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("form", [sp.coo_matrix, sp.bsr_array, sp.dia_array])
@pytest.mark.parametrize(
    "settings", [{}, {"init_cv": 3}, {"early_stopping": True}], ids=["plain", "init_cv", "stopping"]
)
def test_rows_in_any_order_in_every_sparse_format(settings, form, rows):
    X, y, qid = sp.csr_array(np.nan_to_num(rows[0])), *rows[1:]
    for init, ids in ((Ridge(), {"qid": qid}), (Ridge(), {}), (FOREST, {"qid": qid})):
        model, other = (make(init=init, **settings).fit(matrix, y, **ids) for matrix in (X, form(X)))
        assert other.ensemble_.digest() == model.ensemble_.digest()
        np.testing.assert_array_equal(other.predict(form(X)), model.predict(X))


def test_folds_are_those_of_the_rows_as_they_came(rows):
    X, y, qid = np.nan_to_num(rows[0]), *rows[1:]
    folds = [(np.arange(150, 400), np.arange(150)), (np.arange(150), np.arange(150, 400))]
    model = make(init=Ridge(), init_cv=folds).fit(X, y, qid=qid)
    for train, test in folds:
        expected = Ridge().fit(X[train], y[train]).predict(X[test])
        np.testing.assert_allclose(model.init_scores_[test], expected, rtol=1e-9)


def test_folds_of_rows_where_there_are_no_queries(rows):
    X, y, _ = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make(init_cv=3).fit(X, y)
        odds = make(HistGBRTClassifier, HistGBRTClassifier(max_iter=3, **SMALL), init_cv=3).fit(X, y > 1)
    assert np.isfinite(model.init_scores_).all()
    assert (odds.init_scores_ < 0).any()
    with pytest.raises(ValueError, match=r"(?s)init_cv=.* does not have each row in exactly one test fold"):
        make(init_cv=[(np.arange(200), np.arange(200, 400))]).fit(X, y)


def test_rows_that_were_never_out_of_bag_start_from_the_mean(rows):
    X, y, qid = rows[0], rows[1], np.sort(rows[2])
    forest = clone(FOREST).set_params(n_estimators=2)
    with pytest.warns(UserWarning, match="of 400 rows were never out of bag: they start from the mean label"):
        model = make(init=forest, init_cv="oob").fit(X, y, qid=qid)
    never = np.isnan(model.init_.oob_prediction_)
    assert 0 < np.count_nonzero(never) < 400
    assert (model.init_scores_[never] == model.init_.ensemble_.base).all()
    assert model.init_.ensemble_.base == pytest.approx(y.mean())


def test_init_cv_that_cannot_be_meant(rows):
    X, y, qid = rows
    fitted = clone(FOREST).fit(X, y, qid=qid)
    for init, init_cv, message in (
        (None, "oob", "init_cv='oob', but init=None is not a model to be fitted"),
        (1.5, 3, "init_cv=3, but init=1.5"),
        (fitted, "oob", r"init is a fitted RandomForestRanker.* pass clone\(init\)"),
        (FrozenEstimator(fitted), 3, "init is a fitted FrozenEstimator"),
        (Ridge(), "oob", r"init=Ridge\(\) leaves no rows out of bag.*number of folds"),
        (RandomForestRanker(bootstrap=False), "oob", "bootstrap=False.* leaves no rows out of bag"),
        (FOREST, "in bag", "init_cv"),
    ):
        with pytest.raises(ValueError, match=message):
            make(init=init, init_cv=init_cv).fit(X, y, qid=qid)


def test_the_class_of_an_init_is_none(rows):
    X, y, qid = rows
    with pytest.raises(TypeError, match=r"init is the class Ridge; expected an estimator: pass Ridge\(\)"):
        make(init=Ridge).fit(X, y, qid=qid)
    with pytest.raises(TypeError, match=r"init is the class Ridge; expected an estimator: pass Ridge\(\)"):
        make(init=Ridge).set_params(init__alpha=2.0)


class Alone:
    """A model of somebody who does not know scikit-learn."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


@each_booster
def test_an_init_that_is_no_estimator_is_named(cls, rows):
    X, y, qid = rows
    for init in (Alone(), Alone().fit(X, y)):
        with pytest.raises(
            TypeError, match="init is a Alone that has a fit method, but is not a scikit-learn estimator"
        ):
            clone(make(cls, init)).fit(X, y, qid=qid)
    for init in ("ridge", [Ridge()], np.nan):
        named = r"init='ridge'; expected a model" if init == "ridge" else "must be .* implementing 'predict'"
        with pytest.raises(ValueError, match=named):
            make(cls, init).fit(X, y, qid=qid)


@pytest.mark.parametrize("init", [None, 1.5, "ridge", Alone()])
def test_parameters_of_an_init_that_has_none_are_refused(init):
    message = r"init__alpha=2.0 sets a parameter of init, but init=.* has none; expected an estimator"
    for model, params in ((make(init=init), {}), (make(init=Ridge()), {"init": init})):
        with pytest.raises(ValueError, match=message):
            model.set_params(**params, init__alpha=2.0)


@each_booster
def test_an_init_of_other_columns_is_named(cls, rows):
    X, y, qid = rows
    fitted = clone(FOREST).fit(X[:, :2], y, qid=qid)
    for init in (fitted, FrozenEstimator(fitted), fitted.ensemble_):
        with pytest.raises(
            ValueError, match=rf"(?s)^init=.* was fitted to columns other than .* {X.shape[1]} features"
        ):
            make(cls, init).fit(X, y, qid=qid)


# ------------------------------------------------------------------------------------- fitted models stay so


@each_booster
def test_clones_keep_a_fitted_init(cls, rows):
    X, y, qid = rows
    forest = clone(FOREST).fit(X[:200], y[:200], qid=qid[:200])
    model = make(cls, forest)
    assert clone(model).init is forest
    assert clone(make_pipeline(model))[-1].init is forest
    assert clone(make(cls)).init is not FOREST
    assert clone(make(cls, Ridge())).init.alpha == 1.0
    assert clone(make(cls, FrozenEstimator(forest))).init.estimator is forest
    assert clone(model).fit(X, y, qid=qid).ensemble_ == model.fit(X, y, qid=qid).ensemble_


class Session:
    """A fitted model that cannot be copied, like one that another program holds."""

    def __init__(self):
        self.n_rows = []

    def __deepcopy__(self, memo):
        raise TypeError("this cannot be copied")

    def predict(self, X):
        self.n_rows.append(len(X))
        return np.nan_to_num(X[:, 0].astype(float))


@each_booster
def test_a_model_that_cannot_be_copied_is_not_copied(cls, rows):
    X, y, qid = rows
    session = Session()
    assert clone(make(cls, session)).init is session
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    assert np.isfinite(cross_val_score(make(cls, session), X, labels, cv=QueryKFold(2))).all()
    blend = BlendRanker([("one", session), ("other", Session())], cv="prefit")
    assert clone(blend).estimators is blend.estimators


def test_a_model_of_another_kind_predicts_rows_once(rows, tmp_path):
    X, y, qid = rows
    session = Session()
    early = {"early_stopping": True, "checkpoint": tmp_path / "fit.checkpoint"}
    make(init=session, **early).fit(X, y, qid=qid)
    assert session.n_rows == [len(X)]


def test_a_search_uses_the_fitted_init_in_all_folds(rows):
    X, y, qid = rows
    forest = clone(FOREST).fit(X[:200], y[:200], qid=qid[:200])
    before = forest.ensemble_
    y_with_ids = pd.Series(y, index=pd.Index(qid, name="qid"))
    search = GridSearchCV(make(init=forest), {"max_leaf_nodes": [3, 6]}, cv=QueryKFold(2))
    search.fit(X, y_with_ids)
    best = search.best_estimator_
    assert best.init_ is forest
    assert best.ensemble_.first(6) == Ensemble.joined([before])
    assert np.isfinite(cross_val_score(make(init=forest), X, y_with_ids, cv=QueryKFold(2))).all()
    assert forest.ensemble_ is before


def test_parameters_of_a_fitted_init_stay(rows):
    X, y, qid = rows
    forest = clone(FOREST).fit(X, y, qid=qid)
    with pytest.raises(
        ValueError, match=r"init__n_estimators=3 has no effect: init is fitted.*pass clone\(init\)"
    ):
        make(init=forest).set_params(init__n_estimators=3)
    with pytest.raises(ValueError, match="init__n_estimators=3 has no effect: init is fitted"):
        make().set_params(init=forest, init__n_estimators=3)
    assert forest.n_estimators == 6
    assert make(init=forest).set_params(init=Ridge(), init__alpha=2.0).init.alpha == 2.0
    assert clone(make()).set_params(init__n_estimators=3).init.n_estimators == 3
    assert FOREST.n_estimators == 6
    assert "init__n_estimators" in make().get_params()
    assert not any(name.startswith("init__") for name in make(init=forest).get_params())
    with sklearn.config_context(enable_metadata_routing=True):  # which sets every random_state there is
        bagging = BaggingRegressor(make(init=forest), n_estimators=2, bootstrap=False, random_state=0)
        bagging.fit(X, y, qid=qid)
    assert all(run.init is forest for run in bagging.estimators_)
    ranker = EnsembleRanker.average(bagging)
    np.testing.assert_allclose(ranker.predict(X), bagging.predict(X), rtol=1e-12)


# ---------------------------------------------------------------------------------------- columns and scales


def frame_of(rows, levels="roygbv"):
    X, y, _ = rows
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 6, len(y))
    y = np.clip(y + 2 * np.isin(colour, [1, 4]), 0, 4)
    colours = pd.Series(np.array(list(levels))[colour]).where(rng.random(len(y)) < 0.9)
    return pd.DataFrame({"size": X[:, 0], "colour": colours.astype("category")}), y


@each_booster
@pytest.mark.parametrize("kind", [RandomForestRanker, HistGBRTRegressor], ids=lambda kind: kind.__name__)
def test_categories_that_only_the_init_has_seen_stay_what_they_are(cls, kind, rows):
    X, y, qid = rows
    names = np.random.default_rng(0).choice(["de", "fr", "uk"], len(y))
    X = pd.DataFrame({"place": pd.Categorical(names), "x": X[:, 0]})
    labels = y + 2.0 * (names == "uk")
    init = kind(**SMALL).fit(X, labels, qid=qid)
    some = names != "uk"
    for seen in (X[some], X[some].assign(place=lambda seen: seen["place"].cat.remove_unused_categories())):
        model = make(cls, init).fit(seen, labels[some], qid=qid[some])
        np.testing.assert_allclose(model.predict(X, n_trees=0), init.predict(X), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="column 'place' has the levels None"):
        make(cls, init).fit(X.assign(place=X["place"].cat.codes), labels, qid=qid)


def test_categories_and_missing_values_stay_what_they_are(rows):
    frame, y = frame_of(rows)
    qid = rows[2]
    assert frame.isna().any().all()
    model = make().fit(frame, y, qid=qid)
    assert (model.ensemble_.first(6).nodes["categories"] >= 0).any()
    np.testing.assert_allclose(
        model.predict(frame, n_trees=0), model.init_.predict(frame), rtol=1e-12, atol=1e-12
    )
    stranger = frame.assign(colour=pd.Categorical(["black"] * 400))
    np.testing.assert_allclose(
        model.predict(stranger, n_trees=0), model.init_.predict(stranger), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("held_out", [False, True])
def test_levels_that_init_has_not_seen_are_missing_values_to_it(held_out, rows):
    frame, y = frame_of(rows)
    qid = np.sort(rows[2])
    few = frame["colour"].isin(["r", "g", "b"]) | frame["colour"].isna()
    forest = clone(FOREST).fit(frame[few], y[few], qid=qid[few])
    assert forest._category_levels[1] == ("b", "g", "r")
    some = ~frame["colour"].isin(["r"])  # and those that rows of boosting lack
    model = make(init=forest, early_stopping=held_out).fit(frame[some], y[some], qid=qid[some])
    known = frame[some]
    np.testing.assert_allclose(model.predict(known, n_trees=0), forest.predict(known), rtol=1e-12)
    again = make(init=Given(forest.predict)).fit(known, y[some], qid=qid[some])
    assert again.predict(known, n_trees=0).tobytes() == forest.predict(known).tobytes()


def test_init_compares_ordered_categories_in_the_order_of_its_fit(rows):
    frame, y = frame_of(rows)
    frame["colour"] = frame["colour"].cat.set_categories(list("roygbv"), ordered=True)
    forest = clone(FOREST).fit(frame, y, qid=rows[2])
    other = frame.assign(colour=frame["colour"].cat.reorder_categories(list("bgorvy")))
    for init in (forest, EnsembleRanker(forest.ensemble_), forest.ensemble_):
        model = make(init=init).fit(frame, y, qid=rows[2])
        np.testing.assert_allclose(model.predict(other, n_trees=0), forest.predict(frame), rtol=1e-12)
        with pytest.raises(
            ValueError, match=r"'colour' has the levels \('b', .*fitted with \('r', .*same order"
        ):
            make(init=init).fit(other, y, qid=rows[2])


def test_levels_of_held_out_rows_may_be_unknown_to_init(rows):
    frame, y = frame_of(rows)
    qid = np.repeat(np.arange(20), 20)
    frame["colour"] = frame["colour"].cat.add_categories("black")
    for query in range(20):  # a level in one query only, whichever is held out
        frame.loc[frame.index[query * 20], "colour"] = "black" if query == 7 else "r"
    model = make(early_stopping=True, validation_fraction=0.9).fit(frame, y, qid=qid)
    np.testing.assert_allclose(
        model.predict(frame, n_trees=0), model.init_.predict(frame), rtol=1e-12, atol=1e-12
    )
    assert len(model._category_levels[1]) == 7


def test_columns_have_to_be_the_same(rows):
    X, y, qid = rows
    frame, _ = frame_of(rows)
    fitted = clone(FOREST).fit(X[:, :4], y, qid=qid)
    for init in (fitted, fitted.ensemble_):
        with pytest.raises(ValueError, match=r"X has 5 features, but .* expecting 4 features"):
            make(init=init).fit(X, y, qid=qid)
    named = clone(FOREST).fit(frame.rename(columns={"size": "width"}), y, qid=qid)
    with pytest.raises(ValueError, match="width"):
        make(init=named).fit(frame, y, qid=qid)
    coded = np.column_stack([frame["size"], frame["colour"].cat.codes])
    by_code = clone(FOREST).fit(coded, y, qid=qid).ensemble_
    by_category = clone(FOREST).fit(frame, y, qid=qid).ensemble_
    by_category = by_category._replace(category_levels=None)
    names = ["size", "colour"]
    for init, known in (
        (EnsembleRanker(by_code, feature_names=names, category_levels={1: ("b", "r")}), r"\('b', 'r'\)"),
        (EnsembleRanker(by_category, feature_names=names), "None"),
    ):
        with pytest.raises(ValueError, match=rf"column 'colour' has .*\('b', .* fitted with {known}"):
            make(init=init).fit(frame, y, qid=qid)


def test_scores_are_on_one_scale(rows):
    X, y, qid = rows
    logs = HistGBRTRegressor("poisson", max_iter=5, **SMALL).fit(X, y)
    model = HistGBRTRegressor("poisson", init=logs, max_iter=5, **SMALL).fit(X, y)
    assert model.predict(X, n_trees=0).tobytes() == logs.predict(X).tobytes()
    assert make(LambdaMARTRanker, logs).fit(X, y, qid=qid).n_init_trees_ == 5
    with pytest.raises(
        ValueError, match=r"(?s)init=.*poisson.* has scores on a different scale from its predictions"
    ):
        make(init=logs).fit(X, y)
    odds = HistGBRTClassifier(max_iter=5, **SMALL)
    start = clone(odds).fit(X, y > 1)
    for model in (
        make(HistGBRTClassifier, odds).fit(X, y > 1).decision_function(X, n_trees=0),
        HistGBRTRegressor("logistic", init=odds, **SMALL).fit(X, (y > 1) * 1.0)._scores(X, X, 0),
    ):
        assert model.tobytes() == start.decision_function(X).tobytes()


# ------------------------------------------------------------------------------------- models of another kind


def test_other_models_are_no_part_of_the_ensemble_and_saving_says_so(rows, tmp_path):
    X, y, qid = np.nan_to_num(rows[0]), *rows[1:]
    ridge = make(init=Ridge()).fit(X, y, qid=qid)
    for model in (ridge, make(init=ridge).fit(X, y, qid=qid)):
        with pytest.raises(ValueError, match=r"not one ensemble: boosting started from Ridge\(\).*pickle"):
            model.save(tmp_path / "model.rkt")
        with pytest.raises(ValueError, match="not one ensemble"):
            EnsembleRanker.average([model])
    assert not list(tmp_path.iterdir())
    assert ridge.n_init_trees_ == 0
    assert len(ridge.ensemble_) == 7


@pytest.mark.parametrize("routing", [False, True])
def test_query_ids_reach_the_init(routing, rows):
    X, y, qid = rows

    class Seeing(RandomForestRanker):
        seen = []  # noqa: RUF012

        def fit(self, X, y, sample_weight=None, *, qid=None, groups=None, group=None):
            self.seen.append((X, y, qid))
            return super().fit(X, y, sample_weight, qid=qid)

    with sklearn.config_context(enable_metadata_routing=routing):
        make(init=Seeing(3, **SMALL)).fit(X, y, qid=qid)
    ((X_seen, y_seen, seen),) = Seeing.seen
    pairs = {(tuple(np.nan_to_num(line)), label) for line, label in zip(X_seen, y_seen, strict=True)}
    assert pairs == {(tuple(np.nan_to_num(line)), label) for line, label in zip(X, y, strict=True)}
    first = {query: place for place, query in enumerate(dict.fromkeys(qid.tolist()))}
    by_row = {tuple(np.nan_to_num(line)): first[query] for line, query in zip(X, qid.tolist(), strict=True)}
    assert [by_row[tuple(np.nan_to_num(line))] for line in X_seen] == seen.tolist()


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("init_cv", [None, 3])
def test_sizes_of_queries_reach_an_init_that_takes_no_ids(init_cv, weighted, routing, rows):
    X, y, qid = rows
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None

    class Sized(Ridge):
        seen = []  # noqa: RUF012

        def fit(self, X, y, sample_weight=None, group=None):
            self.seen.append((X, y, sample_weight, group))
            return super().fit(np.nan_to_num(X), y, sample_weight)

        def predict(self, X):
            return super().predict(np.nan_to_num(X))

    with sklearn.config_context(enable_metadata_routing=routing):
        make(init=Sized(), init_cv=init_cv).fit(X, y, weights, qid=qid)
    place = {tuple(np.nan_to_num(line)): i for i, line in enumerate(X)}
    for X_seen, y_seen, weights_seen, group in Sized.seen:
        places = [place[tuple(np.nan_to_num(line))] for line in X_seen]
        queries = np.split(qid[places], np.cumsum(group)[:-1])
        assert len(queries) == len(set(qid[places]))
        assert all(len(query) == 20 and len(set(query)) == 1 for query in queries)
        np.testing.assert_array_equal(y_seen, y[places])
        if weighted:
            np.testing.assert_allclose(weights_seen, weights[places])
    assert len(Sized.seen[0][0]) == len(X)
    assert len(Sized.seen) == (1 if init_cv is None else 4)


@each_booster
def test_a_ranker_of_lightgbm_that_is_not_fitted(cls, rows):
    X, y, qid = rows
    ranker = lightgbm.LGBMRanker(n_estimators=3, verbose=-1, n_jobs=1, random_state=0)
    order = np.concatenate([np.flatnonzero(qid == query) for query in dict.fromkeys(qid.tolist())])
    fitted = clone(ranker).fit(X[order], y[order], group=[20] * 20)
    models = [make(cls, init).fit(X, y, qid=qid) for init in (ranker, fitted)]
    assert models[0].predict(X).tobytes() == models[1].predict(X).tobytes()


def test_initialised_boosting_ranks_better_than_both_parts(rows):
    """Not a law, but what it is for: on rows that none has seen."""
    X, y, qid = rows
    apart = qid >= 12
    train, test = (X[~apart], y[~apart]), (X[apart], y[apart])
    forest = RandomForestRanker(30, measure="rmse", max_features=0.6, **SMALL).fit(*train, qid=qid[~apart])
    model = HistGBRTRegressor(
        init=clone(forest), init_cv="oob", max_iter=40, learning_rate=0.1, **SMALL | {"min_samples_leaf": 10}
    ).fit(*train, qid=qid[~apart])
    rmse = as_measure("rmse")
    assert rmse(test[1], model.predict(test[0]), qid=qid[apart]) < rmse(
        test[1], forest.predict(test[0]), qid=qid[apart]
    )
