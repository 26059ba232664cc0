"""Ranks that train together, each with rows of its own: what they say to each other.

A *rank* is one of ``size`` processes. All of them run the same code and come to the same calls; every call
below is made by all. One process is a rank alone: it says nothing, and all calls return at once.

    rank 0   rows of some queries ---.
    rank 1   rows of others    ------+--- sums of integers ---> the same tree on each
    rank 2   none              ------'

What is summed is integers, so that no result depends on who adds what to what, or when.
"""

import threading
from collections import Counter
from contextlib import contextmanager
from numbers import Real

import numpy as np
from joblib.parallel import get_active_backend

from ranktrees._core import exact
from ranktrees.spelling import readable, spelt

LONGEST_TIMEOUT = 1e9  # seconds


class RankError(RuntimeError):
    """Training together has failed on some rank: the message names the rank and the step.

    Examples
    --------
    >>> from ranktrees.communicator import RankError
    >>> raise RankError("rank 1 failed at tree 3: ValueError: boom")
    Traceback (most recent call last):
    ...
    ranktrees.communicator.RankError: rank 1 failed at tree 3: ValueError: boom
    """


def checked_timeout(timeout):
    """The number of seconds, if it is one."""
    if not isinstance(timeout, Real) or not 0 < timeout <= LONGEST_TIMEOUT:
        raise ValueError(
            f"timeout={timeout!r}; expected a number of seconds above 0, at most {LONGEST_TIMEOUT:g}."
        )
    return float(timeout)


def cause_of(errors):
    """The error to raise where ranks have failed together: the first that is no echo of another rank's.

    Parameters
    ----------
    errors : list of Exception
        Of ranks, in their order.

    Returns
    -------
    error : Exception

    Examples
    --------
    >>> from ranktrees.communicator import RankError, cause_of
    >>> cause_of([RankError("rank 1 failed"), KeyError("boom")])
    KeyError('boom')
    """
    return next((error for error in errors if not isinstance(error, RankError)), errors[0])


class Communicator:
    """A rank alone, and the base of those that have others.

    Arrays are C-contiguous; those that are summed hold int64. A derived class defines ``rank``, ``size`` and
    the methods that begin with an underscore, which are called only where there are others.

    Attributes
    ----------
    rank, size : int
    step : str
        Where training is, for messages.
    traffic : Counter
        "messages" and "bytes" that this rank has sent, by what the collective needs at least: of n bytes on P
        ranks a sum that all get is ``2 n (P - 1) / P``, one that each gets a part of ``n (P - 1) / P``.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.communicator import Communicator
    >>> alone = Communicator()
    >>> alone.allreduce(np.array([1, 2])), alone.allgather("x")
    (array([1, 2]), ['x'])
    """

    rank = 0
    size = 1

    def __init__(self):
        self.step = ""
        self._told = None
        self._n_to_come = 0  # sums before which ranks do not meet
        self.traffic = Counter()

    @property
    def alone(self):
        """Whether there are no others."""
        return self.size == 1

    def at(self, step):
        """Say where training is: messages of failures name it."""
        self.step = step

    def allreduce(self, array, op="sum", met=False):
        """Put together what all ranks have in ``array``, element by element, in place.

        Parameters
        ----------
        array : ndarray of int64 or float64
            Of the same size on all ranks. Float64 for "max" and "min" only: sums of floats have an order.
        op : {"sum", "max", "min"}
        met : bool, default=False
            Whether all have met, and said by ``n_sums`` of `stack` that this may come, and know its size:
            then they need not meet once more.

        Returns
        -------
        array : ndarray
            The same one.
        """
        if array.dtype != np.int64 and (op == "sum" or array.dtype != np.float64):
            raise TypeError(
                f"cannot take the {op} of {array.dtype}: expected int64, or float64 for max and min."
            )
        if not self.alone:
            self._announced(met)
            self._count(2 * array.nbytes * (self.size - 1) / self.size)
            self._allreduce(array, op, met)
        return array

    def sums(self, *numbers):
        """The sum over all ranks of each of some ints."""
        return numbers if self.alone else tuple(self.allreduce(np.array(numbers, np.int64)).tolist())

    def reduce_scatter(self, array, counts, met=False):
        """The sum over all ranks of this rank's part.

        Parameters
        ----------
        array : ndarray of int64
            The parts of rank 0, 1, ..., one after the other.
        counts : sequence of int
            How long the parts are.
        met : bool, default=False
            As for `allreduce`.

        Returns
        -------
        part : ndarray of int64, shape (counts[rank],)
        """
        if array.dtype != np.int64 or sum(counts) != array.size:
            raise TypeError(
                f"cannot scatter sums of {array.size} {array.dtype} in parts of {list(counts)}; expected "
                "int64, and parts that are the whole."
            )
        if self.alone:
            return array
        self._announced(met)
        self._count(array.nbytes * (self.size - 1) / self.size)
        return self._reduce_scatter(array, counts, met)

    def stack(self, array, n_sums=0):
        """What all ranks have in ``array``, in the order of ranks.

        Parameters
        ----------
        array : ndarray
            Of the same shape and type on all ranks.
        n_sums : int, default=0
            So many calls of `allreduce` or `reduce_scatter` may come next as of ranks that have ``met``.
            Whoever fails before the last of them may have to end the job: others may wait in a sum.

        Returns
        -------
        arrays : ndarray, shape (size, *array.shape)
        """
        if self.alone:
            return array[None]
        self._announced(False)
        arrays = self._stack(array)
        self._n_to_come = n_sums
        return arrays

    def allgather(self, value):
        """What each rank passes, in the order of ranks: anything that can be pickled."""
        self._announced(False)
        return [value] if self.alone else self._allgather(value)

    def alltoall(self, values):
        """From each rank what it passes for this one: ``values[r]`` is for rank r."""
        self._announced(False)
        return list(values) if self.alone else self._alltoall(values)

    def bcast(self, value, root=0):
        """What rank ``root`` passes."""
        return value if self.alone else self.allgather(value if self.rank == root else None)[root]

    def fail(self, error):
        """Tell the others that this rank cannot go on, which raises a `RankError` on each.

        They hear of it when they meet next. An error is told once, and a `RankError` is known to all.
        """
        if not (self.alone or isinstance(error, RankError) or error is self._told):
            self._told = error
            self._fail(f"rank {self.rank} failed at {self.step}: {type(error).__name__}: {error}")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        """What is done in a ``with`` block, all ranks have done, or none has: the others hear of an error."""
        if error is None:
            self.at("end")
            self.allgather(None)
        else:
            self.fail(error)

    def agree(self, **said):
        """Raise, on all ranks, unless all say the same.

        Parameters
        ----------
        **said
            Anything that `spelt` tells apart, under the names that messages call them by. A rank may say
            nothing under a name.

        Raises
        ------
        ValueError
            It names what differs, and what two of the ranks say, if that is short.
        """
        if self.alone:
            return
        said = {name: spelt(value) for name, value in said.items()}
        first, *others = self.allgather(said)
        for rank, theirs in enumerate(others, start=1):
            for name in first | theirs:
                value, other = (one.get(name, "not there") for one in (first, theirs))
                if other != value:
                    seen = f"{value} on rank 0 and {other} on rank {rank}"
                    if not readable(value, other):
                        seen = f"not the same on rank 0 and on rank {rank}"
                    raise ValueError(f"{name} is {seen}; expected the same on all ranks that train together.")

    def exact_sum(self, values):
        """The sum of float64 values of all ranks, rounded once: the same for any order and any dealing.

        Infinite where it is too large for a double, and NaN where infinity is taken from infinity.
        """
        return exact.sum_of(self.allreduce(exact.digits_of(np.ascontiguousarray(values, np.float64))))

    def _announced(self, met):
        """What comes next is a sum that was announced, or something before which all meet."""
        if met and not self._n_to_come:
            raise RuntimeError("a sum comes that was not announced: this is a mistake in ranktrees.")
        self._n_to_come = self._n_to_come - 1 if met else 0

    def _count(self, n_bytes, n_messages=1):
        self.traffic["messages"] += n_messages
        self.traffic["bytes"] += n_bytes

    def _allreduce(self, array, op, met):
        raise NotImplementedError

    def _reduce_scatter(self, array, counts, met):
        raise NotImplementedError

    def _allgather(self, value):
        raise NotImplementedError

    def _stack(self, array):
        return np.stack(self._allgather(array))

    def _alltoall(self, values):
        raise NotImplementedError

    def _fail(self, text):
        raise NotImplementedError


