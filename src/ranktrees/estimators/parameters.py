"""Let an estimator's fields be its parameters, each defined once, and translate names of other libraries."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from os import PathLike
from typing import Any, NoReturn, ParamSpec, Self, TypeVar, dataclass_transform

from ranktrees.estimators.docstrings import filled
from ranktrees.support.scikit_learn import EstimatorMixin

__all__ = ["KnownParameters", "look_up", "look_up_in_package", "with_keywords", "with_parameters"]

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
Class = TypeVar("Class")

_N_TREES = ("max_iter", "n_estimators", "num_boost_round", "num_iterations", "num_trees", "iterations")

# The names that LightGBM, XGBoost and CatBoost give to a parameter. The guide lists them too, with values.
THEIRS = {
    "max_iter": _N_TREES,
    "n_estimators": _N_TREES,
    "max_leaf_nodes": ("num_leaves", "max_leaves"),
    "max_depth": ("depth",),
    "min_samples_leaf": ("min_child_samples", "min_data_in_leaf"),
    "max_features": ("colsample_bynode", "feature_fraction_bynode", "rsm"),
    "max_bins": ("max_bin", "border_count"),
    "subsample_for_bin": ("bin_construct_sample_cnt",),
    "learning_rate": ("eta",),
    "l2_regularization": ("reg_lambda", "lambda_l2", "l2_leaf_reg"),
    "min_gain_to_split": ("min_split_gain", "gamma"),
    "min_hessian_to_split": ("min_child_weight", "min_sum_hessian_in_leaf"),
    "subsample": ("bagging_fraction",),
    "max_samples": ("subsample", "bagging_fraction"),
    "gradient_sampling": ("data_sample_strategy", "sampling_method", "bootstrap_type"),
    "loss": ("objective", "loss_function"),
    "measure": ("metric", "eval_metric", "custom_metric", "eval_at", "ndcg_eval_at"),
    "gain": ("label_gain", "ndcg_exp_gain"),
    "truncation_level": ("lambdarank_truncation_level", "lambdarank_num_pair_per_sample"),
    "query_norm": ("lambdarank_norm", "lambdarank_normalization"),
    "score_gap_norm": ("lambdarank_score_normalization",),
    "sigma": ("sigmoid",),
    "bias_norm": ("lambdarank_bias_norm",),
    "n_iter_no_change": ("early_stopping_rounds", "early_stopping_round", "od_wait"),
    "tol": ("early_stopping_min_delta",),
    "validation_fraction": ("eval_fraction",),
    "checkpoint": ("snapshot_file", "save_snapshot"),
    "checkpoint_every": ("snapshot_freq", "snapshot_interval"),
    "feature_costs": ("cegb_penalty_feature_coupled", "first_feature_use_penalties"),
    "cost_weight": ("cegb_tradeoff", "penalties_coefficient"),
    "categorical_features": ("categorical_feature", "cat_features", "enable_categorical"),
    "monotonic_cst": ("monotone_constraints",),
    "interaction_cst": ("interaction_constraints",),
    "init": ("init_model", "xgb_model", "base_score", "boost_from_average", "input_model"),
    "random_state": (
        "seed",
        "random_seed",
        "bagging_seed",
        "feature_fraction_seed",
        "data_random_seed",
        "extra_seed",
        "objective_seed",
    ),
    "verbose": ("verbosity", "verbose_eval", "metric_period"),
    "n_jobs": ("num_threads", "nthread", "thread_count"),
}

# Their parameters without an equivalent here, or in some estimator, by what comes nearest.
ABSENT = {
    "min_samples_leaf counts rows": ("min_child_weight", "min_sum_hessian_in_leaf"),
    "max_features draws features for each split": (
        "colsample_bytree",
        "colsample_bylevel",
        "feature_fraction",
    ),
    "l2_regularization is the only penalty of leaves": (
        "reg_alpha",
        "lambda_l1",
        "max_delta_step",
        "path_smooth",
    ),
    "quantile is what the quantile loss of HistGBRTRegressor predicts, and leaves have no L1 penalty": (
        "alpha",
    ),
    "leaves are constants": ("linear_tree", "linear_lambda"),
    "categories are split by sets, and the gain of that is regularised by their number": (
        "cat_smooth",
        "cat_l2",
        "min_data_per_group",
        "max_cat_threshold",
        "max_cat_to_onehot",
        "one_hot_max_size",
        "max_ctr_complexity",
        "simple_ctr",
        "combinations_ctr",
        "per_feature_ctr",
    ),
    "max_features draws what a split chooses among, and the cuts are never drawn": (
        "extra_trees",
        "random_strength",
    ),
    "min_samples_leaf and max_leaf_nodes bound trees": (
        "min_split_gain",
        "min_gain_to_split",
        "gamma",
        "min_samples_split",
        "min_impurity_decrease",
        "min_weight_fraction_leaf",
        "ccp_alpha",
    ),
    "splits are always those that lower the squared error, or the loss, most": ("criterion",),
    "trees are always grown from histograms, on processors": (
        "tree_method",
        "device",
        "device_type",
        "devices",
        "gpu_id",
        "gpu_device_id",
        "gpu_platform_id",
        "gpu_use_dp",
        "num_gpu",
        "predictor",
        "task_type",
    ),
    "trees grow by their best leaves, or by whole layers with max_leaf_nodes=None": ("grow_policy",),
    "models never depend on the number of threads": ("deterministic", "force_row_wise", "force_col_wise"),
    "fit(position=...) corrects for where rows were shown": (
        "lambdarank_unbiased",
        "lambdarank_position_bias_regularization",
    ),
    "truncation_level chooses the pairs, by their ranks": ("lambdarank_pair_method",),
    "missing values are NaN": ("missing", "use_missing", "zero_as_missing", "nan_mode"),
    "n_iter_no_change rounds without a better score end a fit that has validation rows": (
        "od_type",
        "od_pval",
    ),
    "early stopping keeps the trees up to the best score": ("use_best_model", "best_model_min_trees"),
    "verbose=0, which is the default, prints nothing": ("silent", "logging_level"),
    "set_callbacks(...) of the estimator sets them": ("callbacks",),
    "gradients are always rounded to integers": (
        "use_quantized_grad",
        "num_grad_quant_bins",
        "quant_train_renew_leaf",
        "stochastic_rounding",
    ),
    "gradient_sampling draws rows by their gradients": (
        "top_rate",
        "other_rate",
        "bagging_temperature",
        "mvs_reg",
    ),
    "query_subsample draws whole queries": ("bagging_by_query", "sampling_unit"),
    "max_bins is the same for all features, whose cuts are quantiles": (
        "min_data_in_bin",
        "max_bin_by_feature",
        "feature_border_type",
        "per_float_feature_quantization",
        "forcedbins_filename",
    ),
    "feature_costs makes trees pay for features": (
        "feature_contri",
        "feature_weights",
        "cegb_penalty_split",
        "cegb_penalty_feature_lazy",
        "per_object_feature_penalties",
    ),
    "monotonic_cst is obeyed in one way": ("monotone_constraints_method", "monotone_penalty"),
    "leaves take one Newton step": (
        "leaf_estimation_iterations",
        "leaf_estimation_method",
        "leaf_estimation_backtracking",
    ),
    "trees keep their values, and gradients are those of the loss": (
        "langevin",
        "diffusion_temperature",
        "posterior_sampling",
        "model_shrink_rate",
        "model_shrink_mode",
    ),
    "trees are grown from all rows at once, which have no order": (
        "has_time",
        "fold_len_multiplier",
        "fold_permutation_block",
        "approx_on_full_history",
    ),
    "columns of X are features, and all of them: drop what is none": ("ignore_column", "ignored_features"),
    "features are numbers or categories": ("text_features", "embedding_features"),
    "save(path) of a fitted model writes it": ("output_model", "train_dir", "allow_writing_files"),
    "ranktrees.mpi, dask, spark and ray train on several machines": (
        "tree_learner",
        "machines",
        "num_machines",
        "local_listen_port",
        "pre_partition",
    ),
    "classes are those of the labels": ("num_class", "classes_count", "class_names"),
    "feature_importances(kind) returns both kinds for a fitted model": ("importance_type",),
    "rows are drawn anew for each tree": ("bagging_freq", "subsample_freq"),
    "RandomForestRanker is the forest, and boosting drops no trees": (
        "boosting",
        "boosting_type",
        "booster",
        "num_parallel_tree",
        "drop_rate",
        "rate_drop",
        "skip_drop",
        "max_drop",
        "uniform_drop",
        "drop_seed",
    ),
    "sample_weight= of fit weights rows, HistGBRTClassifier(class_weight=...) weights classes": (
        "class_weight",
        "class_weights",
        "auto_class_weights",
        "is_unbalance",
        "scale_pos_weight",
    ),
}

# The names that they give to losses.
LOSSES = {
    'LambdaMARTRanker(loss="lambdamart")': ("lambdarank", "rank:ndcg", "LambdaMart"),
    'LambdaMARTRanker(loss="lambdamart", measure="map")': ("rank:map",),
    'LambdaMARTRanker(loss="lambdamart", noise=1.0)': ("YetiRank", "YetiRankPairwise"),
    'LambdaMARTRanker(loss="xendcg")': ("rank_xendcg", "xe_ndcg"),
    'LambdaMARTRanker(loss="ranknet")': ("rank:pairwise", "PairLogit", "PairLogitPairwise"),
    'LambdaMARTRanker(loss="query_rmse")': ("QueryRMSE",),
    'LambdaMARTRanker(loss="listnet")': ("QuerySoftMax",),
    'HistGBRTRegressor(loss="squared_error")': ("regression", "l2", "mse", "reg:squarederror", "RMSE"),
    'HistGBRTRegressor(loss="absolute_error")': ("regression_l1", "l1", "mae", "reg:absoluteerror", "MAE"),
    'HistGBRTRegressor(loss="poisson")': ("count:poisson", "Poisson"),
    'HistGBRTRegressor(loss="gamma")': ("reg:gamma",),
    "HistGBRTClassifier()": (
        "binary",
        "binary:logistic",
        "Logloss",
        "log_loss",
        "multiclass",
        "multi:softprob",
        "multi:softmax",
        "MultiClass",
    ),
}

# The names that they give to arguments of methods, or to what methods do.
THEIRS_OF_METHODS = {
    "qid=": ("group_id", "query_id"),
    "qid=np.repeat(np.arange(len(group)), group)": ("group",),
    "sample_weight=": ("weight", "group_weight"),
    "eval_set=[(X, y)]": ("valid_sets", "evals"),
    "X_val=": ("eval_X",),
    "y_val=": ("eval_y",),
    "a model that predicts them, as init= of the estimator": (
        "init_score",
        "base_margin",
        "baseline",
        "eval_init_score",
    ),
    "a function as scoring= of the estimator": ("feval",),
    "a function as loss= of the estimator": ("fobj",),
    "train_score_ and validation_score_ of the fitted estimator": ("eval_names",),
    "sample_weight_val=": ("eval_sample_weight", "sample_weight_eval_set"),
    "n_trees=": ("num_iteration", "iteration_range", "ntree_limit", "ntree_end"),
    "decay=": ("decay_rate",),
    "what predict returns": ("raw_score", "output_margin", "prediction_type"),
    "n_iter_no_change= and verbose= of the estimator, or its set_callbacks": ("callbacks",),
    "a data frame's columns": ("feature_name", "feature_names"),
    "ranktrees.score_curves(model).plot(), after fit": ("plot", "plot_file"),
    "ranktrees.contributions(model, X)": ("pred_contrib", "pred_contribs"),
    "ranktrees.interactions(model, X)": ("pred_interactions",),
    "model.ensemble_.leaves(X)": ("pred_leaf",),
    "model.ensemble_.after(n).predict(X), which leaves out the first n trees": (
        "start_iteration",
        "ntree_start",
    ),
}

# The names that they give to attributes and methods of estimators.
THEIRS_OF_ATTRIBUTES = {
    "best_iteration_": ("best_iteration", "best_ntree_limit", "get_best_iteration"),
    "n_iter_": ("n_estimators_", "num_trees", "num_boosted_rounds", "current_iteration"),
    "ensemble_, whose length is the number of trees that were kept": ("tree_count_",),
    "train_score_ and validation_score_": ("evals_result_", "evals_result", "get_evals_result"),
    "validation_score_, whose best value is that of best_iteration_": (
        "best_score_",
        "best_score",
        "get_best_score",
    ),
    "feature_importances_ or feature_importances(kind)": (
        "feature_importance",
        "get_feature_importance",
        "get_score",
        "get_fscore",
    ),
    "feature_names_in_": ("feature_name_", "feature_names_"),
    "n_features_in_": ("n_features_", "num_feature", "num_features"),
    "ensemble_": ("booster_", "get_booster"),
    "save(path)": ("save_model", "model_to_string", "save_raw"),
    "ranktrees.EnsembleRanker(ranktrees.Ensemble.load(path))": ("load_model", "load"),
    "ensemble_.leaves(X)": ("apply", "decision_path", "calc_leaf_indexes"),
    "ensemble_, of which ensemble_[t] is tree t": ("estimators_",),
    "ranktrees.tree_table(model)": ("trees_to_dataframe", "dump_model", "get_dump"),
    "the loss that get_params() tells": ("objective_",),
    "refit_leaves(X, y, qid=qid)": ("refit",),
    "predict(X)": ("inplace_predict",),
    "ensemble_.first(n), which leaves out the trees after the first n": (
        "shrink",
        "slice",
        "rollback_one_iter",
    ),
    "ranktrees.score_curves(model)": (
        "eval_metrics",
        "eval",
        "eval_set",
        "eval_train",
        "eval_valid",
    ),
    "fit(X, y) with warm_start=True and a larger max_iter": ("update", "boost"),
    "get_params()": ("get_param", "get_all_params", "get_xgb_params", "save_config"),
    "scikit-learn's search with cv=ranktrees.QueryKFold()": ("grid_search", "randomized_search"),
    "TreeDisplay of ranktrees.displays": ("plot_tree",),
    "PartialDependenceDisplay of ranktrees.displays": (
        "plot_partial_dependence",
        "calc_feature_statistics",
    ),
}

# The names that they give to functions and classes, or that modules of this package have.
THEIRS_OF_MODULES = {
    "LambdaMARTRanker(...).fit(X, y, qid=qid)": ("train",),
    "sklearn.model_selection.cross_validate with cv=QueryKFold() and scoring=query_scorer('ndcg@10')": (
        "cv",
    ),
    "arrays or a data frame, passed to fit, or Batches of ranktrees.datasets": (
        "Dataset",
        "DMatrix",
        "QuantileDMatrix",
        "Pool",
    ),
    "Ensemble": ("Booster",),
    "EnsembleRanker(Ensemble.load(path)), or load_lightgbm, load_xgboost and load_catboost": ("load_model",),
    "LambdaMARTRanker": ("LGBMRanker", "XGBRanker", "CatBoostRanker", "CatBoost"),
    "HistGBRTRegressor": ("LGBMRegressor", "XGBRegressor", "CatBoostRegressor"),
    "HistGBRTClassifier": ("LGBMClassifier", "XGBClassifier", "CatBoostClassifier"),
    "RandomForestRanker": ("XGBRFRegressor",),
    "n_iter_no_change= of the estimators": ("early_stopping", "EarlyStopping"),
    "verbose= of the estimators": ("log_evaluation",),
    "train_score_ and validation_score_ of a fitted estimator": ("record_evaluation",),
    "learning_rate= of the estimators, which is one number": ("reset_parameter", "LearningRateScheduler"),
    "BlendRanker": ("sum_models",),
    "score_curves(model).plot()": ("plot_metric",),
    "ImportanceDisplay.from_estimator of ranktrees.displays": ("plot_importance",),
    "TreeDisplay.from_estimator of ranktrees.displays": ("plot_tree",),
    "tree_graph of ranktrees.inspection": ("create_tree_digraph", "to_graphviz"),
}

# Where public names are that the package itself does not have.
MODULES = (
    "measures",
    "datasets",
    "displays",
    "evaluation",
    "inspection",
    "meta",
    "model",
    "objectives",
    "rows",
)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def with_parameters(cls: type[Class]) -> type[Class]:
    """Make the fields of a class the parameters of its ``__init__``, in scikit-learn's manner.

    Parameters
    ----------
    cls : type
        A class whose annotated attributes, and those of its bases, become keywords. Its docstring takes from
        that of its base what it does not say itself.

    Returns
    -------
    type
        The same class. A keyword that it does not know is a TypeError, which suggests the one that may be
        meant.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker
    >>> LambdaMARTRanker(num_leaves=31)
    Traceback (most recent call last):
    ...
    TypeError: LambdaMARTRanker got an unexpected keyword argument 'num_leaves'; expected max_leaf_nodes, ...
    """
    made: Any = dataclass(eq=False, repr=False, kw_only=True)(cls)
    init, known = made.__init__, [parameter.name for parameter in fields(made)]

    @wraps(init)
    def __init__(self: Any, *args: Any, **parameters: Any) -> None:  # noqa: N807
        if unknown := [name for name in parameters if name not in known]:
            raise TypeError(_unexpected(cls.__name__, unknown, known))
        init(self, *args, **parameters)

    made.__init__ = __init__
    made.__doc__ = filled(made)
    return cls


class KnownParameters(EstimatorMixin):
    """Mixin for estimators: `set_params` suggests what may be meant by a name that it does not know.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker
    >>> LambdaMARTRanker().set_params(num_leaves=31)
    Traceback (most recent call last):
    ...
    ValueError: Invalid parameter 'num_leaves' for estimator LambdaMARTRanker; expected max_leaf_nodes, ...
    """

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : dict
            The parameters by name. Those of an estimator inside are called ``<name>__<parameter>``.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If there is no such parameter. The message suggests the one that may be meant.
        """
        known = list(self.get_params(deep=False))
        if unknown := [name for name in params if name.partition("__")[0] not in known]:
            raise ValueError(
                f"Invalid parameter {unknown[0]!r} for estimator {type(self).__name__}; "
                f"{_expected(unknown[0], known)}."
            )
        return super().set_params(**params)

    def _validate_params(self) -> None:
        refuse_foreign_values(self)
        super()._validate_params()


