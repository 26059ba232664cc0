"""What the gradients of each ranking loss cost, beside each other and as a share of a round.

    python benchmarks/bench_losses.py [--queries 1580] [--threads 1] [--repeats 7]

Rows are MSLR-shaped (136 features, about 120 rows per query). The scores are those of ten trees, so that
ranks are neither settled nor random. All losses take their turn in each repeat; figures are medians over the
repeats, ratios of medians to those of LambdaMART on NDCG @ 10. The shares are those of a whole round of the
ranker with that loss, of its default search and of the full one, if the rest of the round takes as long as
the rest of a round on NDCG does.
"""

import argparse
import time

import numpy as np

from ranktrees import LambdaMARTRanker, make_ranking
from ranktrees.objectives import LambdaLoss, LambdaMART, RankNet, as_objective

NDCG = "LambdaMART, NDCG @ 10"
LOSSES = {
    NDCG: LambdaMART(),
    "the same, query_norm": LambdaMART(query_norm="log"),
    "the same, score_gap_norm": LambdaMART(score_gap_norm=0.01),
    "the same, noise": LambdaMART(noise=1.0),
    "LambdaMART, P @ 10": LambdaMART("p@10"),
    "LambdaMART, AUC": LambdaMART("auc"),
    "LambdaMART, ERR @ 10": LambdaMART("err@10"),
    "LambdaMART, MAP": LambdaMART("map"),
    "LambdaMART, MRR": LambdaMART("mrr"),
    "LambdaMART, TopAUC @ [0, 5]": LambdaMART("top_auc@[0,5]"),
    "LambdaLoss": LambdaLoss(),
    "RankNet": RankNet(truncation_level=30),
    "GBRank": as_objective("gbrank", truncation_level=30),
    **{kind: as_objective(kind) for kind in ("listnet", "xendcg", "query_rmse")},
}


def round_of(split_search, X, y, qid, n_threads, n_trees=20):
    """Seconds of one round on NDCG."""
    taken = []
    for trees in (1, 1 + n_trees):
        ranker = LambdaMARTRanker(max_iter=trees, max_leaf_nodes=64, n_jobs=n_threads, random_state=0)
        ranker.set_params(split_search=split_search)
        started = time.perf_counter()
        ranker.fit(X, y, qid=qid)
        taken.append(time.perf_counter() - started)
    return (taken[1] - taken[0]) / n_trees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--queries", type=int, default=1580)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    X, y, qid = make_ranking(options.queries, kind="web", random_state=0, return_X_y_qid=True)
    ranker = LambdaMARTRanker(max_iter=10, n_jobs=options.threads, random_state=0).fit(X, y, qid=qid)
    scores, labels = ranker.predict(X), y.astype(np.float64)
    offsets = np.append(np.flatnonzero(np.r_[True, qid[1:] != qid[:-1]]), len(qid))
    prepared_of = {
        name: loss.prepare(labels, None, offsets, options.threads) for name, loss in LOSSES.items()
    }
    gradients, hessians = np.empty(len(y)), np.empty(len(y))
    taken = {name: [] for name in prepared_of}
    for _ in range(options.repeats):
        for name, prepared in prepared_of.items():
            started = time.perf_counter()
            prepared.gradients(scores, gradients, hessians)
            taken[name].append(time.perf_counter() - started)
    taken = {name: float(np.median(seconds)) for name, seconds in taken.items()}
    rests = [round_of(kind, X, y, qid, options.threads) - taken[NDCG] for kind in ("auto", "full")]
    print(f"{len(y)} x {X.shape[1]}, {options.threads} threads\n")
    print("| gradients of | ms | / NDCG | share of a round | with full search |\n|---|---|---|---|---|")
    for name, seconds in taken.items():
        shares = " | ".join(f"{100 * seconds / (rest + seconds):.0f} %" for rest in rests)
        print(f"| {name} | {1e3 * seconds:.2f} | {seconds / taken[NDCG]:.2f} | {shares} |")


if __name__ == "__main__":
    main()
