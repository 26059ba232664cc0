"""The forest loop: trees that are grown independently on bootstrap samples, and then averaged.

Breiman, *Random forests*, 2001; for ranking: Mohan, *An empirical analysis on point-wise machine learning
techniques using regression trees for web-search ranking*, 2010, chapter 2.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from ranktrees.model.costs import used_features
from ranktrees.model.ensemble import Trees
from ranktrees.processes.communicator import ALONE
from ranktrees.support.ordered import in_order
from ranktrees.training.callbacks import Progress

if TYPE_CHECKING:
    from ranktrees.growing.grower import TreeGrower
    from ranktrees.model.costs import Prices
    from ranktrees.model.ensemble import Ensemble
    from ranktrees.processes.communicator import Communicator
    from ranktrees.rows.data import FitData
    from ranktrees.rows.sampling import Bootstrap


def grow_forest(
    make_grower: Callable[[], TreeGrower],
    data: FitData,
    base: float,
    *,
    trees: range,
    bootstrap: Bootstrap,
    prices: Prices,
    stage_size: int,
    used_in_stage: np.ndarray,
    seed: int,
    n_jobs: int,
    communicator: Communicator = ALONE,
    out_of_bag: OutOfBag | None = None,
    callbacks: Sequence[Callable[[Progress], Any]] = (),
    ensemble_of: Callable[[Trees], Ensemble],
) -> Trees:
    """Grow trees in parallel, each on its own bootstrap sample.

    A tree is the first step of boosting from ``base`` with the squared error: its leaves hold the mean of
    ``label - base``.

    Parameters
    ----------
    make_grower : callable
        Makes a TreeGrower with prices of its own. Trees that grow at the same time share no buffers.
    data : FitData
    base : float
    trees : range
        The numbers of the trees to grow.
    bootstrap : Bootstrap
    prices : Prices
        The prices of features. They stay the same for ``stage_size`` trees. Then all features that these have
        used are free.
    stage_size : int
    used_in_stage : ndarray of bool, shape (n_features,)
        The features used by earlier trees of the stage to which the first tree belongs.
    seed, n_jobs : int
    communicator : Communicator
        The ranks to which trees are dealt. All of them have all rows.
    out_of_bag : OutOfBag or None
        Where the values are added that trees give to rows they were not grown from, if they are wanted.
    callbacks : sequence of callables
        Each is called with a Progress per tree. Any may ask to stop by returning True.
    ensemble_of : callable
        Makes an Ensemble of the new trees, `Trees`.

    Returns
    -------
    Trees
    """
    idle: list[TreeGrower] = []  # growers; as many are made as trees grow at the same time
    grown, used, stopped = Trees(len(trees)), used_in_stage.copy(), False

    def grow(numbers: Iterable[int]) -> Iterator[Any]:
        grow_one = partial(
            _grow_one, make_grower, idle, prices, data, base, bootstrap, seed, out_of_bag is not None
        )
        grown_by = _in_parallel if communicator.alone else in_order
        return grown_by(n_jobs, grow_one, numbers)

    def until_stopped(numbers: Iterable[int]) -> Iterator[int]:
        return itertools.takewhile(lambda _: not stopped, numbers)

    for _, stage in itertools.groupby(trees, lambda tree: tree // stage_size):
        for (nodes, bitsets), rows, values in _dealt(communicator, n_jobs, grow, until_stopped(stage)):
            if stopped:
                continue
            grown.append(nodes, bitsets)
            if out_of_bag is not None:
                out_of_bag.add(rows, values)
            if not prices.all_free:
                used |= used_features(nodes, len(used))
            progress = Progress(trees.start + len(grown), trees.stop, None, None, lambda: ensemble_of(grown))
            stops = [callback(progress) for callback in callbacks]
            stopped = any(stops)
        if not prices.all_free:
            prices.use(used)
    return grown


class OutOfBag:
    """The values that trees give to rows they were not grown from.

    Parameters
    ----------
    n_rows : int

    Attributes
    ----------
    sums : ndarray of float64, shape (n_rows,)
        The values, added in the order of the trees.
    counts : ndarray of int64, shape (n_rows,)
        The number of trees for which the row is out of bag.
    """

    def __init__(self, n_rows: int) -> None:
        self.sums, self.counts = np.zeros(n_rows), np.zeros(n_rows, np.int64)

    def add(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Add the values of the next tree for rows that it was not grown from."""
        self.sums[rows] += values
        self.counts[rows] += 1

    def scores(self, base: float) -> np.ndarray:
        """Return the mean value of each row above ``base``: float64[n_rows], NaN if no tree left it out."""
        scores = np.full(len(self.sums), np.nan)
        np.divide(self.sums, self.counts, out=scores, where=self.counts > 0)
        return base + scores


