"""Random draws: rows, queries and features for each tree, rows to find cuts by, and validation rows.

Every draw is a function of (seed, stream, number of the row or query). It does not matter who draws, in what
order, or how the rows are dealt to threads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ranktrees._core.rows import sampling
from ranktrees.processes.sharing import ALL_ROWS
from ranktrees.support.parallel import threads_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ranktrees.processes.sharing import Share
    from ranktrees.rows.data import FitData

# The purposes of the random numbers of a round; see ``stream``.
ROWS, QUERIES, FEATURES, HELD_OUT, ROUNDING, N_STREAMS = range(6)

# It depends on no round, since features are cut once, and on no seed.
STREAM_OF_CUTS = (1 << 63) - 1

N_CELLS = 1 << 12  # in which uniform numbers are counted


def stream(iteration: int, purpose: int) -> int:
    """Return the number of the stream that is used in this round for this purpose only."""
    return iteration * N_STREAMS + purpose


def stream_of_objective(iteration: int) -> int:
    """Return the number of the stream that only the objective draws from in this round."""
    return (1 << 63) + iteration


class RowSampler:
    """Draws the rows that each tree is grown from: a share of the queries, then a share of their rows.

    Every row (or query) has a uniform number, by (seed, round, number of the row among those of all ranks).
    Those are drawn whose uniform number is below ``subsample`` (``query_subsample``) or, if ``exact``, that
    share of all rows whose uniform numbers are the lowest. So it does not matter who draws.
    """

    def __init__(
        self,
        offsets: np.ndarray,
        *,
        subsample: float = 1.0,
        query_subsample: float = 1.0,
        exact: bool = False,
        seed: int = 0,
        share: Share = ALL_ROWS,
        n_threads: int = 1,
    ) -> None:
        self.offsets = offsets
        self.exact = exact
        self.share = share
        self.n_threads = n_threads
        self.subsample = subsample
        self.query_subsample = query_subsample
        self.seed = seed
        self.takes_all = subsample >= 1.0 and query_subsample >= 1.0
        n_rows = 0 if self.takes_all else offsets[-1]
        # allocated once, since new memory takes time
        self._lists, self._marks = np.empty((2, n_rows), np.uint32), _marks_for(n_rows)

    def draw(self, iteration: int) -> tuple[np.ndarray | None, np.ndarray]:
        """Return the rows drawn for a round, None if all are, and the rows left out; both ascending, uint32.

        The next draw overwrites them.
        """
        if self.takes_all:
            return None, self._lists[1]
        among = None
        if self.query_subsample < 1.0:
            n_queries = len(self.offsets) - 1
            is_drawn, lists = np.zeros(n_queries, bool), np.empty((2, n_queries), np.uint32)
            queries = lists, _marks_for(n_queries), self.share.query_numbers
            is_drawn[self._draw(*queries, self.query_subsample, stream(iteration, QUERIES))[0]] = True
            among = np.repeat(is_drawn, np.diff(self.offsets))
        rows = self._lists, self._marks, self.share.row_numbers
        return self._draw(*rows, self.subsample, stream(iteration, ROWS), among)

    def _draw(
        self,
        lists: np.ndarray,
        marks: np.ndarray,
        numbers: np.ndarray | None,
        fraction: float,
        stream_number: int,
        among: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        among = None if among is None else among.view(np.uint8)
        rows = numbers, among, marks, *lists
        below = self._bound_of_lowest(fraction, stream_number, *rows) if self.exact else fraction
        n_drawn = self._draw_below(below, stream_number, *rows)
        if self.share.communicator.sums(n_drawn) == (0,):  # at least one
            n_drawn = self._draw_below(self._bound_of_lowest(0.0, stream_number, *rows), stream_number, *rows)
        return lists[0, :n_drawn], lists[1, : lists.shape[1] - n_drawn]

    def _draw_below(
        self,
        fraction: float,
        stream_number: int,
        numbers: np.ndarray | None,
        among: np.ndarray | None,
        marks: np.ndarray,
        drawn: np.ndarray,
        left_out: np.ndarray,
    ) -> int:
        n_threads = threads_for(self.n_threads, len(drawn))
        return sampling.draw_below(
            self.seed, stream_number, fraction, numbers, among, marks, drawn, left_out, n_threads
        )

    def _bound_of_lowest(
        self,
        fraction: float,
        stream_number: int,
        numbers: np.ndarray | None,
        among: np.ndarray | None,
        marks: np.ndarray,
        drawn: np.ndarray,
        left_out: np.ndarray,
    ) -> float:
        """Return the bound below which this fraction of all uniform numbers is, and at least one."""
        uniforms = np.empty(len(drawn))
        sampling.uniforms(self.seed, stream_number, uniforms, numbers)
        candidates = uniforms if among is None else uniforms[among.astype(bool)]
        cells = (candidates * N_CELLS).astype(np.intp)
        counts = self.share.communicator.allreduce(np.bincount(cells, minlength=N_CELLS))
        ends = np.cumsum(counts)
        place = max(1, round(fraction * int(ends[-1]))) - 1
        cell = np.searchsorted(ends, place, side="right")
        in_cell = np.sort(np.concatenate(self.share.communicator.allgather(candidates[cells == cell])))
        return np.nextafter(in_cell[place - (ends[cell] - counts[cell])], 2.0)


def rows_to_cut(
    share: Share, n_rows: int, n_drawn: int | None, weights: np.ndarray | None = None, n_threads: int = 1
) -> NDArray[np.intp] | None:
    """Draw the rows of this rank by which features are cut: about ``n_drawn`` of the rows of all ranks.

    Parameters
    ----------
    share : Share
    n_rows : int
        The number of rows of this rank.
    n_drawn : int or None
        The number of rows to draw on all ranks together. If None, all rows.
    weights : ndarray of shape (n_rows,), default=None
        Rows of weight zero are not drawn.
    n_threads : int, default=1

    Returns
    -------
    ndarray of intp, rising, or None
        None if all ranks take all of their rows.

    Examples
    --------
    >>> from ranktrees.rows.sampling import rows_to_cut
    >>> from ranktrees.processes.sharing import Share
    >>> len(rows_to_cut(Share.alone([0, 100_000]), 100_000, 1000))
    999
    """
    if n_drawn is None or share.n_rows <= n_drawn:
        return None
    among = None if weights is None else weights > 0
    n_of_all = share.communicator.allreduce(np.array([n_rows if among is None else among.sum()]))[0]
    if n_of_all <= n_drawn:
        return None
    marks, (drawn, left_out) = _marks_for(n_rows), np.empty((2, n_rows), np.uint32)
    among = None if among is None else among.view(np.uint8)
    rows = share.row_numbers, among, marks, drawn, left_out
    n = sampling.draw_below(0, STREAM_OF_CUTS, n_drawn / n_of_all, *rows, threads_for(n_threads, n_rows))
    return drawn[:n].astype(np.intp)


def _marks_for(n: int) -> np.ndarray:
    """Allocate words of 64 bits, with one bit for each of n."""
    return np.empty(-(-n // 64), np.uint64)


class Bootstrap:
    """Draws how many times each row is used by a tree, by (seed, tree, draw).

    Parameters
    ----------
    offsets : ndarray of int64
        The offsets of the queries.
    unit : {"row", "query"} or None
        Whether rows or whole queries are drawn with replacement. If None, every row is taken once.
    n_draws : int or None
        The number of draws for each tree. If None, as many as there are units.
    seed : int
    """

    def __init__(self, offsets: np.ndarray, unit: str, n_draws: int | None, seed: int) -> None:
        self.offsets = offsets
        self.unit = unit
        self.n_draws = n_draws
        self.seed = seed

    def times(self, tree: int) -> np.ndarray:
        """Return how many times each row is drawn for a tree: uint32[n_rows]."""
        n_rows = int(self.offsets[-1])
        if self.unit is None:
            return np.ones(n_rows, np.uint32)
        n_units = n_rows if self.unit == "row" else len(self.offsets) - 1
        times = np.zeros(n_units, np.uint32)
        purpose = ROWS if self.unit == "row" else QUERIES
        sampling.draws(
            self.seed, stream(tree, purpose), times, n_units if self.n_draws is None else self.n_draws
        )
        return times if self.unit == "row" else np.repeat(times, np.diff(self.offsets))


def hold_out(
    data: FitData,
    fraction: float,
    seed: int,
    instead: str = "pass X_val, y_val and qid_val, or set early_stopping=False",
) -> tuple[FitData, FitData]:
    """Set a share of the queries apart, whole; or of the rows, if the data have no queries.

    Parameters
    ----------
    data : FitData
    fraction : float
        The share of the queries (or rows). At least one is held out, and at least one is left.
    seed : int
    instead : str
        What to do if nothing can be held out, for the error message.

    Returns
    -------
    train, held_out : FitData
        Data over the same ``X``, with fewer rows in ``order``. Messages tell their labels apart.

    Raises
    ------
    ValueError
        If there is only one query (or row), or if all rows with a positive weight are on one side.
    """
    share = data.share
    by_query = data.qid_given or data.preferences is not None
    offsets = data.offsets if by_query else np.arange(data.n_rows + 1)
    n_units = len(offsets) - 1
    if not share.communicator.alone:
        n_units = share.n_queries if by_query else share.n_rows
    numbers = share.query_numbers if by_query else share.row_numbers
    if n_units < 2:
        raise ValueError(
            f"validation_fraction={fraction:g} holds out {'whole queries' if by_query else 'rows'}, but X "
            f"holds only one{'' if by_query else ' (n_samples=1)'}; {instead}."
        )
    uniforms = np.empty(n_units)
    sampling.uniforms(seed, stream(0, HELD_OUT), uniforms)
    n_held_out = min(max(1, round(fraction * n_units)), n_units - 1)
    held_out = np.zeros(n_units, bool)
    held_out[np.argsort(uniforms, kind="stable")[:n_held_out]] = True
    held_out_here = held_out if numbers is None else held_out[numbers]
    sides = (~held_out_here, ~held_out), (held_out_here, held_out)
    train, rest = (_keep(data, offsets, *units, by_query=by_query) for units in sides)
    if data.weights is not None:
        weighs = np.array([train.weights.any(), rest.weights.any()], np.int64)
        if not share.communicator.allreduce(weighs, "max").all():
            side = "holds out" if weighs[0] else "leaves to learn from"
            raise ValueError(
                f"sample_weight is zero for all rows that validation_fraction={fraction:g} {side}; expected "
                "rows of positive weight on both sides: change validation_fraction or random_state, or "
                f"{instead}."
            )
    return train, replace(rest, y_name=f"{data.y_name} held out")


def _keep(
    data: FitData, offsets: np.ndarray, units: np.ndarray, units_of_all: np.ndarray, *, by_query: bool
) -> FitData:
    sizes = np.diff(offsets)
    rows = np.flatnonzero(np.repeat(units, sizes))
    queries = sizes[units] if by_query else [len(rows)]
    offsets = np.concatenate([[0], np.cumsum(queries)]).astype(np.int64)
    return replace(
        data,
        narrow_labels=None if data.narrow_labels is None else data.narrow_labels[rows],
        weights=None if data.weights is None else data.weights[rows],
        preferences=None if data.preferences is None else data.preferences.among(rows, data.n_rows),
        positions=None if data.positions is None else data.positions[rows],
        order=rows if data.order is None else data.order[rows],
        offsets=offsets,
        share=data.share.subset(offsets, units, units_of_all, by_query=by_query),
    )
