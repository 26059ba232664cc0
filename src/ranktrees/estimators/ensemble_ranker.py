"""An ensemble as an estimator, and the conversion of any tree model to an estimator of trees."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags, TargetTags, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from ranktrees.estimators.columns import recoded
from ranktrees.estimators.fitted import FittedTrees, require_trees_only
from ranktrees.estimators.fitting import TreeEnsembleEstimator
from ranktrees.estimators.links import LINKS
from ranktrees.estimators.parameters import with_parameters
from ranktrees.evaluation.own_models import own_model
from ranktrees.measures import Measure
from ranktrees.measures.named import AnyMeasure
from ranktrees.model.ensemble import (
    MAX_IN_SETS,
    Ensemble,
    checked_renames,
    plain_level,
    require_distinct,
)
from ranktrees.rows import (
    check_columns,
    joined_levels,
)
from ranktrees.rows.features import index_of, refuse_repeated
from ranktrees.rows.values import is_missing
from ranktrees.support.listed import are_in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ranktrees.objectives.base import Link
    from ranktrees.support.annotations import IdsLike, RowsLike


@with_parameters
class EnsembleRanker(FittedTrees, RegressorMixin, BaseEstimator):
    r"""An ensemble as an estimator: existing trees that predict, rank and score.

    If the ensemble has a ``link``, `predict` returns counts or the probability of the second class, like the
    estimator whose trees these are, while ``ensemble_.predict`` returns scores. Without a link, both are the
    same. Rows are ranked by scores.

    It is fitted from the start. `fit` learns nothing, and clones have the same trees. So in a search or in
    cross-validation all folds get the same model. It can also be the ``init`` from which boosting starts.

    Parameters
    ----------
    ensemble : Ensemble
        The trees: those of another estimator, read by `Ensemble.load`, or several joined by
        `Ensemble.joined`.
    feature_names : array-like of str, default=None
        The names of the columns, in the order in which the trees know them. They may differ from the names
        that the ensemble has, but no column may have the name of another one. If None, the names of the
        ensemble are used. If it has no names either, scikit-learn warns about rows that have some.
    category_levels : dict of int or str to sequence, default=None
        The levels of the category columns of a data frame, by the number of the column, or by its name if the
        ensemble or ``feature_names`` supply names. They are listed in the order of the codes 0, 1, ... on
        which the trees split. They are needed if the ensemble does not have them: it stores strings, booleans
        and numbers, but not dates or intervals. If None, the levels of the ensemble are used. An array may
        have the levels or their codes in such a column, but numbers only if they cannot be both.
    measure : str, Measure, callable or None, default="ndcg@10"
        The measure that `score` returns. If None, it is R².
    n_jobs : int or None, default=None
        The number of threads. None and -1 use all processors. Scores do not depend on it.

    Attributes
    ----------
    ensemble_ : Ensemble
        The trees.
    feature_importances_ : ndarray of float64, shape (n_features,)
        The share of each feature in the total gain of all splits.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        The names of the columns. Defined only if the ensemble has names or ``feature_names`` are given.

    See Also
    --------
    EnsembleRanker.average : The mean of several fitted models.

    Examples
    --------
    >>> from ranktrees import EnsembleRanker, LambdaMARTRanker, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> fitted = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid)
    >>> ranker = EnsembleRanker(fitted.ensemble_)
    >>> bool((ranker.predict(X) == fitted.predict(X)).all())
    True
    >>> ranker.score(X, y, qid=qid) == fitted.score(X, y, qid=qid)
    True

    A model of counts predicts counts, and by its trees alone their logarithms:

    >>> from ranktrees import HistGBRTRegressor
    >>> counts = HistGBRTRegressor("poisson", max_iter=20, random_state=0).fit(X, y)
    >>> ranker = EnsembleRanker(counts.ensemble_)
    >>> bool((ranker.predict(X) == counts.predict(X)).all())
    True
    >>> bool(np.allclose(ranker.ensemble_.predict(X), np.log(counts.predict(X))))
    True

    The ensemble of a model that was fitted to a data frame knows its columns:

    >>> import pandas as pd
    >>> frame = pd.DataFrame(X[:, :2], columns=["clicks", "age"])
    >>> fitted = LambdaMARTRanker(max_iter=20, random_state=0).fit(frame, y, qid=qid)
    >>> EnsembleRanker(fitted.ensemble_).feature_names_in_
    array(['clicks', 'age'], dtype=object)
    """

    ensemble: Ensemble = field(kw_only=False)
    feature_names: ArrayLike | None = None
    category_levels: Mapping[Any, Any] | None = None
    measure: AnyMeasure | None = "ndcg@10"
    n_jobs: int | None = None

    __metadata_request__fit = {"qid": True, "groups": True}  # noqa: RUF012
    _is_ranker = False
    _qid_given = True  # a measure needs them
    _takes_codes = True  # its levels are in the order of the codes that the trees know
    _parameter_constraints = {  # noqa: RUF012
        "ensemble": [Ensemble],
        "feature_names": ["array-like", None],
        "category_levels": [Mapping, None],
        "measure": [str, Measure, callable, None],
        "n_jobs": [Integral, None],
    }

    @classmethod
    def average(cls, models: Any, weights: ArrayLike | None = None, **parameters: Any) -> Self:
        r"""Return the mean of several fitted models, as one ensemble.

        .. math:: s(x) = \sum_i \frac{w_i}{\sum_j |w_j|}\; s_i(x)

        Here :math:`s_i` is what model :math:`i` predicts. Rows are therefore ranked by the weighted sum of
        the scores, even if some weights are negative. The resulting model has the trees of all models, and
        computes its scores in one go. See `Ensemble.joined`.

        Parameters
        ----------
        models : sequence of estimators, BaggingRegressor or VotingRegressor
            Fitted estimators of trees of this library, frozen ones included, or their ensembles; or one of
            scikit-learn's meta-estimators fitted around such estimators.
        weights : array-like of shape (n_models,), default=None
            The weights of the models, not all 0. If None, each weight is 1. A `VotingRegressor` has weights
            of its own, which are divided by their sum, as it does itself.
        **parameters : dict
            The ``measure`` and ``n_jobs`` of the ranker.

        Returns
        -------
        EnsembleRanker
            It has the names and the levels of the columns that the models know.

        Raises
        ------
        TypeError
            If a model is not an estimator of trees of this library, or is passed alone rather than in a list.
        NotFittedError
            If a model is not fitted.
        ValueError
            If the weights are not one finite number for each model, or are all 0; if the models have
            different columns; or if a mean of their predictions is not a sum over trees. This is so if
            boosting started from another kind of model, if a model has a link, or if features were drawn for
            each model.

        Examples
        --------
        >>> from ranktrees import EnsembleRanker, HistGBRTRegressor, make_ranking
        >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
        >>> models = [HistGBRTRegressor(max_iter=20, random_state=seed).fit(X, y) for seed in range(3)]
        >>> ranker = EnsembleRanker.average(models)
        >>> len(ranker.ensemble_)
        60
        >>> mean = np.mean([model.predict(X) for model in models], axis=0)
        >>> bool(np.allclose(ranker.predict(X), mean))
        True
        """
        around, models, weights, total_of = _members(models, weights)
        members = [_averaged(model) for model in models]
        names = next((list(each.feature_names_in_) for each in [*around, *members] if _has_names(each)), None)
        for each in members:
            if names is not None and _has_names(each) and list(each.feature_names_in_) != names:
                raise ValueError(
                    f"models have the columns {names} and {list(each.feature_names_in_)}; expected the same "
                    "columns in all."
                )
        levels = joined_levels(getattr(each, "_category_levels", {}) for each in members)
        shares = _shares(weights, len(members), total_of)
        ensemble = Ensemble.joined([recoded(each, levels) for each in members], shares)
        ensemble = ensemble._with_columns(names, levels)
        return cls(ensemble, feature_names=names, category_levels=levels or None, **parameters)

    @property
    def ensemble_(self) -> Ensemble:  # type: ignore[override]
        if not isinstance(self.ensemble, Ensemble):
            raise TypeError(
                f"ensemble is {self.ensemble!r}; expected an Ensemble: pass the ensemble_ of a fitted "
                "estimator, or read one from a file with Ensemble.load(path)."
            )
        return self.ensemble

    @property
    def _link(self) -> Link | None:
        return None if self.ensemble_.link is None else LINKS[self.ensemble_.link]

    @property
    def n_features_in_(self) -> int:  # type: ignore[override]
        return self.ensemble_.n_features

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:  # type: ignore[override]
        if (names := self._names()) is None:
            raise AttributeError("feature_names are not known")
        return np.asarray(names, dtype=object)

    @property
    def _category_levels(self) -> dict[int, tuple[Any, ...]]:
        return self._levels()

    def _names(self) -> tuple[str, ...] | None:
        known, given = self.ensemble_.feature_names, self.feature_names
        return known if given is None else checked_renames(given, known, self.n_features_in_)

    def _levels(self) -> dict[int, tuple[Any, ...]]:
        of_ensemble, given = self.ensemble_.category_levels, self.category_levels
        if given is None:
            return dict(of_ensemble)
        if not isinstance(given, Mapping):
            raise ValueError(
                f"category_levels={given!r}; expected a dict from the number or the name of a column to its "
                "levels."
            )
        known, names = {}, self._names()
        columns = [(self._column(key, names), key) for key in given]
        refuse_repeated(columns, "category_levels")
        for column, key in columns:
            levels = _distinct_levels(key, given[key])
            if of_ensemble.get(column, levels) != levels:
                raise ValueError(
                    f"category_levels[{key!r}]={levels}, but the ensemble has {of_ensemble[column]}; "
                    "expected the same levels, or None, to use those of the ensemble."
                )
            self._require_level_of_each(self.ensemble_.categories[column], key, levels)
            known[column] = levels
        return of_ensemble | known

    def _require_level_of_each(self, categories: np.ndarray, key: Any, levels: tuple[Any, ...]) -> None:
        """Refuse fewer levels than the trees know, unless they know all categories that there can be."""
        if categories is None or len(categories) == MAX_IN_SETS or len(levels) > categories.max(initial=-1):
            return
        raise ValueError(
            f"category_levels[{key!r}] has {len(levels)} levels, but the trees split by the code "
            f"{categories.max():g}; expected the level of each code from 0 on."
        )

    def _column(self, key: Any, names: Sequence[str] | None) -> int:
        """Return the number of the column that a key of ``category_levels`` refers to."""
        if names is None and not isinstance(key, Integral):
            raise ValueError(
                f"category_levels names {key!r}, but the trees do not know the names of their columns; "
                "expected the number of the column, or feature_names, too."
            )
        return index_of(key, list(names or ()), self.n_features_in_, "category_levels")

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        groups: IdsLike | None = None,
    ) -> Self:
        """Check the columns of X, and learn nothing.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            The rows. Their columns are compared with those of the trees.
        y, qid, groups : array-like of shape (n_rows,), default=None
            Ignored.

        Returns
        -------
        self : EnsembleRanker

        Raises
        ------
        ValueError
            If the columns are others, or if ``feature_names`` or ``category_levels`` do not match the trees.
        """
        self._validate_params()
        check_columns(self, X, reset=False)
        self._levels()
        return self

    def refit_leaves(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        estimator: TreeEnsembleEstimator | None = None,
        qid: IdsLike | None = None,
        groups: IdsLike | None = None,
        decay: float = 0.9,
        **others: Any,
    ) -> Self:
        """Return a copy whose leaves have new values, learned from other rows on the same splits.

        See `HistGBRTRegressor.refit_leaves` for the formula.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            The labels. A pandas Series whose index has a level named "qid" supplies the query ids as well.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights >= 0.
        estimator : estimator of trees
            What says how new values are learned, since trees do not know how they were grown: a
            `LambdaMARTRanker` or a `HistGBRTRegressor`, with its loss, ``learning_rate`` and
            ``l2_regularization``, or, for an ensemble that is a mean, a `RandomForestRanker`. Values suit the
            others if the ``learning_rate`` is that with which the trees were grown. It need not be fitted,
            and does not change.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each row, in any order. ``groups`` is another name for ``qid``.
        decay : float, default=0.9
            The weight of the old values. With 1 they are kept, with 0 they are forgotten.
        **others : dict
            What else ``refit_leaves`` of the estimator takes, such as ``pairs`` or ``position``.

        Returns
        -------
        refitted : EnsembleRanker
            It has the link of the estimator's loss, a ranker's being None. The original stays as it is.

        Raises
        ------
        TypeError
            If ``estimator`` is not an estimator of trees of this library that can be fitted.
        ValueError
            If ``estimator`` is a classifier, has an ``init``, boosts although the ensemble is a mean, or the
            reverse, or has a loss of another link than the ensemble and is no ranker; and for the same
            reasons as in `HistGBRTRegressor.refit_leaves`.

        Examples
        --------
        >>> from ranktrees import EnsembleRanker, LambdaMARTRanker, make_ranking
        >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
        >>> today, before = qid < 20, qid >= 20
        >>> fitted = LambdaMARTRanker(random_state=0).fit(X[before], y[before], qid=qid[before])
        >>> served = EnsembleRanker(fitted.ensemble_)
        >>> like = LambdaMARTRanker(learning_rate=0.05)
        >>> served = served.refit_leaves(X[today], y[today], qid=qid[today], estimator=like)
        >>> twin = fitted.refit_leaves(X[today], y[today], qid=qid[today])
        >>> bool((served.predict(X) == twin.predict(X)).all())
        True
        """
        if not isinstance(estimator, TreeEnsembleEstimator):
            raise TypeError(
                f"estimator is {estimator!r}; expected an estimator that grows trees, by whose loss and "
                "learning_rate leaves get new values: pass LambdaMARTRanker(learning_rate=...), say."
            )
        self._validate_params()
        model: Any = estimator._around(self, _num_samples(X))
        refitted = model.refit_leaves(X, y, sample_weight, qid=qid, groups=groups, decay=decay, **others)
        return type(self)(**self.get_params(deep=False) | {"ensemble": refitted.ensemble_})


def _distinct_levels(key: Any, levels: Any) -> tuple[Any, ...]:
    """Return the levels of a category column, checked, as a tuple of Python values, which files have."""
    if not are_in_order(levels):
        raise ValueError(
            f"category_levels[{key!r}]={levels!r}; expected the levels of the column, in the order of their "
            "codes: pass a list of them."
        )
    levels = tuple(map(plain_level, levels))
    require_distinct(
        levels,
        f"category_levels[{key!r}]",
        lambda level: isinstance(level, Hashable) and not is_missing(level),
        "hashable levels: missing values have no code",
    )
    return levels


def _has_names(model: Any) -> bool:
    return hasattr(model, "feature_names_in_")


def _members(
    models: Any, weights: ArrayLike | None
) -> tuple[list[Any], Sequence[Any], Any, Callable[..., Any]]:
    """Return the wrapper of the models, if any, the fitted models, their weights, and how to sum these."""
    from sklearn.ensemble import BaggingRegressor, VotingRegressor

    if isinstance(models, BaggingRegressor | VotingRegressor):
        check_is_fitted(models)
        total_of: Callable[..., Any] = _total_size
        if isinstance(models, VotingRegressor):
            if weights is not None:
                raise ValueError(
                    "weights are given, but a VotingRegressor has its own: leave one of them out."
                )
            weights, total_of = models._weights_not_none, np.sum
        else:
            everything = np.arange(models.n_features_in_)
            if not all(np.array_equal(some, everything) for some in models.estimators_features_):
                raise ValueError(
                    "the models of the BaggingRegressor were fitted to different subsets of the features; "
                    "expected all features in each: set max_features=1.0 and bootstrap_features=False."
                )
        return [models], models.estimators_, weights, total_of
    if not isinstance(models, Iterable) or own_model(models) is not None:
        raise TypeError(
            f"models is a {type(models).__name__}; expected several fitted models: pass a list of them."
        )
    models = list(models)
    if not models:
        raise ValueError("models is empty; expected at least one fitted model.")
    return [], models, weights, _total_size


def _total_size(weights: np.ndarray) -> float:
    """Return the number that scales weights and keeps their signs."""
    return np.abs(weights).sum()


def _shares(weights: ArrayLike | None, n_models: int, total_of: Callable[..., Any]) -> np.ndarray:
    """Return the weights divided by their total: float64[n_models]."""
    try:
        weights = np.ones(n_models) if weights is None else np.asarray(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights={weights!r}; expected numbers, or None.") from error
    if weights.shape != (n_models,) or not np.isfinite(weights).all() or total_of(weights) == 0:
        raise ValueError(
            f"weights={weights.tolist()}; expected a finite number for each of the {n_models} models, and a "
            "total other than 0: the mean is divided by it."
        )
    return weights / total_of(weights)


def _averaged(model: Any) -> FittedTrees:
    """Return the estimator of a model, if a mean can be taken over its trees."""
    estimator = own_model(model)
    if estimator is None:
        raise TypeError(
            f"models has a {type(model).__name__}; expected fitted tree estimators of ranktrees, or a "
            "BaggingRegressor or a VotingRegressor of these."
        )
    check_is_fitted(estimator)
    require_trees_only(estimator, "average predictions")
    if estimator._link is not None:
        raise ValueError(
            f"models has {estimator!r}, whose predictions are not sums over trees; expected models whose "
            "predictions are their scores: join their scores with Ensemble.joined."
        )
    return estimator


own_model.register(Ensemble, EnsembleRanker)


def tags_of(model: Any) -> Any:
    """Return the tags by which scikit-learn knows a model.

    There is little to know of a model without tags of its own, such as one that only has ``predict``.

    Parameters
    ----------
    model : object
        For an `Ensemble`, the tags are those of its ranker. Something that is not a model gets tags as well,
        since it is up to `fit` to refuse it.

    Returns
    -------
    Tags

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> tags_of(Ridge()).estimator_type, tags_of(None).estimator_type
    ('regressor', None)
    """
    model = own_model(model) or model
    if not hasattr(model, "__sklearn_tags__"):
        return Tags(estimator_type=None, target_tags=TargetTags(required=False))
    return get_tags(model)
