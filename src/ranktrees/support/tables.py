"""Tables: as text, and as data frames, for which alone pandas is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Tabular", "aligned", "pandas_for"]


def aligned(lines: Sequence[Sequence[str]], n_left: int = 1) -> str:
    """Return a table: the first columns begin at the left, and the others end at the right.

    Parameters
    ----------
    lines : sequence of sequences of str
        The cells of each line, as many in each.
    n_left : int, default=1
        The number of columns that begin at the left.

    Returns
    -------
    str

    Examples
    --------
    >>> print(aligned([("", "mean"), ("ours", "0.5"), ("theirs", "0.45")]))
            mean
    ours     0.5
    theirs  0.45
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    put = [str.ljust] * n_left + [str.rjust] * (len(widths) - n_left)
    cells = ([do(cell, width) for do, cell, width in zip(put, line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in cells)


def pandas_for(who: str) -> Any:
    """Return the module pandas, which `who` needs.

    Parameters
    ----------
    who : str
        The function or method that returns a data frame.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If pandas is not installed.

    Examples
    --------
    >>> from ranktrees.support.tables import pandas_for
    >>> pandas_for("tree_table").DataFrame({"node": [0]}).shape
    (1, 1)
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(f"{who} returns a pandas DataFrame: pip install pandas") from error
    return pd


class Tabular:
    """Base class of results that are also a data frame, as which notebooks show them.

    Examples
    --------
    >>> from ranktrees.support.tables import Tabular, pandas_for
    >>> class Counts(Tabular):
    ...     def to_frame(self):
    ...         return pandas_for("to_frame").DataFrame({"trees": [5]})
    >>> "<td>5</td>" in Counts()._repr_html_()
    True
    """

    def to_frame(self) -> pd.DataFrame:
        raise NotImplementedError(f"{type(self).__name__} must define to_frame()")

    def _repr_html_(self) -> str | None:
        """The frame, as pandas shows it; without pandas None, by which notebooks print the text."""
        try:
            pandas_for("to_frame")
        except ImportError:
            return None
        return self.to_frame()._repr_html_()
