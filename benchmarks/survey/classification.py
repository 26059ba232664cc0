"""Chapter 3: what is made of the probabilities of grades, by forests (tables 3.1, 3.2 and 3.3)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ranktrees.meta.ordinal import class_probabilities, least_squares_values

from . import sets
from .contenders import CLASSIFIERS
from .markdown import number, table, two_parts

RF = next(one for one in CLASSIFIERS if one.name == "RF(C)")
SETS = ("yandex", "web")
PARTS = {"training": ("train",), "validation": ("validation",), "training + val.": ("train", "validation")}


def probabilities(folder, name, fold_number):
    """float64[n_rows, n_grades], by a forest for each grade but the highest."""
    return class_probabilities(RF.cumulative(folder, name, fold_number)[:, 0].T.astype(np.float64))


@dataclass(frozen=True)
class Scored:
    """The forests' probabilities, times a value for each grade."""

    name: str
    values: Callable  # of the folder, the set, and the number of its fold

    def scores(self, folder, name, fold_number):
        return (probabilities(folder, name, fold_number) @ self.values(folder, name, fold_number))[None]


def fixed(label, function):
    return Scored(label, lambda *place: function(np.arange(5.0)))


def least_squares(parts):
    """The values that bring the scores of these parts closest to their labels."""

    def values(folder, name, fold_number):
        fold, found = sets.folds(name)[fold_number], probabilities(folder, name, fold_number).T
        of_parts = np.concatenate([fold.part_of(found, part) for part in parts], axis=1).T
        labels = np.concatenate([getattr(fold, part).y for part in parts])
        return least_squares_values(of_parts, labels, np.arange(5.0))

    return values


EXPECTED = fixed("expected relevance", lambda grade: grade)
SCORINGS = (fixed("c", lambda grade: grade), fixed("c²", np.square), fixed("2^c", np.exp2))
WEIGHTS = (EXPECTED, *(Scored(f"OLS on {label}", least_squares(parts)) for label, parts in PARTS.items()))


def table_3_1(lab):
    """Table 3.1: scorings of a grade."""
    return [two_parts(lab, name, SCORINGS, f"{sets.NAMES[name]}: F(c)", SCORINGS[0]) for name in SETS]


def table_3_2(lab):
    """Table 3.2: the weights that least squares finds, of T0 to T3 and of 1."""
    rows = []
    for name in SETS:
        for label, parts in PARTS.items():
            find = least_squares(parts)
            values = np.mean([find(lab.folder, name, n) for n in range(len(lab.folds(name)))], axis=0)
            weights = np.append(-np.diff(values), values[-1])
            rows.append([sets.NAMES[name], label, *map(number, weights)])
    rows.append(["", EXPECTED.name, *["-1"] * 4, "4"])
    return [table(["set", "input", "T0", "T1", "T2", "T3", "1"], rows)]


def table_3_3(lab):
    """Table 3.3: expected relevance against weights by least squares."""
    return [two_parts(lab, name, WEIGHTS, f"{sets.NAMES[name]}: weights", EXPECTED) for name in SETS]


TABLES = {"3.1": table_3_1, "3.2": table_3_2, "3.3": table_3_3}
