"""Data sets for learning to rank: reading and writing LETOR files, batches, synthetic rankings and clicks."""

from ranktrees.batches import Batch, Batches

from .clicks import make_clicks
from .letor import dump_letor, load_letor, load_letor_folds
from .synthetic import make_ranking

__all__ = [
    "Batch",
    "Batches",
    "dump_letor",
    "load_letor",
    "load_letor_folds",
    "make_clicks",
    "make_ranking",
]
