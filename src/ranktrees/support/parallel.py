"""The number of threads that the kernels may use."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Collection, Sequence
from fractions import Fraction

import joblib

from ranktrees._core.support import simd, threads
from ranktrees._core.support.threads import max_threads
from ranktrees.support.numeric import is_whole
from ranktrees.support.warning import warn

# A thread pays for about this many values, some microseconds of work: while a tree grows, its threads are
# awake.
VALUES_PER_THREAD = 1 << 12

_asked = os.environ.get("RANKTREES_SIMD")
if _asked is not None and _asked not in simd.supported():
    raise ImportError(
        f"RANKTREES_SIMD={_asked!r}: this processor supports {', '.join(simd.supported())}; "
        "unset the variable to use the widest."
    )

_part = Fraction(1)  # the part of the processors that other ranks leave to this process

# OpenMP's threads do not survive a fork, and a child process that asks for them waits for ever, whichever
# library has started them. So they are ended before a fork; the next that needs some starts new ones.
_state = {"threads_started": False, "forked_from_threads": False}
_SOFT_PAUSE = 1  # omp_pause_soft
_pause_threads = getattr(ctypes.CDLL(threads.__file__), "omp_pause_resource_all", None)  # since OpenMP 5.0


def _end_threads() -> None:
    if _pause_threads is not None and _pause_threads(_SOFT_PAUSE) == 0:
        _state["threads_started"] = False


def _note_fork() -> None:
    _state["forked_from_threads"] = _state["forked_from_threads"] or _state["threads_started"]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_threads, after_in_child=_note_fork)


@functools.lru_cache(maxsize=8)
def _counted(affinity: frozenset[int], limit: str | None) -> int:
    return joblib.cpu_count()


def _n_processors() -> int:
    """Return the number of processors that this process may use.

    joblib reads the limits of a container from files, so it is asked only once.
    """
    affinity = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return max(1, int(_counted(affinity, os.environ.get("LOKY_MAX_CPU_COUNT")) * _part))


def processors_for(affinity: Collection[int], affinities: Sequence[Collection[int]]) -> Fraction:
    """Return the part of its processors that a process has for itself if others may run on them as well.

    A processor is divided among all processes that may run on it. So a process that is bound to processors of
    its own has all of them, and each of ``n`` processes that may run anywhere has one in ``n``.

    Parameters
    ----------
    affinity : set of int
        The processors that the process may run on.
    affinities : list of sets of int
        Those of all processes of the machine that take part, including this one.

    Returns
    -------
    part : Fraction

    Examples
    --------
    >>> from ranktrees.support.parallel import processors_for
    >>> processors_for({0, 1, 2, 3}, [{0, 1, 2, 3}, {0, 1, 2, 3}])
    Fraction(1, 2)
    >>> processors_for({0, 1}, [{0, 1}, {2, 3}])
    Fraction(1, 1)
    """
    return sum(
        (Fraction(1, sum(cpu in other for other in affinities)) for cpu in affinity), Fraction()
    ) / len(affinity)


def leave_processors(part: Fraction) -> None:
    """Let ``n_jobs=None`` mean only this part of the processors from now on, as other ranks need the rest.

    Parameters
    ----------
    part : Fraction
        See `processors_for`.
    """
    global _part
    _part = part


def effective_n_threads(n_jobs: int | None, n_values: int | None = None) -> int:
    """Return the number of threads that a kernel should start.

    Parameters
    ----------
    n_jobs : int or None
        A positive number asks for that many threads (at most four per processor are started). ``-1`` and
        ``None`` ask for all that this process may use, as limited by its processor affinity,
        ``OMP_NUM_THREADS`` (which joblib sets in its workers) and threadpoolctl. ``-2`` asks for all but one,
        and so on.
    n_values : int, default=None
        How much there is to do, see `threads_for`. If that is little, processors are not even counted, as
        this takes longer than scoring a few rows. None stands for much.

    Returns
    -------
    n_threads : int
        At least 1. In a process that was forked from one whose threads could not be ended before, it is 1,
        and there is one warning.

    Raises
    ------
    ValueError
        If ``n_jobs`` is 0 or not an integer.

    Examples
    --------
    >>> from ranktrees.support.parallel import effective_n_threads
    >>> effective_n_threads(1)
    1
    """
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0):
        raise ValueError(
            f"n_jobs={n_jobs!r}: expected a positive number of threads, or -1 or None for all processors."
        )
    if n_jobs == 1 or (n_values is not None and threads_for(2, n_values) == 1):
        return 1
    available = min(_n_processors(), max_threads())
    if n_jobs is None:
        n_threads = available
    elif n_jobs < 0:
        n_threads = max(1, available + 1 + int(n_jobs))
    else:
        n_threads = min(int(n_jobs), 4 * _n_processors())
    if n_threads > 1 and _state["forked_from_threads"]:
        if not _state.get("warned"):
            _state["warned"] = True
            warn(
                "This process was forked from one whose threads were running, which do not survive a fork: "
                "ranktrees uses one thread here. Start processes with 'spawn' or 'forkserver' for more.",
                RuntimeWarning,
            )
        return 1
    _state["threads_started"] = _state["threads_started"] or n_threads > 1
    return n_threads if n_values is None else threads_for(n_threads, n_values)


def threads_for(n_threads: int, n_values: int) -> int:
    """Return as many of ``n_threads`` as pay for the work: for little work, waking threads takes longer.

    Parameters
    ----------
    n_threads : int
    n_values : int
        The number of simple steps to do, of about a nanosecond each.

    Returns
    -------
    int
        At least 1, at most ``n_threads``.

    Examples
    --------
    >>> from ranktrees.support.parallel import threads_for
    >>> threads_for(8, 1_000), threads_for(8, 10_000), threads_for(8, 10_000_000)
    (1, 3, 8)
    """
    return int(min(n_threads, 1 + n_values // VALUES_PER_THREAD))
