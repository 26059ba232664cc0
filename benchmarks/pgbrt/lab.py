"""Where it is done."""

from dataclasses import dataclass

from ..lambdasmart.lab import Keeper


@dataclass(frozen=True)
class Lab(Keeper):
    """Where it is done.

    Attributes
    ----------
    folder : path
        What is fitted is kept here, and not fitted again; empty it when the package has changed.
    names : list of str
        The sets.
    searches : tuple of str
        How splits are searched where time and messages are taken.
    """

    names: tuple
    searches: tuple
