import math
import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranktrees import (
    EarlyExit,
    Ensemble,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    as_measure,
    pick_early_exit,
    query_scorer,
)
from ranktrees.evaluation import early_exit
from ranktrees.evaluation.best import places
from ranktrees.evaluation.early_exit import WorkSaved
from ranktrees.model.scorer import Scorer
from ranktrees.rows import query_offsets
from reference import early_exit as reference
from reference import scoring as plain

MODELS = [
    LambdaMARTRanker(max_iter=12, min_samples_leaf=3, random_state=0, n_jobs=1),
    HistGBRTRegressor(max_iter=12, min_samples_leaf=3, random_state=0, n_jobs=1),
    RandomForestRanker(12, max_leaf_nodes=8, random_state=0, n_jobs=1),
]
EXITS = [
    EarlyExit(every=3, drop=0.3),
    EarlyExit(at=[1, 5], drop=[0.5, 0.25], keep_at_least=4),
    EarlyExit(every=4, threshold=0.1),
    EarlyExit(at=[2, 3, 9], threshold=[-0.1, 0.0, 0.2], keep_at_least=2),
]

by_exit = pytest.mark.parametrize("exits", EXITS, ids=repr)


def for_model(exits, model):
    """Thresholds count from where the model starts."""
    if exits.threshold is None:
        return exits
    start = float(model.predict(np.zeros((1, 5)), n_trees=0)[0])
    return replace(
        exits,
        threshold=tuple(start + np.atleast_1d(exits.threshold)) if exits.at else start + exits.threshold,
    )


def make_rows(n_queries=24, seed=0):
    """Rows of queries of very different sizes, in any order."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(n_queries), rng.integers(1, 40, n_queries)))
    X = rng.normal(size=(len(qid), 5)).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    signal = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1] * X[:, 2])
    y = np.clip(np.round(signal + rng.normal(0, 0.5, len(qid)) + 1), 0, 4)
    return X, y, qid


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(scope="module", params=range(3), ids=[type(model).__name__ for model in MODELS])
def fitted(request, rows):
    X, y, qid = rows
    return clone(MODELS[request.param]).fit(X, y, qid=qid)


def trees_of_rows(exits, after, qid):
    """The reference's, of an EarlyExit."""
    points = range(exits.every, len(after), exits.every) if exits.at is None else exits.at
    name = "drop" if exits.threshold is None else "threshold"
    values = getattr(exits, name)
    values = values if isinstance(values, tuple) else [values] * len(points)
    kept = {"keep_at_least": exits.keep_at_least}
    qid = qid if exits.among == "query" else [0] * len(qid)
    return reference.trees_of_rows(after, list(qid), points, **{name: values}, **kept)


# ------------------------------------------------------------------------------------------ dropping of rows


shares = st.one_of(st.integers(0, 100).map(lambda percent: percent / 100), st.sampled_from([0.125, 0.3333]))
scores = st.one_of(st.floats(-3, 3), st.sampled_from([-math.inf, math.inf, 0.0, -0.0]))


@st.composite
def early_exits(draw):
    name, values = draw(st.sampled_from([("drop", shares), ("threshold", scores)]))
    keep_at_least = draw(st.integers(0, 4))
    rest = {"keep_at_least": keep_at_least, "among": draw(st.sampled_from(["query", "all"]))}
    if draw(st.booleans()):
        every = draw(st.integers(1, 8))
        return EarlyExit(every=every, **{name: draw(values)}, **rest)
    at = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4, unique=True).map(sorted))
    chosen = draw(st.one_of(values, st.lists(values, min_size=len(at), max_size=len(at))))
    return EarlyExit(at=at, **{name: chosen}, **rest)


@given(
    exits=early_exits(),
    seed=st.integers(0, 2**32 - 1),
    n_trees=st.integers(0, 7),
    average=st.booleans(),
    qid=st.lists(st.integers(0, 4), min_size=1, max_size=25),
)
@settings(deadline=None, max_examples=150)
def test_rows_leave_as_the_rule_says(exits, seed, n_trees, average, qid):
    rng = np.random.default_rng(seed)
    ensemble = plain.random_ensemble(rng, n_trees, 6, 3, average=average, base=rng.normal())
    X = plain.random_rows(rng, ensemble, len(qid))[
        rng.integers(len(qid), size=len(qid))
    ]  # some rows are equal
    after = np.array([plain.predict(ensemble.first(t), X) for t in range(n_trees + 1)])
    trees = trees_of_rows(exits, after, qid)
    found, saved = early_exit.predict(exits, ensemble, X, query_offsets(qid, len(qid)))
    assert saved.trees.tolist() == trees
    assert found.tobytes() == after[trees, np.arange(len(qid))].tobytes()
    n_walks = n_trees * len(qid)
    assert saved.share == ((n_walks - sum(trees)) / n_walks if n_walks else 0)
    assert saved.rows == tuple(sum(seen > start or start == 0 for seen in trees) for start in saved.stages)


