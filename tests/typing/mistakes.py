"""What a user writes by mistake, for type checkers: an error that is ignored here, but is none, is an error.

It is not run. mypy takes any parameter for a class whose bases have no types, as scikit-learn's have none.
"""

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, QueryKFold, best_rows, compare, make_ranking


def mistakes() -> None:
    LambdaMARTRanker(num_leaves=3)  # pyright: ignore[reportCallIssue]
    LambdaMARTRanker(max_iter="ten")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    HistGBRTRegressor(min_data_in_leaf=5)  # pyright: ignore[reportCallIssue]
    X, y, qid = make_ranking(10, random_state=0, return_X_y_qid=True)
    LambdaMARTRanker().fit(X, y, query=qid)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    scores = LambdaMARTRanker().fit(X, y, qid=qid).predict(X)
    best_rows(scores, qid)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    compare(y, scores, scores, test="sign")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    QueryKFold(n_splits=5).split(X, y, query=qid)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
