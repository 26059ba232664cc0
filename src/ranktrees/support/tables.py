"""Tables as text."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Return a table: the first column begins at the left, and the others end at the right.

    Parameters
    ----------
    lines : sequence of sequences of str
        The cells of each line, as many in each.

    Returns
    -------
    str

    Examples
    --------
    >>> print(aligned([("", "mean"), ("ours", "0.5"), ("theirs", "0.45")]))
            mean
    ours     0.5
    theirs  0.45
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in lines
    )
