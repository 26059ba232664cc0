"""
From LightGBM, XGBoost and CatBoost
===================================

Whole scripts before and after, in the way of estimators and in that of boosters, and what each habit meets
here. The scripts of the other libraries run where these are installed. The guide has :doc:`a table of all
parameters </guide/migrating>`.
"""

# %%
# The rows
# --------
# The same rows for all: queries of 25 rows, sorted by query, as the other libraries want them. One column is
# a category. Of 240 queries, half are for training, a quarter for early stopping, and a quarter for the test.

import tempfile
import warnings
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from ranktrees import (
    Ensemble,
    EnsembleRanker,
    LambdaMARTRanker,
    as_measure,
    compare_to_baseline,
    contributions,
    dump_lightgbm,
    load_catboost,
    load_lightgbm,
    load_xgboost,
    make_ranking,
    score_curves,
)

X, y, qid = make_ranking(
    240,
    "web",
    rows_per_query=25,
    n_features=12,
    random_state=0,
    return_X_y_qid=True,
)
frame = pd.DataFrame(X, columns=[f"f{column}" for column in range(12)])
site = np.random.default_rng(0).integers(5, size=len(y))
frame["site"] = pd.Categorical(np.array(["de", "es", "fr", "it", "uk"])[site])
y = np.where((site == 2) & (y < 4), y + 1, y)  # French pages are better
train, vali, test = qid < 120, (qid >= 120) & (qid < 180), qid >= 180
sizes = np.full(120, 25)
frame.assign(label=y, query=qid)[train].head(3).round(2)

# %%
# Scores on the test rows are collected here, by the name of the script.

scores, boosters = {}, {}


def run(script, library):
    """Run a script of another library, if it is there."""
    if find_spec(library) is None:
        print(f"{library} is not installed: not run")
        return
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # of what other versions of the library will do
        name, boosters[name], scores[name] = script()
    print(
        f"{name}: {len(scores[name])} scores, the first is {scores[name][0]:.4f}"
    )


# %%
# LightGBM
# --------
# Before, with the estimator:


def lightgbm_estimator():
    import lightgbm

    ranker = lightgbm.LGBMRanker(
        n_estimators=200,
        num_leaves=15,
        label_gain=[0, 1, 3, 7, 15],
        random_state=0,
        verbose=-1,
    )
    ranker.fit(
        frame[train],
        y[train],
        group=sizes,
        eval_set=[(frame[vali], y[vali])],
        eval_group=[np.full(60, 25)],
        eval_at=[10],
        callbacks=[lightgbm.early_stopping(30, verbose=False)],
    )
    return "LGBMRanker", ranker, ranker.predict(frame[test])


run(lightgbm_estimator, "lightgbm")

# %%
# Before, with the booster:


def lightgbm_booster():
    import lightgbm

    rows = lightgbm.Dataset(frame[train], y[train], group=sizes)
    other_rows = rows.create_valid(frame[vali], y[vali], group=np.full(60, 25))
    history = {}
    booster = lightgbm.train(
        {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [10],
            "num_leaves": 15,
            "verbose": -1,
        },
        rows,
        num_boost_round=200,
        valid_sets=[other_rows],
        callbacks=[
            lightgbm.early_stopping(30, verbose=False),
            lightgbm.record_evaluation(history),
        ],
    )
    return "lightgbm.train", booster, booster.predict(frame[test])


run(lightgbm_booster, "lightgbm")

# %%
# After. Sizes are taken as they are, and so is ``eval_set``. What were callbacks are parameters, and one
# object holds the parameters, the history and the model.

