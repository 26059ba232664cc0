"""Data sets for learning to rank: LETOR files in and out, and synthetic rankings and clicks."""

from .clicks import make_clicks
from .letor import dump_letor, load_letor, load_letor_folds
from .synthetic import make_ranking

__all__ = ["dump_letor", "load_letor", "load_letor_folds", "make_clicks", "make_ranking"]
