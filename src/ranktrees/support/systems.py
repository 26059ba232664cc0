"""What only some operating systems can do is refused by the others when it is imported."""

from __future__ import annotations

import sys

NAMES = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


def require_system(module: str, *systems: str) -> None:
    """Raise if a module does not work on this operating system.

    Parameters
    ----------
    module : str
        Its name, for the error message.
    *systems : str
        The systems on which it works, as ``sys.platform`` calls them.

    Raises
    ------
    ImportError
        If this is another one.

    Examples
    --------
    >>> require_system("ranktrees.mpi", "haiku")
    Traceback (most recent call last):
    ...
    ImportError: ranktrees.mpi works on haiku only, and this is ...: call fit without it, which uses ...
    """
    if sys.platform not in systems:
        names = " and ".join(NAMES.get(system, system) for system in systems)
        raise ImportError(
            f"{module} works on {names} only, and this is {NAMES.get(sys.platform, sys.platform)}: call fit "
            "without it, which uses all processors of this machine, or train elsewhere and load the model."
        )
