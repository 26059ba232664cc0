"""Which of all rows are on this rank, and what it must know of the others to draw as a single process would.

    all    | q3 . . . | q7 . . | q8 . . . . | q9 . |      queries by id, all rows numbered 0, 1, ...
    rank 0 | q8 . . . . | q9 . |                          the numbers of its rows: 7 8 9 10 11, 12 13
    rank 1 | q3 . . . | q7 . . |                          0 1 2 3, 4 5 6

Draws are made by these numbers, so it does not matter how queries are dealt to ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import joblib
import numpy as np

from ranktrees.processes.communicator import ALONE, Communicator
from ranktrees.support.spool import first_rows

if TYPE_CHECKING:
    from ranktrees.support.annotations import RowsLike

SAME_ROWS = (
    "every rank has passed the same rows; expected rows of its own on each. If one program has all rows, "
    'run it without mpiexec, and joblib.parallel_config("mpi", n_ranks=...) deals them.'
)
MANY_LABELS = 4096
COMPARED = 100  # rows


@dataclass(frozen=True, eq=False)
class Share:
    """The part of all queries that a rank has.

    Attributes
    ----------
    communicator : Communicator
        Connects this rank with the others.
    n_rows, n_queries : int or None
        The numbers over all ranks.
    query_numbers : ndarray of int64, shape (n_queries of this rank,), or None
        The number of each of this rank's queries among all. None if all queries are on this rank.
    first_rows : ndarray of int64 of the same shape, or None
        The number of the first row of each of these queries.
    row_numbers : ndarray of int64, shape (n_rows of this rank,), or None
        The number of each row.
    named : bool
        Whether the ranks that have rows know the ids of their queries.
    """

    communicator: Communicator
    n_rows: Any = None
    n_queries: Any = None
    query_numbers: Any = None
    first_rows: Any = None
    row_numbers: Any = None
    named: bool = True

    @classmethod
    def alone(cls, offsets: np.ndarray) -> Self:
        """Return the share of a process that has all queries."""
        return cls(ALONE, int(offsets[-1]), len(offsets) - 1)

    @classmethod
    def among(
        cls, communicator: Communicator, offsets: np.ndarray, ids: Sequence[Any] | None, name: str = "qid"
    ) -> Self:
        """Number this rank's queries among those of all ranks.

        Parameters
        ----------
        communicator : Communicator
        offsets : ndarray of int64, shape (n_queries + 1,)
            The offsets of this rank's queries.
        ids : sequence of length n_queries, or None
            The ids of these queries, in that order. If None, they are not among those of other ranks, and
            come after those of the ranks before.
        name : str
            What error messages call the ids.

        Raises
        ------
        ValueError
            If a query is on two ranks, if some ranks pass ids and others do not, or if ids cannot be sorted.
        """
        sizes = np.diff(offsets)
        if communicator.alone:
            return cls.alone(offsets)
        ids_here = None if ids is None else [one.item() if hasattr(one, "item") else one for one in ids]
        of_ranks = communicator.allgather((ids_here, sizes))
        named = {theirs is not None for theirs, sizes in of_ranks if len(sizes)}
        if len(named) > 1:
            raise ValueError(f"{name} is given on some ranks only; expected it on all or on none.")
        all_sizes = np.concatenate([theirs for _, theirs in of_ranks])
        before = sum(len(theirs) for _, theirs in of_ranks[: communicator.rank])
        if True in named:
            places = np.array(_places([theirs or [] for theirs, _ in of_ranks], name), np.int64)
        else:
            places = np.arange(len(all_sizes))
        in_order = np.empty_like(all_sizes)
        in_order[places] = all_sizes
        first_rows = (np.cumsum(in_order) - in_order)[places]
        mine = slice(before, before + len(sizes))
        counts = int(all_sizes.sum()), len(all_sizes)
        return cls._of(communicator, *counts, places[mine], first_rows[mine], sizes, True in named)

    @classmethod
    def _of(
        cls,
        communicator: Communicator,
        n_rows: int,
        n_queries: int,
        query_numbers: np.ndarray,
        first_rows: np.ndarray,
        sizes: np.ndarray,
        named: bool,
    ) -> Self:
        steps = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        row_numbers = (np.repeat(first_rows, sizes) + steps).astype(np.int64)
        return cls(communicator, n_rows, n_queries, query_numbers, first_rows, row_numbers, named)

    def labels_to_check(self, labels: np.ndarray) -> np.ndarray:
        """Return labels of all ranks: the distinct ones of each, or its lowest and highest if very many."""
        if self.communicator.alone:
            return labels
        distinct = np.unique(labels)
        distinct = distinct if len(distinct) <= MANY_LABELS else distinct[[0, -1]]
        return np.concatenate(self.communicator.allgather(distinct))

    def refuse_copies(self, X: RowsLike, labels: np.ndarray) -> None:
        """Raise if every rank has the same rows. With query ids this has been checked already."""
        if self.named:
            return
        first = first_rows(X, COMPARED) if len(labels) else np.empty((0, X.shape[1]))
        digests = self.communicator.allgather(joblib.hash((first, labels)))
        if len(set(digests)) == 1 and len(digests) > 1 and len(labels):
            raise ValueError(SAME_ROWS)

    def subset(
        self, offsets: np.ndarray, units: np.ndarray, units_of_all: np.ndarray, *, by_query: bool
    ) -> Self:
        """Return the share of some of the queries (or rows), numbered anew; ``units`` are this rank's."""
        if self.communicator.alone:
            return self.alone(offsets)
        if not by_query:
            numbers = (np.cumsum(units_of_all) - 1)[self.row_numbers[units]]
            n_rows = int(units_of_all.sum())
            return replace(self, n_rows=n_rows, first_rows=None, row_numbers=numbers)
        own_sizes = np.diff(offsets)
        sizes = np.zeros(self.n_queries, np.int64)
        sizes[self.query_numbers[units]] = own_sizes
        sizes = self.communicator.allreduce(sizes)[units_of_all]
        numbers = (np.cumsum(units_of_all) - 1)[self.query_numbers[units]]
        first_rows = (np.cumsum(sizes) - sizes)[numbers]
        counts = int(sizes.sum()), len(sizes)
        return self._of(self.communicator, *counts, numbers, first_rows, own_sizes, self.named)


