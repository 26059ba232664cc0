"""Measures: against textbook sums over all orders of ties, against other programs, and by their laws."""

import contextlib
import copy
import itertools
import math
import pickle
import re
import warnings
from datetime import date
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sk
from sklearn.exceptions import UndefinedMetricWarning

from ranktrees import FitWarning, MissingQueryWarning, measures
from ranktrees.measures import (
    AP,
    AUC,
    DCG,
    ERR,
    NDCG,
    RBP,
    RMSE,
    RR,
    BalancedErrorRate,
    KendallTau,
    Measure,
    P,
    PairAccuracy,
    PooledAUC,
    R,
    RPrecision,
    Success,
    TopAUC,
    as_measure,
    discounts,
    gains,
)
from ranktrees.measures.worth import exp2_gains
from reference import ranking as reference

# many a ranking here is that of a single query, or has relevant rows only
pytestmark = [
    pytest.mark.filterwarnings("ignore::ranktrees.MissingQueryWarning"),
    pytest.mark.filterwarnings("ignore:.* takes every row for relevant"),
]

# every compiled measure with its twin, at its cutoffs
TWINS = [
    (measure, twin, parameters, cutoffs)
    for measure, twin, parameters, cutoffs in [
        (DCG, reference.dcg, {}, [None, 1, 3]),
        (NDCG, reference.ndcg, {}, [None, 1, 3]),
        (NDCG, reference.ndcg, {"gain": "linear", "discount": "letor"}, [None, 2]),
        (ERR, reference.err, {}, [None, 1, 3]),
        (ERR, reference.err, {"max_grade": 6}, [None]),
        (AP, reference.ap, {}, [None, 1, 3]),
        (AP, reference.ap, {"rel": 2}, [None]),
        (RR, reference.rr, {}, [None, 1, 3]),
        (Success, reference.success, {}, [None, 1, 3]),
        (RPrecision, reference.r_precision, {}, [None]),
        (RPrecision, reference.r_precision, {"rel": 2}, [None]),
        (RBP, reference.rbp, {}, [None, 1, 3]),
        (RBP, reference.rbp, {"p": 0.5, "rel": 2}, [None]),
        (P, reference.p, {}, [None, 1, 3, 9]),
        (R, reference.r, {}, [None, 1, 3]),
        (AUC, reference.auc, {}, [None]),
        (TopAUC, reference.pauc, {}, [None, (0, 2), (1, 2), (1, 9)]),
        (PairAccuracy, reference.pair_accuracy, {}, [None]),
    ]
]
ALL = [NDCG, DCG, ERR, AP, RR, Success, P, R, RPrecision, RBP, AUC, TopAUC, RMSE, PairAccuracy, KendallTau]
CUT = [
    *[measure @ 3 for measure in (NDCG, DCG, ERR, AP, RR, Success, P, R, RBP)],
    *[TopAUC @ [1, 3], NDCG.letor @ 4, NDCG.survey, NDCG.lambdasmart @ 2, RR(rel=2)],
]
POOLED = [PooledAUC, PooledAUC @ [0, 5], AUC.survey @ [2.5, 60], BalancedErrorRate(threshold=1)]


def one_query(n):
    return np.array([0, n], dtype=np.int64)


