"""LETOR files, with one row per line: ``label qid:query feature:value ... # document id``.

The tokens are read by scikit-learn's compiled svmlight parser, a block of whole lines at a time. Faults that
this parser lets pass (a missing qid, a label that is not a number, an underscore inside a number) are checked
for here. A block that does not pass is read again, slowly, to name the line.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Literal, overload

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch, check_array

from ranktrees.rows.values import as_seen
from ranktrees.support.files import replacing
from ranktrees.support.numeric import is_whole, unmasked

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from ranktrees.support.annotations import IdsLike, PathLike, RowsLike

_BLOCK_BYTES = 1 << 20
_BLOCK_ROWS = 4096
_LONGEST_LINE = 1 << 26  # some four million pairs; a compressed file of little may hold a line of far more
_LARGEST_INDEX = np.iinfo(np.int32).max
_LARGE_BYTES = 1 << 30
_CELLS_PER_VALUE = 100
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_NOT_OPENED = (".zst", ".zip", ".lz4", ".Z", ".7z", ".br")
_PARTS = ("train", "vali", "test")

# The most bytes of a query id, for which arrays have room in every row, and the most digits of an integer, of
# which Python reads 4300.
_LONGEST = 1000

# In patterns of bytes, [^\S\n] is white space within a line. No pattern matches a text in two ways: it would
# try all of them before it refused the text, which may be long.
_QUERY = rb"[^\s#:\0]{1,%d}" % _LONGEST
_ROW = re.compile(
    rb"^[^\S\n]*(?P<label>[^\s#]+)[^\S\n]+qid:(?P<qid>" + _QUERY + rb")(?=[\s#]|\Z)"
    rb"(?P<pairs>[^#\n]*)(?:#(?P<id>[^\n]*))?",
    re.MULTILINE,
)
_INTEGER = re.compile(rb"[+-]?[0-9]{1,%d}" % _LONGEST)
_NUMBER = re.compile(rb"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf(inity)?)", re.IGNORECASE)
_QID = re.compile(_QUERY)
_ANY_ROW = re.compile(rb"^[^\S\n]*[^\s#]", re.MULTILINE)  # well-formed or not


@overload
def load_letor(
    path: PathLike | BinaryIO,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float32,
    sparse: bool = False,
    absent: float = 0.0,
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
        The file. Its suffix ``.gz``, ``.xz`` or ``.bz2`` says how it is compressed. An open binary file is
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
        `absent`, `dtype` or `n_features` is out of range.

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
    dtype = _check_options(n_features, dtype, sparse, absent)
    parts: deque[Any] = deque()
    labels: list[np.ndarray] = []
    qids: list[np.ndarray] = []
    ids: list[str] = []
    seen = _Seen()
    for X, y, qid, texts, line_of in _read(path, n_features, dtype):
        if n_features is None and not sparse:
            if X.shape[1] > seen.largest:
                seen.largest, seen.where = X.shape[1], f"{_name(path)}, line {line_of(X.shape[1])}"
            seen.n_rows += len(y)
            seen.n_values += X.nnz
            seen.require_dense(dtype, "sparse=True for a CSR matrix")
        parts.append(X if sparse else _dense(X, absent))
        labels.append(y)
        qids.append(qid)
        if return_ids:
            ids += [_decode(text.strip()) for text in texts]

    if not parts:
        raise _no_rows([path])
    if n_features is None:
        n_features = max(X.shape[1] for X in parts)
        if n_features == 0:
            raise _no_features([path])
    X = _stack_sparse(parts, n_features) if sparse else _stack_dense(parts, n_features, dtype, absent)
    data = Bunch(data=X, target=np.concatenate(labels), qid=_read_qids(np.concatenate(qids)))
    if return_ids:
        data.ids = np.array(ids, dtype=object)
    return tuple(data.values()) if return_X_y_qid else data


def load_letor_folds(
    folder: PathLike,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float32,
    sparse: bool = False,
    absent: float = 0.0,
    return_ids: bool = False,
) -> Iterator[Bunch]:
    """Read the folds of a LETOR data set, all with the same number of features.

    Parameters
    ----------
    folder : str or path-like
        A folder that holds ``Fold1``, ``Fold2`` ..., each with ``train.txt``, ``vali.txt`` and ``test.txt``.
        It may also hold these three files itself, as a single fold. Each file may be compressed
        (``.txt.gz``, ``.txt.xz``, ``.txt.bz2``).
    n_features : int, default=None
        The number of features. If None, it is the largest feature number in any file of any fold, for which
        all files are scanned quickly first.
    dtype, sparse, absent, return_ids
        As in :func:`load_letor`.

    Returns
    -------
    folds : iterator of :class:`~sklearn.utils.Bunch`
        The folds in the order of their numbers. Each fold is read when the iterator reaches it. It has the
        entries ``name`` (such as ``"Fold1"``), ``train``, ``vali`` and ``test``, the last three as
        :func:`load_letor` returns them. ``list(load_letor_folds(folder))`` holds all folds in memory at once.

    Raises
    ------
    FileNotFoundError
        If `folder` holds no fold, or if a fold lacks a part. This is checked before anything is read.
    ValueError
        In the same cases as :func:`load_letor`.

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
    dtype = _check_options(n_features, dtype, sparse, absent)
    folds = [(fold.name, {part: _find_part(fold, part) for part in _PARTS}) for fold in _find_folds(folder)]
    if n_features is None:
        seen = _scan(path for _, paths in folds for path in paths.values())
        if not sparse:
            seen.require_dense(dtype, "sparse=True for CSR matrices")
        n_features = seen.largest or None
    options: dict[str, Any] = {"dtype": dtype, "sparse": sparse, "absent": absent, "return_ids": return_ids}
    return (
        Bunch(
            name=name,
            **{part: load_letor(path, n_features=n_features, **options) for part, path in paths.items()},
        )
        for name, paths in folds
    )


