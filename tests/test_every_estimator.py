"""Properties that all three estimators share, checked on each of them."""

import ast
import copy
import inspect
import itertools
import math
import multiprocessing
import os
import pickle
import re
import signal
import sys
import threading
import time
import warnings
from importlib import import_module
from inspect import signature
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import (
    get_scorer,
    log_loss,
    mean_absolute_error,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    r2_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import ranktrees
from ranktrees import (
    AveragedRanker,
    BlendRanker,
    FitWarning,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    MissingQueryWarning,
    OrdinalRanker,
    RandomForestRanker,
    as_measure,
    query_scorer,
    score_curves,
)
from ranktrees.estimators.parameters import (
    ABSENT,
    LOSSES,
    MODULES,
    THEIRS,
    THEIRS_OF_ATTRIBUTES,
    THEIRS_OF_METHODS,
    THEIRS_OF_MODULES,
)
from ranktrees.rows import check_fit
from ranktrees.rows.sampling import Bootstrap, hold_out
from reference.scoring import nameless

ESTIMATORS = [LambdaMARTRanker, HistGBRTRegressor, RandomForestRanker]
BOOSTED = [LambdaMARTRanker, HistGBRTRegressor]
RANKERS = [LambdaMARTRanker, RandomForestRanker]

each = pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
each_boosted = pytest.mark.parametrize("cls", BOOSTED, ids=lambda cls: cls.__name__)
each_ranker = pytest.mark.parametrize("cls", RANKERS, ids=lambda cls: cls.__name__)


SMALL = {"random_state": 0, "n_jobs": 1, "min_samples_leaf": 3, "max_leaf_nodes": 8}
PLAIN = {"learning_rate": 0.1, "l2_regularization": 0.0, "max_features": 1.0, "subsample": 1.0}


def make(cls, n_trees=8, **parameters):
    """An estimator that is fast on little data; boosting without chance."""
    settings = SMALL if cls is RandomForestRanker else SMALL | PLAIN
    return cls(**{number_of_trees(cls): n_trees}, **(settings | parameters))


def number_of_trees(cls):
    return "n_estimators" if cls is RandomForestRanker else "max_iter"


def without_chance(cls, **parameters):
    """An estimator whose trees do not depend on draws of rows or features."""
    if cls is RandomForestRanker:
        parameters = {"bootstrap": False, "max_features": None} | parameters
    else:
        parameters = {"gradient_sampling": None} | parameters
    return make(cls, **parameters)


def make_rows(n_queries=30, rows_per_query=20, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    n_rows = n_queries * rows_per_query
    X = rng.normal(size=(n_rows, n_features)).round(2)
    X[rng.random(X.shape) < 0.1] = 0.0
    y = np.clip(np.round(X[:, 0] + 0.7 * X[:, 1] * X[:, 2] + rng.normal(0, 0.4, n_rows) + 1), 0, 4)
    return X, y, np.repeat(np.arange(n_queries), rows_per_query)


@pytest.fixture(scope="module")
def rows():
    """X, y, qid; do not change them."""
    X, y, qid = make_rows()
    for array in (X, y, qid):
        array.flags.writeable = False
    return X, y, qid


# ------------------------------------------------------------------------------------ scikit-learn's checks

ZERO_WEIGHT_IS_NOT_ABSENCE = "a row of weight zero still takes a rank and fills up its query, so it counts"
DRAWS_ARE_PER_ROW = (
    "bootstrap samples are drawn per row, and min_samples_leaf counts rows, whatever they weigh"
)


def expected_failures(estimator):
    if isinstance(estimator, HistGBRTRegressor | HistGBRTClassifier | AveragedRanker):
        return {}  # the last learns nothing from as few rows as these checks have
    reason = DRAWS_ARE_PER_ROW if isinstance(estimator, RandomForestRanker) else ZERO_WEIGHT_IS_NOT_ABSENCE
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


checked = parametrize_with_checks(
    [
        LambdaMARTRanker(max_iter=10, n_jobs=1),
        HistGBRTRegressor(n_jobs=1),
        HistGBRTClassifier(n_jobs=1),
        RandomForestRanker(10, n_jobs=1),
        AveragedRanker(max_iter=10, n_jobs=1),
    ],
    expected_failed_checks=expected_failures,
)


@pytest.mark.parametrize("routing", [False, True], ids=["routing off", "routing on"])
@pytest.mark.filterwarnings("ignore::ranktrees.MissingQueryWarning")
@checked
def test_scikit_learn_checks(estimator, check, routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        check(estimator)


# ------------------------------------------------------------------------------------ an object like others


@each
@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["deepcopy", "pickle"],
)
def test_copies_score_alike(cls, copied, rows):
    X, y, qid = rows
    model = make(cls).fit(X, y, qid=qid)
    twin = copied(model)
    assert twin.ensemble_.digest() == model.ensemble_.digest()
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert pickle.dumps(twin) == pickle.dumps(model)


@each
def test_joblib_file(cls, rows, tmp_path):
    X, y, qid = rows
    model = make(cls).fit(X, y, qid=qid)
    joblib.dump(model, tmp_path / "model.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "model.joblib").predict(X), model.predict(X))


@each
def test_clone_is_unfitted_and_fits_the_same(cls, rows):
    X, y, qid = rows
    model = make(cls)
    before = model.get_params()
    model.fit(X, y, qid=qid)
    assert model.get_params() == before
    twin = clone(model)
    with pytest.raises(NotFittedError):
        twin.predict(X)
    assert twin.fit(X, y, qid=qid).ensemble_.digest() == model.ensemble_.digest()


@each
def test_repr_html(cls, rows):
    X, y, qid = rows
    model = make(cls)
    assert cls.__name__ in model._repr_html_()
    assert cls.__name__ in model.fit(X, y, qid=qid)._repr_html_()
    assert repr(cls()) == f"{cls.__name__}()"


@each
def test_unknown_names_raise(cls, rows):
    X, y, qid = rows
    with pytest.raises(TypeError, match=rf"{cls.__name__} got .*'n_treez'; .* get_params"):
        cls(n_treez=5)
    with pytest.raises(TypeError, match=f"'num_boost_round'; expected {number_of_trees(cls)}, "):
        cls(num_boost_round=5)
    with pytest.raises(TypeError, match=r"'max_leafnodes'; .* nearest are .*'max_leaf_nodes'"):
        cls(max_leafnodes=5)
    with pytest.raises(ValueError, match=rf"Invalid parameter 'n_treez' for .*{cls.__name__}; .* get_params"):
        cls().set_params(n_treez=5)
    with pytest.raises(ValueError, match=f"'num_boost_round' .*; expected {number_of_trees(cls)}, "):
        cls().set_params(num_boost_round=5)
    with pytest.raises(TypeError, match="'reg_alpha'; it has no such parameter: l2_regularization is"):
        cls(reg_alpha=1.0)
    with pytest.raises(TypeError, match="'force_row_wise'; it has no such parameter: models never depend on"):
        cls(force_row_wise=True)
    with pytest.raises(TypeError, match="'bagging_seed'; expected random_state, "):
        cls(bagging_seed=1)
    boosts = "min_gain_to_split" in cls().get_params()
    least_gain = "expected min_gain_to_split," if boosts else "it has no such parameter: min_samples_leaf"
    with pytest.raises(TypeError, match=f"'gamma'; {least_gain}"):
        cls(gamma=1.0)
    with pytest.raises(TypeError, match=rf"{cls.__name__}\.fit got .*'sample_weigth'; .* \['sample_weight'"):
        cls().fit(X, y, qid=qid, sample_weigth=y)
    with pytest.raises(ValueError, match=number_of_trees(cls)):
        make(cls, n_trees=0).fit(X, y, qid=qid)


def test_an_unknown_measure_is_refused_in_fit(rows):
    X, y, qid = rows
    for model in (*(make(cls) for cls in ESTIMATORS), OrdinalRanker(Ridge())):
        with pytest.raises(ValueError, match="unknown measure 'ndgc'"):
            model.set_params(measure="ndgc").fit(X, y, qid=qid)


def test_names_of_others_are_translated_to_parameters():
    assert THEIRS.keys() <= set().union(*(cls().get_params() for cls in ESTIMATORS))
    absent = {name for names in ABSENT.values() for name in names}
    for ours, names in THEIRS.items():
        assert not absent.intersection(names) or any(ours not in cls().get_params() for cls in ESTIMATORS)


def test_losses_of_others_are_translated(rows):
    X, y, qid = rows
    for ours, theirs in LOSSES.items():
        kind, parameters = re.fullmatch(r"(\w+)\((.*)\)", ours).groups()
        model = getattr(ranktrees, kind)(max_iter=1, **dict(re.findall(r'(\w+)="(\w+)"', parameters)))
        labels = y > 1 if kind == "HistGBRTClassifier" else y + ("gamma" in parameters)
        model.fit(X, labels, qid=qid)
        for loss, cls in itertools.product(theirs, (LambdaMARTRanker, HistGBRTRegressor)):
            told = f"loss={loss!r}; expected the name of the loss in ranktrees: use {ours}."
            with pytest.raises(ValueError, match=re.escape(told)):
                cls(loss=loss).fit(X, y, qid=qid)


@pytest.mark.parametrize(
    ("loss", "ours"),
    [("YetiRank:mode=NDCG", "noise=1.0"), ("LambdaMart:metric=NDCG", 'loss="lambdamart")')],
)
def test_losses_with_settings_are_translated(rows, loss, ours):
    X, y, qid = rows
    with pytest.raises(ValueError, match=rf"loss='{loss}'; .*{re.escape(ours)}"):
        LambdaMARTRanker(loss).fit(X, y, qid=qid)


def test_values_of_others_are_answered(rows, tmp_path):
    X, y, qid = rows
    with pytest.raises(ValueError, match=r"loss is a dict; expected .*LambdaMARTRanker\(\*\*parameters\)"):
        LambdaMARTRanker({"objective": "lambdarank"}).fit(X, y, qid=qid)
    for cls in (LambdaMARTRanker, RandomForestRanker):
        with pytest.raises(
            ValueError, match=r"measure=\['ndcg@1', 'ndcg@10'\]; expected the one .*score_curves"
        ):
            cls(measure=["ndcg@1", "ndcg@10"]).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"scoring=\[1, 3\]; expected the one that early stopping follows"):
        LambdaMARTRanker(scoring=[1, 3]).fit(X, y, qid=qid)
    for path in (tmp_path / "model.txt", "model.txt"):
        with pytest.raises(
            ValueError, match=r"init='.*model.txt'; expected a model: load it with .*load_lightgbm"
        ):
            LambdaMARTRanker(init=path).fit(X, y, qid=qid)


def test_rows_are_no_bunch(rows):
    X, y, qid = rows
    bunch = Bunch(data=X, target=y, qid=qid)
    with pytest.raises(ValueError, match=r"X is <Bunch .*pass X.data, with y=X.target and qid=X.qid\."):
        LambdaMARTRanker().fit(bunch)


@each
def test_what_others_pass_to_methods_is_answered(cls, rows):
    X, y, qid = rows
    with pytest.raises(TypeError, match=r"fit got .*'group_id'; here that is qid=\."):
        cls().fit(X, y, group_id=qid)
    with pytest.raises(TypeError, match=r"fit got .*'eval_at'; measure is a parameter"):
        cls().fit(X, y, qid=qid, eval_at=[5])
    with pytest.raises(TypeError, match=r"fit got .*'random_state'; random_state is a parameter"):
        cls().fit(X, y, qid=qid, random_state=0)
    with pytest.raises(TypeError, match=r"fit got .*'feval'; here that is a function as scoring= of the"):
        cls().fit(X, y, qid=qid, feval=len)
    with pytest.raises(TypeError, match=r"fit got .*'logger'; it accepts .*'qid'"):
        cls().fit(X, y, qid=qid, logger=print)
    model = make(cls).fit(X, y, qid=qid)
    with pytest.raises(TypeError, match=r"predict got .*'num_iteration'; here that is n_trees="):
        model.predict(X, num_iteration=1)
    with pytest.raises(TypeError, match=r"score got .*'group_weight'; here that is sample_weight="):
        model.score(X, y, group_weight=y)
    with pytest.raises(TypeError, match=r"refit_leaves got .*'decay_rate'; here that is decay="):
        model.refit_leaves(X, y, qid=qid, decay_rate=0.5)
    with pytest.raises(TypeError, match=r"refit_leaves got .*'group'; here that is qid=np.repeat"):
        model.refit_leaves(X, y, group=[len(y)])


@each
def test_what_is_passed_by_position_though_it_has_to_be_named_is_answered(cls, rows):
    X, y, qid = rows
    model = make(cls).fit(X, y, qid=qid)
    for method, given, told in (
        ("predict", (X, qid), r"predict takes X by position, .*; write predict\(X, qid=qid\)\."),
        ("fit", (X, y, None, qid), r"fit takes X, y, sample_weight by position, .*, qid=qid\)\."),
        ("score", (X, y, None, qid), r"score takes X, y, sample_weight by position, .*, qid=qid\)\."),
    ):
        with pytest.raises(TypeError, match=rf"^{cls.__name__}\.{told}$"):
            getattr(model, method)(*given)


def test_methods_that_take_rows_alone_say_so(rows):
    X, y, qid = rows
    inner = LambdaMARTRanker(max_iter=2)
    for model in (BlendRanker([("a", inner), ("b", inner)]), OrdinalRanker(HistGBRTRegressor(max_iter=2))):
        model.fit(X, y, qid=qid)
        with pytest.raises(TypeError, match=r"predict takes X and nothing else; write predict\(X\)\.$"):
            model.predict(X, qid)
        with pytest.raises(TypeError, match=r"predict got .*'num_iteration'; it accepts \['X'\]\.$"):
            model.predict(X, num_iteration=1)
        with pytest.raises(TypeError, match=r"fit got .*'group_id'; here that is qid=\."):
            model.fit(X, y, group_id=qid)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("early_stopping_min_delta", "expected tol,"),
        ("ndcg_eval_at", "expected measure,"),
        ("base_score", "expected init,"),
        ("lambdarank_pair_method", "no such parameter: truncation_level chooses the pairs"),
        ("num_parallel_tree", "no such parameter: RandomForestRanker is the forest"),
        ("alpha", "no such parameter: quantile is what"),
        ("random_strength", "no such parameter: max_features draws"),
        ("cat_smooth", "no such parameter: categories are split by sets"),
        ("use_missing", "no such parameter: missing values are NaN"),
        ("od_type", "no such parameter: n_iter_no_change rounds"),
        ("rate_drop", "no such parameter: .* boosting drops no trees"),
        ("feature_contri", "no such parameter: feature_costs makes"),
        ("cegb_tradeoff", "expected cost_weight,"),
        ("snapshot_interval", "expected checkpoint_every,"),
        ("eval_fraction", "expected validation_fraction,"),
        ("max_bin_by_feature", "no such parameter: max_bins is the same"),
        ("tree_learner", "no such parameter: ranktrees.mpi"),
    ],
)
def test_names_that_resemble_others_are_answered_by_what_they_mean(name, told):
    with pytest.raises(TypeError, match=f"'{name}'; .*{told}"):
        LambdaMARTRanker(**{name: 1})