ranker = LambdaMARTRanker(
    measure="ndcg@10",  # eval_at
    max_iter=200,  # n_estimators, num_boost_round
    max_leaf_nodes=15,  # num_leaves
    learning_rate=0.1,
    gain=[0, 1, 3, 7, 15],  # label_gain; this one is the default
    n_iter_no_change=30,  # the early_stopping callback
    random_state=0,
)
ranker.fit(
    frame[train],
    y[train],
    group=sizes,
    eval_set=[(frame[vali], y[vali])],
    eval_group=[np.full(60, 25)],
)
scores["ranktrees"] = ranker.predict(frame[test])
print(f"best_iteration_ {ranker.best_iteration_} of {ranker.n_iter_}")
print(
    "evals_result_ is validation_score_:",
    ranker.validation_score_[:3].round(4),
    "...",
)

# %%
# A query id for each row is safer than sizes: the rows may then come in any order. The model is the same.

by_id = LambdaMARTRanker(**ranker.get_params())
by_id.fit(
    frame[train],
    y[train],
    qid=qid[train],
    X_val=frame[vali],
    y_val=y[vali],
    qid_val=qid[vali],
)
print("the same bytes:", by_id.ensemble_ == ranker.ensemble_)

# %%
# XGBoost
# -------
# Before, with the booster. ``XGBRanker`` takes ``qid`` and ``eval_qid`` in the same way.


def xgboost_booster():
    import xgboost

    rows = xgboost.DMatrix(
        frame[train], y[train], qid=qid[train], enable_categorical=True
    )
    other_rows = xgboost.DMatrix(
        frame[vali], y[vali], qid=qid[vali], enable_categorical=True
    )
    booster = xgboost.train(
        {
            "objective": "rank:ndcg",
            "eval_metric": "ndcg@10",
            "eta": 0.1,
            "max_depth": 4,
            "seed": 0,
        },
        rows,
        num_boost_round=200,
        evals=[(other_rows, "vali")],
        early_stopping_rounds=30,
        verbose_eval=False,
    )
    booster = booster[
        : booster.best_iteration + 1
    ]  # the trees after the best are kept otherwise
    return (
        "xgboost.train",
        booster,
        booster.predict(xgboost.DMatrix(frame[test], enable_categorical=True)),
    )


run(xgboost_booster, "xgboost")

# %%
# After. Depth instead of leaves, and XGBoost's own variant of NDCG, if the number is to be compared. The
# model keeps the trees up to the best round by itself.

like_xgboost = LambdaMARTRanker(
    measure="ndcg.xgboost@10",
    max_iter=200,
    max_depth=4,
    max_leaf_nodes=None,  # whole layers
    learning_rate=0.1,
    l2_regularization=1.0,  # XGBoost's default
    n_iter_no_change=30,
    random_state=0,
)
like_xgboost.fit(
    frame[train],
    y[train],
    qid=qid[train],
    eval_set=[(frame[vali], y[vali])],
    eval_qid=[qid[vali]],
)
scores["ranktrees, as XGBoost"] = like_xgboost.predict(frame[test])
print(f"{len(like_xgboost.ensemble_)} trees kept of {like_xgboost.n_iter_}")

# %%
# CatBoost
# --------
# Before:


def catboost_pool():
    import catboost

    numbers = pd.get_dummies(
        frame, dtype=float
    )  # since a model with categories cannot be moved
    rows = catboost.Pool(numbers[train], y[train], group_id=qid[train])
    other_rows = catboost.Pool(numbers[vali], y[vali], group_id=qid[vali])
    model = catboost.CatBoost(
        {
            "loss_function": "YetiRank",
            "eval_metric": "NDCG:top=10;type=Exp",
            "iterations": 60,
            "depth": 4,
            "od_wait": 30,
            "random_seed": 0,
            "verbose": False,
            "allow_writing_files": False,
        }
    )
    model.fit(rows, eval_set=other_rows)
    return "CatBoost", model, model.predict(numbers[test])


run(catboost_pool, "catboost")

# %%
# After. YetiRank is LambdaMART on scores with noise, and ``group_id`` is ``qid``. Categories need no
# ``cat_features``: those of a data frame are known by their type.

