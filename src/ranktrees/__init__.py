"""Learning to rank with boosted trees and forests, as scikit-learn estimators."""

from typing import TYPE_CHECKING

from ranktrees.datasets import dump_letor, load_letor, load_letor_folds, make_clicks, make_ranking
from ranktrees.estimators import (
    AveragedRanker,
    EnsembleRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    RecordScorer,
)
from ranktrees.estimators.parameters import look_up_in_package as _look_up
from ranktrees.evaluation.best import best_rows
from ranktrees.evaluation.combining import optimal_weight, refine_weights
from ranktrees.evaluation.comparing import compare, compare_to_baseline
from ranktrees.evaluation.curves import score_curves
from ranktrees.evaluation.early_exit import EarlyExit
from ranktrees.evaluation.model_selection import (
    QueryKFold,
    QueryShuffleSplit,
    QueryTimeSeriesSplit,
    query_scorer,
    train_test_split_by_query,
)
from ranktrees.evaluation.picking import pick_early_exit
from ranktrees.evaluation.trec import (
    dump_trec_qrels,
    dump_trec_run,
    judged_rows,
    load_trec_qrels,
    load_trec_run,
)
from ranktrees.formats.catboost import load_catboost
from ranktrees.formats.elasticsearch import dump_elasticsearch
from ranktrees.formats.lightgbm import dump_lightgbm, load_lightgbm
from ranktrees.formats.onnx import dump_onnx
from ranktrees.formats.ranklib import dump_ranklib
from ranktrees.formats.solr import dump_solr
from ranktrees.formats.xgboost import dump_xgboost, load_xgboost
from ranktrees.inspection import contributions, drift, interactions, tree_table
from ranktrees.measures import as_measure
from ranktrees.meta import (
    BlendRanker,
    ForestImputer,
    ModelFeatures,
    OrdinalRanker,
    WithSourceRows,
    select_source_rows,
)
from ranktrees.model.ensemble import Ensemble
from ranktrees.rows import MissingQueryWarning
from ranktrees.support.version import __version__ as __version__
from ranktrees.support.warning import FitWarning

__all__ = [
    "AveragedRanker",
    "BlendRanker",
    "EarlyExit",
    "Ensemble",
    "EnsembleRanker",
    "FitWarning",
    "ForestImputer",
    "HistGBRTClassifier",
    "HistGBRTRegressor",
    "LambdaMARTRanker",
    "MissingQueryWarning",
    "ModelFeatures",
    "OrdinalRanker",
    "QueryKFold",
    "QueryShuffleSplit",
    "QueryTimeSeriesSplit",
    "RandomForestRanker",
    "RecordScorer",
    "WithSourceRows",
    "as_measure",
    "best_rows",
    "compare",
    "compare_to_baseline",
    "contributions",
    "drift",
    "dump_elasticsearch",
    "dump_letor",
    "dump_lightgbm",
    "dump_onnx",
    "dump_ranklib",
    "dump_solr",
    "dump_trec_qrels",
    "dump_trec_run",
    "dump_xgboost",
    "interactions",
    "judged_rows",
    "load_catboost",
    "load_letor",
    "load_letor_folds",
    "load_lightgbm",
    "load_trec_qrels",
    "load_trec_run",
    "load_xgboost",
    "make_clicks",
    "make_ranking",
    "optimal_weight",
    "pick_early_exit",
    "query_scorer",
    "refine_weights",
    "score_curves",
    "select_source_rows",
    "train_test_split_by_query",
    "tree_table",
]

if not TYPE_CHECKING:  # a type checker would believe that every name exists

    def __getattr__(name):
        return _look_up(name)
