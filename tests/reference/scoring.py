"""Walks that are as plain as possible, and random trees to walk."""

import numpy as np

from ranktrees._core.support.dtypes import LEAF, NODE
from ranktrees.model.ensemble import Ensemble


def goes_left(ensemble, node, x):
    if node["categories"] < 0:
        return bool(node["missing_left"]) if np.isnan(x) else bool(x <= node["cut"])
    groups = ensemble.groups[node["feature"]]
    for place, category in enumerate(ensemble.categories[node["feature"]]):
        if category == x:
            code = place if groups is None else int(groups[place])
            return bool(int(ensemble.bitsets[node["categories"]][code // 32]) >> (code % 32) & 1)
    return bool(node["missing_left"])


def leaf(ensemble, t, row):
    nodes = ensemble.nodes[ensemble.tree_offsets[t] : ensemble.tree_offsets[t + 1]]
    i = 0
    while nodes[i]["feature"] >= 0:
        x = float(row[nodes[i]["feature"]])
        i = int(nodes[i]["left"] if goes_left(ensemble, nodes[i], x) else nodes[i]["right"])
    return i


def leaves(ensemble, X):
    found = [[leaf(ensemble, t, row) for t in range(ensemble.n_trees)] for row in X]
    return np.array(found, np.int32).reshape(len(X), ensemble.n_trees)


def predict(ensemble, X, start=None):
    scores = []
    starts = [ensemble.base] * len(X) if start is None else start
    for reached, begin in zip(leaves(ensemble, X), starts, strict=True):
        total = 0.0 if ensemble.average else float(begin)
        for t, i in enumerate(reached):
            total += float(ensemble.nodes[ensemble.tree_offsets[t] + i]["value"])
        if ensemble.average:
            total = begin + total / max(ensemble.n_trees, 1)
        scores.append(total)
    return np.array(scores)


def stump(cut=0.5, missing_left=1, values=(1.0, 2.0)):
    """A tree with one split, by feature 0."""
    nodes = np.zeros(3, NODE)
    nodes["feature"], nodes["left"], nodes["right"] = [0, -1, -1], [1, -1, -1], [2, -1, -1]
    nodes["categories"] = -1
    nodes["cut"][0], nodes["missing_left"][0] = cut, missing_left
    nodes["value"][1:] = values
    nodes["gain"][0], nodes["count"] = 3.0, [5, 2, 3]
    return nodes


def random_links(rng, n_leaves):
    """The children of each node of a tree whose leaves were split in random order; -1 for leaves."""
    left, right, at_the_end = [-1], [-1], [0]
    for _ in range(n_leaves - 1):
        i = at_the_end.pop(rng.integers(len(at_the_end)))
        left[i], right[i] = len(left), len(left) + 1
        if rng.random() < 0.5:
            left[i], right[i] = right[i], left[i]
        at_the_end += [len(left), len(left) + 1]
        left += [-1, -1]
        right += [-1, -1]
    return np.array(left), np.array(right)


def random_tree(rng, n_leaves, categories, cuts, n_words=8):
    """A tree, and the bit sets of its categorical nodes."""
    left, right = random_links(rng, n_leaves)
    n = len(left)
    nodes = np.zeros(n, NODE)
    nodes["left"], nodes["right"] = left, right
    nodes["feature"] = np.where(left < 0, -1, rng.integers(len(categories), size=n))
    nodes["cut"] = rng.choice(cuts, n)
    nodes["value"], nodes["gain"] = rng.normal(size=n), rng.exponential(size=n)
    nodes["count"] = rng.integers(1000, size=n)
    nodes["missing_left"] = rng.integers(2, size=n)
    nodes["categories"] = -1
    has_categories = np.array([each is not None for each in categories])
    split = np.flatnonzero((left >= 0) & has_categories[nodes["feature"]])
    nodes["categories"][split] = rng.permutation(len(split))
    return nodes, rng.integers(2**32, size=(len(split), n_words), dtype=np.uint32)


HOSTILE = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 5e-324, 1e-310, 1e308, 1 + 2**-52, 0.1])


def random_ensemble(
    rng, n_trees=5, max_leaves=16, n_features=4, cuts=HOSTILE, categorical=True, many=False, **others
):
    """Random trees. Every third feature is categorical, beginning with the second.

    If its categories are many, some of them go the same way in all trees.
    """
    values, most, fewest = ((-50, 3000), 900, 200) if many else ((-50, 400), 120, 1)
    categories = [
        np.unique(rng.integers(*values, rng.integers(fewest, most))) if categorical and f % 3 == 1 else None
        for f in range(n_features)
    ]
    groups, n_words = None, 8
    if many:
        sizes = [None if each is None else rng.choice([3, 255, 256, 900]) for each in categories]
        groups = [
            None if each is None else np.unique(rng.integers(0, size, len(each)), return_inverse=True)[1]
            for each, size in zip(categories, sizes, strict=True)
        ]
        n_words = max(8, *(1 if each is None else -(-(each.max() + 1) // 32) for each in groups))
    trees = [
        random_tree(rng, rng.integers(1, max_leaves + 1), categories, cuts, n_words) for _ in range(n_trees)
    ]
    nodes, bitsets = zip(*trees, strict=True) if trees else ((), ())
    listed = {"categories": categories, "groups": groups}
    return Ensemble.from_trees(nodes, bitsets, n_features=n_features, **listed, **others)


def with_whole_categories(ensemble):
    """The same trees over the categories 0, 1, ..., as in other libraries."""
    categories = [None if each is None else np.arange(len(each)) for each in ensemble.categories]
    return ensemble._replace(categories=categories)


def nameless(ensemble):
    """The same trees, over columns about which nothing is known."""
    return ensemble._with_columns(None, {})


def random_rows(rng, ensemble, n_rows, dtype=np.float64):
    """Rows with values that often equal a cut or a category exactly, or are missing."""
    X = rng.normal(size=(n_rows, ensemble.n_features))
    pools = [ensemble.nodes["cut"][ensemble.nodes["feature"] == f] for f in range(ensemble.n_features)]
    for f, pool in enumerate(pools):
        values = ensemble.categories[f]
        pool = np.concatenate([pool, HOSTILE, [np.nan, 3.5], [] if values is None else values])
        hit = rng.random(n_rows) < 0.8
        X[hit, f] = rng.choice(pool, np.count_nonzero(hit))
    with np.errstate(over="ignore"):
        return X.astype(dtype)


def rows_for_others(rng, ensemble, n_rows, dtype=np.float64):
    """Rows that other libraries accept: finite, nothing between zero and 1e-35, whole categories."""
    X = random_rows(rng, ensemble, n_rows, dtype)
    X[np.isinf(X)] = 7
    X[abs(X) < 1e-35] = 0
    for f, values in enumerate(ensemble.categories):
        if values is not None:
            unseen = values.max(initial=0) + 1
            X[:, f] = rng.choice([*values, unseen, unseen + 40, np.nan], n_rows)
    return X


def random_growing_tree(rng, n_leaves, n_bins):
    """A tree in its form while it grows, over codes up to n_bins (the missing code) per feature."""
    left, right = random_links(rng, n_leaves)
    n = len(left)
    leaves = np.zeros(n, LEAF)
    leaves["left"], leaves["right"] = left, right
    split = leaves["split"]
    split["feature"] = rng.integers(len(n_bins), size=n)
    split["code"] = rng.integers(256, size=n) % n_bins[split["feature"]]
    split["missing_left"], split["categorical"] = rng.integers(2, size=(2, n))
    split["categories"] = rng.integers(2**32, size=(n, 8), dtype=np.uint32)
    return leaves


def is_a_tree(nodes, n_features, n_bitsets, has_categories):
    """Whether walks stay inside, end and find numbers, and every node is reached in exactly one way."""
    parents = [0] * len(nodes)
    for i, node in enumerate(nodes):
        if not -1 <= node["feature"] < n_features:
            return False
        if node["feature"] >= 0:
            for child in (int(node["left"]), int(node["right"])):
                if not i < child < len(nodes):
                    return False
                parents[child] += 1
            if node["categories"] >= n_bitsets:
                return False
            if node["categories"] >= 0 and not has_categories[node["feature"]]:
                return False
        if np.isnan(node["cut"]) or not np.isfinite(node["value"]) or not np.isfinite(node["gain"]):
            return False
        if node["count"] < 0 or node["missing_left"] > 1:
            return False
        if not 0 <= node["cover"] < np.inf:
            return False
    return parents == [0] + [1] * (len(nodes) - 1)
