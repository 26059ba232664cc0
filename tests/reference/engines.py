"""Score rows as the sources of search engines do, in single precision."""

import json
from xml.etree import ElementTree

import numpy as np


def _scores(trees, score, X):
    """The sum over the trees in their order, with each number rounded."""
    scores = np.zeros(len(X), np.float32)
    with np.errstate(over="ignore"):  # 1e39 is infinite
        for i, row in enumerate(X.astype(np.float32)):
            for tree in trees:
                scores[i] += np.float32(score(tree, row))
    return scores


def elasticsearch(text, names, X):
    """``model/xgboost+json`` of the plugins; for missing values, as XGBoost and Vespa do."""

    def score(node, row):
        while "leaf" not in node:
            assert [child["nodeid"] for child in node["children"]] == [node["yes"], node["no"]]
            x = row[names.index(node["split"])]
            side = "yes" if np.float32(node["split_condition"]) > x else "no"
            to = node["missing"] if np.isnan(x) else node[side]
            node = next(child for child in node["children"] if child["nodeid"] == to)
        return node["leaf"]

    return _scores(json.loads(text), score, X)


def solr(text, X):
    """``MultipleAdditiveTreesModel``, with and without missing values."""
    model = json.loads(text)
    names, params = [each["name"] for each in model["features"]], model["params"]

    def score(node, row):
        while "feature" in node:
            x = row[names.index(node["feature"])]
            threshold = np.float32(node["threshold"]) + np.float32(1e-6)
            side = "left" if x <= threshold else "right"
            node = node[node["missing"] if np.isnan(x) and params.get("isNullSameAsZero") is False else side]
        return node["value"]

    return _scores([tree["root"] for tree in params["trees"]], score, X)


def ranklib(text, X):
    """RankLib's ensembles, for rows without missing values."""
    comments = [line for line in text.splitlines() if line.startswith("##")]
    assert comments[0] == "## LambdaMART"
    trees = ElementTree.fromstring(text.split("\n\n", 1)[1])
    assert [tree.get("weight") for tree in trees] == ["1"] * len(trees)

    def score(node, row):
        while node.find("output") is None:
            x = row[int(node.find("feature").text) - 1]
            side = "left" if x <= np.float32(node.find("threshold").text) else "right"
            node = node.find(f"split[@pos='{side}']")
        return node.find("output").text

    return _scores([tree.find("split") for tree in trees], score, X)