@given(
    scores=st.lists(st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 2.0, math.inf]), min_size=1, max_size=60),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None)
def test_places(scores, seed):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.sort(rng.integers(0, len(scores) + 1, 4)), [len(scores)]])
    expected = np.empty(len(scores), int)
    for first, stop in pairwise(offsets):
        for place, row in enumerate(reference.best_first(range(first, stop), scores)):
            expected[row] = place
    for n_threads in (1, 3):
        np.testing.assert_array_equal(places(np.array(scores), offsets, n_threads), expected)


def test_the_lowest_of_all_rows_are_weeded_out(fitted, rows):
    """Every 4 trees a fifth of the rows that are left, by a sort; see also `trees_of_rows`."""
    X, _, qid = rows
    exits = EarlyExit(every=4, drop=0.2, among="all")
    expected, left = fitted.predict(X), np.arange(len(X))
    for n_trees in range(4, len(fitted.ensemble_) - fitted.n_init_trees_, 4):
        so_far = fitted.predict(X, n_trees=n_trees)
        best_first = left[np.argsort(-so_far[left], kind="stable")]
        n_out = len(left) // 5
        out = best_first[len(left) - n_out :]
        expected[out], left = so_far[out], np.sort(best_first[: len(left) - n_out])
    for ids in (None, qid):
        assert fitted.predict(X, qid=ids, early_exit=exits).tolist() == expected.tolist()
    by_query = fitted.predict(X, qid=qid, early_exit=EarlyExit(every=4, drop=0.2))
    assert by_query.tolist() != expected.tolist()
    best = np.argsort(-expected)[:20]  # of which all stay, unless they are scored by themselves
    assert fitted.predict(X[best], early_exit=exits).tolist() != expected[best].tolist()
    ranked = fitted.rank(X, qid=qid, k=None, early_exit=exits)
    assert ranked["score"].tolist() == expected[ranked["row"]].tolist()


@by_exit
def test_frozen_scores_are_those_of_the_first_trees(fitted, rows, exits):
    X, _, qid = rows
    exits = for_model(exits, fitted)
    found, saved = fitted.predict(X, qid=qid, early_exit=exits, return_saved=True)
    assert len(set(saved.trees)) > 1
    for n_trees in set(saved.trees):
        frozen = saved.trees == n_trees
        assert found[frozen].tobytes() == fitted.predict(X, n_trees=n_trees)[frozen].tobytes()
    assert found.tobytes() == fitted.predict(X, qid=qid, early_exit=exits).tobytes()


@pytest.mark.parametrize(
    "exits",
    [
        None,
        EarlyExit(every=1, drop=0),
        EarlyExit(every=12, drop=0.9),
        EarlyExit(at=[50], drop=1),
        EarlyExit(every=1, threshold=-math.inf),
        EarlyExit(every=2, drop=0.9, keep_at_least=40),
    ],
    ids=repr,
)
def test_where_nothing_is_dropped_scores_are_the_same_bytes(fitted, rows, exits):
    X, _, qid = rows
    found, saved = fitted.predict(X, qid=qid, early_exit=exits, return_saved=True)
    assert found.tobytes() == fitted.predict(X).tobytes() == fitted.predict(X, qid=qid).tobytes()
    assert saved.share == 0
    assert (saved.trees == 12).all()
    assert saved.dropped_last(found) is found


