"""Scores of records, for services that rank one query at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from ranktrees.estimators.fitted import require_trees_only
from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.rows.features import names_of
from ranktrees.rows.records import Record, Records

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RecordScorer"]


class RecordScorer:
    """A model as a function from records to predictions, without a data frame.

    A record has the values of a row by the names of their columns, as an object of JSON has, or in the order
    of the columns. What does not depend on records is prepared once: the names, the codes of categories, and
    the trees. Threads can share a scorer. A later fit of the model does not change it.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted tree estimator of this library, an `EnsembleRanker`, or an ensemble. Its ``n_jobs`` applies.
    method : {"predict", "predict_proba", "decision_function"}, default="predict"
        The method of the model whose results are returned. Only classifiers have the last two.
    ignore : bool or collection of str, default=False
        The keys that records may have besides the columns of the model, such as ``["id", "title"]``. With
        True, any others. With False, other keys are errors, since a misspelt name would pass for a missing
        value.

    See Also
    --------
    EnsembleRanker : Predictions for arrays and data frames.

    Notes
    -----
    - Numbers and booleans are numbers. None and NaN are missing values, and so are columns that a dict does
      not have.
    - In a category column, a value is looked up among the levels of the fit. One that is not among them is a
      missing value if it is of the same kind, and an error otherwise.
    - Predictions are those of the model for a data frame of the records, bit for bit.

    Examples
    --------
    >>> import pandas as pd
    >>> from ranktrees import LambdaMARTRanker, RecordScorer, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> frame = pd.DataFrame({"clicks": X[:, 0], "age": X[:, 1]})
    >>> frame["site"] = pd.Categorical(["uk" if x > 0 else "fr" for x in X[:, 2]])
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(frame, y, qid=qid)
    >>> score = RecordScorer(ranker, ignore=["id"])
    >>> records = [{"id": 17, "clicks": 0.3, "site": "uk"}, {"id": 4, "clicks": 0.1, "age": 2, "site": "fr"}]
    >>> scores = score(records)
    >>> bool((scores == ranker.predict(pd.DataFrame(records)[["clicks", "age", "site"]])).all())
    True
    >>> score([{"clics": 0.3}])
    Traceback (most recent call last):
        ...
    ValueError: record 0 has the key 'clics', which is no column of the model; the nearest is 'clicks'; ...
    """

    def __init__(
        self, model: Any, *, method: str = "predict", ignore: bool | Collection[Any] = False
    ) -> None:
        model = copy(fitted_trees(model))  # a fit sets attributes anew
        require_trees_only(model, "pass data frames to its predict")
        methods = model._methods()
        if method not in methods:
            raise ValueError(
                f"method={method!r}; expected one of {sorted(methods)}, which {type(model).__name__} has."
            )
        self._model, self._method, self._ignore = model, method, ignore
        self._finish = methods[method]
        names = names_of(model) or getattr(model, "_other_names", None) or None
        levels = getattr(model, "_category_levels", {})
        self._records = Records(names, model.n_features_in_, levels, ignore)
        self([[None] * model.n_features_in_])  # compiles the trees

    def __reduce__(self) -> Any:
        return partial(RecordScorer, method=self._method, ignore=self._ignore), (self._model,)

    def __repr__(self) -> str:
        return f"RecordScorer({self._model!r}, method={self._method!r}, ignore={self._ignore!r})"

    def __call__(self, records: Iterable[Record]) -> NDArray[Any]:
        """Return the prediction for each record.

        Parameters
        ----------
        records : iterable of dicts or lists
            Dicts from the names of columns to values, or lists of a value for each column, in their order. If
            the model was fitted to an array, only lists.

        Returns
        -------
        predictions : ndarray of shape (n_records,) or (n_records, n_classes)
            What ``method`` of the model returns for these rows. Without records, it is empty.

        Raises
        ------
        ValueError
            If a record has a key that is no column, or as a list another length; if a value is neither a
            number nor missing, or in a category column of another kind than the levels. The message names the
            record, counted from 0, and the key.
        """
        rows = self._records.read(records)
        return self._finish(self._model._scores(rows, rows))
