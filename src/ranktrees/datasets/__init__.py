"""Data sets for learning to rank: LETOR files in and out, batches of files, and synthetic rankings."""

from .batches import Batch, Batches
from .letor import dump_letor, load_letor, load_letor_folds
from .synthetic import make_ranking

__all__ = ["Batch", "Batches", "dump_letor", "load_letor", "load_letor_folds", "make_ranking"]
