"""One fit on threads or ranks: its time, and what a rank sends, by the kind of call."""

import time
from collections import Counter
from contextlib import contextmanager

import joblib
import numpy as np
from sklearn.base import clone

from ranktrees.communicator import ALONE, driver, training_with

from . import sets

CALLS = ("reduce_scatter", "allreduce", "allgather", "alltoall")
N_REPEATS = 3
SENT = np.dtype(
    [
        ("bytes", np.float64, (len(CALLS),)),
        ("messages", np.float64, (len(CALLS),)),
        ("meetings", np.float64),
        ("lines", np.float64),
        ("splits", np.float64),
    ]
)


@contextmanager
def by_call(communicator):
    """What each kind of call adds up to inside: "bytes", "messages", "agreements", and CPU "seconds"."""
    sent = {call: Counter() for call in CALLS}

    def watched(call, plain):
        def watching(*args, **more):
            before, started = Counter(communicator.traffic), time.process_time()
            value = plain(*args, **more)
            sent[call]["seconds"] += time.process_time() - started
            sent[call].update(communicator.traffic - before)
            return value

        return watching

    for call in CALLS:
        setattr(communicator, call, watched(call, getattr(communicator, call)))
    try:
        yield sent
    finally:
        for call in CALLS:
            delattr(communicator, call)


def timed(communicator, rows, model, n_trees):
    """Milliseconds of a tree: of so many more less one, divided, the fastest fit of each."""
    with training_with(communicator):
        return _of_a_tree(lambda each: _seconds(each, rows), model, n_trees)


def counted(communicator, rows, model, n_trees):
    """What a rank sends for a tree, by fits of one and of so many more.

    Parameters
    ----------
    communicator : Communicator
    rows : Rows
        Of this rank.
    model : estimator
        Of trees that grow layer by layer to ``max_depth``.
    n_trees : int

    Returns
    -------
    sent : ndarray of SENT, shape ()
        The mean of these trees: "bytes", "messages" and "meetings" of this rank, histograms that are put
        together ("lines"), and "splits".
    """
    models, traffic = _one_and_many(model, n_trees), []
    with training_with(communicator):
        for each in models:
            with by_call(communicator) as calls:
                each.fit(rows.X, rows.y, qid=rows.qid)
            traffic.append(calls)
    one, many = traffic
    sent = np.zeros((), SENT)
    for place, call in enumerate(CALLS):
        for field in ("bytes", "messages"):
            sent[field][place] = (many[call][field] - one[call][field]) / n_trees
        sent["meetings"] += (many[call]["agreements"] - one[call]["agreements"]) / n_trees
    sent["lines"], sent["splits"] = np.mean([sizes(tree, model) for tree in _trees(models[1])[1:]], axis=0)
    return sent


def computing(communicator, rows, model, n_trees):
    """CPU milliseconds of this rank for a tree, its calls to other ranks left out."""
    with training_with(communicator):
        return _of_a_tree(lambda each: _computing(communicator, each, rows), model, n_trees)


def _of_a_tree(fit, model, n_trees):
    taken = [[fit(each) for each in _one_and_many(model, n_trees)] for _ in range(1 + N_REPEATS)]
    one, many = np.min(taken[1:], axis=0)  # the first starts threads
    return 1000 * (many - one) / n_trees


def _computing(communicator, model, rows):
    with by_call(communicator) as calls:
        started = time.process_time()
        model.fit(rows.X, rows.y, qid=rows.qid)
        taken = time.process_time() - started
    return taken - sum(call["seconds"] for call in calls.values())


def _one_and_many(model, n_trees):
    return [clone(model).set_params(max_iter=n) for n in (1, 1 + n_trees)]


def _seconds(model, rows):
    started = time.perf_counter()
    model.fit(rows.X, rows.y, qid=rows.qid)
    return time.perf_counter() - started


def _trees(model):
    ensemble = model.ensemble_
    return np.split(ensemble.nodes, ensemble.tree_offsets[1:-1])


def sizes(nodes, model):
    """(histograms that ranks put together, splits) of a tree: by the root, and by a child of each split."""
    depth = np.zeros(len(nodes), int)
    splits = np.flatnonzero(nodes["feature"] >= 0)
    for node in splits:
        depth[nodes["left"][node]] = depth[nodes["right"][node]] = depth[node] + 1
    larger = np.maximum(nodes["count"][nodes["left"][splits]], nodes["count"][nodes["right"][splits]])
    goes_on = (depth[splits] + 1 < model.max_depth) & (larger >= 2 * model.min_samples_leaf)
    return 1 + np.count_nonzero(goes_on), len(splits)


def on_threads(n_threads, rows, model, n_trees):
    """What `timed` returns in one process."""
    return timed(ALONE, rows, clone(model).set_params(n_jobs=n_threads), n_trees)


def on_ranks(n_ranks, work, rows, *args):
    """What ``work(communicator, rows, *args)`` returns on each of so many ranks of one thread each."""
    import ranktrees.mpi  # noqa: F401  registers the backend

    with joblib.parallel_config("mpi", n_ranks=n_ranks):
        return driver().run_rows(work, sets.shards(rows, n_ranks), *args)
