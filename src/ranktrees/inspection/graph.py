"""A tree as a picture: drawn by matplotlib, or as a graph for Graphviz."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.inspection.nodes import tree_table
from ranktrees.support.numeric import is_whole
from ranktrees.support.plotting import axes_or_new
from ranktrees.support.tables import Tabular

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["TreeGraph", "tree_graph"]

SHOWN_CATEGORIES = 3


@dataclass(frozen=True, eq=False, repr=False)
class TreeGraph(Tabular):
    """A tree with a text in each node; see `tree_graph`.

    Rows for which the text of a node is true go left. Notebooks show the picture of Graphviz if its program
    ``dot`` is installed, and otherwise the table.

    Attributes
    ----------
    number : int
        The number of the tree, from 0 on.
    table : DataFrame
        The nodes that are shown, as in `tree_table`, indexed by ``node``.
    texts : dict of int to str
        The text of each node.
    """

    number: int
    table: pd.DataFrame
    texts: dict[int, str]

    def __repr__(self) -> str:
        return f"TreeGraph(tree {self.number}: {len(self.texts)} nodes)"

    def to_frame(self) -> pd.DataFrame:
        """Return the nodes that are shown, as in `tree_table`, indexed by ``node``."""
        return self.table

    def _edges(self) -> list[tuple[int, int, str]]:
        """(parent, child, "yes" or "no") for all nodes below another one."""
        splits = self.table[self.table["left"].isin(self.texts)]
        sides = (("left", "yes"), ("right", "no"))
        return [(int(i), int(split[side]), word) for i, split in splits.iterrows() for side, word in sides]

    def to_dot(self) -> str:
        """Return the tree in the language of Graphviz.

        The command ``dot -Tsvg`` draws it, and so does ``graphviz.Source(graph.to_dot())`` of the package
        graphviz.

        Returns
        -------
        str
        """
        lines = [f"digraph tree_{self.number} {{", "node [shape=box, style=rounded];"]
        for node, text in self.texts.items():
            escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            lines.append(f'{node} [label="{escaped}"];')
        lines += [f'{parent} -> {child} [label="{word}"];' for parent, child, word in self._edges()]
        return "\n".join([*lines, "}"])

    def _repr_html_(self) -> str | None:
        """The picture of Graphviz, if its program is installed; otherwise the table."""
        if (dot := shutil.which("dot")) is None:
            return super()._repr_html_()
        text = self.to_dot().encode()
        svg = subprocess.run([dot, "-Tsvg"], input=text, capture_output=True, check=True).stdout.decode()
        return svg[svg.index("<svg") :]

    def _places(self) -> dict[int, tuple[float, float]]:
        """Where each node is drawn: leaves side by side, and parents amid their children."""
        children: dict[int, list[int]] = {}
        for parent, child, _ in self._edges():
            children.setdefault(parent, []).append(child)
        places: dict[int, tuple[float, float]] = {}
        n_leaves, waiting = 0, [0]
        while waiting:
            node = waiting.pop()
            below = children.get(node, [])
            if not below:
                places[node] = float(n_leaves), -float(self.table["depth"][node])
                n_leaves += 1
            elif below[0] in places:
                places[node] = (
                    (places[below[0]][0] + places[below[1]][0]) / 2,
                    -float(self.table["depth"][node]),
                )
            else:
                waiting += [node, *reversed(below)]
        return places

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draw the tree.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to draw on. If None, a new figure is created, as wide as the leaves need.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.text`, which writes the nodes.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        places = self._places()
        x, y = np.array(list(places.values())).T
        longest = max(len(line) for text in self.texts.values() for line in text.splitlines())
        width, height = (x.max() + 1) * max(0.8, 0.075 * longest), 1.2 * (1 - y.min())
        ax = axes_or_new(ax, figsize=(max(width, 3.0), max(height, 1.5)), layout="constrained")
        plain = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
        for parent, child, word in self._edges():
            (from_x, from_y), (to_x, to_y) = places[parent], places[child]
            ax.plot([from_x, to_x], [from_y, to_y], color="grey", linewidth=1, zorder=1)
            ax.text(
                (from_x + to_x) / 2,
                (from_y + to_y) / 2,
                word,
                ha="center",
                va="center",
                fontsize=7,
                bbox=plain,
            )
        is_leaf = self.table["left"] < 0
        for node, (at_x, at_y) in places.items():
            box = {"boxstyle": "round", "facecolor": "honeydew" if is_leaf[node] else "white"}
            drawn: dict[str, Any] = {"fontsize": 8, "bbox": box, "zorder": 2} | style
            ax.text(at_x, at_y, self.texts[node], ha="center", va="center", **drawn)
        ax.set_xlim(-0.6, x.max() + 0.6)
        ax.set_ylim(y.min() - 0.4, 0.4)
        ax.set_axis_off()
        return ax


def tree_graph(model: Any, number: int = 0, *, max_depth: int | None = None) -> TreeGraph:
    """Return a tree of a model as a graph with a text in each node.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    number : int, default=0
        The number of the tree, from 0 on, the trees of ``init`` included.
    max_depth : int, default=None
        Show only nodes with at most that many splits above them. If None, all.

    Returns
    -------
    TreeGraph
        The text of a split is the question whose answer "yes" leads left: a cut or categories, and "or
        missing" if rows without the value go left as well. The text of a leaf is its value. Both have the
        number of training rows.

    Raises
    ------
    ImportError
        If pandas is not installed.
    TypeError
        If the model is not one of this library that is made of trees.
    ValueError
        If there is no such tree, or if ``max_depth`` is not a whole number.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.inspection import tree_graph
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=5, max_leaf_nodes=4, random_state=0).fit(X, y, qid=qid)
    >>> graph = tree_graph(ranker)
    >>> graph
    TreeGraph(tree 0: 7 nodes)
    >>> graph.texts[0].splitlines()[-1]
    '3000 rows'
    """
    table = tree_table(model)
    n_trees = int(table["tree"].max()) + 1 if len(table) else 0
    if not is_whole(number, 0, n_trees - 1):
        raise ValueError(
            f"number={number!r}; expected that of one of the {n_trees} trees of the model, from 0 to "
            f"{n_trees - 1}."
        )
    if max_depth is not None and not is_whole(max_depth, 0):
        raise ValueError(f"max_depth={max_depth!r}; expected a whole number of at least 0, or None.")
    table = table[table["tree"] == number].set_index("node")
    if max_depth is not None:
        table = table[table["depth"] <= max_depth]
    return TreeGraph(int(number), table, {int(node): _text(row) for node, row in table.iterrows()})


def _text(node: Any) -> str:
    rows = f"{node['count']} row{'s' * (node['count'] != 1)}"
    if node["left"] < 0:
        return f"{node['value']:+.4g}\n{rows}"
    missing = "\nor missing" if node["missing"] == "left" else ""
    left = node["categories"]
    if not isinstance(left, tuple):
        return f"{node['feature']} <= {node['cut']:.6g}{missing}\n{rows}"
    more = f", {len(left) - SHOWN_CATEGORIES} more" if len(left) > SHOWN_CATEGORIES else ""
    return f"{node['feature']} in {', '.join(map(str, left[:SHOWN_CATEGORIES]))}{more}{missing}\n{rows}"
