"""Write models in RankLib's XML, the format in which RankLib saves LambdaMART and MART."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ranktrees.formats.plain import added_up, finite, nested, require_cuts_only, short, shortest
from ranktrees.support.cuts import round_down
from ranktrees.support.files import replace_file

if TYPE_CHECKING:
    from ranktrees.support.annotations import PathLike

__all__ = ["dump_ranklib"]


def dump_ranklib(model: Any, path: PathLike) -> None:
    """Write a model as RankLib's XML.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    path : path-like
        The path of the file. RankLib reads it by ``-load``, and the plugins of Elasticsearch and OpenSearch
        read it as a model of type ``model/ranklib``. Features are numbered from 1, as in LETOR files.

    Raises
    ------
    TypeError
        If the model is not made of trees of this library.
    ValueError
        If the trees are not the whole model, if the model splits by categories, if trees are more than 250
        splits deep, or if a value is beyond single precision.

    Notes
    -----
    The scores are those before a link, as of ``ensemble_``, which rank alike.

    RankLib does not support missing values, and takes values that are not given to be 0. The rows that the
    model is fitted to should do the same. RankLib compares in single precision.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ranktrees import HistGBRTRegressor, dump_ranklib
    >>> stump = HistGBRTRegressor(
    ...     max_iter=1, max_leaf_nodes=2, min_samples_leaf=1, learning_rate=1.0, gradient_sampling=None
    ... )
    >>> stump = stump.fit([[1.0], [2.0], [4.0]], [0.0, 0.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_ranklib(stump, Path(folder, "model.xml"))
    ...     print(Path(folder, "model.xml").read_text())
    ## LambdaMART
    ## No. of trees = 1
    <BLANKLINE>
    <ensemble>
      <tree id="1" weight="1">
        <split>
          <feature> 1 </feature>
          <threshold> 3.0 </threshold>
          <split pos="left">
            <output> 0.0 </output>
          </split>
          <split pos="right">
            <output> 3.0 </output>
          </split>
        </split>
      </tree>
    </ensemble>
    <BLANKLINE>
    """
    ensemble = added_up(model)
    require_cuts_only(ensemble, "RankLib")
    nodes = ensemble.nodes
    cuts, values = finite(short(round_down(nodes["cut"]))), shortest(nodes["value"])
    features = (nodes["feature"] + 1).tolist()

    def leaf(i: int) -> list[str]:
        return [f"<output> {values[i]} </output>"]

    def split(i: int, left: list[str], right: list[str]) -> list[str]:
        return [
            f"<feature> {features[i]} </feature>",
            f"<threshold> {cuts[i]} </threshold>",
            *_within('split pos="left"', left),
            *_within('split pos="right"', right),
        ]

    lines = ["## LambdaMART", f"## No. of trees = {len(ensemble)}", ""]
    trees = []
    for t, root in enumerate(nested(ensemble, leaf, split)):
        trees += _within(f'tree id="{t + 1}" weight="1"', _within("split", root))
    lines += _within("ensemble", trees)
    replace_file(path, ("\n".join(lines) + "\n").encode(), "the model")


def _within(tag: str, lines: list[str]) -> list[str]:
    return [f"<{tag}>", *("  " + line for line in lines), f"</{tag.split()[0]}>"]
