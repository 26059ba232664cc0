"""Read files, and replace them such that a file is complete at any moment."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

try:
    import fcntl
except ImportError:  # Windows, which neither moves nor removes an open file
    fcntl = None  # type: ignore[assignment]

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
    ...     replace_file(Path(folder, "number"), b"42", "a number")
    ...     read_file(Path(folder, "number"), int)
    42
    """
    require_path(path, "path", "a file")
    try:
        return read(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None


@contextlib.contextmanager
def naming(path: PathLike, what: str) -> Iterator[None]:
    """Name a file or folder, and what it is for, in the errors of the system.

    Parameters
    ----------
    path : path-like
    what : str
        What is written.

    Raises
    ------
    OSError
        Of the kind that was raised in the block.

    Examples
    --------
    >>> import errno
    >>> with naming("model.rkt", "the model"):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    ...
    OSError: [Errno 28] No space left on device, so the model cannot be written: 'model.rkt'
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        told = f"{error.strerror}, so {what} cannot be written"
        raise OSError(error.errno, told, os.fspath(path)) from error


def require_writable(path: PathLike, argument: str) -> None:
    """Raise if no file can be made at a path: as `require_place`, or if its folder cannot be written to.

    Parameters
    ----------
    path : path-like
    argument : str
        What error messages call it.

    Raises
    ------
    OSError
        If no file can be made in the folder, for whatever reason.

    Examples
    --------
    >>> require_writable("model.rkt", "path")
    """
    require_place(path, argument)
    with naming(path, argument), tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent):
        pass


@contextlib.contextmanager
def replacing(path: PathLike, what: str) -> Iterator[BinaryIO]:
    """Write a file such that any reader sees the old or the new one, never a part, even if this is killed.

    The new file has the permissions of the old one. What writers have left that were killed is removed.
    Windows does not say who has a file open: there it stays, and a file that others read is not replaced.

    Parameters
    ----------
    path : path-like
        If this is a device or a pipe, it is written to as it is.
    what : str
        What is written, for error messages.

    Yields
    ------
    file : binary file
        The file to write to. It takes its place when the block ends without an error.

    Raises
    ------
    TypeError
        If ``path`` is not a path.
    OSError
        If it cannot be written. The message names ``path`` and ``what``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "model"), "a model") as file:
    ...         _ = file.write(b"new")
    ...     [(path.name, path.read_bytes()) for path in Path(folder).iterdir()]
    [('model', b'new')]
    """
    require_path(path, "path", "a file")
    path = Path(os.path.realpath(path))
    require_place(path, "path")
    with naming(path, what):
        if path.exists() and not path.is_file():
            with open(path, "wb") as file:
                yield file
            return
        _remove_leftovers(path)
        with _beside(path) as file:
            try:
                if path.exists():
                    os.chmod(file.name, stat.S_IMODE(path.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
                if fcntl is None:
                    file.close()
                os.replace(file.name, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    file.close()
                with contextlib.suppress(OSError):
                    os.unlink(file.name)
                raise


def replace_file(path: PathLike, data: bytes, what: str) -> None:
    """Write bytes to a file by `replacing`.

    Parameters
    ----------
    path : path-like
    data : bytes
    what : str
        What is written, for error messages.

    Raises
    ------
    TypeError, OSError
        As `replacing` does.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ranktrees.support.files import replace_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_file(Path(folder, "model"), b"old", "a model")
    ...     replace_file(Path(folder, "model"), b"new", "a model")
    ...     [(path.name, path.read_bytes()) for path in Path(folder).iterdir()]
    [('model', b'new')]
    """
    with replacing(path, what) as file:
        file.write(data)


def remove_file(path: PathLike) -> None:
    """Remove a file, if there is one, and what writers have left of it that were killed.

    Parameters
    ----------
    path : path-like

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_file(Path(folder, "model"), b"old", "a model")
    ...     remove_file(Path(folder, "model"))
    ...     list(Path(folder).iterdir())
    []
    """
    Path(path).unlink(missing_ok=True)
    _remove_leftovers(Path(os.path.realpath(path)))


def _beside(path: Path) -> BinaryIO:
    """Open a new file beside another one. As long as this process lives and has it open, it is locked."""
    while True:
        file = open(path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp"), "xb")  # noqa: SIM115
        if fcntl is None:
            return file
        with contextlib.suppress(OSError):  # of file systems without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:  # nobody has taken it for a leftover before it was locked
            return file
        file.close()


def _remove_leftovers(path: Path) -> None:
    """Remove what `_beside` has made and nobody has open any more, as its writer was killed."""
    if fcntl is None:
        return
    named = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{32}}\.tmp")
    with contextlib.suppress(OSError):
        for other in path.parent.iterdir():
            if named.fullmatch(other.name):
                with contextlib.suppress(OSError), open(other, "r+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    other.unlink()
