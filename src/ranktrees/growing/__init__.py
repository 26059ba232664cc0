"""From codes and gradients to a tree.

::

    codes      - packing  -> lines of cells      once a fit
    gradients  - rounding -> integers            once a round
    grower     pops leaves, parts their rows and has both children searched, until a tree is grown
    searching  the best split of a leaf          split_search: which search; constraints: what it may not do
    over_ranks the same, where ranks have some of the rows each
"""
