"""
LETOR in ten minutes
====================

The published collections of learning to rank are text files with one row per line: LETOR, MSLR-WEB, Yahoo,
Istella. This page trains on such a folder, first with the command line, then with Python, and ends with the
mean over five folds and with files for trec_eval.
"""

# %%
# The files
# ---------
# Nothing is downloaded here: a set with the shape of MSLR-WEB is drawn, and dealt to five folds as MSLR-WEB
# is. Each fold trains on three parts of the queries, stops early by the fourth, and is tested on the fifth.

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ranktrees import (
    Ensemble,
    LambdaMARTRanker,
    RandomForestRanker,
    as_measure,
    compare,
    dump_letor,
    dump_trec_qrels,
    dump_trec_run,
    judged_rows,
    load_letor,
    load_letor_folds,
    load_trec_qrels,
    load_trec_run,
    make_ranking,
)
from ranktrees.evaluation import compare_values, mean_interval, per_query_table

data = make_ranking(200, "web", rows_per_query=20, n_features=46, random_state=0)
ids = np.array([f"D{row:05}" for row in range(len(data.target))])
part_of_row = data.qid % 5
temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
for fold in range(5):
    parts = {
        "train": [fold, fold + 1, fold + 2],
        "vali": [fold + 3],
        "test": [fold + 4],
    }
    (folder / f"Fold{fold + 1}").mkdir()
    for name, numbers in parts.items():
        rows = np.isin(part_of_row, np.mod(numbers, 5))
        path = folder / f"Fold{fold + 1}" / f"{name}.txt"
        dump_letor(
            data.data[rows],
            data.target[rows],
            path,
            qid=data.qid[rows],
            ids=ids[rows],
        )

for path in sorted(folder.glob("Fold1/*.txt")):
    print(
        f"{path.relative_to(folder)}: {len(path.read_text().splitlines())} lines, such as"
    )
    print(f"    {path.read_text()[:75]} ...")

# %%
# To use a published collection, unpack it and put its folder in the place of ``folder``. Files may stay
# compressed (``train.txt.gz``).
#
# - **MSLR-WEB10K, MSLR-WEB30K, LETOR 4.0**: ``Fold1/train.txt``, ``Fold1/vali.txt``, ``Fold1/test.txt`` and
#   so on, as here. MQ2007 and MQ2008 write NULL for a missing value: ``missing="NULL"``, on the command line
#   ``--missing NULL``.
# - **Yahoo**: ``set1.train.txt``, ``set1.valid.txt``, ``set1.test.txt``; each set is a fold.
# - **Istella**: without validation rows, ``parts=("train", "test")``, on the command line ``--parts
#   train,test``, and ``encoding="latin-1"`` if ids are not UTF-8.

# %%
# On the command line
# -------------------
# ``train`` takes a fold: trees are grown on ``train.txt``, and the measure on ``vali.txt`` says how many are
# kept. Any parameter of the estimator is set by ``--set``.


def ranktrees(command):
    """Run a command in the folder of the files, and show it with what it prints."""
    words = [sys.executable, "-m", "ranktrees", *shlex.split(command)]
    print(f"$ ranktrees {command}")
    print(
        subprocess.run(
            words, cwd=folder, check=True, capture_output=True, text=True
        ).stdout
    )


ranktrees("train Fold1 -o lambdamart.rkt --set max_iter=100 --set random_state=0")
ranktrees(
    "train Fold1/train.txt -o forest.rkt -e forest --set n_estimators=50 --set random_state=0"
)

# %%
# ``score`` writes one score per row, in the order of the rows, and ``evaluate`` compares models query by
# query.

ranktrees("score lambdamart.rkt Fold1/test.txt -o scores.txt")
print((folder / "scores.txt").read_text()[:60], "...\n")
ranktrees(
    "evaluate lambdamart.rkt forest.rkt --on Fold1/test.txt --measure ndcg@10 --measure map"
)

# %%
# ``explain`` says which features bring the first rows of a query to the top. Features have numbers, since
# LETOR files have no names.

query = data.qid[part_of_row == 4][0]
ranktrees(f"explain lambdamart.rkt Fold1/test.txt {query} --top 3")

# %%
# ``convert`` writes the model for another program, here for LightGBM, and ``info`` tells what is in a file.

ranktrees("convert lambdamart.rkt lightgbm.txt")
ranktrees("info lightgbm.txt")

# %%
# Given the folder of all folds, and no ``-o``, ``train`` reports each fold and the mean over all test
# queries.

ranktrees("train . --set max_iter=100 --set random_state=0")

# %%
# In Python
# ---------
# `~ranktrees.load_letor` reads one file. ``n_features`` is told because a file need not mention the last
# feature.


train = load_letor(folder / "Fold1/train.txt", n_features=46)
vali = load_letor(folder / "Fold1/vali.txt", n_features=46)
test = load_letor(folder / "Fold1/test.txt", n_features=46, return_ids=True)
for name, part in {"train": train, "vali": vali, "test": test}.items():
    print(
        f"{name:6} {part.data.shape} {part.data.dtype}, grades {np.bincount(part.target.astype(int))}"
    )

