"""Ranks that an engine has placed, with a table each, learn what one process learns from all rows."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ranktrees import (
    AveragedRanker,
    HistGBRTRegressor,
    LambdaMARTRanker,
    OrdinalRanker,
    RandomForestRanker,
    make_ranking,
)
from ranktrees.estimators.on_tables import TableFit, columns_to_score, with_scores
from ranktrees.processes.communicator import RankError
from ranktrees.processes.sockets import listen_at


@pytest.fixture(scope="module")
def rows():
    X, y, qid = make_ranking(30, rows_per_query=10, n_features=6, random_state=0, return_X_y_qid=True)
    X = X.astype(np.float64).round(1)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    site = np.array(["fr", "uk", "de"])[np.arange(len(y)) % 3]
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(
        site=site, grade=y, weight=1.0 + np.arange(len(y)) % 2
    )
    return frame.assign(query=qid, held_out=qid % 4 == 0)


NAMED = {
    "label": "grade",
    "qid": "query",
    "features": list("abcdef"),
    "sample_weight": None,
    "validation": None,
}


def ranker(**parameters):
    return LambdaMARTRanker(**{"max_iter": 8, "random_state": 0, "min_samples_leaf": 5} | parameters)


def fit(model, tables, timeout=30, **named):
    """What an engine does, with a thread for each rank."""
    there = next(filter(None, tables))[0].column_names
    job = TableFit.of(model, there, len(tables), timeout, **NAMED | named)
    with ThreadPoolExecutor(len(tables)) as pool:
        server = listen_at("127.0.0.1")
        running = [
            pool.submit(job.run, rank, server.getsockname(), None if rank else server, None, parts)
            for rank, parts in enumerate(tables)
        ]
    return job.finish([one.result() for one in running][::-1])


def dealt(frame, n_ranks, seed=0):
    """Whole queries for each rank, its rows in any order and in several parts."""
    frame = frame.sample(frac=1, random_state=seed)
    shards = [frame[frame["query"] % n_ranks == rank] for rank in range(n_ranks)]
    return [
        [pa.Table.from_pandas(part, preserve_index=False) for part in (shard[:37], shard[37:]) if len(part)]
        for shard in shards
    ]


def in_order(frame, features=NAMED["features"]):
    return frame.sort_values(["query", *features, "grade"], ignore_index=True)


@pytest.mark.parametrize("n_ranks", [1, 2, 3])
@pytest.mark.parametrize(
    "model",
    [ranker(), ranker(subsample=0.5, early_stopping=True), RandomForestRanker(5, random_state=0)],
    ids=["ranker", "draws", "forest"],
)
def test_the_model_is_that_of_one_process_on_rows_in_order(rows, model, n_ranks):
    whole = in_order(rows)
    alone = model.fit(whole[list("abcdef")], whole["grade"], qid=whole["query"]).ensemble_.digest()
    delattr(model, "ensemble_")
    assert fit(model, dealt(rows, n_ranks, seed=n_ranks)) is model
    assert model.ensemble_.digest() == alone
    assert list(model.feature_names_in_) == list("abcdef")


def test_ranks_may_have_no_rows(rows):
    alone = fit(ranker(), dealt(rows, 1))
    assert fit(ranker(), [*dealt(rows, 1), []]).ensemble_.digest() == alone.ensemble_.digest()
    assert fit(ranker(), [[], *dealt(rows, 1)]).ensemble_.digest() == alone.ensemble_.digest()


def test_texts_are_categories_if_they_are_named(rows):
    features = [*"abc", "site"]
    whole = in_order(rows, features)
    model = ranker(categorical_features=["site"])
    alone = model.fit(whole[features], whole["grade"], qid=whole["query"]).ensemble_.digest()
    assert fit(model, dealt(rows, 2), features=features).ensemble_.digest() == alone
    coded = rows.assign(site=rows["site"].astype("category"))
    assert fit(ranker(), dealt(coded, 2), features=features).ensemble_.digest() == alone
    with pytest.raises(ValueError, match="column 'site' of X holds"):
        fit(ranker(), dealt(rows, 2), features=features)


def test_a_column_says_which_rows_are_for_early_stopping(rows):
    whole, columns = in_order(rows), list("abcdef")
    train, held_out = whole[~whole["held_out"]], whole[whole["held_out"]]
    alone = ranker(max_iter=40, n_iter_no_change=2).fit(
        train[columns],
        train["grade"],
        qid=train["query"],
        sample_weight=train["weight"],
        X_val=held_out[columns],
        y_val=held_out["grade"],
        qid_val=held_out["query"],
        sample_weight_val=held_out["weight"],
    )
    there = fit(
        ranker(max_iter=40, n_iter_no_change=2),
        [*dealt(rows, 2), []],
        sample_weight="weight",
        validation="held_out",
    )
    assert there.ensemble_.digest() == alone.ensemble_.digest()
    assert there.n_iter_ < 40
    with pytest.raises(
        ValueError, match="column 'weight' says which rows are for validation, but is a double"
    ):
        fit(ranker(), dealt(rows, 2), validation="weight")


def test_what_one_rank_raises_is_raised_and_the_estimator_stays(rows):
    model = fit(ranker(), dealt(rows, 2))
    before = model.ensemble_.digest()
    broken = rows.assign(grade=np.where(rows["query"] == 1, np.nan, rows["grade"]))
    with pytest.raises(ValueError, match="y") as caught:
        fit(model, dealt(broken, 3))
    assert any(note.startswith("On rank 1") for note in caught.value.__notes__)
    assert model.ensemble_.digest() == before


def test_a_rank_that_does_not_come_is_named(rows):
    job = TableFit.of(ranker(), list(rows.columns), 2, 0.5, **NAMED)
    with listen_at("127.0.0.1") as server:
        outcome = job.run(0, server.getsockname(), server, None, dealt(rows, 2)[0])
    with pytest.raises(RankError, match=r"rank 1 did not reach 'start' within 0\.5 s"):
        job.finish([outcome])


def test_warnings_of_the_first_rank_are_given(rows):
    same = rows.assign(grade=1)
    with pytest.warns(UserWarning, match="learned nothing"):
        fit(ranker(), dealt(same, 1))


def test_what_is_kept_by_row_is_dropped(rows):
    forest = fit(RandomForestRanker(10, oob_score=True, random_state=0), dealt(rows, 2))
    assert forest.oob_score_ > 0
    assert not hasattr(forest, "oob_prediction_")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"qid": None}, "qid is not given, but LambdaMARTRanker ranks rows within queries"),
        ({"qid": "session"}, "rows has no column 'session'"),
        ({"label": "grades"}, "rows has no column 'grades'"),
        ({"features": ["a", "z"]}, "rows has no column 'z'"),
        ({"n_ranks": 0}, "n_ranks=0; expected a whole number"),
        ({"timeout": -1}, "timeout=-1; expected"),
        (
            {"model": OrdinalRanker(HistGBRTRegressor())},
            "model is a OrdinalRanker, which does not train on ranks",
        ),
        ({"model": LambdaMARTRanker}, "model is a type, which does not train on ranks"),
        (
            {"model": RandomForestRanker(), "validation": "held_out"},
            "validation='held_out' is given, but RandomForestRanker has no early stopping",
        ),
    ],
)
def test_what_is_refused_before_any_rows_are_read(rows, change, said):
    given = {"model": ranker(), "n_ranks": 2, "timeout": 1.0} | NAMED | change
    fixed = [given.pop(name) for name in ("model", "n_ranks", "timeout")]
    with pytest.raises((TypeError, ValueError), match=said):
        TableFit.of(fixed[0], list(rows.columns), *fixed[1:], **given)


def test_callbacks_are_refused(rows):
    callback = pytest.importorskip("sklearn.callback")
    model = ranker().set_callbacks(callback.ProgressBar())
    with pytest.raises(ValueError, match="model has callbacks, which would be called on another machine"):
        TableFit.of(model, list(rows.columns), 2, 1.0, **NAMED)


def test_columns_of_lists_are_refused(rows):
    listed = rows.assign(a=[[1.0, 2.0]] * len(rows))
    with pytest.raises(ValueError, match=r"column 'a' is a list<.*>; expected a number"):
        fit(ranker(), dealt(listed, 2))


def test_regressors_need_no_queries(rows):
    model = HistGBRTRegressor(max_iter=5, random_state=0, subsample=1.0)
    assert len(fit(model, dealt(rows, 2), qid=None).ensemble_) == 5


def test_an_averaged_ranker_trains_on_tables(rows):
    model = AveragedRanker("fast", random_state=0)
    assert fit(model, dealt(rows, 2)).predict(rows[list("abcdef")]).shape == (300,)


def test_tables_are_scored(rows):
    model = fit(ranker(), dealt(rows, 1))
    table = pa.Table.from_pandas(rows)
    scored = with_scores(table, model, columns_to_score(model, table.column_names, None, "score"), "score")
    assert scored["score"].to_numpy().tolist() == model.predict(rows[list("abcdef")]).tolist()
    assert len(with_scores(table[:0], model, list("abcdef"), "score")) == 0
    with pytest.raises(ValueError, match="column='a' is in rows already"):
        columns_to_score(model, table.column_names, None, "a")
    with pytest.raises(ValueError, match="rows has no column 'c'"):
        columns_to_score(model, ["a", "b"], None, "score")
    nameless = ranker().fit(rows[list("ab")].to_numpy(), rows["grade"], qid=rows["query"])
    with pytest.raises(ValueError, match="features is not given, and the LambdaMARTRanker does not know"):
        columns_to_score(nameless, ["a", "b"], None, "score")
