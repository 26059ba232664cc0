"""Which columns of a table are features, labels, query ids and weights."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self


@dataclass(frozen=True)
class Columns:
    """The columns of a table by what they are.

    Attributes
    ----------
    named : dict of str to str
        The names of the columns that are no features, by the arguments that they are for, such as "y".
    features : list of str
        The names of the features, in their order.

    Examples
    --------
    >>> columns = Columns.among(["grade", "bm25", "query"], "the table", y="grade", qid="query")
    >>> columns.features, columns.names
    (['bm25'], ['bm25', 'grade', 'query'])
    """

    named: dict[str, str]
    features: list[str]

    @classmethod
    def among(
        cls,
        there: Sequence[str],
        holder: object,
        features: Sequence[str] | None = None,
        others: Collection[str] = (),
        **given: str | None,
    ) -> Self:
        """Find the columns among those of a table.

        Parameters
        ----------
        there : sequence of str
            The names of all columns.
        holder : object
            What error messages call the table.
        features : sequence of str, default=None
            The names of the features. If None, all columns without another meaning.
        others : collection of str
            Further columns that are no features unless they are named.
        **given
            The name of the column for each argument, or None.

        Returns
        -------
        Columns

        Raises
        ------
        ValueError
            If a column is not there, or there are two of its name.
        """
        named = {argument: name for argument, name in given.items() if name is not None}
        if features is None:
            features = [name for name in there if name not in {*named.values(), *others}]
        columns = cls(named, list(features))
        columns.require(there, holder)
        return columns

    @property
    def names(self) -> list[str]:
        """The names of all columns, each once: those of features first."""
        return list(dict.fromkeys([*self.features, *self.named.values()]))

    def require(self, there: Sequence[str], holder: object) -> None:
        """Raise if a column is not among those of a table, or not the only one of its name."""
        for name in self.names:
            if name not in there:
                raise ValueError(
                    f"{holder} has no column {name!r}; expected one of those that it has, "
                    f"{list(there[:10])}: correct the name."
                )
            if there.count(name) > 1:
                raise ValueError(
                    f"{holder} has {there.count(name)} columns called {name!r}; expected a name for each: "
                    "rename them in the file, or leave them out by features=."
                )

    def arguments(self, table: Any) -> dict[str, Any]:
        """Return the columns of a table of Arrow or polars by the arguments that they are for."""
        rows = table.select(self.features)
        return {"X": rows, **{argument: table[name] for argument, name in self.named.items()}}


def pyarrow_with(module: str, needed_by: str) -> Any:
    """Return pyarrow with one of its modules, or raise if it is not installed."""
    try:
        import_module(f"pyarrow.{module}")
    except ImportError as error:
        raise ImportError(
            f'{needed_by} needs pyarrow; install it with: pip install "ranktrees[parquet]"'
        ) from error
    return import_module("pyarrow")
