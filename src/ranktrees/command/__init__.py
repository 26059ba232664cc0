"""The command line: what the functions of the library do with arrays, done with files."""

from ranktrees.command.running import main

__all__ = ["main"]
