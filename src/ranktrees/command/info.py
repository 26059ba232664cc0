"""``ranktrees info``: what a model is made of."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import Any

import numpy as np

from ranktrees.command import data, models
from ranktrees.estimators import EnsembleRanker
from ranktrees.inspection import tree_table
from ranktrees.support.tables import aligned

MOST = 10  # features that are listed


def run(arguments: Namespace) -> None:
    """Run the command."""
    model = models.load(arguments.model)
    names = models.names_or_numbers(model)
    if arguments.trees:
        if arguments.json:
            raise ValueError("--trees writes CSV; leave out --trees or --json.")
        data.installed("pandas", "a table of trees")
        tree_table(EnsembleRanker(model.ensemble_, feature_names=names)).to_csv(sys.stdout, index=False)
        return
    told = _told(model, names) | {"format": models.kind_of(arguments.model)}
    if arguments.json:
        print(json.dumps(told))
        return
    kind, importances = told.pop("importance"), told.pop("importances")
    told["categories"] = {name: f"{n} levels" for name, n in told["categories"].items()} or "none"
    for name, value in told.items():
        print(f"{name.replace('_', ' '):16}{_text(value)}")
    shares = sorted(importances.items(), key=lambda entry: -entry[1])[:MOST]
    print(f"\nshare of the {kind}, by feature")
    print(aligned([(name, f"{share:.4f}") for name, share in shares]))


def _told(model: EnsembleRanker, names: list[str]) -> dict[str, Any]:
    ensemble, splits = model.ensemble_, model.ensemble_.nodes["feature"]
    levels = model._category_levels
    try:
        kind, shares = "gains", model.feature_importances("gain")
    except ValueError:  # of CatBoost, which does not tell them
        kind, shares = "splits", model.feature_importances("split")
    return {
        "trees": len(ensemble),
        "leaves": int((splits < 0).sum()),
        "depth": ensemble.depth,
        "score": f"{'mean' if ensemble.average else 'sum'} of trees, plus {ensemble.base:g}",
        "features": ensemble.n_features,
        "features_used": len(np.unique(splits[splits >= 0])),
        "categories": {names[column]: len(levels[column]) for column in sorted(levels)},
        "digest": ensemble.digest(),
        "importance": kind,
        "importances": dict(zip(names, shares.tolist(), strict=True)),
    }


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} ({n})" for name, n in value.items())
    return str(value)