def random_queries(seed, n_queries=40, longest=30, n_grades=5, n_scores=8):
    """Labels, scores (with many ties), offsets."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, longest, n_queries)
    n = sizes.sum()
    labels = random.integers(0, n_grades, n).astype(float)
    return labels, random.integers(0, n_scores, n) / 4.0, np.concatenate(([0], np.cumsum(sizes)))


# ---- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "typed"),
    [
        (NDCG, "NDCG"),
        (NDCG @ 10, "NDCG @ 10"),
        (NDCG(gain="linear", ties="worst") @ 10, 'NDCG(gain="linear", ties="worst") @ 10'),
        (NDCG(gain=[0, 1, 2.5]), "NDCG(gain=[0, 1, 2.5])"),
        (NDCG(gain=np.arange(3)) @ np.int64(2), "NDCG(gain=[0, 1, 2]) @ 2"),
        (NDCG(gain="exp2", empty_query="skip"), "NDCG"),
        (NDCG(empty_query=0.5), "NDCG(empty_query=0.5)"),
        (NDCG.survey @ 3, "NDCG(empty_query=0.5) @ 3"),
        ((NDCG @ 3).letor, 'NDCG(discount="letor", ties="input", empty_query=0) @ 3'),
        (ERR(max_grade=2) @ 5, "ERR(max_grade=2) @ 5"),
        (RR(rel=3), "RR(rel=3)"),
        (TopAUC @ [0, 5], "TopAUC @ [0, 5]"),
        (PairAccuracy(ties="worst"), 'PairAccuracy(ties="worst")'),
        (P.survey @ 5, "P(rel=3) @ 5"),
        (AUC.survey, "PooledAUC(rel=3)"),
        (AUC(rel=1, ties="worst").survey @ (0, 2.5), "PooledAUC(rel=3) @ [0, 2.5]"),
        (BalancedErrorRate(threshold=0), "BalancedErrorRate(threshold=0)"),
        (RMSE, "RMSE"),
    ],
)
def test_measures_print_as_they_are_typed(measure, typed):
    assert repr(measure) == str(measure) == typed
    assert as_measure(typed) == measure
    assert eval(typed, vars(measures)) == measure
    assert as_measure(measure) is measure


def test_measures_are_equal_by_what_they_print():
    for a, b in itertools.product([*ALL, *CUT, *POOLED], repeat=2):
        assert (a == b) == (repr(a) == repr(b))
        assert (hash(a) == hash(b)) == (a == b)
    assert NDCG @ 10 != "NDCG @ 10"


@pytest.mark.parametrize("measure", [*ALL, *CUT, *POOLED], ids=repr)
def test_measures_can_be_copied_and_pickled(measure):
    assert pickle.loads(pickle.dumps(measure)) == copy.deepcopy(measure) == measure
    assert type(measure)(**measure.parameters) == measure


def test_measures_do_not_change():
    with pytest.raises(AttributeError, match=r"NDCG\(at=...\)"):
        NDCG.at = 3
    assert (NDCG @ 3)(gain="linear") == NDCG(gain="linear") @ 3
    assert NDCG @ 3 @ 5 == NDCG @ 5
    assert NDCG() == NDCG


def test_functions_as_parameters():
    measure = NDCG(gain=np.sqrt, discount=np.reciprocal) @ 3
    assert repr(measure) == "NDCG(gain=sqrt, discount=reciprocal) @ 3"
    assert pickle.loads(pickle.dumps(measure)) == measure != NDCG(gain=np.square, discount=np.reciprocal) @ 3
    assert measure([4, 1], [1, 2]) == pytest.approx((1 + 2 / 2) / (2 + 1 / 2))


@pytest.mark.parametrize(
    ("typed", "measure"),
    [
        ("ndcg@10", NDCG @ 10),
        ("NDCG @ 10", NDCG @ 10),
        ("map", AP),
        ("map@5", AP @ 5),
        ("mrr", RR),
        ("err@10", ERR @ 10),
        ("p@5", P @ 5),
        ("precision@5", P @ 5),
        ("prec@5", P @ 5),
        ("recall@10", R @ 10),
        ("r_precision", RPrecision),
        ("RPrec(rel=2)", RPrecision(rel=2)),
        ("rbp(p=0.95)@10", RBP(p=0.95) @ 10),
        ("success@3", Success @ 3),
        ("hit_rate@3", Success @ 3),
        ("auc", AUC),
        ("top_auc@[0,5]", TopAUC @ [0, 5]),
        ("pooled_auc(rel=2)@[0,5]", PooledAUC(rel=2) @ [0, 5]),
        ("prec.survey@5", P(rel=3) @ 5),
        ("auc.survey", PooledAUC(rel=3)),
        ("pauc.survey@[0,5]", PooledAUC(rel=3) @ [0, 5]),
        ("pooled_auc.survey@[0,5]", PooledAUC(rel=3) @ [0, 5]),
        ("balanced_error_rate(threshold=0)", BalancedErrorRate(threshold=0)),
        ("rmse", RMSE),
        ("dcg@5", DCG @ 5),
        ("pair_accuracy", PairAccuracy),
        ("PairAccuracy", PairAccuracy),
        ("kendall_tau", KendallTau),
        ("ndcg.lightgbm@5", NDCG.lightgbm @ 5),
        ("ndcg.lambdasmart@5", NDCG(empty_query="skip_equal") @ 5),
        ("(ndcg@5).catboost", NDCG.catboost @ 5),
        (" ndcg(gain='linear')@5 ", NDCG(gain="linear") @ 5),
    ],
)
def test_as_measure(typed, measure):
    assert as_measure(typed) == measure


@pytest.mark.parametrize(
    "typed",
    [
        "ndgc@10",
        "",
        "ndcg@",
        "ndcg@ten",
        "ndcg+1",
        "ndcg.nothing",
        "ap.letor",
        "recall.survey",
        "pauc.letor@[0,5]",
        "ndcg.at",
        "f(1)",
        "ndcg(print())",
        "3",
    ],
)
def test_as_measure_lists_what_there_is(typed):
    with pytest.raises(ValueError, match=r"unknown measure .*: write a name, one of ndcg, dcg, err, map"):
        as_measure(typed)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: as_measure(10), ValueError, "a measure is a string such as 'ndcg@10'"),
        (lambda: as_measure("auc@5"), ValueError, "AUC has no cutoff"),
        (
            lambda: as_measure("ndcg(gian='linear')"),
            ValueError,
            "NDCG has no parameter 'gian': it has gain, disc",
        ),
        (lambda: NDCG(gian="linear"), TypeError, "NDCG has no parameter 'gian': it has gain, discount, ties"),
        (lambda: RMSE @ 3, TypeError, "RMSE has no cutoff"),
        (lambda: NDCG @ 0, ValueError, "whole number of ranks from 1 to 2147483647, got 0"),
        (lambda: NDCG @ 2.5, ValueError, "whole number of ranks from 1 to 2147483647, got 2.5"),
        (lambda: NDCG @ True, ValueError, "whole number of ranks from 1 to 2147483647, got True"),
        (lambda: NDCG @ 2**70, ValueError, f"whole number of ranks from 1 to 2147483647, got {2**70}"),
        (lambda: TopAUC @ 5, ValueError, r"TopAUC @ \[a, b\] with 0 <= a < b <= 2147483647, got 5"),
        (lambda: TopAUC @ [0, 2**70], ValueError, r"TopAUC @ \[a, b\] with .*, got \[0, "),
        (lambda: TopAUC @ [5, 5], ValueError, r"got \[5, 5\]"),
        *(
            (lambda at=at: PooledAUC @ at, ValueError, rf"PooledAUC @ \[a, b\] with .* <= 100, got {seen}")
            for at, seen in ((5, "5"), ([5, 5], r"\[5, 5\]"), ([0, 101], r"\[0, 101"), ([-1, 5], r"\[-1"))
        ),
        (lambda: BalancedErrorRate @ 5, TypeError, "BalancedErrorRate has no cutoff"),
        (
            lambda: BalancedErrorRate(threshold=None),
            ValueError,
            "threshold must be the highest score of a row",
        ),
        (
            lambda: as_measure("pauc@[0,5]"),
            ValueError,
            r"unknown measure 'pauc@\[0,5\]': .* 'pooled_auc@\[0,5\]', .*'pauc.survey@.*'top_auc@\[0,5\]'",
        ),
        (
            lambda: NDCG(gain="exp"),
            ValueError,
            "gain must be one of 'exp2', 'linear', a sequence .* got 'exp'",
        ),
        (lambda: NDCG(gain=[]), ValueError, "gain must be one of"),
        (lambda: NDCG(gain=[0, -1]), ValueError, "gain must be one of"),
        (lambda: NDCG(gain=3), ValueError, "gain must be one of"),
        (lambda: NDCG(discount="log"), ValueError, "discount must be one of 'log2', 'letor', a sequence"),
        (
            lambda: NDCG(discount=[0.5, 1]),
            ValueError,
            "not increase with the rank, but that of rank 2 is 1 and",
        ),
        (lambda: NDCG(ties="best"), ValueError, "ties must be one of 'average', 'worst', 'input', 'reverse'"),
        (
            lambda: NDCG(empty_query="one"),
            ValueError,
            "empty_query must be 'skip', 'skip_equal' or the value of a query on which",
        ),
        (lambda: AP(rel=None), ValueError, "rel must be the lowest relevant label"),
        (lambda: ERR(max_grade=0), ValueError, "max_grade must be the highest possible label"),
    ],
)
def test_wrong_parameters(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---- gains and discounts -----------------------------------------------------------------------------------


def test_exp2_gains_are_exact_for_whole_labels():
    labels = np.arange(1001.0)
    assert (gains(labels) == [2.0**label - 1 for label in labels]).all()


def test_names_of_scikit_learn_are_translated():
    for theirs, ours in {"roc_auc": "pooled_auc", "neg_mean_squared_error": "rmse"}.items():
        with pytest.raises(
            ValueError, match=rf"unknown measure '{theirs}': .*scikit-learn calls so is '{ours}'"
        ):
            as_measure(theirs)


def test_exp2_gains_of_very_low_labels():
    assert exp2_gains(np.array([-1e300, -5000.5, -1074.0])).tolist() == [-1.0] * 3


def test_exp2_gains_of_other_labels():
    labels = np.random.default_rng(0).uniform(0, 40, 1000)
    np.testing.assert_allclose(gains(labels), 2.0**labels - 1, rtol=1e-14, atol=1e-15)
    assert (np.diff(gains(np.sort(labels))) >= 0).all()


def test_gains():
    np.testing.assert_array_equal(gains([0, 2, 1.5], "linear"), [0, 2, 1.5])
    np.testing.assert_array_equal(gains([0, 2, 1], (0, 5, 7)), [0, 7, 5])
    np.testing.assert_array_equal(gains([0, 2, 1], np.sqrt), np.sqrt([0, 2, 1]))


@pytest.mark.parametrize(
    ("labels", "gain", "message"),
    [
        ([0, 2000], "exp2", "too large for a float at label 2000"),
        ([0, 3], [0, 1, 2], "the gain table has 3 entries, for labels 0 to 2, but there is a label 3"),
        ([0, 0.5], [0, 1], "label 0.5 is not whole"),
        ([0, -1], "exp2", "finite and >= 0 have gains, but there is a label -1"),
        ([0, -1], [0, 1, 3], "finite and >= 0 have gains, but there is a label -1"),
        ([0, np.nan], "linear", "finite and >= 0 have gains, but there is a label nan"),
        ([0, np.inf], np.sqrt, "finite and >= 0 have gains, but there is a label inf"),
        ([0, 1], lambda labels: labels - 1, "negative or not finite"),
        ([0, 1], lambda labels: labels[:1], r"shape \(1,\) for labels of shape \(2,\)"),
    ],
)
def test_labels_without_a_gain(labels, gain, message):
    with pytest.raises(ValueError, match=message):
        gains(labels, gain)


def test_discounts():
    ranks = np.arange(1, 2001)
    np.testing.assert_allclose(discounts(2000), 1 / np.log2(1 + ranks), rtol=1e-14)
    np.testing.assert_allclose(discounts(2000, "letor"), 1 / np.log2(np.maximum(ranks, 2)), rtol=1e-14)
    np.testing.assert_array_equal(discounts(3, [1, 0.5]), [1, 0.5, 0])
    np.testing.assert_array_equal(discounts(3, [4, 3, 2, 1]), [4, 3, 2])
    np.testing.assert_array_equal(discounts(3, lambda ranks: 1 / ranks), [1, 1 / 2, 1 / 3])
    assert discounts(0).shape == discounts(0, "letor").shape == (0,)
    with pytest.raises(ValueError, match="negative or not finite"):
        discounts(3, lambda ranks: 1 / (ranks - 1.5))
    with pytest.raises(ValueError, match="shape"):
        discounts(3, lambda ranks: 1.0)
    with pytest.raises(ValueError, match=r"that of rank 3 is 3 and that of rank 2 is 2$"):
        discounts(3, lambda ranks: np.maximum(ranks, 2))


# ---- against the twins -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", ["average", "worst", "input", "reverse"])
@pytest.mark.parametrize(("measure", "twin", "parameters", "cutoffs"), TWINS)
def test_every_order_of_ties(measure, twin, parameters, cutoffs, ties):
    random = np.random.default_rng(7)
    for trial in range(60):
        n = int(random.integers(1, 7))
        labels = random.integers(0, 5, n) * random.integers(0, 2, n)
        scores = random.integers(0, 1 + trial % 4, n) / 2
        for at in cutoffs:
            cut = measure(ties=ties, **parameters)
            cut = cut if at is None else cut @ at
            value = cut.of_query(labels.astype(float), scores.astype(float))
            expected = reference.evaluate(twin, labels.tolist(), scores.tolist(), ties, at, **parameters)
            if cut.empty_query == 0 and math.isnan(expected):
                expected = 0.0
            assert value == pytest.approx(expected, abs=1e-12, nan_ok=True), (cut, labels, scores)


@pytest.mark.parametrize("measure", [NDCG, DCG, NDCG @ 70, DCG @ 200])
@pytest.mark.parametrize("n", [65, 300, 2000])
def test_long_queries(measure, n):
    random = np.random.default_rng(n)
    labels, scores = random.integers(0, 5, n).astype(float), random.permutation(n).astype(float)
    ranked = labels[np.argsort(-scores)]
    top = measure.at or n
    weights = discounts(min(top, n))
    expected = gains(ranked)[: len(weights)] @ weights
    if type(measure) is type(NDCG):
        expected /= reference.ideal_dcg(gains(labels), weights)
    assert measure.of_query(labels, scores) == pytest.approx(expected, rel=1e-12)


def test_err_of_ties_is_exact():
    random = np.random.default_rng(3)
    for _ in range(20):
        labels = random.choice([0.0, 0.0, 1.0, 2.5, 4.0], random.integers(1, 9))
        stopping = ((2**labels - 1) / 16).tolist()
        expected = reference.err_of_tie(stopping) if any(stopping) else 0.0
        assert ERR.of_query(labels, np.zeros(len(labels))) == pytest.approx(expected, abs=1e-14)


def test_err_of_a_huge_tie_stops_where_nobody_is_left():
    """The truncated recursion equals the full one; here 3,000 equal rows, where the chances are geometric."""
    stop = (2.0**3 - 1) / 16
    value = ERR.of_query(np.full(3000, 3.0), np.zeros(3000))
    ranks = np.arange(1, 3001)
    assert value == pytest.approx(math.fsum(stop * (1 - stop) ** (ranks - 1) / ranks), rel=1e-13)


def test_a_million_rows():
    n = 1_000_000
    random = np.random.default_rng(0)
    labels = (random.random(n) < 1e-3) * random.integers(1, 5, n).astype(float)
    ties, order = np.zeros(n), random.permutation(n).astype(float)
    assert AUC(labels, ties) == pytest.approx(0.5, abs=1e-9)
    assert PairAccuracy(labels, ties) == 0.5
    assert NDCG(labels, labels) == pytest.approx(1.0, abs=1e-12)
    for measure in (NDCG @ 10, ERR @ 10, AP, RR):
        assert 0 <= measure(labels, order) < 0.2
        assert 0 <= measure(labels, ties) < 0.2


@pytest.mark.parametrize("measure", [*ALL, *CUT, *POOLED], ids=repr)
def test_no_rows_no_queries(measure):
    nothing = np.empty(0)
    if measure not in POOLED:
        assert measure.per_query(nothing, nothing, np.zeros(1, dtype=np.int64)).shape == (0,)
    assert math.isnan(measure.mean(nothing, nothing, np.zeros(1, dtype=np.int64)))
    with pytest.raises(ValueError, match="y_true is empty"):
        measure([], [])


# ---- deltas ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [*ALL, *CUT, NDCG(gain="linear"), ERR(max_grade=3)], ids=repr)
def test_deltas_equal_brute_force(measure):
    for n in range(1, 6):
        scores = np.arange(n, 0.0, -1.0)
        for labels in itertools.product(range(4), repeat=n):
            labels = np.array(labels, dtype=float)
            closed = measure.deltas(labels, scores)
            np.testing.assert_allclose(
                closed, brute_deltas(measure, labels, scores), atol=1e-12, err_msg=f"{labels}"
            )


def brute_deltas(measure, labels, scores):
    return np.nan_to_num(Measure.swap_deltas(measure, labels, scores))


@pytest.mark.parametrize("measure", [*ALL, *CUT], ids=repr)
def test_deltas_of_unsorted_and_tied_rows(measure):
    labels = np.array([0.0, 2, 1, 0, 3, 1, 0])
    scores = np.array([0.3, 0.5, 0.3, 0.9, 0.1, 0.5, 0.3])
    order = np.argsort(-scores, kind="stable")
    ranked = np.arange(7, 0.0, -1.0) if measure.by_order else scores[order]
    expected = brute_deltas(measure, labels[order], ranked)
    np.testing.assert_allclose(measure.deltas(labels, scores)[np.ix_(order, order)], expected, atol=1e-12)


def test_deltas_of_rows_at_which_everybody_stops():
    labels, scores = np.array([100.0, 100, 0, 3]), np.arange(4.0, 0.0, -1.0)
    measure = ERR(max_grade=100)
    np.testing.assert_allclose(
        measure.deltas(labels, scores), brute_deltas(measure, labels, scores), atol=1e-12
    )


def test_a_delta_written_out():
    # ranks 1 and 3 swap: gain 1 comes up from rank 3, gain 0 goes down; the best DCG is 3 + 1 / log2(3)
    delta = NDCG.deltas([0.0, 2.0, 1.0], [3.0, 2.0, 1.0])[0, 2]
    assert delta == pytest.approx((1 - 1 / 2) / (3 + 1 / math.log2(3)))


# ---- against other programs --------------------------------------------------------------------------------


def lightgbm_metric(y, score, sizes, metric="ndcg", weights=None):
    import lightgbm

    rows = np.arange(float(len(y)))[:, None]
    weights = None if weights is None else np.repeat(weights, sizes)
    data = lightgbm.Dataset(
        rows, label=y, weight=weights, group=sizes, init_score=score, params={"verbose": -1}
    )
    booster = lightgbm.Booster(
        {"objective": "lambdarank", "metric": metric, "eval_at": [5], "verbose": -1, "num_threads": 1}, data
    )
    return booster.eval_train()[0][2]


def xgboost_metric(y, score, sizes, metric="ndcg@5", weights=None):
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(np.zeros((len(y), 1)), label=y)
    data.set_group(sizes)
    if weights is not None:
        data.set_weight(weights)
    data.set_base_margin(np.asarray(score, dtype=float))
    booster = xgboost.train({"objective": "rank:ndcg", "eval_metric": metric, "nthread": 1}, data, 0)
    return float(booster.eval(data).split(":")[-1])


def catboost_ndcg(y, score, sizes, kind="Base"):
    pytest.importorskip("catboost")
    from catboost.utils import eval_metric

    qid = np.repeat(np.arange(len(sizes)), sizes)
    y, score = np.asarray(y, dtype=float), np.asarray(score, dtype=float)
    return eval_metric(y, score, f"NDCG:top=5;type={kind}", group_id=qid, thread_count=1)[0]


def sklearn_ndcg(y, score, sizes):
    if 1 in sizes:
        pytest.skip("scikit-learn refuses a query of one row")
    bounds = itertools.pairwise([0, *np.cumsum(sizes)])
    return np.mean([sk.ndcg_score([y[start:stop]], [score[start:stop]], k=5) for start, stop in bounds])


def ir_frames(y, score, qid):
    ids = {"query_id": np.asarray(qid).astype(str), "doc_id": [f"d{row:06d}" for row in range(len(y))]}
    qrels = pd.DataFrame({**ids, "relevance": np.asarray(y, dtype=int)})
    return qrels, pd.DataFrame({**ids, "score": np.asarray(score, dtype=float)})


def ir_measures_ndcg(y, score, sizes):
    import ir_measures

    qrels, run = ir_frames(y, score, np.repeat(np.arange(len(sizes)), sizes))
    return ir_measures.calc_aggregate([ir_measures.nDCG @ 5], qrels, run)[ir_measures.nDCG @ 5]


GRADED = [3, 2, 0, 1, 0, 2], [0.1, 0.4, 0.9, 0.6, 0.8, 0.3]
SITUATIONS = {
    "graded, no ties": (*GRADED, [6]),
    "a query without relevant rows": ([*GRADED[0], 0, 0, 0], [*GRADED[1], 0.3, 0.2, 0.1], [6, 3]),
    "all tied, ascending": ([0, 0, 3], [1.0, 1.0, 1.0], [3]),
    "all tied, descending": ([3, 0, 0], [1.0, 1.0, 1.0], [3]),
    "a query of one row": ([1, *GRADED[0]], [0.5, *GRADED[1]], [1, 6]),
}
EXP2, LINEAR = 0.27279506817479793, 0.37506283775028487
AVERAGE = (1 + 1 / math.log2(3) + 1 / 2) / 3
PROGRAMS = [
    (NDCG.lightgbm, lightgbm_metric, {}, [EXP2, (EXP2 + 1) / 2, 0.5, 1.0, (EXP2 + 1) / 2]),
    (NDCG.xgboost, xgboost_metric, {}, [EXP2, (EXP2 + 1) / 2, 0.5, 1.0, (EXP2 + 1) / 2]),
    (
        NDCG.xgboost(empty_query=0),
        xgboost_metric,
        {"metric": "ndcg@5-"},
        [EXP2, EXP2 / 2, 0.5, 1.0, (EXP2 + 1) / 2],
    ),
    (NDCG.catboost, catboost_ndcg, {}, [LINEAR, (LINEAR + 1) / 2, 0.5, 0.5, (LINEAR + 1) / 2]),
    (
        NDCG.catboost(gain="exp2"),
        catboost_ndcg,
        {"kind": "Exp"},
        [EXP2, (EXP2 + 1) / 2, 0.5, 0.5, (EXP2 + 1) / 2],
    ),
    (NDCG.sklearn, sklearn_ndcg, {}, [LINEAR, LINEAR / 2, AVERAGE, AVERAGE, (LINEAR + 1) / 2]),
    (NDCG.trec_eval, ir_measures_ndcg, {}, [LINEAR, LINEAR / 2, 1.0, 0.5, (LINEAR + 1) / 2]),
]
CASES = [
    pytest.param(preset, program, options, situation, expected, id=f"{preset} {situation}")
    for preset, program, options, row in PROGRAMS
    for situation, expected in zip(SITUATIONS, row, strict=True)
]


@pytest.mark.parametrize(("preset", "program", "options", "situation", "expected"), CASES)
def test_presets_are_what_the_programs_compute(preset, program, options, situation, expected):
    y, score, sizes = SITUATIONS[situation]
    qid = np.repeat(np.arange(len(sizes)), sizes)
    assert (preset @ 5)(y, score, qid=qid) == pytest.approx(expected, abs=1e-12)
    assert program(y, score, sizes, **options) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("preset", "program"),
    [
        (NDCG.lightgbm, lightgbm_metric),
        (NDCG.xgboost, xgboost_metric),
        (NDCG.catboost, catboost_ndcg),
        (NDCG.trec_eval, ir_measures_ndcg),
    ],
)
def test_presets_on_random_queries(preset, program, seed):
    labels, scores, offsets = random_queries(seed)
    value = (preset @ 5).mean(labels, scores, offsets)
    assert value == pytest.approx(program(labels, scores, np.diff(offsets)), abs=1e-6)


@pytest.mark.parametrize(
    ("preset", "program"), [(NDCG.lightgbm, lightgbm_metric), (NDCG.xgboost, xgboost_metric)]
)
def test_presets_with_weights(preset, program):
    """As the programs, but for queries without relevant rows, which count 1 there whatever they weigh."""
    labels, scores, offsets = random_queries(0)
    sizes, weights = np.diff(offsets), np.random.default_rng(0).uniform(0.5, 3.0, len(offsets) - 1)
    empty = np.maximum.reduceat(labels, offsets[:-1]) == 0
    assert empty.any()
    labels[offsets[:-1][empty]] = 1.0
    qid = np.repeat(np.arange(len(sizes)), sizes)
    value = (preset @ 5)(labels, scores, qid=qid, sample_weight=weights[qid])
    assert value == pytest.approx(program(labels, scores, sizes, weights=weights), abs=1e-6)
    labels[offsets[:-1][empty]] = 0.0
    values = (preset @ 5).per_query(labels, scores, offsets)
    theirs = np.sum(np.where(empty, 1.0, weights * values)) / weights.sum()
    assert program(labels, scores, sizes, weights=weights) == pytest.approx(theirs, abs=1e-6)


def map_at_5(empty_query):
    """The user guide's: divided by the relevant rows that ranks 1 to 5 have room for."""

    def of_query(labels, scores):
        n_relevant = (labels >= 1).sum()
        if n_relevant == 0:
            return empty_query
        return (AP(ties="input") @ 5)(labels, scores) * n_relevant / min(n_relevant, 5)

    return as_measure(of_query)


