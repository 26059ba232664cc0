"""The headings under which the API pages list the parameters of the estimators that have many."""

import re

from ranktrees.estimators.docstrings import SECTION, section_entries

CLASSES = ["LambdaMARTRanker", "HistGBRTRegressor", "HistGBRTClassifier", "RandomForestRanker"]
FIRST = "Start with these"

GROUPS = {
    FIRST: [
        "loss",
        "measure",
        "max_iter",
        "n_estimators",
        "learning_rate",
        "max_leaf_nodes",
        "min_samples_leaf",
        "categorical_features",
        "random_state",
        "n_jobs",
    ],
    "The loss": [
        "quantile",
        "balanced",
        "class_weight",
        "truncation_level",
        "gain",
        "sigma",
        "score_gap_norm",
        "query_norm",
        "noise",
        "n_orders",
    ],
    "Clicks": ["propensities", "bias_norm"],
    "Stopping early": ["early_stopping", "scoring", "validation_fraction", "n_iter_no_change", "tol"],
    "Sampling": [
        "bootstrap",
        "bootstrap_unit",
        "max_samples",
        "oob_score",
        "subsample",
        "query_subsample",
        "exact_subsample",
        "gradient_sampling",
        "max_features",
    ],
    "Trees and leaves": [
        "max_depth",
        "min_hessian_to_split",
        "min_gain_to_split",
        "l2_regularization",
        "split_criterion",
        "leaf_values",
        "step",
        "step_interval",
        "step_rows",
    ],
    "Features": [
        "monotonic_cst",
        "interaction_cst",
        "handle_missing",
        "feature_costs",
        "cost_rule",
        "cost_weight",
        "feature_groups",
    ],
    "Starting from a model": ["init", "init_cv", "warm_start"],
    "Technical": [
        "max_bins",
        "subsample_for_bin",
        "split_search",
        "stage_size",
        "checkpoint",
        "checkpoint_every",
        "verbose",
    ],
}


def in_groups(lines):
    """Deal the parameters of a numpydoc docstring to sections, one for each heading, in their order."""
    text = "\n".join(lines) + "\n"
    heading_of = {name: heading for heading, names in GROUPS.items() for name in names}
    order = list(heading_of)
    sections = dict.fromkeys(GROUPS, "")
    entries = section_entries(text, "Parameters")
    for names, entry in sorted(entries.items(), key=lambda item: order.index(item[0][0])):
        sections[heading_of[names[0]]] += entry
    dealt = "\n".join(f"{head}\n{'-' * len(head)}\n{body}" for head, body in sections.items() if body)
    return re.sub(SECTION.format("Parameters"), lambda _: dealt + "\n", text, flags=re.M | re.S)


def group(app, what, name, obj, options, lines):
    if what == "class" and name.rpartition(".")[2] in CLASSES:
        lines[:] = in_groups(lines).splitlines()


def shorten(app, what, name, obj, options, signature, returned):
    """Show the first parameters only: those below are read better with their descriptions."""
    if what == "class" and name.rpartition(".")[2] in CLASSES:
        first = [each for each in signature[1:-1].split(", ") if each.split("=")[0] in GROUPS[FIRST]]
        return f"(*, {', '.join(first)}, ...)", returned
    return None


def setup(app):
    # Attributes, too: Napoleon's own form of them loses the underscore at the end of a name.
    app.config.napoleon_custom_sections = [(heading, "params_style") for heading in (*GROUPS, "Attributes")]
    app.connect("autodoc-process-docstring", group, priority=90)
    app.connect("autodoc-process-signature", shorten)
    return {"parallel_read_safe": True}
