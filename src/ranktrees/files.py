"""Files that are whole at any moment."""

import contextlib
import os
import uuid
from pathlib import Path


def require_folder(path, argument):
    """Refuse the path of a file whose folder does not exist.

    Parameters
    ----------
    path : path-like
    argument : str
        What messages call it.

    Raises
    ------
    FileNotFoundError

    Examples
    --------
    >>> require_folder("model.rkt", "path")
    >>> require_folder("no/where/model.rkt", "path")
    Traceback (most recent call last):
    ...
    FileNotFoundError: path='no/where/model.rkt': there is no folder 'no/where'; expected a path in one ...
    """
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{argument}={os.fspath(path)!r}: there is no folder {os.fspath(folder)!r}; expected a path in "
            "one that exists: make it first."
        )


def replace_file(path, data):
    """Write a file; whoever looks sees the old one or the new one, never half of one, even if this is killed.

    Parameters
    ----------
    path : path-like
    data : bytes

    Raises
    ------
    FileNotFoundError
        If the folder does not exist.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ranktrees.files import replace_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_file(Path(folder, "model"), b"old")
    ...     replace_file(Path(folder, "model"), b"new")
    ...     [(path.name, path.read_bytes()) for path in Path(folder).iterdir()]
    [('model', b'new')]
    """
    path = Path(os.path.realpath(path))
    require_folder(path, "path")
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
