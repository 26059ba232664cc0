"""``ranktrees train``: fit an estimator to a file of rows, or cross-validate it."""

from __future__ import annotations

import ast
import json
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from importlib.util import find_spec
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from ranktrees import estimators
from ranktrees.command import data, models
from ranktrees.command.arguments import ESTIMATORS
from ranktrees.command.data import Rows
from ranktrees.command.measuring import as_json, mean_of, measures_of, table, values_of
from ranktrees.datasets import load_letor_folds
from ranktrees.estimators.docstrings import parameters_of
from ranktrees.estimators.fitting import TreeEnsembleEstimator
from ranktrees.evaluation import MeanInterval, QueryKFold
from ranktrees.evaluation.predictions import scores_by
from ranktrees.measures import Measure


class Fold(NamedTuple):
    """Rows to learn from, rows to stop by and rows to evaluate on."""

    name: str
    train: Rows
    vali: Rows | None
    test: Rows | None


def run(arguments: Namespace) -> None:
    """Run the command."""
    kind = getattr(estimators, ESTIMATORS[arguments.estimator])
    if arguments.parameters:
        print(parameters_of(kind), end="")
        return
    if arguments.rows is None:
        raise ValueError(f"there are no rows; expected {data.KINDS}, or a folder of LETOR files.")
    is_folder = Path(arguments.rows).is_dir()
    _refuse_what_does_not_go_together(arguments, is_folder)
    output = arguments.output
    written = None if output is None else models.format_to_write(output, arguments.to, {})
    estimator = _estimator(kind, arguments)
    folds: Iterable[Fold] = ()
    if is_folder:
        folds = _of_folder(arguments)
        if written is not None:
            fold = _only(folds, arguments.rows)
            train, vali = fold.train, fold.vali
    else:
        train, vali = data.load(arguments.rows, arguments), None
        if arguments.validation is not None:
            n_features = None if hasattr(train.X, "columns") else train.X.shape[1]
            seen = vars(arguments) | {"n_features": n_features}
            vali = data.load(arguments.validation, Namespace(**seen))
        if arguments.folds is not None:
            folds = _split(train, arguments.folds)
    if written is not None:
        _refuse_several_classes(estimator, train)
    report: dict[str, Any] = {"estimator": kind.__name__}
    if written is None or arguments.folds is not None:
        means = _cross_validate(estimator, folds, measures_of(arguments.measures))
        report["measures"] = as_json(means)
        if not arguments.json:
            print(table(means))
    if written is not None:
        estimator = _fitted(estimator, train, vali)
        models.DUMPERS[written](estimator, output)
        report |= _told(estimator, train) | {"output": output, "format": written}
        if not arguments.json:
            print(_sentences(report))
    if arguments.json:
        print(json.dumps(report))


def _refuse_what_does_not_go_together(arguments: Namespace, is_folder: bool) -> None:
    rows, validates = arguments.rows, arguments.folds is not None or (is_folder and arguments.output is None)
    if is_folder:
        data.refuse_columns(rows, arguments)
    if is_folder and arguments.folds is not None:
        raise ValueError(f"--folds: {rows} is divided already; leave it out, or pass a file.")
    if is_folder and arguments.validation is not None:
        raise ValueError(f"--validation: {rows} has validation rows of its own; leave it out.")
    if not is_folder and arguments.parts is not None:
        raise ValueError(f"--parts: {rows} is no folder; leave it out.")
    if validates and arguments.validation is not None:
        raise ValueError(
            "--validation: folds evaluate on rows of their own; leave out --validation or --folds."
        )
    if arguments.measures and not validates:
        raise ValueError(
            "--measure is what cross-validation tells; expected --folds, too. What is optimised is "
            f"--set measure={arguments.measures[0]}, and `ranktrees evaluate` tells any measure of a model."
        )
    if arguments.to is not None and arguments.output is None:
        raise ValueError(f"--to {arguments.to}: nothing is written; expected -o MODEL, too.")
    if arguments.output is None and not validates:
        raise ValueError("there is nothing to write; expected -o MODEL, or --folds to cross-validate.")


def _refuse_several_classes(estimator: Any, train: Rows) -> None:
    if is_classifier(estimator) and len(classes := np.unique(train.y)) > 2:
        raise ValueError(
            f"the labels are {len(classes)} classes, and a classifier grows trees for each, which no format "
            "holds; expected two classes: pass other labels, or choose another --estimator."
        )


def _estimator(kind: type, arguments: Namespace) -> Any:
    parameters: dict[str, Any] = {}
    for setting in arguments.set:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise ValueError(f"--set {setting}; expected NAME=VALUE, such as max_iter=500.")
        if name in parameters:
            raise ValueError(f"--set {name} is given twice; expected each parameter once.")
        parameters[name] = _value(value)
    if arguments.init is not None:
        parameters["init"] = models.load(arguments.init).ensemble_
    if "verbose" not in parameters and sys.stderr.isatty():
        has_bar = issubclass(kind, TreeEnsembleEstimator) and find_spec("tqdm") is not None
        parameters["verbose"] = "bar" if has_bar else 1
    return kind(**parameters)


def _value(text: str) -> Any:
    """Return a literal of Python, or of JSON if it is a truth value, or else the text itself."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _of_folder(arguments: Namespace) -> Iterator[Fold]:
    options = data.letor_options(arguments) | {"n_features": arguments.n_features}
    if arguments.parts is not None:
        options["parts"] = arguments.parts
    for fold in load_letor_folds(arguments.rows, **options):
        parts = {
            part: Rows(fold[part].data, fold[part].target, fold[part].qid) if part in fold else None
            for part in ("train", "vali", "test")
        }
        if parts["train"] is None:
            raise ValueError(f"--parts {','.join(arguments.parts)}; expected train among them.")
        yield Fold(fold.name, parts["train"], parts["vali"], parts["test"])


def _only(folds: Iterable[Fold], folder: str) -> Fold:
    first, *others = islice(folds, 2)
    if others:
        raise ValueError(
            f"{folder} has several folds, and -o writes one model; expected one fold: pass "
            f"{Path(folder, first.name)}, or leave out -o to evaluate a model of each fold."
        )
    return first


def _split(rows: Rows, n_folds: int) -> Iterator[Fold]:
    for number, (train, test) in enumerate(QueryKFold(n_folds).split(rows.X, qid=rows.qid), 1):
        yield Fold(f"fold {number}", rows.of(train), None, rows.of(test))


def _cross_validate(
    estimator: Any, folds: Iterable[Fold], measures: list[Measure]
) -> dict[str, dict[Measure, MeanInterval]]:
    """Return the mean of each measure over the test queries of each fold, and over those of all folds."""
    found = {}
    for fold in folds:
        if fold.test is None:
            raise ValueError("--parts: models are evaluated on test.txt; expected test, too, or -o MODEL.")
        model = _fitted(clone(estimator), fold.train, fold.vali)
        found[fold.name] = values_of(fold.test, scores_by(model, fold.test.X), measures)
    means = {
        name: {measure: mean_of(measure, values) for measure, values in of_fold.items()}
        for name, of_fold in found.items()
    }
    return means | {
        "all": {
            measure: mean_of(measure, np.concatenate([one[measure] for one in found.values()]))
            for measure in measures
        }
    }


def _fitted(estimator: Any, train: Rows, vali: Rows | None) -> Any:
    known, given = signature(estimator.fit).parameters, train.given()
    if vali is not None and "X_val" in known:
        given |= {f"{name}_val": each for name, each in vali.given().items() if f"{name}_val" in known}
    elif vali is not None:
        warnings.warn(
            f"validation rows are not used: {type(estimator).__name__} does not stop early", stacklevel=2
        )
    with redirect_stdout(sys.stderr):  # what a fit says of its progress is no result
        return estimator.fit(**given)


def _told(estimator: Any, train: Rows) -> dict[str, Any]:
    told: dict[str, Any] = {"rows": len(train.y), "queries": train.n_queries}
    told["trees"] = len(estimator.ensemble_) - estimator.n_init_trees_
    scores = getattr(estimator, "validation_score_", ())
    if len(scores):
        told |= {"validation_score": float(np.fmax.reduce(scores)), "trees_grown": estimator.n_iter_}
    return told


def _sentences(report: dict[str, Any]) -> str:
    stopped = ""
    if "validation_score" in report:
        best = f"{report['validation_score']:.4f}"
        stopped = f"\nbest validation score of {report['trees_grown']} trees grown: {best}"
    return (
        f"{report['estimator']} learned {report['trees']} trees from {report['rows']} rows of "
        f"{report['queries']} queries{stopped}\nwritten to {report['output']} ({report['format']})"
    )