MAPS_AT_5 = [
    (map_at_5(1.0), lightgbm_metric, "map"),
    (map_at_5(1.0), xgboost_metric, "map@5"),
    (map_at_5(0.0), xgboost_metric, "map@5-"),
]


@pytest.mark.parametrize(("measure", "program", "metric"), MAPS_AT_5)
def test_map_at_k_of_lightgbm_and_xgboost(measure, program, metric):
    labels, scores, offsets = random_queries(0, n_grades=2)
    sizes = np.diff(offsets)
    relevant = np.add.reduceat(labels, offsets[:-1])
    assert (relevant == 0).any()
    assert (relevant > 5).any()
    assert ((relevant > 0) & (relevant < 5) & (sizes > 5)).any()
    values = measure.per_query(labels, scores, offsets)
    for (start, stop), value in zip(itertools.pairwise(offsets), values, strict=True):
        theirs = program(labels[start:stop], scores[start:stop], [stop - start], metric=metric)
        assert value == pytest.approx(theirs, abs=1e-6)
    assert values.mean() == pytest.approx(program(labels, scores, sizes, metric=metric), abs=1e-6)


@pytest.mark.parametrize(("metric", "empty_query"), [("map", 1), ("map-", 0)])
def test_map_of_xgboost(metric, empty_query):
    labels, scores, offsets = random_queries(1, n_grades=2)
    value = AP(ties="input", empty_query=empty_query).mean(labels, scores, offsets)
    assert value == pytest.approx(xgboost_metric(labels, scores, np.diff(offsets), metric), abs=1e-6)


