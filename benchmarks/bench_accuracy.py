"""NDCG@10 on real sets: ranktrees and its peers, in the same run, on the same folds.

    python benchmarks/bench_accuracy.py [--sets mq2008 ohsumed] [--seeds 3] [--jobs 2]

Every library runs with its own defaults, except that boosters may grow 1000 trees and stop early on the
validation part (NDCG@10, 100 rounds). Cells are the mean over the test queries of all folds, and the seeds,
of NDCG@10 (gain 2^label - 1, discount log2(1 + rank), queries without a relevant row left out); in brackets
the t statistic of the paired difference, query by query, to the peer that the row is to be compared with:
below -2 would mean that the row is worse. Our defaults were chosen on these sets, the peers' were not: see
docs/performance/accuracy.md for how to read the difference, and for sets on which nothing was chosen.
"""

import argparse
import time
import warnings

import data
import joblib
import numpy as np

from ranktrees import AveragedRanker, HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker, as_measure
from ranktrees.evaluation.comparing import compare_values
from ranktrees.rows import query_offsets

ROUNDS, PATIENCE = 1000, 100


def ours(kind, **parameters):
    """A model of ours; boosters stop early on the validation part."""

    def fit(train, validation, seed):
        model = kind(random_state=seed, n_jobs=1, **parameters)
        held_out = {}
        if kind is not RandomForestRanker:
            model.set_params(max_iter=ROUNDS, n_iter_no_change=PATIENCE, scoring="ndcg@10")
            held_out = dict(zip(("X_val", "y_val", "qid_val"), validation, strict=True))
        return model.fit(train[0], train[1], qid=train[2], **held_out).predict

    return fit


def averaged(quality):
    """A mean of our models, which stop early on the validation part."""

    def fit(train, validation, seed):
        model = AveragedRanker(quality, random_state=seed, n_jobs=1)
        held_out = dict(zip(("X_val", "y_val", "qid_val"), validation, strict=True))
        return model.fit(train[0], train[1], qid=train[2], **held_out).predict

    return fit


def lightgbm(objective, **parameters):
    """LightGBM."""

    def fit(train, validation, seed):
        import lightgbm as peer

        model = peer.LGBMRanker(
            objective=objective, n_estimators=ROUNDS, random_state=seed, n_jobs=1, verbose=-1, **parameters
        )
        model.fit(
            train[0],
            train[1],
            group=data.sizes(train[2]),
            eval_set=[validation[:2]],
            eval_group=[data.sizes(validation[2])],
            eval_metric="ndcg",
            eval_at=[10],
            callbacks=[peer.early_stopping(PATIENCE, first_metric_only=True, verbose=False)],
        )
        return model.booster_.predict

    return fit


def xgboost(train, validation, seed):
    """XGBoost's LambdaMART."""
    import xgboost as peer

    model = peer.XGBRanker(
        objective="rank:ndcg",
        eval_metric="ndcg@10",
        n_estimators=ROUNDS,
        early_stopping_rounds=PATIENCE,
        random_state=seed,
        n_jobs=1,
    )
    model.fit(*train[:2], qid=train[2], eval_set=[validation[:2]], eval_qid=[validation[2]], verbose=False)
    return model.predict


def catboost(loss_function="YetiRank", **parameters):
    """CatBoost."""

    def fit(train, validation, seed):
        import catboost as peer

        model = peer.CatBoostRanker(
            loss_function=loss_function,
            eval_metric="NDCG:top=10;type=Exp",
            iterations=ROUNDS,
            early_stopping_rounds=PATIENCE,
            random_seed=seed,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
            **parameters,
        )
        held_out = peer.Pool(*validation[:2], group_id=validation[2])
        return model.fit(*train[:2], group_id=train[2], eval_set=held_out).predict

    return fit


def hist_gradient_boosting(train, validation, seed):
    """scikit-learn's HistGradientBoostingRegressor, which stops on its loss."""
    import threadpoolctl
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        max_iter=ROUNDS, n_iter_no_change=PATIENCE, early_stopping=True, random_state=seed
    )
    with threadpoolctl.threadpool_limits(1):
        return model.fit(*train[:2], X_val=validation[0], y_val=validation[1]).predict