def dump_letor(
    path: PathLike | BinaryIO,
    X: RowsLike,
    y: ArrayLike,
    qid: IdsLike,
    *,
    ids: ArrayLike | None = None,
    keep_zeros: bool | None = None,
) -> None:
    """Write rows as a LETOR file that :func:`load_letor` reads back exactly.

    The file takes its place once it is complete; until then, what was at the path stays as it was.
    Values are written with as few digits as distinguish them in their own type, float32 or float64. Features
    that a line does not name are zeros or, if a dense `X` has missing values, missing. In the latter case
    read the file with ``absent=nan``. If no row would name the last feature, the first row does, so that the
    file carries its number of features.

    Parameters
    ----------
    path : str, path-like or binary file
        The file to write. With the suffix ``.gz``, ``.xz`` or ``.bz2`` it is compressed. An open binary file
        is left open.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        The values. Types other than float32 are written as float64. NaN and masked entries in a dense `X`
        are left out. In a sparse `X`, in which values that are not stored are 0, NaN is written as ``nan``.
    y : array-like of shape (n_rows,)
        Finite labels.
    qid : array-like of shape (n_rows,)
        The query id of each row: integers, or strings of at most 1000 bytes without white space, ``:`` and
        ``#``. Strings are read back as integers if all of them look like integers. So 01, which would become
        1, is refused.
    ids : array-like of str of shape (n_rows,), default=None
        Document ids, to be written after ``#``: single lines without white space around them.
    keep_zeros : bool, default=None
        Whether to write zeros. If None, they are written only if a dense `X` holds NaN, because what is left
        out can be read back as zero or as missing but not as both. False is not allowed for such an `X`.

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
    >>> dump_letor(file, np.float32([[0.1, 0, 3], [0, 2.5, 0]]), [2, 0], [7, 7], ids=["a", "b"])
    >>> print(file.getvalue().decode(), end="")
    2 qid:7 1:0.1 3:3 # a
    0 qid:7 2:2.5 # b
    """
    if not hasattr(path, "write") and not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"path is {as_seen(path)}; expected a path or a file open in mode 'wb': pass it first, as in "
            "dump_letor(path, X, y, qid)."
        )
    X = check_array(unmasked(X), accept_sparse="csr", dtype=(np.float64, np.float32), ensure_all_finite=False)
    n_rows, n_features = X.shape
    y = check_array(unmasked(y), ensure_2d=False, dtype=(np.float64, np.float32), input_name="y")
    label_texts = _texts(_check_length("y", y, n_rows))
    qid_texts = _check_qids(_check_length("qid", np.asanyarray(qid), n_rows))
    ids = np.full(n_rows, "", object) if ids is None else np.asarray(ids, object)
    endings = _check_ids(_check_length("ids", ids, n_rows))
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

    last_is_unnamed = _entries(X[:, [n_features - 1]], keep_zeros)[0].size == 0
    with _writing(path) as stream:
        for start in range(0, n_rows, _BLOCK_ROWS):
            stop = min(start + _BLOCK_ROWS, n_rows)
            row, feature, value = _entries(X[start:stop], keep_zeros)
            if start == 0 and last_is_unnamed:
                end = np.searchsorted(row, 0, side="right")
                row, feature = np.insert(row, end, 0), np.insert(feature, end, n_features - 1)
                value = np.insert(value, end, X[0, n_features - 1])
            pairs = [f" {j}:{text}" for j, text in zip((feature + 1).tolist(), _texts(value), strict=True)]
            ends = np.searchsorted(row, np.arange(stop - start), side="right").tolist()
            begin = 0
            for i, end in enumerate(ends, start):
                values = "".join(pairs[begin:end]).encode()
                stream.write(b"%b qid:%b%b%b\n" % (label_texts[i].encode(), qid_texts[i], values, endings[i]))
                begin = end


