"""Choose the search for splits: the one that ``split_search`` asks for, if features and ranks allow it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.binning.edges import MOST_BINS
from ranktrees.growing.over_ranks import search_over_ranks
from ranktrees.growing.packing import COARSE_CELLS, LongCodes, coarse_packing, full_packing
from ranktrees.growing.searching import CoarseToFine, DirectSearch, FullSearch, StreamingSearch
from ranktrees.processes.communicator import ALONE

if TYPE_CHECKING:
    from ranktrees.binning.mapper import BinMapper
    from ranktrees.growing.constraints import Constraints
    from ranktrees.processes.communicator import Communicator

# "auto" searches coarsely first if there are at least this many features, and each split considers at least
# this share of them. For fewer features, going through the rows of a leaf is faster than adding up the cells
# of all. With few bins a feature, as flags and words have, cells save nothing, and leaves keep lines of all
# bins also if they draw some features only.
MANY_FEATURES = 64
LEAST_SHARE = 1 / 8
FEW_CELLS = COARSE_CELLS / 2  # for each feature, on average
STREAMING = ("streaming", "pgbrt")  # by streaming histograms; the first has splits confirmed by the rows


def searches(
    split_search: str,
    codes: Any,
    mapper: BinMapper,
    constraints: Constraints,
    n_threads: int,
    ranks: Communicator = ALONE,
    max_bins: int = MOST_BINS,
    deep: bool = False,
    counts: np.ndarray | None = None,
) -> Callable[..., Any]:
    """Return a function that makes searches over the same codes. What they share is made once.

    Parameters
    ----------
    split_search : {"auto", "full", "coarse_to_fine", "exact", "streaming", "pgbrt"}
        "exact" is "full" with a bin for each distinct value. Those in `STREAMING` also need a bin for each
        distinct value, and a mapper that has the ``values`` of the codes.
    codes : ndarray of uint8 or uint32, shape (n_rows, n_features), feature by feature
    mapper : BinMapper
    constraints : Constraints
    n_threads : int
    ranks : Communicator
        The ranks that search together.
    max_bins : int, default=255
        The most centroids of a streaming histogram.
    deep : bool, default=False
        Whether trees may have any number of leaves, so that most leaves are small. For small leaves, long
        codes row by row pay.
    counts : ndarray of int64, shape (n_features, 256), default=None
        The `counts_of` codes of one byte, over all ranks. If None, there are no other ranks.

    Returns
    -------
    make_search : callable
        Takes constraints, prices, order, sums and Sizes, as `Search` does.

    Raises
    ------
    ValueError
        If a coarse or streaming search is asked for, and a feature is categorical or two splits are to be
        judged together. If a streaming search is asked for, and scores are to rise or fall with a feature. If
        ranks train together, and a feature of an exact search has more than 255 bins.
    """
    three_way = constraints.missing == "three_way"
    categorical = mapper.is_categorical[constraints.usable].any()
    if split_search == "coarse_to_fine" and categorical:
        raise ValueError(
            'split_search="coarse_to_fine" joins neighbouring bins, but categories have no neighbours; use '
            'split_search="auto" or "full", or set categorical_features=None.'
        )
    if split_search == "coarse_to_fine" and three_way:
        raise ValueError(
            'split_search="coarse_to_fine" evaluates one split at a time, but handle_missing="three_way" '
            'needs two together; use split_search="auto", "full" or "exact", or another handle_missing.'
        )
    if split_search in STREAMING:
        _check_streaming(split_search, categorical, three_way, constraints.monotone is not None)
    n_features = len(constraints.usable)
    few_cells = (mapper.n_bins[constraints.usable] + 1).sum() <= FEW_CELLS * n_features
    if split_search == "auto":
        many = (
            n_features >= MANY_FEATURES
            and (constraints.max_features or n_features) >= LEAST_SHARE * n_features
        )
        coarse = many and not few_cells and not categorical and not three_way
        split_search = "coarse_to_fine" if coarse else "full"
    if not ranks.alone and codes.itemsize > 1 and split_search not in STREAMING:
        raise ValueError(
            f"split_search={split_search!r} tries every distinct value, and ranks that train together "
            "cannot exchange them all. Use another split_search, or train in one process."
        )
    kind: Any
    layout: Any
    if not len(constraints.usable):
        kind, layout = DirectSearch, None
    elif split_search in STREAMING:
        kind, layout = StreamingSearch, (max_bins, split_search == "pgbrt")
    elif split_search == "coarse_to_fine":
        kind, layout = CoarseToFine, coarse_packing(codes, mapper, constraints.usable, n_threads, counts)
    elif codes.itemsize > 1:
        kind, layout = DirectSearch, LongCodes(codes) if deep else None
    else:
        by_lines = few_cells and n_features >= MANY_FEATURES and not deep and constraints.groups is None
        kind = DirectSearch if constraints.draws_features and ranks.alone and not by_lines else FullSearch
        layout = full_packing(codes, mapper, constraints.usable, n_threads, counts)
    if not ranks.alone:
        kind = search_over_ranks(kind, ranks)
    return partial(kind, codes, mapper, layout)


def _check_streaming(split_search: str, categorical: Any, three_way: bool, monotone: bool) -> None:
    reason = None
    if categorical:
        reason = "takes means of values, but categories have none"
    elif three_way:
        reason = 'evaluates one split at a time, but handle_missing="three_way" needs two together'
    elif monotone:
        reason = "compares splits by estimates, which may violate monotonic_cst"
    if reason:
        raise ValueError(
            f'split_search="{split_search}" {reason}; use split_search="auto", "full" or "exact", or leave '
            "out what conflicts with it."
        )
