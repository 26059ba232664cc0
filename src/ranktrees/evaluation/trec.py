"""Runs and judgements of TREC: reading and writing their files, and joining the two to measure a run.

The files have a reader here, since those of ir_measures and pytrec_eval do not say which line is malformed,
take NaN for a score, keep the last of two scores of a document, and do not decompress.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ranktrees.evaluation.best import best_first, require_how_many
from ranktrees.measures.rows import column
from ranktrees.rows import column_of, document_ids, find_queries, warn_of_order
from ranktrees.rows.queries import ids_in
from ranktrees.rows.text_files import (
    NUMBER,
    ahead,
    as_int64,
    blocks_of,
    decoded,
    hint_of_returns,
    name_of,
    quote,
    reading,
    require_encoding,
    require_file,
    writing,
)
from ranktrees.rows.values import as_seen
from ranktrees.support.numeric import is_whole
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike

    from ranktrees.support.annotations import IdsLike, PathLike

__all__ = ["dump_trec_qrels", "dump_trec_run", "judged_rows", "load_trec_qrels", "load_trec_run"]

_RUN = "query", "Q0", "id", "rank", "score", "tag"
_QRELS = "query", "0", "id", "label"
_IS_SPACE = np.isin(np.arange(256), list(b" \t\n\r\v\f"))
_WORD = re.compile(r"[^\s\0]+", re.ASCII)  # the white space of C, at which readers split lines
_LARGEST_SCORE = 1e38
_LARGEST_LABEL = np.iinfo(np.int32).max


# ---- files -------------------------------------------------------------------------------------------------


def load_trec_run(path: PathLike | BinaryIO, *, encoding: str = "utf-8") -> pd.DataFrame:
    """Read a run in the format of TREC: the documents that were retrieved for each query.

    A line is one document, such as ``301 Q0 FBIS4-50478 1 9.75 bm25``: the query id, a field that is ignored,
    the document id, the rank, the score, and a name for the run, with white space between them. Blank lines
    and a byte order mark at the start are skipped.

    Parameters
    ----------
    path : str, path-like or binary file
        The file, compressed or not, as for :func:`load_letor`.
    encoding : str, default="utf-8"
        How ids are encoded. Bytes that are none of this encoding are kept as surrogates (see
        :pep:`383`), with a warning.

    Returns
    -------
    DataFrame
        One row for each line, in the order of the file: ``query``, ``id`` and ``tag``, which are str,
        ``rank`` (int64) and ``score`` (float64). Ids that look like numbers remain str, as the two ids 7 and
        07 are different. What counts for measures are the scores, as for trec_eval, not the ranks.

    Raises
    ------
    ImportError
        If pandas is not installed.
    ValueError
        If a line has not six fields, a rank is not an integer, or a score not a finite number, if a query has
        a document twice, if the file has no rows, or if it or `encoding` is one that `load_letor` refuses.
        The message gives the file and the number of the line.

    See Also
    --------
    judged_rows : Join a run and judgements for measures.
    dump_trec_run : Write such a file.

    Examples
    --------
    >>> import io
    >>> from ranktrees import load_trec_run
    >>> run = load_trec_run(io.BytesIO(b"301 Q0 FBIS4-50478 1 9.75 bm25\\n301 Q0 LA-0717 2 9.5 bm25\\n"))
    >>> print(run)
      query           id  rank  score   tag
    0   301  FBIS4-50478     1   9.75  bm25
    1   301      LA-0717     2   9.50  bm25
    """
    pandas = _pandas("load_trec_run")
    lines, columns = _read(path, _RUN, encoding)
    place = name_of(path), lines
    columns["rank"] = _numbers(columns["rank"], int, as_int64, "rank", "an integer", *place)
    columns["score"] = _numbers(columns["score"], float, _finite, "score", "a finite number", *place)
    table = pandas.DataFrame({name: column_of(columns[name]) for name in _RUN if name != "Q0"})
    return _once(table, *place)


def load_trec_qrels(path: PathLike | BinaryIO, *, encoding: str = "utf-8") -> pd.DataFrame:
    """Read judgements in the format of TREC: how relevant documents are for a query.

    A line is one document, such as ``301 0 FBIS4-50478 2``: the query id, a field that is ignored, the
    document id and the label, with white space between them. Blank lines and a byte order mark at the start
    are skipped.

    Parameters
    ----------
    path : str, path-like or binary file
        The file, compressed or not, as for :func:`load_letor`.
    encoding : str, default="utf-8"
        How ids are encoded. Bytes that are none of this encoding are kept as surrogates (see
        :pep:`383`), with a warning.

    Returns
    -------
    DataFrame
        One row for each line, in the order of the file: ``query`` and ``id``, which are str, and ``label``
        (int64), which some collections have below 0.

    Raises
    ------
    ImportError
        If pandas is not installed.
    ValueError
        If a line has not four fields, if a label is not an integer, if a document of a query is judged twice,
        if the file has no rows, or if it or `encoding` is one that `load_letor` refuses. The message gives
        the file and the number of the line.

    See Also
    --------
    judged_rows : Join a run and judgements for measures.
    dump_trec_qrels : Write such a file.

    Examples
    --------
    >>> import io
    >>> from ranktrees import load_trec_qrels
    >>> qrels = load_trec_qrels(io.BytesIO(b"301 0 FBIS4-50478 2\\n301 0 LA-0717 0\\n"))
    >>> print(qrels)
      query           id  label
    0   301  FBIS4-50478      2
    1   301      LA-0717      0
    """
    pandas = _pandas("load_trec_qrels")
    lines, columns = _read(path, _QRELS, encoding)
    place = name_of(path), lines
    columns["label"] = _numbers(columns["label"], int, as_int64, "label", "an integer", *place)
    table = pandas.DataFrame({name: column_of(columns[name]) for name in _QRELS if name != "0"})
    return _once(table, *place)


def dump_trec_run(
    y_score: ArrayLike,
    path: PathLike | BinaryIO,
    *,
    qid: IdsLike,
    ids: IdsLike,
    k: int | None = None,
    tag: str = "ranktrees",
) -> None:
    """Write the rows of each query, best first, as a run in the format of TREC.

    Readers of runs rank by the scores of the file, most of them as float32, and each has an order of its own
    for documents with equal scores: that of trec_eval is by falling document id. So that all of them find the
    ranking of `best_rows`, the scores of a query fall from line to line, also as float32. A score that
    does so is written exactly. Any other is written as the next float32 below that of the line before.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores from -1e38 to 1e38. Higher scores rank first, and rows with equal scores keep their order.
    path : str, path-like or binary file
        The file to write. With the suffix ``.gz``, ``.xz``, ``.bz2`` or ``.zst`` it is compressed, as
        for :func:`load_letor`. It takes its place once it is complete. An open binary file is left open. Ids
        are written in UTF-8.
    qid : array-like of shape (n_rows,)
        The query id of each row, in any order: integers, or strings without white space.
    ids : array-like of shape (n_rows,)
        The id of the document of each row: integers, or strings without white space, each at most once in a
        query.
    k : int or None, default=None
        The number of rows to write for each query, of which tracks of TREC take 1000. If None, all are.
    tag : str, default="ranktrees"
        The name of the run, without white space.

    Raises
    ------
    TypeError
        If `path` is neither a path nor a file.
    ValueError
        If an argument does not have the shape or content described above. In that case nothing is written.

    See Also
    --------
    load_trec_run : Read such a file.
    best_rows : The same rows as a table.

    Examples
    --------
    >>> import io
    >>> from ranktrees import dump_trec_run
    >>> file = io.BytesIO()
    >>> dump_trec_run([0.5, 0.75, 0.75], file, qid=[7, 7, 7], ids=["d1", "d2", "d3"])
    >>> print(file.getvalue().decode(), end="")
    7 Q0 d2 1 0.75 ranktrees
    7 Q0 d3 2 0.7499999403953552 ranktrees
    7 Q0 d1 3 0.5 ranktrees
    """
    require_file(path, "dump_trec_run(y_score, path, qid=qid, ids=ids)")
    require_how_many(k)
    if not (isinstance(tag, str) and _WORD.fullmatch(tag)):
        raise ValueError(f"tag={tag!r}; expected a string without white space.")
    values = column("y_score", y_score)
    if (large := np.abs(values) > _LARGEST_SCORE).any():
        seen = f"{values[large.argmax()]:g} in row {large.argmax()}"
        raise ValueError(f"y_score holds {seen}; expected scores from -1e38 to 1e38: divide all by a number.")
    queries, words = _named_rows(qid, ids, {"y_score": y_score}, len(values))
    rows, _, place = best_first(values, queries, k)
    written = _falling(values[rows], np.flatnonzero(place == 0))
    _write(
        path,
        "the run",
        (
            f"{words[0][row]} Q0 {words[1][row]} {rank} {score!r} {tag}\n"
            for row, rank, score in zip(rows.tolist(), (place + 1).tolist(), written.tolist(), strict=True)
        ),
    )


def dump_trec_qrels(y: ArrayLike, path: PathLike | BinaryIO, *, qid: IdsLike, ids: IdsLike) -> None:
    """Write labels as judgements in the format of TREC.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels, which are whole numbers of at most 2^31 - 1 in size.
    path : str, path-like or binary file
        The file to write, as for :func:`dump_trec_run`.
    qid : array-like of shape (n_rows,)
        The query id of each row: integers, or strings without white space.
    ids : array-like of shape (n_rows,)
        The id of the document of each row: integers, or strings without white space, each at most once in a
        query.

    Raises
    ------
    TypeError
        If `path` is neither a path nor a file.
    ValueError
        If an argument does not have the shape or content described above. In that case nothing is written.

    See Also
    --------
    load_trec_qrels : Read such a file.

    Examples
    --------
    >>> import io
    >>> from ranktrees import dump_trec_qrels
    >>> file = io.BytesIO()
    >>> dump_trec_qrels([2, 0], file, qid=[7, 7], ids=["d1", "d2"])
    >>> print(file.getvalue().decode(), end="")
    7 0 d1 2
    7 0 d2 0
    """
    require_file(path, "dump_trec_qrels(y, path, qid=qid, ids=ids)")
    labels = column("y", y)
    if (wrong := (labels != np.floor(labels)) | (np.abs(labels) > _LARGEST_LABEL)).any():
        seen = f"{labels[wrong.argmax()]:g} in row {wrong.argmax()}"
        raise ValueError(f"y holds {seen}; expected whole numbers of at most 2**31 - 1: round or scale them.")
    _, words = _named_rows(qid, ids, {"y": y}, len(labels))
    _write(
        path,
        "the judgements",
        (
            f"{query} 0 {document} {label:.0f}\n"
            for query, document, label in zip(*words, labels.tolist(), strict=True)
        ),
    )


# Who reads lines of so many fields.
_READERS = {4: " Judgements are read by load_trec_qrels.", 6: " Runs are read by load_trec_run."}


def _read(path: Any, fields: Sequence[str], encoding: str) -> tuple[list[int], dict[str, Any]]:
    """Return the numbers of the lines that are not blank, and the columns: ids as str, numbers as bytes."""
    require_encoding(encoding)
    name, lines = name_of(path), []
    columns: list[list[bytes]] = [[] for _ in fields]
    with reading(path) as stream:
        for first_line, block in ahead(blocks_of(stream, name)):
            held = words_of_lines(block)
            if (wrong := (held != 0) & (held != len(fields))).any():
                line = int(wrong.argmax())
                raise ValueError(
                    f"{name}, line {first_line + line}: {held[line]} fields; expected {len(fields)}, with "
                    f"white space between them: {' '.join(fields)}. Read other tables by pandas.read_csv, "
                    "with dtype=str for the ids."
                    + _READERS.get(int(held[line]), "")
                    + hint_of_returns(block.split(b"\n")[line])
                )
            lines += (first_line + np.flatnonzero(held)).tolist()
            words = block.split()
            for place, texts in enumerate(columns):
                texts += words[place :: len(fields)]
    if not lines:
        raise ValueError(f"{name} holds no rows; expected lines of the fields {' '.join(fields)}.")
    found: dict[str, Any] = dict(zip(fields, columns, strict=True))
    for field in {"query", "id", "tag"}.intersection(fields):
        found[field] = decoded(found[field], encoding)
    return lines, found


def words_of_lines(block: bytes) -> np.ndarray:
    """How many words each line holds."""
    text = np.frombuffer(block, np.uint8)
    begins = ~_IS_SPACE[text]
    begins[1:] &= _IS_SPACE[text[:-1]]
    ends = np.flatnonzero(text == ord("\n"))
    return np.bincount(np.searchsorted(ends, np.flatnonzero(begins)), minlength=len(ends) + 1)


def _numbers(
    texts: list[bytes], dtype: Any, read: Any, field: str, expected: str, name: str, lines: list[int]
) -> np.ndarray:
    """What texts spell, by Python; or by `read` if that may have failed, which says where."""
    with suppress(ValueError, OverflowError):
        numbers = np.array(list(map(dtype, texts)), np.int64 if dtype is int else np.float64)
        if np.isfinite(numbers).all() and not any(b"_" in text for text in texts):
            return numbers
    row = next(row for row, text in enumerate(texts) if read(text) is None)
    raise ValueError(f"{name}, line {lines[row]}: {field} {quote(texts[row])}; expected {expected}.")


def _finite(text: bytes) -> float | None:
    """The number that a text spells, or None if it spells none that is finite."""
    number = float(text) if NUMBER.fullmatch(text) else math.nan
    return number if math.isfinite(number) else None


def _once(table: pd.DataFrame, name: str, lines: list[int]) -> pd.DataFrame:
    """Return the table of a file, unless a query has a document twice."""
    if (twice := _first_twice(table)) is not None:
        first, row = twice
        raise ValueError(
            f"{name}, line {lines[row]}: document {table['id'][row]!r} of query {table['query'][row]!r}, "
            f"which is in line {lines[first]} as well; expected each document of a query once: remove one of "
            "the lines."
        )
    return table


def _first_twice(table: pd.DataFrame) -> tuple[int, int] | None:
    """The first two rows of the same query and document, if there are any."""
    again = table.duplicated(["query", "id"]).to_numpy()
    if not again.any():
        return None
    row = int(again.argmax())
    same = (table["query"] == table["query"].iloc[row]) & (table["id"] == table["id"].iloc[row])
    return int(same.to_numpy().argmax()), row


def _named_rows(
    qid: IdsLike, ids: IdsLike, holder: dict[str, Any], n_rows: int
) -> tuple[tuple[np.ndarray | None, np.ndarray], tuple[list[str], list[str]]]:
    """Return the queries, and how each row spells its query and its document."""
    warn_of_order({**holder, "qid": qid, "ids": ids})
    words = _words("qid", ids_in(qid, n_rows, "qid")), _words("ids", document_ids(ids, n_rows))
    queries = find_queries(n_rows, {"qid": words[0]}, holder)
    assert queries is not None
    order, offsets = queries
    rows = np.arange(n_rows) if order is None else order
    for start, stop in itertools.pairwise(offsets):
        seen: dict[str, int] = {}
        for row in rows[start:stop].tolist():
            if (first := seen.setdefault(words[1][row], row)) != row:
                raise ValueError(
                    f"ids holds {words[1][row]!r} in the rows {first} and {row}, which are both of the query "
                    f"{words[0][row]!r}; expected each document of a query once: drop one of the rows."
                )
    return queries, words


def _words(name: str, ids: np.ndarray) -> list[str]:
    """How ids are spelled."""
    if ids.dtype.kind in "iu":
        return [str(value) for value in ids.tolist()]
    words = []
    for value in ids.tolist():
        if is_whole(value) or (isinstance(value, str) and _WORD.fullmatch(value)):
            words.append(str(value))
        else:
            raise ValueError(
                f"{name} holds {as_seen(value)}; expected integers, or strings without white space, which "
                "stands between the fields of a line."
            )
    if len(set(words)) < len(set(ids.tolist())):
        raise ValueError(f"{name} holds an integer and a string that spells it; expected ids of one kind.")
    return words


def _falling(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return scores that fall within each query also as float32: those given, where they do so.

    The others are the next float32 below. The scores do not rise within a query, and begin at `starts`.
    """
    bits = scores.astype(np.float32).view(np.int32).astype(np.int64)
    keys = np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))  # neighbouring floats are neighbouring integers
    lowered = keys + np.arange(len(keys))
    for start, stop in zip(starts, [*starts[1:], len(keys)], strict=True):
        lowered[start:stop] = np.minimum.accumulate(lowered[start:stop])
    lowered -= np.arange(len(keys))
    bits = np.where(lowered >= 0, lowered, -lowered - (1 << 31)).astype(np.int32)
    return np.where(lowered == keys, scores, bits.view(np.float32))