def with_keywords(method: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Let a method suggest what may be meant by a keyword that it does not know.

    Parameters
    ----------
    method : callable
        A method of an estimator.

    Returns
    -------
    callable
        The same method. A keyword that it does not know is a TypeError, which suggests the one that may be
        meant.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker
    >>> LambdaMARTRanker().fit([[0.0], [1.0]], [0, 1], group_id=[7, 7])
    Traceback (most recent call last):
    ...
    TypeError: LambdaMARTRanker.fit got an unexpected keyword argument 'group_id'; here that is qid=.
    """
    parameters = list(signature(method).parameters.values())
    known = [parameter.name for parameter in parameters[1:]]
    by_position = [parameter.name for parameter in parameters if parameter.kind != Parameter.KEYWORD_ONLY]

    @wraps(method)
    def answering(*args: Given.args, **keywords: Given.kwargs) -> Returned:
        if len(args) > len(by_position):
            raise TypeError(_by_name(type(args[0]).__name__, method.__name__, by_position[1:], known))
        if unknown := [name for name in keywords if name not in known]:
            estimator = type(args[0])
            caller = f"{estimator.__name__}.{method.__name__}"
            raise TypeError(_unexpected_by(caller, unknown[0], known, list(signature(estimator).parameters)))
        return method(*args, **keywords)

    return answering


def _by_name(estimator: str, method: str, by_position: list[str], known: list[str]) -> str:
    """Return the message for arguments that are accepted by name only, but were given by position."""
    others = [name for name in known if name not in by_position]
    if not others:
        taken = ", ".join(by_position)
        return f"{estimator}.{method} takes {taken} and nothing else; write {method}({taken})."
    example = "qid" if "qid" in others else others[0]
    return (
        f"{estimator}.{method} takes {', '.join(by_position)} by position, and everything else by name: "
        f"{', '.join(f'{name}=' for name in others)}; write {method}({', '.join(by_position)}, "
        f"{example}={example})."
    )


def look_up(estimator: Any, name: str) -> Any:
    """Look up an attribute. If there is none, the AttributeError suggests the one that may be meant.

    Parameters
    ----------
    estimator : object
    name : str

    Returns
    -------
    object

    Raises
    ------
    AttributeError
        With the name it has here, if LightGBM, XGBoost or CatBoost use this one; otherwise Python's own.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker
    >>> LambdaMARTRanker().booster_
    Traceback (most recent call last):
    ...
    AttributeError: 'LambdaMARTRanker' object has no attribute 'booster_'; here that is ensemble_.
    """
    if (ours := _answer_to(name, THEIRS_OF_ATTRIBUTES)) is not None:
        raise AttributeError(
            f"{type(estimator).__name__!r} object has no attribute {name!r}; here that is {ours}.",
            name=name,
            obj=estimator,
        )
    return object.__getattribute__(estimator, name)


def look_up_in_package(name: str) -> NoReturn:
    """Raise the AttributeError for a name that the package does not have, and say what may be meant.

    Parameters
    ----------
    name : str

    Raises
    ------
    AttributeError
        With the module that has the name, or with what does the same here, if LightGBM, XGBoost or CatBoost
        call it so; otherwise Python's own.

    Examples
    --------
    >>> import ranktrees
    >>> ranktrees.NDCG
    Traceback (most recent call last):
    ...
    AttributeError: module 'ranktrees' has no attribute 'NDCG'; it is in ranktrees.measures.
    >>> ranktrees.DMatrix
    Traceback (most recent call last):
    ...
    AttributeError: module 'ranktrees' has no attribute 'DMatrix'; here that is arrays or a data frame, ...
    """
    ours = _answer_to(name, THEIRS_OF_MODULES)
    hint = "" if ours is None else f"; here that is {ours}."
    for module in MODULES if not hint and not name.startswith("_") else ():
        if name in import_module(f"ranktrees.{module}").__all__:
            hint = f"; it is in ranktrees.{module}."
            break
    raise AttributeError(f"module 'ranktrees' has no attribute {name!r}{hint}", name=name)


def refuse_foreign_values(estimator: Any) -> None:
    """Raise a ValueError that translates what another library takes for a loss, a measure or a model."""
    loss, init = getattr(estimator, "loss", None), getattr(estimator, "init", None)
    kind = type(estimator).__name__
    if isinstance(loss, Mapping):
        raise ValueError(f"loss is a dict; expected parameters by their names, as in {kind}(**parameters).")
    if isinstance(loss, str):
        for name in (loss, loss.partition(":")[0]):  # CatBoost puts settings behind a colon, XGBoost a name
            if (ours := _answer_to(name, LOSSES)) is not None:
                raise ValueError(f"loss={loss!r}; expected the name of the loss in ranktrees: use {ours}.")
    for name, use in (("measure", "that score tells"), ("scoring", "that early stopping follows")):
        many = isinstance(value := getattr(estimator, name, None), list | tuple)
        if many and (name == "measure" or hasattr(estimator, "early_stopping")):
            raise ValueError(
                f"{name}={value!r}; expected the one {use}, such as 'ndcg@10': ranktrees.score_curves "
                "computes any others, after each tree, and ranktrees.evaluation.per_query_table of scores."
            )
    if isinstance(init, str | PathLike):
        raise ValueError(
            f"init={str(init)!r}; expected a model: load it with Ensemble.load, load_lightgbm, load_xgboost "
            "or load_catboost of ranktrees."
        )
    if type(init).__module__.startswith("xgboost.") and not hasattr(init, "fit"):  # predicts a DMatrix only
        raise ValueError("init is a Booster of XGBoost; expected a model of rows: load_xgboost(booster).")


def _unexpected(estimator: Any, names: list[str], known: list[str]) -> str:
    first, *others = names
    also = "".join(f"\n{name!r}: {_expected(name, known)}." for name in others)
    return f"{estimator} got an unexpected keyword argument {first!r}; {_expected(first, known)}.{also}"


def _expected(name: str, known: list[str]) -> str:
    """Return which parameter may be meant."""
    if ours := _ours(name, known):
        return f"expected {ours}, which is its name here"
    if nearest := _answer_to(name, ABSENT):
        return f"it has no such parameter: {nearest}"
    if near := get_close_matches(name, known, cutoff=0.7):
        return f"expected one of its parameters; the nearest are {near}"
    return "expected one of its parameters, which get_params() lists"


def _are_known(ours: str, known: list[str]) -> bool:
    """Whether an argument that stands for another library's, if it is one, is among those that are known."""
    keyword = re.match(r"(\w+)=", ours)
    return keyword is None or keyword[1] in known


def _unexpected_by(method: str, name: str, known: list[str], parameters: list[str]) -> str:
    if (ours := _answer_to(name, THEIRS_OF_METHODS)) and _are_known(ours, known):
        expected = f"here that is {ours}"
    elif parameter := name if name in parameters else _ours(name, parameters):
        expected = f"{parameter} is a parameter of the estimator: set_params({parameter}=...)"
    elif nearest := _answer_to(name, ABSENT):
        expected = f"the estimator has no such parameter: {nearest}"
    elif near := get_close_matches(name, known, cutoff=0.7):
        expected = f"the nearest that it accepts are {near}"
    else:
        expected = f"it accepts {known}"
    return f"{method} got an unexpected keyword argument {name!r}; {expected}."


def _answer_to(name: str, theirs: Mapping[str, Collection[str]]) -> str | None:
    """Return the first key of a table whose names of other libraries include this one."""
    return next((ours for ours, names in theirs.items() if name in names), None)


def _ours(name: str, known: list[str]) -> str | None:
    return next((ours for ours, theirs in THEIRS.items() if name in theirs and ours in known), None)
