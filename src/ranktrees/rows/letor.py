"""LETOR files, with one row per line: ``label qid:query feature:value ... # document id``.

Kernels read and write blocks of whole lines, on several threads. The kernel says which line of a block is
malformed, and `_find_problem` says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, overload

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch, check_array

from ranktrees._core.rows.letor import LetorLines, scan, widen, write_rows
from ranktrees._core.support.threads import StandardFloats
from ranktrees.rows.text_files import (
    INTEGER,
    LONGEST,
    NUMBER,
    OPENERS,
    ahead,
    as_int64,
    blocks_of,
    decoded,
    hint_of_returns,
    line_at,
    name_of,
    quote,
    reading,
    require_encoding,
    require_file,
    writing,
)
from ranktrees.support.numeric import is_whole, unmasked
from ranktrees.support.parallel import effective_n_threads

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from ranktrees.support.annotations import IdsLike, PathLike, RowsLike

_BLOCK_ROWS = 4096
_BLOCK_VALUES = 1 << 18
_NS_OF_VALUE = 30  # to write one
_LARGEST_INDEX = np.iinfo(np.int32).max
_LARGE_BYTES = 1 << 30
_CELLS_PER_VALUE = 100
_PARTS = {
    "train": ("train",),
    "vali": ("vali", "valid"),
    "test": ("test",),
}  # what files of a part are called
_QID = re.compile(rb"[^\s#:\0]{1,%d}" % LONGEST)


@overload
def load_letor(
    path: PathLike | BinaryIO,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float32,
    sparse: bool = False,
    absent: float = 0.0,
    missing: str | Sequence[str] = (),
    encoding: str = "utf-8",
    return_ids: bool = False,
    return_X_y_qid: Literal[False] = False,
) -> Bunch: ...


@overload
def load_letor(
    path: PathLike | BinaryIO,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float32,
    sparse: bool = False,
    absent: float = 0.0,
    missing: str | Sequence[str] = (),
    encoding: str = "utf-8",
    return_ids: bool = False,
    return_X_y_qid: Literal[True],
) -> tuple[Any, ...]: ...


def load_letor(
    path: PathLike | BinaryIO,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float32,
    sparse: bool = False,
    absent: float = 0.0,
    missing: str | Sequence[str] = (),
    encoding: str = "utf-8",
    return_ids: bool = False,
    return_X_y_qid: bool = False,
) -> Any:
    """Read a LETOR file (svmlight with ``qid:``).

    A line is one row, such as ``2 qid:10 1:0.03 2:0.1 46:0.076 # docid = GX029-35-5894638``. It holds the
    label, the query id, which is an integer or a string of at most 1000 bytes, and then pairs of a feature
    number and a value. Feature numbers count from 1 and increase. Whatever follows ``#`` is the id of the
    document. Blank lines, lines that hold only a comment and a byte order mark at the start are skipped.
    Values may be ``nan`` or ``inf``, but labels may not.

    Parameters
    ----------
    path : str, path-like or binary file
        The file. Its suffix ``.gz``, ``.xz``, ``.bz2`` or ``.zst`` says how it is compressed; the last needs
        Python 3.14 or the package backports.zstd. An open binary file is
        read as it is from its current position to its end, and left open.
    n_features : int, default=None
        The number of features, at least the largest feature number in the file. If None, it is the largest
        feature number in the file. In that case a dense array of more than a GiB is refused if less than a
        hundredth of its values are in the file, since one mistyped number is enough to produce it. Files that
        belong together may end at different features: pass the number, or use :func:`load_letor_folds`.
    dtype : {np.float32, np.float64}, default=np.float32
        The type of the values.
    sparse : bool, default=False
        Whether to return the values as a CSR matrix without stored zeros, of the kind that
        :func:`sklearn.datasets.load_svmlight_file` returns.
    absent : {0.0, nan}, default=0.0
        The value of features that a line does not name. For a CSR matrix it can only be 0.
    missing : str or sequence of str, default=()
        What else stands for a missing value, which is read as NaN: ``"NULL"`` for the collections of that
        name in LETOR 4.0. A value that is spelled exactly like this is missing, even if it is a number.
    encoding : str, default="utf-8"
        How document ids and query ids are encoded, such as ``"latin-1"`` for the Istella collections. Bytes
        that are none of this encoding are kept as surrogates (see :pep:`383`), with a warning.
    return_ids : bool, default=False
        Whether to return the document ids as well. An id is the text after ``#`` without surrounding white
        space, or ``""`` if there is none.
    return_X_y_qid : bool, default=False
        Whether to return the tuple ``(X, y, qid)``, or ``(X, y, qid, ids)`` with `return_ids`, instead of a
        `Bunch`.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        data : ndarray or CSR matrix of shape (n_rows, n_features), of type `dtype`
            The rows, in the order of the file.
        target : float64 ndarray of shape (n_rows,)
            The labels.
        qid : ndarray of shape (n_rows,)
            The query id of each row: int64 if all ids are integers of 64 bits, otherwise str.
        ids : object ndarray of str of shape (n_rows,)
            The document ids, only with `return_ids`.

    Raises
    ------
    ValueError
        If a line is malformed, longer than 64 MiB, or names an implausibly large feature (the message gives
        the file and the number of the line, counted from 1), if the file has no rows or no features, or if
        `absent`, `dtype`, `n_features`, `missing` or `encoding` is out of range.

    See Also
    --------
    load_letor_folds : All parts of all folds, with the same number of features.
    dump_letor : Write such a file.

    Notes
    -----
    The format is that of SVMlight [1]_, as used by LETOR [2]_.

    References
    ----------
    .. [1] Joachims, *Optimizing Search Engines using Clickthrough Data*, KDD 2002.
    .. [2] Qin, Liu, Xu, Li, *LETOR: A Benchmark Collection for Research on Learning to Rank for Information
       Retrieval*, Information Retrieval 13, 2010.

    Examples
    --------
    >>> import io
    >>> from ranktrees.datasets import load_letor
    >>> file = io.BytesIO(b"2 qid:10 1:0.5 3:1 # GX-1\\n0 qid:10 2:4 # GX-2\\n1 qid:11 1:3\\n")
    >>> data = load_letor(file, return_ids=True)
    >>> data.data
    array([[0.5, 0. , 1. ],
           [0. , 4. , 0. ],
           [3. , 0. , 0. ]], dtype=float32)
    >>> data.target
    array([2., 0., 1.])
    >>> data.qid
    array([10, 10, 11])
    >>> data.ids
    array(['GX-1', 'GX-2', ''], dtype=object)
    """
    options = _check_options(n_features, dtype, sparse, absent, missing, encoding)
    rows, seen, ids = _Rows(options), _Seen(), []
    for first_line, block, lines in _read(path, options):
        if n_features is None and not sparse:
            if lines.largest > seen.largest:
                seen.largest = lines.largest
                seen.where = f"{name_of(path)}, line {line_at(block, first_line, lines.line_of_largest)}"
            seen.n_rows += lines.n_rows
            seen.n_values += lines.n_pairs
            seen.require_dense(options.dtype, "sparse=True for a CSR matrix")
        rows.add(lines)
        if return_ids:
            ids += lines.ids()

    if not rows.n_rows:
        raise _no_rows([path])
    if not rows.n_features:
        raise _no_features([path])
    data = Bunch(data=rows.values(), target=rows.labels.all(), qid=rows.qid())
    if return_ids:
        data.ids = np.array(decoded(ids, encoding), dtype=object)
    return tuple(data.values()) if return_X_y_qid else data


def load_letor_folds(
    folder: PathLike,
    *,
    parts: Sequence[str] = ("train", "vali", "test"),
    n_features: int | None = None,
    dtype: DTypeLike = np.float32,
    sparse: bool = False,
    absent: float = 0.0,
    missing: str | Sequence[str] = (),
    encoding: str = "utf-8",
    return_ids: bool = False,
) -> Iterator[Bunch]:
    """Read the folds of a LETOR data set, all with the same number of features.

    Parameters
    ----------
    folder : str or path-like
        A folder that holds ``Fold1``, ``Fold2`` ..., each with ``train.txt``, ``vali.txt`` (or ``valid.txt``)
        and ``test.txt``. It may also hold these three files itself, as a single fold; or, as that of Yahoo,
        ``set1.train.txt``, ``set1.valid.txt`` ..., where each set is a fold. Each file may be compressed, as
        for :func:`load_letor` (``.txt.gz`` ...).
    parts : sequence of {"train", "vali", "test"}, default=("train", "vali", "test")
        The parts that each fold has: ``("train", "test")`` for Istella LETOR, which has no validation rows.
    n_features : int, default=None
        The number of features. If None, it is the largest feature number in any file of any fold, for which
        all files are scanned quickly first.
    dtype, sparse, absent, missing, encoding, return_ids
        As in :func:`load_letor`.

    Returns
    -------
    folds : iterator of :class:`~sklearn.utils.Bunch`
        The folds in the order of their numbers. Each fold is read when the iterator reaches it. It has the
        entries ``name`` (such as ``"Fold1"``), ``train``, ``vali`` and ``test``, or those of `parts`, as
        :func:`load_letor` returns them. ``list(load_letor_folds(folder))`` holds all folds in memory at once.

    Raises
    ------
    FileNotFoundError
        If `folder` holds no fold, or if a fold lacks a part. This is checked before anything is read.
    ValueError
        In the same cases as :func:`load_letor`, if `parts` are others, or if a fold holds both ``vali.txt``
        and ``valid.txt``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ranktrees.datasets import load_letor_folds
    >>> folder = tempfile.TemporaryDirectory()
    >>> for fold in ("Fold1", "Fold2"):
    ...     Path(folder.name, fold).mkdir()
    ...     for part, line in {"train": "1 qid:1 1:2", "vali": "0 qid:2 3:1", "test": "2 qid:3 2:5"}.items():
    ...         _ = Path(folder.name, fold, f"{part}.txt").write_text(line)
    >>> for fold in load_letor_folds(folder.name):
    ...     print(fold.name, fold.train.data, fold.vali.data, fold.test.data)
    Fold1 [[2. 0. 0.]] [[0. 0. 1.]] [[0. 5. 0.]]
    Fold2 [[2. 0. 0.]] [[0. 0. 1.]] [[0. 5. 0.]]
    >>> folder.cleanup()
    """
    checked = _check_options(n_features, dtype, sparse, absent, missing, encoding)
    parts = _check_parts(parts)
    folds = [(fold.name, {part: fold.path_of(part) for part in parts}) for fold in _find_folds(folder)]
    if n_features is None:
        seen = _scan(path for _, paths in folds for path in paths.values())
        if not sparse:
            seen.require_dense(checked.dtype, "sparse=True for CSR matrices")
        n_features = seen.largest or None
    options: dict[str, Any] = {"dtype": dtype, "sparse": sparse, "absent": absent, "return_ids": return_ids}
    options |= {"missing": missing, "encoding": encoding}
    return (
        Bunch(
            name=name,
            **{part: load_letor(path, n_features=n_features, **options) for part, path in paths.items()},
        )
        for name, paths in folds
    )


def dump_letor(
    X: RowsLike,
    y: ArrayLike,
    path: PathLike | BinaryIO,
    *,
    qid: IdsLike,
    ids: ArrayLike | None = None,
    keep_zeros: bool | None = None,
    encoding: str = "utf-8",
) -> None:
    """Write rows as a LETOR file that :func:`load_letor` reads back exactly.

    The file takes its place once it is complete; until then, what was at the path stays as it was.
    Values are written with as few digits as distinguish them in their own type, float32 or float64. Features
    that a line does not name are zeros or, if a dense `X` has missing values, missing. In the latter case
    read the file with ``absent=nan``. If no row would name the last feature, the first row does, so that the
    file carries its number of features.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        The values. Types other than float32 are written as float64. NaN and masked entries in a dense `X`
        are left out. In a sparse `X`, in which values that are not stored are 0, NaN is written as ``nan``.
    y : array-like of shape (n_rows,)
        Finite labels.
    path : str, path-like or binary file
        The file to write. With the suffix ``.gz``, ``.xz``, ``.bz2`` or ``.zst`` it is compressed, as
        for :func:`load_letor`. An open binary file is left open.
    qid : array-like of shape (n_rows,)
        The query id of each row: integers, or strings of at most 1000 bytes without white space, ``:`` and
        ``#``. Strings are read back as integers if all of them look like integers. So 01, which would become
        1, is refused.
    ids : array-like of str of shape (n_rows,), default=None
        Document ids, to be written after ``#``: single lines without white space around them.
    keep_zeros : bool, default=None
        Whether to write zeros. If None, they are written only if a dense `X` holds NaN, because what is left
        out can be read back as zero or as missing but not as both. False is not allowed for such an `X`.
    encoding : str, default="utf-8"
        How ids are encoded, as in :func:`load_letor`. Surrogates that stand for bytes are written as these.

    Raises
    ------
    TypeError
        If `path` is neither a path nor a file.
    ValueError
        If an argument does not have the shape or content described above. In that case nothing is written.

    See Also
    --------
    load_letor : Read such a file.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from ranktrees.datasets import dump_letor
    >>> file = io.BytesIO()
    >>> dump_letor(np.float32([[0.1, 0, 3], [0, 2.5, 0]]), [2, 0], file, qid=[7, 7], ids=["a", "b"])
    >>> print(file.getvalue().decode(), end="")
    2 qid:7 1:0.1 3:3 # a
    0 qid:7 2:2.5 # b
    """
    require_file(path, "dump_letor(X, y, path, qid=qid)")
    require_encoding(encoding)
    X = check_array(unmasked(X), accept_sparse="csr", dtype=(np.float64, np.float32), ensure_all_finite=False)
    n_rows, n_features = X.shape
    labels: Any = check_array(unmasked(y), ensure_2d=False, dtype=(np.float64, np.float32), input_name="y")
    _check_length("y", labels, n_rows)
    qid_texts = _check_qids(_check_length("qid", np.asanyarray(qid), n_rows), encoding)
    ids = None if ids is None else _check_length("ids", np.asarray(ids, object), n_rows)
    endings = None if ids is None else _check_ids(ids, encoding)
    has_missing = not sp.issparse(X) and bool(np.isnan(X).any())
    if keep_zeros is None:
        keep_zeros = has_missing
    elif has_missing and not keep_zeros:
        raise ValueError(
            "keep_zeros=False, and X holds NaN: zeros and missing values would be the same in the file. "
            "Leave keep_zeros out, or replace the NaN."
        )
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()

    last = X[:, [n_features - 1]]
    values = last.data if sp.issparse(last) else last[~np.isnan(last)]
    is_last_named = len(values) > 0 if keep_zeros else bool((values != 0).any())
    n_values = X.nnz if sp.issparse(X) else X.size
    rows_of_block = max(1, min(_BLOCK_ROWS, _BLOCK_VALUES * n_rows // max(1, n_values)))
    n_threads = effective_n_threads(None, _NS_OF_VALUE * n_values)
    with writing(path, "the rows") as stream:
        for start in range(0, n_rows, rows_of_block):
            some = slice(start, start + rows_of_block)
            with StandardFloats(n_threads):
                parts = write_rows(
                    labels[some].astype(np.float64),
                    labels.dtype == np.float32,
                    qid_texts[some],
                    None if endings is None else endings[some],
                    *_stored(X, some),
                    keep_zeros,
                    0 if start or is_last_named else n_features,
                    X[0, n_features - 1],
                    n_threads,
                )
            for part in parts:
                stream.write(part.tobytes())


# Files


@dataclass(frozen=True)
class _Fold:
    name: str
    folder: Path
    prefix: str = ""

    def path_of(self, part: str) -> Path:
        names = [f"{self.prefix}{name}.txt" for name in _PARTS[part]]
        for suffix in ("", *OPENERS):
            paths = [path for name in names if (path := self.folder / f"{name}{suffix}").is_file()]
            if len(paths) > 1:
                raise ValueError(
                    f"{self.folder} holds {' and '.join(path.name for path in paths)}, which are the same "
                    "part; expected one of them: remove or rename the other."
                )
            if paths:
                return paths[0]
        others = [other for other in _PARTS if other != part]
        raise FileNotFoundError(
            f"{self.folder} holds no {' or '.join(names)}, nor one that ends in {', '.join(OPENERS)}; "
            "expected a folder with train.txt, vali.txt and test.txt, or set1.train.txt ..., or one with "
            f"such folders named Fold1, Fold2 ...; pass parts={others} if that part does not exist."
        )


def _find_folds(folder: Any) -> list[_Fold]:
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder; expected one that holds Fold1, Fold2 ...")
    numbered: dict[int, _Fold] = {}
    sets: dict[int, _Fold] = {}
    parts = "|".join(name for names in _PARTS.values() for name in names)
    for inner in folder.iterdir():
        if inner.is_dir() and (match := re.fullmatch(r"fold[ _-]?(\d+)", inner.name, re.IGNORECASE)):
            numbered[int(match[1])] = _Fold(inner.name, inner)
        elif match := re.match(rf"(set(\d+))\.({parts})\.txt", inner.name):
            sets[int(match[2])] = _Fold(match[1], folder, f"{match[1]}.")
    found = numbered or sets
    return [found[number] for number in sorted(found)] or [_Fold(folder.name, folder)]


def _check_parts(parts: Sequence[str]) -> tuple[str, ...]:
    given = (parts,) if isinstance(parts, str) else tuple(parts)
    if not given or any(part not in _PARTS for part in given) or len(set(given)) < len(given):
        raise ValueError(f"parts={parts!r}; expected some of {tuple(_PARTS)}, each at most once.")
    return given


@dataclass
class _Seen:
    """What is known of files: how many rows and values they hold, and where the largest feature is."""

    largest: int = 0
    where: str = ""
    n_rows: int = 0
    n_values: int = 0

    def require_dense(self, dtype: np.dtype[Any], otherwise: str | None = None) -> None:
        """Raise for a dense array that would be large and nearly empty, since a feature may be mistyped."""
        n_cells = self.n_rows * self.largest
        if n_cells * dtype.itemsize <= _LARGE_BYTES or n_cells <= _CELLS_PER_VALUE * self.n_values:
            return
        other = "" if otherwise is None else f", or {otherwise}"
        raise ValueError(
            f"{self.where}: feature {self.largest}, which makes {self.n_rows} rows a dense array of "
            f"{n_cells * dtype.itemsize / 2**30:.3g} GiB for {self.n_values} values; expected an array that "
            f"is smaller or fuller: correct the line if it is mistyped, or pass n_features={self.largest} "
            f"if it is intended{other}."
        )


def _scan(paths: Iterable[Any]) -> _Seen:
    """Return what is seen in a quick scan of the last pair of each line. Malformed lines are skipped."""
    seen = _Seen()
    for path in paths:
        with reading(path) as stream:
            for first_line, block in ahead(blocks_of(stream, name_of(path))):
                n_rows, n_pairs, largest, place = scan(block, effective_n_threads(None, len(block)))
                seen.n_rows += n_rows
                seen.n_values += n_pairs
                if largest > seen.largest:
                    seen.largest = largest
                    seen.where = f"{name_of(path)}, line {line_at(block, first_line, place)}"
    return seen


def _no_rows(paths: Sequence[Any]) -> ValueError:
    return ValueError(f"{_names(paths)} no rows; expected lines such as '2 qid:10 1:0.03 2:0.1'.")


def _no_features(paths: Sequence[Any]) -> ValueError:
    return ValueError(f"{_names(paths)} no feature:value pair; pass n_features if that is intended.")


def _names(paths: Sequence[Any]) -> str:
    first, *others = map(name_of, paths)
    return f"{first} and {len(others)} more hold" if others else f"{first} holds"


# Reading


@dataclass(frozen=True)
class _Options:
    n_features: int | None
    dtype: np.dtype[Any]
    sparse: bool
    absent: float
    missing: tuple[bytes, ...]
    encoding: str


def _check_options(
    n_features: int | None,
    dtype: DTypeLike,
    sparse: bool,
    absent: float,
    missing: str | Sequence[str] = (),
    encoding: str = "utf-8",
) -> _Options:
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r}; expected np.float32 or np.float64.")
    if n_features is not None and not is_whole(n_features, 1):
        raise ValueError(f"n_features={n_features!r}; expected an integer of at least 1, or None.")
    if absent != 0 and not np.isnan(absent):
        raise ValueError(f"absent={absent!r}; expected 0.0 or nan.")
    if sparse and absent != 0:
        raise ValueError(
            "absent=nan and sparse=True: values that a CSR matrix does not store are 0; use sparse=False."
        )
    require_encoding(encoding)
    texts = (missing,) if isinstance(missing, str) else tuple(missing)
    for text in texts:
        if not isinstance(text, str) or not re.fullmatch(r"[^\s#\0]+", text):
            raise ValueError(
                f"missing holds {text!r}; expected texts such as 'NULL', without white space and '#'."
            )
    encoded = tuple(text.encode(encoding, "surrogateescape") for text in texts)
    return _Options(n_features, np.dtype(dtype), sparse, absent, encoded, encoding)


class _Growing:
    """A flat array that grows in place, so that its peak of memory is little more than what it holds.

    It can grow while no array that it has given is in use. NumPy's own arrays are copied to grow, since 2.5.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self._dtype, self._bytes = np.dtype(dtype), bytearray()

    def more(self, n: int) -> np.ndarray:
        """The next n elements."""
        before = len(self._bytes)
        self._bytes += bytes(n * self._dtype.itemsize)
        return np.ndarray(n, self._dtype, self._bytes, before)

    def all(self) -> np.ndarray:
        return np.ndarray(len(self._bytes) // self._dtype.itemsize, self._dtype, self._bytes)


class _Rows:
    """The rows of all lines that were added."""

    def __init__(self, options: _Options) -> None:
        self._options = options
        self.n_rows = 0
        self.n_features = options.n_features or 0
        self.labels = _Growing(np.float64)
        self._values = _Growing(options.dtype)
        self._features = _Growing(np.int32)
        self._lengths = _Growing(np.int64)  # of rows of a sparse matrix
        self._queries: list[tuple[bytes, np.ndarray | None, np.ndarray]] = []

    def add(self, lines: LetorLines) -> None:
        lines.labels(self.labels.more(lines.n_rows))
        self._queries.append(lines.queries())
        with StandardFloats(lines.n_threads):
            self._add_sparse(lines) if self._options.sparse else self._add_dense(lines)
        self.n_rows += lines.n_rows

    def _add_sparse(self, lines: LetorLines) -> None:
        n = lines.n_stored
        lines.sparse(self._values.more(n), self._features.more(n), self._lengths.more(lines.n_rows))
        self.n_features = max(self.n_features, lines.largest)

    def _add_dense(self, lines: LetorLines) -> None:
        absent, before = self._options.absent, self.n_features
        if lines.largest > before:
            self.n_features = lines.largest
            self._values.more(self.n_rows * (self.n_features - before))
            widen(self._values.all(), self.n_rows, before, self.n_features, absent)
        if self.n_features:
            more = self._values.more(lines.n_rows * self.n_features)
            lines.dense(more.reshape(lines.n_rows, self.n_features), absent)

    def values(self) -> Any:
        shape, values = (self.n_rows, self.n_features), self._values.all()
        if not self._options.sparse:
            return values.reshape(shape)
        offsets = np.append(0, np.cumsum(self._lengths.all()))
        return sp.csr_matrix((values, self._features.all(), offsets), shape)

    def texts(self) -> list[bytes]:
        """The texts of runs of equal queries."""
        return b"\n".join(texts for texts, _, _ in self._queries).split(b"\n")

    def qid(self, as_texts: bool = False) -> np.ndarray:
        """The queries as int64 if all are integers, else as str."""
        queries: Any = [integers for _, integers, _ in self._queries]
        if as_texts or any(integers is None for integers in queries):
            queries = [decoded(self.texts(), self._options.encoding)]
        return np.repeat(
            np.concatenate(queries), np.concatenate([lengths for _, _, lengths in self._queries])
        )


def letor_batches(
    paths: Sequence[Any],
    batch_rows: int,
    n_features: int | None,
    dtype: Any,
    absent: float,
    missing: str | Sequence[str] = (),
    encoding: str = "utf-8",
) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    """Yield (X, y, qid) of about ``batch_rows`` rows: whole blocks of lines, one file after the other."""
    options = _check_options(n_features, dtype, False, absent, missing, encoding)
    if n_features is None:
        seen = _scan(paths)
        seen.require_dense(options.dtype)
        options = replace(options, n_features=seen.largest)
    kind = None
    for rows in _batches(chain.from_iterable(_read(path, options) for path in paths), batch_rows, options):
        if rows.n_features == 0:
            raise _no_features(paths)
        qid = rows.qid(as_texts=kind == "U")
        if kind == "i" and qid.dtype.kind == "U":
            text = next(text for text in rows.texts() if as_int64(text) is None)
            raise ValueError(
                f"qid {quote(text)} is a string, but the ids in earlier batches are 64-bit integers; "
                "expected one kind: name all queries by strings, or all by 64-bit integers."
            )
        kind = qid.dtype.kind
        yield rows.values(), rows.labels.all(), qid
    if kind is None:
        raise _no_rows(paths)


def _batches(
    blocks: Iterator[tuple[int, bytes, LetorLines]], n_rows: int, options: _Options
) -> Iterator[_Rows]:
    """Yield the rows of the next blocks that together hold ``n_rows`` rows, and at last what is left."""
    rows = _Rows(options)
    for _, _, lines in blocks:
        rows.add(lines)
        if rows.n_rows >= n_rows:
            yield rows
            rows = _Rows(options)
    if rows.n_rows:
        yield rows


def _read(path: Any, options: _Options) -> Iterator[tuple[int, bytes, LetorLines]]:
    """Yield the blocks of a file that hold rows: the number of the first line, the block, and its rows."""
    most_features = min(_LARGEST_INDEX, _LARGEST_INDEX if options.n_features is None else options.n_features)
    missing = b"".join(text + b"\0" for text in options.missing)
    lines = LetorLines(most_features, options.dtype == np.float32, missing)
    with reading(path) as stream:
        for first_line, block in ahead(blocks_of(stream, name_of(path))):
            n_threads = effective_n_threads(None, len(block))
            with StandardFloats(n_threads):
                lines.read(block, n_threads)
            if lines.problem >= 0:
                line = block[lines.problem :].partition(b"\n")[0]
                number = line_at(block, first_line, lines.problem)
                problem = _find_problem(line, options.n_features, options.dtype, options.missing)
                raise ValueError(f"{name_of(path)}, line {number}: {problem}{hint_of_returns(line)}")
            if lines.n_rows:
                yield first_line, block, lines


def _find_problem(
    line: Any, n_features: int | None, dtype: np.dtype[Any], missing: Sequence[bytes] = ()
) -> str | None:
    """Describe in words what is malformed in a line, or return None."""
    line = line.partition(b"#")[0]
    tokens = line.split()
    if not tokens:
        return None
    if b"\0" in line:
        return "a zero byte; expected text."
    label, pairs = tokens[0], tokens[2:]
    if b":" in label:
        return f"no label: the line begins with {quote(label)}; expected a number, then qid:<query>."
    if not _is_number(label) or not np.isfinite(float(label)):
        return f"label {quote(label)}; expected a finite number."
    if len(tokens) == 1 or not tokens[1].startswith(b"qid:"):
        seen = quote(tokens[1]) if len(tokens) > 1 else "the end of the line"
        return (
            f"no qid: the label is followed by {seen}; expected qid:<query>. Rows without ids are read by "
            "sklearn.datasets.load_svmlight_file, runs and judgements by load_trec_run and load_trec_qrels."
        )
    if not _QID.fullmatch(tokens[1][4:]):
        return (
            f"{quote(tokens[1])}; expected qid:<query>, an integer or a string without ':', of at most "
            f"{LONGEST} bytes."
        )
    previous = 0
    for pair in pairs:
        feature, colon, value = pair.partition(b":")
        if not colon:
            return f"{quote(pair)}; expected a pair feature:value."
        if not INTEGER.fullmatch(feature):
            seen = f"feature {quote(feature)} in {quote(pair)}"
            return f"{seen}; expected an integer of at most {_LARGEST_INDEX}."
        index = int(feature)
        if index < 1:
            return (
                f"feature {index} in {quote(pair)}; expected at least 1: features are counted from 1. "
                "Files that count from 0 are read by sklearn.datasets.load_svmlight_file(path, "
                "zero_based=True, query_id=True)."
            )
        if index > _LARGEST_INDEX:
            return f"feature {quote(feature)} in {quote(pair)}; expected at most {_LARGEST_INDEX}."
        if index == previous:
            return f"feature {index} twice; expected each feature at most once, in increasing order."
        if index < previous:
            return f"feature {index} after feature {previous}; expected increasing order."
        previous = index
        if value in missing:
            continue
        if not _is_number(value):
            return (
                f"value {quote(value)} of feature {index}; expected a number: if it stands for a missing "
                f"value, pass missing={quote(value)}."
            )
        with np.errstate(over="ignore"):
            overflows = np.isinf(dtype.type(float(value))) and b"i" not in value.lower()
        if overflows:
            stands = f"; if it stands for a missing value, pass missing={quote(value)}"
            wide = stands if np.isinf(float(value)) else "; use dtype=np.float64"
            return f"value {quote(value)} of feature {index} is too large for {dtype}{wide}."
    if n_features is not None and previous > n_features:
        return f"feature {previous}; expected at most n_features={n_features}."
    return None


def _is_number(text: bytes) -> bool:
    return NUMBER.fullmatch(text) is not None


# Writing


def _stored(X: RowsLike, some: slice) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """The values of some rows; if X is sparse, those stored, their columns, and where each row begins."""
    if not sp.issparse(X):
        return X[some], None, None
    offsets = X.indptr[some.start : some.stop + 1].astype(np.int64)
    stored = slice(offsets[0], offsets[-1])
    return X.data[None, stored], X.indices[stored].astype(np.int64), offsets - offsets[0]


def _check_length(name: str, values: Any, n_rows: int) -> np.ndarray:
    if values.shape != (n_rows,):
        raise ValueError(
            f"{name} has shape {values.shape}; expected ({n_rows},), an entry for each row of X."
        )
    return values


def _encode(name: str, text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(
            f"{name} holds {text!r}, which encoding={encoding!r} cannot write; expected an encoding that has "
            "all of its characters: pass encoding='utf-8', to load_letor, too."
        ) from None


def _check_qids(qid: np.ndarray, encoding: str) -> list[bytes]:
    if qid.dtype.kind in "iu" and not np.ma.isMaskedArray(qid):
        integers, rows = np.unique(qid, return_inverse=True)
        spelled = [b"%d" % integer for integer in integers.tolist()]
        return [spelled[row] for row in rows.tolist()]
    texts = []
    for query in qid.tolist():
        if is_whole(query):
            texts.append(b"%d" % query)
        elif isinstance(query, str) and _QID.fullmatch(text := _encode("qid", query, encoding)):
            texts.append(text)
        else:
            raise ValueError(
                f"qid holds {query!r}; expected integers, or strings of at most {LONGEST} bytes without "
                "white space, ':' or '#'."
            )
        if (integer := as_int64(texts[-1])) is not None and b"%d" % integer != texts[-1]:
            raise ValueError(
                f"qid holds {query!r}, which would be read back as {integer}; expected strings that do not "
                "spell integers, or spell them as str does: put a letter before each."
            )
    return texts


def _check_ids(ids: np.ndarray, encoding: str) -> list[bytes]:
    endings = []
    for document in ids.tolist():
        text = _encode("ids", str(document), encoding)
        if text != text.strip() or b"\n" in text:
            raise ValueError(
                f"ids holds {document!r}; expected single lines without white space around them."
            )
        endings.append(b" # " + text if text else b"")
    return endings