def test_threshold_of_infinity_ends_at_the_first_point(fitted, rows):
    X, _, qid = rows
    exits = EarlyExit(at=[3, 5], threshold=math.inf)
    found, saved = fitted.predict(X, early_exit=exits, return_saved=True)
    assert found.tobytes() == fitted.predict(X, n_trees=3).tobytes()
    assert saved.rows == (len(X), 0, 0)
    assert saved.share == 0.75
    exits = EarlyExit(at=[3, 5], threshold=math.inf, keep_at_least=2)
    _, saved = fitted.predict(X, qid=qid, early_exit=exits, return_saved=True)
    assert saved.rows[1] == saved.rows[2] == np.minimum(np.bincount(qid), 2).sum()


def test_drop_of_all_keeps_the_best(fitted, rows):
    X, _, qid = rows
    for keep_at_least, stay in ((0, 1), (1, 1), (5, 5)):
        exits = EarlyExit(at=[4], drop=1, keep_at_least=keep_at_least)
        _, saved = fitted.predict(X, qid=qid, early_exit=exits, return_saved=True)
        stayed = np.bincount(qid, saved.trees == 12)
        np.testing.assert_array_equal(stayed, np.minimum(np.bincount(qid), stay))
        best = fitted.rank(X, qid=qid, k=stay, early_exit=EarlyExit(every=4, drop=0))  # all trees
        assert len(best) == stayed.sum()


def test_a_share_is_the_number_that_was_typed():
    for percent in range(101):
        stays = EarlyExit(every=1, drop=percent / 100).stays(0, np.arange(100.0), np.array([0, 100]))
        assert stays.sum() == max(1, 100 - percent)
    thirds = EarlyExit(every=1, drop=1 / 3).stays(0, np.arange(10**6 * 3.0), np.array([0, 10**6 * 3]))
    assert thirds.sum() == 2 * 10**6


def test_of_equal_scores_the_later_row_leaves():
    ensemble = Ensemble.from_trees([plain.stump()] * 3, n_features=1)
    X = np.array([[1.0], [0.0], [0.0], [1.0], [0.0], [1.0]])
    exits = EarlyExit(at=[1], drop=0.5)
    _, saved = early_exit.predict(exits, ensemble, X, query_offsets([1, 1, 1, 1, 2, 2], 6))
    assert saved.trees.tolist() == [3, 1, 1, 3, 1, 3]
    _, saved = early_exit.predict(
        EarlyExit(at=[1], drop=0.25), ensemble, X, query_offsets([1] * 4 + [2] * 2, 6)
    )
    assert saved.trees.tolist() == [3, 3, 1, 3, 3, 3]


def test_work_is_saved(fitted, rows, monkeypatch):
    X, _, qid = rows
    walks = []
    add = Scorer.add

    def counted(self, codes, sums, first, stop, rows=None, n_threads=1):
        walks.append(len(sums if rows is None else rows) * (stop - first))
        add(self, codes, sums, first, stop, rows, n_threads)

    monkeypatch.setattr(Scorer, "add", counted)
    _, saved = fitted.predict(X, qid=qid, early_exit=EXITS[0], return_saved=True)
    assert sum(walks) == saved.trees.sum()
    assert saved.share == pytest.approx(1 - sum(walks) / (12 * len(X)))
    assert 0.3 < saved.share < 0.5


@pytest.mark.parametrize("layout", [np.asfortranarray, np.float32, sparse.csr_array, sparse.csc_matrix])
@by_exit
def test_layout_changes_nothing(rows, exits, layout):
    X, y, qid = rows
    X = X.astype(np.float32).astype(float)
    model = clone(MODELS[0]).fit(X, y, qid=qid)
    expected = model.predict(X, qid=qid, early_exit=exits)
    assert model.predict(layout(X), qid=qid, early_exit=exits).tobytes() == expected.tobytes()


@by_exit
def test_threads_and_other_queries_change_nothing(fitted, rows, exits, monkeypatch):
    X, _, qid = rows
    exits = for_model(exits, fitted)
    monkeypatch.setattr("ranktrees.support.parallel.VALUES_PER_THREAD", 1)
    expected = fitted.predict(X, qid=qid, early_exit=exits)
    found = clone(fitted)
    vars(found).update(vars(fitted) | {"n_jobs": 3})
    assert found.predict(X, qid=qid, early_exit=exits).tobytes() == expected.tobytes()
    for query in set(qid):
        own = qid == query
        alone = fitted.predict(X[own], qid=qid[own], early_exit=exits)
        assert alone.tobytes() == expected[own].tobytes()
    by_query = np.argsort(-qid, kind="stable")
    moved = fitted.predict(X[by_query], qid=qid[by_query], early_exit=exits)
    assert moved.tobytes() == expected[by_query].tobytes()


