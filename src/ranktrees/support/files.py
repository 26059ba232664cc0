"""Read files, and replace them such that a file is complete at any moment."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ranktrees.support.annotations import PathLike


Read = TypeVar("Read")


def require_path(path: object, argument: str, expected: str) -> None:
    """Raise if an object is not a path.

    Parameters
    ----------
    path : object
    argument : str
        What error messages call it.
    expected : str
        What it should be the path of.

    Raises
    ------
    TypeError
        If it is not a path.

    Examples
    --------
    >>> require_path(None, "path", "a file")
    Traceback (most recent call last):
    ...
    TypeError: path is a NoneType; expected the path of a file.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{argument} is a {type(path).__name__}; expected the path of {expected}.")


def require_place(path: PathLike, argument: str) -> None:
    """Raise if no file can be at a path: if it is a folder, or in a folder that does not exist.

    Parameters
    ----------
    path : path-like
    argument : str
        What error messages call it.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If the folder does not exist, or the path is that of a folder.

    Examples
    --------
    >>> require_place("model.rkt", "path")
    >>> require_place("no/where/model.rkt", "path")
    Traceback (most recent call last):
    ...
    FileNotFoundError: path='no/where/model.rkt': there is no folder 'no/where'; expected a path in one ...
    """
    if Path(path).is_dir():
        raise IsADirectoryError(
            f"{argument}={os.fspath(path)!r} is a folder; expected the path of a file: add its name."
        )
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{argument}={os.fspath(path)!r}: there is no folder {os.fspath(folder)!r}; expected a path in "
            "one that exists: create it first."
        )


def read_file(path: PathLike, read: Callable[[bytes], Read]) -> Read:
    """Read a file with a function, and name the file in the error that the function may raise.

    Parameters
    ----------
    path : path-like
    read : callable
        Makes an object from bytes, or raises a ValueError.

    Returns
    -------
    object
        What ``read`` returns.

    Raises
    ------
    TypeError
        If ``path`` is not a path.
    ValueError
        The error of ``read``, with the path before its message.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_file(Path(folder, "number"), b"42")
    ...     read_file(Path(folder, "number"), int)
    42
    """
    require_path(path, "path", "a file")
    try:
        return read(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None


def replace_file(path: PathLike, data: bytes) -> None:
    """Write a file such that any reader sees the old or the new one, never a part, even if this is killed.

    Parameters
    ----------
    path : path-like
    data : bytes

    Raises
    ------
    TypeError
        If ``path`` is not a path.
    FileNotFoundError, IsADirectoryError
        If the folder does not exist, or the path is that of a folder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ranktrees.support.files import replace_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_file(Path(folder, "model"), b"old")
    ...     replace_file(Path(folder, "model"), b"new")
    ...     [(path.name, path.read_bytes()) for path in Path(folder).iterdir()]
    [('model', b'new')]
    """
    require_path(path, "path", "a file")
    path = Path(os.path.realpath(path))
    require_place(path, "path")
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(beside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