# Files


def _name(path: Any) -> str:
    if hasattr(path, "read") or hasattr(path, "write"):
        return str(getattr(path, "name", "the open file"))
    return os.fspath(path)


def _open(path: Any, mode: str) -> Any:
    if hasattr(path, "read") or hasattr(path, "write"):
        if isinstance(path, io.TextIOBase):
            raise ValueError(
                f"{_name(path)} is open as text; expected a path or a file open in mode {mode!r}."
            )
        return nullcontext(path)
    return _OPENERS.get(_suffix(path), open)(path, mode)


def _suffix(path: PathLike) -> str:
    """The suffix of a path, which says how the file is compressed."""
    suffix = Path(path).suffix
    if suffix in _NOT_OPENED:
        raise ValueError(
            f"{path} ends in {suffix!r}; expected a text file, or one whose name ends in "
            f"{', '.join(_OPENERS)}: compress it in one of these formats, or not at all."
        )
    return suffix


@contextmanager
def _writing(path: Any) -> Iterator[Any]:
    """Open a file to write. What was at a path is replaced once all is written."""
    if hasattr(path, "write"):
        with _open(path, "wb") as stream:
            yield stream
        return
    suffix = _suffix(path)
    with replacing(path, "the rows") as file:
        if suffix == ".gz":
            opened: Any = gzip.GzipFile(os.fspath(path), "wb", fileobj=file)  # which has the name in it
        else:
            opened = _OPENERS[suffix](file, "wb") if suffix in _OPENERS else nullcontext(file)
        with opened as stream:
            yield stream


@contextmanager
def _reading(path: Any) -> Iterator[Any]:
    try:
        with _open(path, "rb") as stream:
            yield stream
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if getattr(error, "errno", None) is not None:  # a file that is not there, for instance
            raise
        raise ValueError(
            f"{_name(path)} is truncated, or not in the format of its suffix ({error}); expected a complete "
            "file: download it again, or rename it."
        ) from error


