"""One fit on threads or ranks: its time, and what a rank sends, by the kind of call."""

import time
from collections import Counter
from contextlib import contextmanager

import joblib
import numpy as np
from sklearn.base import clone

from ranktrees._core.growing.words import Words
from ranktrees.growing import over_ranks
from ranktrees.processes.communicator import ALONE, driver, training_with

from . import sets

CALLS = ("reduce_scatter", "allreduce", "allgather", "stack", "alltoall")
N_REPEATS = 3
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
    """What a rank sends for a tree, as if to another machine, by fits of one and of so many more.

    Parameters
    ----------
    communicator : MPICommunicator
    rows : Rows
        Of this rank.
    model : estimator
        Of trees that grow layer by layer to ``max_depth``.
    n_trees : int

    Returns
    -------
    sent : ndarray of SENT, shape ()
        The mean of these trees: "bytes", "messages" and "meetings" of this rank, histograms that are put
        together ("lines"), and the bytes of sums "computed" from what ranks know of them.
    """
    communicator = communicator.by_messages()
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
    """The bytes of each sum that a rank sends inside, computed from what ranks know of it before."""
    found, saying = [], communicator.stack

    class Computed(Words):
        times = 1  # what a rank sends, by what it does where each gets a part

        def begin(self, bits):
            self.bits_below = bits
            super().begin(bits)

        def add_up(self, *args):
            self.times = 2
            super().add_up(*args)
            self.times = 1

        def pack(self, lines, places, lanes, ends):
            def stack(array, n_sums):
                told = saying(array, n_sums)
                found.append(self.times * bytes_of_sums(told.sum(axis=0), ends, communicator.size))
                return told

            communicator.stack = stack
            try:
                return super().pack(lines, places, lanes, ends)
            finally:
                communicator.stack = saying

        def add_up_within(self, lines, places, known, within, width, gradients):
            cells = [known[k, first : first + width] for k, first in np.asarray(within)]
            largest = largest_expected(cells, gradients, self.bits_below, communicator.size)
            fits = part_sent(8, communicator.size)
            found.append(2 * (bytes_of_sums(largest, [0, lines.shape[1]], communicator.size) + fits))
            super().add_up_within(lines, places, known, within, width, gradients)

    over_ranks.Words = Computed
    try:
        yield found
    finally:
        over_ranks.Words = Words


def largest_expected(known, gradients, bits, size):
    """What the largest numbers of lines are taken to be, above and below, by cells of more rows."""
    more = 1 + ((size - 1).bit_length() + 1) // 2
    known = np.reshape(known, (len(known), -1))
    above = np.abs(known >> bits).max(axis=1, initial=0)
    below = (known & (1 << bits) - 1).max(axis=1, initial=0)
    return np.stack([(np.maximum(above, np.abs(gradients)) + 1) << more, below], axis=1)[:, None]


def bytes_of_sums(largest, ends, size):
    """What a rank sends of lines if each gets a part, by how large their numbers are, above and below."""
    bits = [
        (above > 0 and not lane) + int(above).bit_length() + int(below).bit_length()
        for line in largest
        for lane, (above, below) in enumerate(line)
    ]
    words = sum(n_words(int(n), min(WORD, max(width, 1)), size) for width in bits for n in np.diff(ends))
    return part_sent(8 * words, size)


def part_sent(n_bytes, size):
    """What a rank sends of so many bytes, if each gets a part."""
    return n_bytes * (size - 1) / size


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
