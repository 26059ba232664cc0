"""Cells of the paper's tables."""

import numpy as np

from ranktrees.comparing import mean_interval

MEASURES = ("ndcg@10", "ndcg@3", "ndcg@1")


def quality_row(values):
    """For each measure the mean over the test queries of all folds, with its 95 % interval, in per cent."""
    intervals = [mean_interval(100 * np.concatenate(values[measure])) for measure in MEASURES]
    return [f"{one.mean:.2f} ± {(one.high - one.low) / 2:.2f}" for one in intervals]
