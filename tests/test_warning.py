"""Warnings point to the line of the user's code."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning, UndefinedMetricWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranktrees import FitWarning, HistGBRTRegressor, LambdaMARTRanker
from ranktrees.measures import NDCG
from ranktrees.rows import MissingQueryWarning

X = np.random.default_rng(0).normal(size=(40, 3))
y = np.arange(40) % 3


@pytest.mark.parametrize(
    ("act", "category"),
    [
        (lambda: NDCG(y, y), MissingQueryWarning),
        (lambda: LambdaMARTRanker(max_iter=1, min_samples_leaf=5).fit(X, y), MissingQueryWarning),
        (
            lambda: make_pipeline(StandardScaler(), LambdaMARTRanker(max_iter=1, min_samples_leaf=5)).fit(
                X, y
            ),
            MissingQueryWarning,
        ),
        (lambda: LambdaMARTRanker(max_iter=1, min_samples_leaf=21).fit(X, y, qid=y), FitWarning),
        (lambda: HistGBRTRegressor(max_iter=1).fit(X, y[:, None]), DataConversionWarning),
        (lambda: NDCG(y, 1.0 * y, qid=y, sample_weight=np.zeros(40)), UndefinedMetricWarning),
    ],
)
def test_warnings_point_at_the_line_of_the_user(act, category):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    assert [(warning.category, warning.filename) for warning in caught] == [(category, __file__)]