def test_arguments_of_fit_that_are_nowhere_are_answered(rows):
    X, y, qid = rows
    with pytest.raises(TypeError, match=r"fit got .*'use_best_model'; .* early stopping keeps the trees up"):
        LambdaMARTRanker().fit(X, y, qid=qid, use_best_model=True)


def test_rounds_to_wait_for_are_not_early_stopping(rows):
    X, y, qid = rows
    with pytest.raises(ValueError, match=r"early_stopping=10 .*: set n_iter_no_change=10, and pass valid"):
        LambdaMARTRanker(early_stopping=10).fit(X, y, qid=qid)


@pytest.mark.parametrize("callback", [print, [], type("Empty", (), {})])
def test_callbacks_that_are_none_are_told_what_one_is(callback):
    pytest.importorskip("sklearn.callback")
    with pytest.raises(
        TypeError, match=r"FitCallback protocol, got .*put the code of a function into on_fit"
    ):
        LambdaMARTRanker().set_callbacks(callback)


def test_names_that_the_package_does_not_have_are_answered():
    for ours, theirs in THEIRS_OF_MODULES.items():
        for name in theirs:
            with pytest.raises(AttributeError, match=re.escape(f"{name!r}; here that is {ours}.")):
                getattr(ranktrees, name)
    told = re.findall(r"\w+(?=\(\.|\(\)|\()|load_\w+", " ".join(THEIRS_OF_MODULES))
    methods = {"fit", "plot", "load"}
    assert {*told} - methods <= {*ranktrees.__all__}
    for module in MODULES:
        for name in {*import_module(f"ranktrees.{module}").__all__} - {*ranktrees.__all__}:
            with pytest.raises(AttributeError, match=rf"attribute '{name}'; it is in ranktrees\.\w+\.$"):
                getattr(ranktrees, name)
    assert {*ranktrees.__all__} <= {*dir(ranktrees)}
    with pytest.raises(AttributeError, match=r"^module 'ranktrees' has no attribute 'lambda_mart'$"):
        ranktrees.lambda_mart  # noqa: B018


def test_all_unknown_parameters_are_named_at_once():
    message = (
        r"unexpected keyword argument 'num_leaves'; expected max_leaf_nodes, .*\n'eta': expected "
        r"learning_rate, .*\n'ccp_alpha': it has no such parameter: .*\n'foo': expected one of its"
    )
    with pytest.raises(TypeError, match=message):
        LambdaMARTRanker(num_leaves=3, max_iter=2, eta=0.1, ccp_alpha=0.0, foo=1)


def test_sizes_of_queries_are_translated_where_only_ids_are_taken(rows):
    X, y, _ = rows
    model = make(LambdaMARTRanker).fit(X, y, group=[20] * 30)
    for call in (lambda **ids: model.score(X, y, **ids), lambda **ids: model.rank(X, **ids)):
        with pytest.raises(TypeError, match=r"'group'; here that is qid=np.repeat\(np.arange\("):
            call(group=[20] * 30)


def test_what_methods_are_said_to_know_they_do():
    methods = (LambdaMARTRanker.fit, LambdaMARTRanker.predict, LambdaMARTRanker.refit_leaves)
    arguments = set().union(*(signature(method).parameters for method in methods))
    ours = {name.split("=")[0] for name in THEIRS_OF_METHODS if re.match(r"\w+=", name)}
    assert ours - {"n_iter_no_change"} == ours & arguments
    taken = arguments | LambdaMARTRanker().get_params().keys()
    others = {name for names in THEIRS_OF_METHODS.values() for name in names}
    assert taken & others == {"group"}  # which fit takes, and score does not


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ([["site"]], "expected a list of names or indices of features, or a mask"),
        ([True], "is a mask of shape .1,., but X has 2 features"),
        (["page"], "categorical_features names 'page', which is not a feature of X"),
        ({"site": 1}, "expected True or False for each name or index"),
    ],
    ids=str,
)
@pytest.mark.parametrize("site", ["uk", 1.0], ids=["texts", "numbers"])
def test_categories_that_cannot_be_meant_are_named_for_texts_as_for_numbers(site, named, message, rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match=message):
        make(HistGBRTRegressor, categorical_features=named).fit(pd.DataFrame({"a": X[:, 0], "site": site}), y)