def test_with_the_first_trees_only(fitted, rows):
    X, _, qid = rows
    exits = EarlyExit(at=[2, 7], drop=0.5)
    found, saved = fitted.predict(X, n_trees=6, qid=qid, early_exit=exits, return_saved=True)
    assert saved.stages == (0, 2)
    assert set(saved.trees) == {2, 6}
    stayed = saved.trees == 6
    assert found[stayed].tobytes() == fitted.predict(X, n_trees=6)[stayed].tobytes()
    found, saved = fitted.predict(X, n_trees=0, qid=qid, early_exit=exits, return_saved=True)
    assert saved.share == 0
    assert found.tobytes() == fitted.predict(X, n_trees=0).tobytes()


def test_thresholds_are_compared_with_predictions(rows):
    X, y, _ = rows
    model = HistGBRTRegressor("logistic", max_iter=10, random_state=0).fit(X, y > 1)
    exits = EarlyExit(at=[5], threshold=0.3)
    found, saved = model.predict(X, early_exit=exits, return_saved=True)
    early = model.predict(X, n_trees=5)
    assert 0 < (early < 0.3).sum() < len(X)
    np.testing.assert_array_equal(saved.trees == 5, early < 0.3)
    np.testing.assert_array_equal(found, np.where(early < 0.3, early, model.predict(X)))


def test_where_boosting_starts_is_part_of_the_score(rows):
    X, y, qid = rows
    start = np.nan_to_num(X)
    model = LambdaMARTRanker(init=Ridge(), max_iter=6, random_state=0).fit(start, y, qid=qid)
    found, saved = model.predict(start, qid=qid, early_exit=EarlyExit(every=2, drop=0.5), return_saved=True)
    for n_trees in (2, 4, 6):
        assert (found == model.predict(start, n_trees=n_trees))[saved.trees == n_trees].all()


# ----------------------------------------------------------------------------------------------- query ids


def test_query_ids_are_asked_for(fitted, rows):
    X, _, qid = rows
    for exits in (EXITS[0], EXITS[3]):
        with pytest.raises(ValueError, match=r"no query ids: pass qid= \(one id per row\).* threshold"):
            fitted.predict(X, early_exit=exits)
    with_threshold = fitted.predict(X, early_exit=EXITS[2])
    assert with_threshold.tobytes() == fitted.predict(X, qid=qid, early_exit=EXITS[2]).tobytes()
    for exits in (None, EXITS[0]):
        with pytest.raises(ValueError, match="qid has length 3; expected one query id per row"):
            fitted.predict(X, qid=[1, 2, 3], early_exit=exits)
        with pytest.raises(ValueError, match="qid is missing"):
            fitted.predict(X, qid=np.where(qid == 0, np.nan, qid), early_exit=exits)


def test_query_ids_ride_in_the_index(fitted, rows):
    X, _, qid = rows
    frame = pd.DataFrame(X, index=pd.MultiIndex.from_arrays([qid, range(len(X))], names=["qid", "row"]))
    expected = fitted.predict(X, qid=qid, early_exit=EXITS[0])
    assert fitted.predict(frame, early_exit=EXITS[0]).tobytes() == expected.tobytes()
    assert fitted.predict(frame, qid=-qid, early_exit=EXITS[0]).tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match="qid and the index level 'qid' of X disagree"):
        fitted.predict(frame, qid=np.roll(qid, 1), early_exit=EXITS[0])


@pytest.mark.parametrize("routing", [False, True], ids=["routing off", "routing on"])
def test_in_a_pipeline(rows, routing):
    X, y, qid = rows
    with sklearn.config_context(enable_metadata_routing=routing):
        pipeline = make_pipeline(StandardScaler(), clone(MODELS[0]))
        ids = {"qid": qid} if routing else {"lambdamartranker__qid": qid}
        pipeline.fit(X, y, **ids)
        expected = pipeline[-1].predict(pipeline[0].transform(X), qid=qid, early_exit=EXITS[0])
        assert pipeline.predict(X, qid=qid).tobytes() == pipeline.predict(X).tobytes()
        found, saved = pipeline.predict(X, qid=qid, early_exit=EXITS[0], return_saved=True)
        assert found.tobytes() == expected.tobytes()
        assert saved.share > 0
        if routing:
            by_hand = pipeline[-1].score(pipeline[0].transform(X), y, qid=qid, early_exit=EXITS[0])
            assert pipeline.score(X, y, qid=qid, early_exit=EXITS[0]) == by_hand
            assert query_scorer()(pipeline, X, y, qid=qid) == pipeline.score(X, y, qid=qid)


