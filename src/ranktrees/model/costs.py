r"""What features cost, and their prices while trees grow.

A feature that no tree has used so far has a price. The best split of a leaf is the one that maximises

.. math:: \Delta - s\, \lambda\, c_f\, [f \text{ is new}]
          \qquad\text{with}\qquad
          \Delta = \frac{G_l^2}{H_l + \lambda_2} + \frac{G_r^2}{H_r + \lambda_2}
          - \frac{G^2}{H + \lambda_2}

where :math:`G` and :math:`H` are sums of gradients and hessians, :math:`\lambda_2` is ``l2_regularization``,
:math:`\lambda` is ``cost_weight`` and :math:`c_f` the cost of the feature. There are two rules:

rank    :math:`s = 1`, and only splits of :math:`\Delta` above 0 compete: a price decides which of them is
        made, never whether one is.
worth   :math:`s = \sum_i h_i` over all rows of the tree, and what is maximised must be above 0: a split must
        be worth its price.

In either case :math:`\Delta` must be above ``min_gain_to_split``. With the squared error, it is the decrease
of the sum of squared errors by the split, and :math:`\Delta / \sum_i h_i` that of the mean squared error of
the tree, in the unit of scikit-learn's ``min_impurity_decrease``. For other losses these are the same
decreases with the Newton steps :math:`-g_i / h_i` as targets and the hessians as weights.

A feature is new until a split, in an earlier tree or in this one, uses it or another feature of its group:
what a request has paid for once is available.

"rank" is equation 6.1 of Mohan, *An empirical analysis on point-wise machine learning techniques using
regression trees for web-search ranking*, 2010: of the squared errors of both children, not divided by the
number of rows, plus :math:`\lambda c_f`, the least is best. There a feature becomes free for later trees;
that it does so within its tree is our own rule, and so is "worth". For costs with boosting see also Xu,
Weinberger, Chapelle, *The greedy miser: learning under test-time budgets*, ICML 2012.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ranktrees.rows.features import by_feature, index_of, refuse_repeated
from ranktrees.support.numeric import is_real

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ranktrees.model.arrays import ModelArrays

__all__ = ["FeatureCosts", "Prices"]


@dataclass(frozen=True, eq=False)
class FeatureCosts:
    """The cost of each feature, and the groups of features that are paid for together.

    Attributes
    ----------
    costs : ndarray of float64, shape (n_features,)
        At least 0, and the same within a group.
    groups : ndarray of int64, shape (n_features,)
        The lowest feature of the group that each feature belongs to. A feature without a group is its own.
    """

    costs: np.ndarray
    groups: np.ndarray

    @classmethod
    def of(
        cls,
        feature_costs: ArrayLike | Mapping[Any, float],
        feature_groups: Sequence[Any] | None,
        n_features: int,
        names: Sequence[str] = (),
    ) -> Self:
        """Check the costs and groups that a user passes.

        Parameters
        ----------
        feature_costs : array-like of shape (n_features,), or mapping of names or indices to costs
            A mapping may leave out features that cost nothing.
        feature_groups : sequence of sets of names or indices, or None
            A feature that is in no set is a group of its own.
        n_features : int
        names : sequence of str

        Raises
        ------
        ValueError, TypeError
            If a cost is not a finite number of at least 0; if there are too few or too many costs; if a
            feature is unknown or named twice; or if the features of a group differ in cost.
        """
        called = names or range(n_features)
        given = by_feature(feature_costs, names, n_features, "feature_costs")
        costs = np.zeros(n_features)
        if isinstance(given, Mapping):
            for feature, cost in given.items():
                costs[feature] = _cost(cost, called[feature])
        else:
            given = np.asarray(given)
            if given.shape != (n_features,):
                raise ValueError(
                    f"feature_costs has shape {given.shape}, but X has {n_features} features; pass one cost "
                    "for each, or a dict from names or indices to costs, which may omit features that cost "
                    "nothing."
                )
            costs[:] = [_cost(*each) for each in zip(given.tolist(), called, strict=True)]
        groups = np.arange(n_features)
        entries = []
        for members in () if feature_groups is None else feature_groups:
            if isinstance(members, str) or not hasattr(members, "__iter__"):
                raise TypeError(
                    f"feature_groups has the entry {members!r}; expected sets of features that become free "
                    "together, such as [[0, 1], [5, 7, 8]] or [['bm25', 'bm25_title']]."
                )
            features = [(index_of(key, names, n_features, "feature_groups"), key) for key in members]
            entries += features
            refuse_repeated(entries, "feature_groups")
            for feature, key in features:
                if costs[feature] != costs[features[0][0]]:
                    raise ValueError(
                        f"feature_groups puts {features[0][1]!r} and {key!r} together, but feature_costs "
                        f"are {costs[features[0][0]]:g} and {costs[feature]:g}; a group is paid for once: "
                        "give its features the same cost."
                    )
            groups[[feature for feature, _ in features]] = min(features, default=(0,))[0]
        return cls(costs, groups)

    def known(self, used: np.ndarray) -> np.ndarray:
        """Return which features are available once some are used: bool[n_features], from bool[n_features]."""
        return np.isin(self.groups, self.groups[used])

    def after_trees(self, ensemble: ModelArrays, tree_cost: float = 0.0) -> np.ndarray:
        """Return the cost of the first 0, 1, ... trees: float64[n_trees + 1].

        It is the cost of their features, each group once, and ``tree_cost`` for each tree.
        """
        if not is_real(tree_cost) or not 0 <= tree_cost < np.inf:
            raise ValueError(f"tree_cost={tree_cost!r}; expected a finite number of at least 0.")
        splits = ensemble.nodes["feature"] >= 0
        tree = np.repeat(np.arange(ensemble.n_trees), np.diff(ensemble.tree_offsets))[splits]
        groups, first = np.unique(self.groups[ensemble.nodes["feature"][splits]], return_index=True)
        costs = np.zeros(ensemble.n_trees + 1)
        np.add.at(costs, 1 + tree[first], self.costs[groups])
        return np.cumsum(costs) + tree_cost * np.arange(len(costs))


def _cost(cost: Any, feature: object) -> float:
    if not isinstance(cost, Real) or not 0 <= cost < np.inf:  # type: ignore[operator]
        raise ValueError(
            f"feature_costs has {cost!r} for feature {feature!r}; expected a finite number of at least 0."
        )
    return float(cost)


def used_features(nodes: np.ndarray, n_features: int) -> np.ndarray:
    """Return which features are used by the splits among some NODE records: bool[n_features]."""
    used = np.zeros(n_features, bool)
    used[nodes["feature"][nodes["feature"] >= 0]] = True
    return used


# ---- while trees grow --------------------------------------------------------------------------------------


class Prices:
    """What is subtracted from the gain of a split if its feature is new.

    ::

        begin    prices = cost_weight * cost, for features that no tree has used so far
                          times the sum of hessians             (worth)
                          less the highest price of a feature   (rank)
        pay      a split is made: its feature, and others of its group, are free from now on

    To subtract the same from all prices does not change which split is best. As no price is then above 0, a
    split that gains anything still does so after its price is paid.

    Parameters
    ----------
    costs : FeatureCosts
    weight : float
        Lambda.
    used : ndarray of bool, shape (n_features,)
        Features that are used in any case.
    rule : {"rank", "worth"}, default="worth"

    Attributes
    ----------
    of_features : ndarray of float64, shape (n_features,)
        The prices that the kernels read, on the scale of their gains.
    """

    all_free: bool

    def __init__(self, costs: FeatureCosts, weight: float, used: np.ndarray, rule: str = "worth") -> None:
        with np.errstate(over="ignore"):
            self.rates = weight * costs.costs
        if not np.isfinite(self.rates).all():
            raise ValueError(
                f"cost_weight={weight:g} times the largest of feature_costs, {costs.costs.max():g}, is not a "
                "finite number; make one of them smaller."
            )
        self.costs, self.only_orders, self.scale = costs, rule == "rank", 0.0
        self.of_features = np.zeros(len(self.rates))
        self.use(used)

    @classmethod
    def none(cls, n_features: int) -> Self:
        """Return prices by which all features are free."""
        return cls(FeatureCosts(np.zeros(n_features), np.arange(n_features)), 0.0, np.zeros(n_features, bool))

    def copy(self) -> Prices:
        """Return a copy that changes independently."""
        twin = copy.copy(self)
        twin.rates, twin.of_features = self.rates.copy(), self.of_features.copy()
        return twin

    def set_to(self, others: Prices) -> None:
        """Take over the prices of another object, for the same features."""
        self.rates[:], self.of_features[:] = others.rates, others.of_features
        self.all_free = others.all_free

    def use(self, used: np.ndarray) -> None:
        """Make the features that are used, bool[n_features], and their groups free."""
        self.rates[self.costs.known(used)] = 0.0
        self.all_free = not self.rates.any()
        self._scale_to(self.scale)

    def begin(self, hessian: float) -> None:
        """Begin a new tree, of rows whose hessians have this sum."""
        self._scale_to(1.0 if self.only_orders else hessian)

    def _scale_to(self, scale: float) -> None:
        self.scale = scale
        with np.errstate(over="ignore"):
            np.multiply(self.rates, scale, out=self.of_features)
        if self.only_orders:
            self.of_features -= self.of_features.max(initial=0.0)

    def pay(self, leaves: np.ndarray, parents: np.ndarray) -> bool:
        """Pay for the features of leaves that are about to be split. Return whether any become free by it.

        So far the price of each split was subtracted from its gain. From now on it is the plain gain.
        """
        if self.all_free:
            return False
        features = leaves["split"]["feature"][parents]
        leaves["split"]["gain"][parents] += self.of_features[features]
        if not self.rates[features].any():
            return False
        used = np.zeros(len(self.rates), bool)
        used[features] = True
        self.use(used)
        return True
