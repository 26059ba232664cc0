"""scikit-learn's own tests of how meta-estimators route metadata, with ours: see ``scripts/test-peers``.

All tests of ``test_metaestimators_metadata_routing.py`` are taken that are told a meta-estimator.
"""

import pytest
from replaced import taken
from sklearn.tests import test_metaestimators_metadata_routing as theirs

from ranktrees import BlendRanker, ModelFeatures, OrdinalRanker, WithSourceRows


def blend(one):
    return BlendRanker([("one", one)], cv="train")


def described(metaestimator, name="estimator", kind="regressor", metadata=("sample_weight",), **more):
    """A meta-estimator in the words of scikit-learn's list."""
    return {
        "metaestimator": metaestimator,
        "estimator_name": name,
        "estimator": kind,
        "X": theirs.X,
        "y": theirs.y,
        "estimator_routing_methods": [("fit", metadata)],
        **more,
    }


OURS = [
    pytest.param(one, id=one["metaestimator"].__name__)
    for one in (
        described(OrdinalRanker, kind="classifier"),
        described(ModelFeatures, preserves_metadata="subset"),  # predictions of rows are those of other folds
        described(WithSourceRows, metadata=("sample_weight", "metadata")),
        described(blend, "one"),
    )
]
MEANT = {
    r"test_default_request\[.*": "asks that nothing is requested by default; ids of queries are",
}
ENDLESS = {}

globals().update(taken(theirs, {"metaestimator"}, OURS))