def test_only_an_early_exit_will_do(fitted, rows):
    X, _, qid = rows
    for wrong in ({"every": 3, "drop": 0.3}, 0.3, EarlyExit):
        with pytest.raises(TypeError, match=r"early_exit is a .*expected an EarlyExit"):
            fitted.predict(X, qid=qid, early_exit=wrong)


# ------------------------------------------------------------------------------- the order of dropped rows


def test_dropped_last():
    saved = WorkSaved(0.5, (0, 2), (5, 2), np.array([10, 2, 10, 2, 2]))
    order = saved.dropped_last(np.array([-3.0, 5.0, 1.0, 5.0, math.inf]))
    assert order.tolist() == [2, 0, 3, 0, 1]


@by_exit
def test_score_ranks_dropped_rows_last(fitted, rows, exits):
    X, y, qid = rows
    fitted = clone(fitted).set_params(measure="ndcg@5").fit(X, y, qid=qid)
    exits = for_model(exits, fitted)
    found, saved = fitted.predict(X, qid=qid, early_exit=exits, return_saved=True)
    expected = as_measure("ndcg@5")(y, 1000.0 * saved.trees + found, qid=qid)
    assert fitted.score(X, y, qid=qid, early_exit=exits) == pytest.approx(expected, abs=1e-12)
    ranks = fitted.rank(X, qid=qid, k=None, early_exit=exits).sort_values("row")["rank"]
    in_rank_order = as_measure("ndcg(ties='input')@5")(y, saved.dropped_last(found), qid=qid)
    assert as_measure("ndcg@5")(y, -ranks.to_numpy(), qid=qid) == pytest.approx(in_rank_order)


def test_score_of_rows_sees_frozen_scores(rows):
    X, y, qid = rows
    model = HistGBRTRegressor(measure="rmse", max_iter=10, random_state=0).fit(X, y, qid=qid)
    found = model.predict(X, qid=qid, early_exit=EXITS[0])
    assert model.score(X, y, qid=qid, early_exit=EXITS[0]) == -as_measure("rmse")(y, found, qid=qid)
    by_row = model.set_params(measure=None).score(X, y, qid=qid, early_exit=EXITS[0])
    assert by_row == pytest.approx(r2_score(y, found))


# ------------------------------------------------------------------------------------------------- a value


@by_exit
def test_is_a_value(exits):
    assert eval(repr(exits)) == exits == pickle.loads(pickle.dumps(exits))
    assert hash(exits) == hash(pickle.loads(pickle.dumps(exits)))
    assert len({*EXITS, exits}) == len(EXITS)
    with pytest.raises(AttributeError):
        exits.drop = 0.9