def test_a_perfect_order_of_more_relevant_rows_than_the_cutoff():
    labels, scores = np.repeat([1.0, 0.0], 10), np.arange(20.0, 0.0, -1.0)
    assert (AP @ 5)(labels, scores) == 0.5
    for measure, program, metric in MAPS_AT_5:
        assert measure(labels, scores) == program(labels, scores, [20], metric=metric) == 1.0


def test_letor_preset_and_survey_preset():
    # LETOR: 7/1 + 0/1 + 1/log2(3) over 7/1 + 1/1; the second query counts 0
    y, score, qid = [3, 0, 1, 0, 0], [3, 2, 1, 2, 1], [1, 1, 1, 2, 2]
    assert NDCG.letor(y, score, qid=qid) == pytest.approx((7 + 1 / math.log2(3)) / 8 / 2)
    # the Survey: 7 + 1/2 over 7 + 1/log2(3); the second query counts 1/2
    assert NDCG.survey(y, score, qid=qid) == pytest.approx((7.5 / (7 + 1 / math.log2(3)) + 0.5) / 2)


SURVEY_BEST = 15 + 7 / math.log2(3) + 3 / 2 + 1 / math.log2(5)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("prec.survey@5", (2 / 5 + 0) / 2),
        ("pauc.survey@[0,5]", 0.05 * 1 / 2),  # below the first of nine irrelevant rows
        ("auc.survey", (9 + 5) / (2 * 9)),
        ("pauc.survey@[0,100]", (9 + 5) / (2 * 9)),
        ("ndcg.survey", ((7 + 3 / 2 + 15 / math.log2(6) + 1 / 3) / SURVEY_BEST + 1 / 2) / 2),
        ("ndcg.survey@5", ((7 + 3 / 2 + 15 / math.log2(6)) / SURVEY_BEST + 1 / 2) / 2),
        (
            "err",
            (7 / 16 + 9 / 16 * (1 / 3 * 3 / 16 + 13 / 16 * (1 / 5 * 15 / 16 + 1 / 7 * 1 / 16 * 1 / 16))) / 2,
        ),
        ("rmse", math.sqrt((36 + 64 + 25 + 36 + 1 + 16 + 4 + 4 + 1 + 8.5**2 + 1.5**2) / 11)),
    ],
)
def test_all_measures_of_the_survey(measure, expected):
    # rows of grades 3 and 4 at ranks 1 and 5 of a query; a query without relevant rows
    y, qid = [3, 0, 2, 0, 4, 0, 1, 0, 0, 0, 0], [1] * 9 + [2] * 2
    score = [9, 8, 7, 6, 5, 4, 3, 2, 1, 8.5, 1.5]
    assert as_measure(measure)(y, score, qid=qid) == pytest.approx(expected, abs=1e-15)


def test_the_survey_says_what_its_areas_are():
    """PAUC@[0,5] is at best 0.05 * 1, and 0.05^2 / 2 = 0.00125 for random guessing; AUC is PAUC@[0,100]."""
    random = np.random.default_rng(0)
    y, score = random.integers(0, 5, 200_000), random.normal(size=200_000)
    pauc = as_measure("pauc.survey@[0,5]")
    assert pauc(y, y) == pytest.approx(0.05)
    assert pauc(y, score) == pytest.approx(0.00125, rel=0.02)
    assert pauc(y, np.zeros(200_000)) == pytest.approx(0.00125, rel=1e-12)
    assert as_measure("pauc.survey@[0,100]")(y, score) == as_measure("auc.survey")(y, score)


@pytest.mark.parametrize("seeds", [range(first, first + 30) for first in range(0, 300, 30)], ids=str)
def test_pooled_measures_by_brute_force(seeds):
    """Ties, weights (some 0), labels of one kind and of any sign, one query and several."""
    for seed in seeds:
        _pooled_by_brute_force(seed)