@pytest.mark.parametrize("frames", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_query_ids_that_are_left_among_the_features_are_doubted(frames, rows):
    X, y, qid = rows
    frame = pd.DataFrame(X).add_prefix("f")
    for name, ids in {"qid": qid, "session": pd.Series(qid, name="session")}.items():
        with pytest.warns(FitWarning, match=rf"X has a column '{name}', which is the name of the query ids"):
            make(LambdaMARTRanker).fit(frames(frame.assign(**{name: qid})), y, qid=ids)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(LambdaMARTRanker).fit(frames(frame), y, qid=pd.Series(qid, name="session"))
        make(HistGBRTRegressor).fit(frames(frame.assign(qid=qid)), y)


@pytest.mark.parametrize("frames", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize("estimator", [LambdaMARTRanker, HistGBRTRegressor, RandomForestRanker])
def test_labels_that_are_left_among_the_features_are_doubted(estimator, frames, rows):
    X, y, qid = rows
    frame = frames(pd.DataFrame(X).add_prefix("f").assign(grade=y))
    with pytest.warns(FitWarning, match="the column 'grade' of X holds the labels"):
        make(estimator).fit(frame, frame["grade"], qid=qid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".* learned nothing")
        make(estimator).fit(frame, pd.Series(y[::-1], name="grade"), qid=qid)  # other values
        make(estimator).fit(np.column_stack([X, y])[:19], y[:19], qid=qid[:19])  # perhaps by chance
        make(estimator).fit(np.column_stack([X, 0 * y]), 0 * y, qid=qid)
    for kind in (np.asarray, np.asfortranarray, np.float32, sp.csr_array):
        rows = kind(np.nan_to_num(np.column_stack([X, y])))
        with pytest.warns(FitWarning, match=f"the column {X.shape[1]} of X holds the labels"):
            make(estimator).fit(rows, y, qid=qid)


@pytest.mark.parametrize(
    "recoded",
    [
        lambda y: 2 * y + 1,
        lambda y: 3 - y,
        lambda y: pd.Categorical(np.array(["bad", "so", "good", "best"])[y]),
    ],
)
def test_labels_in_other_values_are_doubted(recoded):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(200, 2)), rng.integers(0, 4, 200), np.repeat(np.arange(20), 10)
    frame = pd.DataFrame(X).add_prefix("f").assign(stars=recoded(y))
    for order in (np.arange(200), rng.permutation(200)):
        with pytest.warns(FitWarning, match="the column 'stars' of X holds the labels in other values"):
            make(LambdaMARTRanker).fit(frame.iloc[order], y[order], qid=qid[order])
    if isinstance(recoded(y), np.ndarray):
        for kind in (sp.csr_array, np.asfortranarray):
            with pytest.warns(FitWarning, match="the column 2 of X holds the labels in other values"):
                make(LambdaMARTRanker).fit(kind(frame.to_numpy()), y, qid=qid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".* learned nothing")
        make(LambdaMARTRanker).fit(frame, np.minimum(y, 2), qid=qid)  # two values for a label
        make(LambdaMARTRanker).fit(
            frame, np.where(np.arange(200) == 7, (y + 1) % 4, y), qid=qid
        )  # but for a row
        make(HistGBRTRegressor).fit(X, 2 * X[:, 0])  # each label has one row


@pytest.mark.parametrize("kind", [int, float, "shop {}".format])
def test_query_ids_that_are_left_among_the_features_under_another_name_are_doubted(kind, rows):
    X, y, qid = rows
    frame, ids = pd.DataFrame(X).add_prefix("f"), [kind(one) for one in qid]
    frame["session"] = pd.Series(ids, dtype="category" if isinstance(ids[0], str) else None)
    with pytest.warns(FitWarning, match="X has a column 'session', which holds the query ids"):
        make(LambdaMARTRanker).fit(frame, y, qid=ids)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(LambdaMARTRanker).fit(frame, y, qid=np.roll(qid, 1))
        make(LambdaMARTRanker).fit(frame.assign(session=0), y, qid=0 * qid)


def test_a_category_of_its_own_for_each_query_is_an_id():
    X, qid = np.random.default_rng(0).normal(size=(60, 2)), np.repeat(np.arange(20), 3)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(session=pd.Categorical(-qid))
    shuffled = np.random.default_rng(1).permutation(60)
    for rows in (np.arange(60), shuffled):
        with pytest.warns(FitWarning, match="X has a column 'session', which holds the query ids"):
            make(LambdaMARTRanker).fit(frame.iloc[rows], X[rows, 0] > 0, qid=qid[rows])
    with pytest.warns(FitWarning, match="X has a column 'session', which holds the query ids"):
        make(LambdaMARTRanker).fit(frame, X[:, 0] > 0, group=np.full(20, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(LambdaMARTRanker).fit(frame.assign(session=pd.Categorical(qid // 2)), X[:, 0] > 0, qid=qid)
        make(LambdaMARTRanker).fit(frame.assign(session=pd.Categorical(-qid % 19)), X[:, 0] > 0, qid=qid)
        make(LambdaMARTRanker).fit(
            frame.assign(session=pd.Categorical(np.arange(60) % 20)), X[:, 0] > 0, qid=qid
        )


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_column_that_numbers_the_queries_is_an_id(kind):
    rng = np.random.default_rng(0)
    number, y, ids = (
        np.repeat(rng.permutation(40)[:25] + 7, 3),
        np.arange(75) % 2,
        np.repeat(np.arange(25), 3),
    )
    names, order = [f"session {i}" for i in ids], rng.permutation(75)

    def fit(column, rows=order, **queries):
        X = np.column_stack([rng.normal(size=75), column])[rows]
        return make(LambdaMARTRanker).fit(kind(X), y[rows], **queries)

    with pytest.warns(FitWarning, match=r"X has a column 1, which holds the query ids.*Drop it from X\.$"):
        fit(number, qid=np.take(names, order))
    with pytest.warns(FitWarning, match="X has a column 1, which holds the query ids"):
        fit(number, rows=np.arange(75), group=np.full(25, 3))
    one_differs = np.where(np.arange(75) == 50, 60, number)
    shared = np.where(ids == 3, number[0], number)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for feature in (one_differs, shared, number + 0.5, number**2, np.where(ids == 3, np.nan, number)):
            fit(feature, qid=np.take(names, order))


def texts_as(kind, frame):
    """A frame whose column of texts is of some kind."""
    if kind == "polars":
        return pl.from_pandas(frame)
    if kind == "Arrow":
        return pa.Table.from_pandas(frame, preserve_index=False)
    if kind == "inferred":
        return frame.assign(site=frame["site"].tolist())
    return frame.astype({"site": kind})


TEXTS = [object, "inferred", "string", pd.ArrowDtype(pa.string()), "polars", "Arrow"]


@pytest.mark.parametrize("kind", TEXTS, ids=str)
@pytest.mark.parametrize("named", [["site"], [1], [False, True, False], {"site": True, "a": False}], ids=str)
def test_columns_of_texts_are_categories_if_they_are_named(kind, named, rows):
    X, y, _ = rows
    numbers = np.nan_to_num(4 * (X[:, 0] - np.nanmin(X[:, 0]))).astype(int) % 4
    sites = np.array(["uk", "fr", None, "de"], object)[numbers]
    frame = pd.DataFrame({"a": X[:, 0], "site": sites, "b": X[:, 1]})
    y = y + 2 * (numbers % 2)
    expected = make(HistGBRTRegressor).fit(frame.astype({"site": "category"}), y)
    assert (expected.ensemble_.nodes["categories"] >= 0).any()
    texts = texts_as(kind, frame)
    model = make(HistGBRTRegressor, categorical_features=named).fit(texts, y)
    assert model.ensemble_.to_bytes() == expected.ensemble_.to_bytes()
    for each in (texts, frame, frame.astype({"site": "category"})):
        assert model.predict(each).tobytes() == expected.predict(frame).tobytes()
    unseen = frame.assign(site="es")
    assert model.predict(texts_as(kind, unseen)).tobytes() == model.predict(frame.assign(site=None)).tobytes()
    with pytest.raises(ValueError, match=r"column 'site' of X holds .* or its name in categorical_features"):
        make(HistGBRTRegressor).fit(texts, y)


@pytest.mark.parametrize("name", [name for name in ranktrees.__all__ if not name.endswith("Warning")])
def test_signatures_name_types_as_people_do(name):
    public = getattr(ranktrees, name)
    methods = [getattr(public, method) for method in dir(public) if method[0] != "_"]
    for function in (public, *methods):
        if callable(function) and function.__module__.startswith("ranktrees"):
            assert "numpy._typing" not in str(signature(function))


def test_attributes_of_others_are_translated(rows):
    X, y, qid = rows
    model = LambdaMARTRanker(max_iter=2, n_iter_no_change=1).fit(pd.DataFrame(X).add_prefix("f"), y, qid=qid)
    known = {*dir(model), *dir(ranktrees), *dir(ranktrees.Ensemble)}
    for ours, theirs in THEIRS_OF_ATTRIBUTES.items():
        assert known >= set(re.findall(r"\w+_\b|\w+(?=\()", ours))
        for name in theirs:
            assert not hasattr(model, name)
            with pytest.raises(AttributeError, match=re.escape(f"{name!r}; here that is {ours}.")):
                getattr(model, name)
    with pytest.raises(AttributeError, match=r"^'LambdaMARTRanker' object has no attribute 'booster'$"):
        model.booster  # noqa: B018


def test_names_of_others_are_translated_as_in_the_guide():
    guide = Path(__file__).parents[1] / "docs" / "guide" / "migrating.md"
    lines = [line.split(" | ") for line in guide.read_text().splitlines() if line.startswith("| `")]
    told = {}
    for theirs, ours in (map(re.compile(r"\w+").findall, line[:2]) for line in lines):
        for name in theirs:
            told.setdefault(name, set()).update(ours)
    boosting = LambdaMARTRanker().get_params()  # the tables are of boosters
    answered = {(name, ours) for ours in boosting for name in THEIRS.get(ours, ()) if name in told}
    assert len(answered) > 30
    assert {(name, ours) for name, ours in answered if ours not in told[name]} == set()


@each
def test_every_parameter_is_documented_checked_and_kept(cls):
    parameters = cls().get_params()
    assert set(cls._parameter_constraints) == set(parameters)
    text = inspect.cleandoc(cls.__doc__)
    for name, parameter in inspect.signature(cls).parameters.items():
        said = re.findall(rf"^(?:\w+, )*{name}(?:, \w+)* : (.*)$", text, re.MULTILINE)
        assert len(said) == 1, (name, said)
        if parameter.default is not inspect.Parameter.empty:
            default = re.search(r"default=(.*)$", said[0])[1]
            assert ast.literal_eval(default) == parameter.default, name


@each
@pytest.mark.parametrize("number", [np.int8(100), np.uint8(255)], ids=repr)
def test_numbers_of_leaves_of_few_bits(cls, number, rows):
    X, y, qid = rows
    for others in ({}, {} if cls is RandomForestRanker else {"split_search": "coarse_to_fine"}):
        few, plain = (
            make(cls, 2, max_leaf_nodes=n, min_samples_leaf=1, **others).fit(X, y, qid=qid)
            for n in (number, int(number))
        )
        assert few.ensemble_.digest() == plain.ensemble_.digest()


@each
def test_feature_names(cls, rows):
    X, y, qid = rows
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = make(cls).fit(frame, y, qid=qid)
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert model.n_features_in_ == 6
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[list("bacdef")])
    with pytest.raises(ValueError, match="unseen"):
        model.predict(frame.rename(columns={"a": "z"}))
    assert not hasattr(model.fit(X, y, qid=qid), "feature_names_in_")


@pytest.mark.parametrize("split_search", ["full", "streaming"])
def test_messages_call_features_by_their_names(split_search, rows):
    X, y, _ = rows
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    for parameters, columns, message in (
        ({"categorical_features": ["f1"]}, {"f1": np.where(y > 0, np.inf, 0)}, "feature 'f1' of X holds inf"),
        ({"monotonic_cst": {"f2": 1}}, {"f2": pd.Categorical(y)}, "monotonic_cst .* feature 'f2'"),
        ({"categorical_features": None}, {"f2": pd.Categorical(y)}, "leaves out column 'f2'"),
        ({"feature_costs": [1, 1, -1, *[0] * (X.shape[1] - 3)]}, {}, "-1 for feature 'f2'"),
    ):
        model = make(HistGBRTRegressor, split_search=split_search, **parameters)
        with pytest.raises(ValueError, match=message):
            model.fit(frame.assign(**columns), y)
    model = make(HistGBRTRegressor).fit(frame.assign(f2=pd.Categorical(y)), y)
    with (
        pytest.warns(UserWarning, match="X does not have valid feature names"),
        pytest.raises(ValueError, match="column 'f2' was a category column"),
    ):
        model.predict(X)


@each
def test_in_pipelines_with_set_output(cls, rows):
    X, y, qid = rows
    step = cls.__name__.lower()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    scaled = make_pipeline(StandardScaler(), make(cls)).set_output(transform="pandas")
    scaled.fit(frame, y, **{f"{step}__qid": qid})
    assert scaled[-1].feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_allclose(scaled.predict(frame), make(cls).fit(X, y, qid=qid).predict(X), atol=1e-6)
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), remainder="passthrough")
    both = make_pipeline(columns, make(cls)).fit(frame, y, **{f"{step}__qid": qid})
    assert both.predict(frame).shape == y.shape


# --------------------------------------------------------------------------------------- failing, refitting


class Interrupting(BaseEstimator):
    """A start that fails in the middle of the fit that uses it."""

    def fit(self, X, y, sample_weight=None):
        return self

    def predict(self, X):
        raise KeyboardInterrupt


@each
@pytest.mark.parametrize("wrong", ["y", "qid", "X", "sample_weight", "interaction_cst", "halfway"])
def test_failed_fit_leaves_everything_as_it_was(cls, wrong, rows):
    X, y, qid = rows
    model = make(cls).fit(pd.DataFrame(X, columns=list("abcdef")), y, qid=qid)
    before, scores = pickle.dumps(model), model.predict(pd.DataFrame(X, columns=list("abcdef")))
    data = {"X": X[:, :4], "y": y, "qid": qid, "sample_weight": None}
    parameters = {}
    if wrong == "interaction_cst":
        parameters = {"interaction_cst": [{99}]}
    elif wrong == "halfway" and cls is not RandomForestRanker:
        parameters = {"init": Interrupting()}
    elif wrong == "halfway":
        parameters = {"oob_score": "ndcg@3", "bootstrap": False}
    elif wrong == "X":
        data["X"] = np.full((len(y), 2), "word")
    else:
        data[wrong] = np.full(len(y), np.nan)
    old = {name: getattr(model, name) for name in parameters}
    with pytest.raises((ValueError, KeyboardInterrupt)):
        model.set_params(**parameters).fit(**data)
    model.set_params(**old)
    assert pickle.dumps(model) == before
    np.testing.assert_array_equal(model.predict(pd.DataFrame(X, columns=list("abcdef"))), scores)


@each
def test_refit_forgets(cls, rows):
    X, y, qid = rows
    model = make(cls).fit(X, y, qid=qid)
    again = model.fit(X[:200, :3], y[:200], qid=qid[:200])
    fresh = make(cls).fit(X[:200, :3], y[:200], qid=qid[:200])
    assert again.ensemble_.digest() == fresh.ensemble_.digest()
    assert again.n_features_in_ == 3


# -------------------------------------------------------------------------------------------------- weights


@each
def test_weights_of_one_change_nothing(cls, rows):
    X, y, qid = rows
    plain = make(cls).fit(X, y, qid=qid)
    assert make(cls).fit(X, y, np.ones(len(y)), qid=qid).ensemble_.digest() == plain.ensemble_.digest()
    np.testing.assert_array_equal(
        make(cls).fit(X, y, np.full(len(y), 4.0), qid=qid).predict(X), plain.predict(X)
    )


@each
def test_query_of_weight_zero_is_not_looked_at(cls, rows):
    X, y, qid = rows
    heavy = qid != 7
    weighted = without_chance(cls, min_samples_leaf=1).fit(X, y, heavy.astype(float), qid=qid)
    without = without_chance(cls, min_samples_leaf=1).fit(X[heavy], y[heavy], qid=qid[heavy])
    np.testing.assert_allclose(weighted.predict(X[heavy]), without.predict(X[heavy]), atol=1e-6)


@pytest.mark.parametrize("cls", [HistGBRTRegressor, RandomForestRanker])
def test_weights_are_repetitions(cls, rows):
    """Of rows that are looked at one by one; a pair of rows is not what two copies of each of them are."""
    X, y, qid = rows
    times = np.random.default_rng(0).integers(1, 5, len(y))
    weighted = without_chance(cls, min_samples_leaf=1).fit(X, y, times, qid=qid)
    again = np.repeat(np.arange(len(y)), times)
    repeated = without_chance(cls, min_samples_leaf=1).fit(X[again], y[again], qid=qid[again])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-6)


@each
def test_row_and_query_weights_multiply(cls, rows):
    X, y, qid = rows
    rng = np.random.default_rng(1)
    of_query, of_row = rng.integers(1, 5, 30)[qid], rng.integers(1, 4, len(y))
    plain = without_chance(cls).fit(X, y, qid=qid)
    weighted = without_chance(cls).fit(X, y, of_query * of_row, qid=qid)
    assert weighted.ensemble_.digest() != plain.ensemble_.digest()
    as_float = without_chance(cls).fit(X, y, (of_query * of_row).astype(np.float32), qid=qid)
    assert as_float.ensemble_.digest() == weighted.ensemble_.digest()
    assert weighted.score(X, y, of_query, qid=qid) != weighted.score(X, y, qid=qid)


@each
def test_query_weight_pulls_the_model(cls, rows):
    X, y, qid = rows
    y = np.where(qid < 15, y, 4 - y)  # one half wants the opposite of the other
    for first in (True, False):
        weight = np.where((qid < 15) == first, 100.0, 1.0)
        model = without_chance(cls).fit(X, y, weight, qid=qid)
        chosen = (qid < 15) == first
        ndcg = as_measure("ndcg@10")
        scores = model.predict(X)
        assert ndcg(y[chosen], scores[chosen], qid=qid[chosen]) > ndcg(
            y[~chosen], scores[~chosen], qid=qid[~chosen]
        )


# ----------------------------------------------------------------------------------------------- kinds of X


@each
def test_float32_rows_score_as_their_float64_values(cls, rows):
    X, y, qid = rows
    model = make(cls).fit(X, y, qid=qid)
    narrow = X.astype(np.float32)
    np.testing.assert_array_equal(model.predict(narrow), model.predict(narrow.astype(np.float64)))
    digests = {make(cls).fit(Z, y, qid=qid).ensemble_.digest() for Z in (narrow, narrow.astype(np.float64))}
    assert len(digests) == 1


FORMS = {
    "Fortran order": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "big-endian": lambda X: X.astype(">f8"),
    "lists": lambda X: X.tolist(),
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc_array": sp.csc_array,
    "coo_array": sp.coo_array,
    "pandas": lambda X: pd.DataFrame(X, columns=list("abcdef")),
    "pandas, nullable": lambda X: pd.DataFrame(X, columns=list("abcdef")).convert_dtypes(),
    "polars": lambda X: pl.DataFrame(X, schema=list("abcdef")),
    "pyarrow": lambda X: pa.table({name: X[:, j] for j, name in enumerate("abcdef")}),
}


@each
@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_matrix_is_the_same(cls, form, rows):
    X, y, qid = rows
    dense = make(cls).fit(X, y, qid=qid)
    model = make(cls).fit(FORMS[form](X), y, qid=qid)
    assert nameless(model.ensemble_) == dense.ensemble_
    np.testing.assert_array_equal(model.predict(FORMS[form](X)), dense.predict(X))


@each
def test_missing_values_in_every_kind_of_matrix(cls, rows):
    X, y, qid = rows
    X = X.copy()
    X[::5, 0] = np.nan
    digests = {
        nameless(make(cls).fit(form(X), y, qid=qid).ensemble_).digest()
        for form in (
            np.asarray,
            sp.csr_array,
            pd.DataFrame,
            lambda X: pl.DataFrame(X, nan_to_null=True),
            lambda X: np.ma.masked_array(np.nan_to_num(X), np.isnan(X)),
        )
    }
    assert len(digests) == 1


# ---------------------------------------------------------------------------------------- scores and stages


@each
def test_stages(cls, rows):
    X, y, qid = rows
    model = make(cls).fit(X, y, qid=qid)
    stages = list(model.staged_predict(X))
    assert len(stages) == 8
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    for k, stage in enumerate(stages, start=1):
        np.testing.assert_array_equal(model.predict(X, n_trees=k), stage)
    assert np.ptp(model.predict(X, n_trees=0)) == 0
    for wrong in (-1, 9, 2.5):
        with pytest.raises(ValueError, match="n_trees"):
            model.predict(X, n_trees=wrong)


@each
def test_feature_importances(cls, rows):
    X, y, qid = rows
    X = np.column_stack([X, np.ones(len(y))])
    model = make(cls).fit(X, y, qid=qid)
    assert model.feature_importances_.shape == (7,)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_[6] == 0
    assert model.feature_importances_.argmax() in (0, 1, 2)
    np.testing.assert_array_equal(model.feature_importances("gain"), model.feature_importances_)
    assert model.feature_importances("split").sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="kind"):
        model.feature_importances("cover")


@each
def test_score_is_the_mean_over_queries(cls, rows):
    X, y, qid = rows
    for measure in ("ndcg@3", "ndcg", "dcg@5"):
        model = make(cls, measure=measure).fit(X, y, qid=qid)
        expected = as_measure(measure)(y, model.predict(X), qid=qid)
        assert model.score(X, y, qid=qid) == pytest.approx(expected, abs=1e-14)
        assert model.score(X, y, groups=qid) == model.score(X, y, qid=qid)
        assert model.score(X, pd.Series(y, index=pd.Index(qid, name="qid"))) == model.score(X, y, qid=qid)
        shuffled = np.random.default_rng(0).permutation(len(y))
        assert model.score(X[shuffled], y[shuffled], qid=qid[shuffled]) == pytest.approx(expected, abs=1e-14)
        with pytest.raises(ValueError, match="score needs qid"):
            model.score(X, y)
        with pytest.raises(ValueError, match="takes labels >= 0, but y has label -1"):
            model.score(X, np.where(y > 0, y, -1), qid=qid)


@each_ranker
def test_score_without_qid_after_a_fit_without(cls, rows):
    X, y, _ = rows
    with pytest.warns(MissingQueryWarning, match="Pass qid="):
        model = make(cls).fit(X, y)
    assert model.score(X, y) == pytest.approx(
        as_measure("ndcg@10")(y, model.predict(X), qid=np.zeros(len(y)))
    )


def test_regressor_scores_r2_unless_told(rows):
    X, y, qid = rows
    model = make(HistGBRTRegressor).fit(X, y, qid=qid)
    assert model.score(X, y) == pytest.approx(r2_score(y, model.predict(X)))
    assert model.score(X, y, qid=qid) == pytest.approx(r2_score(y, model.predict(X)))
    shuffled = np.random.default_rng(0).permutation(len(y))
    assert model.score(X[shuffled], y[shuffled], y[shuffled] + 1, qid=qid[shuffled]) == pytest.approx(
        r2_score(y, model.predict(X), sample_weight=y + 1)
    )
    by_rows = make(HistGBRTRegressor, measure="rmse")
    by_rows.fit(X, y, qid=qid)
    assert by_rows.score(X, y) == pytest.approx(by_rows.score(X, y, qid=qid))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a mean over rows needs no queries
        assert by_rows.fit(X, y).score(X, y) < 0


# ------------------------------------------------------------------------------------------------ query ids

IDS = {
    "int32": lambda qid: qid.astype(np.int32),
    "uint64 near 2**64": lambda qid: np.uint64(2**64 - 100) + qid.astype(np.uint64),
    "float64": lambda qid: qid / 3,
    "words": lambda qid: np.array([f"query {i % 7} {i}" for i in qid]),
    "objects": lambda qid: np.array([(int(i), "x") for i in qid] + [None], object)[:-1],
    "list": lambda qid: [str(i) for i in qid],
    "dates": lambda qid: np.datetime64("2020-01-01") + qid,
    "category": lambda qid: pd.Series(qid).astype("category"),
    "polars": lambda qid: pl.Series(qid).cast(pl.String),
    "pyarrow": pa.array,
    "falling": lambda qid: -qid,
}


@each
@pytest.mark.parametrize("kind", IDS)
def test_ids_of_any_kind(cls, kind, rows):
    X, y, qid = rows
    expected = make(cls).fit(X, y, qid=qid).ensemble_.digest()
    assert make(cls).fit(X, y, qid=IDS[kind](qid)).ensemble_.digest() == expected


@each
def test_every_way_to_name_the_queries(cls, rows):
    X, y, qid = rows
    expected = make(cls).fit(X, y, qid=qid).ensemble_.digest()
    index = pd.Index(qid, name="qid")
    for given in (
        {"X": X, "y": y, "groups": qid},
        {"X": X, "y": y, "group": [20] * 30},
        {"X": X, "y": pd.Series(y, index=index)},
        {"X": pd.DataFrame(X, index=index), "y": y},
        {"X": X, "y": pd.Series(y, index=index), "qid": [f"{i}" for i in qid]},
    ):
        assert make(cls).fit(**given).ensemble_.digest() == expected
    with pytest.raises(ValueError, match="disagree"):
        make(cls).fit(X, y, qid=qid, group=[10] * 60)


@each
def test_rows_in_any_order(cls, rows):
    X, y, qid = rows
    dealt = np.arange(len(y)).reshape(30, 20).T.ravel()  # the first row of each query, the second of each...
    model = make(cls).fit(X[dealt], y[dealt], qid=qid[dealt])
    expected = make(cls).fit(X, y, qid=qid)
    assert model.ensemble_.digest() == expected.ensemble_.digest()
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


@each
def test_queries_in_any_order(cls, rows):
    X, y, qid = rows
    weight = 1 + qid % 3
    shuffled = np.random.default_rng(0).permutation(600).reshape(30, 20)[:, 0].argsort()
    shuffled = (shuffled[:, None] * 20 + np.arange(20)).ravel()
    model = without_chance(cls).fit(X[shuffled], y[shuffled], weight[shuffled], qid=qid[shuffled])
    expected = without_chance(cls).fit(X, y, weight, qid=qid)
    assert model.ensemble_.digest() == expected.ensemble_.digest()


@each
def test_labels_and_queries_of_every_size(cls):
    X, y, qid = make_rows(12)
    y = y * 10 + 0.25  # real-valued, above 31
    qid = qid.copy()
    qid[:3] = [100, 101, 102]  # queries of one row
    model = make(cls).fit(X, y, qid=qid)
    assert np.isfinite(model.predict(X)).all()
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.3
    with pytest.raises(ValueError, match="size of zero"):
        make(cls).fit(X, y, group=[100, 0, 140])


@each
def test_one_query_of_a_hundred_thousand_rows(cls):
    X, y, _ = make_rows(5000)
    started = time.perf_counter()
    model = make(cls, 2, n_jobs=2).fit(X, y, qid=np.zeros(len(y)))
    assert time.perf_counter() - started < 20
    assert model.score(X, y, qid=np.zeros(len(y))) > (0.3 if cls in RANKERS else 0.1)


@each
def test_nothing_to_learn(cls, rows):
    X, y, qid = rows
    for Z, labels, ids in (
        (np.ones_like(X), y, qid),
        (np.full_like(X, np.nan), y, qid),
        (X, np.ones_like(y), qid),
        (X, np.zeros_like(y), qid),
        (X[:1], y[:1], qid[:1]),
    ):
        scores = make(cls).fit(Z, labels, qid=ids).predict(Z)
        assert np.isfinite(scores).all()
        assert np.ptp(scores) == 0
    alone = make(cls).fit(X, y, qid=np.arange(len(y))).predict(X)  # every query has one row
    assert cls is not LambdaMARTRanker or np.ptp(alone) == 0


# ---------------------------------------------------------------------------------------------- determinism


@each
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"max_features": 0.5, "max_leaf_nodes": None, "max_depth": 4},
        {"max_features": 0.5, "sampled": True, "min_samples_leaf": 1},
    ],
    ids=["plain", "by layers", "drawn"],
)
def test_same_model_for_any_number_of_threads_and_in_the_second_run(cls, parameters):
    X, y, qid = make_rows(60, 40)
    weight = 10.0 ** np.random.default_rng(0).uniform(-7, 7, len(y))
    parameters = dict(parameters)
    if parameters.pop("sampled", False):
        by_query = {"subsample": 0.7, "query_subsample": 0.7}
        parameters |= {"bootstrap_unit": "query"} if cls is RandomForestRanker else by_query
    digests = {
        make(cls, 4, n_jobs=n_jobs, **parameters).fit(X, y, weight, qid=qid).ensemble_.digest()
        for n_jobs in (1, 1, 2, 3, 4)
    }
    assert len(digests) == 1


