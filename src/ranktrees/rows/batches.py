"""Rows that do not fit in memory, read batch by batch from files or from any other source."""

from __future__ import annotations

import errno
import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ranktrees.rows.letor import letor_batches
from ranktrees.rows.tables import Columns, pyarrow_with
from ranktrees.rows.values import as_seen
from ranktrees.support.numeric import is_whole

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ranktrees.support.annotations import PathLike

# What NumPy and pyarrow raise for files that are cut off, damaged or of another kind.
_UNREADABLE = (
    *(ValueError, TypeError, EOFError, OSError, OverflowError, NotImplementedError, KeyError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)
_ARROW = "Arrow", "data set, and a filter of its columns: correct what the error names"


class Batch(NamedTuple):
    """A batch of rows with their labels, query ids and weights.

    Attributes
    ----------
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        The labels.
    qid : array-like of shape (n_rows,), default=None
        The query id of each row.
    sample_weight : array-like of shape (n_rows,), default=None
        The weights of the rows, >= 0.
    ids : array-like of shape (n_rows,), default=None
        The ids of the rows, which :func:`score_batches` writes beside their scores. Fits do not use them.
    """

    X: Any
    y: Any = None
    qid: Any = None
    sample_weight: Any = None
    ids: Any = None


_IN_TUPLES = Batch._fields[:4]


class Batches:
    """Rows, labels and query ids in batches, to be passed to `fit` in place of ``X``.

    A fit reads each batch once and trains as if all batches had been one: the model has the same bytes. It
    never holds the values of all rows in memory. They are written to a temporary file, column by column. The
    cuts (the upper edges of the bins) are found from this file, some columns at a time, and the file is read
    once more to turn the values into codes (the numbers of their bins)::

        batches ---> labels, queries, weights
           |
           '-> file: columns of each batch ---> cuts, some columns at a time
                              '---------------> codes, batch by batch

    For n rows of F features, with values of s bytes, a fit needs

    - in memory, the n F bytes of the codes, one batch and, while the cuts are found, two columns of n values
      for each thread, or 4 million values if that is more, besides what any training needs: labels, scores,
      gradients and cells;
    - on disk, n F s bytes until training has ended.

    Parameters
    ----------
    source : iterable, or callable that returns one
        The batches: tuples ``(X, y, qid)`` or ``(X, y, qid, sample_weight)``, tuples ``(X, y)`` without ids,
        or mappings with these names, and perhaps ``ids``. Each ``X`` is anything that `fit` takes, always
        with the same features. A query may continue in later batches under the same id. Ids that are numbers
        in one batch and strings or bytes in another are refused. A callable, or an iterable such as a list,
        can be iterated over more than once, a generator only once.
    folder : path-like or None, default=None
        The folder for temporary files, on a disk with enough room. If None, `tempfile.gettempdir`, which on
        some machines is in memory.

    See Also
    --------
    Batches.from_letor, Batches.from_parquet, Batches.from_numpy : Batches of files.
    Batches.from_arrow, Batches.from_polars : Batches of data sets and queries that are larger than memory.
    score_batches : Score batches, and write the scores to a file.

    Notes
    -----
    Columns with a categorical dtype are refused: pass their codes instead, and name the columns in
    ``categorical_features``. If the first batch is sparse, the file has the entries of all batches, and not
    their zeros. An ``init`` must be fitted already if batches are dense. If it is not a model of this
    library, it is given arrays, part by part.

    When ranks train together, each rank passes batches of its own.

    References
    ----------
    Tyree, Weinberger, Agrawal and Paykin, *Parallel boosted regression trees for web search ranking*, WWW
    2011, compress batches into histograms that can be merged; here cuts are exact.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.datasets import Batches
    >>> X, y, qid = make_ranking(60, rows_per_query=20, random_state=0, return_X_y_qid=True)
    >>> batches = Batches([(X[:700], y[:700], qid[:700]), (X[700:], y[700:], qid[700:])])
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(batches)
    >>> ranker.ensemble_ == LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid).ensemble_
    True
    >>> [ranker.predict(batch.X).shape for batch in batches]
    [(700,), (500,)]
    """

    def __init__(self, source: Any, *, folder: PathLike | None = None) -> None:
        self.source = source
        self.folder = folder

    def __iter__(self) -> Iterator[Batch]:
        """Yield each `Batch`."""
        for number, batch in enumerate(self.source() if callable(self.source) else self.source):
            if isinstance(batch, Mapping) and "X" in batch and batch.keys() <= set(Batch._fields):
                yield Batch(**batch)
            elif isinstance(batch, tuple) and 1 <= len(batch) <= len(
                Batch._fields if isinstance(batch, Batch) else _IN_TUPLES
            ):
                yield Batch(*batch)
            else:
                raise TypeError(
                    f"batch {number} is a {_with_entries(batch)}; expected a tuple (X, y, qid) or "
                    "(X, y, qid, sample_weight), or a mapping with these names."
                )

    @classmethod
    def from_letor(
        cls,
        paths: PathLike | Sequence[PathLike],
        *,
        batch_rows: int = 50_000,
        n_features: int | None = None,
        dtype: DTypeLike = np.float32,
        absent: float = 0.0,
        missing: str | Sequence[str] = (),
        encoding: str = "utf-8",
        folder: PathLike | None = None,
    ) -> Self:
        """Make batches of the rows of LETOR files, one file after the other.

        Parameters
        ----------
        paths : str, path-like or sequence of them
            The files, each as for :func:`load_letor`.
        batch_rows : int, default=50_000
            The approximate number of rows of a batch. A batch ends where a block of lines ends.
        n_features : int, default=None
            The number of features. If None, it is the largest feature number in any file, for which all files
            are scanned quickly first. A number that is implausibly large is refused, as by
            :func:`load_letor`.
        dtype, absent, missing, encoding
            As in :func:`load_letor`.
        folder
            As in `Batches`.

        Returns
        -------
        Batches
            The batches.

        Raises
        ------
        ValueError
            While batches are read, in the same cases as :func:`load_letor`, except that some of the files may
            be without rows. Also if query ids are integers at first and strings later.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from ranktrees.datasets import Batches
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     parts = [Path(folder, "part1.txt"), Path(folder, "part2.txt")]
        ...     _ = parts[0].write_text("2 qid:10 1:0.5 3:1\\n0 qid:10 2:4\\n")
        ...     _ = parts[1].write_text("1 qid:11 1:3\\n")
        ...     [batch.X.tolist() for batch in Batches.from_letor(parts, batch_rows=2)]
        [[[0.5, 0.0, 1.0], [0.0, 4.0, 0.0]], [[3.0, 0.0, 0.0]]]
        """
        paths = _paths(paths)
        _check_rows_of_batch(batch_rows)
        return cls(
            lambda: letor_batches(paths, batch_rows, n_features, dtype, absent, missing, encoding),
            folder=folder,
        )

    @classmethod
    def from_parquet(
        cls,
        paths: PathLike | Sequence[PathLike],
        *,
        label: str | None = None,
        qid: str | None = None,
        features: Sequence[str] | None = None,
        sample_weight: str | None = None,
        ids: str | None = None,
        batch_rows: int = 50_000,
        folder: PathLike | None = None,
    ) -> Self:
        """Make batches of the rows of Parquet files, one file after the other.

        Parameters
        ----------
        paths : str, path-like or sequence of them
            The files.
        label : str, default=None
            The name of the column with the labels. Without labels, rows can only be scored.
        qid, sample_weight, ids : str, default=None
            The names of the columns with the query ids, the weights and the ids of rows, if there are any.
        features : sequence of str, default=None
            The names of the columns of ``X``. If None, all other columns of the first file, in its order,
            except those in which pandas has stored the index of a data frame.
        batch_rows : int, default=50_000
            The maximum number of rows of a batch.
        folder
            As in `Batches`.

        Returns
        -------
        Batches
            The batches. Each ``X`` is an Arrow table.

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        ValueError
            While batches are read, if a file is damaged, lacks a column or has two of its name, or if no file
            has rows.

        Examples
        --------
        >>> import tempfile
        >>> import pandas as pd
        >>> from ranktrees.datasets import Batches
        >>> rows = pd.DataFrame({"grade": [2, 0, 1], "query": [7, 7, 9], "bm25": [0.5, 0.0, 3.0]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows.to_parquet(f"{folder}/part.parquet")
        ...     batches = Batches.from_parquet(f"{folder}/part.parquet", label="grade", qid="query")
        ...     [(batch.X.column_names, len(batch.X)) for batch in batches]
        [(['bm25'], 3)]
        """
        pyarrow = pyarrow_with("parquet", "Batches.from_parquet")
        paths = _paths(paths)
        _check_rows_of_batch(batch_rows)
        named = {"y": label, "qid": qid, "sample_weight": sample_weight, "ids": ids}

        def source() -> Iterator[dict[str, Any]]:
            columns: Columns | None = None
            n_rows = 0
            for path in paths:
                with _reading(path, "Parquet"):
                    file = pyarrow.parquet.ParquetFile(path)
                with file:
                    there = file.schema_arrow.names
                    if columns is None:
                        with _reading(path, "Parquet"):
                            index = _index_columns(file.schema_arrow)
                        columns = Columns.among(there, path, features, index, **named)
                    elif features is None and (
                        more := [n for n in there if n not in (*columns.names, *index)]
                    ):
                        raise ValueError(
                            f"{path} has the columns {more[:10]}, which {paths[0]} lacks; expected the same "
                            "columns in all files: choose them by features=."
                        )
                    columns.require(there, path)
                    for part in _parts(file, path, batch_rows, columns.names):
                        n_rows += len(part)
                        yield columns.arguments(pyarrow.Table.from_batches([part]))
            _require_some(n_rows, paths, "paths")

        return cls(source, folder=folder)

    @classmethod
    def from_arrow(
        cls,
        source: Any,
        *,
        label: str | None = None,
        qid: str | None = None,
        features: Sequence[str] | None = None,
        sample_weight: str | None = None,
        ids: str | None = None,
        filter: Any = None,
        batch_rows: int = 50_000,
        folder: PathLike | None = None,
    ) -> Self:
        """Make batches of a data set of Arrow, such as a folder of Parquet files.

        Only the columns that are named or features are read, and of a data set on disk only the row groups
        that may have rows for the filter.

        Parameters
        ----------
        source : path-like, pyarrow.dataset.Dataset, object with rows of Arrow, or callable
            The path of a folder of Parquet files is read with all folders in it, and those with names such as
            ``day=1`` give a column ``day``. Any other data set is made by `pyarrow.dataset.dataset`, and
            tables of Delta Lake by their ``to_pyarrow_dataset()``. Tables, results of queries and all that
            has ``__arrow_c_stream__`` can be passed as well. What can be read only once, such as a
            `pyarrow.RecordBatchReader`, should be returned by a callable, which is called whenever rows are
            read.
        label : str, default=None
            The name of the column with the labels. Without labels, rows can only be scored.
        qid, sample_weight, ids : str, default=None
            The names of the columns with the query ids, the weights and the ids of rows, if there are any.
        features : sequence of str, default=None
            The names of the columns of ``X``. If None, all other columns, in their order.
        filter : pyarrow.compute.Expression, default=None
            The condition for rows, such as ``pyarrow.compute.field("day") > 7``. It may use any column.
        batch_rows : int, default=50_000
            The maximum number of rows of a batch.
        folder
            As in `Batches`.

        Returns
        -------
        Batches
            The batches, in the order of the files and of the rows in them. Each ``X`` is an Arrow table.

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        TypeError
            While batches are read, if ``source`` is something else.
        ValueError
            While batches are read, if files are damaged, if a column is missing or two have its name, if the
            filter does not fit, or if no rows are left.

        Examples
        --------
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import pyarrow.compute as pc
        >>> from pyarrow import parquet
        >>> from ranktrees.datasets import Batches
        >>> rows = pa.table(
        ...     {"grade": [2, 0, 1], "query": [7, 7, 9], "bm25": [0.5, 0.0, 3.0], "day": [1, 1, 2]}
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     parquet.write_to_dataset(rows, folder, partition_cols=["day"])
        ...     named = {"label": "grade", "qid": "query", "features": ["bm25"]}
        ...     batches = Batches.from_arrow(folder, **named, filter=pc.field("day") == 1)
        ...     [batch.X["bm25"].to_pylist() for batch in batches]
        [[0.5, 0.0]]
        """
        pyarrow = pyarrow_with("dataset", "Batches.from_arrow")
        _check_rows_of_batch(batch_rows)
        named = {"y": label, "qid": qid, "sample_weight": sample_weight, "ids": ids}

        def batches() -> Iterator[dict[str, Any]]:
            rows = source() if callable(source) else source
            holder = f"source ({as_seen(rows)})"
            n_rows = 0
            with _reading(holder, *_ARROW):
                if isinstance(rows, (str, os.PathLike)):
                    rows = pyarrow.dataset.dataset(os.fspath(rows), format="parquet", partitioning="hive")
                elif hasattr(rows, "__arrow_c_stream__"):
                    rows = pyarrow.RecordBatchReader.from_stream(rows)
            if isinstance(rows, pyarrow.dataset.Dataset):
                scanner_of = rows.scanner
                ahead = {"batch_readahead": 1, "fragment_readahead": 1}  # otherwise 64 batches are in memory
            elif isinstance(rows, pyarrow.RecordBatchReader):
                scanner_of, ahead = partial(pyarrow.dataset.Scanner.from_batches, rows), {}
            else:
                raise TypeError(
                    f"{holder} has no rows of Arrow; expected the path of a folder of Parquet files, a "
                    "pyarrow.dataset.Dataset, an object with __arrow_c_stream__, or a function that returns "
                    "one of them."
                )
            columns = Columns.among(rows.schema.names, holder, features, (), **named)
            with _reading(holder, *_ARROW):
                parts = scanner_of(
                    columns=columns.names, filter=filter, batch_size=batch_rows, **ahead
                ).to_batches()
            while (part := _next(parts, holder)) is not None:
                for first in range(0, len(part), batch_rows):
                    some = pyarrow.Table.from_batches([part.slice(first, batch_rows)])
                    n_rows += len(some)
                    yield columns.arguments(some)
            _require_rows(n_rows, holder)

        return cls(batches, folder=folder)

    @classmethod
    def from_polars(
        cls,
        frame: Any,
        *,
        label: str | None = None,
        qid: str | None = None,
        features: Sequence[str] | None = None,
        sample_weight: str | None = None,
        ids: str | None = None,
        batch_rows: int = 50_000,
        folder: PathLike | None = None,
    ) -> Self:
        """Make batches of a query of polars, such as a scan of files, by its streaming engine.

        Only the columns that are named or features are read.

        Parameters
        ----------
        frame : polars.LazyFrame
            The query. Its rows are computed whenever batches are read.
        label : str, default=None
            The name of the column with the labels. Without labels, rows can only be scored.
        qid, sample_weight, ids : str, default=None
            The names of the columns with the query ids, the weights and the ids of rows, if there are any.
        features : sequence of str, default=None
            The names of the columns of ``X``. If None, all other columns, in their order.
        batch_rows : int, default=50_000
            The maximum number of rows of a batch.
        folder
            As in `Batches`.

        Returns
        -------
        Batches
            The batches. Each ``X`` is a frame of polars.

        Raises
        ------
        TypeError
            If ``frame`` is no LazyFrame, or one of a version of polars that cannot compute batches.
        ValueError
            While batches are read, if a column is missing, or if there are no rows.

        Examples
        --------
        >>> import polars as pl  # doctest: +SKIP
        >>> scan = pl.scan_parquet("rows/*.parquet").filter(pl.col("day") > 7)  # doctest: +SKIP
        >>> batches = Batches.from_polars(scan, label="grade", qid="query")  # doctest: +SKIP
        """
        if not hasattr(frame, "collect_batches"):
            raise TypeError(
                f"frame is {as_seen(frame)}, which has no collect_batches; expected a LazyFrame of polars "
                "1.34 or later: call lazy() of a DataFrame, or install a later polars."
            )
        _check_rows_of_batch(batch_rows)
        named = {"y": label, "qid": qid, "sample_weight": sample_weight, "ids": ids}

        def batches() -> Iterator[dict[str, Any]]:
            columns = Columns.among(frame.collect_schema().names(), "frame", features, (), **named)
            n_rows = 0
            some = frame.select(columns.names)
            for part in some.collect_batches(chunk_size=batch_rows, maintain_order=True):
                for few in part.iter_slices(batch_rows):
                    n_rows += len(few)
                    yield columns.arguments(few)
            _require_rows(n_rows, "frame")

        return cls(batches, folder=folder)

    @classmethod
    def from_numpy(
        cls, shards: Sequence[Any], *, batch_rows: int = 50_000, folder: PathLike | None = None
    ) -> Self:
        """Make batches of the rows of NumPy files or arrays, one shard after the other.

        Parameters
        ----------
        shards : sequence
            The shards. A shard may be the path of an ``.npz`` file with arrays ``X``, ``y`` and perhaps
            ``qid`` and ``sample_weight``, which is read as a whole. It may also be a tuple of these in this
            order, each an array, a memory map, or the path of an ``.npy`` file, of which only the rows of a
            batch are read.
        batch_rows : int, default=50_000
            The maximum number of rows of a batch.
        folder
            As in `Batches`.

        Returns
        -------
        Batches
            The batches.

        Raises
        ------
        ValueError
            While batches are read, if a file is damaged, if the arrays of a shard have different lengths, or
            if no shard has rows.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from ranktrees.datasets import Batches
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(f"{folder}/1.npz", X=np.eye(3), y=np.arange(3), qid=np.zeros(3))
        ...     np.save(f"{folder}/X2.npy", np.ones((2, 3)))
        ...     shards = [f"{folder}/1.npz", (f"{folder}/X2.npy", [1, 0], [7, 7])]
        ...     [batch.X.shape for batch in Batches.from_numpy(shards, batch_rows=2)]
        [(2, 3), (1, 3), (2, 3)]
        """
        _check_rows_of_batch(batch_rows)
        shards = _paths(shards, "shards")

        def source() -> Iterator[dict[str, Any]]:
            n_rows = 0
            for number, shard in enumerate(shards):
                if isinstance(shard, tuple) and len(shard) <= len(_IN_TUPLES):
                    arrays = {name: _mapped(part) for name, part in zip(_IN_TUPLES, shard, strict=False)}
                elif isinstance(shard, (str, os.PathLike)) and Path(shard).suffix == ".npz":
                    arrays = _arrays_of_file(shard, f"shard {number}")
                else:
                    is_path = isinstance(shard, (str, os.PathLike))
                    seen = repr(str(shard)) if is_path else f"a {_with_entries(shard)}"
                    raise TypeError(
                        f"shard {number} is {seen}; expected the path of an .npz file, or a tuple (X, y, "
                        "qid) or (X, y, qid, sample_weight) of arrays or paths of .npy files."
                    )
                arrays = {name: array for name, array in arrays.items() if array is not None}
                lengths = {name: len(array) for name, array in arrays.items()}
                if "X" not in arrays or len(set(lengths.values())) > 1:
                    raise ValueError(
                        f"shard {number} holds {lengths}; expected X, y and perhaps qid and sample_weight, "
                        "with the same number of rows in each."
                    )
                for first in range(0, lengths["X"], batch_rows):
                    yield {name: array[first : first + batch_rows] for name, array in arrays.items()}
                n_rows += lengths["X"]
            _require_some(n_rows, shards, "shards")

        return cls(source, folder=folder)


def _paths(paths: Any, name: str = "paths") -> list[Any]:
    if hasattr(paths, "read"):
        raise TypeError(f"{name} is an open file, {paths!r}; expected paths: files are read at each fit.")
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not paths:
        raise ValueError(f"{name} is empty; expected at least one: check the pattern that was to find them.")
    for path in paths:
        if isinstance(path, (str, os.PathLike)) and Path(path).is_dir():
            raise ValueError(
                f"{name} has {str(path)!r}, which is a folder; expected files: pass those in it, as by "
                f'sorted(Path({str(path)!r}).glob("*")).'
            )
    return paths


def _require_some(n_rows: int, sources: list[Any], name: str) -> None:
    if not n_rows:
        raise ValueError(
            f"none of the {len(sources)} {name} has any rows; expected rows in at least one: check the "
            "program that wrote them."
        )


def _require_rows(n_rows: int, holder: str) -> None:
    if not n_rows:
        raise ValueError(
            f"{holder} has no rows; expected at least one: check the filter, and the program that wrote them."
        )


def _with_entries(batch: Any) -> str:
    """Describe an invalid batch by its type and its entries, for messages."""
    kind = type(batch).__name__
    if isinstance(batch, Mapping):
        return f"{kind} of {', '.join(map(repr, batch)) or 'nothing'}"
    return f"{kind} of {len(batch)}" if isinstance(batch, tuple) else kind


@contextmanager
def _reading(path: Any, kind: str, expected: str = "file: write it again") -> Iterator[None]:
    """Name the file if it cannot be read."""
    try:
        yield
    except _UNREADABLE as error:
        not_there = isinstance(error, FileNotFoundError)
        if not_there or (isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)):
            raise
        raise ValueError(
            f"{path} cannot be read ({type(error).__name__}: {error}); expected a complete {kind} {expected}."
        ) from error