def test_prints_as_it_is_typed():
    assert repr(EarlyExit(every=np.int64(50), drop=np.float32(0.5))) == "EarlyExit(every=50, drop=0.5)"
    typed = EarlyExit(at=np.array([10, 50]), threshold=np.array([0, 0.25]), keep_at_least=10)
    assert repr(typed) == "EarlyExit(at=(10, 50), threshold=(0.0, 0.25), keep_at_least=10)"
    assert repr(EarlyExit(every=5, drop=0.2, among="all")) == "EarlyExit(every=5, drop=0.2, among='all')"
    assert repr(EarlyExit(every=5, drop=0)) == "EarlyExit(every=5, drop=0.0)"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "neither of every and at"),
        ({"every": 5}, "neither of drop and threshold"),
        ({"every": 5, "at": [5], "drop": 0.1}, "both of every and at"),
        ({"every": 5, "drop": 0.1, "threshold": 0}, "both of drop and threshold"),
        ({"every": 0, "drop": 0.1}, "every=0; expected a whole number of at least 1"),
        ({"every": 2.0, "drop": 0.1}, "every=2.0"),
        ({"every": True, "drop": 0.1}, "every=True"),
        ({"every": [5, 9], "drop": 0.1}, r"every=\[5, 9\]"),
        ({"at": 5, "drop": 0.1}, "at=5; expected numbers of trees.* pass every"),
        ({"at": [], "drop": 0.1}, "at="),
        ({"at": [5, 5], "drop": 0.1}, "each larger than the one before"),
        ({"at": [9, 5], "drop": 0.1}, "each larger than the one before"),
        ({"at": [0, 5], "drop": 0.1}, "at=0"),
        ({"every": 5, "drop": 0.1, "among": "rows"}, "among='rows'; expected 'query' or 'all'"),
        ({"every": 5, "drop": 1.5}, "drop=1.5; expected a share from 0 to 1"),
        ({"every": 5, "drop": -0.1}, "drop=-0.1"),
        ({"every": 5, "drop": math.nan}, "drop=nan"),
        ({"every": 5, "drop": "0.1"}, "drop='0.1'"),
        ({"every": 5, "drop": True}, "drop=True"),
        ({"every": 5, "drop": [0.1, 0.2]}, "drop has 2 entries, but at is None"),
        ({"at": [5, 9], "drop": [0.1]}, "drop has 1 entries, but at has 2"),
        ({"at": [5, 9], "drop": [0.1, 2]}, r"drop=\[0.1, 2\]"),
        ({"every": 5, "threshold": math.nan}, "threshold=nan; expected a score"),
        ({"every": 5, "drop": 0.1, "keep_at_least": -1}, "keep_at_least=-1; expected a whole number"),
        ({"every": 5, "drop": 0.1, "keep_at_least": 2.5}, "keep_at_least=2.5"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        EarlyExit(**parameters)


# ----------------------------------------------------------------------------------- choosing the exit points


@pytest.fixture(scope="module")
def validation():
    return make_rows(60, seed=1)


@pytest.mark.parametrize("by", ["share", "score"])
@pytest.mark.parametrize(("measure", "confidence"), [("ndcg@10", 0.8), ("map", 0.8), ("err@5", None)])
def test_picked_loss_is_tolerated(fitted, validation, by, measure, confidence):
    X, y, qid = validation
    tolerated = 0.01
    picked = pick_early_exit(
        fitted, X, y, qid=qid, by=by, measure=measure, tolerated_loss=tolerated, confidence=confidence
    )
    model = fitted.set_params(measure=measure)
    _, saved = model.predict(X, qid=qid, early_exit=picked.early_exit, return_saved=True)
    assert picked.full_score == pytest.approx(model.score(X, y, qid=qid))
    assert picked.score == pytest.approx(model.score(X, y, qid=qid, early_exit=picked.early_exit))
    assert picked.share_saved == saved.share > 0
    assert picked.full_score - picked.score <= tolerated
    full, *others = picked.candidates
    assert full == (None, 0.0, picked.full_score, 0.0, 0.0)
    assert len({each.early_exit for each in picked.candidates}) == len(picked.candidates)
    for each in others[::7]:
        assert each.score == pytest.approx(model.score(X, y, qid=qid, early_exit=each.early_exit))
        assert each.loss == pytest.approx(full.score - each.score)
        assert each.highest_loss == each.loss if confidence is None else each.highest_loss >= each.loss
    if by == "score":
        assert picked.early_exit.needs_queries is False
    else:
        assert picked.early_exit.keep_at_least == {"ndcg@10": 10, "map": 1, "err@5": 5}[measure]


def test_more_tolerance_saves_more(fitted, validation):
    X, y, qid = validation
    saved = [
        pick_early_exit(fitted, X, y, qid=qid, tolerated_loss=loss, confidence=None).share_saved
        for loss in (0, 0.01, 0.1, 1)
    ]
    assert saved == sorted(saved)
    assert saved[0] < saved[-1]
    everything = pick_early_exit(fitted, X, y, qid=qid, tolerated_loss=1, keep_at_least=1, at=[1])
    assert everything.early_exit == EarlyExit(at=[1], drop=[0.9], keep_at_least=1)


def test_picking_is_the_same_for_any_threads_and_order_of_queries(fitted, validation):
    X, y, qid = validation
    first = pick_early_exit(fitted, X, y, qid=qid)
    by_query = np.argsort(-qid, kind="stable")
    threaded = clone(fitted)
    vars(threaded).update(vars(fitted) | {"n_jobs": 3})
    labels = pd.Series(y[by_query], index=pd.Index(qid[by_query], name="qid"))
    for again in (
        pick_early_exit(threaded, X, y, qid=qid),
        pick_early_exit(fitted, X[by_query], labels),
    ):
        assert again.early_exit == first.early_exit
        assert again.candidates == first.candidates


def test_errors_are_better_small(fitted, validation):
    X, y, qid = validation

    class WorstFirst(type(as_measure("ndcg")).__mro__[-2]):
        """The label of the row ranked first, below the highest."""

        name = "WorstFirst"
        greater_is_better = False

        def of_query(self, labels, scores):
            return float(labels.max() - labels[np.argmax(scores)])

    picked = pick_early_exit(fitted, X, y, qid=qid, measure=WorstFirst(), tolerated_loss=0.1)
    assert picked.score - picked.full_score <= 0.1
    assert all(each.loss == pytest.approx(each.score - picked.full_score) for each in picked.candidates)


def test_nothing_to_pick(validation):
    X, y, qid = validation
    ones = qid >= 0  # every row the query's only one
    model = clone(MODELS[0]).fit(X, y, qid=qid)
    alone = pick_early_exit(model, X, y, qid=np.arange(len(qid))[ones])
    assert alone.early_exit is None
    assert alone.share_saved == 0
    assert len(alone.candidates) == 1 + 9 * 3  # each share at each point, and none saves
    stump = clone(MODELS[0]).set_params(max_iter=1).fit(X, y, qid=qid)
    assert pick_early_exit(stump, X, y, qid=qid).early_exit is None
    strict = pick_early_exit(
        model, X, y, qid=qid, tolerated_loss=0, confidence=0.9999, at=[1], keep_at_least=1
    )
    assert strict.early_exit is None
    assert strict.score == strict.full_score


def test_picked_thresholds_need_no_queries(fitted, validation):
    X, y, qid = validation
    picked = pick_early_exit(fitted, X, y, qid=qid, by="score", tolerated_loss=0.05)
    _, saved = fitted.predict(X, early_exit=picked.early_exit, return_saved=True)
    assert saved.share == picked.share_saved > 0


def test_a_cutoff_that_is_no_number_of_rows(fitted, validation):
    X, y, qid = validation
    picked = pick_early_exit(
        fitted, X, y, qid=qid, measure="top_auc@[0,2]", tolerated_loss=1, confidence=None
    )
    assert picked.early_exit.keep_at_least == 1


def test_scores_of_other_rows_cannot_be_put_in_order():
    saved = WorkSaved(0.25, (0, 5), (3, 2), np.array([10, 5, 10]))
    with pytest.raises(ValueError, match=r"scores has shape \(2,\), expected \(3,\)"):
        saved.dropped_last(np.array([0.2, 0.9]))


def test_picking_refuses(fitted, validation):
    X, y, qid = validation

    def refused(message, kind=ValueError, model=fitted, y=y, **parameters):
        with pytest.raises(kind, match=message):
            pick_early_exit(model, X, y, **({"qid": qid} | parameters))

    refused("Pipeline; expected a tree estimator.*last step", TypeError, make_pipeline(fitted))
    other = GradientBoostingRegressor(n_estimators=2).fit(np.nan_to_num(X), y)
    refused("GradientBoostingRegressor; expected a tree estimator", TypeError, other)
    refused("not fitted", model=LambdaMARTRanker())
    refused("measure=RMSE; expected a measure of the order", measure="rmse")
    refused("tolerated_loss=-1; expected", tolerated_loss=-1)
    refused("tolerated_loss=nan; expected", tolerated_loss=math.nan)
    refused("tolerated_loss=True; expected", tolerated_loss=True)
    refused("by='rank'; expected 'share' or 'score'", by="rank")
    refused("at=", at=[3, 2])
    refused("confidence must be between 0 and 1", confidence=2)
    refused("keep_at_least=-1", keep_at_least=-1)
    refused("pick_early_exit needs qid=", qid=None)
    without_ids = HistGBRTRegressor(max_iter=4).fit(X, y)
    refused("pick_early_exit needs qid=", model=without_ids, by="score", confidence=None, qid=None)
    refused("NDCG @ 10 is not defined on any of the queries", y=0 * y)
    refused("NDCG takes labels >= 0, but y has label -1", y=y - 1)
    refused("at least two queries", qid=np.zeros(len(y)))
