"""The estimators made of trees: the parameters of each, how they are fitted, and what they do when fitted."""

from ranktrees.estimators.averaged import AveragedRanker
from ranktrees.estimators.classifier import HistGBRTClassifier
from ranktrees.estimators.ensemble_ranker import EnsembleRanker
from ranktrees.estimators.lambdamart import LambdaMARTRanker
from ranktrees.estimators.random_forest import RandomForestRanker
from ranktrees.estimators.record_scorer import RecordScorer
from ranktrees.estimators.regressor import HistGBRTRegressor

__all__ = [
    "AveragedRanker",
    "EnsembleRanker",
    "HistGBRTClassifier",
    "HistGBRTRegressor",
    "LambdaMARTRanker",
    "RandomForestRanker",
    "RecordScorer",
]