def _arrays_of_file(path: Any, name: str) -> dict[str, np.ndarray]:
    """The arrays of an ``.npz`` file, which must not contain any others."""
    with _reading(path, ".npz"), open(path, "rb") as stream, np.load(stream) as file:
        unknown = [array for array in file if array not in _IN_TUPLES]
        arrays = {} if unknown else {array: file[array] for array in file}
    if unknown:
        raise ValueError(
            f"{name}, {path}, has {', '.join(map(repr, unknown))}; expected arrays called "
            f"{', '.join(_IN_TUPLES)}: rename them, or leave the others out."
        )
    return arrays


def _parts(file: Any, path: Any, n_rows: int, columns: list[str]) -> Iterator[Any]:
    with _reading(path, "Parquet"):
        yield from file.iter_batches(n_rows, columns=columns)


def _next(parts: Iterator[Any], holder: str) -> Any:
    """The next part that an Arrow data set yields; None at the end."""
    with _reading(holder, *_ARROW):
        return next(parts, None)


def _check_rows_of_batch(batch_rows: Any) -> None:
    if not is_whole(batch_rows, 1):
        raise ValueError(f"batch_rows={batch_rows!r}; expected an integer of at least 1.")


def _index_columns(schema: Any) -> list[str]:
    """The columns that hold the index of a pandas frame; a range index is not stored in columns."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [column for column in index if isinstance(column, str)]


def _mapped(part: Any) -> Any:
    if not isinstance(part, (str, os.PathLike)):
        return part
    with _reading(part, ".npy"):
        return np.load(part, mmap_mode="r")
