r"""Checkpoints: the state of a fit in a file, so that an interrupted fit can continue from there.

    file | magic | number of bytes | number of bytes of the text | text | model | SHA-256 of all before |
         | 8     | uint64          | uint64                      | JSON | native | 32                   |

The text contains the seed, the scores that were followed, what the objective has learned besides trees, and a
description of everything that decides which trees grow. A fit continues only if this description is the same.
The model is in the native format (`ranktrees.model.native`). Reading a checkpoint executes nothing.

A fit that continues computes its scores from the trees, in their order, as a fit without interruption adds
them up. So the model has the same bytes, even if the fit continues with other threads, or on another number
of ranks.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ranktrees.binning.codes import Codes
from ranktrees.model.ensemble import Ensemble
from ranktrees.support.files import remove_file, replace_file, require_writable
from ranktrees.support.numeric import mixed
from ranktrees.support.spelling import readable, spelt
from ranktrees.support.version import __version__
from ranktrees.training.callbacks import Checkpointing

if TYPE_CHECKING:
    from ranktrees.binning.mapper import BinMapper
    from ranktrees.processes.communicator import Communicator
    from ranktrees.rows.data import FitData
    from ranktrees.support.annotations import PathLike
    from ranktrees.training.callbacks import Progress

MAGIC = b"\x89RKC\r\n\x1a\n"
HEAD = struct.Struct("<8sQQ")
DIGEST_SIZE = 32
DIGEST = "SHA-256: "


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is float for value in values)


def _are_positive(values: Any) -> bool:
    """Whether they are finite and above 0, or unknown (NaN)."""
    return all(math.isnan(value) or 0 < value < math.inf for value in values)


# What the text must contain, by name.
VALID: dict[str, Callable[[Any], bool]] = {
    "seed": lambda seed: type(seed) is int and 0 <= seed < 1 << 64,
    "trained": lambda trained: (
        isinstance(trained, dict) and all(isinstance(v, str) for v in trained.values())
    ),
    "train_scores": _are_numbers,
    "validation_scores": _are_numbers,
    "learned": lambda learned: isinstance(learned, list) and all(map(_are_numbers, learned)),
}

# Parameters that change no tree, and parameters that only show in the scores from which boosting starts.
SILENT = ("n_jobs", "verbose", "checkpoint", "checkpoint_every", "max_iter", "n_estimators")
IN_THE_START = ("init", "init_cv", "warm_start")


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """The state of a fit.

    Attributes
    ----------
    ensemble : Ensemble
        The model so far, including what it started from.
    seed : int
    trained : dict of str
        Everything that decides which trees grow, see `what_is_trained`.
    train_scores, validation_scores : sequence of float
        The scores that were followed, after each tree. Empty if none were.
    learned : sequence of sequences of float
        What the objective has learned besides trees.

    Examples
    --------
    >>> from ranktrees.training.checkpoints import Checkpoint
    >>> from ranktrees.model import Ensemble
    >>> model = Ensemble.from_trees([], n_features=3)
    >>> checkpoint = Checkpoint(ensemble=model, seed=7, trained={"learning_rate": "0.1"}, train_scores=[0.5])
    >>> Checkpoint.from_bytes(checkpoint.to_bytes()).train_scores
    [0.5]
    """

    ensemble: Ensemble
    seed: int
    trained: dict[str, str] = field(default_factory=dict)
    train_scores: Sequence[float] = ()
    validation_scores: Sequence[float] = ()
    learned: Sequence[Sequence[float] | np.ndarray] = ()

    def to_bytes(self) -> bytes:
        """Return the checkpoint as bytes."""
        text = {name: value for name, value in vars(self).items() if name != "ensemble"}
        for name in ("train_scores", "validation_scores"):
            text[name] = list(map(float, text[name]))
        text["learned"] = [np.asarray(values, np.float64).tolist() for values in self.learned]
        header, model = json.dumps(text).encode(), self.ensemble.to_bytes()
        size = HEAD.size + len(header) + len(model) + DIGEST_SIZE
        body = HEAD.pack(MAGIC, size, len(header)) + header + model
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` returned.

        Raises
        ------
        ValueError
            If the bytes are anything else: cut off, damaged, or another file.
        """
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError("it is not a checkpoint")
        body, digest = data[:-DIGEST_SIZE], data[-DIGEST_SIZE:]
        if len(data) < HEAD.size + DIGEST_SIZE or HEAD.unpack_from(data)[1] != len(data):
            raise ValueError("it is damaged: bytes are missing, or there are too many")
        if hashlib.sha256(body).digest() != digest:
            raise ValueError("it is damaged: its checksum does not match")
        model = HEAD.size + HEAD.unpack_from(data)[2]
        try:
            header = json.loads(body[HEAD.size : model])
        except RecursionError as error:
            raise ValueError("its text is nested too deeply") from error
        for name, is_valid in VALID.items():
            if not isinstance(header, dict) or not is_valid(header.get(name)):
                raise ValueError(f"it is damaged: its {name} is missing, or of the wrong type")
        return cls(ensemble=Ensemble.from_bytes(body[model:]), **header)