# %%
# With validation rows, the fit follows ``measure`` on them and keeps the trees up to its best value.

ranker = LambdaMARTRanker(measure="ndcg@10", max_iter=100, random_state=0)
ranker.fit(
    train.data,
    train.target,
    qid=train.qid,
    X_val=vali.data,
    y_val=vali.target,
    qid_val=vali.qid,
)
print(f"{ranker.n_iter_} trees grown, the first {ranker.best_iteration_} kept")
print(f"NDCG@10: vali {ranker.validation_score_.max():.4f}, ", end="")
print(f"test {ranker.score(test.data, test.target, qid=test.qid):.4f}")

# %%
# This is the model of the command line, to the last bit:


print(Ensemble.load(folder / "lambdamart.rkt") == ranker.ensemble_)
print(
    np.array_equal(np.loadtxt(folder / "scores.txt"), ranker.predict(test.data))
)

# %%
# A measure is a string or an object, and so is what other programs report. The table has a value for each
# query.


forest = RandomForestRanker(50, random_state=0).fit(
    train.data, train.target, qid=train.qid
)
scores = {
    "LambdaMART": ranker.predict(test.data),
    "forest": forest.predict(test.data),
}
for name in (
    "ndcg@10",
    "ndcg.trec_eval@10",
    "ndcg.lightgbm@10",
    "ndcg.xgboost@10",
    "err@10",
    "map",
    "p@5",
):
    values = (
        as_measure(name)(test.target, each, qid=test.qid)
        for each in scores.values()
    )
    print(f"{name:18}" + "".join(f"{value:8.4f}" for value in values))
per_query_table(
    test.target, scores, qid=test.qid, measure=["ndcg@10", "map"]
).round(3).head()

# %%
# Is the difference real? `~ranktrees.compare` tests it, query by query, and the picture shows where it comes
# from.


result = compare(
    test.target,
    scores["LambdaMART"],
    scores["forest"],
    qid=test.qid,
    measure="ndcg@10",
)
print(result)
axes = result.plot()
axes.figure.tight_layout()

# %%
# Five folds
# ----------
# `~ranktrees.load_letor_folds` reads a fold when it is its turn. Papers report the mean over the folds; since
# each query is tested once, the values of all queries can be tested together as well.


measure = as_measure("ndcg@10")
of_folds, of_queries = [], {"LambdaMART": [], "forest": []}
for fold in load_letor_folds(folder):
    X, y, qid = fold.train.data, fold.train.target, fold.train.qid
    validation = {
        "X_val": fold.vali.data,
        "y_val": fold.vali.target,
        "qid_val": fold.vali.qid,
    }
    models = {
        "LambdaMART": LambdaMARTRanker(max_iter=100, random_state=0).fit(
            X, y, qid=qid, **validation
        ),
        "forest": RandomForestRanker(50, random_state=0).fit(X, y, qid=qid),
    }
    scores = {
        name: model.predict(fold.test.data) for name, model in models.items()
    }
    table = per_query_table(fold.test.target, scores, qid=fold.test.qid)
    means = {name: table[name]["NDCG @ 10"].mean() for name in models}
    of_folds.append(means)
    print(
        fold.name,
        "  ".join(f"{name} {value:.4f}" for name, value in means.items()),
    )
    for name, values in of_queries.items():
        values.extend(table[name]["NDCG @ 10"])
for name, values in of_queries.items():
    print(
        f"{name:10} mean of folds {np.mean([means[name] for means in of_folds]):.4f}, ",
        end="",
    )
    print(f"of queries {mean_interval(values)}")
print(compare_values(of_queries["LambdaMART"], of_queries["forest"]))

# %%
# Runs and judgements of TREC
# ---------------------------
# Scores become a run, and labels become judgements, for trec_eval and for all tools that read its files. The
# ids of the documents are those after the ``#`` of the LETOR file.


dump_trec_run(
    ranker.predict(test.data),
    folder / "trees.run",
    qid=test.qid,
    ids=test.ids,
    k=10,
    tag="trees",
)
dump_trec_qrels(test.target, folder / "test.qrels", qid=test.qid, ids=test.ids)
for name in ("trees.run", "test.qrels"):
    print(
        f"{name}\n    "
        + "\n    ".join((folder / name).read_text().splitlines()[:3])
    )

# %%
# Read back, run and judgements are joined by query and document. The run holds ten rows a query; the other
# judged documents count as not retrieved. So NDCG@10 is what it was, and AP is lower, since it looks further
# down.

joined = judged_rows(
    load_trec_run(folder / "trees.run"), load_trec_qrels(folder / "test.qrels")
)
print(joined.head(3), "\n")
for name in ("ndcg.trec_eval@10", "map"):
    whole = as_measure(name)(test.target, ranker.predict(test.data), qid=test.qid)
    of_run = as_measure(name)(
        joined["label"], joined["score"], qid=joined["query"]
    )
    print(f"{name:18} all rows {whole:.4f}, the run {of_run:.4f}")
temporary.cleanup()
