"""Measures by their names, and functions as measures."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from inspect import Signature, signature
from typing import Any, ClassVar

import numpy as np

from ranktrees.measures.agreement import RMSE, KendallTau, PairAccuracy
from ranktrees.measures.base import Measure, Preset
from ranktrees.measures.binary import AP, AUC, RBP, RR, P, R, RPrecision, Success, TopAUC
from ranktrees.measures.checks import typed
from ranktrees.measures.discounted import DCG, ERR, NDCG
from ranktrees.measures.pooled import BalancedErrorRate, PooledAUC

# What users pass: a name, a measure, or a function of the labels and scores of one query.
AnyMeasure = str | Measure | Callable[[np.ndarray, np.ndarray], float]

# The names that a string may contain; case and underscores do not matter.
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
    "pooled_auc": PooledAUC,
    "top_auc": TopAUC,
    "pair_accuracy": PairAccuracy,
    "kendall_tau": KendallTau,
    "rmse": RMSE,
    "balanced_error_rate": BalancedErrorRate,
    "r_precision": RPrecision,
    "r_prec": RPrecision,
    "rbp": RBP,
    "success": Success,
    "hit_rate": Success,
}

# Names of measures that only a preset makes clear.
_BY_PRESET = {"pauc": PooledAUC}

_SCIKIT_LEARN = {
    "roc_auc": "pooled_auc",
    "average_precision": "map",
    "neg_root_mean_squared_error": "rmse",
    "neg_mean_squared_error": "rmse",
    "balanced_accuracy": "balanced_error_rate",
}

# What trec_eval, XGBoost and CatBoost write, or one forgets, and what comes nearest here.
_THEIRS = {
    r"ndcg_cut[_.](\d+)": r"ndcg.trec_eval@\1",
    r"map_cut[_.](\d+)": r"map@\1",
    r"recip_rank": r"mrr",
    r"ndcg@(\d+)-": r"ndcg.xgboost(empty_query=0)@\1",
    r"map@(\d+)-": r"map(empty_query=0)@\1",
    r"(?:pre|p[_.]|precisionat:top=)@?(\d+)": r"p@\1",
    r"(?:recall[_.]|recallat:top=)(\d+)": r"recall@\1",
    r"ndcg:top=(\d+);type=exp(?:;.*)?": r'ndcg.catboost(gain="exp2")@\1',
    r"ndcg:top=(\d+)(?:;.*)?": r"ndcg.catboost@\1",
    r"(map|mrr|err):top=(\d+)(?:;.*)?": r"\1@\2",
    r"(ndcg|dcg|err|map|mrr|p|prec|precision|recall)[ _]?(\d+)": r"\1@\2",
}

_SCORES_FIRST = {"pred", "preds", "predt", "predictions", "y_pred", "y_score", "score", "scores", "approxes"}
_SIZES = {"group", "groups", "group_sizes", "sizes", "weight", "weights", "sample_weight"}


def as_measure(measure: AnyMeasure) -> Measure:
    """Return the measure that a string names. A measure is returned as it is.

    Parameters
    ----------
    measure : str, Measure or callable
        A string such as ``"ndcg@10"``, ``"map"``, ``"mrr"``, ``"err@10"``, ``"p@5"``, ``"recall@10"``,
        ``"r_precision"``, ``"rbp(p=0.8)"``, ``"success@5"``, ``"auc"``, ``"top_auc@[0,5]"``,
        ``"pooled_auc"``, ``"pair_accuracy"``, ``"kendall_tau"``, ``"rmse"`` or ``"balanced_error_rate"``. It
        may contain parameters or a preset, as in ``'ndcg(gain="linear")@10'``, ``"ndcg.lightgbm@10"`` and
        ``"pauc.survey@[0,5]"``, so whatever a measure prints as can be read back. Case does not matter. Gains
        and discounts that are functions cannot be named in a string. A function of (labels, scores) returns
        the value of one query, or NaN if the query has none; higher is better.

    Returns
    -------
    Measure
        The measure.

    Raises
    ------
    ValueError
        If there is no such measure; the message lists the names that there are.

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
        if is_scorer(measure) or not takes(measure, 2):
            raise ValueError(
                "a measure that is a function is called with the labels and the scores of a query, got "
                f"{typed(measure)}{arguments_of(measure)}; instead of a scorer, pass the measure itself"
                + "; one of ir_measures is a string here, as 'ndcg.trec_eval@10' is nDCG@10"
                * type(measure).__module__.startswith("ir_measures.")
            )
        refuse_other_order(measure, "labels, scores")
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
            f"unknown measure {measure!r}: write a name, one of {', '.join(_NAMES)}, followed by settings "
            "and a cutoff if needed, as in 'ndcg@10' or 'p(rel=2)@10'" + _hint(measure)
        ) from error