class CheckpointFile:
    """The file with the checkpoints of a fit. Rank 0 reads and writes it, and all ranks know its content.

    Parameters
    ----------
    path : path-like or None
        If None, there are no checkpoints.
    every : int
        The number of trees between two checkpoints.
    communicator : Communicator
        The ranks that train together.

    Attributes
    ----------
    found : Checkpoint or None
        The checkpoint that was in the file, the same on all ranks.

    Raises
    ------
    ValueError
        If the file is not a checkpoint, or is damaged.
    OSError
        If no file can be made there: if its folder does not exist or cannot be written to, for instance.
    """

    def __init__(self, path: PathLike | None, every: int, communicator: Communicator) -> None:
        self.path: Any = path
        self.every = every
        self.communicator = communicator
        self.found = None if path is None else self._read()

    def _read(self) -> Checkpoint | None:
        self.communicator.at("the checkpoint")
        data = self.communicator.bcast(self._bytes() if self.communicator.rank == 0 else None)
        try:
            return None if data is None else Checkpoint.from_bytes(data)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"checkpoint={os.fspath(self.path)!r} cannot be read: {error}. Expected a file that a fit "
                "has written; delete the file to train anew, or use another path."
            ) from error

    def _bytes(self) -> bytes | None:
        path = Path(self.path)
        require_writable(path, "the checkpoint")
        return path.read_bytes() if path.exists() else None

    def going_on(self, start: Checkpoint, what_is_trained: Callable[[], dict[str, str]]) -> Checkpoint:
        """Return the state of the fit: the checkpoint that was found, or else the start.

        Parameters
        ----------
        start : Checkpoint
            The start, without ``trained``.
        what_is_trained : callable
            A function without arguments that returns ``trained``. It is called only if there are checkpoints.

        Returns
        -------
        Checkpoint

        Raises
        ------
        ValueError
            If the checkpoint is that of another fit. The message says what differs.
        """
        if self.path is None:
            return start
        trained = what_is_trained()
        if self.found is None:
            return replace(start, trained=trained)
        before = self.found.trained
        names = [name for name in before | trained if before.get(name) != trained.get(name)]
        if names:
            differ = "; ".join(_change(name, before.get(name), trained.get(name)) for name in names)
            raise ValueError(
                f"checkpoint={os.fspath(self.path)!r} was written by another fit: {differ}. Expected the "
                "same fit, to continue from there; delete the file to train anew, or use another path."
            )
        for name in ("n_features", "base", "average"):
            value, right = getattr(self.found.ensemble, name), getattr(start.ensemble, name)
            if value != right:
                raise ValueError(
                    f"checkpoint={os.fspath(self.path)!r} is damaged: its model has {name}={value}, expected "
                    f"{right}; delete the file to train anew, or use another path."
                )
        sizes, expected = (list(map(len, each)) for each in (self.found.learned, start.learned))
        if sizes != expected or not all(map(_are_positive, self.found.learned)):
            raise ValueError(
                f"checkpoint={os.fspath(self.path)!r} is damaged: it holds {sizes} numbers that the loss has "
                f"learned, expected {expected} that are above 0; delete the file to train anew, or use "
                "another path."
            )
        return self.found

    def refuse_fewer_trees(self, n_trees: int, limit: int, name: str) -> None:
        """Raise if the checkpoint has more trees than are asked for."""
        if n_trees > limit:
            raise ValueError(
                f"{name}={limit} is less than the {n_trees} trees in checkpoint={os.fspath(self.path)!r}; "
                f"raise {name} to continue from there, or delete the file to train anew."
            )

    def refuse_other_scores(self, n_trees: int, validated: bool) -> None:
        """Raise if the checkpoint has more scores than trees, or not those of validation rows."""
        if self.found is None:
            return
        found = len(self.found.train_scores), len(self.found.validation_scores)
        expected = n_trees * validated
        if found[0] > n_trees or found[1] != expected:
            raise ValueError(
                f"checkpoint={os.fspath(self.path)!r} is damaged: it has {found[0]} scores of training and "
                f"{found[1]} of validation rows after {n_trees} trees, expected at most {n_trees} and "
                f"{expected}; delete the file to train anew, or use another path."
            )

    def with_checkpoints(
        self,
        callbacks: Sequence[Callable[[Progress], Any]],
        so_far: Checkpoint,
        learned: Callable[[], Sequence[np.ndarray]] = tuple,
    ) -> Sequence[Callable[[Progress], Any]]:
        """Return the callbacks, or on one rank a single one that calls them and then writes checkpoints.

        Parameters
        ----------
        callbacks : list of callables
        so_far : Checkpoint
            The state of the fit.
        learned : callable
            A function that returns what the objective has learned.

        Returns
        -------
        list of callables
        """
        if self.path is None or self.communicator.rank > 0:
            return callbacks

        def write(
            ensemble: Ensemble, train_scores: Sequence[float], validation_scores: Sequence[float]
        ) -> None:
            scores: dict[str, Any] = {"train_scores": train_scores, "validation_scores": validation_scores}
            checkpoint = replace(so_far, ensemble=ensemble, learned=learned(), **scores)
            replace_file(self.path, checkpoint.to_bytes(), "the checkpoint")

        scores = so_far.train_scores, so_far.validation_scores
        return [Checkpointing(callbacks, write, self.every, *scores)]


