"""One fit on threads or ranks: its time, and what a rank sends, by the kind of call."""

import time
from collections import Counter
from contextlib import contextmanager

import joblib
import numpy as np
from sklearn.base import clone

from ranktrees.communicator import ALONE, driver, training_with
from ranktrees.growing.grower import TreeGrower
from ranktrees.growing.over_ranks import CoarseOverRanks, FullOverRanks, LinesOverRanks

from . import sets

CALLS = ("reduce_scatter", "allreduce", "allgather", "stack", "alltoall")
N_REPEATS = 3
CELLS = 256  # of a feature whose bins are filled, in as many places
WORD = 64  # bits
SENT = np.dtype(
    [
        ("bytes", np.float64, (len(CALLS),)),
        ("messages", np.float64, (len(CALLS),)),
        ("meetings", np.float64),
        ("computed", np.float64),
        ("lines", np.float64),
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
        together ("lines"), and the bytes of sums "computed" from what ranks say of them.
    """
    models, traffic, computed = _one_and_many(model, n_trees), [], []
    with training_with(communicator):
        for each in models:
            with by_call(communicator) as calls, computing_sums(communicator) as n_bytes:
                each.fit(rows.X, rows.y, qid=rows.qid)
            traffic.append(calls)
            computed.append(sum(n_bytes))
    one, many = traffic
    sent = np.zeros((), SENT)
    for place, call in enumerate(CALLS):
        for field in ("bytes", "messages"):
            sent[field][place] = (many[call][field] - one[call][field]) / n_trees
        sent["meetings"] += (many[call]["agreements"] - one[call]["agreements"]) / n_trees
    sent["computed"] = (computed[1] - computed[0]) / n_trees
    sent["lines"] = np.mean([n_lines(tree, model) for tree in _trees(models[1])[1:]])
    return sent


@contextmanager
def computing_sums(communicator):
    """The bytes of each sum that a rank sends inside, computed from what ranks say of it before.

    Trees grow step by step, so that what is summed can be watched.
    """
    found, here = [], {}

    def grow(grower, *args, **more):
        here.update(search=grower.search, bins=False)
        return plain[TreeGrower, "grow"](grower, *args, **more)

    def of_bins(place):
        def summing(*args):
            here["bins"] = True
            value = plain[place](*args)
            here["bins"] = False
            return value

        return summing

    def stack(array, a_sum_follows=False):
        told = saying(array, a_sum_follows)
        if a_sum_follows:
            found.append(bytes_of_sums(here["search"], told.sum(axis=0), here["bins"]))
        return told

    settle, find_in_all_rows = (CoarseOverRanks, "settle"), (LinesOverRanks, "find_in_all_rows")
    watched = {
        (TreeGrower, "grow"): grow,
        settle: of_bins(settle),
        find_in_all_rows: of_bins(find_in_all_rows),
    }
    plain, saying = {place: getattr(*place) for place in watched}, communicator.stack
    for place, function in watched.items():
        setattr(*place, function)
    CoarseOverRanks.in_one_call, communicator.stack = False, stack
    try:
        yield found
    finally:
        del CoarseOverRanks.in_one_call
        communicator.stack = saying
        for place, function in plain.items():
            setattr(*place, function)


def bytes_of_sums(search, largest, of_bins):
    """Of lines or of bins of features, by the sizes of their largest numbers, above and below."""
    bits = [
        (above > 0 and not lane) + int(above).bit_length() + int(below).bit_length()
        for line in largest
        for lane, (above, below) in enumerate(line)
    ]
    if isinstance(search, FullOverRanks) and not of_bins:
        return bytes_of(search, bits, search.first_cells)
    return 2 * bytes_of(search, bits, [0, CELLS if of_bins else search.packing.n_cells])


def bytes_of(search, bits, ends):
    """Of sums of so many bits, as many in a word as fit: what a rank sends if each gets a part."""
    size = search.communicator.size
    words = sum(n_words(int(n), min(WORD, max(width, 1)), size) for width in bits for n in np.diff(ends))
    return 8 * words * (size - 1) / size


def n_words(n_sums, width, size):
    """Sums lie side by side; what is left of a word, less what slices carry, takes a slice of another."""
    slice_bits = WORD % width - (size - 1).bit_length()
    per_word = WORD // width
    in_slices = n_sums // (per_word * -(-width // slice_bits) + 1) if slice_bits > 0 else 0
    return -(-(n_sums - in_slices) // per_word)


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


def n_lines(nodes, model):
    """Histograms that are put together for a tree: of the root, and of a child of each split."""
    depth = np.zeros(len(nodes), int)
    splits = np.flatnonzero(nodes["feature"] >= 0)
    for node in splits:
        depth[nodes["left"][node]] = depth[nodes["right"][node]] = depth[node] + 1
    larger = np.maximum(nodes["count"][nodes["left"][splits]], nodes["count"][nodes["right"][splits]])
    goes_on = (depth[splits] + 1 < model.max_depth) & (larger >= 2 * model.min_samples_leaf)
    return 1 + np.count_nonzero(goes_on)


def on_threads(n_threads, rows, model, n_trees):
    """What `timed` returns in one process."""
    return timed(ALONE, rows, clone(model).set_params(n_jobs=n_threads), n_trees)


def on_ranks(n_ranks, work, rows, *args):
    """What ``work(communicator, rows, *args)`` returns on each of so many ranks of one thread each."""
    import ranktrees.mpi  # noqa: F401  registers the backend

    with joblib.parallel_config("mpi", n_ranks=n_ranks):
        return driver().run_rows(work, sets.shards(rows, n_ranks), *args)
