"""Data sets for learning to rank: reading and writing LETOR files, batches, synthetic rankings and clicks."""

from ranktrees.datasets.clicks import make_clicks
from ranktrees.datasets.scoring import score_batches
from ranktrees.datasets.synthetic import make_ranking
from ranktrees.rows import Batch, Batches
from ranktrees.rows.letor import dump_letor, load_letor, load_letor_folds

__all__ = [
    "Batch",
    "Batches",
    "dump_letor",
    "load_letor",
    "load_letor_folds",
    "make_clicks",
    "make_ranking",
    "score_batches",
]