def _pooled_by_brute_force(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 25))
    labels = random.integers(-1, random.choice([0, 3, 5]), n).astype(float)
    scores = random.integers(-2, random.choice([0, 3, 50]), n) / 4
    weights = random.integers(0, 4, n) * random.random(n) if seed % 2 else None
    qid = random.integers(0, 5, n) if seed % 3 else None
    of_rows = np.ones(n) if weights is None else weights
    rel = float(random.integers(0, 4))
    low, high = np.sort(random.choice(101, 2, replace=False)).tolist()
    threshold = scores[0] if seed % 5 else 0.1
    rows = labels.tolist(), scores.tolist(), of_rows.tolist(), rel
    for measure, expected in (
        (PooledAUC(rel=rel), reference.share_of_pairs(*rows)),
        (PooledAUC(rel=rel), reference.pooled_auc(*rows)),
        (PooledAUC(rel=rel) @ [low, high], reference.pooled_auc(*rows, low / 100, high / 100)),
        (BalancedErrorRate(rel=rel, threshold=threshold), reference.balanced_error_rate(*rows, threshold)),
    ):
        with contextlib.ExitStack() as stack:
            if math.isnan(expected):
                stack.enter_context(pytest.warns(UndefinedMetricWarning, match="without both relevant"))
            value = measure(labels, scores, qid=qid, sample_weight=weights)
        assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)
        if weights is not None and not math.isnan(expected):
            assert measure(labels, scores, sample_weight=7 * weights) == pytest.approx(expected, abs=1e-12)


@given(seed=st.integers(0, 2**32 - 1), n_scores=st.sampled_from([1, 3, 1000]), weighted=st.booleans())
@settings(max_examples=60, deadline=None)
def test_scikit_learn_agrees_on_pooled_measures(seed, n_scores, weighted):
    random = np.random.default_rng(seed)
    n, rate = random.integers(2, 60), random.uniform(0.01, 0.99)
    y, score = random.integers(0, 5, n), random.integers(0, n_scores, n) / 3
    weights = random.uniform(0.1, 3, n) if weighted else None
    relevant = y >= 3
    if relevant.all() or not relevant.any():
        return
    theirs = {"sample_weight": weights}
    ours = {"qid": random.integers(0, 4, n), **theirs}
    assert AUC.survey(y, score, **ours) == pytest.approx(sk.roc_auc_score(relevant, score, **theirs))
    scaled = sk.roc_auc_score(relevant, score, **theirs, max_fpr=rate)  # 1/2 at random, 1 at best
    area = rate**2 / 2 + (2 * scaled - 1) * (rate - rate**2 / 2)
    assert (AUC.survey @ [0, 100 * rate])(y, score, **ours) == pytest.approx(area, abs=1e-12)
    accuracy = sk.balanced_accuracy_score(relevant, score > 0.5, **theirs)
    assert BalancedErrorRate(rel=3)(y, score, **ours) == pytest.approx(1 - accuracy)


