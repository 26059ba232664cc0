"""Settings of ours and of peers, named on the command line: ``"lambdamart subsample=1 query_norm='log'"``.

The name comes first, then parameters in Python's spelling, without blanks inside. A setting is a function of
(train, stop, seed, n_trees, categorical) and parameters, which fits on one thread and returns a `Run`. It
grows all trees and follows the stop part; so that one fit shows any smaller number of trees, and where it
would have stopped. Peers have their own defaults.
"""

import ast
import time
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ranktrees import AveragedRanker, HistGBRTRegressor, LambdaMARTRanker

from ..data import sizes

HUNDREDTHS = np.exp2(np.arange(401) / 100) - 1  # gains of labels from 0 to 4


class Run(NamedTuple):
    """What came of a fit.

    Attributes
    ----------
    seconds : float
        Of a processor, with following the stop part, without scoring the judge part.
    n_trees : int
        Grown.
    scores_at : callable
        Of (X, k): the scores by the first k trees. Asked with growing k.
    followed : sequence of float or None
        NDCG@10 of the stop part after each tree. None if the model is a whole: k is None, too.
    """

    seconds: float
    n_trees: int
    scores_at: Callable
    followed: Sequence | None


def seconds_of(fit, *arguments, **keywords):
    """What a fit takes of a processor."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the peers' own
        fit(*arguments, **keywords)
    return time.process_time() - started


def additive(between):
    """``scores_at`` of what the trees from a to b add: ``between(X, a, b)``."""
    rows, before, scores = None, 0, 0.0

    def scores_at(X, k):
        nonlocal rows, before, scores
        if X is not rows:
            rows, before, scores = X, 0, 0.0
        if k > before:
            before, scores = k, scores + between(X, before, k)
        return scores

    return scores_at


def ours(kind):
    """An estimator of ours that boosts."""

    def run(train, stop, seed, n_trees, categorical, **parameters):
        model = kind(max_iter=n_trees, early_stopping=False, scoring="ndcg@10", random_state=seed, n_jobs=1)
        model.set_params(categorical_features=list(categorical) or None, **parameters)
        held_out = dict(zip(("X_val", "y_val", "qid_val", "sample_weight_val"), stop, strict=True))
        seconds = seconds_of(model.fit, train.X, train.y, train.weight, qid=train.qid, **held_out)
        return Run(seconds, model.n_iter_, lambda X, k: model.predict(X, n_trees=k), model.validation_score_)

    return run


def averaged(train, stop, seed, n_trees, categorical, **parameters):
    """The mean of several models, which has only a converged value."""
    model = AveragedRanker(max_iter=n_trees, random_state=seed, n_jobs=1)
    model.set_params(categorical_features=list(categorical) or None, **parameters)
    held_out = dict(zip(("X_val", "y_val", "qid_val", "sample_weight_val"), stop, strict=True))
    seconds = seconds_of(model.fit, train.X, train.y, train.weight, qid=train.qid, **held_out)
    return Run(seconds, len(model.ensemble_), lambda X, k: model.predict(X), None)


def lightgbm(objective):
    """LightGBM. Its labels are whole numbers: if ours are not, hundredths, with their gains."""

    def run(train, stop, seed, n_trees, categorical, **parameters):
        import lightgbm as peer

        if (train.y % 1).any():
            train, stop = (part._replace(y=np.rint(100 * part.y)) for part in (train, stop))
            parameters = {"label_gain": HUNDREDTHS.tolist(), **parameters}
        alike = {"n_estimators": n_trees, "random_state": seed, "n_jobs": 1, "verbose": -1}
        model = peer.LGBMRanker(objective=objective, **alike, **parameters)
        followed = {}
        held_out = {
            "eval_set": [stop[:2]],
            "eval_group": [sizes(stop.qid)],
            "eval_sample_weight": None if stop.weight is None else [stop.weight],
            "eval_metric": "ndcg",
            "eval_at": [10],
            "callbacks": [peer.record_evaluation(followed)],
        }
        columns = {"categorical_feature": list(categorical) or "auto"}
        seconds = seconds_of(
            model.fit, train.X, train.y, train.weight, group=sizes(train.qid), **columns, **held_out
        )
        booster = model.booster_
        scores_at = additive(lambda X, a, b: booster.predict(X, start_iteration=a, num_iteration=b - a))
        return Run(seconds, booster.num_trees(), scores_at, followed["valid_0"]["ndcg@10"])

    return run


def xgboost(objective):
    """XGBoost. Its labels are whole numbers, or gains: if ours are not whole, gains."""

    def run(train, stop, seed, n_trees, categorical, **parameters):
        import xgboost as peer

        if (train.y % 1).any():
            train, stop = (part._replace(y=np.exp2(part.y) - 1) for part in (train, stop))
            parameters = {"ndcg_exp_gain": False, **parameters}
        if categorical:
            types = ["c" if column in categorical else "q" for column in range(train.X.shape[1])]
            parameters = {"feature_types": types, "enable_categorical": True, **parameters}
        alike = {"n_estimators": n_trees, "random_state": seed, "n_jobs": 1, "eval_metric": "ndcg@10"}
        model = peer.XGBRanker(objective=objective, **alike, **parameters)
        held_out = {"eval_set": [stop[:2]], "eval_qid": [stop.qid], "verbose": False}
        if train.weight is not None:  # of queries
            weights = [part.weight[np.unique(part.qid, return_index=True)[1]] for part in (train, stop)]
            held_out |= {"sample_weight": weights[0], "sample_weight_eval_set": weights[1:]}
        seconds = seconds_of(model.fit, train.X, train.y, qid=train.qid, **held_out)
        scores_at = additive(lambda X, a, b: model.predict(X, iteration_range=(a, b), output_margin=True))
        followed = model.evals_result()["validation_0"]["ndcg@10"]
        return Run(seconds, len(followed), scores_at, followed)

    return run


def catboost(loss_function):
    """CatBoost. It takes categories in a data frame."""

    def run(train, stop, seed, n_trees, categorical, **parameters):
        import catboost as peer
        import pandas as pd

        def columns(X):
            return pd.DataFrame(X).astype(dict.fromkeys(categorical, int)) if categorical else X

        def pool(part):
            queries = {"group_id": part.qid, "group_weight": part.weight}
            return peer.Pool(columns(part.X), part.y, cat_features=list(categorical), **queries)

        alike = {"iterations": n_trees, "random_seed": seed, "thread_count": 1, "use_best_model": False}
        quiet = {"verbose": False, "allow_writing_files": False}
        follow = {"eval_metric": "NDCG:top=10;type=Exp"}
        model = peer.CatBoostRanker(loss_function=loss_function, **alike, **quiet, **follow, **parameters)
        seconds = seconds_of(lambda: model.fit(pool(train), eval_set=pool(stop)))
        scores_at = additive(lambda X, a, b: model.predict(columns(X), ntree_start=a, ntree_end=b))
        found = model.get_evals_result()["validation"]
        followed = next(values for name, values in found.items() if name.startswith("NDCG"))
        return Run(seconds, model.tree_count_, scores_at, followed)

    return run


SETTINGS = {
    "lambdamart": ours(LambdaMARTRanker),
    "squared error": ours(HistGBRTRegressor),
    "averaged": averaged,
    "lightgbm lambdarank": lightgbm("lambdarank"),
    "lightgbm l2": lightgbm("regression"),
    "xgboost ndcg": xgboost("rank:ndcg"),
    "catboost yetirank": catboost("YetiRank"),
    "catboost queryrmse": catboost("QueryRMSE"),
}


TREES_BY_DEFAULT = {"lambdamart": 300, "squared": 300, "lightgbm": 100, "xgboost": 100, "catboost": 1000}


def trees_by_default(text):
    """How many trees a setting grows if nothing stops it; None for means, which stop early."""
    return TREES_BY_DEFAULT.get(text.split()[0])


def parsed(text):
    """(How to fit a setting, its parameters), from ``"name parameter=value ..."``."""
    words = text.split()
    name = " ".join(word for word in words if "=" not in word)
    if name not in SETTINGS:
        raise ValueError(f"{name!r} is no setting; expected one of {', '.join(SETTINGS)}.")
    given = (word.split("=", 1) for word in words if "=" in word)
    return SETTINGS[name], {parameter: ast.literal_eval(value) for parameter, value in given}
