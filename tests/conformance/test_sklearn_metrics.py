"""What the tests of scikit-learn's ranking metrics take for granted, with these metrics as judges."""

import numpy as np
import pytest
from sklearn import metrics

from ranktrees.measures import AP, AUC, DCG, NDCG, RR, PairAccuracy, PooledAUC, Success

pytestmark = pytest.mark.filterwarnings("ignore::ranktrees.MissingQueryWarning")

SKLEARN = DCG(gain="linear")


@pytest.fixture(params=range(4))
def queries(request):
    """Labels and scores of some queries of as many rows, as scikit-learn takes them: a line for each."""
    rng = np.random.default_rng(request.param)
    labels = rng.integers(0, 4, (20, 7)).astype(float)
    labels[:, 0] = 1.0 + request.param
    return labels, rng.permuted(np.tile(np.arange(7.0), (20, 1)), axis=1)


def flat(measure, labels, scores):
    return measure(labels.ravel(), scores.ravel(), qid=np.repeat(np.arange(len(labels)), labels.shape[1]))


@pytest.mark.parametrize("k", [1, 3, 7, 50, None])
@pytest.mark.parametrize("tied", [False, True])
def test_dcg_and_ndcg_are_those_of_scikit_learn(k, tied, queries):
    labels, scores = queries
    scores = np.floor(scores / 3) if tied else scores
    for ours, theirs in ((SKLEARN, metrics.dcg_score), (NDCG.sklearn, metrics.ndcg_score)):
        ours = ours if k is None else ours @ k
        assert flat(ours, labels, scores) == pytest.approx(theirs(labels, scores, k=k))


def test_the_best_order_has_1_and_the_worst_has_less(queries):
    labels, _ = queries
    assert flat(NDCG, labels, labels) == pytest.approx(1.0, abs=1e-15)
    assert flat(NDCG, labels, -labels) < 1.0


def test_a_cutoff_behind_the_last_row_is_none(queries):
    assert flat(NDCG @ 7, *queries) == flat(NDCG @ 8, *queries) == flat(NDCG, *queries)


@pytest.mark.parametrize("measure", [NDCG @ 3, AP, RR, AUC, PairAccuracy, Success @ 2, PooledAUC], ids=repr)
def test_only_the_order_of_scores_counts(measure, queries):
    labels, scores = queries
    for change in (lambda s: 3 * s - 7, np.exp, lambda s: s**3, lambda s: s / 1e9):
        assert flat(measure, labels, change(scores)) == pytest.approx(
            flat(measure, labels, scores), abs=1e-15
        )


def test_ties_count_as_the_mean_over_all_their_orders():
    labels, scores = np.array([3.0, 0, 2, 1, 0]), np.array([1.0, 1, 1, 0, 0])
    rng = np.random.default_rng(0)
    drawn = [NDCG(labels, scores + 1e-9 * rng.random(5)) for _ in range(4000)]
    assert NDCG(labels, scores) == pytest.approx(np.mean(drawn), abs=0.01)


def test_average_precision_without_ties_is_that_of_labels_in_scikit_learn(queries):
    relevant, scores = (queries[0] >= 1).astype(int), queries[1]
    expected = metrics.label_ranking_average_precision_score(relevant, scores)
    assert flat(AP, relevant, scores) == pytest.approx(expected)
    assert flat(AP, relevant, scores) == pytest.approx(
        np.mean([metrics.average_precision_score(*query) for query in zip(relevant, scores, strict=True)])
    )


def test_pairs_in_the_wrong_order_are_the_ranking_loss_of_scikit_learn(queries):
    relevant, scores = (queries[0] >= 2).astype(int), np.floor(queries[1] / 2)
    some = (relevant.sum(axis=1) > 0) & (relevant.sum(axis=1) < 7)
    loss = metrics.label_ranking_loss(relevant[some], scores[some])
    tied = np.mean([tied_pairs(*query) for query in zip(relevant[some], scores[some], strict=True)])
    assert 1.0 - flat(PairAccuracy, relevant[some], scores[some]) == pytest.approx(loss - tied / 2)


def tied_pairs(labels, scores):
    """The share of the pairs that have equal scores, which count as wrong in scikit-learn, and half here."""
    return np.mean(scores[labels == 1][:, None] == scores[labels == 0])


def test_areas_are_those_of_scikit_learn(queries):
    relevant, scores = (queries[0] >= 2).astype(int), np.floor(queries[1] / 2)
    expected = [
        metrics.roc_auc_score(*query)
        for query in zip(relevant, scores, strict=True)
        if 0 < query[0].sum() < 7
    ]
    assert flat(AUC, relevant, scores) == pytest.approx(np.mean(expected))
    assert flat(PooledAUC, relevant, scores) == pytest.approx(
        metrics.roc_auc_score(relevant.ravel(), scores.ravel())
    )


@pytest.mark.parametrize("k", [1, 2, 5])
def test_one_relevant_row_among_the_first_is_top_k_accuracy(k):
    rng = np.random.default_rng(k)
    classes, scores = rng.integers(0, 6, 80), rng.permuted(np.tile(np.arange(6.0), (80, 1)), axis=1)
    expected = metrics.top_k_accuracy_score(classes, scores, k=k)
    assert flat(Success @ k, np.eye(6)[classes], scores) == pytest.approx(expected)


def test_where_there_is_one_relevant_row_its_rank_is_the_coverage():
    rng = np.random.default_rng(0)
    relevant = np.eye(6)[rng.integers(0, 6, 80)]
    scores = rng.permuted(np.tile(np.arange(6.0), (80, 1)), axis=1)
    ranks = [metrics.coverage_error([y], [s]) for y, s in zip(relevant, scores, strict=True)]
    assert flat(RR, relevant, scores) == pytest.approx(np.mean(1 / np.array(ranks)))


def test_negative_grades_have_no_gain():
    with pytest.raises(ValueError, match="takes labels >= 0"):
        NDCG([-1, 2], [1, 2])
    with pytest.raises(ValueError, match="negative"):
        metrics.ndcg_score([[-1, 2]], [[1, 2]])


def test_constant_scores_are_worth_what_chance_is():
    relevant = np.array([0, 1, 1, 0, 1])
    assert AUC(relevant, np.zeros(5)) == 0.5 == metrics.roc_auc_score(relevant, np.zeros(5))
    assert PairAccuracy(relevant, np.zeros(5)) == 0.5
