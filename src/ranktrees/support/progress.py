"""Show how far something is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any, TypeVar

Part = TypeVar("Part")


def kind_of_bar() -> Any:
    """Return tqdm's class of progress bars, or raise if tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError(
            'verbose="bar" needs tqdm; install it with: pip install "ranktrees[plot]"'
        ) from error
    return tqdm


def counted(
    parts: Iterable[Part], n_rows_of: Callable[[Part], int], name: str, verbose: Any
) -> Iterator[Part]:
    """Yield parts of rows, and show how many rows have been read.

    Parameters
    ----------
    parts : iterable
    n_rows_of : callable
        Returns the number of rows of a part.
    name : str
        What is read.
    verbose : int or "bar"
        If above 0, print a line every ``verbose`` parts. If "bar", draw a progress bar (needs tqdm).

    Yields
    ------
    object
        The parts.

    Examples
    --------
    >>> for part in counted(["ab", "cd", "ef"], len, "letters", 2):
    ...     print(part)
    ab
    cd
    letters: 4 rows
    ef
    """
    with kind_of_bar()(desc=name, unit=" rows") if verbose == "bar" else nullcontext() as bar:
        n_rows = 0
        for number, part in enumerate(parts, start=1):
            yield part
            n_rows += n_rows_of(part)
            if bar is not None:
                bar.update(n_rows - bar.n)
            elif verbose and number % verbose == 0:
                print(f"{name}: {n_rows} rows")
