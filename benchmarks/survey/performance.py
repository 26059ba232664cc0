"""Chapter 4: run times, and all learners on all sets (tables 4.1 and 4.2)."""

import time

import numpy as np

from ranktrees import OrdinalRanker

from . import sets
from .contenders import CLASSIFIERS, LEARNERS, SVM, boosted, forest
from .lab import fitted, kept
from .markdown import MEASURES, best_bold, findings, table


def seconds(folder, model, n_repeats=3):
    """CPU seconds of a fit to the training rows of Yandex, one thread, the fastest of several; as a cell."""

    def make():
        found = []
        for _ in range(n_repeats):
            start = time.process_time()
            fitted(model, sets.folds("yandex")[0].train, 0)
            found.append(time.process_time() - start)
        return min(found)

    return f"{kept(folder, ('seconds', model, n_repeats), make):.1f}"


def table_4_1(lab):
    """Table 4.1: CPU seconds of fits, by one thread."""
    models = {
        "RF, 300 trees": forest(300),
        "GBRT, 300 trees": boosted(max_iter=300),
        "IGBRT, 300 and 150 trees": boosted(max_iter=150, init=forest(300)),
    }
    rows = [
        ["regression", *(seconds(lab.folder, model, 2) for model in models.values())],
        ["classification", *(seconds(lab.folder, OrdinalRanker(model), 2) for model in models.values())],
    ]
    return [table(["CPU seconds", *models], rows)]


def table_4_2(lab):
    """Table 4.2: ERR and NDCG of test queries, of all learners and sets."""
    contenders = [*LEARNERS, *CLASSIFIERS, SVM]
    heads = [sets.NAMES[name] for name in lab.names]
    tables = []
    for label in ("ERR", "NDCG"):
        columns = [
            [float(np.mean(lab.measured(name, one, MEASURES[label])[1])) for one in contenders]
            for name in lab.names
        ]
        cells = zip(*best_bold(columns), strict=True)
        tables.append(
            table(
                [label, "R/C", *heads],
                [
                    [one.name.removesuffix("(C)"), "" if one is SVM else "C" if one.classes else "R", *line]
                    for one, line in zip(contenders, cells, strict=True)
                ],
            )
        )
    return tables


def claims_4_2(lab):
    """The thesis' findings in table 4.2, tested."""
    gbrt, sgbrt, ksgbrt, nksgbrt, rf, igbrt = LEARNERS
    classes = dict(zip(LEARNERS, CLASSIFIERS, strict=True))
    claims = [
        ("RF above GBRT", rf, gbrt),
        ("RF above GBRT, by classification", classes[rf], classes[gbrt]),
        ("IGBRT above RF", igbrt, rf),
        ("IGBRT above RF, by classification", classes[igbrt], classes[rf]),
        ("IGBRT above GBRT", igbrt, gbrt),
        ("IGBRT above NkSGBRT", igbrt, nksgbrt),
        ("SGBRT above kSGBRT", sgbrt, ksgbrt),
        ("NkSGBRT above kSGBRT", nksgbrt, ksgbrt),
        *((f"{one.name}: classification above regression", classes[one], one) for one in LEARNERS),
        ("GBRT above SVMrank", gbrt, SVM),
        ("RF above SVMrank", rf, SVM),
    ]
    return [findings(lab, claims, lab.names)]


TABLES = {"4.1": table_4_1, "4.2": table_4_2, "4.2, findings": claims_4_2}
