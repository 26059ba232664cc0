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
N_REPEATS = 5
RUN = np.dtype(
    [
        ("ms", np.float64, (N_REPEATS,)),
        ("bytes", np.float64, (len(CALLS),)),
        ("messages", np.float64, (len(CALLS),)),
        ("meetings", np.float64),
        ("lines", np.float64),
        ("splits", np.float64),
    ]
)


@contextmanager
def by_call(communicator):
    """What each kind of call adds to the traffic inside, by kind: "bytes", "messages", "agreements"."""
    sent = {call: Counter() for call in CALLS}

    def watched(call, plain):
        def watching(*args, **more):
            before = Counter(communicator.traffic)
            value = plain(*args, **more)
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


def grown(communicator, rows, model, n_trees):
    """What a rank does, with its rows: fit a tree, and so many more; the difference, divided, is a tree's.

    Parameters
    ----------
    communicator : Communicator
    rows : Rows
    model : estimator
        Of trees that grow layer by layer to ``max_depth``.
    n_trees : int

    Returns
    -------
    run : ndarray of RUN, shape ()
        Of a tree, the mean: "ms" in each repeat, "bytes", "messages" and "meetings" of this rank, histograms
        that are sent ("lines"), and "splits".
    """
    models = [clone(model).set_params(max_iter=n) for n in (1, 1 + n_trees)]
    run = np.zeros((), RUN)
    with training_with(communicator):
        sent = []
        for each in models:  # before the clock starts
            with by_call(communicator) as calls:
                each.fit(rows.X, rows.y, qid=rows.qid)
            sent.append(calls)
        for repeat in range(N_REPEATS):
            one, many = (_seconds(each, rows) for each in models)
            run["ms"][repeat] = 1000 * (many - one) / n_trees
    one, many = sent
    for place, call in enumerate(CALLS):
        for field in ("bytes", "messages"):
            run[field][place] = (many[call][field] - one[call][field]) / n_trees
        run["meetings"] += (many[call]["agreements"] - one[call]["agreements"]) / n_trees
    run["lines"], run["splits"] = np.mean([sizes(tree, model) for tree in _trees(models[1])[1:]], axis=0)
    return run


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
    """A `RUN` of one process."""
    return grown(ALONE, rows, clone(model).set_params(n_jobs=n_threads), n_trees)


def on_ranks(n_ranks, rows, *args, work=grown):
    """What ``work`` returns on the first of so many ranks of one thread each, such as a `RUN`."""
    import ranktrees.mpi  # noqa: F401  registers the backend

    with joblib.parallel_config("mpi", n_ranks=n_ranks):
        return driver().run_rows(work, sets.shards(rows, n_ranks), *args)[0]