def _in_parallel(n_jobs: int, function: Callable[[int], Any], numbers: Iterable[int]) -> Iterator[Any]:
    """Yield ``function(number)`` for each, in their order, from threads or the active joblib backend.

    joblib's own threads may outlive an interrupt; see `in_threads`.
    """
    backend, _ = get_active_backend(prefer="threads")
    if getattr(backend, "supports_sharedmem", False):
        n_jobs = backend.effective_n_jobs(n_jobs)
    elif backend.supports_return_generator:
        return _by_joblib(n_jobs, function, numbers)
    return in_order(n_jobs, function, numbers)


def _by_joblib(n_jobs: int, function: Callable[[int], Any], numbers: Iterable[int]) -> Iterator[Any]:
    work = (joblib.delayed(function)(number) for number in numbers)
    results = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(work)
    try:
        for result in results:  # noqa: UP028 ("yield from" would close them itself)
            yield result
    finally:
        with warnings.catch_warnings():
            # if the fit is interrupted, joblib warns of trees that it has begun
            warnings.simplefilter("ignore", UserWarning)
            results.close()


def _dealt(
    communicator: Communicator, n_jobs: int, grow: Callable[..., Any], trees: Iterable[int]
) -> Iterator[tuple[tuple[Any, ...], np.ndarray, np.ndarray]]:
    """Yield what ``grow`` yields for each tree, in their order. Each rank grows some, and all ranks get all.

    Between two exchanges, a rank grows as many trees as the rank with most threads has threads.
    """
    if communicator.alone:
        yield from grow(trees)
        return
    size = communicator.size
    most = int(communicator.allreduce(np.array([n_jobs]), "max")[0])
    while together := list(itertools.islice(trees, size * most)):
        communicator.at(f"tree {together[0] + 1}")
        gathered = communicator.allgather(list(grow(together[communicator.rank :: size])))
        for k in range(len(together)):
            yield gathered[k % size][k // size]


def _grow_one(
    make_grower: Callable[[], TreeGrower],
    idle: list[TreeGrower],
    prices: Prices,
    data: FitData,
    base: float,
    bootstrap: Bootstrap,
    seed: int,
    out_of_bag: bool,
    tree: int,
) -> tuple[tuple[Any, ...], np.ndarray, np.ndarray]:
    try:
        grower = idle.pop()
    except IndexError:
        grower = make_grower()
    grower.prices.set_to(prices)
    times = bootstrap.times(tree)
    hessians = times.astype(np.float64)
    if data.weights is not None:
        hessians *= data.weights
    grown = grower.grow(
        (base - data.labels) * hessians,
        hessians,
        np.flatnonzero(times).astype(np.uint32),
        seed=seed,
        tree=tree,
    )
    left_out = np.flatnonzero(times == 0).astype(np.uint32) if out_of_bag else np.empty(0, np.uint32)
    scores = np.zeros(len(times))
    grown.walk(grown.values, grower.mapper, grower.codes, left_out.copy(), scores)
    finished = grown.tree(grown.values, grower.mapper)
    idle.append(grower)
    return finished, left_out, scores[left_out]
