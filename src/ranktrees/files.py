"""Files that are whole at any moment."""

import contextlib
import os
import uuid
from pathlib import Path


def replace_file(path, data):
    """Write a file; whoever looks sees the old one or the new one, never half of one, even if this is killed.

    Parameters
    ----------
    path : path-like
    data : bytes

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
