"""Measures as functions, in the manner of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranktrees.measures.agreement import PairAccuracy
from ranktrees.measures.binary import AP, AUC, RBP, RR, P, R, RPrecision, Success
from ranktrees.measures.discounted import DCG, ERR, NDCG

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ranktrees.measures.checks import Ties
    from ranktrees.support.annotations import IdsLike, Worth


def ndcg_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    k: int | None = None,
    gain: Worth = "exp2",
    discount: Worth = "log2",
    ties: Ties = "average",
    empty_query: float | str = "skip",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean over queries of the normalised discounted cumulative gain (NDCG).

    NDCG @ k = DCG @ k / max over all orders of DCG @ k; see `DCG`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels, finite and >= 0.
    y_score : array-like of shape (n,)
        Scores. Rows with higher scores rank first. A row with score -inf was not retrieved: it is one of the
        rows of its query, but has no rank.
    qid : array-like of shape (n,), default=None
        Query ids of any hashable type, in any order. If None, they are taken from the index level ``qid`` of
        a pandas ``y_true`` if there is one. Otherwise all rows are one query, with a
        `MissingQueryWarning`.
    k : int, default=None
        The cutoff: only ranks 1, ..., k count. If None, all ranks count.
    gain : {"exp2", "linear"}, sequence or callable, default="exp2"
        How much a label is worth; see `gains`. The gain of scikit-learn's `ndcg_score` is "linear".
    discount : {"log2", "letor"}, sequence or callable, default="log2"
        How much a rank is worth; see `discounts`.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. "average" is the exact expectation over all their orders.
    empty_query : {"skip", "skip_equal"} or float, default="skip"
        The value of a query on which the measure says nothing about the ranking, such as one without a
        positive gain. If "skip", such queries are left out; "skip_equal" also leaves out those whose labels
        are all equal.
    sample_weight : array-like of shape (n,), default=None
        Weights >= 0 of the rows. The weight of a query is the mean of the weights of its rows.

    Returns
    -------
    float
        The mean, in [0, 1]. It is NaN, with a warning, if no query counts.

    Raises
    ------
    ValueError
        If labels, scores, ids or weights cannot be read.

    References
    ----------
    Järvelin and Kekäläinen, *Cumulated Gain-based Evaluation of IR Techniques*, TOIS 2002.

    Examples
    --------
    >>> from ranktrees.measures import ndcg_score
    >>> ndcg_score([0, 2, 1, 1, 0], [0.3, 0.9, 0.1, 0.2, 0.7], qid=["a", "a", "a", "b", "b"], k=2)
    0.728...
    """
    measure = NDCG(at=k, gain=gain, discount=discount, ties=ties, empty_query=empty_query)
    return measure(y_true, y_score, qid=qid, sample_weight=sample_weight)


def dcg_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    k: int | None = None,
    gain: Worth = "exp2",
    discount: Worth = "log2",
    ties: Ties = "average",
    empty_query: float | str = 0,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean over queries of the discounted cumulative gain (DCG).

    DCG @ k = sum over ranks r <= k of gain(label at rank r) * discount(r).

    Parameters
    ----------
    y_true, y_score, qid, k, gain, discount, ties, empty_query, sample_weight
        As in `ndcg_score`.

    Returns
    -------
    float
        The mean.

    References
    ----------
    Järvelin and Kekäläinen, *Cumulated Gain-based Evaluation of IR Techniques*, TOIS 2002.

    Examples
    --------
    >>> from ranktrees.measures import dcg_score
    >>> dcg_score([2, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])
    3.5
    """
    measure = DCG(at=k, gain=gain, discount=discount, ties=ties, empty_query=empty_query)
    return measure(y_true, y_score, qid=qid, sample_weight=sample_weight)


def err_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    k: int | None = None,
    max_grade: float = 4,
    ties: Ties = "average",
    empty_query: float | str = 0,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean over queries of the expected reciprocal rank; see `ERR`.

    Parameters
    ----------
    y_true, y_score, qid, k, ties, empty_query, sample_weight
        As in `ndcg_score`.
    max_grade : float, default=4
        The highest possible label.

    Returns
    -------
    float
        The mean, in [0, 1].

    References
    ----------
    Chapelle, Metzler, Zhang and Grinspan, *Expected Reciprocal Rank for Graded Relevance*, CIKM 2009.

    Examples
    --------
    >>> from ranktrees.measures import err_score
    >>> err_score([0, 4], [0.2, 0.1], qid=[7, 7])  # 15/16 at rank 2
    0.46875
    """
    measure = ERR(at=k, max_grade=max_grade, ties=ties, empty_query=empty_query)
    return measure(y_true, y_score, qid=qid, sample_weight=sample_weight)


