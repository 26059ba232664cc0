"""Missing values, predicted by forests from the features that no row lacks.

Algorithm 2 of Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees
for web-search ranking*, 2010, section 2.2.
"""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from ranktrees.estimators import RandomForestRanker
from ranktrees.processes.communicator import active
from ranktrees.rows import unchanged_on_failure
from ranktrees.rows.features import names_of
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ranktrees.support.annotations import RowsLike


class Step(NamedTuple):
    """A forest that fills the gaps of a feature, from the values of the known features."""

    feature: int
    known: np.ndarray
    forest: RandomForestRanker

    def fill(self, rows: np.ndarray, missing: np.ndarray) -> None:
        """Predict the feature of the rows that lack it, in place."""
        gaps = np.flatnonzero(missing[:, self.feature])
        if len(gaps):
            rows[gaps, self.feature] = self.forest.predict(rows[np.ix_(gaps, self.known)])


class ForestImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Transformer that fills missing values with what random forests predict from the other features.

    It begins with the features that no training row lacks. In each round, one feature after another that has
    gaps is predicted by a forest of full trees, from all other features that are known by then. The forest
    learns from the rows that had a value of the feature from the start. When its predictions have filled the
    gaps, the feature is known to the forests that follow. Later rounds predict the gaps again, and then all
    features are known. Rounds end when the predictions have settled, that is, if those of two rounds,
    :math:`v` and :math:`v'`, differ by little compared with the standard deviation :math:`s` of the values of
    their feature:

    .. math:: \sqrt{\frac{1}{|M|} \sum_{(i, f) \in M} \left(\frac{v'_{if} - v_{if}}{s_f}\right)^2}
              \le \text{tol},

    where :math:`M` are the gaps. So it takes at least two rounds. The forest of a feature makes the same
    draws in each round, so that predictions change only if values do. New rows pass through the forests of
    the fit in the same order. Labels are not used.

    Parameters
    ----------
    n_estimators : int, default=100
        The number of trees of each forest.
    max_features : {"sqrt", "log2"}, int, float or None, default="sqrt"
        The number of features that each split considers, as for `RandomForestRanker`. A share, and a root or
        logarithm, is of the features that are known. An int above their number means all of them.
    max_iter : int, default=10
        The maximum number of rounds, at least 1.
    tol : float, default=0.2
        The change of the formula above, at least 0, from which on predictions count as settled. If this is
        not reached after ``max_iter`` rounds, there is a ``ConvergenceWarning``, unless ``tol`` is 0.
    random_state : int, RandomState or None, default=None
        The source of randomness of the forests. With an int, each fit gives the same result.
    n_jobs : int or None, default=None
        The number of trees that are grown at the same time. None and -1 use all processors. The result does
        not depend on it.

    Attributes
    ----------
    forests_ : list of lists of (feature, known, forest)
        For each round, and each feature with gaps: its index, the indices of the features that predict it,
        and the `RandomForestRanker`.
    means_ : ndarray of float64, shape (n_features,)
        The mean of each feature that has no gaps in training, and thus no forest. It fills gaps of new rows.
        NaN for the other features.
    n_iter_ : int
        The number of rounds. 1 if no training row lacks a value.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        The names of the columns of a data frame. Defined only if all names are strings.

    See Also
    --------
    sklearn.impute.IterativeImputer : Begins with the mean of each feature, and takes any regressor.

    References
    ----------
    Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees for
    web-search ranking*, 2010, section 2.2, Algorithm 2. The guide, "Treatments of missing values", says how
    it was read.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees import ForestImputer
    >>> x = np.random.default_rng(0).normal(size=200)
    >>> X = np.column_stack([x, 2 * x])
    >>> X[:50, 1] = np.nan
    >>> filled = ForestImputer(random_state=0).fit_transform(X)
    >>> bool(np.abs(filled[:50, 1] - 2 * x[:50]).mean() < 0.1)
    True
    """

    _parameter_constraints = {  # noqa: RUF012
        "n_estimators": RandomForestRanker._parameter_constraints["n_estimators"],
        "max_features": RandomForestRanker._parameter_constraints["max_features"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_features: Literal["sqrt", "log2"] | float | None = "sqrt",
        max_iter: int = 10,
        tol: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: RowsLike, y: object = None) -> Self:
        """Fit the forests.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            The rows, all numbers. NaN is a missing value. At least one feature has a value in each row, and
            each feature in some row.
        y : ignored

        Returns
        -------
        self : ForestImputer
            The fitted transformer.

        Raises
        ------
        ValueError
            If some rows lack values and each feature is lacking in some row, if a feature has no value at
            all, or if several ranks train together.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: RowsLike, y: object = None) -> NDArray[Any]:
        """Fit the forests, and fill the gaps.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        X : ndarray of shape (n_rows, n_features)
            The rows without gaps, the same as ``fit(X).transform(X)``; float32 stays float32.
        """
        self._validate_params()
        if active().size > 1:
            raise ValueError(
                f"ForestImputer is fitted on {active().size} ranks, but it must see all rows to know which "
                "features no row lacks; expected one process: fill the gaps before the rows are dealt."
            )
        with unchanged_on_failure(self):
            rows = self._rows(X, reset=True)
            missing = np.isnan(rows)
            self._require_values(missing)
            self._fit(rows, missing)
        return rows

    def transform(self, X: RowsLike) -> NDArray[Any]:
        """Fill the gaps of rows by the forests of the fit.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        X : ndarray of shape (n_rows, n_features)
            The rows without gaps. What fills those of a row does not depend on other rows.
        """
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        missing = np.isnan(rows)
        np.copyto(rows, self.means_, where=missing, casting="same_kind")
        for steps in self.forests_:
            for step in steps:
                step.fill(rows, missing)
        return rows

    def _rows(self, X: RowsLike, *, reset: bool) -> np.ndarray:
        return validate_data(
            self, X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan", copy=True, reset=reset
        )

    def _require_values(self, missing: np.ndarray) -> None:
        is_empty: Any = missing.all(axis=0)
        if is_empty.any():
            names = names_of(self) or range(len(is_empty))
            raise ValueError(
                f"X has no value of feature {names[is_empty.argmax()]!r}, so nothing can be learned of it; "
                "expected a value in some row: drop the feature, or fill it with a constant."
            )
        if missing.any(axis=0).all():
            raise ValueError(
                "X has no feature that all rows have, from which others could be predicted; expected at "
                "least one: fill the gaps of one feature with SimpleImputer (through a ColumnTransformer), "
                "add a feature that is always known, or use scikit-learn's IterativeImputer."
            )

    def _fit(self, rows: np.ndarray, missing: np.ndarray) -> None:
        is_known: Any = ~missing.any(axis=0)
        features = np.flatnonzero(~is_known)
        self.means_ = np.where(is_known, np.nanmean(rows, axis=0, dtype=np.float64), np.nan)
        scale = np.nanstd(rows, axis=0, dtype=np.float64)
        scale[scale == 0] = 1.0
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=len(features))
        self.forests_ = []
        for _ in range(self.max_iter):
            before, steps = rows.copy(), []
            for feature, seed in zip(features, seeds, strict=True):
                is_known[feature] = False  # to its own forest
                steps.append(self._step(rows, missing, feature, np.flatnonzero(is_known), int(seed)))
                steps[-1].fill(rows, missing)
                is_known[feature] = True
            self.forests_.append(steps)
            change = np.sqrt(np.sum(np.square((rows - before) / scale)[missing]) / max(1, missing.sum()))
            if change <= self.tol:  # it is NaN in the first round, unless there are no gaps
                break
        else:
            if self.tol > 0:
                warn(
                    f"The predictions of ForestImputer have not settled after max_iter={self.max_iter} "
                    f"rounds: the last one changed them by {change:.2g}, more than tol={self.tol:g}. Raise "
                    "either, or set tol=0 for as many rounds as that.",
                    ConvergenceWarning,
                )
        self.n_iter_ = len(self.forests_)

    def _step(
        self, rows: np.ndarray, missing: np.ndarray, feature: Any, known: np.ndarray, seed: int
    ) -> Step:
        """Grow the forest of a feature, from the rows that have a value of it."""
        forest = RandomForestRanker(
            self.n_estimators,
            min_samples_leaf=1,
            max_features=self.max_features,
            split_search="exact",
            random_state=seed,
            n_jobs=self.n_jobs,
        )
        learned_from = np.flatnonzero(~missing[:, feature])
        values = rows[learned_from, feature]
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", FitWarning
            )  # of values that are alike, or those of another feature
            forest.fit(rows[np.ix_(learned_from, known)], values, qid=np.zeros(len(values)))
        return Step(feature, known, forest)