def random_forest(**parameters):
    """scikit-learn's RandomForestRegressor."""

    def fit(train, validation, seed):
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(random_state=seed, n_jobs=1, **parameters).fit(*train[:2]).predict

    return fit


# name: (how to fit it, the peer it is compared with)
MODELS = {
    "LightGBM lambdarank": (lightgbm("lambdarank"), None),
    "LightGBM lambdarank, 15 leaves, rate .05": (
        lightgbm("lambdarank", num_leaves=15, learning_rate=0.05),
        None,
    ),
    "XGBoost rank:ndcg": (xgboost, None),
    "CatBoost YetiRank": (catboost(), None),
    "**AveragedRanker**": (averaged("best"), "CatBoost YetiRank"),
    "**LambdaMARTRanker**": (ours(LambdaMARTRanker), "LightGBM lambdarank"),
    "LightGBM L2": (lightgbm("regression"), None),
    "HistGradientBoosting": (hist_gradient_boosting, None),
    "**HistGBRTRegressor**": (ours(HistGBRTRegressor), "LightGBM L2"),
    "RandomForestRegressor": (random_forest(), None),
    "**RandomForestRanker**": (ours(RandomForestRanker), "RandomForestRegressor"),
}
FURTHER = [
    ("**LambdaMARTRanker**", "LightGBM lambdarank, 15 leaves, rate .05"),
    ("**HistGBRTRegressor**", "HistGradientBoosting"),
]


def ndcg(rows, scores):
    """NDCG@10 of each query of (X, y, qid), in order."""
    _, offsets = query_offsets(rows[2], len(rows[2]))
    return as_measure("ndcg@10").per_query(rows[1], np.asarray(scores, np.float64), offsets)


def by_query(queries, values):
    """One value for each query: the mean over those parts that have it, each with its queries and values.

    The folds of Yandex test on the same queries, which are no further evidence.
    """
    _, place, times = np.unique(np.concatenate(queries), return_inverse=True, return_counts=True)
    return np.bincount(place, np.concatenate(values)) / times


def evaluate(name, model, seed):
    """(NDCG@10 of every test query, seconds of all fits)."""
    queries, values, seconds = [], [], 0.0
    for train, validation, test in data.folds(name):
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the peers' own
            predict = MODELS[model][0](train, validation, seed)
            scores = predict(test[0])
        seconds += time.perf_counter() - started
        queries.append(np.unique(test[2]))
        values.append(ndcg(test, scores))
    return by_query(queries, values), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["mq2008", "mq2007_85", "ohsumed", "yandex"])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="fits at the same time, one thread each")
    arguments = parser.parse_args()
    if data.folder() is None:
        parser.exit(message="No real data sets here: set RANKTREES_DATA to a folder that has them.\n")
    tasks = [
        (name, model, seed)
        for name in arguments.sets
        for model in arguments.models
        for seed in range(arguments.seeds)
    ]
    results = dict(
        zip(
            tasks,
            joblib.Parallel(arguments.jobs)(joblib.delayed(evaluate)(*task) for task in tasks),
            strict=True,
        )
    )

    def values(name, model):
        return np.mean([results[name, model, seed][0] for seed in range(arguments.seeds)], axis=0)

    print("| NDCG@10 | " + " | ".join(arguments.sets) + " | seconds |")
    print("|---" * (len(arguments.sets) + 2) + "|")
    for model in arguments.models:
        against = MODELS[model][1]
        cells = []
        for name in arguments.sets:
            cell = f"{np.nanmean(values(name, model)):.4f}"
            if against in arguments.models:
                found = compare_values(values(name, model), values(name, against))
                cell += f" ({found.statistic:+.1f})"
            cells.append(cell)
        seconds = sum(results[name, model, 0][1] for name in arguments.sets)
        print(f"| {model} | " + " | ".join(cells) + f" | {seconds:.0f} |")
    for model, against in [(m, MODELS[m][1]) for m in arguments.models if MODELS[m][1]] + FURTHER:
        if model not in arguments.models or against not in arguments.models:
            continue
        a, b = (np.concatenate([values(name, m) for name in arguments.sets]) for m in (model, against))
        found = compare_values(a, b)
        difference = f"{found.difference:+.4f}, t = {found.statistic:+.2f}"
        print(f"all sets together: {model} - {against}: {difference}")


if __name__ == "__main__":
    main()