@each
def test_random_state_matters_where_chance_is_asked_for(cls, rows):
    X, y, qid = rows

    def digest(seed):
        return make(cls, max_features=0.5, random_state=seed).fit(X, y, qid=qid).ensemble_.digest()

    assert digest(0) == digest(0) != digest(1)
    assert digest(np.random.RandomState(0)) == digest(np.random.RandomState(0))


# ------------------------------------------------------------------------------------------- early stopping


@each_boosted
def test_validation_rows_under_every_name(cls, rows):
    X, y, qid = rows
    X_val, y_val, qid_val = make_rows(10, seed=1)
    index = pd.Index(qid_val, name="qid")
    spellings = [
        {"X_val": X_val, "y_val": y_val, "qid_val": qid_val},
        {"X_val": X_val, "y_val": pd.Series(y_val, index=index)},
        {"eval_set": [(X_val, y_val)], "eval_qid": [qid_val]},
        {"eval_set": [(X_val, y_val)], "eval_group": [[20] * 10]},
    ]
    models = [make(cls, 60, n_iter_no_change=3).fit(X, y, qid=qid, **given) for given in spellings]
    assert len({model.ensemble_.digest() for model in models}) == 1
    model = models[0]
    assert model.n_iter_ < 60
    assert model.best_iteration_ == len(model.ensemble_) == model.n_iter_ - 3
    assert len(model.validation_score_) == len(model.train_score_) == model.n_iter_
    assert model.validation_score_.argmax() == model.best_iteration_ - 1


