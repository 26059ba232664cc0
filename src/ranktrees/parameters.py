"""The parameters of an estimator are its fields, each written once; names that others use are translated."""

from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import wraps
from typing import dataclass_transform

__all__ = ["with_parameters"]

_N_TREES = ("max_iter", "n_estimators", "num_boost_round", "num_iterations", "num_trees", "iterations")

# What LightGBM, XGBoost and CatBoost call what a parameter says; the guide has the same, with values.
THEIRS = {
    "max_iter": _N_TREES,
    "n_estimators": _N_TREES,
    "max_leaf_nodes": ("num_leaves", "max_leaves"),
    "max_depth": ("depth",),
    "min_samples_leaf": ("min_child_samples", "min_data_in_leaf"),
    "max_features": ("colsample_bynode", "feature_fraction_bynode", "rsm"),
    "max_bins": ("max_bin", "border_count"),
    "learning_rate": ("eta",),
    "l2_regularization": ("reg_lambda", "lambda_l2", "l2_leaf_reg"),
    "subsample": ("bagging_fraction",),
    "max_samples": ("subsample", "bagging_fraction"),
    "gradient_sampling": ("data_sample_strategy", "sampling_method", "bootstrap_type"),
    "loss": ("objective", "loss_function"),
    "measure": ("metric", "eval_metric", "custom_metric"),
    "gain": ("label_gain", "ndcg_exp_gain"),
    "truncation_level": ("lambdarank_truncation_level", "lambdarank_num_pair_per_sample"),
    "query_norm": ("lambdarank_norm",),
    "sigma": ("sigmoid",),
    "bias_norm": ("lambdarank_bias_norm",),
    "n_iter_no_change": ("early_stopping_rounds", "od_wait"),
    "categorical_features": ("categorical_feature", "cat_features"),
    "monotonic_cst": ("monotone_constraints",),
    "interaction_cst": ("interaction_constraints",),
    "init": ("init_model", "init_score"),
    "random_state": ("seed", "random_seed"),
    "n_jobs": ("num_threads", "nthread", "thread_count"),
}


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def with_parameters(cls):
    """Let the fields of a class be the parameters of its ``__init__``, as scikit-learn wants them.

    Parameters
    ----------
    cls : type
        Its annotated attributes, and those of its bases that have some, become keywords.

    Returns
    -------
    type
        The same class. A keyword that it does not know is a TypeError that says which one may be meant.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker
    >>> LambdaMARTRanker(num_leaves=31)
    Traceback (most recent call last):
    ...
    TypeError: LambdaMARTRanker got an unexpected keyword argument 'num_leaves'; expected max_leaf_nodes, ...
    """
    cls = dataclass(eq=False, repr=False, kw_only=True)(cls)
    init, known = cls.__init__, [parameter.name for parameter in fields(cls)]

    @wraps(init)
    def __init__(self, *args, **parameters):  # noqa: N807
        if unknown := [name for name in parameters if name not in known]:
            raise TypeError(_unexpected(cls.__name__, unknown[0], known))
        init(self, *args, **parameters)

    cls.__init__ = __init__
    return cls


def _unexpected(estimator, name, known):
    ours = [ours for ours, theirs in THEIRS.items() if name in theirs and ours in known]
    if ours:
        expected = f"expected {ours[0]}, which is what it is called here"
    elif near := get_close_matches(name, known, cutoff=0.7):
        expected = f"expected one of its parameters; the nearest are {near}"
    else:
        expected = "expected one of its parameters, which get_params() lists"
    return f"{estimator} got an unexpected keyword argument {name!r}; {expected}."
