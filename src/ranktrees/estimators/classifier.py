"""Boosted trees that tell classes apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metadata_routing import UNUSED

from ranktrees.estimators.boosted import BOOSTING_CONSTRAINTS, BoostedTrees
from ranktrees.estimators.columns import recoded
from ranktrees.estimators.fitted import SCORES_REQUEST
from ranktrees.estimators.links import link_of
from ranktrees.estimators.parameters import with_keywords, with_parameters
from ranktrees.estimators.starting import Start
from ranktrees.model.ensemble import Ensemble
from ranktrees.objectives import as_objective
from ranktrees.objectives.pointwise import Softmax

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ranktrees.evaluation.early_exit import EarlyExit, WorkSaved
    from ranktrees.measures.base import Measure
    from ranktrees.objectives.base import Link, Objective
    from ranktrees.rows.data import FitData
    from ranktrees.support.annotations import IdsLike, RowsLike


@with_parameters
class HistGBRTClassifier(BoostedTrees, ClassifierMixin, BaseEstimator):
    r"""Gradient boosted trees on histograms for classification.

    With two classes, the score :math:`s` of a row is the log odds of the second class, whose probability is
    :math:`P = 1/(1+e^{-s})`. With :math:`y` 1 for the second class and 0 for the first, the trees minimise
    the cross entropy

    .. math:: -a\, y \log P - b\, (1 - y) \log (1 - P)

    with :math:`a = b = 1`, or with weights that make both classes count the same. The trees are those of
    `HistGBRTRegressor` with ``loss="logistic"``, fitted to 0 and 1.

    With :math:`K > 2` classes, each class has a score :math:`s_k`, the probability of a class is
    :math:`P_k = e^{s_k} / \sum_j e^{s_j}`, and a tree is grown for each class in each round. The trees
    minimise :math:`-a_y \log P_y`, where :math:`y` is the class of the row. The hessian of class :math:`k` is
    :math:`\frac{K}{K-1} P_k (1 - P_k)`, Friedman's: the scores of the other classes move as well. If classes
    are grades, `OrdinalRanker` turns probabilities into a ranking.

    Parameters
    ----------
    balanced : bool, default=False
        Whether to weight the classes so that all count the same: :math:`a = W / 2W_+`,
        :math:`b = W / 2W_-` (section 6.1 of Burges' overview), and :math:`a_k = W / (K W_k)`. Probabilities
        are then those of a population in which all classes are equally frequent.
    class_weight : dict or "balanced", default=None
        Weights of the classes, ``{class: weight}``, by which the weights of their rows are multiplied, as in
        scikit-learn; those of validation rows, too. With "balanced", a class of n of the N rows has the
        weight N / (K n), which does not consider ``sample_weight``. The start is weighted as well, while
        ``balanced=True`` starts from equal probabilities.
    measure : str, Measure or callable, default=None
        The measure that `score` returns. If None, it is the accuracy. With ``"auc"``, it is the mean AUC over
        the queries, and so on. The second class has the label 1, and rows are ranked by `decision_function`.
        If there are more classes, they are the grades 0, 1, ..., in their order, and the score of a row is
        its expected grade.
    max_iter : int, default=300
        The number of trees or, with more than two classes, of rounds, which grow a tree for each class.
    min_hessian_to_split : float, default=0.0
        The minimum sum of hessians on each side of a split. The hessian of a row is w p (1 - p), where w
        is its weight and p its predicted probability. If ``gradient_sampling`` draws rows, the sum is
        estimated from those. It corresponds to ``min_child_weight`` of LightGBM and XGBoost.
    monotonic_cst : array-like of int or dict, default=None
        The monotonic constraint of each feature on the probability of the second class: 1 for an increase, -1
        for a decrease, and 0 for no constraint. A dict maps names or indices of features to constraints. Only
        for two classes.
    init : float or estimator, default=None
        What boosting starts from. If None, it is the best constant for the loss. An estimator that is not
        fitted is fitted first, to 0 and 1. A model that is fitted already, or a scikit-learn
        ``FrozenEstimator`` of one, is used as it is, by clones as well, and thus in searches and
        cross-validation. If the model is an estimator of trees of this library, or an `Ensemble`, boosting
        starts from its scores, and its trees become the first trees of ``ensemble_``. Of any other model, the
        ``decision_function`` is added to the values of the trees if there is one, otherwise the probability
        of the second class or ``predict``. With more than two classes, it is None or a number.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted. Of two, the second is the positive one.
    ensemble_ : Ensemble
        The trees, stored in arrays. Defined only if there are two classes.
    ensembles_ : tuple of Ensemble
        The trees of each class, which add up to its score. Defined only if there are more than two classes;
        `n_iter_`, `best_iteration_` and ``n_trees`` then count the trees of each.

    References
    ----------
    Burges, *From RankNet to LambdaRank to LambdaMART: an overview*, MSR-TR-2010-82, sections 6 and 6.1.
    Friedman, *Greedy function approximation: a gradient boosting machine*, 2001, section 4.6 for several
    classes.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees import HistGBRTClassifier, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> seen = np.where(y >= 2, "relevant", "not")
    >>> model = HistGBRTClassifier(balanced=True, random_state=0).fit(X, seen)
    >>> model.classes_
    array(['not', 'relevant'], dtype='<U8')
    >>> model.score(X, seen) > 0.9
    True

    Five classes:

    >>> model = HistGBRTClassifier(max_iter=50, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape, len(model.ensembles_)
    ((3000, 5), 5)
    """

    balanced: bool = False
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None

    _is_ranker = False
    _parameter_constraints = {  # noqa: RUF012
        **BOOSTING_CONSTRAINTS,
        "balanced": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    __metadata_request__decision_function = SCORES_REQUEST
    __metadata_request__predict = dict.fromkeys(SCORES_REQUEST, UNUSED) | {"n_trees": True}
    __metadata_request__predict_proba = {"n_trees": True}  # noqa: RUF012

    if TYPE_CHECKING:

        @property
        def classes_(self) -> NDArray[Any]: ...

    else:

        def __getattr__(self, name: str) -> Any:
            if name == "ensemble_" and self._has_several:
                raise AttributeError(
                    f"{type(self).__name__} of {len(self.classes_)} classes has no ensemble_, since each "
                    "class has its own; expected two classes, or ensembles_[k], whose scores are those of "
                    "class k.",
                    name=name,
                    obj=self,
                )
            return super().__getattr__(name)

    @property
    def _has_several(self) -> bool:
        """Whether each class has an ensemble."""
        return "ensembles_" in vars(self)

    @property
    def _ensembles(self) -> tuple[Ensemble, ...]:
        return self.ensembles_ if self._has_several else super()._ensembles

    def _earlier(self) -> Any:
        return self.ensembles_ if self.warm_start and self._has_several else super()._earlier()

    def _recode(self, known: dict[int, tuple[Any, ...]]) -> None:
        if not self._has_several:
            super()._recode(known)
            return
        of_classes: tuple[Ensemble, ...] = self.ensembles_  # type: ignore[has-type]
        self.ensembles_ = tuple(recoded(self, self._category_levels, known, one) for one in of_classes)

    def _objective(self, seed: int = 0) -> Objective:
        if len(self.classes_) > 2:
            return Softmax(len(self.classes_), self.balanced)
        return as_objective("logistic", balanced=self.balanced)

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.balanced and self.class_weight is not None:
            raise ValueError(
                f"balanced=True and class_weight={self.class_weight!r} both weigh the classes; expected one "
                "of them: leave the other out."
            )

    def _weighed(self, rows: FitData, by: FitData) -> FitData:
        if self.class_weight is None:
            return rows
        of_rows = self._weights_of_classes(by)[rows.labels.astype(np.intp)]
        return replace(rows, weights=of_rows if rows.weights is None else rows.weights * of_rows)

    def _weights_of_classes(self, data: FitData) -> np.ndarray:
        n_classes = len(self.classes_)
        if self.class_weight == "balanced":
            of_ranks = data.share.communicator.allgather(
                np.bincount(data.labels.astype(np.intp), minlength=n_classes)
            )
            counts = np.sum(of_ranks, axis=0)
            present = counts > 0  # after a warm start, a class may have no rows
            return np.divide(counts.sum(), present.sum() * counts, out=np.ones(n_classes), where=present)
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
            raise ValueError(
                f"class_weight={self.class_weight!r}; expected finite weights >= 0, at least one of them "
                "above 0, by the names of the classes."
            )
        return weights

    def _score_without_queries(
        self, labels: np.ndarray, scores: np.ndarray, weights: np.ndarray | None
    ) -> float:
        return float(accuracy_score(labels, _numbers_of_likeliest(scores), sample_weight=weights))

    @overload
    def decision_function(
        self,
        X: RowsLike,
        *,
        n_trees: int | None = None,
        qid: IdsLike | None = None,
        early_exit: EarlyExit | None = None,
        return_saved: Literal[False] = False,
    ) -> NDArray[np.float64]: ...

    @overload
    def decision_function(
        self,
        X: RowsLike,
        *,
        n_trees: int | None = None,
        qid: IdsLike | None = None,
        early_exit: EarlyExit | None = None,
        return_saved: Literal[True],
    ) -> tuple[NDArray[np.float64], WorkSaved]: ...

    def decision_function(
        self,
        X: RowsLike,
        *,
        n_trees: int | None = None,
        qid: IdsLike | None = None,
        early_exit: EarlyExit | None = None,
        return_saved: bool = False,
    ) -> Any:
        """Return the log odds of the second class or, if there are more than two, a score for each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        n_trees, qid, early_exit, return_saved
            As for ``predict`` of `HistGBRTRegressor`.

        Returns
        -------
        scores : ndarray of float64, shape (n_rows,) or (n_rows, n_classes)
            Of two classes: rows with higher scores rank first, and where a score is above 0, the second class
            is the likelier one. Of more classes: the class with the highest score is the likeliest.
        saved : WorkSaved
            Only if ``return_saved`` is True.
        """
        scores: Any = super().predict  # its overloads do not take a bool
        return scores(X, n_trees=n_trees, qid=qid, early_exit=early_exit, return_saved=return_saved)

    @with_keywords
    def predict_proba(self, X: RowsLike, *, n_trees: int | None = None) -> NDArray[np.float64]:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        n_trees : int, default=None
            If given, only the first ``n_trees`` trees are used. If None, all trees are used.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_classes)
        """
        return self._probabilities(self.decision_function(X, n_trees=n_trees))

    @with_keywords
    def predict(  # type: ignore[override]  # no query ids, and so no early exits
        self, X: RowsLike, *, n_trees: int | None = None
    ) -> NDArray[Any]:
        """Return the likeliest class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        n_trees : int, default=None
            If given, only the first ``n_trees`` trees are used. If None, all trees are used.

        Returns
        -------
        ndarray of shape (n_rows,)
            Entries of ``classes_``.
        """
        return self._likeliest(self.decision_function(X, n_trees=n_trees))

    def staged_decision_function(self, X: RowsLike) -> Iterator[NDArray[np.float64]]:
        """Yield what `decision_function` returns after each tree, or round of trees.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)

        Yields
        ------
        scores : ndarray of float64, shape (n_rows,) or (n_rows, n_classes)
        """
        return super().staged_predict(X)

    def staged_predict_proba(self, X: RowsLike) -> Iterator[NDArray[np.float64]]:
        """Yield the probabilities of the classes after each tree, or round of trees.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)

        Yields
        ------
        probabilities : ndarray of float64, shape (n_rows, n_classes)
        """
        return map(self._probabilities, self.staged_decision_function(X))

    def staged_predict(self, X: RowsLike) -> Iterator[NDArray[Any]]:
        """Yield the likeliest class of each row after each tree, or round of trees.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)

        Yields
        ------
        classes : ndarray of shape (n_rows,)
        """
        return map(self._likeliest, self.staged_decision_function(X))

    def _scores(self, X: RowsLike, rows: RowsLike, n_trees: int | None = None) -> np.ndarray:
        if not self._has_several:
            return super()._scores(X, rows, n_trees)
        n_threads = self._threads_to_score(rows)
        ensembles = self.ensembles_ if n_trees is None else [one.first(n_trees) for one in self.ensembles_]
        return np.stack([one.predict(rows, n_jobs=n_threads) for one in ensembles], axis=1)

    def _stages(self, X: RowsLike, rows: RowsLike, n_threads: int) -> Iterator[np.ndarray]:
        if not self._has_several:
            return super()._stages(X, rows, n_threads)
        of_classes = (one.staged_predict(rows, n_jobs=n_threads) for one in self.ensembles_)
        return (np.stack(scores, axis=1) for scores in zip(*of_classes, strict=True))

    def _start_of_before(self) -> Start:
        if not self._has_several:
            return super()._start_of_before()
        bases = np.array([one.base for one in self.ensembles_])
        return Start(Ensemble._in_turn(self.ensembles_), bases=bases)

    def _link_by(self, objective: Objective, measure: Measure | None) -> Link | None:
        if measure is not None and isinstance(objective, Softmax):
            return partial(_expected_classes, objective)
        return None if measure is None or measure.by_order else link_of(objective)

    def _value(self, measure: Measure | None, data: FitData, scores: np.ndarray, mean: str) -> float:
        link = self._link_by(self._objective(), measure)
        return super()._value(measure, data, scores if link is None else link(scores.T), mean)

    def _finish(self, scores: np.ndarray) -> np.ndarray:
        return scores

    def _methods(self) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
        return {
            "predict": self._likeliest,
            "predict_proba": self._probabilities,
            "decision_function": self._finish,
        }

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        if scores.ndim == 2:
            return np.ascontiguousarray(self._link(scores.T).T)
        second = self._link(scores)
        return np.column_stack([1.0 - second, second])

    def _likeliest(self, scores: np.ndarray) -> np.ndarray:
        return self.classes_[_numbers_of_likeliest(scores)]


def _numbers_of_likeliest(scores: np.ndarray) -> np.ndarray:
    """The number of the class of the highest score; of two classes, by the log odds of the second."""
    return scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)


def _expected_classes(objective: Objective, scores: np.ndarray) -> np.ndarray:
    """The mean of the numbers of the classes, weighted by their probabilities."""
    expected = np.zeros(scores.shape[1])
    for number, probabilities in enumerate(objective.inverse_link(scores)):
        expected += number * probabilities  # in this order, whatever the machine
    return expected
