"""What can be written on the command line. The help of all commands comes from here, and imports nothing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ranktrees.support.version import __version__

ESTIMATORS = {
    "averaged": "AveragedRanker",
    "classifier": "HistGBRTClassifier",
    "forest": "RandomForestRanker",
    "lambdamart": "LambdaMARTRanker",
    "regressor": "HistGBRTRegressor",
}
FORMATS = ("ranktrees", "lightgbm", "xgboost", "onnx", "elasticsearch", "solr", "ranklib")
ROWS = "a LETOR file, or one that ends in .csv, .tsv, .parquet or .pq"


def arguments_of(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments of a command, or end the process with a message.

    Parameters
    ----------
    argv : sequence of str or None
        The arguments. If None, those of the process.

    Returns
    -------
    argparse.Namespace

    Examples
    --------
    >>> arguments_of(["score", "model.rkt", "test.txt"]).command
    'score'
    """
    parser = _parser()
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        hint = "; parameters of the estimator are set by --set NAME=VALUE" * (arguments.command == "train")
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "ranktrees", description="Learning to rank with boosted trees and forests.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"ranktrees {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for define in (_train, _score, _evaluate, _explain, _convert, _info):
        name, told = define.__name__[1:], define.__doc__ or ""
        command = commands.add_parser(
            name,
            help=told.splitlines()[0].rstrip(".").replace("%", "%%"),
            description=told.replace("    ", ""),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        define(command)
        command.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    return parser


def _train(command: argparse.ArgumentParser) -> None:
    """Train a model, or cross-validate.

    A folder with train.txt, vali.txt and test.txt is a fold: trees are grown on the first, and stop by the
    second. Without -o, the model of each fold in the folder is evaluated on its test.txt instead. Other rows
    are cross-validated by --folds, with or without -o.

    ranktrees train --estimator NAME --parameters lists what --set can set. Values are written as in Python.
    """
    command.add_argument("rows", nargs="?", metavar="ROWS", help=f"{ROWS}; or a folder of LETOR files")
    command.add_argument("-o", "--output", metavar="MODEL", help="the file to write the model to")
    command.add_argument("--to", choices=FORMATS, help="its format, if the suffix does not say")
    command.add_argument(
        "-e", "--estimator", choices=ESTIMATORS, default="lambdamart", help="default: %(default)s"
    )
    command.add_argument(
        "-s",
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set a parameter of the estimator, such as max_iter=500 (any number of times)",
    )
    command.add_argument(
        "--parameters", action="store_true", help="list the parameters of the estimator, and end"
    )
    command.add_argument("--init", metavar="MODEL", help="a model from which boosting starts")
    command.add_argument("--validation", metavar="ROWS", help="rows of other queries, to stop by")
    command.add_argument("--folds", type=int, metavar="N", help="cross-validate by N folds of whole queries")
    _measures(command, "what cross-validation tells, not what is optimised (--set measure=...)")
    columns = _columns(command)
    columns.add_argument("--weight", metavar="COLUMN", help="the weights of the rows")
    columns.add_argument(
        "--position", metavar="COLUMN", help="if labels are clicks: the ranks at which rows were shown"
    )
    columns.add_argument(
        "--categories", metavar="COLUMNS", type=_listed, default=[], help="features that are categories"
    )
    letor = _letor(command)
    letor.add_argument(
        "--n-features", type=int, metavar="N", help="how many there are (default: as the file has)"
    )
    letor.add_argument(
        "--parts", metavar="PARTS", type=_listed, help="the parts of folds (default: train,vali,test)"
    )
    _json(command)


def _score(command: argparse.ArgumentParser) -> None:
    """Write the score of each row, one a line, in the order of the rows."""
    command.add_argument("model", metavar="MODEL")
    command.add_argument("rows", metavar="ROWS", help=ROWS)
    command.add_argument("-o", "--output", metavar="FILE", help="where to (default: standard output)")
    _columns(command)
    _letor(command)


def _evaluate(command: argparse.ArgumentParser) -> None:
    """Tell how well models rank, with 95 % intervals, and test whether they differ.

    Several models are compared with the first one, or with --baseline, query by query.
    """
    command.add_argument("models", nargs="+", metavar="MODEL")
    command.add_argument("--on", required=True, dest="rows", metavar="ROWS", help=ROWS)
    _measures(command, "such as ndcg@10, ap or err@5")
    command.add_argument("--baseline", metavar="MODEL", help="what others are compared with")
    command.add_argument("--test", choices=["t", "bootstrap", "randomization"], default="t")
    command.add_argument("--confidence", type=float, default=0.95, metavar="SHARE")
    _columns(command)
    _letor(command)
    _json(command)


def _explain(command: argparse.ArgumentParser) -> None:
    """Tell what each feature adds to the scores of a query's rows.

    Contributions are Shapley values: with the start, they add up to the score. Rows are counted from 1, and
    so are features without names.
    """
    command.add_argument("model", metavar="MODEL")
    command.add_argument("rows", metavar="ROWS", help=ROWS)
    command.add_argument("query_id", metavar="QUERY", help="the id of the query")
    command.add_argument("--top", type=int, default=5, metavar="K", help="features of each row (default: 5)")
    _columns(command)
    _letor(command)
    _json(command)


def _convert(command: argparse.ArgumentParser) -> None:
    """Write a model in another format.

    What is read is known by its content: a model of ranktrees, LightGBM's text, XGBoost's or CatBoost's JSON.
    What is written is named by --to, or by the suffix: .rkt and .ranktrees, .onnx, .txt (LightGBM) and .xml
    (RankLib).
    """
    command.add_argument("model", metavar="MODEL")
    command.add_argument("output", metavar="FILE")
    command.add_argument("--to", choices=FORMATS, help="the format to write, if the suffix does not say")
    command.add_argument("--feature-names", metavar="NAMES", type=_listed, help="in the model's order")
    command.add_argument("--dtype", choices=["float32", "float64"], help="of ONNX")
    command.add_argument("--name", help="the name of the model in Solr")
    command.add_argument("--missing-values", action="store_true", default=None, help="for Solr from 9.2 on")


def _info(command: argparse.ArgumentParser) -> None:
    """Tell what a model is made of."""
    command.add_argument("model", metavar="MODEL")
    command.add_argument("--trees", action="store_true", help="write the nodes of all trees as CSV instead")
    _json(command)


def _measures(command: argparse.ArgumentParser, told: str) -> None:
    command.add_argument(
        "--measure",
        dest="measures",
        metavar="MEASURE",
        action="append",
        help=f"{told}; any number of times (default: ndcg@10)",
    )


def _columns(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = command.add_argument_group("columns of CSV and Parquet files (COLUMNS are separated by commas)")
    group.add_argument("--query", metavar="COLUMN", help="the ids of queries")
    group.add_argument("--label", metavar="COLUMN", help="the labels")
    group.add_argument(
        "--features",
        metavar="COLUMNS",
        type=_listed,
        help="the features (default: the others, or the model's)",
    )
    group.add_argument("--ignore", metavar="COLUMNS", type=_listed, default=[], help="no features")
    return group


def _letor(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = command.add_argument_group("LETOR files")
    group.add_argument("--absent", choices=["0", "nan"], default="0", help="the value of what is not named")
    group.add_argument("--missing", metavar="TEXT", action="append", default=[], help="a missing value")
    group.add_argument("--sparse", action="store_true", help="keep only values that are not zero in memory")
    return group


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="write JSON instead of text")


def _listed(names: str) -> list[str]:
    return names.split(",")
