"""``ranktrees explain``: what each feature adds to the scores of the rows of a query."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

import numpy as np
from scipy import sparse

from ranktrees.command import data, models
from ranktrees.inspection import contributions
from ranktrees.support.tables import aligned


def run(arguments: Namespace) -> None:
    """Run the command."""
    if arguments.top < 1:
        raise ValueError(f"--top {arguments.top}; expected at least 1.")
    model = models.load(arguments.model)
    rows = data.load(arguments.rows, arguments, model, needed=("query",))
    ids = np.asarray(rows.qid).astype(str)
    places = np.flatnonzero(ids == arguments.query_id)
    if not len(places):
        raise ValueError(
            f"{arguments.rows} has no query {arguments.query_id!r}; expected one of its ids"
            f"{data.near(arguments.query_id, dict.fromkeys(ids.tolist()))}."
        )
    rows = rows.of(places)
    scores = model.predict(rows.X)
    parts, start = contributions(model, rows.X)
    parts = parts.toarray() if sparse.issparse(parts) else parts
    best_first, names = np.argsort(-scores, kind="stable").tolist(), models.names_or_numbers(model)
    explained = []
    for rank, row in enumerate(best_first, 1):
        most = np.argsort(-np.abs(parts[row]), kind="stable")[: arguments.top].tolist()
        of_row: dict[str, Any] = {"rank": rank, "row": int(places[row]) + 1}
        if rows.y is not None:
            of_row["label"] = np.asarray(rows.y)[row].item()
        of_row |= {"score": float(scores[row]), "start": float(start[row])}
        of_row["contributions"] = {names[j]: float(parts[row, j]) for j in most if parts[row, j]}
        explained.append(of_row)
    if arguments.json:
        print(json.dumps({"query": arguments.query_id, "rows": explained}))
        return
    print(f"query {arguments.query_id}: {len(places)} rows, best first; the features that add most")
    columns = [name for name in explained[0] if name != "contributions"]
    lines = [columns, *([_cell(of_row[name]) for name in columns] for of_row in explained)]
    header, *texts = aligned(lines).splitlines()
    print(header)
    for text, of_row in zip(texts, explained, strict=True):
        added = ", ".join(f"{name} {part:+.4f}" for name, part in of_row["contributions"].items())
        print(f"{text}  {added}")


def _cell(value: Any) -> str:
    """Write a number with four digits behind the point, but whole ones, such as labels, without any."""
    return f"{value:.4f}" if isinstance(value, float) and not value.is_integer() else f"{value:g}"