@each_boosted
def test_validation_score_is_what_it_says(cls, rows):
    X, y, qid = rows
    X_val, y_val, qid_val = make_rows(10, seed=1)
    model = make(cls, scoring="ndcg@5").fit(X, y, qid=qid, X_val=X_val, y_val=y_val, qid_val=qid_val)
    stages = model.staged_predict(X_val)
    measured = [as_measure("ndcg@5")(y_val, scores, qid=qid_val) for scores in stages]
    np.testing.assert_allclose(model.validation_score_[: len(measured)], measured)


@each_boosted
def test_automatic_validation_keeps_queries_whole(cls, rows):
    X, y, qid = rows
    qid = np.random.default_rng(0).permutation(qid)
    data = check_fit(make(cls), X, y, qid=qid)
    for seed in range(5):
        train, held_out = hold_out(data, 0.2, seed)
        assert not set(qid[train.order]) & set(qid[held_out.order])
        assert len(set(qid[held_out.order])) == 6
        assert sorted([*train.order, *held_out.order]) == list(range(len(y)))
    model = make(cls, 60, early_stopping=True, n_iter_no_change=3).fit(X, y, qid=qid)
    assert len(model.ensemble_) == model.best_iteration_ < 60
    again = make(cls, 60, early_stopping=True, n_iter_no_change=3, n_jobs=3).fit(X, y, qid=qid)
    assert again.ensemble_.digest() == model.ensemble_.digest()


@each_boosted
def test_early_stopping_follows_what_it_is_told(cls, rows):
    X, y, qid = rows
    for scoring in ("loss", "ndcg@3", as_measure("map"), None):
        model = make(cls, early_stopping=True, scoring=scoring).fit(X, y, qid=qid)
        assert np.isfinite(model.validation_score_).all()
    assert make(cls).fit(X, y, qid=qid).validation_score_.size == 0
    with pytest.raises(ValueError, match=r"only one.*early_stopping"):
        make(LambdaMARTRanker, early_stopping=True).fit(X, y, qid=np.zeros(len(y)))


def test_regressor_holds_out_rows_where_there_are_no_queries(rows):
    X, y, _ = rows
    model = make(HistGBRTRegressor, 100, early_stopping=True, n_iter_no_change=3).fit(X, y)
    assert model.n_iter_ < 100


# -------------------------------------------------------------------------------------- warm start and init


