"""RankLib's XML, in which it saves LambdaMART and MART."""

from ranktrees.cuts import round_down
from ranktrees.files import replace_file
from ranktrees.formats.plain import added_up, finite, nested, require_cuts_only, short, shortest

__all__ = ["dump_ranklib"]


def dump_ranklib(model, path):
    """Write a model as RankLib's XML.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of trees of this library.
    path : path-like
        Where to. RankLib reads it by ``-load``, and the plugins of Elasticsearch and OpenSearch as a model of
        type ``model/ranklib``. Features are numbered from 1, as in LETOR files.

    Raises
    ------
    TypeError
        If the model is not made of trees of this library.
    ValueError
        If its trees are not the whole model, it splits by categories, trees are more than 250 splits deep,
        or a value is beyond single precision.

    Notes
    -----
    RankLib knows no missing values, but takes those that are not given for 0: so should the rows that the
    model is fitted to. It compares in single precision.

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

    def leaf(i):
        return [f"<output> {values[i]} </output>"]

    def split(i, left, right):
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
    replace_file(path, ("\n".join(lines) + "\n").encode())


def _within(tag, lines):
    return [f"<{tag}>", *("  " + line for line in lines), f"</{tag.split()[0]}>"]