like_catboost = LambdaMARTRanker(
    noise=1.0,
    measure="ndcg.catboost@10",
    gain="exp2",
    max_iter=60,
    learning_rate=0.1,
    random_state=0,
)
like_catboost.fit(
    frame[train],
    y[train],
    qid=qid[train],
    X_val=frame[vali],
    y_val=y[vali],
    qid_val=qid[vali],
)
scores["ranktrees, as CatBoost"] = like_catboost.predict(frame[test])
print(f"{len(like_catboost.ensemble_)} trees; gains of the category:", end=" ")
print(
    f"{dict(zip(frame, like_catboost.feature_importances_, strict=True))['site']:.3f}"
)

# %%
# All of them, on queries that none has seen. Scores of any library can be compared.


comparisons = compare_to_baseline(
    y[test], scores, baseline="ranktrees", qid=qid[test], measure="ndcg@10"
)
print(comparisons)

# %%
# Take your model along
# ---------------------
# Fitted models and files of all three are read. Their scores are the same: to the last bit for LightGBM, to
# seven digits for XGBoost, which adds in single precision, and but for the last bits for CatBoost.


readers = {
    "LGBMRanker": load_lightgbm,
    "lightgbm.train": load_lightgbm,
    "xgboost.train": load_xgboost,
    "CatBoost": load_catboost,
}
moved = {}
if not boosters:
    print("none of the three is installed")
for name, booster in boosters.items():
    levels = (
        {"site": list(frame["site"].cat.categories)}
        if name == "xgboost.train"
        else None
    )
    moved[name] = EnsembleRanker(readers[name](booster), category_levels=levels)
    rows = (
        pd.get_dummies(frame[test], dtype=float)
        if name == "CatBoost"
        else frame[test]
    )
    found = moved[name].predict(rows)
    print(
        f"{name:15} {len(moved[name].ensemble_):4} trees, largest difference ",
        end="",
    )
    print(f"{np.abs(found - scores[name]).max():.1e}")

# %%
# What was ``save_model`` is ``save``, and for LightGBM and XGBoost a model of this library can be written as
# theirs.


