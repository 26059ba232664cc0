"""What models know of their columns: the names, and the levels that codes stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from ranktrees.rows.features import names_of
from ranktrees.rows.frames import kind_of
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from ranktrees.model.ensemble import Ensemble

OF_COLUMNS = ("n_features_in_", "feature_names_in_", "_category_levels", "_qid_given")

Model = TypeVar("Model")


class KnowsColumns(Protocol):
    """A fitted estimator, as far as it is read here."""

    @property
    def _category_levels(self) -> dict[int, tuple[Any, ...]]: ...


def share_columns(checked: object, model: Model) -> Model:
    """Let a model know the columns that `check_fit` has found for another estimator. Return the model."""
    vars(model).update({name: vars(checked)[name] for name in OF_COLUMNS if name in vars(checked)})
    return model


def with_columns_of(model: KnowsColumns, ensemble: Ensemble) -> Ensemble:
    """Return the trees with what the model knows of its columns, as far as an ensemble can store it.

    Parameters
    ----------
    model : FittedTrees
    ensemble : Ensemble

    Returns
    -------
    Ensemble
    """
    return ensemble._with_columns(names_of(model) or None, model._category_levels)


def warn_of_lost_levels(model: KnowsColumns, ensemble: Ensemble) -> None:
    """Warn if category columns that the model knows have levels that a file of the ensemble will not have.

    Parameters
    ----------
    model : FittedTrees
    ensemble : Ensemble
        What will be written.
    """
    lost = sorted(model._category_levels.keys() - ensemble.category_levels.keys())
    if lost:
        names, levels = names_of(model) or range(ensemble.n_features), model._category_levels
        seen = [
            f"{names[feature]!r} ({' and '.join(sorted(set(map(kind_of, levels[feature]))))})"
            for feature in lost
        ]
        warn(
            f"the levels of category columns are not written: {', '.join(seen)}. Files hold levels that are "
            "strings, booleans or finite numbers. Make strings of these before fit, or keep the levels, and "
            "pass them to EnsembleRanker as category_levels.",
            FitWarning,
        )


def recoded(
    model: Any,
    levels: dict[int, tuple[Any, ...]],
    known: dict[int, tuple[Any, ...]] | None = None,
    ensemble: Ensemble | None = None,
) -> Ensemble:
    """Return the trees of a model, adapted to rows whose category columns are coded by other levels.

    Parameters
    ----------
    model : FittedTrees
    levels : dict of int to tuple
        The levels of each category column, in the order of the new codes 0, 1, ...
    known : dict of int to tuple, default=None
        The levels in the order of the codes that the trees know. If None, those of the model.
    ensemble : Ensemble, default=None
        The trees. If None, those of the model.

    Returns
    -------
    Ensemble
        Levels that the model does not know are missing values to it, as they were before.

    Raises
    ------
    ValueError
        If the trees compare codes of a column whose levels are others, or in another order; if levels that
        they split by are no longer known; or if a column is a category column on one side only.
    """
    ensemble = model.ensemble_ if ensemble is None else ensemble
    known = getattr(model, "_category_levels", {}) if known is None else known
    nodes, spelt = ensemble.nodes, list(ensemble.categories)
    for feature in sorted(known.keys() | levels.keys()):
        if known.get(feature) == levels.get(feature) or not (nodes["feature"] == feature).any():
            continue
        by_cut = ((nodes["feature"] == feature) & (nodes["categories"] < 0)).any()
        on_one_side = feature not in known or feature not in levels
        if by_cut or on_one_side or not set(known[feature]) <= set(levels[feature]):
            names = names_of(model) or range(ensemble.n_features)
            raise ValueError(
                f"column {names[feature]!r} has the levels {levels.get(feature)}, but {type(model).__name__} "
                f"was fitted with {known.get(feature)}, and its trees split by the codes of those; expected "
                "the same levels in the same order, or splits by category: fit it to the same rows, or give "
                "an ordered column the dtype that it had then."
            )
        places = dict(zip(levels[feature], range(len(levels[feature])), strict=True))
        # XGBoost's trees may list codes beyond the levels that they know
        place_of = [places.get(level, np.nan) for level in known[feature]]
        codes = spelt[feature].astype(int).tolist()
        spelt[feature] = np.array([place_of[code] if code < len(place_of) else np.nan for code in codes])
    kept = [None if each is None else np.argsort(each)[: np.count_nonzero(~np.isnan(each))] for each in spelt]
    categories = [None if places is None else each[places] for each, places in zip(spelt, kept, strict=True)]
    groups = [
        None if each is None else np.unique(each[places], return_inverse=True)[1]
        for each, places in zip(ensemble.groups, kept, strict=True)
    ]
    ensemble = ensemble._with_categories(categories, groups, spelt)
    return ensemble._with_columns(names_of(model) or None, levels)
