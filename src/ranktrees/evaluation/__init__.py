"""How good is a ranking, a model, a choice: curves, comparisons, combinations, splits by query."""

from ranktrees.evaluation.best import best_rows
from ranktrees.evaluation.calibration import RelevanceCalibration, relevance_calibration
from ranktrees.evaluation.combining import WeightCurve, optimal_weight, refine_weights
from ranktrees.evaluation.comparing import (
    Comparison,
    Comparisons,
    MeanInterval,
    Report,
    compare,
    compare_to_baseline,
    compare_values,
    holm,
    mean_interval,
    per_query_table,
)
from ranktrees.evaluation.cost_curve import CostCurve
from ranktrees.evaluation.curves import ScoreCurves, score_curves
from ranktrees.evaluation.cutoffs import CutoffCurves, cutoff_curves
from ranktrees.evaluation.early_exit import EarlyExit, WorkSaved
from ranktrees.evaluation.model_selection import (
    QueryKFold,
    QueryShuffleSplit,
    QueryTimeSeriesSplit,
    query_scorer,
    train_test_split_by_query,
)
from ranktrees.evaluation.picking import Candidate, PickedEarlyExit, pick_early_exit
from ranktrees.evaluation.trec import (
    dump_trec_qrels,
    dump_trec_run,
    judged_rows,
    load_trec_qrels,
    load_trec_run,
)

__all__ = [
    "Candidate",
    "Comparison",
    "Comparisons",
    "CostCurve",
    "CutoffCurves",
    "EarlyExit",
    "MeanInterval",
    "PickedEarlyExit",
    "QueryKFold",
    "QueryShuffleSplit",
    "QueryTimeSeriesSplit",
    "RelevanceCalibration",
    "Report",
    "ScoreCurves",
    "WeightCurve",
    "WorkSaved",
    "best_rows",
    "compare",
    "compare_to_baseline",
    "compare_values",
    "cutoff_curves",
    "dump_trec_qrels",
    "dump_trec_run",
    "holm",
    "judged_rows",
    "load_trec_qrels",
    "load_trec_run",
    "mean_interval",
    "optimal_weight",
    "per_query_table",
    "pick_early_exit",
    "query_scorer",
    "refine_weights",
    "relevance_calibration",
    "score_curves",
    "train_test_split_by_query",
]
