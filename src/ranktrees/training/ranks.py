"""Fit an estimator on ranks: what the ranks must agree on, and how a driver lets them fit.

    rows of one program - driver: deal whole queries -> rank 0 ... n: fit -> what the first one learned
    rows of each rank   - fit, with the ranks that are active here

A rank of a driver does the same as a rank in a program that all ranks run: it calls ``fit`` with its own
rows.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import indexable
from sklearn.utils._indexing import _safe_indexing

from ranktrees._core.support.threads import StandardFloats
from ranktrees.binning.codes import codes_of_all
from ranktrees.processes.communicator import active, training_with
from ranktrees.processes.sharing import Share, deal
from ranktrees.rows import (
    MissingQueryWarning,
    check_fit,
    check_validation,
    unchanged_on_failure,
)
from ranktrees.rows.batches import Batches
from ranktrees.rows.features import names_of
from ranktrees.support.parallel import effective_n_threads
from ranktrees.training.checkpoints import remove_checkpoint

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ranktrees.processes.communicator import Communicator
    from ranktrees.rows.data import FitData, ValidationRows
    from ranktrees.rows.feedback import Feedback
    from ranktrees.support.annotations import RowsLike

# Parameters that may differ between ranks that train together; random_state is compared if it is a number.
OF_A_RANK = ("n_jobs", "verbose", "random_state")

# Fitted attributes with one number for each of the rank's own rows.
OF_ITS_ROWS = {"oob_prediction_"}


@contextmanager
def trained_together(estimator: Any) -> Iterator[Communicator]:
    """Train with the active ranks: what fails on one fails on all, and in the end their models must agree."""
    communicator = active()
    communicator.at("the checks")
    floats = StandardFloats(effective_n_threads(estimator.n_jobs))
    with floats, unchanged_on_failure(estimator), communicator:
        yield communicator
        if not communicator.alone:
            communicator.at("the end")
            communicator.agree(**{"the model": [ensemble.digest() for ensemble in estimator._ensembles]})
        remove_checkpoint(estimator.checkpoint, communicator)


def refuse_other_estimators(estimator: Any, communicator: Communicator) -> None:
    """Raise, on all ranks, if they do not fit the same estimator. Call this before rows are checked by it."""
    if communicator.alone:
        return
    parameters = {
        name: value for name, value in estimator.get_params(deep=False).items() if name not in OF_A_RANK
    }
    communicator.agree(
        **{"the estimator": type(estimator).__name__}
        | parameters
        | {
            "random_state": estimator.random_state if isinstance(estimator.random_state, Integral) else None,
            "whether the estimator is fitted": estimator._earlier() is not None,
        }
    )


def refuse_disagreement(estimator: Any, data: FitData) -> None:
    """Raise, on all ranks, if they do not mean the same by their rows."""
    share = data.share
    if share.communicator.alone:
        return
    share.communicator.agree(
        **{
            "the number of features": estimator.n_features_in_,
            "feature_names_in_": names_of(estimator),
            "the categories of X": estimator._category_levels,
        }
    )
    share.refuse_copies(data.X, data.labels)
    if not share.n_rows:
        raise ValueError("X has no rows on any rank; expected at least one.")
    if estimator._wants_queries and not share.named:
        raise ValueError(
            f"{type(estimator).__name__} needs qid= to train on several ranks: without it all rows are one "
            "query, which cannot be divided among ranks. Pass the query ids of each rank's rows."
        )


def refuse_feedback(feedback: Feedback) -> None:
    """Raise if a ranker is to learn from more than labels."""
    for name in ("pairs", "position"):
        if getattr(feedback, name) is not None:
            raise ValueError(
                f"{name} is given, but ranks that train together learn from labels only; expected y alone: "
                "train in one process to learn from it."
            )


def fit_on_ranks(
    estimator: Any,
    driver: Any,
    X: RowsLike,
    y: Any,
    sample_weight: ArrayLike | None,
    validation: ValidationRows | None = None,
    **ids: Any,
) -> None:
    """Let the ranks of a driver fit an estimator, each with some queries, and take over what they learn.

    Parameters
    ----------
    estimator : estimator
    driver : object
        See `ranktrees.processes.communicator.active_driver`.
    X, y, sample_weight
        As for ``fit``.
    validation : ValidationRows, default=None
    **ids
        Query ids, as for ``fit``.
    """
    if isinstance(X, Batches):
        raise ValueError(
            "X is in batches, which a driver does not deal to ranks; expected rows in memory: let each rank "
            "read batches of its own, in a program that all ranks run (mpiexec)."
        )
    twin = copy.copy(estimator)
    data = check_fit(twin, X, y, sample_weight, ranker=estimator._wants_queries, **ids)
    dealt = deal(data, driver.n_ranks)
    shards = _shards(dealt, data, X, y, sample_weight, {})
    if validation is not None and validation.given:
        names = {name: f"{name}_val" for name in ("X", "y", "sample_weight", "qid")}
        held_out: Any = check_validation(twin, validation, data)
        X_val, y_val = validation.pair
        weights = validation.sample_weight_val
        theirs = _shards(
            deal(held_out, driver.n_ranks), held_out, X_val, y_val, weights, names, data.n_queries
        )
        shards = [shard | more for shard, more in zip(shards, theirs, strict=True)]
    for name in OF_ITS_ROWS if estimator._earlier() is not None else ():
        if (known := getattr(estimator, name, None)) is not None:
            known = known if len(known) == data.n_rows else np.full(data.n_rows, np.nan)
            shards = [shard | {name: known[rows]} for shard, rows in zip(shards, dealt, strict=True)]
    states = driver.run_rows(fit_shard, shards, estimator)
    of_rows = {}
    for name in OF_ITS_ROWS & states[0].keys():
        of_rows[name] = np.empty(data.n_rows)
        for own_rows, state in zip(dealt, states, strict=True):
            of_rows[name][own_rows] = state[name]
    take_over(estimator, states[0] | of_rows)


def take_over(estimator: Any, state: dict[str, Any]) -> None:
    """Give an estimator what its copy on the first rank has learned."""
    parameters = estimator.get_params(deep=False)
    learned = {name: value for name, value in state.items() if name not in parameters}
    for name in [name for name in vars(estimator) if name.endswith("_") and name not in learned]:
        delattr(estimator, name)  # left over from an earlier fit
    vars(estimator).update(learned)


def _shards(
    dealt: Sequence[np.ndarray],
    data: FitData,
    X: RowsLike,
    y: Any,
    sample_weight: ArrayLike | None,
    names: Mapping[str, str],
    first_query: int = 0,
) -> list[dict[str, Any]]:
    """Return the arguments of ``fit`` for each rank, under these names, with query numbers as ids."""
    query_numbers = first_query + data.as_given(data.query_of_row) if data.qid_given else None
    rows = indexable(X)[0] if hasattr(X, "shape") else data.X  # an empty list has no number of features
    columns = {"X": rows, "y": y, "sample_weight": sample_weight, "qid": query_numbers}
    columns = {names.get(name, name): values for name, values in columns.items() if values is not None}
    return [{name: _safe_indexing(values, rows) for name, values in columns.items()} for rows in dealt]


def fit_shard(communicator: Communicator, shard: dict[str, Any], estimator: Any) -> dict[str, Any]:
    """Fit on a rank of a driver. Return the fitted attributes; from all ranks but the first, only its own."""
    vars(estimator).update({name: shard[name] for name in OF_ITS_ROWS if name in shard})
    with training_with(communicator), warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingQueryWarning)  # the driver has warned
        estimator.fit(**{name: values for name, values in shard.items() if name not in OF_ITS_ROWS})
    state = vars(estimator)
    return state if communicator.rank == 0 else {name: state[name] for name in state if name in OF_ITS_ROWS}


def gathered(data: FitData, codes: Any) -> tuple[FitData, Any]:
    """Gather the labels, weights, queries and codes of all ranks, in their common order, on each rank.

    Parameters
    ----------
    data : FitData
        The data of this rank.
    codes : Codes, or ndarray of uint8 or uint32, shape (n_rows, n_features), feature by feature

    Returns
    -------
    data : FitData
    codes : Codes or ndarray
    """
    share = data.share
    if share.communicator.alone:
        return data, codes
    kept_apart = (share.row_numbers, share.query_numbers, np.diff(data.offsets))
    of_ranks = share.communicator.allgather((*kept_apart, data.narrow_labels, data.weights))
    numbers, queries, sizes, labels, weights = zip(*of_ranks, strict=True)
    rows, order = (np.argsort(np.concatenate(parts), kind="stable") for parts in (numbers, queries))
    places = np.searchsorted(np.concatenate(numbers)[rows], share.row_numbers)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes)[order])]).astype(np.int64)
    whole = replace(
        data,
        X=None,
        narrow_labels=np.concatenate(labels)[rows],
        weights=None if data.weights is None else np.concatenate(weights)[rows],
        order=None,
        offsets=offsets,
        share=Share.alone(offsets),
    )
    return whole, codes_of_all(codes, places, len(rows), share.communicator)