def test_one_query_pools_nothing():
    labels, scores, _ = random_queries(0)
    assert PooledAUC(labels, scores) == pytest.approx(AUC(labels, scores), abs=1e-15)
    n_misses = int((labels < 1).sum())
    top = TopAUC @ [0, n_misses // 2]  # scaled to 1, and in rows
    untied = np.random.default_rng(0).permutation(len(labels))
    pooled = PooledAUC @ [0, 100 * (n_misses // 2) / n_misses]
    assert pooled(labels, untied) == pytest.approx(top(labels, untied) * (n_misses // 2) / n_misses)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", POOLED, ids=repr)
def test_pooled_measures_change_no_bit_with_the_order_of_the_rows(measure, weighted):
    labels, scores, offsets = random_queries(3)
    random = np.random.default_rng(3)
    weights = random.random(len(labels)) if weighted else None
    value = measure.mean(labels, scores, offsets, weights)
    for _ in range(5):
        order = random.permutation(len(labels))
        shuffled = None if weights is None else weights[order]
        assert measure.mean(labels[order], scores[order], one_query(len(labels)), shuffled) == value
    prepared = measure.prepare(labels, offsets, weights)
    prepared.mean(-scores)
    assert prepared.mean(scores) == value
    assert prepared.signed_mean(scores) == (value if measure.greater_is_better else -value)


def test_pooled_measures_of_infinite_scores():
    assert PooledAUC([0, 1, 1, 0], [-np.inf, np.inf, np.inf, np.inf]) == 3 / 4


@pytest.mark.parametrize("measure", POOLED, ids=repr)
def test_pooled_measures_have_no_value_for_a_query(measure):
    labels, scores, offsets = random_queries(0)
    for ask in (
        lambda: measure.per_query(labels, scores, offsets),
        lambda: measure.prepare(labels, offsets).per_query(scores),
        lambda: measure.deltas(labels, scores),
    ):
        with pytest.raises(ValueError, match="has no value for each query; expected a mean over queries"):
            ask()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "measure", [NDCG, NDCG @ 2, NDCG.letor, DCG @ 3, ERR, AP, RR(rel=2), P @ 2, R @ 2, AUC]
)
def test_queries_of_one_label_are_dropped(measure, seed, weighted):
    """As LambdaSMART has it: "queries for which all URLs have the same label have been dropped"."""
    labels, scores, offsets = random_queries(seed, longest=5, n_grades=3)
    weights = np.random.default_rng(seed).uniform(0.5, 3.0, len(labels)) if weighted else None
    measure = measure(empty_query="skip_equal")
    queries = list(itertools.starmap(slice, itertools.pairwise(offsets)))
    kept = [len(set(labels[rows])) > 1 for rows in queries]
    values = np.array([measure(empty_query="skip").of_query(labels[rows], scores[rows]) for rows in queries])
    assert not all(kept)
    values[~np.array(kept)] = np.nan
    np.testing.assert_array_equal(measure.per_query(labels, scores, offsets), values)
    of_queries = np.array([1.0 if weights is None else weights[rows].mean() for rows in queries])
    counts = ~np.isnan(values)
    expected = np.average(values[counts], weights=of_queries[counts])
    assert measure.mean(labels, scores, offsets, weights) == pytest.approx(expected, rel=1e-12)


def test_a_query_of_one_label_counts_unless_it_is_dropped():
    y, score, qid = [2, 2, 0, 1, 0, 0], [1, 2, 2, 1, 1, 2], [1, 1, 2, 2, 3, 3]
    assert NDCG(y, score, qid=qid) == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert NDCG.lambdasmart(y, score, qid=qid) == pytest.approx(1 / math.log2(3))
    with pytest.warns(UndefinedMetricWarning, match="not defined on any query"):
        assert math.isnan(NDCG.lambdasmart([2, 2], [1, 2]))


@given(
    seed=st.integers(0, 2**32 - 1), n_scores=st.sampled_from([1, 3, 1000]), k=st.sampled_from([None, 1, 5])
)
@settings(max_examples=40, deadline=None)
def test_scikit_learn_agrees(seed, n_scores, k):
    random = np.random.default_rng(seed)
    n = random.integers(2, 40)
    y, score = random.integers(0, 4, n).astype(float), random.integers(0, n_scores, n).astype(float)
    cut = (lambda measure: measure) if k is None else (lambda measure: measure @ k)
    assert cut(NDCG.sklearn)(y, score) == pytest.approx(sk.ndcg_score([y], [score], k=k), abs=1e-12)
    assert cut(DCG(gain="linear"))(y, score) == pytest.approx(sk.dcg_score([y], [score], k=k), abs=1e-12)
    if 0 < (y >= 2).sum() < n:
        assert AUC(rel=2)(y, score) == pytest.approx(sk.roc_auc_score(y >= 2, score), abs=1e-12)
        distinct = random.permutation(n)
        expected = sk.average_precision_score(y >= 2, distinct)
        assert AP(rel=2)(y, distinct) == pytest.approx(expected, abs=1e-12)


@given(seed=st.integers(0, 2**32 - 1), n_scores=st.sampled_from([1, 3, 1000]))
@settings(max_examples=40, deadline=None)
def test_scipy_agrees_on_kendall_tau(seed, n_scores):
    random = np.random.default_rng(seed)
    n = random.integers(2, 40)
    y, score = random.integers(0, 4, n).astype(float), random.integers(0, n_scores, n).astype(float)
    if len(set(y)) > 1 and len(set(score)) > 1:
        assert KendallTau(y, score) == pytest.approx(stats.kendalltau(y, score).statistic, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_ir_measures_agrees(seed):
    import ir_measures as ir

    labels, scores, offsets = random_queries(seed, n_scores=5)
    qid = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    qrels, run = ir_frames(labels, scores, qid)
    twins = {
        ir.AP: AP,
        ir.AP(rel=2) @ 5: AP(rel=2) @ 5,
        ir.RR: RR,
        ir.P @ 5: P @ 5,
        ir.P(rel=2) @ 50: P(rel=2) @ 50,
        ir.R @ 5: R @ 5,
        ir.R(rel=3) @ 5: R(rel=3) @ 5,
        ir.Rprec: RPrecision,
        ir.Rprec(rel=3): RPrecision(rel=3),
        ir.Success @ 2: Success @ 2,
        ir.Success(rel=4) @ 5: Success(rel=4) @ 5,
        ir.nDCG: NDCG.trec_eval,
        ir.nDCG @ 7: NDCG.trec_eval @ 7,
    }
    for theirs, ours in twins.items():
        ours = ours(ties="reverse", empty_query=0)
        values = ours.per_query(labels, scores, offsets)
        for metric in ir.iter_calc([theirs], qrels, run):
            assert metric.value == pytest.approx(values[int(metric.query_id)], abs=1e-9), (theirs, ours)


def test_ir_measures_agrees_on_cutoffs_of_untied_rows():
    import ir_measures as ir

    labels, scores, offsets = random_queries(4)
    scores = np.random.default_rng(4).permutation(len(labels)).astype(float)
    qid = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    twins = {ir.RR @ 3: RR @ 3, ir.RR(rel=3) @ 4: RR(rel=3) @ 4, ir.ERR @ 5: ERR @ 5}
    found = ir.calc_aggregate(twins, *ir_frames(labels, scores, qid))
    for theirs, ours in twins.items():
        assert found[theirs] == pytest.approx(ours.mean(labels, scores, offsets), abs=1e-5), theirs


# ---- laws --------------------------------------------------------------------------------------------------

queries = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), min_size=1, max_size=12),
    min_size=1,
    max_size=6,
)


def flat(drawn):
    labels, scores = np.array([row for query in drawn for row in query], dtype=float).T.copy()
    return labels, scores, np.cumsum([0, *map(len, drawn)])


@given(drawn=queries, seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_laws(drawn, seed):
    random = np.random.default_rng(seed)
    labels, scores, offsets = flat(drawn)
    shuffled_queries = flat([drawn[q] for q in random.permutation(len(drawn))])
    shuffled_rows = flat([[query[row] for row in random.permutation(len(query))] for query in drawn])
    qid = random.permutation(len(drawn))[np.repeat(np.arange(len(drawn)), np.diff(offsets))]
    scattered = random.permutation(len(labels))
    for measure in [*ALL, *CUT]:
        value = measure.mean(labels, scores, offsets)
        np.testing.assert_equal(measure.mean(*shuffled_queries), value)  # bit for bit
        if measure == RMSE:
            continue
        np.testing.assert_equal(measure.mean(labels, scores + 8.0, offsets), value)
        np.testing.assert_equal(measure.mean(labels, 2.0**scores, offsets), value)
        if measure.parameters.get("ties") in ("average", "worst"):
            np.testing.assert_equal(measure.mean(*shuffled_rows), value)
            if not math.isnan(value):
                assert measure(labels[scattered], scores[scattered], qid=qid[scattered]) == value


@given(drawn=queries)
@settings(max_examples=60, deadline=None)
def test_the_average_over_ties_lies_between_the_worst_and_the_best(drawn):
    labels, scores, offsets = flat(drawn)
    for measure in [measure for measure in [*ALL, *CUT] if "ties" in measure.parameters]:
        worst, average, given_order, reverse = (
            np.nan_to_num(measure(ties=ties).per_query(labels, scores, offsets))
            for ties in ("worst", "average", "input", "reverse")
        )
        assert (worst <= average + 1e-12).all()
        assert (worst <= given_order + 1e-12).all()
        assert (worst <= reverse + 1e-12).all()
        if type(measure) is not type(DCG):
            assert (average <= 1).all()


def test_a_constant_score_is_never_perfect():
    y = [3, 2, 1, 0, 0]  # sorted, as files often are
    for measure in [measure for measure in ALL if measure.by_order and measure not in (DCG, Success, P, R)]:
        assert measure(y, [1, 1, 1, 1, 1]) < 0.9 * measure(y, [5, 4, 3, 2, 1]), measure


@pytest.mark.parametrize("measure", [*ALL, *CUT], ids=repr)
def test_threads_do_not_matter(measure):
    labels, scores, offsets = random_queries(5, n_queries=300, longest=60)
    values = measure.per_query(labels, scores, offsets)
    for n_threads in (2, 3, 4, 1000):
        np.testing.assert_array_equal(measure.per_query(labels, scores, offsets, n_threads=n_threads), values)
        assert measure.mean(labels, scores, offsets, n_threads=n_threads) == measure.mean(
            labels, scores, offsets
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", [*ALL, *CUT, NDCG(empty_query=0.5)], ids=repr)
def test_a_prepared_measure_keeps_nothing_of_scores(measure, weighted):
    """Whatever scores it has seen before."""
    labels, _, offsets = random_queries(6, n_queries=40, longest=30)
    random = np.random.default_rng(0)
    weights = random.integers(0, 3, len(labels)).astype(float) if weighted else None
    prepared = measure.prepare(labels, offsets, weights, n_threads=2)
    for _ in range(3):
        scores = random.integers(0, 9, len(labels)).astype(float)
        rows = labels, scores, offsets, weights
        np.testing.assert_array_equal(prepared.per_query(scores), measure.per_query(*rows))
        assert prepared.mean(scores) == measure.mean(*rows)
        assert prepared.signed_mean(scores) == measure.signed_mean(*rows)


def test_better_rankings_score_higher():
    labels = np.array([0.0, 1, 2, 3, 4] * 4)
    noise = np.random.default_rng(0).normal(size=20)
    for measure in ALL:
        sign = 1 if measure.greater_is_better else -1
        assert sign * measure(labels, labels) >= sign * measure(labels, labels + 9 * noise), measure
    assert not RMSE.greater_is_better


def test_a_swap_against_the_labels_lowers_err():
    scores = -np.arange(5.0)
    for labels in map(np.array, itertools.permutations([0.0, 1, 1, 2, 4])):
        for above, below in itertools.combinations(range(5), 2):
            if labels[above] > labels[below]:
                swapped = labels.copy()
                swapped[[above, below]] = labels[[below, above]]
                assert ERR(swapped, scores) < ERR(labels, scores)


# ---- what users pass ---------------------------------------------------------------------------------------


def test_query_ids_of_any_kind_and_order():
    y, score = [3, 0, 1, 0, 2, 1], [1, 2, 3, 1, 2, 3]
    expected = (NDCG([3, 1, 2], [1, 3, 2]) + NDCG([0, 0, 1], [2, 1, 3])) / 2
    for qid in (["x", "y", "x", "y", "x", "y"], [2, 1] * 3, pd.Series(["b", "a"] * 3, dtype="category")):
        assert NDCG(y, score, qid=qid) == pytest.approx(expected)
    index = pd.MultiIndex.from_arrays([range(6), [7, 8] * 3], names=["row", "qid"])
    assert NDCG(pd.Series(y, index=index), score) == pytest.approx(expected)
    assert NDCG(y, score) != pytest.approx(expected)


def test_weights():
    y, score, qid = [1, 0, 1, 0, 1], [1, 2, 2, 1, 1], [1, 1, 2, 2, 2]
    values = RR(y[:2], score[:2]), RR(y[2:], score[2:])
    assert RR(y, score, qid=qid, sample_weight=[1, 3, 1, 1, 1]) == pytest.approx(
        (2 * values[0] + values[1]) / 3
    )
    assert RR(y, score, qid=qid, sample_weight=[0, 0, 1, 1, 1]) == values[1]
    assert RR(y, score, qid=qid, sample_weight=[2] * 5) == RR(y, score, qid=qid)


@given(seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_rmse_is_over_rows(seed):
    random = np.random.default_rng(seed)
    y, score, weight = random.normal(size=(3, 30))
    qid, weight = random.integers(0, 5, 30), np.abs(weight)
    assert RMSE(y, score, qid=qid) == pytest.approx(sk.root_mean_squared_error(y, score))
    expected = sk.root_mean_squared_error(y, score, sample_weight=weight)
    assert RMSE(y, score, qid=qid, sample_weight=weight) == pytest.approx(expected)
    halves = RMSE.per_query(y, score, np.array([0, 10, 30]))
    assert halves[1] == pytest.approx(sk.root_mean_squared_error(y[10:], score[10:]))


def test_rmse_does_not_see_rows_without_weight():
    assert RMSE([0, 1], [np.inf, 3], sample_weight=[0, 1]) == 2.0


def test_where_no_query_counts():
    with pytest.warns(UndefinedMetricWarning, match="NDCG @ 3 is not defined on any query"):
        assert math.isnan((NDCG @ 3)([0, 0], [1, 2]))
    assert (NDCG(empty_query=0.5) @ 3)([0, 0], [1, 2]) == 0.5
    assert RR([0, 0], [1, 2]) == 0.0


def test_a_score_of_plus_infinity_has_its_rank_and_one_of_minus_infinity_has_none():
    assert RR([0, 1, 0], [1.0, np.inf, -np.inf]) == 1.0
    assert RR([0, 1, 1], [1.0, -np.inf, -np.inf]) == 0.0


# what a measure is divided by, of the labels of all rows and of the rows that have a rank
DIVISORS = {
    **{measure: lambda labels, at: 1.0 for measure in (DCG, ERR, RR)},
    NDCG: lambda labels, at: reference.dcg(sorted(labels, reverse=True), at),
    **{measure: lambda labels, at: sum(label >= 1 for label in labels) for measure in (AP, R)},
    P: lambda labels, at: 1.0,
}


@pytest.mark.parametrize("ties", ["average", "worst", "input", "reverse"])
@pytest.mark.parametrize("at", [None, 1, 3, 100])
@pytest.mark.parametrize("measure", DIVISORS, ids=repr)
def test_rows_that_were_not_retrieved_are_in_the_divisor_only(measure, at, ties):
    random = np.random.default_rng(0)
    measure, divisor = measure(at=at, ties=ties, empty_query=0), DIVISORS[measure]
    for n in (1, 2, 5, 20, 90):
        for share in (0.0, 0.3, 0.9, 1.0):
            labels = random.integers(0, 4, n).astype(float)
            scores = np.where(random.random(n) < share, -np.inf, random.integers(0, 4, n))
            seen = scores > -np.inf
            value = measure.of_query(labels, scores)
            if not (labels[seen] > 0).any():
                assert value == 0.0
                continue
            expected = measure.of_query(labels[seen], scores[seen])
            expected *= divisor(labels[seen], at) / divisor(labels, at)
            assert value == pytest.approx(expected, rel=1e-12)


def test_rows_that_were_not_retrieved_are_the_last_tie_of_pairs():
    labels, scores = np.array([0.0, 1, 2, 0, 1]), np.array([3.0, 2, -np.inf, -np.inf, 1])
    low = np.where(scores > -np.inf, scores, 0.0)
    for measure in (AUC, TopAUC @ [0, 1], PairAccuracy, KendallTau):
        assert measure.of_query(labels, scores) == measure.of_query(labels, low)


def test_rows_that_were_not_retrieved_have_no_place_to_swap():
    with pytest.raises(ValueError, match="scores has -inf in row 1, which was not retrieved"):
        P.deltas([0, 1], [1.0, -np.inf])


def test_a_prepared_measure_forgets_what_was_retrieved_before():
    prepared = P.prepare(np.array([1.0, 0, 1, 0]), one_query(4))
    assert prepared.mean(np.array([3.0, 2, 1, 0])) == 0.5
    assert prepared.mean(np.array([3.0, -np.inf, -np.inf, -np.inf])) == 1.0
    assert prepared.mean(np.full(4, -np.inf)) == 0.0


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1], [1, np.nan]), {}, "y_score must not be NaN, got nan in row 1"),
        (([0, np.inf], [1, 2]), {}, "y_true must not be NaN or infinite, got inf in row 1"),
        (([0, -1], [1, 2]), {}, "NDCG takes labels >= 0, but y_true has label -1"),
        (([0, 1, 2], [1, 2]), {}, "y_score has 2 rows, but y_true has 3"),
        (([[0], [1]], [1, 2]), {}, r"y_true must have one dimension, got shape \(2, 1\)"),
        ((["a", "b"], [1, 2]), {}, "y_true must be numbers, one per row"),
        ((["1", "0"], [1, 2]), {}, "y_true must be numbers, one per row: strings are not numbers"),
        (([1, 0], np.array([1, np.timedelta64(2, "s")], object)), {}, "y_score must .* dates and durations"),
        (
            ([1, 0], np.array([2, "1"], object)),
            {},
            "y_score must be numbers, one per row: strings are not numbers",
        ),
        (([10**400, 0], [1, 2]), {}, "y_true must be numbers, one per row"),
        (([1, 0], [1 + 1j, 2]), {}, "y_score must be numbers, one per row: complex numbers"),
        (
            ([1, 0], np.array(["2026-01-01", "NaT"], "M8[D]")),
            {},
            "y_score must be .*: dates and durations are",
        ),
        (([1, 0], np.array([1, 2], "m8[s]")), {}, "y_score must be .*: dates and durations are not numbers"),
        (([1, 0], [date(2024, 1, 1), date(2024, 1, 2)]), {}, "y_score must be .*: dates and durations"),
        (([1, 0], [2**53, 2**53 + 1]), {}, r"y_score must be .*: different integers above 2\*\*53 would"),
        ((np.ma.array([0, 1], mask=[0, 1]), [1, 2]), {}, "y_true must not be NaN or infinite, got nan"),
        (([0, 1], [1, 2]), {"sample_weight": [1]}, "sample_weight has 1 rows, but y_true has 2"),
        (([0, 1], [1, 2]), {"sample_weight": [1, -1]}, "sample_weight must be >= 0, got -1"),
        (([0, 2000], [1, 2]), {}, "use labels up to 1000, gain='linear' or a table"),
    ],
)
def test_rows_that_cannot_be_read(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        NDCG(*arguments, **options)


def test_large_integers_that_stay_apart_are_scores():
    assert RR([1, 0], [2**62, 2**61]) == RR([1, 0], np.array([2**63, 0], np.uint64)) == 1.0
    assert RR([1, 0], [2**53 + 2, 2**53 + 2]) == 0.75


def test_calls_that_make_no_sense():
    with pytest.raises(TypeError, match=r"for scoring= of scikit-learn, .* pass query_scorer\(measure\)"):
        NDCG(object(), [[1.0]], [0])
    with pytest.raises(TypeError, match=r"y_true is <LazyFrame>, .*: pass y_true.collect\(\)"):
        NDCG(pl.LazyFrame({"y": [0, 1]}), [1.0, 2.0])
    with pytest.raises(TypeError, match="needs both labels and scores"):
        NDCG([0, 1])
    with pytest.raises(TypeError, match="needs both labels and scores"):
        NDCG(qid=[1, 2])
    with pytest.raises(TypeError, match="a cutoff is written NDCG @ 5"):
        NDCG(5)
    with pytest.raises(TypeError, match=r"has no parameter 'k': .*; a cutoff is written NDCG @ k"):
        NDCG(k=5)
    with pytest.raises(ValueError, match=r"ERR takes labels up to max_grade=4, .* use ERR\(max_grade=5\)"):
        ERR([5, 0], [1, 2])


def test_functions_are_the_measures():
    labels, scores, offsets = random_queries(2)
    qid = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    weight = np.random.default_rng(2).random(len(labels))
    for function, measure, options in [
        (
            measures.ndcg_score,
            NDCG,
            {"gain": "linear", "discount": "letor", "ties": "worst", "empty_query": 1},
        ),
        (measures.dcg_score, DCG, {"gain": "linear", "discount": "letor", "ties": "worst", "empty_query": 1}),
        (measures.err_score, ERR, {"max_grade": 5, "ties": "worst", "empty_query": 1}),
        (measures.mean_average_precision_score, AP, {"rel": 2, "ties": "worst", "empty_query": 1}),
        (measures.mean_reciprocal_rank_score, RR, {"rel": 2, "ties": "worst", "empty_query": 1}),
        (measures.precision_at_k_score, P, {"rel": 2, "ties": "worst", "empty_query": 1}),
        (measures.recall_at_k_score, R, {"rel": 2, "ties": "worst", "empty_query": 1}),
        (measures.success_at_k_score, Success, {"rel": 4, "ties": "worst", "empty_query": 1}),
        (measures.r_precision_score, RPrecision, {"rel": 2, "ties": "worst", "empty_query": 1}),
        (measures.rbp_score, RBP, {"p": 0.5, "rel": 2, "ties": "worst", "empty_query": 1}),
        (measures.mean_auc_score, AUC, {"rel": 2, "ties": "worst", "empty_query": 1}),
        (measures.pair_accuracy_score, PairAccuracy, {"ties": "worst", "empty_query": 1}),
    ]:
        rows = {"qid": qid, "sample_weight": weight}
        plain = measure(labels, scores, **rows)
        assert function(labels, scores, **rows) == plain
        if "at" in measure.parameters:
            measure, rows = measure @ 3, {**rows, "k": 3}
        expected = measure(labels, scores, qid=qid, sample_weight=weight, **options)
        assert function(labels, scores, **rows, **options) == expected != plain


# ---- your own ----------------------------------------------------------------------------------------------


class TopLabel(Measure):
    """The label of the row ranked first."""

    name = "TopLabel"

    def of_query(self, labels, scores):
        return float(labels[np.argmax(scores)])


def test_a_measure_of_ones_own():
    measure = TopLabel()
    assert measure([0, 2, 1], [1, 2, 3], qid=[1, 1, 2]) == 1.5
    np.testing.assert_array_equal(measure.deltas([0, 2, 1], [3, 2, 1]), [[0, 2, 1], [2, 0, 0], [1, 0, 0]])
    assert pickle.loads(pickle.dumps(measure)) == measure
    assert as_measure(measure) is measure
    with pytest.raises(NotImplementedError, match="must define of_query"):
        Measure()([0, 1], [0, 1])


def test_a_parameter_of_ones_own_is_a_value():
    class At(TopLabel):
        defaults: ClassVar = {"places": (1,)}

    assert repr(At(places=(1, 2))) == "TopLabel(places=[1, 2])"
    for places in ([1, 2], np.array([1, 2])):
        with pytest.raises(TypeError, match=r"the parameter places=.* of TopLabel cannot; .* tuple"):
            At(places=places)


def test_deltas_are_of_one_query():
    with pytest.raises(ValueError, match="scores has 1 rows, but labels has 2"):
        NDCG.deltas([1, 2], [1])
    with pytest.raises(ValueError, match="labels must have one dimension"):
        NDCG.deltas([[1, 2]], [1, 2])


@pytest.mark.parametrize("returned", ["x", None, np.ones(2), math.inf])
def test_a_measure_of_ones_own_returns_a_number(returned):
    class Own(Measure):
        name = "Own"

        def of_query(self, labels, scores):
            return returned

    for measure in (Own(), as_measure(lambda labels, scores: returned)):
        with pytest.raises(ValueError, match=r"returned .* for a query; expected one finite number, higher"):
            measure([0, 1], [1, 2])


@pytest.mark.parametrize("measure", ["ndcg@10@5", "ndcg @ 10 @ 5"])
def test_two_cutoffs(measure):
    with pytest.raises(ValueError, match="unknown measure"):
        as_measure(measure)


def test_a_measure_of_ones_own_cannot_write_to_rows():
    scores = np.array([3.0, 1, 2])
    with pytest.raises(ValueError, match="read-only"):
        as_measure(lambda labels, scores: scores.sort() or scores[0])([0, 1, 2], scores)
    np.testing.assert_array_equal(scores, [3.0, 1, 2])


def test_signed_mean_is_higher_where_the_model_is_better():
    labels, scores, offsets = np.array([2.0, 0.0, 1.0]), np.array([1.0, 0.5, 0.0]), np.array([0, 3])
    assert as_measure("ndcg").signed_mean(labels, scores, offsets) == as_measure("ndcg").mean(
        labels, scores, offsets
    )
    assert as_measure("rmse").signed_mean(labels, scores, offsets) == -as_measure("rmse").mean(
        labels, scores, offsets
    )
    with pytest.warns(UndefinedMetricWarning, match="NDCG is not defined on any query"):
        assert np.isnan(as_measure("ndcg").signed_mean(np.zeros(3), scores, offsets))


@pytest.mark.parametrize("mean", ["mean", "signed_mean"])
def test_means_refuse_labels_below_the_lowest(mean):
    labels, scores, offsets = np.array([-1.0, 1.0, -1.0]), np.array([1.0, 0.5, 0.0]), np.array([0, 3])
    for measure in (NDCG @ 2, AP, TopLabel()):
        with pytest.raises(ValueError, match="takes labels >= 0, but y has label -1"):
            getattr(measure, mean)(labels, scores, offsets)
    for measure in (PairAccuracy, KendallTau, RMSE):
        assert np.isfinite(getattr(measure, mean)(labels, scores, offsets))


@pytest.mark.parametrize("measure", [NDCG, RMSE])
def test_weights_that_add_up_to_more_than_a_float_holds_are_refused(measure):
    with pytest.raises(ValueError, match="sample_weight adds up to more than a float can hold"):
        measure([0, 1, 2], [1, 2, 3], qid=[0, 1, 2], sample_weight=[1e308, 1e308, 1e308])


@pytest.mark.parametrize("measure", [NDCG(gain="linear"), NDCG(gain="linear") @ 3, DCG(gain="linear")])
def test_gains_that_no_float_sums_are_refused(measure):
    labels, scores = [1e308, 1e308, 1e308, 0.0], [4.0, 3.0, 2.0, 1.0]  # NDCG would be inf / inf, DCG inf
    with pytest.raises(ValueError, match="gains too large to add up"):
        measure(labels, scores)
    assert measure(np.divide(labels, 4), scores) == pytest.approx(
        measure([1, 1, 1, 0], scores) * (2.5e307 if measure.name == "DCG" else 1.0)
    )


def test_gains_are_not_the_labels_themselves():
    labels = np.array([0.0, 1.0, 4.0])
    doubled = gains(labels, "linear")
    doubled *= 2
    assert labels.tolist() == [0.0, 1.0, 4.0]
    with pytest.raises(ValueError, match="read-only"):
        NDCG(gain=lambda y: np.clip(y, 0, 3, out=y))(labels, labels)
    assert labels.tolist() == [0.0, 1.0, 4.0]


@pytest.mark.parametrize("measure", [NDCG @ 10, as_measure("map"), as_measure(lambda labels, scores: 1.0)])
def test_rows_without_ids_are_not_taken_for_one_query_without_a_word(measure):
    labels, scores, qid = [1, 0, 0, 1], [0.1, 0.2, 0.3, 0.4], [1, 1, 2, 2]
    with pytest.warns(MissingQueryWarning, match="without query ids, so all 4 rows .* one query, pass zeros"):
        measure(labels, scores)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure(labels, scores, qid=qid)
        measure(labels, scores, qid=np.zeros(4))
        measure(pd.Series(labels, pd.Index(qid, name="qid")), scores)
        measure([1], [0.1])
        RMSE(labels, scores)
        PooledAUC(labels, scores)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("ndcg_cut_10", "ndcg.trec_eval@10"),
        ("ndcg_cut.5", "ndcg.trec_eval@5"),
        ("map_cut_10", "map@10"),
        ("P_10", "p@10"),
        ("recall_100", "recall@100"),
        ("recip_rank", "mrr"),
        ("ndcg@10-", "ndcg.xgboost(empty_query=0)@10"),
        ("map@5-", "map(empty_query=0)@5"),
        ("pre@5", "p@5"),
        ("NDCG:top=10", "ndcg.catboost@10"),
        ("NDCG:top=10;type=Exp", 'ndcg.catboost(gain="exp2")@10'),
        ("PrecisionAt:top=5", "p@5"),
        ("MRR:top=5", "mrr@5"),
        ("ndcg10", "ndcg@10"),
    ],
)
def test_names_of_other_programs_are_translated(theirs, ours):
    assert as_measure(ours)  # what is told can be used
    with pytest.raises(ValueError, match=f"what comes nearest to this one is '{re.escape(ours)}'$"):
        as_measure(theirs)


