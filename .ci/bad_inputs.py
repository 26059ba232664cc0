"""Put the estimators through some two hundred bad inputs; fail on a crash, a hang or a wrong answer.

The cases live in ``bad_inputs.py`` of the folder ``$RANKTREES_SHARED`` (default: ``../shared`` beside the
repository); where there is none, nothing is checked. Every case runs in a process of its own.

    python .ci/bad_inputs.py [expression that the case names must match]
"""

import importlib.util
import json
import os
import sys
import tempfile
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = Path(os.environ.get("RANKTREES_SHARED", ROOT.parent / "shared")) / "bad_inputs.py"
BAD = ("CRASH", "HANG", "OOM", "NONFINITE", "WRONG", "SILENT", "refuses")
MOST_VAGUE = 2

NAMES = {
    "n_estimators": "max_iter",
    "colsample": "max_features",
    "l2": "l2_regularization",
    "truncation": "truncation_level",
    "early_stopping_rounds": "n_iter_no_change",
    "monotone": "monotonic_cst",
    "categorical": "categorical_features",
}

# A row is drawn by its number: where rows are shuffled, only all of them give the same model.
SHUFFLED = "qid: interleaved"
ALL_ROWS = {"gradient_sampling": None}

# Estimator, how it takes queries, which cases.
RUNS = [
    ("LambdaMARTRanker", "qid", ""),
    ("LambdaMARTRanker", "qid", SHUFFLED),
    ("LambdaMARTRanker", "sizes", "group sizes"),
    ("HistGBRTRegressor", "qid", ""),
    ("HistGBRTRegressor", "qid", SHUFFLED),
    ("HistGBRTRegressor", "none", ""),
    ("RandomForestRanker", "qid", ""),
]


def adapter(cases, estimator, queries, settings):
    """How the cases call one of our estimators."""
    names = NAMES | ({"n_estimators": "n_estimators"} if estimator == "RandomForestRanker" else {})

    class Ours(cases.Own):
        def __init__(self):
            super().__init__(f"ranktrees:{estimator}", queries)
            self.names = names

        def make(self, **parameters):
            if estimator == "RandomForestRanker" and parameters.get("learning_rate") == 0.1:
                del parameters["learning_rate"]  # every case passes it; a forest has none
            return super().make(**parameters).set_params(**settings)

    return Ours


def is_meant(record, estimator):
    """A regressor needs no queries. A ranker takes all rows for one, as scikit-learn asks, but warns."""
    warned = any("without query ids" in line for line in record.get("warn", ()))
    return record["case"] == "qid: missing" and (warned or estimator == "HistGBRTRegressor")


def run(cases, estimator, queries, expression):
    """The records of one estimator."""
    name = f"{estimator} ({queries})"
    cases.BUILTIN[name] = adapter(cases, estimator, queries, ALL_ROWS if expression == SHUFFLED else {})
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        sys.argv = ["bad_inputs.py", "--est", name, "--case", expression, "--jsonl", str(log)]
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            cases.main()
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def main(wanted=None):
    """0 where all went well."""
    if not CASES.exists():
        print(f"{CASES}: not there, nothing checked")
        return 0
    spec = importlib.util.spec_from_file_location("cases", CASES)
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    failed = False
    for estimator, queries, expression in RUNS:
        records = run(cases, estimator, queries, wanted or expression)
        if expression == "" and (estimator, queries, SHUFFLED) in RUNS:
            records = [record for record in records if not record["case"].startswith(SHUFFLED)]
        for record in records:
            if is_meant(record, estimator):
                record["verdict"] = "meant"
        counts = Counter(record["verdict"] for record in records)
        print(
            f"{estimator} ({queries}): " + ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common())
        )
        bad = [record for record in records if record["verdict"] in BAD]
        vague = [record for record in records if record["verdict"] == "vague"]
        for record in bad + vague:
            print(f"    {record['verdict']} {record['case']}: {record.get('msg', '')}")
        failed |= bool(bad) or len(vague) > MOST_VAGUE
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
