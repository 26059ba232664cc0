"""The order of the gallery: that in which one learns to rank, not that of the alphabet."""

SECTIONS = {
    "tutorial": [],
    "first": ["plot_early_stopping.py", "plot_measures.py", "plot_tune_with_queries.py"],
    "inside": ["plot_pictures.py", "plot_contributions.py"],
    "losses": [
        "plot_lambdamart_or_regression.py",
        "plot_losses.py",
        "plot_ordinal.py",
        "plot_preferences.py",
        "plot_clicks.py",
    ],
    "trees": ["plot_missing.py", "plot_split_search.py", "plot_ranks.py"],
    "together": [
        "plot_averages.py",
        "plot_combining.py",
        "plot_initialised.py",
        "plot_adaptation.py",
        "plot_transfer.py",
    ],
    "cheaper": ["plot_early_exit.py", "plot_feature_costs.py"],
}
_ORDER = [name for names in SECTIONS.values() for name in names]


def place(name):
    """Return the key that sorts the examples of a section; those that are not in the list go by name."""
    return _ORDER.index(name) if name in _ORDER else len(_ORDER), name