@each
def test_warm_start_goes_on(cls, rows):
    X, y, qid = rows
    drawn = {"max_features": 0.5} if cls is RandomForestRanker else {"max_features": 0.5, "subsample": 0.7}
    model = make(cls, 3, warm_start=True, **drawn).fit(X, y, qid=qid)
    model.set_params(**{number_of_trees(cls): 8}).fit(X, y, qid=qid)
    at_once = make(cls, 8, **drawn).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.predict(X), at_once.predict(X), atol=1e-9)
    assert model.ensemble_.digest() == at_once.ensemble_.digest()
    with pytest.raises(ValueError, match=number_of_trees(cls)):
        model.set_params(**{number_of_trees(cls): 2}).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="features"):
        model.set_params(**{number_of_trees(cls): 9}).fit(X[:, :3], y, qid=qid)
    assert len(model.ensemble_) == 8


@each
def test_warm_start_with_other_categories(cls, rows):
    X, _, qid = rows
    y = (X[:, 0] > 0) + 2 * (X[:, 1] > 0)
    sites = np.array(["uk", "de", "fr", "it"])[y]

    def frame(chosen):
        return pd.DataFrame(X[chosen], columns=list("abcdef")).assign(site=pd.Categorical(sites[chosen]))

    all_rows, some, others = np.ones(len(X), bool), sites != "de", sites != "uk"
    model = make(cls, 3, warm_start=True, max_features=1.0).fit(frame(some), y[some], qid=qid[some])
    before = model.predict(frame(all_rows))
    for n_trees, chosen in ((4, all_rows), (5, others)):
        trees = {number_of_trees(cls): n_trees}
        model.set_params(**trees).fit(frame(chosen), y[chosen], qid=qid[chosen])
        *_, after_three = itertools.islice(model.staged_predict(frame(all_rows)), 3)
        assert after_three.tolist() == before.tolist()
        alone = [model.predict(frame(sites == site)) for site in ("de", "fr", "uk", "it")]
        at_once = model.predict(frame(all_rows))
        assert [a.tolist() for a in alone] == [
            at_once[sites == site].tolist() for site in ("de", "fr", "uk", "it")
        ]


SIZES = ["S", "M", "L", "XL"]


def with_sizes(rows, levels=SIZES, ordered=True):
    """A frame of sizes, of which no row has "L" and some have none; the same with their codes; and labels."""
    X, y, _ = rows
    places = np.random.default_rng(0).choice([0, 1, 3, -1], len(y))
    sizes = pd.Categorical.from_codes(places, SIZES).set_categories(levels, ordered=ordered)
    coded = pd.DataFrame({"a": X[:, 0], "size": np.where(places < 0, np.nan, places)})
    return coded.assign(size=sizes), coded, y + (places == 1)


@each
def test_ordered_categories_are_numbers(cls, rows):
    frame, coded, y = with_sizes(rows)
    model = make(cls, 5, max_features=1.0).fit(frame, y, qid=rows[2])
    of_codes = clone(model).fit(coded, y, qid=rows[2])
    assert (model.ensemble_.nodes["feature"] == 1).any()
    assert model.ensemble_.nodes.tobytes() == of_codes.ensemble_.nodes.tobytes()
    one_of_each = pd.DataFrame({"a": 0.0, "size": [*SIZES, "XS", None]})
    codes = one_of_each.assign(size=[0, 1, 2, 3, np.nan, np.nan])
    for dtype in (object, "category", pd.CategoricalDtype(["XS", *SIZES[::-1]], ordered=True)):
        seen = model.predict(one_of_each.astype({"size": dtype}))
        np.testing.assert_array_equal(seen, of_codes.predict(codes))
    for chosen in ([], None):
        same = clone(model).set_params(categorical_features=chosen).fit(frame, y, qid=rows[2])
        assert same.ensemble_ == model.ensemble_


@each
def test_ordered_categories_that_are_named_are_categories(cls, rows):
    frame, _, y = with_sizes(rows)
    model = make(cls, 5, categorical_features=["size"], max_features=1.0).fit(frame, y, qid=rows[2])
    nominal = with_sizes(rows, ordered=False)[0]
    expected = make(cls, 5, max_features=1.0).fit(nominal, y, qid=rows[2])
    assert (expected.ensemble_.nodes["categories"] >= 0).any()
    assert model.ensemble_ == expected.ensemble_


@each_boosted
def test_scores_may_have_to_rise_with_ordered_categories(cls, rows):
    frame, _, y = with_sizes(rows)
    one_of_each = pd.DataFrame({"a": 0.0, "size": SIZES})
    for sign in (1, -1):
        model = make(cls, 20, monotonic_cst={"size": sign}).fit(frame, y, qid=rows[2])
        assert (sign * np.diff(model.predict(one_of_each)) >= 0).all()


@each
@pytest.mark.parametrize(
    ("levels", "ordered"), [(SIZES[::-1], True), ([*SIZES, "XXL"], True), (SIZES[:3], True), (SIZES, False)]
)
def test_warm_start_needs_the_order_that_trees_compare(cls, levels, ordered, rows):
    frame, _, y = with_sizes(rows)
    model = make(cls, 3, warm_start=True, max_features=1.0).fit(frame, y, qid=rows[2])
    before = model.ensemble_
    model.set_params(**{number_of_trees(cls): 5})
    with pytest.raises(
        ValueError, match=r"column 'size' has the levels .*\('S', 'M', 'L', 'XL'\).*same order"
    ):
        model.fit(with_sizes(rows, levels, ordered)[0], y, qid=rows[2])
    assert model.ensemble_ is before
    at_once = make(cls, 5, max_features=1.0).fit(frame, y, qid=rows[2])
    assert model.fit(frame, y, qid=rows[2]).ensemble_.digest() == at_once.ensemble_.digest()


@each
def test_warm_start_may_put_categories_in_order(cls, rows):
    nominal, _, y = with_sizes(rows, ordered=False)
    model = make(cls, 3, warm_start=True, max_features=1.0).fit(nominal, y, qid=rows[2])
    before = model.predict(nominal)
    model.set_params(**{number_of_trees(cls): 5})
    with pytest.raises(ValueError, match=r"column 'size' has the levels \('S', 'M'\), .*same levels"):
        model.fit(with_sizes(rows, SIZES[:2])[0], y, qid=rows[2])
    model.fit(with_sizes(rows)[0], y, qid=rows[2])
    *_, after_three = itertools.islice(model.staged_predict(nominal), 3)
    assert after_three.tolist() == before.tolist()
    later = model.ensemble_.after(3).nodes
    assert (later["feature"] == 1).any()
    assert (later["categories"] < 0).all()


@each_boosted
@pytest.mark.parametrize("init", [None, RandomForestRanker(3, random_state=0), Ridge()], ids=repr)
def test_warm_start_with_early_stopping(cls, init, rows):
    """Whatever former fits followed, a model is stopped as if all its trees had been grown in this one."""
    X, y, qid = rows
    names = "X_val", "y_val", "qid_val"
    validation, others = (dict(zip(names, make_rows(10, seed=seed), strict=True)) for seed in (1, 2))
    rules = {"init": init, "learning_rate": 0.7, "n_iter_no_change": 50}
    at_once = make(cls, 30, **rules).fit(X, y, qid=qid, **validation)
    assert at_once.best_iteration_ < 30
    for before in (validation, others, {}):
        model = make(cls, 8, warm_start=True, **rules).fit(X, y, qid=qid, **before)
        model.set_params(max_iter=12).fit(X, y, qid=qid)
        for n_trees in (12, 30, 30):  # the first and the last add nothing
            model.set_params(max_iter=n_trees).fit(X, y, qid=qid, **validation)
            np.testing.assert_array_equal(model.validation_score_, at_once.validation_score_[: model.n_iter_])
            assert len(model.validation_score_) == model.n_iter_
            assert model.best_iteration_ == np.argmax(model.validation_score_) + 1 == model._n_counted
        assert model.ensemble_ == at_once.ensemble_
    model.set_params(max_iter=31).fit(X, y, qid=qid)
    assert len(model.validation_score_) == len(model.train_score_) == 0


@each_boosted
def test_warm_start_does_not_join_scores_of_two_measures(cls, rows):
    X, y, qid = rows
    validation = dict(zip(("X_val", "y_val", "qid_val"), make_rows(10, seed=1), strict=True))
    model = make(cls, 4, scoring="err", warm_start=True, n_iter_no_change=50).fit(X, y, qid=qid, **validation)
    model.set_params(max_iter=8).fit(X, y, qid=qid, **validation)
    assert len(model.train_score_) == model.n_iter_
    model.set_params(max_iter=10, scoring="ndcg@3").fit(X, y, qid=qid, **validation)
    assert len(model.train_score_) == 0
    curves = score_curves(model, sets={"validation": tuple(validation.values())}, measure="ndcg@3")
    n_kept = model.best_iteration_
    np.testing.assert_array_equal(curves["validation", "ndcg@3"], model.validation_score_[:n_kept])


@each_boosted
@pytest.mark.parametrize(
    ("scoring", "when"),
    [("ndcg@10", "whatever the scores"), (lambda labels, scores: math.nan, "after any of 5 trees")],
)
def test_scores_to_stop_by_that_are_never_defined_are_refused(cls, rows, scoring, when):
    X, y, qid = rows
    model = make(cls, scoring=scoring, n_iter_no_change=5).fit(X, y, qid=qid)
    before = model.ensemble_
    said = f"scoring=.*, is not defined .* {when}"
    with pytest.warns(UndefinedMetricWarning), pytest.raises(ValueError, match=said):
        model.fit(X, y, qid=qid, X_val=X, y_val=np.zeros(len(y)), qid_val=qid)
    assert model.ensemble_ is before


@each
def test_warm_start_on_other_columns_is_refused(cls, rows):
    X, y, qid = rows
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    model = make(cls, 3, warm_start=True).fit(frame, y, qid=qid)
    before = model.ensemble_
    turned, fewer = frame[frame.columns[::-1]], frame[frame.columns[:-1]]
    for others, said in (
        (turned, "in the same order"),
        (fewer, "f5"),
        (frame.rename(columns={"f0": "x"}), "x"),
    ):
        with pytest.raises(ValueError, match=f"(?s)warm_start=True continues from trees.*{said}"):
            model.fit(others, y, qid=qid)
    assert model.ensemble_ is before
    assert list(model.feature_names_in_) == list(frame.columns)
    unnamed = make(cls, 3, warm_start=True).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=f"5 features, but {cls.__name__} is expecting 6"):
        unnamed.fit(X[:, 1:], y, qid=qid)