def mean_average_precision_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    k: int | None = None,
    rel: float = 1,
    ties: Ties = "average",
    empty_query: float | str = "skip",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean over queries of the average precision (MAP); see `AP`.

    Parameters
    ----------
    y_true, y_score, qid, k, ties, empty_query, sample_weight
        As in `ndcg_score`.
    rel : float, default=1
        The lowest label that is relevant.

    Returns
    -------
    float
        The mean, in [0, 1]. It is NaN, with a warning, if no query counts.

    References
    ----------
    Buckley and Voorhees, *Evaluating Evaluation Measure Stability*, SIGIR 2000.

    Examples
    --------
    >>> from ranktrees.measures import mean_average_precision_score
    >>> mean_average_precision_score([1, 0, 1, 1], [0.3, 0.2, 0.1, 0.5], qid=["a", "a", "a", "b"])
    0.916...
    """
    return AP(at=k, rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def mean_reciprocal_rank_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    k: int | None = None,
    rel: float = 1,
    ties: Ties = "average",
    empty_query: float | str = 0,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean over queries of the reciprocal rank of the first relevant row (MRR); see `RR`.

    Parameters
    ----------
    y_true, y_score, qid, k, ties, empty_query, sample_weight
        As in `ndcg_score`.
    rel : float, default=1
        The lowest label that is relevant.

    Returns
    -------
    float
        The mean, in [0, 1].

    Examples
    --------
    >>> from ranktrees.measures import mean_reciprocal_rank_score
    >>> mean_reciprocal_rank_score([0, 1, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])
    0.5
    """
    return RR(at=k, rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def precision_at_k_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    k: int | None = None,
    rel: float = 1,
    ties: Ties = "average",
    empty_query: float | str = 0,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean over queries of the share of relevant rows among the first k; see `P`.

    Parameters
    ----------
    y_true, y_score, qid, k, ties, empty_query, sample_weight
        As in `ndcg_score`.
    rel : float, default=1
        The lowest label that is relevant.

    Returns
    -------
    float
        The mean, in [0, 1].

    Examples
    --------
    >>> from ranktrees.measures import precision_at_k_score
    >>> precision_at_k_score([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7], k=2)
    0.5
    """
    return P(at=k, rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def recall_at_k_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    k: int | None = None,
    rel: float = 1,
    ties: Ties = "average",
    empty_query: float | str = "skip",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean over queries of the share of the relevant rows that are among the first k; see `R`.

    Parameters
    ----------
    y_true, y_score, qid, k, ties, empty_query, sample_weight
        As in `ndcg_score`.
    rel : float, default=1
        The lowest label that is relevant.

    Returns
    -------
    float
        The mean, in [0, 1]. It is NaN, with a warning, if no query counts.

    Examples
    --------
    >>> from ranktrees.measures import recall_at_k_score
    >>> recall_at_k_score([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7], k=1)
    0.5
    """
    return R(at=k, rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def success_at_k_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    k: int | None = None,
    rel: float = 1,
    ties: Ties = "average",
    empty_query: float | str = 0,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the share of the queries with a relevant row among the first k; see `Success`.

    Parameters
    ----------
    y_true, y_score, qid, k, ties, empty_query, sample_weight
        As in `ndcg_score`.
    rel : float, default=1
        The lowest label that is relevant.

    Returns
    -------
    float
        The mean, in [0, 1].

    Examples
    --------
    >>> from ranktrees.measures import success_at_k_score
    >>> success_at_k_score([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7], k=2)
    1.0
    """
    return Success(at=k, rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def r_precision_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    rel: float = 1,
    ties: Ties = "average",
    empty_query: float | str = "skip",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean over queries of the R-precision; see `RPrecision`.

    Parameters
    ----------
    y_true, y_score, qid, ties, empty_query, sample_weight
        As in `ndcg_score`.
    rel : float, default=1
        The lowest label that is relevant.

    Returns
    -------
    float
        The mean, in [0, 1].

    Examples
    --------
    >>> from ranktrees.measures import r_precision_score
    >>> r_precision_score([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])
    0.5
    """
    return RPrecision(rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def rbp_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    k: int | None = None,
    p: float = 0.8,
    rel: float = 1,
    ties: Ties = "average",
    empty_query: float | str = 0,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean over queries of the rank-biased precision (RBP); see `RBP`.

    Parameters
    ----------
    y_true, y_score, qid, k, ties, empty_query, sample_weight
        As in `ndcg_score`.
    p : float, default=0.8
        The probability that a user who has read a row reads the next one.
    rel : float, default=1
        The lowest label that is relevant.

    Returns
    -------
    float
        The mean, in [0, 1].

    Examples
    --------
    >>> from ranktrees.measures import rbp_score
    >>> rbp_score([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7], p=0.5)
    0.625
    """
    return RBP(at=k, p=p, rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def mean_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    rel: float = 1,
    ties: Ties = "average",
    empty_query: float | str = "skip",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean over queries of the area under the ROC curve; see `AUC`.

    Parameters
    ----------
    y_true, y_score, qid, ties, empty_query, sample_weight
        As in `ndcg_score`.
    rel : float, default=1
        The lowest label that is relevant.

    Returns
    -------
    float
        The mean, in [0, 1]. It is NaN, with a warning, if no query counts.

    Examples
    --------
    >>> from ranktrees.measures import mean_auc_score
    >>> mean_auc_score([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])
    0.5
    """
    return AUC(rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def pair_accuracy_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    ties: Ties = "average",
    empty_query: float | str = "skip",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean over queries of the share of pairs that are in the right order; see `PairAccuracy`.

    A pair is two rows of a query with different labels.

    Parameters
    ----------
    y_true, y_score, qid, ties, empty_query, sample_weight
        As in `ndcg_score`.

    Returns
    -------
    float
        The mean, in [0, 1]. It is NaN, with a warning, if no query counts.

    Examples
    --------
    >>> from ranktrees.measures import pair_accuracy_score
    >>> pair_accuracy_score([2, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])
    0.666...
    """
    return PairAccuracy(ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )
