"""Files of models, in all formats that the library reads and writes."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from typing import Any

from ranktrees.estimators import EnsembleRanker
from ranktrees.formats.catboost import load_catboost
from ranktrees.formats.elasticsearch import dump_elasticsearch
from ranktrees.formats.lightgbm import dump_lightgbm, load_lightgbm
from ranktrees.formats.onnx import dump_onnx
from ranktrees.formats.plain import CBM
from ranktrees.formats.ranklib import dump_ranklib
from ranktrees.formats.solr import dump_solr
from ranktrees.formats.xgboost import dump_xgboost, load_xgboost
from ranktrees.model.ensemble import Ensemble
from ranktrees.model.native import MAGIC
from ranktrees.rows.features import names_of
from ranktrees.support.files import require_writable

SUFFIXES = {
    ".rkt": "ranktrees",
    ".ranktrees": "ranktrees",
    ".txt": "lightgbm",
    ".onnx": "onnx",
    ".xml": "ranklib",
}


def load(path: str) -> EnsembleRanker:
    """Read a model, of whatever kind its content is.

    Parameters
    ----------
    path : str

    Returns
    -------
    EnsembleRanker

    Raises
    ------
    OSError, ValueError
        If there is no file, or if it is no model.
    """
    if not Path(path).exists():
        raise ValueError(f"{path} does not exist; expected the file of a model.")
    return EnsembleRanker(LOADERS[kind_of(path)](path))


LOADERS: dict[str, Any] = {
    "ranktrees": Ensemble.load,
    "lightgbm": load_lightgbm,
    "xgboost": load_xgboost,
    "catboost": load_catboost,
}


def kind_of(path: str) -> str:
    """Return the kind of a file by its content, whether the model in it can be read or not."""
    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(MAGIC[: max(1, len(data))]):
        return "ranktrees"
    if data.startswith(CBM):
        return "catboost"
    if data.startswith(b"tree\n") or data.startswith(b"tree\r\n"):
        return "lightgbm"
    if data.lstrip().startswith(b"{"):
        try:
            keys = json.loads(data).keys()
        except ValueError:
            return "xgboost"  # binary perhaps, of which `load_xgboost` knows how it becomes text
        if "learner" in keys:
            return "xgboost"
        if keys & {"oblivious_trees", "trees"}:
            return "catboost"
    raise ValueError(
        f"{path} is no model that can be read; expected one of ranktrees (.rkt), a text of LightGBM, or JSON "
        "of XGBoost or CatBoost."
    )


def dump_ranktrees(model: Any, path: str, *, feature_names: list[str] | None = None) -> None:
    """Write a model of ranktrees, with other names of features if some are given."""
    if feature_names is not None:
        model = EnsembleRanker(model.ensemble_, feature_names=feature_names)
    model.save(path)


DUMPERS: dict[str, Any] = {
    "ranktrees": dump_ranktrees,
    "lightgbm": dump_lightgbm,
    "xgboost": dump_xgboost,
    "onnx": dump_onnx,
    "elasticsearch": dump_elasticsearch,
    "solr": dump_solr,
    "ranklib": dump_ranklib,
}


def format_to_write(path: str, to: str | None, options: dict[str, Any]) -> str:
    """Return the format to write, after checks of all that can be known before there is a model.

    Parameters
    ----------
    path : str
        The file to write.
    to : str or None
        The format. If None, the suffix says it.
    options : dict
        Keywords of the function that writes it.

    Returns
    -------
    str

    Raises
    ------
    ValueError, OSError
        If the format is not known, does not have such an option, or if no file can be written there.
    """
    suffix = Path(path).suffix
    kind = to or SUFFIXES.get(suffix)
    if kind is None:
        several = " or ".join(("xgboost", "elasticsearch", "solr") if suffix == ".json" else DUMPERS)
        raise ValueError(
            f"{path}: the suffix {suffix!r} does not say what to write; expected one of "
            f"{', '.join(SUFFIXES)}, or --to {several}."
        )
    for name in options:
        if name not in signature(DUMPERS[kind]).parameters:
            raise ValueError(f"--{name.replace('_', '-')}: {kind} has no such option; leave it out.")
    require_writable(path, "output")
    return kind


def names_or_numbers(model: EnsembleRanker) -> list[str]:
    """Return the names of the features or, without names, their numbers from 1, as in LETOR files."""
    return names_of(model) or [str(number) for number in range(1, model.n_features_in_ + 1)]