def disagreement(places):
    """What to say where ranks are not at the same call.

    Parameters
    ----------
    places : list of (number, call, size, step)
        Of each rank: the number of its exchange, what it is, of how many values, and the step.

    Returns
    -------
    text : str
        Names the first rank at each place.

    Examples
    --------
    >>> from ranktrees.communicator import disagreement
    >>> disagreement([(7, "sum", 8, "tree 3"), (7, "sum", 8, "tree 3"), (7, "allgather", 0, "tree 4")])
    "the ranks are not at the same point: rank 0 is at 'tree 3' (exchange 7: sum of 8 values), rank 2 is at...
    """
    firsts = {place: rank for rank, place in reversed(list(enumerate(places)))}
    told = ", ".join(
        f"rank {rank} is at {step!r} (exchange {number}: {call} of {size} values)"
        for (number, call, size, step), rank in sorted(firsts.items(), key=lambda item: item[1])
    )
    return (
        f"the ranks are not at the same point: {told}. "
        "All must call fit in the same order, with the same parameters."
    )


ALONE = Communicator()


_here = threading.local()


@contextmanager
def training_with(communicator):
    """What this thread trains inside, it trains with these ranks.

    Parameters
    ----------
    communicator : Communicator

    Examples
    --------
    >>> from ranktrees.communicator import ALONE, active, training_with
    >>> with training_with(ALONE):
    ...     active().size
    1
    """
    before = getattr(_here, "communicator", None)
    _here.communicator = communicator
    try:
        yield communicator
    finally:
        _here.communicator = before


def active():
    """The ranks that train together here and now.

    Returns
    -------
    communicator : Communicator
        Those of `training_with`, or of the joblib backend of the enclosing ``joblib.parallel_config`` if that
        has ranks that all run this program; else a rank alone. Such a backend has an attribute
        ``communicator``.

    Examples
    --------
    >>> from ranktrees.communicator import active
    >>> active().size
    1
    """
    if getattr(_here, "communicator", None) is not None:
        return _here.communicator
    backend, _ = get_active_backend()
    communicator = getattr(backend, "communicator", None)
    return ALONE if communicator is None else communicator


def active_driver():
    """The active joblib backend, where it is one that deals rows to ranks.

    Returns
    -------
    backend : object or None
        One that has a method ``run_rows(function, shards, *args)``, see `ranktrees.mpi`; None where the
        active one has none.

    Examples
    --------
    >>> from ranktrees.communicator import active_driver
    >>> print(active_driver())
    None
    """
    if getattr(_here, "communicator", None) is not None:
        return None
    backend, _ = get_active_backend()
    return backend if hasattr(backend, "run_rows") else None