# All rows are here; their number is not known.
ALL_ROWS = Share(ALONE)


def deal(data: Any, size: int) -> list[np.ndarray]:
    """Deal the rows, as given, to ranks: whole queries, and about the same number of rows to each rank.

    Parameters
    ----------
    data : FitData
    size : int
        The number of ranks.

    Returns
    -------
    rows : list of ndarrays of intp
    """
    ends = data.offsets if data.qid_given else np.arange(data.n_rows + 1)
    middles = (ends[:-1] + ends[1:]) / 2  # a query goes to the rank of its middle row
    first = np.searchsorted(middles, data.n_rows * np.arange(size + 1) / size)
    order = np.arange(data.n_rows) if data.order is None else data.order
    return [order[start:stop] for start, stop in pairwise(ends[first])]


def _places(ids_of_ranks: Sequence[list[Any]], name: str) -> list[int]:
    """Return the place of each id among all sorted ids, in the order of the ranks."""
    if len(ids_of_ranks) > 1 and ids_of_ranks[0] and all(ids == ids_of_ranks[0] for ids in ids_of_ranks):
        raise ValueError(SAME_ROWS)
    rank_of: dict[Any, int] = {}
    for rank, ids in enumerate(ids_of_ranks):
        for one in ids:
            if one in rank_of:
                raise ValueError(
                    f"{name}={one!r} is on rank {rank_of[one]} and on rank {rank}; expected whole queries on "
                    "each rank, and each row on one rank only: deal the rows by query."
                )
            rank_of[one] = rank
    try:
        place_of = {one: place for place, one in enumerate(sorted(rank_of))}
    except TypeError as error:
        raise ValueError(
            f"{name} holds ids that cannot be sorted ({error}); expected all numbers or all strings, so that "
            "the model does not depend on how queries are dealt to ranks."
        ) from error
    return [place_of[one] for ids in ids_of_ranks for one in ids]