def remove_checkpoint(path: PathLike | None, communicator: Communicator) -> None:
    """Remove the file, since the fit has succeeded."""
    if path is not None and communicator.rank == 0:
        remove_file(path)


# ---- what is trained from what ----------------------------------------------------------------------------


def what_is_trained(
    estimator: Any, mapper: BinMapper, start: Ensemble, rows: Mapping[str, tuple[Any, ...]]
) -> dict[str, str]:
    """Describe as text everything that decides which trees grow, by the names used in messages.

    Parameters
    ----------
    estimator : estimator
    mapper : BinMapper
    start : Ensemble
        The model to which trees are added.
    rows : dict from str to (FitData, codes, scores)
        Rows by their purpose, with their starting scores. The description has digests of them. These are sums
        over rows that depend on the number of each row among those of all ranks, but not on how rows are
        dealt.

    Returns
    -------
    dict from str to str
    """
    categories = [np.empty(0) if known is None else known for known in mapper.known_categories]
    trained = {
        "the version of ranktrees": __version__,
        "the estimator": type(estimator).__name__,
        **{
            name: spelt(value)
            for name, value in estimator.get_params(deep=False).items()
            if name not in SILENT + IN_THE_START and (name != "random_state" or isinstance(value, Integral))
        },
        "the number of features": str(mapper.n_features),
        "the names of the columns": spelt(start.feature_names),
        "the cuts": _digest_of([*mapper.cuts, *categories]),
        "the model to start from": DIGEST + start.digest(),
    }
    for name, (data, codes, scores) in rows.items():
        trained |= {f"{what} of {name}": digest for what, digest in _digests_of(data, codes, scores).items()}
    return trained


def _digests_of(data: FitData, codes: Any, scores: Any) -> dict[str, str]:
    share = data.share
    numbers = np.arange(data.n_rows) if share.row_numbers is None else share.row_numbers
    nothing = np.zeros(data.n_rows)
    columns: dict[str, Any] = {
        "X": Codes.of(codes),
        "y": [nothing if data.labels is None else data.labels],
        "sample_weight": [nothing + 1.0 if data.weights is None else data.weights],
        "qid": [data.query_of_row if data.qid_given else nothing],
        "position": [nothing if data.positions is None else data.positions],
        "the starting scores": np.atleast_2d(scores),
    }
    digests = {"the number of rows": str(share.n_rows)}
    digests |= {
        name: _digest_of([share.communicator.allreduce(_sums(column, numbers))])
        for name, column in columns.items()
    }
    if data.preferences is not None:
        entries = data.preferences
        digests["pairs"] = _digest_of([entries.first, entries.second, entries.for_first, entries.for_second])
    return digests


def _sums(columns: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return per column the sum of the rows' numbers and values, mixed, modulo 2^64: int64[n_columns]."""
    keys = mixed(numbers.astype(np.uint64))
    sums = []
    for values in columns:
        if values.dtype == np.float64:
            values = mixed((values + 0.0).view(np.uint64))  # -0 is 0
        sums.append(np.dot(keys, values.astype(np.uint64)))
    return np.array(sums, np.uint64).view(np.int64)


def _digest_of(arrays: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for values in arrays:
        digest.update(f"{values.dtype.str} {values.shape} ".encode() + np.ascontiguousarray(values).tobytes())
    return DIGEST + digest.hexdigest()


def _change(name: str, before: object, now: object) -> str:
    before, now = str(before), str(now)
    if (before.startswith(DIGEST) and now.startswith(DIGEST)) or not readable(before, now):
        return f"{name} changed"
    return f"{name} was {before} and is {now}"