@each_boosted
@pytest.mark.parametrize("fitted", [False, True], ids=["unfitted", "fitted"])
@pytest.mark.parametrize("kind", ["forest", "Ridge"])
def test_boosting_from_a_model(cls, kind, fitted, rows):
    X, y, qid = rows
    init = make(RandomForestRanker, 5) if kind == "forest" else Ridge()
    queries = {"qid": qid} if kind == "forest" else {}
    if fitted:
        init.fit(X, y, **queries)
    model = make(cls, init=init).fit(X, y, qid=qid)
    assert hasattr(init, "n_features_in_") == fitted  # the parameter itself is never fitted
    start = clone(init).fit(X, y, **queries).predict(X)
    np.testing.assert_allclose(model.predict(X, n_trees=0), start, atol=1e-9)
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert (
        model.score(X, y, qid=qid) > as_measure("ndcg@10")(y, start, qid=qid) - 1 or cls is HistGBRTRegressor
    )
    shuffled = np.random.default_rng(0).permutation(len(y))
    again = make(cls, init=model.init_).fit(X[shuffled], y[shuffled], qid=qid[shuffled])
    np.testing.assert_allclose(again.predict(X, n_trees=0), start, atol=1e-9)


@each_boosted
def test_boosting_from_a_model_helps(cls, rows):
    X, y, qid = rows
    measure = as_measure("ndcg@10")
    start = Ridge().fit(X, y).predict(X)
    model = make(cls, 20, init=Ridge()).fit(X, y, qid=qid)
    assert measure(y, model.predict(X), qid=qid) > measure(y, start, qid=qid) + 0.02


@each_boosted
def test_boosting_from_a_constant(cls, rows):
    X, y, qid = rows
    model = make(cls, init=2.5).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.predict(X, n_trees=0), 2.5)
    for wrong in ("zero", np.nan, np.inf):
        with pytest.raises(ValueError, match="init"):
            make(cls, init=wrong).fit(X, y, qid=qid)


@each_boosted
def test_validation_rows_start_from_init_too(cls, rows):
    X, y, qid = rows
    X_val, y_val, qid_val = make_rows(10, seed=1)
    digests = {
        make(cls, init=Ridge()).fit(X, y, qid=qid, **given, eval_qid=[qid_val]).ensemble_.digest()
        for given in ({"eval_set": [(X_val, y_val)]}, {"eval_set": (X_val, y_val)})
    }
    ours = make(cls, init=Ridge()).fit(X, y, qid=qid, X_val=X_val, y_val=y_val, qid_val=qid_val)
    assert digests == {ours.ensemble_.digest()}


@each_boosted
def test_warm_start_keeps_the_fitted_init(cls, rows):
    X, y, qid = rows
    model = make(cls, 3, init=Ridge(), warm_start=True).fit(X, y, qid=qid)
    before, start = model.predict(X, n_trees=3), model.init_
    model.set_params(max_iter=8).fit(X[:300], y[:300], qid=qid[:300])
    assert model.init_ is start
    np.testing.assert_array_equal(model.predict(X, n_trees=3), before)


@each_boosted
def test_warm_start_keeps_init(cls, rows):
    X, y, qid = rows
    init = Ridge().fit(X, y)
    model = make(cls, 3, init=init, warm_start=True).fit(X, y, qid=qid)
    model.set_params(max_iter=8).fit(X, y, qid=qid)
    assert model.ensemble_.digest() == make(cls, 8, init=init).fit(X, y, qid=qid).ensemble_.digest()


@pytest.mark.parametrize("unit", ["row", "query"])
def test_out_of_bag_scores_by_hand(unit, rows):
    X, y, qid = (array[np.random.default_rng(0).permutation(600)] for array in rows)
    model = make(RandomForestRanker, 6, oob_score=True, bootstrap_unit=unit).fit(X, y, qid=qid)
    ensemble, order = model.ensemble_, check_fit(make(RandomForestRanker), X, y, qid=qid).order
    values = ensemble.nodes["value"][ensemble.leaves(X) + ensemble.tree_offsets[:-1]]
    bootstrap = Bootstrap(np.arange(31) * 20, unit, None, model._seed_)
    left_out = np.empty((600, 6), bool)
    left_out[order] = np.column_stack([bootstrap.times(tree) == 0 for tree in range(6)])
    seen = left_out.any(axis=1)
    expected = ensemble.base + (values * left_out)[seen].sum(axis=1) / left_out[seen].sum(axis=1)
    np.testing.assert_allclose(model.oob_prediction_[seen], expected)
    assert np.isnan(model.oob_prediction_[~seen]).all()
    ndcg = as_measure("ndcg@10")(y[seen], model.oob_prediction_[seen], qid=qid[seen])
    assert model.oob_score_ == pytest.approx(ndcg)
    with pytest.raises(ValueError, match="bootstrap"):
        make(RandomForestRanker, oob_score=True, bootstrap=False).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="NDCG takes labels >= 0, but y has label -1"):
        make(RandomForestRanker, oob_score=True).fit(X, y - 1, qid=qid)


@pytest.mark.parametrize("measure", ["mrr", "dcg", lambda labels, scores: labels[scores.argmax()]])
def test_queries_of_which_no_row_is_out_of_bag_do_not_count(measure, rows):
    X, y, qid = rows
    model = make(RandomForestRanker, 2, oob_score=measure, bootstrap_unit="query").fit(X, y, qid=qid)
    seen = ~np.isnan(model.oob_prediction_)
    assert 0 < seen.sum() < len(y)
    value = as_measure(measure)(y[seen], model.oob_prediction_[seen], qid=qid[seen])
    assert model.oob_score_ == pytest.approx(value)


def test_out_of_bag_scores_of_shortened_queries_are_doubted(rows):
    X, y, qid = rows
    with pytest.warns(FitWarning, match=r"\d+ of 600 rows are in the samples of all trees.*Grow more trees"):
        make(RandomForestRanker, 2, oob_score=True).fit(X, y, qid=qid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(RandomForestRanker, 2, oob_score=True, bootstrap_unit="query").fit(X, y, qid=qid)
        make(RandomForestRanker, 60, oob_score=True).fit(X, y, qid=qid)


@pytest.mark.parametrize("warm_start", [False, True])
def test_out_of_bag_scores_are_of_the_last_fit(warm_start, rows):
    X, y, qid = rows
    model = make(RandomForestRanker, 4, oob_score=True).fit(X, y, qid=qid)
    model.set_params(oob_score=False, n_estimators=5, warm_start=warm_start).fit(X, y, qid=qid)
    assert not hasattr(model, "oob_score_")
    assert not hasattr(model, "oob_prediction_")


# ---------------------------------------------------------------------------------------------- constraints


def with_colours(rows, as_category):
    X, y, qid = rows
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 6, len(y))
    y = np.where(np.isin(colour, [1, 4]), 4.0, np.where(colour == 2, 2.0, 0.0))
    frame = pd.DataFrame({"size": X[:, 0], "colour": colour.astype(float)})
    if as_category:
        frame["colour"] = pd.Categorical(np.array(list("roygbv"))[colour])
    return frame, y, qid


@each
def test_categorical_columns(cls, rows):
    frame, y, qid = with_colours(rows, True)
    stump = make(cls, 5, max_leaf_nodes=3, **({"max_features": None} if cls is RandomForestRanker else {}))
    model = clone(stump).fit(frame, y, qid=qid)
    assert model.score(frame, y, qid=qid) > 0.99 or cls is HistGBRTRegressor
    assert as_measure("ndcg@10")(y, model.predict(frame), qid=qid) == pytest.approx(1)
    assert (model.ensemble_.nodes["categories"] >= 0).any()
    coded, y, qid = with_colours(rows, False)
    scores = [
        clone(stump).set_params(categorical_features=chosen).fit(coded, y, qid=qid).predict(coded)
        for chosen in ([1], ["colour"], [False, True])
    ]
    for other in scores[1:]:
        np.testing.assert_array_equal(other, scores[0])
    assert as_measure("ndcg@10")(y, scores[0], qid=qid) == pytest.approx(1)
    unseen = frame.head(2).assign(colour=pd.Categorical(["pink", None]))
    assert np.ptp(model.predict(unseen.assign(size=0.0))) == 0  # an unseen colour is a missing one
    with pytest.raises(ValueError, match="frame"), pytest.warns(UserWarning, match="feature names"):
        model.predict(coded.to_numpy())
    with pytest.raises(ValueError, match="hue"):
        clone(stump).set_params(categorical_features=["hue"]).fit(coded, y, qid=qid)


@each
def test_monotonic_cst(cls, rows):
    X, y, qid = rows
    grid = np.linspace(-3, 3, 50)
    for sign in (1, -1):
        model = make(cls, 20, monotonic_cst=[sign, 0, 0, 0, 0, 0]).fit(X, y, qid=qid)
        named = make(cls, 20, monotonic_cst={"a": sign}).fit(
            pd.DataFrame(X, columns=list("abcdef")), y, qid=qid
        )
        assert model.ensemble_ == nameless(named.ensemble_)
        for row in X[::60]:
            line = np.tile(row, (50, 1))
            line[:, 0] = grid
            assert (sign * np.diff(model.predict(line)) >= 0).all()
    assert np.ptp(make(cls, 20, monotonic_cst=[1, 0, 0, 0, 0, 0]).fit(X, y, qid=qid).predict(line)) > 0
    for wrong in ([1, 0], [2, 0, 0, 0, 0, 0], {"z": 1}):
        with pytest.raises(ValueError, match="monotonic_cst"):
            make(cls, monotonic_cst=wrong).fit(X, y, qid=qid)


def branches(ensemble):
    """The sets of features on the branches of all trees."""
    for tree in range(len(ensemble)):
        nodes = ensemble.nodes[ensemble.tree_offsets[tree] : ensemble.tree_offsets[tree + 1]]
        open_nodes = [(0, frozenset())]
        while open_nodes:
            index, above = open_nodes.pop()
            node = nodes[index]
            if node["feature"] < 0:
                yield above
                continue
            here = above | {int(node["feature"])}
            open_nodes += [(int(node["left"]), here), (int(node["right"]), here)]


@each
@pytest.mark.parametrize("with_draws", [False, True])
def test_interaction_cst(cls, with_draws, rows):
    X, y, qid = rows
    if cls is RandomForestRanker:
        drawn = {"max_features": 0.5 if with_draws else None}
    else:
        drawn = {"max_features": 0.5 if with_draws else 1.0}
    for wanted, allowed in (
        ([{0, 1}, {2, 3}], [{0, 1}, {2, 3}, {4, 5}]),
        ("no_interactions", [{f} for f in range(6)]),
        ("pairwise", [{f, g} for f in range(6) for g in range(6)]),
    ):
        model = make(cls, interaction_cst=wanted, **drawn).fit(X, y, qid=qid)
        found = set(branches(model.ensemble_))
        assert all(any(branch <= group for group in allowed) for branch in found)
        assert any(len(branch) == max(map(len, allowed)) for branch in found)
    with pytest.raises(ValueError, match="interaction_cst"):
        make(cls, interaction_cst=[{0, 77}]).fit(X, y, qid=qid)


