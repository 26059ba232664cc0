"""Files of rows, as the arrays or frames that the functions of the library take."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing

from ranktrees.datasets import load_letor
from ranktrees.rows.features import names_of
from ranktrees.rows.frames import holds_texts, is_category

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
OF_COLUMNS = ("query", "label", "features", "ignore", "weight", "position", "categories")
OF_LETOR = ("missing", "sparse", "n_features")


@dataclass(frozen=True)
class Rows:
    """The rows of a file. What a file does not have is None."""

    X: Any
    y: Any = None
    qid: Any = None
    sample_weight: Any = None
    position: Any = None

    def of(self, some: Any) -> Self:
        """Return some of the rows, by their numbers."""
        return type(self)(**{name: _safe_indexing(each, some) for name, each in self.given().items()})

    def given(self) -> dict[str, Any]:
        """Return what the file has."""
        return {name: each for name, each in vars(self).items() if each is not None}

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(set(np.asarray(self.qid).tolist()))

    def __str__(self) -> str:
        return f"{len(self.y)} rows of {self.n_queries} queries"


def load(
    path: str, arguments: Namespace, model: Any = None, needed: Iterable[str] = ("query", "label")
) -> Rows:
    """Read a file of rows.

    Parameters
    ----------
    path : str
        Its suffix says whether it is CSV or Parquet. All others are LETOR files.
    arguments : Namespace
        The options about columns and LETOR files.
    model : estimator, default=None
        The model that shall score the rows. If None, one is to be trained.
    needed : iterable of str
        The options about columns without which a CSV or Parquet file cannot be read.

    Returns
    -------
    Rows

    Raises
    ------
    ValueError, OSError, ImportError
        If the file cannot be read, or does not have what the arguments name.
    """
    if not Path(path).exists():
        raise ValueError(f"{path} does not exist; expected {KINDS}.")
    kind = Path(path.removesuffix(next(filter(path.endswith, COMPRESSED), ""))).suffix
    is_frame = kind in SEPARATORS or kind in PARQUET
    _refuse_others(path, arguments, OF_LETOR if is_frame else OF_COLUMNS, is_frame)
    if is_frame:
        return _of_frame(path, _frame(path, kind, arguments, model), arguments, model, needed)
    n_features = getattr(arguments, "n_features", None) if model is None else model.n_features_in_
    return Rows(*load_letor(path, n_features=n_features, return_X_y_qid=True, **letor_options(arguments)))


KINDS = "a LETOR file, or one that ends in .csv, .tsv, .parquet or .pq"


def letor_options(arguments: Namespace) -> dict[str, Any]:
    """Return how LETOR files are read."""
    return {
        "absent": float(arguments.absent),
        "missing": tuple(arguments.missing),
        "sparse": arguments.sparse,
    }


def refuse_columns(path: str, arguments: Namespace) -> None:
    """Raise for options about columns, if rows are in LETOR files."""
    _refuse_others(path, arguments, OF_COLUMNS, False)


def installed(module: str, what: str) -> Any:
    """Return a module that is needed for something, or raise an error that names the extra which has it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(f'{what} needs {name}: pip install "ranktrees[command]"') from error


def _refuse_others(path: str, arguments: Namespace, names: Iterable[str], is_frame: bool) -> None:
    for name in names:
        if getattr(arguments, name, None):
            flag = f"--{name.replace('_', '-')}"
            if is_frame:
                raise ValueError(f"{flag} is about LETOR files, but {path} is none: leave it out.")
            raise ValueError(
                f"{flag} is about columns, but {path} is read as a LETOR file, whose lines say what is what: "
                f"leave it out, or pass a file that ends in {', '.join((*SEPARATORS, *PARQUET))}."
            )


def _frame(path: str, kind: str, arguments: Namespace, model: Any) -> Any:
    pandas = installed("pandas", f"{path}: a file of columns")
    if kind in PARQUET:
        installed("pyarrow", f"{path}: a Parquet file")
        frame = pandas.read_parquet(path)
        return frame.reset_index() if any(name is not None for name in frame.index.names) else frame
    # Categories and ids are what is written, whether or not all of them look like numbers.
    texts = arguments.categories if model is None else text_columns(model)
    return pandas.read_csv(
        path,
        sep=SEPARATORS[kind],
        dtype=dict.fromkeys([*texts, arguments.query], str),
        low_memory=False,
    )


def text_columns(model: Any) -> list[str]:
    """Return the features of a model that are categories which are all texts."""
    levels = model._category_levels
    return [
        name
        for column, name in enumerate(names_of(model))
        if column in levels and all(isinstance(level, str) for level in levels[column])
    ]


def _of_frame(path: str, frame: Any, arguments: Namespace, model: Any, needed: Iterable[str]) -> Rows:
    for name in needed:
        if getattr(arguments, name) is None:
            raise ValueError(
                f"{path} has the columns {_some(frame.columns)}; expected to be told which of them is the "
                f"{name}: pass --{name} COLUMN."
            )
    kinds = ("query", "label", "weight", "position")
    named: dict[str, str] = {kind: getattr(arguments, kind, None) or "" for kind in kinds}
    named = {kind: name for kind, name in named.items() if name}
    found = {kind: _column(path, frame, name, f"--{kind}") for kind, name in named.items()}
    X = frame[_features(path, frame, arguments, model, list(named.values()))]
    if model is None:
        for name in arguments.categories:
            if name not in X.columns:
                raise ValueError(f"--categories names {name!r}; expected features{near(name, X.columns)}.")
        X = X.astype(dict.fromkeys(arguments.categories, "category"))
        for name, column in X.items():
            if holds_texts(column) and not is_category(column):
                raise ValueError(
                    f"{path}: column {name!r} holds texts; expected numbers, or a category: name it in "
                    "--categories, or leave it out by --ignore."
                )
    return Rows(X, found.get("label"), found.get("query"), found.get("weight"), found.get("position"))


def _features(path: str, frame: Any, arguments: Namespace, model: Any, others: list[str]) -> list[str]:
    known = [] if model is None else names_of(model)
    if known:
        for flag in ("features", "ignore"):
            if getattr(arguments, flag):
                raise ValueError(f"--{flag}: the model knows its features by name; leave it out.")
        for name in known:
            _column(path, frame, name, "a feature of the model")
        return known
    for flag in ("features", "ignore"):
        for name in getattr(arguments, flag) or []:
            _column(path, frame, name, f"--{flag}")
    chosen = arguments.features or [name for name in frame.columns if name not in others]
    left = [name for name in chosen if name not in arguments.ignore]
    if not left:
        raise ValueError(f"{path} has no features; expected columns besides {_some(others)}.")
    return left


def _column(path: str, frame: Any, name: str, called: str) -> Any:
    if name not in frame.columns:
        raise ValueError(
            f"{path} has no column {name!r} ({called}); expected one of its columns"
            f"{near(name, frame.columns)}."
        )
    return frame[name]


def near(name: str, names: Iterable[Any]) -> str:
    """Return which names may be meant, as the middle of a message."""
    if near := get_close_matches(name, map(str, names)):
        return f"; the nearest are {near}"
    return f", {_some(names)}"


def _some(names: Iterable[str]) -> str:
    listed = [repr(name) for name in names]
    return ", ".join([*listed[:10], *["..."] * (len(listed) > 10)])