def _hint(measure: str) -> str:
    """What an unknown name probably stands for, as the end of a message."""
    if ours := _SCIKIT_LEARN.get(measure):
        return f"; what scikit-learn calls so is {ours!r} here"
    if measure.lower().lstrip().startswith("pauc"):
        return (
            "; a partial AUC is 'pooled_auc@[0,5]', for false-positive rates of 0 to 5 % among all rows, the "
            "same with grades from 3 on relevant, 'pauc.survey@[0,5]', or 'top_auc@[0,5]', down to the fifth "
            "irrelevant row of each query"
        )
    for theirs, ours in _THEIRS.items():
        if found := re.fullmatch(theirs, measure.strip().lower()):
            return f"; what comes nearest to this one is {found.expand(ours)!r}"
    if len(names := re.split(r",(?![^(]*\))", measure)) > 1:
        return f"; where several are possible, they are a list: {[name.strip() for name in names]}"
    return ""


def takes(function: Callable[..., Any], n: int) -> bool:
    """Return whether a function can be called with ``n`` arguments; True if its signature is not known.

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


def refuse_other_order(function: Callable[..., Any], expected: str) -> None:
    """Raise for a function whose arguments are called as if they came in the way of another library.

    Parameters
    ----------
    function : callable
    expected : str
        The arguments with which it will be called.

    Raises
    ------
    ValueError
        If the first is called scores or the like, or the third, if it has one, sizes or weights.

    Examples
    --------
    >>> from ranktrees.measures.named import refuse_other_order
    >>> refuse_other_order(lambda preds, labels: 0.0, "labels, scores")
    Traceback (most recent call last):
        ...
    ValueError: <lambda>(preds, labels) would be called with (labels, scores): ...
    """
    try:
        arguments = [*signature(function).parameters]
    except ValueError:
        return
    name = getattr(function, "__name__", typed(function))
    if arguments and arguments[0].lower() in _SCORES_FIRST:
        raise ValueError(
            f"{name}{arguments_of(function)} would be called with ({expected}): put the labels first, or "
            f"call the first argument other than {arguments[0]}"
        )
    if len(arguments) > 2 and arguments[2].lower() in _SIZES and "offsets" in expected:
        raise ValueError(
            f"{name}{arguments_of(function)} would be called with ({expected}), and offsets are neither "
            "sizes nor weights: query q is the rows offsets[q]:offsets[q + 1], sizes are np.diff(offsets), "
            "and weights are multiplied in afterwards"
        )


def is_scorer(function: Callable[..., Any]) -> bool:
    """Return whether a function is a scorer of scikit-learn, which takes (estimator, X, y).

    Parameters
    ----------
    function : callable

    Returns
    -------
    bool
        By the number of the arguments and, as some take any number, by the name of the first.

    Examples
    --------
    >>> from ranktrees.measures.named import is_scorer
    >>> is_scorer(lambda estimator, *args: 0.0), is_scorer(lambda labels, scores, k=1: 0.0)
    (True, False)
    """
    try:
        first = next(iter(signature(function).parameters), None)
    except ValueError:
        return False
    return first == "estimator" or (takes(function, 3) and not takes(function, 2))


def arguments_of(function: Callable[..., Any]) -> str:
    """Return the arguments of a function in parentheses, without types, as messages show them."""
    arguments = signature(function).parameters.values()
    return str(Signature([argument.replace(annotation=Signature.empty) for argument in arguments]))


def _parsed(tree: ast.expr) -> Any:
    """The measure that an expression stands for; raises LookupError if it stands for none."""
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
            return _parsed(function)(**{keyword.arg: _literal(keyword.value) for keyword in keywords})  # type: ignore[arg-type]
        case ast.Attribute(value=name, attr=preset):
            measure = _BY_PRESET.get(ast.unparse(name).lower()) or _parsed(name)
            if isinstance(vars(type(measure)).get(preset.lower()), Preset):
                return getattr(measure, preset.lower())
    raise LookupError


def _literal(tree: ast.expr) -> Any:
    try:
        return ast.literal_eval(tree)
    except ValueError as error:
        raise LookupError from error


class OfFunction(Measure):
    """The measure whose value for each query a function returns; it prints as the function's name."""

    name = "OfFunction"
    defaults: ClassVar = {"function": None}
    function: Callable[[np.ndarray, np.ndarray], float]
    lowest_label = -math.inf

    def of_query(self, labels: np.ndarray, scores: np.ndarray) -> float:
        return self.function(labels, scores)

    def __repr__(self) -> str:
        return typed(self.function)
