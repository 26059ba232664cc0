"""Work for threads of Python, which no interrupt leaves behind.

    values ---> given ---> thread 1 ---.
                   '-----> thread 2 ---+--> found ---> results, in the order of the values

Both pools of Python, and so joblib's threads, rest on ``threading.Condition``. An interrupt at the wrong
moment leaves its lock held, so that a thread waits for ever, or becomes a RuntimeError. Queues written in C
have no such moment.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Iterable, Iterator
from contextvars import Context, copy_context
from itertools import islice
from queue import SimpleQueue
from typing import Any, TypeVar

Value = TypeVar("Value")
Result = TypeVar("Result")


def in_order(
    n_threads: int, function: Callable[[Value], Result], values: Iterable[Value]
) -> Iterator[Result]:
    """Yield ``function(value)`` for each value, in their order: `in_threads`, or here if one is enough."""
    return map(function, values) if n_threads == 1 else in_threads(n_threads, function, values)


def in_threads(
    n_threads: int, function: Callable[[Value], Result], values: Iterable[Value]
) -> Iterator[Result]:
    """Yield ``function(value)`` for each value, in their order.

    At most ``2 * n_threads`` values are taken before their results are. Whoever closes the iterator waits for
    what is begun; an interrupt does not wait, and what is begun ends by itself.

    Parameters
    ----------
    n_threads : int
        The number of threads, which begin as there is work for them.
    function : callable
    values : iterable

    Yields
    ------
    result : object

    Raises
    ------
    RuntimeError
        If a thread cannot be started.

    Examples
    --------
    >>> from ranktrees.support.ordered import in_threads
    >>> list(in_threads(2, abs, [3, -4, 5]))
    [3, 4, 5]
    """
    given: SimpleQueue[tuple[int, Context, Value] | None] = SimpleQueue()
    found: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()
    results: dict[int, list[Any]] = {}
    ended: list[bool] = []
    values, n_started, n_given, n_found, n_yielded = iter(values), 0, 0, 0, 0

    def work() -> None:
        while (one := given.get()) is not None:
            place, context, value = one
            result, error = None, None
            if not ended:
                try:
                    result = context.run(function, value)
                except BaseException as caught:
                    error = caught
            found.put((place, result, error))
            del one, context, value, result, error  # nothing is held while there is no work
        given.put(None)  # for the next

    try:
        while True:
            for value in islice(values, 2 * n_threads - (n_given - n_yielded)):
                if n_started < n_threads:
                    _thread.start_new_thread(work, ())
                    n_started += 1
                given.put((n_given, copy_context(), value))
                n_given += 1
            if n_yielded == n_given:
                return
            while n_yielded not in results:
                place, *answer = found.get()
                results[place] = answer
                n_found += 1
            result, error = results.pop(n_yielded)
            n_yielded += 1
            if error is not None:
                raise error
            yield result
    except KeyboardInterrupt:
        n_found = n_given
        raise
    finally:
        given.put(None)  # first, and in one step
        ended.append(True)
        while n_found < n_given:
            found.get()
            n_found += 1
