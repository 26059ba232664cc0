"""Chapter 1: the sets, and how frequent each grade is (table 1.1, with the shares of figure 1.1)."""

import numpy as np

from . import sets
from .markdown import number, table

SETS = (*sets.MAIN, "web_1s")


def described(name):
    """Of the first fold, part by part."""
    fold = sets.folds(name)[0]
    for part, rows in (("training", fold.train), ("test", fold.test)):
        n_queries = len(np.unique(rows.qid))
        shares = np.bincount(rows.y.astype(int), minlength=5) / len(rows.y)
        yield [
            sets.NAMES[name],
            part,
            f"{rows.X.shape[1]}",
            f"{len(rows.y):,}",
            f"{n_queries:,}",
            f"{len(rows.y) / n_queries:.1f}",
            number(np.mean(rows.X == 0), 2),
            *(number(share, 3) for share in shares),
        ]


def table_1_1(lab):
    """Table 1.1, and the shares of the grades, which are figure 1.1."""
    heads = ["set", "part", "features", "rows", "queries", "rows per query", "zeros", *map(str, range(5))]
    return [table(heads, [line for name in sets.present(SETS) for line in described(name)])]


TABLES = {"1.1": table_1_1}