with tempfile.TemporaryDirectory() as folder:
    ranker.save(Path(folder, "model.rkt"))
    dump_lightgbm(ranker, Path(folder, "model.txt"))
    for path in sorted(Path(folder).iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")
    ours = EnsembleRanker(Ensemble.load(Path(folder, "model.rkt")))
    theirs = EnsembleRanker(load_lightgbm(Path(folder, "model.txt")))
for name, model in {"ours": ours, "LightGBM's text": theirs}.items():
    print(
        f"{name:16} the same scores:",
        np.array_equal(model.predict(frame[test]), scores["ranktrees"]),
    )

# %%
# Habits
# ------
# **Names.** Each parameter has one name here. Any other is refused, and the answer has the name to use:

for habit in (
    {"num_leaves": 31, "objective": "lambdarank"},
    {"colsample_bytree": 0.5},
):
    try:
        LambdaMARTRanker(**habit)
    except TypeError as error:
        print(error, "\n")
for method, habit in (
    ("fit", {"group_id": qid}),
    ("predict", {"pred_contrib": True}),
):
    try:
        getattr(ranker, method)(frame, **habit)
    except TypeError as error:
        print(error, "\n")

# %%
# **eval_at, label_gain.** Measures are strings or objects. Several of them, on several sets, are computed
# after the fit: `~ranktrees.score_curves` is ``record_evaluation`` and ``plot_metric``.


sets = {
    "train": (frame[train], y[train], qid[train]),
    "vali": (frame[vali], y[vali], qid[vali]),
}
curves = score_curves(
    ranker, sets=sets, measure=["ndcg@1", "ndcg@10", "map"], every=5
)
print(curves)
axes = curves.plot("ndcg@10")
axes.figure.tight_layout()

# %%
# **Custom objective and metric.** Functions of plain arrays. The objective also gets the offsets of the
# queries, so nothing has to be asked of a Dataset. This is the pairwise hinge, and the measure is whether the
# first row is good.


def hinge(labels, scores, offsets):
    gradients, hessians = np.zeros(len(scores)), np.zeros(len(scores))
    for begin, end in pairwise(offsets):
        gaps = scores[begin:end, None] - scores[begin:end]
        wrong = (labels[begin:end, None] > labels[begin:end]) & (gaps < 1)
        gradients[begin:end] = wrong.sum(axis=0) - wrong.sum(axis=1)
        hessians[begin:end] = wrong.sum(axis=0) + wrong.sum(axis=1)
    return gradients, hessians


def first_is_good(labels, scores):
    return float(labels[scores.argmax()] >= 2)


own = LambdaMARTRanker(
    hinge, measure=first_is_good, max_iter=50, learning_rate=0.1, random_state=0
)
own.fit(
    frame[train],
    y[train],
    qid=qid[train],
    X_val=frame[vali],
    y_val=y[vali],
    qid_val=qid[vali],
)
own_scores = {
    "hinge": own.predict(frame[test]),
    "LambdaMART": scores["ranktrees"],
}
for name, found in own_scores.items():
    values = [
        as_measure(measure)(y[test], found, qid=qid[test])
        for measure in (first_is_good, "ndcg@10")
    ]
    print(f"{name:11} first is good {values[0]:.3f}, NDCG@10 {values[1]:.4f}")

# %%
# A function in the order of another library, or one that expects sizes, is refused rather than called with
# what it would take for something else. So are names of other libraries' metrics, and lists of them.


def objective(y_true, y_pred, group):
    return y_pred - y_true, np.ones(len(y_true))


for habit in (
    {"loss": objective},
    {"measure": "NDCG:top=10;type=Exp"},
    {"measure": ["ndcg@1", "ndcg@10"]},
):
    try:
        LambdaMARTRanker(**habit).fit(frame[train], y[train], qid=qid[train])
    except ValueError as error:
        print(error, "\n")

# %%
# **pred_contrib.** `~ranktrees.contributions` is a table, for models that were moved as well, and equals what
# LightGBM says.


found = contributions(moved.get("LGBMRanker", ranker), frame[test])
if "LGBMRanker" in boosters:
    theirs = boosters["LGBMRanker"].predict(frame[test], pred_contrib=True)
    print(
        f"largest difference from pred_contrib: {np.abs(theirs[:, :-1] - found.values).max():.1e}"
    )
found.to_frame().head(3).round(3)

# %%
# **Monotone constraints, categories.** By the names of the columns.

rising = LambdaMARTRanker(
    monotonic_cst={"f0": 1, "f3": -1},
    max_iter=60,
    learning_rate=0.1,
    random_state=0,
)
rising.fit(frame[train], y[train], qid=qid[train])
one = frame[test].head(1)
ladder = pd.concat(
    [
        one.assign(f0=value)
        for value in np.quantile(frame["f0"], [0.1, 0.3, 0.5, 0.7, 0.9])
    ]
)
print("scores while f0 rises: ", rising.predict(ladder).round(3))
sites = frame["site"].cat.categories
everywhere = pd.concat([one] * len(sites)).assign(site=pd.Categorical(sites))
print(
    "scores of the same row:",
    dict(zip(sites, rising.predict(everywhere).round(3).tolist(), strict=True)),
)

# %%
# **Weights per query.** XGBoost takes a weight for each query, CatBoost ``group_weight``. Here each row has
# its query's. A length that does not fit is refused, and the answer tells how to repeat them.

weights = np.linspace(0.5, 1.5, 120)
try:
    ranker.fit(frame[train], y[train], sample_weight=weights, qid=qid[train])
except ValueError as error:
    print(error)
weighted = LambdaMARTRanker(max_iter=50, random_state=0)
weighted.fit(
    frame[train], y[train], sample_weight=weights[qid[train]], qid=qid[train]
)
print(f"NDCG@10 {weighted.score(frame[test], y[test], qid=qid[test]):.4f}")