def _write(path: Any, what: str, lines: Iterable[str]) -> None:
    with writing(path, what) as stream:
        stream.writelines(line.encode("utf-8", "surrogateescape") for line in lines)


def _pandas(caller: str) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{caller} returns a pandas DataFrame: pip install pandas") from error
    return pandas


# ---- joining -----------------------------------------------------------------------------------------------


def judged_rows(
    run: pd.DataFrame | Mapping[Any, Mapping[Any, float]],
    qrels: pd.DataFrame | Mapping[Any, Mapping[Any, float]],
) -> pd.DataFrame:
    """Join a run and judgements: the rows of which measures of the run are taken.

    Parameters
    ----------
    run : DataFrame or dict of dict
        The documents that were retrieved, with the columns ``query``, ``id`` and ``score``, as
        :func:`load_trec_run` returns them; others are ignored. Or ``{query: {id: score}}``.
    qrels : DataFrame or dict of dict
        The judgements, with the columns ``query``, ``id`` and ``label``, as :func:`load_trec_qrels` returns
        them; others are ignored. Or ``{query: {id: label}}``.

    Returns
    -------
    DataFrame
        One row for each document that was retrieved or judged, with ``query``, ``id``, ``label`` and
        ``score``. Queries come in the order in which they first appear in `qrels`, and the documents of a
        query by rising id, as strings.

    Raises
    ------
    ImportError
        If pandas is not installed.
    TypeError
        If an argument is neither a DataFrame nor a dict.
    ValueError
        If a column or an id is missing, if a score is NaN or a label not finite, if a query has a document
        twice, or if the two have no query in common.

    Warns
    -----
    FitWarning
        If no retrieved document is judged, as when the two have ids of different kinds.

    See Also
    --------
    ranktrees.measures.NDCG : Its preset ``NDCG.trec_eval`` is that of trec_eval.

    Notes
    -----
    The conventions are those of trec_eval:

    - A document that was retrieved but not judged has the label 0, and so has one whose label is below 0.
    - A document that was judged but not retrieved has the score -inf. Measures count it wherever they count
      all relevant rows, as in the best order of NDCG and the divisor of AP and R, but give it no rank.
    - A query that was judged and for which nothing was retrieved counts, as by ``trec_eval -c``. To leave
      such queries out, as trec_eval does without ``-c``, pass ``qrels[qrels["query"].isin(run["query"])]``.
    - A query of the run that was not judged does not count.

    Since ids rise, measures with ``ties="reverse"``, such as ``NDCG.trec_eval``, rank documents with equal
    scores as trec_eval does. The default of measures is the mean over all orders of these. Scores that only
    float64 tells apart are equal to trec_eval, but not here.

    Examples
    --------
    >>> from ranktrees import judged_rows
    >>> from ranktrees.measures import NDCG, R
    >>> qrels = {"tea": {"d1": 2, "d2": 0, "d3": 1}}
    >>> rows = judged_rows({"tea": {"d1": 0.25, "d4": 0.5}}, qrels)
    >>> print(rows)
      query  id  label  score
    0   tea  d1      2   0.25
    1   tea  d2      0   -inf
    2   tea  d3      1   -inf
    3   tea  d4      0   0.50
    >>> R(rows["label"], rows["score"], qid=rows["query"])
    0.5
    >>> (NDCG.trec_eval @ 10)(rows["label"], rows["score"], qid=rows["query"])
    0.479...
    """
    pandas = _pandas("judged_rows")
    retrieved, judged = _joinable("run", run, "score"), _joinable("qrels", qrels, "label")
    seen = {which: (retrieved[which].iloc[0], judged[which].iloc[0]) for which in ("query", "id")}
    counts = retrieved["query"].isin(judged["query"])
    if not counts.any():
        raise ValueError(
            "run and qrels have no query in common: the first is {!r} in run, and {!r} in qrels; expected "
            "the same ids in both: '7' is not 7.".format(*seen["query"])
        )
    pairs = pandas.concat([judged, retrieved[counts]], ignore_index=True).groupby(["query", "id"], sort=False)
    rows = pairs.max().reset_index()  # of one value and none
    if not rows.notna().all(axis=1).any():
        warn(
            "no document of run is judged: the first is {!r} in run, and {!r} in qrels. Ids of one kind are "
            "expected: '7' is not 7.".format(*seen["id"]),
            FitWarning,
        )
    rows["label"] = rows["label"].fillna(0).clip(lower=0).astype(judged["label"].dtype)
    rows["score"] = rows["score"].fillna(-np.inf)
    place = {query: place for place, query in enumerate(judged["query"].unique())}
    rows = rows.assign(place=rows["query"].map(place), spelled=rows["id"].map(str))
    rows = rows.sort_values(["place", "spelled"], ignore_index=True)
    ids = {which: column_of(rows[which].to_numpy()) for which in ("query", "id")}
    return rows.assign(**ids)[["query", "id", "label", "score"]]


