"""``ranktrees evaluate``: how well models rank the rows of a file, and whether they differ."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from ranktrees.command import data, models
from ranktrees.command.measuring import as_json, mean_of, measures_of, table, values_of
from ranktrees.evaluation import Comparisons, compare_to_baseline
from ranktrees.rows.features import names_of


def run(arguments: Namespace) -> None:
    """Run the command."""
    measures, names = measures_of(arguments.measures), arguments.models
    if len(set(names)) < len(names):
        raise ValueError(f"{' '.join(names)}: a model is given twice; expected each once.")
    baseline = names[0] if arguments.baseline is None else arguments.baseline
    if baseline not in names:
        raise ValueError(f"--baseline {baseline}; expected one of the models: {' '.join(names)}.")
    scores, means, read = {}, {}, None
    for name in names:
        model = models.load(name)
        columns = models.names_or_numbers(model), names_of(model), data.text_columns(model)
        if columns != read:  # otherwise the file is read already as this model needs it
            rows, read = data.load(arguments.rows, arguments, model), columns
        scores[name] = model.predict(rows.X)
        means[name] = {
            measure: mean_of(measure, values, arguments.confidence)
            for measure, values in values_of(rows, scores[name], measures).items()
        }
    comparisons: list[Comparisons] = []
    if len(names) > 1:
        options: dict[str, Any] = {"test": arguments.test, "confidence": arguments.confidence}
        comparisons = [
            compare_to_baseline(rows.y, scores, baseline, qid=rows.qid, measure=measure, **options)
            for measure in measures
            if measure.by_query
        ]
    if arguments.json:
        print(json.dumps({"measures": as_json(means), "comparisons": [*map(_as_json, comparisons)]}))
        return
    print(f"{rows}: means with {100 * arguments.confidence:g} % intervals", table(means), sep="\n")
    for found in comparisons:
        print("", found, sep="\n")


def _as_json(found: Comparisons) -> dict[str, Any]:
    return {
        "measure": repr(next(iter(found.values())).measure),
        "baseline": found.baseline,
        "models": {
            name: {
                "difference": one.difference,
                "low": one.interval[0],
                "high": one.interval[1],
                "p_value": one.p_value,
                "adjusted_p_value": found.p_values[name],
                "wins": one.wins,
                "ties": one.ties,
                "losses": one.losses,
            }
            for name, one in found.items()
        },
    }
