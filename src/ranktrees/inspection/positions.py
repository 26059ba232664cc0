"""How much the position at which a row was shown has added to its clicks, as a model has found it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.support.plotting import axes_or_new
from ranktrees.support.tables import Tabular, pandas_for

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["PositionBias", "position_bias"]


@dataclass(frozen=True, eq=False, repr=False)
class PositionBias(Tabular):
    """The propensities of positions; see `position_bias`.

    Attributes
    ----------
    clicked, unclicked : ndarray of float64, shape (n_positions,)
        How much likelier a row at position 1, 2, ... is to be clicked than its relevance says, and how much
        likelier not to be clicked, relative to the first position. NaN at positions that tell nothing.
    """

    clicked: NDArray[np.float64]
    unclicked: NDArray[np.float64]

    def __repr__(self) -> str:
        ends = (f"{each[0]:.3g} ... {each[-1]:.3g}" for each in (self.clicked, self.unclicked))
        return "PositionBias({} positions: clicked {}, unclicked {})".format(len(self.clicked), *ends)

    def to_frame(self) -> pd.DataFrame:
        """Return the propensities as a table with a row for each position.

        Returns
        -------
        DataFrame
            Indexed by the position, from 1 on, with the columns ``clicked`` and ``unclicked``.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = pandas_for("to_frame")
        index = pd.RangeIndex(1, len(self.clicked) + 1, name="position")
        return pd.DataFrame({"clicked": self.clicked, "unclicked": self.unclicked}, index)

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Plot both propensities over the positions.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to plot on. If None, a new figure is created.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.plot`, which draws the lines.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = axes_or_new(ax)
        positions = np.arange(1, len(self.clicked) + 1)
        for label, values in (("clicked", self.clicked), ("not clicked", self.unclicked)):
            drawn: dict[str, Any] = {"marker": "o", "label": label} | style
            ax.plot(positions, values, **drawn)
        ax.set(xlabel="position", ylabel="propensity, relative to the first")
        ax.set_ylim(bottom=0)
        ax.locator_params(axis="x", integer=True)
        ax.legend()
        return ax


def position_bias(model: Any) -> PositionBias:
    """Return the propensities of positions that a model has estimated from clicks, or was given.

    Parameters
    ----------
    model : LambdaMARTRanker
        A ranker that was fitted with ``position``.

    Returns
    -------
    PositionBias

    Raises
    ------
    TypeError
        If the model is not one of this library that is made of trees.
    ValueError
        If the model was fitted without positions, of which an `Ensemble` knows nothing.

    References
    ----------
    Hu, Wang, Peng and Li, *Unbiased LambdaMART*, WWW 2019.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_clicks, make_ranking
    >>> from ranktrees.inspection import position_bias
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> log = make_clicks(y, qid=qid, n_sessions=10, random_state=0)
    >>> ranker = LambdaMARTRanker(max_iter=10, random_state=0)
    >>> ranker = ranker.fit(X[log.rows], log.target, qid=log.qid, position=log.position)
    >>> position_bias(ranker).to_frame().shape
    (10, 2)
    """
    trees = fitted_trees(model)
    if not hasattr(trees, "propensities_"):
        raise ValueError(
            f"model is a {type(model).__name__} without propensities_; expected a LambdaMARTRanker that "
            "learned from clicks: fit it with position=, the rank at which each row was shown."
        )
    return PositionBias(trees.propensities_, trees.unclicked_propensities_)