def test_several_measures_are_no_string():
    with pytest.raises(ValueError, match=r"they are a list: \['ndcg@10', 'map'\]$"):
        as_measure("ndcg@10, map")


def test_a_measure_of_ir_measures_is_told_to_be_a_string():
    ir_measures = pytest.importorskip("ir_measures")
    with pytest.raises(ValueError, match=r"one of ir_measures is a string here, as 'ndcg.trec_eval@10' is"):
        as_measure(ir_measures.nDCG @ 10)


def test_queries_are_not_told_by_sizes():
    with pytest.raises(TypeError, match=r"NDCG has no parameter 'group': .*queries are told by qid="):
        NDCG([1, 0], [1.0, 2.0], group=[2])


def test_runs_and_judgements_are_no_numbers():
    frame = pd.DataFrame({"query": ["1"], "id": ["d"], "label": [1]})
    for values in (frame, {"1": {"d": 1}}):
        with pytest.raises(
            ValueError, match=r"y_true must be numbers, .* joined by judged_rows\(run, qrels\)"
        ):
            NDCG(values, [1.0])


def test_labels_and_scores_that_are_exchanged():
    labels, scores = np.arange(12) % 3, np.linspace(0.1, 0.9, 12)
    with pytest.warns(FitWarning, match="y_true holds fractions only, and y_score grades only"):
        NDCG(scores, labels, qid=np.zeros(12))
    NDCG(labels, scores, qid=np.zeros(12))
    NDCG(scores, np.ones(12), qid=np.zeros(12))  # labels may be fractions
    NDCG(np.append(scores, 1), np.append(labels, 1), qid=np.zeros(13))


def test_ranks_are_no_scores():
    ranks = pd.Series([1.0, 2.0], name="rank")
    with pytest.warns(FitWarning, match='y_score is a column "rank", of which the lowest is the best'):
        assert NDCG([1, 0], ranks, qid=[7, 7]) < 1
    assert NDCG([1, 0], -ranks.rename("score"), qid=[7, 7]) == 1
