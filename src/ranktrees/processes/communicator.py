"""How ranks that train together, each with rows of its own, communicate.

A *rank* is one of ``size`` processes, as in MPI. All of them run the same code and reach the same calls, so
every call below is made by all ranks. A single process is a rank alone: it sends nothing, and all calls
return at once.

    rank 0   rows of some queries ---.
    rank 1   rows of others    ------+--- sums of integers ---> the same tree on each
    rank 2   none              ------'

Only integers are summed, so no result depends on which rank adds which numbers, or in which order.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from joblib.parallel import get_active_backend

from ranktrees._core.processes import exact
from ranktrees.support.numeric import is_real
from ranktrees.support.spelling import readable, spelt

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import ArrayLike

LONGEST_TIMEOUT = 1e9  # seconds


class RankError(RuntimeError):
    """Training on several ranks has failed on one of them. The message names the rank and the step.

    Examples
    --------
    >>> from ranktrees.processes import RankError
    >>> raise RankError("rank 1 failed at tree 3: ValueError: boom")
    Traceback (most recent call last):
    ...
    ranktrees.processes.communicator.RankError: rank 1 failed at tree 3: ValueError: boom
    """


def checked_timeout(timeout: Any) -> float:
    """Return the timeout in seconds as a float, or raise if it is not valid."""
    if not (is_real(timeout) and 0 < timeout <= LONGEST_TIMEOUT):
        raise ValueError(
            f"timeout={timeout!r}; expected a number of seconds above 0, at most {LONGEST_TIMEOUT:g}."
        )
    return float(timeout)


def cause_of(errors: Sequence[BaseException]) -> BaseException:
    """Return the error to raise when ranks have failed: the first that does not just report another rank's.

    Parameters
    ----------
    errors : list of Exception
        The errors of the ranks, in their order.

    Returns
    -------
    error : Exception
        The first error that is not a `RankError`, or the first of all if there is none.

    Examples
    --------
    >>> from ranktrees.processes.communicator import RankError, cause_of
    >>> cause_of([RankError("rank 1 failed"), KeyError("boom")])
    KeyError('boom')
    """
    return next((error for error in errors if not isinstance(error, RankError)), errors[0])


class Communicator:
    """The communicator of a rank alone, and the base class of communicators of several ranks.

    Arrays are C-contiguous, and arrays that are summed hold int64. A derived class defines ``rank``, ``size``
    and the methods that begin with an underscore, which are called only if there are other ranks.

    Attributes
    ----------
    rank, size : int
        The number of this rank, and the number of ranks.
    step : str
        The current step of training, for messages.
    pid : int
        The process that is this rank. One that is forked from it is none.
    traffic : Counter
        The "messages" and "bytes" that this rank has sent, counted as the least that a collective needs. With
        n bytes and P ranks, a sum that all ranks get counts ``2 n (P - 1) / P``, and a sum of which each rank
        gets a part counts ``n (P - 1) / P``.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.processes import Communicator
    >>> alone = Communicator()
    >>> alone.allreduce(np.array([1, 2])), alone.allgather("x")
    (array([1, 2]), ['x'])
    """

    rank = 0
    size = 1

    def __init__(self) -> None:
        self.step = ""
        self.pid = os.getpid()
        self._failed_with: object = None
        self._n_to_come = 0  # announced sums, before which ranks need not meet
        self.traffic: Counter[str] = Counter()

    @property
    def alone(self) -> bool:
        """Whether there are no other ranks."""
        return self.size == 1

    def at(self, step: str) -> None:
        """Set the current step of training, which messages of failures name."""
        self.step = step

    def allreduce(
        self, array: np.ndarray, op: Literal["sum", "max", "min"] = "sum", met: bool = False
    ) -> np.ndarray:
        """Reduce the arrays of all ranks to one, element by element and in place.

        Parameters
        ----------
        array : ndarray of int64 or float64
            An array of the same size on all ranks. Float64 is allowed for "max" and "min" only, because sums
            of floats depend on their order.
        op : {"sum", "max", "min"}
            The operation.
        met : bool, default=False
            Whether all ranks have met, have announced this call by ``n_sums`` of `stack`, and know its size.
            Then they need not meet once more.

        Returns
        -------
        array : ndarray
            The same array.
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

    def sums(self, *numbers: int) -> tuple[int, ...]:
        """Return the sum over all ranks of each of the given ints."""
        return numbers if self.alone else tuple(self.allreduce(np.array(numbers, np.int64)).tolist())

    def reduce_scatter(self, array: np.ndarray, counts: Sequence[int], met: bool = False) -> np.ndarray:
        """Return the sum over all ranks of this rank's part of the array.

        Parameters
        ----------
        array : ndarray of int64
            The parts of rank 0, 1, ..., one after the other.
        counts : sequence of int
            The lengths of the parts.
        met : bool, default=False
            As for `allreduce`.

        Returns
        -------
        part : ndarray of int64, shape (counts[rank],)
            The sum.
        """
        if array.dtype != np.int64 or sum(counts) != array.size:
            raise TypeError(
                f"cannot scatter sums of {array.size} {array.dtype} in parts of {list(counts)}; expected "
                "int64, and parts that add up to the whole."
            )
        if self.alone:
            return array
        self._announced(met)
        self._count(array.nbytes * (self.size - 1) / self.size)
        return self._reduce_scatter(array, counts, met)

    def stack(self, array: np.ndarray, n_sums: int = 0) -> np.ndarray:
        """Return the arrays of all ranks, in the order of the ranks.

        Parameters
        ----------
        array : ndarray
            An array of numbers or records, of the same shape and type on all ranks.
        n_sums : int, default=0
            The number of calls of `allreduce` or `reduce_scatter` that may follow with ``met=True``. A rank
            that fails before the last of them may have to end the job, since others may be waiting in a sum.

        Returns
        -------
        arrays : ndarray, shape (size, *array.shape)
            The arrays.
        """
        if self.alone:
            return array[None]
        self._announced(False)
        arrays = self._stack(array)
        self._n_to_come = n_sums
        return arrays

    def allgather(self, value: Any) -> list[Any]:
        """Return what each rank passes, in the order of the ranks. It may be anything that can be pickled."""
        self._announced(False)
        return [value] if self.alone else self._allgather(value)

    def alltoall(self, values: Sequence[Any]) -> list[Any]:
        """Return what each rank passes for this one; ``values[r]`` is for rank r."""
        self._announced(False)
        return list(values) if self.alone else self._alltoall(values)

    def gather_in_turn(self, parts: Iterable[tuple[Any, int]]) -> list[list[Any]]:
        """Make values one after another, each for one of the ranks, and return all those for this one.

        Ranks that send each other messages do so while the next values are made.

        Parameters
        ----------
        parts : iterator of (value, int)
            The values, and the ranks that they are for. All ranks make as many, for the same ranks.

        Returns
        -------
        gathered : list of list
            For each part for this rank, the values of all ranks, in the order of the ranks.
        """
        self._announced(False)
        return [[value] for value, _ in parts] if self.alone else self._gather_in_turn(parts)

    def bcast(self, value: Any, root: int = 0) -> Any:
        """Return what rank ``root`` passes."""
        return value if self.alone else self.allgather(value if self.rank == root else None)[root]

    def fail(self, error: object) -> None:
        """Tell the other ranks that this one cannot go on, which raises a `RankError` on each of them.

        They receive the message when they meet next. An error is reported only once. A `RankError` is not
        reported, since all ranks know of it.
        """
        if not (self.alone or isinstance(error, RankError) or error is self._failed_with):
            self._failed_with = error
            self._fail(f"rank {self.rank} failed at {self.step}: {type(error).__name__}: {error}")

    def __enter__(self) -> Self:
        self._failed_with = None  # its traceback holds all that an earlier fit had in memory
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave a ``with`` block: others learn of an error, so all ranks have done its work or none has."""
        if error is None:
            self.at("end")
            self.allgather(None)
        else:
            self.fail(error)

    def agree(self, **values: Any) -> None:
        """Raise on all ranks unless all of them pass the same values.

        Parameters
        ----------
        **values
            Any values that `spelt` tells apart, under the names that messages use for them. A rank may leave
            out a name.

        Raises
        ------
        ValueError
            If values differ. The message names the first that does, with the values on two of the ranks if
            they are short.
        """
        if self.alone:
            return
        values = {name: spelt(value) for name, value in values.items()}
        first, *others = self.allgather(values)
        for rank, theirs in enumerate(others, start=1):
            for name in first | theirs:
                value, other = (one.get(name, "not there") for one in (first, theirs))
                if other != value:
                    seen = f"{value} on rank 0 and {other} on rank {rank}"
                    if not readable(value, other):
                        seen = f"not the same on rank 0 and on rank {rank}"
                    raise ValueError(f"{name} is {seen}; expected the same on all ranks that train together.")

    def exact_sum(self, values: ArrayLike) -> Any:
        """Return the sum of float64 values of all ranks, rounded once.

        It does not depend on the order of the values or on how they are dealt to ranks. It is infinite if it
        is too large for a double, and NaN if infinity is subtracted from infinity.
        """
        return exact.sum_of(self.allreduce(exact.digits_of(np.ascontiguousarray(values, np.float64))))

    def _announced(self, met: bool) -> None:
        """Note that the next call is an announced sum, or one before which all ranks meet."""
        if met and not self._n_to_come:
            raise RuntimeError("a sum was started without having been announced: this is a bug in ranktrees.")
        self._n_to_come = self._n_to_come - 1 if met else 0

    def _count(self, n_bytes: Any) -> None:
        self.traffic["messages"] += 1
        self.traffic["bytes"] += n_bytes

    def _allreduce(self, array: np.ndarray, op: str, met: bool) -> None:
        raise NotImplementedError

    def _reduce_scatter(self, array: np.ndarray, counts: Sequence[int], met: bool) -> np.ndarray:
        raise NotImplementedError

    def _allgather(self, value: Any) -> list[Any]:
        raise NotImplementedError

    def _stack(self, array: np.ndarray) -> np.ndarray:
        return np.stack(self._allgather(array))

    def _alltoall(self, values: Sequence[Any]) -> list[Any]:
        raise NotImplementedError

    def _gather_in_turn(self, parts: Iterable[tuple[Any, int]]) -> list[list[Any]]:
        values: list[list[Any]] = [[] for _ in range(self.size)]
        for value, root in parts:
            values[root].append(value)
        return [list(of_all) for of_all in zip(*self._alltoall(values), strict=True)]

    def _fail(self, text: str) -> None:
        raise NotImplementedError


def disagreement(places: Sequence[tuple[int, str, int, str]]) -> str:
    """Return the message for ranks that are not at the same call.

    Parameters
    ----------
    places : list of (number, call, size, step)
        For each rank, the number of its exchange, the name of the call, its number of values, and the step.

    Returns
    -------
    text : str
        The message, which names the first rank at each place.

    Examples
    --------
    >>> from ranktrees.processes.communicator import disagreement
    >>> disagreement([(7, "sum", 8, "tree 3"), (7, "sum", 8, "tree 3"), (7, "allgather", 0, "tree 4")])
    "the ranks are not at the same point: rank 0 is at 'tree 3' (exchange 7: sum of 8 values), rank 2 is at...
    """
    firsts = {place: rank for rank, place in reversed(list(enumerate(places)))}
    texts = ", ".join(
        f"rank {rank} is at {step!r} (exchange {number}: {call} of {size} values)"
        for (number, call, size, step), rank in sorted(firsts.items(), key=lambda item: item[1])
    )
    return (
        f"the ranks are not at the same point: {texts}. All ranks must call fit in the same order, with the "
        "same parameters."
    )


ALONE = Communicator()


_here = threading.local()


@contextmanager
def training_with(communicator: Communicator) -> Iterator[Communicator]:
    """Make this thread train with the ranks of a communicator inside a ``with`` block.

    Parameters
    ----------
    communicator : Communicator
        The communicator.

    Examples
    --------
    >>> from ranktrees.processes.communicator import ALONE, active, training_with
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