def _blocks(stream: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, each with the number of its first line."""
    line = 1
    while block := stream.read(_BLOCK_BYTES):
        end = stream.readline(_LONGEST_LINE)
        if len(end) == _LONGEST_LINE and not end.endswith(b"\n"):
            line += block.count(b"\n")
            raise ValueError(
                f"{name}, line {line}: longer than {_LONGEST_LINE >> 20} MiB; expected "
                "a row in each line, and line feeds between them."
            )
        block += end
        yield line, block.removeprefix(codecs.BOM_UTF8) if line == 1 else block
        line += block.count(b"\n")


def _find_folds(folder: Any) -> list[Path]:
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder; expected one that holds Fold1, Fold2 ...")
    numbered = [
        (int(match[1]), inner)
        for inner in folder.iterdir()
        if inner.is_dir() and (match := re.fullmatch(r"fold[ _-]?(\d+)", inner.name, re.IGNORECASE))
    ]
    return [inner for _, inner in sorted(numbered)] or [folder]


def _find_part(fold: Path, part: str) -> Path:
    for suffix in ("", *_OPENERS):
        path = fold / f"{part}.txt{suffix}"
        if path.is_file():
            return path
    raise FileNotFoundError(
        f"{fold} holds no {part}.txt, nor one that ends in {', '.join(_OPENERS)}; expected a folder "
        "with train.txt, vali.txt and test.txt, or one with such folders named Fold1, Fold2 ..."
    )


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
        with _reading(path) as stream:
            for first_line, block in _blocks(stream, _name(path)):
                for number, line in enumerate(block.split(b"\n"), first_line):
                    line = line.partition(b"#")[0]
                    if n_colons := line.count(b":"):
                        seen.n_rows += 1
                        seen.n_values += n_colons - 1  # one is that of qid:
                        if (feature := _last_feature(line)) > seen.largest:
                            seen.largest, seen.where = feature, f"{_name(path)}, line {number}"
    return seen


def _last_feature(line: bytes) -> int:
    """The feature of the last pair of a line, or 0 if there is none."""
    before = line.rpartition(b":")[0][-12:]  # two more digits than the largest feature has
    token = before.split()[-1:]
    return int(token[0]) if token and _INTEGER.fullmatch(token[0]) else 0


def _no_rows(paths: Sequence[Any]) -> ValueError:
    return ValueError(f"{_names(paths)} no rows; expected lines such as '2 qid:10 1:0.03 2:0.1'.")


def _no_features(paths: Sequence[Any]) -> ValueError:
    return ValueError(f"{_names(paths)} no feature:value pair; pass n_features if that is intended.")


def _names(paths: Sequence[Any]) -> str:
    first, *others = map(_name, paths)
    return f"{first} and {len(others)} more hold" if others else f"{first} holds"


# Reading


def _check_options(n_features: int | None, dtype: DTypeLike, sparse: bool, absent: float) -> np.dtype[Any]:
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
    return np.dtype(dtype)


def letor_batches(
    paths: Sequence[Any], batch_rows: int, n_features: int | None, dtype: Any, absent: float
) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    """Yield (X, y, qid) of about ``batch_rows`` rows: whole blocks of lines, one file after the other."""
    dtype = _check_options(n_features, dtype, False, absent)
    if n_features is None:
        seen = _scan(paths)
        seen.require_dense(dtype)
        n_features = seen.largest
    blocks = chain.from_iterable(_read(path, n_features, dtype) for path in paths)
    kind = None
    while some := _next_rows(blocks, batch_rows):
        if n_features == 0:
            raise _no_features(paths)
        parts, labels, qids = zip(*some, strict=True)
        texts = np.concatenate(qids)
        qid = _decoded(texts) if kind == "U" else _read_qids(texts)
        if kind == "i" and qid.dtype.kind == "U":
            text = next(text for text in texts.tolist() if _as_int64(text) is None)
            raise ValueError(
                f"qid {_quote(text)} is a string, but the ids in earlier batches are 64-bit integers; "
                "expected one kind: name all queries by strings, or all by 64-bit integers."
            )
        kind = qid.dtype.kind
        dense = deque(_dense(X, absent) for X in parts)
        yield _stack_dense(dense, n_features, dtype, absent), np.concatenate(labels), qid
    if kind is None:
        raise _no_rows(paths)


def _next_rows(blocks: Iterator[Any], n_rows: int) -> Any:
    """Values, labels and queries of the next blocks that together hold ``n_rows`` rows, or what is left."""
    some = []
    while n_rows > 0 and (block := next(blocks, None)) is not None:
        some.append(block[:3])
        n_rows -= len(block[1])
    return some


def _read(
    path: Any, n_features: int | None, dtype: np.dtype[Any]
) -> Iterator[tuple[Any, np.ndarray, np.ndarray, list[bytes], Callable[[int], int]]]:
    """Yield the blocks of a file that hold rows: values as CSR, labels, and queries and ids as bytes.

    With each block comes a function that returns the first line of the block that names a given feature.
    """
    with _reading(path) as stream:
        for first_line, block in _blocks(stream, _name(path)):
            rows, X, y = _parse(block, _name(path), first_line, n_features, dtype)
            if rows:
                queries, ids = np.array([qid for _, qid, _, _ in rows]), [text for _, _, _, text in rows]
                yield X, y, queries, ids, partial(_line_naming, block, first_line)


def _line_naming(block: bytes, first_line: int, feature: int) -> int:
    """The number of the first line of a block that names a feature; one line must do so."""
    pair = re.compile(rb"\s\+?0*%d:" % feature)
    lines = enumerate(block.split(b"\n"), first_line)
    return next(number for number, line in lines if pair.search(line.partition(b"#")[0]))


def _parse(
    block: bytes, name: str, first_line: int, n_features: int | None, dtype: np.dtype[Any]
) -> tuple[Any, Any, np.ndarray]:
    """Read a block: for each row (label, qid, pairs, id) as bytes, the values as CSR, the labels."""
    rows = _ROW.findall(block)
    failure = None
    X: Any = None
    y: Any = None
    try:
        if rows:
            X, y = load_svmlight_file(io.BytesIO(block), dtype=dtype, zero_based=False)
            if X.nnz == 0:
                X = X[:, :0]  # the parser makes one feature of none
    except (ValueError, OverflowError) as error:
        failure = error
    if failure is not None:
        suspect = True
    elif not rows:
        suspect = _ANY_ROW.search(block) is not None
    else:
        suspect = (
            len(rows) != len(y)
            or not np.isfinite(y).all()
            or np.isinf(X.data).any()
            or (n_features is not None and X.shape[1] > n_features)
            or any(b"_" in label or b"_" in pairs for label, _, pairs, _ in rows)
        )
    if suspect:
        for number, line in enumerate(block.split(b"\n"), first_line):
            if problem := _find_problem(line, n_features, dtype):
                raise ValueError(f"{name}, line {number}: {problem}")
        if failure is not None:
            raise ValueError(f"{name}, lines {first_line} and following: {failure}") from failure
    return rows, X, y


def _find_problem(line: Any, n_features: int | None, dtype: np.dtype[Any]) -> str | None:
    """Describe in words what is malformed in a line, or return None."""
    line = line.partition(b"#")[0]
    tokens = line.split()
    if not tokens:
        return None
    if b"\0" in line:
        return "a zero byte; expected text."
    label, pairs = tokens[0], tokens[2:]
    if b":" in label:
        return f"no label: the line begins with {_quote(label)}; expected a number, then qid:<query>."
    if not _is_number(label) or not np.isfinite(float(label)):
        return f"label {_quote(label)}; expected a finite number."
    if len(tokens) == 1 or not tokens[1].startswith(b"qid:"):
        seen = _quote(tokens[1]) if len(tokens) > 1 else "the end of the line"
        return f"no qid: the label is followed by {seen}; expected qid:<query>."
    if not _QID.fullmatch(tokens[1][4:]):
        return (
            f"{_quote(tokens[1])}; expected qid:<query>, an integer or a string without ':', of at most "
            f"{_LONGEST} bytes."
        )
    previous = 0
    for pair in pairs:
        feature, colon, value = pair.partition(b":")
        if not colon:
            return f"{_quote(pair)}; expected a pair feature:value."
        if not _INTEGER.fullmatch(feature):
            seen = f"feature {_quote(feature)} in {_quote(pair)}"
            return f"{seen}; expected an integer of at most {_LARGEST_INDEX}."
        index = int(feature)
        if index < 1:
            return (
                f"feature {index} in {_quote(pair)}; expected at least 1: features are counted from 1. "
                "Files that count from 0 are read by sklearn.datasets.load_svmlight_file(path, "
                "zero_based=True, query_id=True)."
            )
        if index > _LARGEST_INDEX:
            return f"feature {_quote(feature)} in {_quote(pair)}; expected at most {_LARGEST_INDEX}."
        if index == previous:
            return f"feature {index} twice; expected each feature at most once, in increasing order."
        if index < previous:
            return f"feature {index} after feature {previous}; expected increasing order."
        if not _is_number(value):
            return f"value {_quote(value)} of feature {index}; expected a number."
        with np.errstate(over="ignore"):
            overflows = np.isinf(dtype.type(float(value))) and b"i" not in value.lower()
        if overflows:
            wide = "" if np.isinf(float(value)) else "; use dtype=np.float64"
            return f"value {_quote(value)} of feature {index} is too large for {dtype}{wide}."
        previous = index
    if n_features is not None and previous > n_features:
        return f"feature {previous}; expected at most n_features={n_features}."
    return None


def _is_number(text: bytes) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _quote(text: Any) -> str:
    text = _decode(text)
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _dense(X: RowsLike, absent: float) -> np.ndarray:
    dense = np.full(X.shape, absent, X.dtype)
    dense[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices] = X.data
    return dense


def _stack_dense(parts: Any, n_features: int, dtype: np.dtype[Any], absent: float) -> np.ndarray:
    # Parts are freed as they are copied, so that the peak of memory is little more than the result.
    X = np.empty((sum(len(part) for part in parts), n_features), dtype)
    start = 0
    while parts:
        part = parts.popleft()
        stop = start + len(part)
        X[start:stop, : part.shape[1]] = part
        X[start:stop, part.shape[1] :] = absent
        start = stop
    return X


def _stack_sparse(parts: Any, n_features: int) -> Any:
    for part in parts:
        part.eliminate_zeros()
        part.resize(part.shape[0], n_features)
    return sp.vstack(parts, format="csr")


def _read_qids(texts: np.ndarray) -> np.ndarray:
    """The queries as int64 if all are integers, else as str; each run of equal ones is converted once."""
    queries, runs = _runs(texts)
    integers = [_as_int64(query) for query in queries]
    if None in integers:
        return _decoded(texts)
    return np.repeat(np.array(integers, np.int64), runs)


def _as_int64(query: bytes) -> int | None:
    """The query as an integer, or None if it is another text or too large."""
    integer = int(query) if _INTEGER.fullmatch(query) else None
    return None if integer is None or abs(integer) > np.iinfo(np.int64).max else integer


def _decoded(texts: np.ndarray) -> np.ndarray:
    """The queries as str."""
    queries, runs = _runs(texts)
    return np.repeat(np.array([_decode(query) for query in queries]), runs)


def _runs(texts: np.ndarray) -> tuple[list[bytes], np.ndarray]:
    """The first text of each run of equal texts, and the lengths of the runs."""
    first = np.flatnonzero(np.append(True, texts[1:] != texts[:-1]))
    return texts[first].tolist(), np.diff(np.append(first, len(texts)))


# Writing


def _entries(X: RowsLike, keep_zeros: bool | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, feature and value of the entries of X that are to be written, in the order of the rows."""
    if sp.issparse(X):
        row, feature, value = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices, X.data
        if not keep_zeros:
            row, feature, value = row[value != 0], feature[value != 0], value[value != 0]
        return row, feature, value
    row, feature = np.nonzero(~np.isnan(X) if keep_zeros else X)
    return row, feature, X[row, feature]


def _texts(values: np.ndarray) -> list[str]:
    """For each float, the shortest decimal text that reads back as the same float."""
    texts = values.astype("U32")
    if values.dtype == np.float32:
        # Readers convert by way of float64; a text halfway between two float32 may then round the wrong way.
        read = texts.astype(np.float64).astype(np.float32)
        wrong = (read != values) & ~np.isnan(values)
        texts[wrong] = [f"{value:.9g}" for value in values[wrong].tolist()]
    return [text.removesuffix(".0") for text in texts.tolist()]


def _check_length(name: str, values: Any, n_rows: int) -> np.ndarray:
    if values.shape != (n_rows,):
        raise ValueError(
            f"{name} has shape {values.shape}; expected ({n_rows},), an entry for each row of X."
        )
    return values


def _check_qids(qid: np.ndarray) -> list[bytes]:
    texts = []
    for query in qid.tolist():
        if is_whole(query):
            texts.append(b"%d" % query)
        elif isinstance(query, str) and _QID.fullmatch(text := query.encode("utf-8", "surrogateescape")):
            texts.append(text)
        else:
            raise ValueError(
                f"qid holds {query!r}; expected integers, or strings of at most {_LONGEST} bytes without "
                "white space, ':' or '#'."
            )
        if (integer := _as_int64(texts[-1])) is not None and b"%d" % integer != texts[-1]:
            raise ValueError(
                f"qid holds {query!r}, which would be read back as {integer}; expected strings that do not "
                "spell integers, or spell them as str does: put a letter before each."
            )
    return texts


def _check_ids(ids: np.ndarray) -> list[bytes]:
    endings = []
    for document in ids.tolist():
        text = str(document).encode("utf-8", "surrogateescape")
        if text != text.strip() or b"\n" in text:
            raise ValueError(
                f"ids holds {document!r}; expected single lines without white space around them."
            )
        endings.append(b" # " + text if text else b"")
    return endings