# --------------------------------------------------------------------------- the regressor beside its model


OF_SCIKIT_LEARN = {"max_leaf_nodes": 31, "min_samples_leaf": 20, "gradient_sampling": None}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("loss", "parameters", "measured"),
    [
        ("squared_error", {}, lambda y, p, w: np.average((y - p) ** 2, weights=w)),
        ("absolute_error", {}, lambda y, p, w: mean_absolute_error(y, p, sample_weight=w)),
        ("quantile", {"quantile": 0.8}, lambda y, p, w: mean_pinball_loss(y, p, sample_weight=w, alpha=0.8)),
        ("poisson", {}, lambda y, p, w: mean_poisson_deviance(y, p, sample_weight=w)),
        ("gamma", {}, lambda y, p, w: mean_gamma_deviance(y, p, sample_weight=w)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_losses_beside_scikit_learn(loss, parameters, measured, weighted):
    """On the mean of some draws: labels are few numbers, and a quantile of them jumps."""
    shared = {"loss": loss, "max_iter": 40, "random_state": 0, **parameters}
    losses = []
    for seed in range(3, 7):
        X, y, _ = make_rows(40, seed=seed)
        y = y + (loss == "gamma")
        weight = 0.5 + np.random.default_rng(0).random(len(y)) if weighted else None
        ours = make(HistGBRTRegressor, 40, **OF_SCIKIT_LEARN, loss=loss, **parameters).fit(X, y, weight)
        with threadpool_limits(1):
            theirs = HistGradientBoostingRegressor(early_stopping=False, **shared).fit(X, y, weight)
        constant = np.full(len(y), ours.predict(X, n_trees=0)[0])
        losses.append([measured(y, said, weight) for said in (ours.predict(X), theirs.predict(X), constant)])
    mine, its, constant = np.mean(losses, axis=0)
    assert mine < 1.05 * its + 0.01 * constant
    assert mine < 0.8 * constant


def test_logistic_beside_scikit_learn():
    X, y, _ = make_rows(40, seed=3)
    y = (y > 1).astype(float)
    shared = {"max_iter": 40, "random_state": 0}
    ours = make(HistGBRTRegressor, 40, **OF_SCIKIT_LEARN, loss="logistic").fit(X, y)
    with threadpool_limits(1):
        theirs = HistGradientBoostingClassifier(early_stopping=False, **shared).fit(X, y)
    assert ((ours.predict(X) > 0) & (ours.predict(X) < 1)).all()
    assert log_loss(y, ours.predict(X)) == pytest.approx(log_loss(y, theirs.predict_proba(X)), rel=0.05)


# ---------------------------------------------------------------------------------------- watching training


@pytest.mark.parametrize("routing", [False, True])
@each
def test_scikit_learn_callbacks(cls, rows, routing):
    """Scorers that know queries, and others, which are not told of them."""
    callback = pytest.importorskip("sklearn.callback")
    X, y, qid = rows
    scorers = {"ndcg": query_scorer("ndcg@10"), "error": get_scorer("neg_mean_squared_error")}
    monitors = [callback.ScoringMonitor(scoring={name: scorer}) for name, scorer in scorers.items()]
    both = callback.ScoringMonitor(scoring=scorers)
    with sklearn.config_context(enable_metadata_routing=routing):
        model = make(cls).set_callbacks(*monitors, both).fit(X, y, qid=qid)
    logged = {entry["task_name"]: entry for entry in both.get_logs().data}
    for monitor in monitors:
        for entry in monitor.get_logs().data:
            assert entry.items() <= logged[entry["task_name"]].items()
    for k, stage in enumerate(model.staged_predict(X), start=1):
        assert logged[f"tree {k}"]["ndcg"] == pytest.approx(as_measure("ndcg@10")(y, stage, qid=qid))
        assert logged[f"tree {k}"]["error"] == pytest.approx(-np.mean((y - stage) ** 2))
    assert model.ensemble_.digest() == make(cls).fit(X, y, qid=qid).ensemble_.digest()


@each
def test_scoring_monitor_scores_frames_by_the_estimator_itself(cls, rows):
    callback = pytest.importorskip("sklearn.callback")
    frame, y, qid = with_colours(rows, True)
    y = pd.Series(y, index=pd.Index(qid, name="qid"))
    monitor = callback.ScoringMonitor(scoring=lambda model, *data, **ids: {"own": model.score(*data, **ids)})
    model = make(cls, measure="ndcg@5").set_callbacks(monitor)
    if cls is not RandomForestRanker:
        model.set_params(early_stopping=True, n_iter_no_change=2)
    model.fit(frame, y)
    assert len(monitor.get_logs().data) == getattr(model, "n_iter_", 8)


@each
def test_scikit_learn_callbacks_may_stop(cls, rows):
    pytest.importorskip("sklearn.callback")
    X, y, qid = rows

    class StopAtThree:
        def setup(self, estimator, context):
            self.seen = []

        def teardown(self, estimator, context):
            self.seen.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.seen.append(context.task_name)
            return context.task_name == "tree 3"

    stop = StopAtThree()
    model = make(cls).set_callbacks(stop).fit(X, y, qid=qid)
    assert stop.seen == ["tree 1", "tree 2", "tree 3", "fit", "teardown"]
    assert model.ensemble_.digest() == make(cls, 3).fit(X, y, qid=qid).ensemble_.digest()
    with pytest.raises(ValueError, match="y"):
        model.fit(X, y * np.nan, qid=qid)
    assert stop.seen == ["teardown"]
    assert len(model.ensemble_) == 3


@each
def test_scikit_learn_progress_bar(cls, rows):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    X, y, qid = rows
    model = make(cls).set_callbacks(callback.ProgressBar()).fit(X, y, qid=qid)
    assert model.predict(X).shape == y.shape


@each
def test_verbose_lines(cls, rows, capsys):
    X, y, qid = rows
    make(cls).fit(X, y, qid=qid)
    assert capsys.readouterr().out == ""
    make(cls, verbose=3).fit(X, y, qid=qid)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"{cls.__name__}: {n} of 8 trees" for n in (3, 6, 8)]
    if cls is not RandomForestRanker:
        X_val, y_val, qid_val = make_rows(10, seed=1)
        make(cls, verbose=4).fit(X, y, qid=qid, X_val=X_val, y_val=y_val, qid_val=qid_val)
        assert capsys.readouterr().out.count("validation") == 2


@each
def test_verbose_bar(cls, rows, capsys):
    pytest.importorskip("tqdm")
    X, y, qid = rows
    make(cls, verbose="bar").fit(X, y, qid=qid)
    shown = capsys.readouterr().err
    assert cls.__name__ in shown
    assert "8/8" in shown


# ------------------------------------------------------------------------- interrupts, forks, other threads


def slow(cls, **parameters):
    """Data and an estimator that would take minutes."""
    X, y, qid = make_rows(1000, 50, 10)
    return make(cls, 100_000, n_jobs=2, max_leaf_nodes=255, **parameters), (X, y), {"qid": qid}


@pytest.fixture
def interruptible():
    """A shell has what it starts in the background ignore interrupts, and Python leaves it at that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@each
def test_interrupt(cls, rows, interruptible):
    """Measured on a busy machine of two processors: at most 0.05 s."""
    X, y, qid = rows
    model, data, queries = slow(cls)
    model.set_params(**{number_of_trees(cls): 3}).fit(*data, **queries)
    before = model.ensemble_.digest()
    model.set_params(**{number_of_trees(cls): 100_000})
    sent = []

    def interrupt():
        time.sleep(0.4)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data, **queries)
    delay = time.perf_counter() - sent[0]
    sender.join()
    assert delay < 0.5
    assert model.ensemble_.digest() == before
    assert model.predict(data[0]).shape == data[1].shape
    assert len(model.set_params(**{number_of_trees(cls): 4}).fit(X, y, qid=qid).ensemble_) == 4


def fit_in_child(cls, n_jobs, send):
    import warnings

    warnings.simplefilter("ignore")
    X, y, qid = make_rows()
    model = make(cls, n_jobs=n_jobs).fit(X, y, qid=qid)
    send.send((model.ensemble_.digest(), model.predict(X).sum()))


@each
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 and later dislike a fork with threads
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fork_after_threads(cls, n_jobs, rows):
    X, y, qid = rows
    model = make(cls, n_jobs=2).fit(X, y, qid=qid)
    expected = model.ensemble_.digest(), model.predict(X).sum()
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=fit_in_child, args=(cls, n_jobs, send))
    child.start()
    try:
        assert receive.poll(20), "the child hangs"
        assert receive.recv() == expected
    finally:
        child.kill()
        child.join()


@each
def test_other_threads_go_on_during_a_fit(cls):
    X, y, qid = make_rows(1000, 50, 10)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.002)

    other = threading.Thread(target=tick)
    other.start()
    started = time.perf_counter()
    make(cls, 10, max_leaf_nodes=63).fit(X, y, qid=qid)
    ended = time.perf_counter()
    done.set()
    other.join()
    during = [started, *[at for at in ticks if started < at < ended], ended]
    assert np.diff(during).max() < max(0.25, 0.5 * (ended - started))
    assert len(during) > 10 * (ended - started)


@each
def test_fits_at_the_same_time(cls, rows):
    X, y, qid = rows
    expected = make(cls).fit(X, y, qid=qid).ensemble_.digest()
    digests = joblib.Parallel(n_jobs=3, prefer="threads")(
        joblib.delayed(lambda: make(cls, n_jobs=2).fit(X, y, qid=qid).ensemble_.digest())() for _ in range(6)
    )
    assert set(digests) == {expected}


@each
@pytest.mark.parametrize("n_trees", [2**63, 2**70])
def test_a_number_of_trees_that_no_loop_reaches_is_refused(cls, n_trees, rows):
    X, y, qid = rows
    with pytest.raises(ValueError, match=f"The '{number_of_trees(cls)}' parameter .* in the range \\[1, "):
        cls(**{number_of_trees(cls): n_trees}).fit(X, y, qid=qid)


@each_boosted
def test_early_stopping_may_be_all_that_ends_a_fit(cls, rows):
    X, y, qid = rows
    endless = make(cls, sys.maxsize, learning_rate=1.0, early_stopping=True, n_iter_no_change=2)
    assert endless.fit(X, y, qid=qid).n_iter_ < 100
