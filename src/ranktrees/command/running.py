"""Run a command, and say in a sentence why it could not be run."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from ranktrees.command.arguments import arguments_of

REFUSED, INTERRUPTED, NOBODY_READS = 1, 130, 141  # the last two as the shell says it of other programs
REFUSALS = (OSError, ValueError, TypeError, ImportError, MemoryError)  # what mistakes of users raise


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, default=None
        The arguments. If None, those of the process.

    Returns
    -------
    int
        The exit code: 0, or 1 if the command was refused, 2 if the arguments are not understood, 130 after
        Ctrl-C, 141 if nobody reads what is written.

    Examples
    --------
    >>> main(["info", "no_such_model.rkt"])
    1
    """
    try:
        arguments = arguments_of(argv)
    except SystemExit as end:  # argparse has printed the help, or what it does not understand
        return int(end.code or 0)
    try:
        with _plain_warnings(arguments.command):
            import_module(f"ranktrees.command.{arguments.command}").run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        with suppress(OSError, ValueError):  # the interpreter flushes once more when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except REFUSALS as error:
        if arguments.debug:
            traceback.print_exc()
        else:
            print(f"ranktrees {arguments.command}: {_sentence(error)}", file=sys.stderr)
        return REFUSED
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else str(error.strerror)
    if isinstance(error, MemoryError) and not str(error):
        return "there is not enough memory"
    return str(error)


@contextmanager
def _plain_warnings(command: str) -> Iterator[None]:
    """Write warnings as sentences, without a line of code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"ranktrees {command}: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