def _joinable(name: str, table: Any, value: str) -> pd.DataFrame:
    """The columns that are joined, checked; ids as objects, since those of other types are not equal."""
    import pandas as pd

    if isinstance(table, Mapping):
        rows = [(query, *pair) for query, documents in table.items() for pair in documents.items()]
        table = pd.DataFrame(rows, columns=["query", "id", value])
    if not isinstance(table, pd.DataFrame):
        raise TypeError(
            f"{name} is {as_seen(table)}; expected a pandas DataFrame with the columns query, id and "
            f"{value}, or a dict {{query: {{id: {value}}}}}."
        )
    for field in ("query", "id", value):
        if (n := list(table.columns).count(field)) != 1:
            raise ValueError(
                f"{name} has {n} columns {field!r} among {list(table.columns)}; expected one of each of "
                f"query, id and {value}: rename them, as in {name}.rename(columns={{'doc_id': 'id'}})."
            )
    numbers = column(f"{name}[{value!r}]", table[value], finite=value == "label")
    if value == "label" and table[value].dtype.kind in "iub":
        numbers = numbers.astype(np.int64)
    queries = ids_in(table["query"], len(table), f"{name}['query']").astype(object)
    ids = document_ids(table["id"], len(table), f"{name}['id']").astype(object)
    rows = pd.DataFrame({"query": pd.Series(queries, dtype=object), "id": pd.Series(ids, dtype=object)})
    if (twice := _first_twice(rows)) is not None:
        first, row = twice
        raise ValueError(
            f"{name} has document {ids[row]!r} of query {queries[row]!r} in the rows {first} and {row}; "
            "expected each document of a query once: drop one of the rows."
        )
    return rows.assign(**{value: numbers})
