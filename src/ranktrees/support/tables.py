"""Results that go on as data frames. pandas is needed for these only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Tabular", "pandas_for"]


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
