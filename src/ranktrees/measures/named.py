"""Measures by their names, and functions as measures."""

import ast
import math
from collections.abc import Callable
from inspect import signature
from typing import ClassVar

import numpy as np

from ranktrees.measures.agreement import RMSE, KendallTau, PairAccuracy
from ranktrees.measures.base import Measure
from ranktrees.measures.binary import AP, AUC, PAUC, RR, P, R
from ranktrees.measures.discounted import DCG, ERR, NDCG, Preset
from ranktrees.measures.parameters import typed

# What users pass: a name, a measure, or what one query with labels and scores is worth.
AnyMeasure = str | Measure | Callable[[np.ndarray, np.ndarray], float]

# As they may be spelt in a string, apart from case and underscores.
_NAMES = {
    "ndcg": NDCG,
    "dcg": DCG,
    "err": ERR,
    "map": AP,
    "ap": AP,
    "mrr": RR,
    "rr": RR,
    "p": P,
    "prec": P,
    "precision": P,
    "r": R,
    "recall": R,
    "auc": AUC,
    "pauc": PAUC,
    "pair_accuracy": PairAccuracy,
    "kendall_tau": KendallTau,
    "rmse": RMSE,
}


def as_measure(measure) -> Measure:
    """The measure that a string names; a measure is returned as it is.

    Parameters
    ----------
    measure : str, Measure or callable
        ``"ndcg@10"``, ``"map"``, ``"mrr"``, ``"err@10"``, ``"p@5"``, ``"recall@10"``, ``"auc"``,
        ``"pauc@[0,5]"``, ``"pair_accuracy"``, ``"kendall_tau"``, ``"rmse"``; also with parameters or a
        preset, ``'ndcg(gain="linear")@10'``, ``"ndcg.lightgbm@10"``: whatever a measure prints as. Case does
        not matter. Gains and discounts that are functions cannot be named in a string. A function of
        (labels, scores) gives the value of one query, NaN where it has none; higher is better.

    Returns
    -------
    Measure

    Raises
    ------
    ValueError
        If there is no such measure; the message lists those there are.

    Examples
    --------
    >>> from ranktrees.measures import as_measure
    >>> as_measure("ndcg@10")
    NDCG @ 10
    >>> as_measure('NDCG(gain="linear", ties="worst") @ 10')
    NDCG(gain="linear", ties="worst") @ 10
    >>> as_measure("precise@3")
    Traceback (most recent call last):
        ...
    ValueError: unknown measure 'precise@3': write a name, one of ndcg, dcg, err, map, ...
    """
    if isinstance(measure, Measure):
        return measure
    if callable(measure) and not isinstance(measure, type):
        if not takes(measure, 2):
            raise ValueError(
                "a measure that is a function is called with the labels and the scores of a query, got "
                f"{typed(measure)}{signature(measure)}; instead of a scorer pass the measure itself"
            )
        return OfFunction(function=measure)
    if not isinstance(measure, str):
        raise ValueError(
            "a measure is a string such as 'ndcg@10', a value such as NDCG @ 10, or a function of the labels "
            f"and scores of a query, got {measure!r}"
        )
    try:
        return _parsed(ast.parse(measure.strip(), mode="eval").body)
    except TypeError as error:
        raise ValueError(f"{measure!r}: {error}") from error
    except (SyntaxError, LookupError) as error:
        raise ValueError(
            f"unknown measure {measure!r}: write a name, one of {', '.join(_NAMES)}, "
            "and behind it settings and a cutoff if you like, as in 'ndcg@10' or 'p(rel=2)@10'"
        ) from error


def takes(function, n):
    """Whether a function can be called with ``n`` arguments; some do not tell, and may be tried.

    Parameters
    ----------
    function : callable
    n : int

    Returns
    -------
    bool

    Examples
    --------
    >>> from ranktrees.measures.named import takes
    >>> takes(lambda labels, scores: 0.0, 2), takes(lambda labels, scores: 0.0, 3), takes(max, 2)
    (True, False, True)
    """
    try:
        signature(function).bind(*range(n))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _parsed(tree):
    """The measure an expression stands for; LookupError if it is none."""
    match tree:
        case ast.Name(id=name):
            return {known.replace("_", ""): value for known, value in _NAMES.items()}[
                name.lower().replace("_", "")
            ]
        case ast.BinOp(left=left, op=ast.MatMult(), right=at):
            if isinstance(left, ast.BinOp):  # a second cutoff
                raise LookupError
            return _parsed(left) @ _literal(at)
        case ast.Call(func=function, args=[], keywords=keywords):
            return _parsed(function)(**{keyword.arg: _literal(keyword.value) for keyword in keywords})
        case ast.Attribute(value=name, attr=preset):
            measure = _parsed(name)
            if isinstance(vars(type(measure)).get(preset.lower()), Preset):
                return getattr(measure, preset.lower())
    raise LookupError


def _literal(tree):
    try:
        return ast.literal_eval(tree)
    except ValueError as error:
        raise LookupError from error


class OfFunction(Measure):
    """What a function says about each query; it prints as the function's name."""

    name = "OfFunction"
    defaults: ClassVar = {"function": None}
    lowest_label = -math.inf

    def of_query(self, labels, scores):
        return self.function(labels, scores)

    def __repr__(self):
        return typed(self.function)
