"""Axes to draw curves on. matplotlib is needed for plots only."""

__all__ = ["axes_or_new"]


def axes_or_new(ax=None):
    """Return the axes that were given, or those of a new figure.

    Parameters
    ----------
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If new axes are needed and matplotlib is not installed.

    Examples
    --------
    >>> from ranktrees.support.plotting import axes_or_new
    >>> axes = axes_or_new()  # doctest: +SKIP
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plot needs matplotlib; install it with: pip install "ranktrees[plot]"') from error
    return pyplot.subplots()[1]