def active() -> Communicator:
    """Return the communicator of the ranks that currently train together.

    Returns
    -------
    communicator : Communicator
        The communicator of `training_with`, or else that of the joblib backend of the enclosing
        ``joblib.parallel_config``, if that backend has ranks that all run this program. Such a backend has an
        attribute ``communicator``. Without either, the communicator of a rank alone.

    Raises
    ------
    RuntimeError
        In a process that was forked from a rank.

    Examples
    --------
    >>> from ranktrees.processes import active
    >>> active().size
    1
    """
    communicator = getattr(_here, "communicator", None)
    if communicator is None:
        communicator = getattr(get_active_backend()[0], "communicator", None)
    if communicator is None:
        return ALONE
    if communicator.pid != os.getpid() and not communicator.alone:
        raise RuntimeError(
            f"this process was forked from rank {communicator.rank}, and cannot train in its place: the "
            'others would take it for its parent. Start processes with "spawn" or "forkserver", or fork '
            "them outside of what ranks run together."
        )
    return communicator


def active_driver() -> Any:
    """Return the active joblib backend if it deals rows to ranks.

    Returns
    -------
    backend : object or None
        The backend, if it has a method ``run_rows(function, shards, *args)``, see `ranktrees.mpi`. None if it
        has no such method, or if this thread trains with the ranks of `training_with`.

    Examples
    --------
    >>> from ranktrees.processes import active_driver
    >>> print(active_driver())
    None
    """
    if getattr(_here, "communicator", None) is not None:
        return None
    backend, _ = get_active_backend()
    return backend if hasattr(backend, "run_rows") else None
