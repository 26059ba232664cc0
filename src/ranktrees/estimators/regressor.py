"""Boosted trees for regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from numbers import Real
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from ranktrees.estimators.boosted import BOOSTING_CONSTRAINTS, BoostedTrees, loss_of
from ranktrees.estimators.links import link_of, name_of
from ranktrees.estimators.parameters import with_parameters
from ranktrees.objectives import Objective

if TYPE_CHECKING:
    from ranktrees.measures.base import Measure
    from ranktrees.objectives.base import Link

REGRESSION_LOSSES = ("squared_error", "absolute_error", "quantile", "poisson", "gamma", "logistic")


@with_parameters
class HistGBRTRegressor(BoostedTrees, RegressorMixin, BaseEstimator):
    r"""Gradient boosted regression trees on histograms.

    Each tree takes a Newton step of the loss. Its splits maximise

    .. math:: \frac{G_l^2}{H_l + \lambda} + \frac{G_r^2}{H_r + \lambda} - \frac{G^2}{H + \lambda}

    and its leaves add :math:`-\eta\, G / (H + \lambda)`, where :math:`G` and :math:`H` are the sums of the
    first and second derivatives of the loss, :math:`\lambda` is ``l2_regularization`` and :math:`\eta` the
    ``learning_rate``. All sums are exact integers, so the model has the same bytes for any ``n_jobs``.

    Parameters
    ----------
    loss : str, Objective or callable, default="squared_error"
        The loss that is minimised: "squared_error", "absolute_error", "quantile", "poisson", "gamma" or
        "logistic", or an `Objective`. A function of (labels, scores, offsets) is a loss of your own: see the
        guide, "How to add your own". From a score :math:`s`, "poisson" and "gamma" predict :math:`e^{s}` and
        "logistic" :math:`1/(1+e^{-s})`.
    quantile : float, default=None
        The quantile that ``loss="quantile"`` predicts, between 0 and 1. Other losses do not accept it.
    balanced : bool, default=False
        Whether ``loss="logistic"`` weights the two classes so that both count the same. Other losses do not
        accept it.
    measure : str, Measure or callable, default=None
        The measure that `score` returns. If None, it is R². With ``"ndcg@10"``, it is the mean NDCG at 10
        over the queries, and so on.
    min_hessian_to_split : float, default=0.0
        The minimum sum of hessians on each side of a split. With the squared error the hessian of a row
        is its weight. If ``gradient_sampling`` draws rows, the sum is estimated from those. It
        corresponds to ``min_child_weight`` of LightGBM and XGBoost.

    Attributes
    ----------

    References
    ----------
    Friedman, *Greedy function approximation: a gradient boosting machine*, 2001.
    Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees for
    web-search ranking*, 2010; its appendix A is the exact search.
    Tyree, Weinberger, Agrawal, Paykin, *Parallel boosted regression trees for web search ranking*, WWW 2011.

    Examples
    --------
    >>> from ranktrees import HistGBRTRegressor, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> model = HistGBRTRegressor(measure="ndcg@10", random_state=0).fit(X, y, qid=qid)
    >>> model.score(X, y, qid=qid) > 0.9
    True
    """

    loss: str | Objective | Callable[..., Any] = field(default="squared_error", kw_only=False)
    quantile: float | None = None
    balanced: bool = False

    _is_ranker = False
    _parameter_constraints = {  # noqa: RUF012
        **BOOSTING_CONSTRAINTS,
        "loss": [
            StrOptions(set(REGRESSION_LOSSES)),
            Objective,
            callable,
        ],
        "quantile": [Interval(Real, 0, 1, closed="neither"), None],
        "balanced": ["boolean"],
    }

    def _objective(self, seed: int = 0) -> Objective:
        return loss_of(self, {"quantile": self.quantile, "balanced": self.balanced}, REGRESSION_LOSSES)

    def _link_by(self, objective: Objective, measure: Measure | None) -> Link | None:
        link = link_of(objective)
        return None if measure is not None and measure.by_order and name_of(link) else link
