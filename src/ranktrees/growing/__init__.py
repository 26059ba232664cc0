"""From codes and gradients to a tree.

::

    codes      - packing  -> lines of cells      once per fit
    gradients  - rounding -> integers            once per round
    grower     pops leaves, parts their rows and has both children searched, until a tree is grown
    searching  the best split of a leaf          split_search: which search; constraints: what it may not do
    over_ranks the same for ranks, each of which has some of the rows
"""

from ranktrees.growing.streaming import StreamingHistogram, merge_histograms

__all__ = ["StreamingHistogram", "merge_histograms"]
