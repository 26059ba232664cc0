"""Measures of a ranking: values that print as they are typed, score queries, and know what a swap changes.

A measure is a plain value. ``NDCG @ 10`` is NDCG cut off at rank 10, ``NDCG(gain="linear") @ 10`` is the same
with another parameter, and ``(NDCG @ 10)(y_true, y_score, qid=qid)`` is its mean over the queries:

>>> from ranktrees.measures import NDCG, as_measure
>>> NDCG(gain="linear", ties="worst") @ 10
NDCG(gain="linear", ties="worst") @ 10
>>> as_measure("ndcg@10") == NDCG @ 10
True
>>> (NDCG @ 2)([0, 2, 1, 1, 0], [0.3, 0.9, 0.1, 0.2, 0.7], qid=["a", "a", "a", "b", "b"])
0.728...

A measure may have the following parameters. Its own documentation lists those it has, with their defaults.

``gain``
    How much a label is worth. ``"exp2"`` is 2^label - 1, and ``"linear"`` is the label itself. A sequence is
    a table that is indexed by the (whole) label, and a function takes the array of labels and returns the
    array of gains.
``discount``
    How much a rank is worth. ``"log2"`` is 1 / log2(1 + rank). ``"letor"`` is 1 at ranks 1 and 2, then
    1 / log2(rank), as in the LETOR scripts. A sequence is a table that starts at rank 1, with 0 behind its
    end, and a function takes the array of ranks 1, 2, ... and returns the array of discounts. No rank may be
    worth more than the one above it.
``ties``
    How rows with equal scores are ordered. ``"average"`` is the exact expectation over all their orders,
    ``"worst"`` is the order that gives the lowest value, ``"input"`` is the order of the rows, and
    ``"reverse"`` the same from the last row to the first. The last two let the order of the file leak into
    the result: if the file is sorted by label, a constant score is perfect. They exist to reproduce the
    results of other programs.
``empty_query``
    What counts for a query on which the measure says nothing about the ranking, because no row is relevant
    (no gain is positive) or because no two labels differ. ``"skip"`` leaves the query out, and a number is
    taken as its value. ``"skip_equal"`` also leaves out the queries whose rows all have the same label: any
    ranking of these has the same value.
``rel``
    The lowest label that is relevant, for measures that tell relevant from irrelevant rows.
``at``
    The cutoff, set by ``@``: only ranks 1, ..., ``at`` count.

`PooledAUC`, `BalancedErrorRate` and `RMSE` are not means over queries. They are one number for the rows of
all queries together, in which each row has its own weight. The first two have no value for a query, so
whatever needs one refuses them: training by swaps of rows, and comparing query by query.

A row with score -inf was *not retrieved*. It counts wherever a measure counts the relevant rows of a query:
in the best order of `NDCG`, and in the divisors of `AP`, `R` and `RPrecision`. But it has no rank, so it adds
nothing to a sum over ranks, even without a cutoff, and `P` without one is the share among the retrieved rows.
To measures of pairs (`AUC`, `TopAUC`, `PairAccuracy`, `KendallTau`, `PooledAUC`) such rows are one tie, below
all others.
`ranktrees.judged_rows` makes them of a run and judgements.

Labels are finite numbers, and at least 0 except for these three, `PairAccuracy` and `KendallTau`. There may
be any number of grades, and queries may have any number of rows.
"""

from ranktrees.measures.agreement import RMSE, KendallTau, PairAccuracy
from ranktrees.measures.base import Measure, PreparedMeasure
from ranktrees.measures.binary import AP, AUC, RBP, RR, P, R, RPrecision, Success, TopAUC
from ranktrees.measures.discounted import DCG, ERR, NDCG
from ranktrees.measures.named import as_measure
from ranktrees.measures.pooled import BalancedErrorRate, PooledAUC
from ranktrees.measures.scores import (
    dcg_score,
    err_score,
    mean_auc_score,
    mean_average_precision_score,
    mean_reciprocal_rank_score,
    ndcg_score,
    pair_accuracy_score,
    precision_at_k_score,
    r_precision_score,
    rbp_score,
    recall_at_k_score,
    success_at_k_score,
)
from ranktrees.measures.worth import discounts, gains

__all__ = [
    "AP",
    "AUC",
    "DCG",
    "ERR",
    "NDCG",
    "RBP",
    "RMSE",
    "RR",
    "BalancedErrorRate",
    "KendallTau",
    "Measure",
    "P",
    "PairAccuracy",
    "PooledAUC",
    "PreparedMeasure",
    "R",
    "RPrecision",
    "Success",
    "TopAUC",
    "as_measure",
    "dcg_score",
    "discounts",
    "err_score",
    "gains",
    "mean_auc_score",
    "mean_average_precision_score",
    "mean_reciprocal_rank_score",
    "ndcg_score",
    "pair_accuracy_score",
    "precision_at_k_score",
    "r_precision_score",
    "rbp_score",
    "recall_at_k_score",
    "success_at_k_score",
]
