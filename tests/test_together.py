"""Ranks that train together make a model with the same bytes as that of one process with all rows."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from ranks import together
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from ranktrees import (
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    make_ranking,
)
from ranktrees._core.growing.words import Words
from ranktrees._core.support.dtypes import BIN
from ranktrees.growing import over_ranks, searching
from ranktrees.growing.over_ranks import in_batches
from ranktrees.processes.communicator import RankError, training_with
from ranktrees.processes.sharing import Share
from ranktrees.rows import ValidationRows
from ranktrees.support import parallel
from ranktrees.training.ranks import fit_on_ranks, trained_together

DEALINGS = ("contiguous", "uneven", "one empty", "permuted")


@pytest.fixture(scope="module")
def rows():
    X, y, qid = make_ranking(90, random_state=0, return_X_y_qid=True)
    return X.astype(np.float32), y, qid, np.random.RandomState(1).rand(len(y))


def deal(qid, size, dealing, seed=0):
    """The rows of each rank."""
    ids, random = np.unique(qid), np.random.RandomState(seed)
    if dealing == "uneven":
        parts = np.split(ids, np.sort(random.choice(len(ids), size - 1)))
    elif dealing == "one empty":
        parts = [*np.array_split(ids, size - 1), ids[:0]] if size > 1 else [ids]
    else:
        parts = np.array_split(random.permutation(ids) if dealing == "permuted" else ids, size)
    return [np.flatnonzero(np.isin(qid, part)) for part in parts]


def bytes_of(model):
    each = model._ensembles
    return tuple((ensemble.nodes.tobytes(), ensemble.bitsets.tobytes(), ensemble.base) for ensemble in each)


def assert_same_model(make, X, y, qid=None, weights=None, *, sizes=(2, 3), dealings=DEALINGS, **fit):
    expected = bytes_of(make().fit(X, y, weights, qid=qid, **fit))
    for size in sizes:
        for dealing in dealings:
            shares = deal(np.arange(len(y)) if qid is None else qid, size, dealing)

            def train(ranks, shares=shares):
                own = shares[ranks.rank]
                model = make().set_params(n_jobs=1 + ranks.rank % 2)
                with training_with(ranks):
                    model.fit(
                        X[own],
                        y[own],
                        None if weights is None else weights[own],
                        qid=None if qid is None else qid[own],
                        **fit,
                    )
                return bytes_of(model)

            assert together(size, train) == [expected] * size, (size, dealing)


def wide(X):
    """Many features: some of them are noise, some the same."""
    noise = np.random.RandomState(5).rand(len(X), 70 - X.shape[1]).round(2)
    return np.hstack([X, noise]).astype(np.float32)


BOOSTED = {
    "lambdamart": lambda: LambdaMARTRanker(max_iter=12, random_state=0),
    "lambdamart, all features": lambda: LambdaMARTRanker(
        max_iter=6, max_features=1.0, gradient_sampling=None, random_state=0
    ),
    "squared": lambda: HistGBRTRegressor(max_iter=12, random_state=0),
    "squared, by layers": lambda: HistGBRTRegressor(
        max_iter=6, max_leaf_nodes=None, max_depth=4, gradient_sampling=None, random_state=0
    ),
    "squared, exactly half of the rows": lambda: HistGBRTRegressor(
        max_iter=6, query_subsample=0.9, subsample=0.5, exact_subsample=True, random_state=0
    ),
    "lambdamart, early stopping": lambda: LambdaMARTRanker(
        max_iter=60,
        learning_rate=0.4,
        query_subsample=0.8,
        early_stopping=True,
        n_iter_no_change=2,
        noise=1.0,
        random_state=0,
    ),
    "squared, early stopping": lambda: HistGBRTRegressor(
        max_iter=60, learning_rate=0.4, subsample=0.5, early_stopping=True, n_iter_no_change=2, random_state=0
    ),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", BOOSTED)
def test_boosting_is_the_same_for_any_ranks_and_any_dealing(rows, name, weighted):
    X, y, qid, weights = rows
    assert_same_model(BOOSTED[name], X, y, qid, weights if weighted else None)


@pytest.mark.parametrize("name", ["lambdamart", "lambdamart, all features", "squared"])
def test_a_coarse_search_is_the_same_for_any_ranks(rows, name):
    X, y, qid, weights = rows
    assert_same_model(BOOSTED[name], wide(X), y, qid, weights)


@pytest.mark.parametrize(
    "parameters",
    [
        {"interaction_cst": [range(40), range(30, 70)]},
        {"feature_costs": np.linspace(0.0, 20.0, 70)},
        {"feature_costs": np.linspace(0.0, 0.02, 70), "cost_rule": "worth"},
        {"handle_missing": "three_way", "min_samples_leaf": 1},
        {"monotonic_cst": [1, -1] * 35, "max_iter": 20},
        {"monotonic_cst": [1, -1] * 35, "max_iter": 20, "max_leaf_nodes": 8},
        {"max_leaf_nodes": None, "max_depth": 5},
    ],
    ids=lambda parameters: ", ".join(parameters),
)
def test_a_coarse_search_with_all_that_growing_knows(rows, parameters):
    X, y, qid, weights = rows
    X = wide(X)
    X[np.random.RandomState(0).rand(*X.shape) < 0.2] = np.nan

    def make():
        return HistGBRTRegressor(max_iter=4, random_state=0).set_params(**parameters)

    assert_same_model(make, X, y, qid, weights, dealings=("uneven", "one empty"))


@pytest.mark.parametrize("n_lines", [0, 1, 3])
def test_ranks_that_have_lines_for_few_leaves(rows, n_lines, monkeypatch):
    X, y, qid, _ = rows
    X = wide(X)
    monkeypatch.setattr(searching, "LINES_BYTES", n_lines * 8 * 16 * X.shape[1])
    assert_same_model(BOOSTED["lambdamart"], X, y, qid, sizes=(2,), dealings=("contiguous", "one empty"))


@pytest.mark.parametrize("most", [1, 3])
def test_ranks_without_lines_look_at_some_leaves_at_a_time(rows, most, monkeypatch):
    X, y, qid, _ = rows
    monkeypatch.setattr(searching, "LINES_BYTES", 0)
    monkeypatch.setattr(over_ranks, "LINES_BYTES", most * X.shape[1] * 256 * BIN.itemsize)
    filled = []

    def seen(*given):
        for batch in in_batches(*given):
            filled.append(batch)
            yield batch

    def make():
        return HistGBRTRegressor(max_iter=3, max_features=1.0, min_samples_leaf=1, random_state=0)

    monkeypatch.setattr(over_ranks, "in_batches", seen)
    assert_same_model(make, X, y, qid, sizes=(2,), dealings=("uneven",))
    assert max(len(ids) for ids, _ in filled) == most


def test_threads_of_a_rank_share_what_is_little(rows, monkeypatch):
    X, y, qid, _ = rows
    monkeypatch.setattr(parallel, "VALUES_PER_THREAD", 1)
    assert_same_model(BOOSTED["lambdamart"], wide(X), y, qid, dealings=("uneven",))


def test_four_ranks_and_one(rows):
    X, y, qid, _ = rows
    assert_same_model(BOOSTED["lambdamart"], X, y, qid, sizes=(1, 4))


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "absolute_error"},
        {"loss": "quantile", "quantile": 0.7},
        {"loss": "poisson"},
        {"loss": "poisson", "split_criterion": "squared_error"},
        {"loss": "poisson", "split_criterion": "squared_error", "gradient_sampling": None, "subsample": 0.5},
        {"min_samples_leaf": 1, "max_leaf_nodes": None, "max_depth": 5},
        {"monotonic_cst": [1, -1] + [0] * 8},
        {"monotonic_cst": [1, -1] + [0] * 8, "loss": "absolute_error"},
        {"interaction_cst": "no_interactions"},
        {"handle_missing": "three_way", "max_features": 1.0},
        {"handle_missing": "three_way"},
        {"feature_costs": np.linspace(0.0, 20.0, 10)},
        {"feature_costs": np.linspace(0.0, 0.02, 10), "cost_rule": "worth"},
        {"categorical_features": [0, 1]},
        {"max_bins": 7, "subsample": 0.3},
        {"subsample_for_bin": 100},
        {"split_search": "coarse_to_fine"},
    ],
    ids=lambda parameters: ", ".join(parameters),
)
def test_squared_error_with_all_that_growing_knows(rows, parameters):
    X, y, qid, weights = rows
    X = X[:, :10].copy()
    X[:, :2] = X[:, :2].round(1)
    X[np.random.RandomState(0).rand(*X.shape) < 0.2] = np.nan
    if "handle_missing" not in parameters:
        weights = None

    def make():
        return HistGBRTRegressor(max_iter=5, random_state=0).set_params(**parameters)

    assert_same_model(make, X, y, qid, weights, sizes=(3,), dealings=("uneven", "one empty", "permuted"))


def best_label(labels, scores):
    return labels[np.argmax(scores)]


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "ranknet", "early_stopping": True, "scoring": "loss"},
        {"loss": "xendcg"},
        {"loss": "lambdamart", "split_criterion": "squared_error", "leaf_values": "mean"},
        {"loss": "listnet"},
        {"loss": "query_rmse"},
        {"loss": "gbrank"},
        {"loss": "lambdaloss", "query_norm": "unit"},
        {"measure": "err@5"},
        {"measure": best_label, "max_iter": 2},
    ],
    ids=lambda parameters: ", ".join(parameters),
)
def test_every_loss(rows, parameters):
    X, y, qid, weights = rows

    few = slice(None) if "loss" in parameters else qid < np.unique(qid)[12]

    def make():
        return LambdaMARTRanker(max_iter=5, random_state=0).set_params(**parameters)

    rows = X[few], y[few], qid[few], weights[few]
    assert_same_model(make, *rows, sizes=(3,), dealings=("one empty", "permuted"))


@pytest.mark.parametrize("sparse_rows", [False, True])
def test_a_classifier_has_the_classes_of_all_ranks(rows, sparse_rows):
    X, y, qid, _ = rows
    X = sparse.csr_matrix(X) if sparse_rows else X
    names = np.where(y > 2, "good", "bad")
    late = np.argsort(names, kind="stable")  # the first rank has one class only
    X, names, qid = X[late], names[late], np.arange(len(y)) // 7
    assert_same_model(
        lambda: HistGBRTClassifier(max_iter=5, balanced=True, random_state=0), X, names, qid, sizes=(3,)
    )


def test_ordered_categories_have_one_order(rows):
    X, y, qid, _ = rows
    place, levels = np.digitize(X[:, 0], [-0.5, 0.5]), ["low", "mid", "high"]

    def frame(levels, ordered=True):
        sizes = pd.Categorical(np.array(["low", "mid", "high"])[place], levels, ordered=ordered)
        return pd.DataFrame({"a": X[:, 1], "size": sizes})

    def make():
        return LambdaMARTRanker(max_iter=3, random_state=0)

    def fit_some(ranks):
        own = deal(qid, 2, "one empty")[ranks.rank]
        with training_with(ranks):
            return bytes_of(make().fit(frame(levels).iloc[own], y[own], qid=qid[own]))

    assert together(2, fit_some) == [bytes_of(make().fit(frame(levels), y, qid=qid))] * 2
    for other in (frame(levels[::-1]), frame([*levels, "huge"]), frame(levels, ordered=False)):

        def train(ranks, other=other):
            own, mine = qid % 2 == ranks.rank, other if ranks.rank else frame(levels)
            message = r"column 'size' of X has the ordered levels \('low', .* on one rank, and .*one order"
            with training_with(ranks), pytest.raises(ValueError, match=message):
                make().fit(mine[own], y[own], qid=qid[own])

        together(2, train)


def test_several_classes(rows):
    X, y, qid, weights = rows
    assert_same_model(
        lambda: HistGBRTClassifier(
            max_iter=20, learning_rate=0.4, early_stopping=True, n_iter_no_change=2, random_state=0
        ),
        X,
        np.array(["a", "b", "c", "d", "e"])[y.astype(int)],
        qid,
        weights,
        sizes=(3,),
        dealings=("one empty", "permuted"),
    )


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["good"] * 20, "y holds one class, 'good'; expected two"),
        (["0", 1] * 10, "y holds '0' and 1 on different ranks; expected classes of one kind"),
    ],
)
def test_ranks_have_two_classes_of_one_kind_together(names, message):
    names = np.array(names, dtype=object)

    def fit(communicator):
        own = np.arange(20) % 2 == communicator.rank
        with training_with(communicator):
            HistGBRTClassifier(max_iter=2).fit(np.zeros((10, 2)), names[own], qid=np.arange(20)[own])

    with pytest.raises(ValueError, match=message):
        together(2, fit)


@pytest.mark.parametrize("oob_score", [False, True])
@pytest.mark.parametrize("parameters", [{}, {"bootstrap_unit": "query", "min_samples_leaf": 1}], ids=str)
def test_a_forest_is_the_same_for_any_ranks_and_any_dealing(rows, parameters, oob_score):
    X, y, qid, weights = rows

    def make():
        return RandomForestRanker(7, oob_score=oob_score, random_state=0).set_params(**parameters)

    assert_same_model(make, X, y, qid, weights)


def test_out_of_bag_scores_are_those_of_each_ranks_own_rows(rows):
    X, y, qid, _ = rows
    forest = RandomForestRanker(9, oob_score=True, random_state=0)
    expected = forest.fit(X, y, qid=qid).oob_prediction_
    shares = deal(qid, 3, "permuted")

    def train(ranks):
        own = np.random.RandomState(ranks.rank).permutation(shares[ranks.rank])
        own = own[np.argsort(qid[own], kind="stable")]
        with training_with(ranks):
            model = RandomForestRanker(9, oob_score=True, random_state=0).fit(X[own], y[own], qid=qid[own])
        return own, model.oob_score_

    assert {score for _, score in together(3, train)} != {None}

    def in_order(ranks):
        own = shares[ranks.rank]
        with training_with(ranks):
            model = RandomForestRanker(9, oob_score=True, random_state=0).fit(X[own], y[own], qid=qid[own])
        return model.oob_prediction_, model.oob_score_

    for own, (scores, score) in zip(shares, together(3, in_order), strict=True):
        np.testing.assert_array_equal(scores, expected[own])
        assert score == forest.oob_score_


def test_a_forest_of_sparse_rows_is_the_same_for_any_ranks():
    rng = np.random.default_rng(0)
    X = sparse.csr_array((rng.random((600, 40)) < 0.05).astype(np.float32))
    y, qid = np.abs(X @ rng.normal(size=40)) + rng.random(600), np.arange(600) // 20
    forest = RandomForestRanker(5, oob_score=True, random_state=0)
    expected = forest.fit(X, y, qid=qid).ensemble_

    def fit(ranks):
        own = np.flatnonzero(qid % 3 == ranks.rank if ranks.rank < 3 else qid < 0)
        with training_with(ranks):
            return clone(forest).fit(X[own], y[own], qid=qid[own]).ensemble_

    assert all(found == expected for found in together(4, fit))


@pytest.mark.parametrize("dealing", DEALINGS)
def test_a_forest_goes_on_with_its_out_of_bag_scores(rows, dealing):
    X, y, qid, weights = rows
    forest = RandomForestRanker(19, oob_score=True, bootstrap_unit="query", random_state=0)
    expected = forest.fit(X, y, weights, qid=qid).oob_prediction_
    shares = deal(qid, 3, dealing)

    def train(ranks):
        own = shares[ranks.rank]
        model = clone(forest).set_params(warm_start=True)
        with training_with(ranks):
            for n_trees in (2, 19):
                model.set_params(n_estimators=n_trees).fit(X[own], y[own], weights[own], qid=qid[own])
        return model

    for own, model in zip(shares, together(3, train), strict=True):
        assert bytes_of(model) == bytes_of(forest)
        np.testing.assert_array_equal(model.oob_prediction_, expected[own])
        assert model.oob_score_ == forest.oob_score_


def test_rows_without_queries_are_numbered_rank_by_rank(rows):
    X, y, _, _ = rows
    assert_same_model(
        BOOSTED["squared, early stopping"], X, y, dealings=("contiguous", "one empty", "uneven")
    )


class Ranks:
    """A driver of three threads."""

    n_ranks = 3

    def run_rows(self, function, shards, estimator):
        return together(3, lambda ranks: function(ranks, shards[ranks.rank], copy.deepcopy(estimator)))


def test_a_driver_forgets_what_an_earlier_fit_knew(rows):
    X, y, qid, _ = rows
    forest, once = (
        RandomForestRanker(2, oob_score=True, random_state=0),
        RandomForestRanker(2, random_state=0),
    )
    forest.fit(pd.DataFrame(X).add_prefix("f"), y, qid=qid).set_params(oob_score=False)
    for model in (forest, once):
        fit_on_ranks(model, Ranks(), X, y, None, qid=qid)
    assert vars(forest).keys() == vars(once).keys() == vars(clone(once).fit(X, y, qid=qid)).keys()


@pytest.mark.parametrize("kind", [np.ndarray.tolist, sparse.coo_matrix, sparse.bsr_matrix])
def test_a_driver_deals_rows_of_any_kind_to_more_ranks_than_there_are_queries(rows, kind):
    X, y, qid, weights = rows
    two = qid < 2
    given = [kind(X[two]), y[two].tolist(), weights[two].tolist()]
    held_out = ValidationRows(kind(X[~two]), y[~two].tolist(), qid_val=qid[~two].tolist())
    ranker = LambdaMARTRanker(max_iter=3, random_state=0)
    fit_on_ranks(ranker, Ranks(), *given, held_out, qid=qid[two].tolist())
    more = dict(zip(("X_val", "y_val", "qid_val"), (X[~two], y[~two], qid[~two]), strict=True))
    whole = clone(ranker).fit(X[two], y[two], weights[two], qid=qid[two], **more)
    assert bytes_of(ranker) == bytes_of(whole)


@pytest.mark.parametrize("init", [None, DecisionTreeRegressor(max_depth=3)], ids=str)
def test_validation_rows_of_all_ranks_are_followed(rows, init):
    X, y, qid, weights = rows
    init = None if init is None else clone(init).fit(X, y)
    half = len(qid) // 2 - np.argmax(qid[: len(qid) // 2][::-1] != qid[len(qid) // 2])  # whole queries
    shares, held_out = deal(qid[:half], 2, "permuted"), deal(qid[half:], 2, "one empty")

    def fit(own, theirs):
        theirs = half + theirs
        model = LambdaMARTRanker(
            init=init, max_iter=40, learning_rate=0.5, n_iter_no_change=2, random_state=0
        )
        model.fit(
            X[own],
            y[own],
            weights[own],
            qid=qid[own],
            X_val=X[theirs],
            y_val=y[theirs],
            qid_val=qid[theirs],
        )
        return bytes_of(model), model.validation_score_.tolist(), model.train_score_.tolist()

    def train(ranks):
        with training_with(ranks):
            return fit(shares[ranks.rank], held_out[ranks.rank])

    expected = fit(np.arange(half), np.arange(len(qid) - half))
    assert len(expected[1]) < 40
    assert together(2, train) == [expected] * 2


@pytest.mark.parametrize("scoring", [None, "loss"])
def test_labels_that_cannot_be_followed_are_refused_on_all_ranks(rows, scoring):
    X, y, qid, _ = rows
    first = qid == qid[0]

    def train(ranks):
        own = qid % 2 == ranks.rank
        y_val = y[first] - ranks.rank
        qid_val = np.full(len(y_val), -1 - ranks.rank)
        model = LambdaMARTRanker(max_iter=2, scoring=scoring)
        with training_with(ranks), pytest.raises(ValueError, match=r"y_val .*label -1"):
            model.fit(X[own], y[own], qid=qid[own], X_val=X[first], y_val=y_val, qid_val=qid_val)

    together(2, train)


def test_a_rank_without_rows_says_how_many_features_there_are(rows):
    X, y, qid, _ = rows
    whole, none, flat = (X, y, qid), (X[:0], y[:0], qid[:0]), np.empty(0)

    def refused(message, of_last, X_val=None):
        def train(ranks):
            own_X, own_y, own_qid = whole if ranks.rank == 0 else of_last
            given = (
                {}
                if X_val is None
                else {"X_val": X if ranks.rank == 0 else X_val, "y_val": y, "qid_val": qid}
            )
            with training_with(ranks):
                LambdaMARTRanker(max_iter=2).fit(own_X, own_y, qid=own_qid, **given)

        with pytest.raises(ValueError, match=message):
            together(2, train)

    for lacking in ([], flat):
        refused(r"^X is .*; expected as many .* an array of shape \(0, n_features\)", (lacking, flat, flat))
        refused(r"^X_val is .*; expected as many .* an array of shape \(0, n_features\)", none, lacking)


def test_ranks_without_any_rows_are_told_so(rows):
    X, y, qid, _ = rows

    def train(ranks):
        with training_with(ranks), pytest.raises(ValueError, match="X has no rows on any rank"):
            LambdaMARTRanker().fit(X[:0], y[:0], qid=qid[:0])

    together(2, train)


def test_ranks_agree_on_whether_there_are_validation_rows(rows):
    X, y, qid, _ = rows

    def train(ranks):
        own = qid % 2 == ranks.rank
        given = {"X_val": X, "y_val": y, "qid_val": qid} if ranks.rank else {}
        with (
            training_with(ranks),
            pytest.raises(ValueError, match="whether there are validation rows is False"),
        ):
            LambdaMARTRanker(max_iter=2).fit(X[own], y[own], qid=qid[own], **given)

    together(2, train)


def test_boosting_goes_on_from_models_that_all_ranks_have(rows):
    X, y, qid, _ = rows
    forest = RandomForestRanker(4, random_state=0).fit(X, y, qid=qid)
    foreign = DecisionTreeRegressor(max_depth=3).fit(X, y)
    own = forest, forest.ensemble_, RandomForestRanker(4, random_state=0)
    over_foreign = LambdaMARTRanker(init=foreign, max_iter=2, random_state=0).fit(X, y, qid=qid)
    for init in (*own, foreign, over_foreign, 0.5):
        assert_same_model(
            lambda init=init: LambdaMARTRanker(init=init, max_iter=4, random_state=0),
            X,
            y,
            qid,
            sizes=(2,),
            dealings=("uneven", "one empty", "permuted"),
        )


def test_ranks_without_rows_are_told_of_an_init_of_other_columns(rows):
    X, y, qid, _ = rows
    forest = RandomForestRanker(2, random_state=0).fit(X[:, 1:], y, qid=qid)
    message = rf"(?s)was fitted to columns other than those of X.* {X.shape[1]} features"

    def train(ranks):
        own = deal(qid, 2, "one empty")[ranks.rank]
        with training_with(ranks), pytest.raises(ValueError, match=message):
            LambdaMARTRanker(init=forest, max_iter=2).fit(X[own], y[own], qid=qid[own])

    together(2, train)


def test_training_goes_on_with_more_trees(rows):
    X, y, qid, _ = rows
    shares = deal(qid, 2, "permuted")

    def train(ranks, rows=None):
        own = shares[ranks.rank] if rows is None else rows
        model = LambdaMARTRanker(max_iter=4, warm_start=True, random_state=0)
        with training_with(ranks):
            model.fit(X[own], y[own], qid=qid[own])
            model.set_params(max_iter=8).fit(X[own], y[own], qid=qid[own])
        return bytes_of(model)

    assert set(together(2, train)) == set(together(1, lambda alone: train(alone, np.arange(len(y)))))


def test_queries_are_numbered_by_their_ids():
    parts = [np.array(["d", "a"]), np.array([]), np.array(["c", "b"])]
    sizes = [np.array([2, 1]), np.array([], int), np.array([3, 1])]

    def share(ranks):
        offsets = np.concatenate([[0], np.cumsum(sizes[ranks.rank])]).astype(np.int64)
        return Share.among(ranks, offsets, parts[ranks.rank].tolist())

    first, none, last = together(3, share)
    assert first.n_rows == none.n_rows == 7
    assert first.query_numbers.tolist() == [3, 0]
    assert first.row_numbers.tolist() == [5, 6, 0]
    assert none.row_numbers.tolist() == []
    assert last.row_numbers.tolist() == [2, 3, 4, 1]


REFUSED = {
    "a query on two ranks": (
        lambda X, y, qid, rank: (X, y, qid + 7 * rank),
        "is on rank 0 and on rank 1",
    ),
    "the same rows on all": (lambda X, y, qid, rank: (X, y, qid), "every rank has passed the same rows"),
    "and no ids": (lambda X, y, qid, rank: (X, y, None), "every rank has passed the same rows"),
    "another number of features": (
        lambda X, y, qid, rank: (X[:, rank:], y, qid + 1000 * rank),
        "features",
    ),
    "ids that cannot be compared": (
        lambda X, y, qid, rank: (X, y, (qid + 1000).astype(str) if rank else qid),
        "cannot be sorted",
    ),
    "ids on some ranks": (lambda X, y, qid, rank: (X, y, None if rank else qid), "on some ranks only"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_meant_is_refused_on_all_ranks(rows, name):
    X, y, qid, _ = rows
    change, message = REFUSED[name]

    def train(ranks):
        mine = change(X, y, qid, ranks.rank)
        model = LambdaMARTRanker(max_iter=2, random_state=0)
        with training_with(ranks), pytest.raises((ValueError, RankError), match=message):
            model.fit(mine[0], mine[1], qid=mine[2])
        assert not hasattr(model, "ensemble_")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        together(2, train)


@pytest.mark.parametrize(
    "models",
    [
        (HistGBRTRegressor(), LambdaMARTRanker()),
        (RandomForestRanker(), HistGBRTRegressor()),
        (HistGBRTClassifier(), HistGBRTRegressor()),
    ],
    ids=str,
)
def test_ranks_must_fit_the_same_estimator(rows, models):
    X, y, qid, _ = rows
    message = "the estimator is '{}' on rank 0 and '{}' on rank 1".format(*(type(m).__name__ for m in models))

    def train(ranks):
        own = qid % 2 == ranks.rank
        with training_with(ranks), pytest.raises(ValueError, match=message):
            clone(models[ranks.rank]).fit(X[own], y[own] > 2, qid=qid[own])

    together(2, train)


def test_ranks_must_have_the_same_parameters(rows):
    X, y, qid, _ = rows

    def train(ranks):
        model = LambdaMARTRanker(max_iter=2, learning_rate=0.1 + 0.1 * ranks.rank, random_state=0)
        with (
            training_with(ranks),
            pytest.raises(ValueError, match=r"learning_rate is 0.1 on rank 0 and 0.2 on"),
        ):
            model.fit(X, y, qid=qid + 1000 * ranks.rank)

    together(2, train)


@pytest.mark.parametrize(
    "model", [LambdaMARTRanker(max_iter=2), HistGBRTClassifier(max_iter=2), RandomForestRanker(2)], ids=str
)
def test_ranks_go_on_from_a_model_together_or_not_at_all(rows, model):
    X, y, qid, _ = rows
    y = y > 2 if is_classifier(model) else y
    model = clone(model).set_params(warm_start=True)
    fitted = clone(model).fit(X, y, qid=qid)

    def train(ranks):
        own = qid % 2 == ranks.rank
        with (
            training_with(ranks),
            pytest.raises(ValueError, match="whether the estimator is fitted is True on rank 0 and False on"),
        ):
            (model if ranks.rank else fitted).fit(X[own], y[own], qid=qid[own])

    together(2, train)


def test_ranks_compare_their_models_and_not_what_they_have_done_with_them(rows):
    X, y, qid, _ = rows
    ranker = LambdaMARTRanker(max_iter=2, random_state=0).fit(X, y, qid=qid)
    other = clone(ranker).set_params(random_state=1).fit(X, y, qid=qid)

    def end(ranks, models):
        model = copy.deepcopy(models[ranks.rank])
        with training_with(ranks), trained_together(model):
            if ranks.rank == 0:
                model.predict(X)
                assert model.ensemble_.depth > 0

    together(2, lambda ranks: end(ranks, [ranker, ranker]))
    with pytest.raises(ValueError, match=r"the model is .* on rank 0 and .* on rank 1"):
        together(2, lambda ranks: end(ranks, [ranker, other]))


def test_categories_are_those_of_all_ranks(rows):
    X, y, qid, _ = rows
    sites = np.array(["fr", "de", "uk", "it"])[qid % 4 - (qid % 4) * (X[:, 0] > 0)]
    frame = pd.DataFrame(X).assign(site=pd.Categorical(sites))
    frame.columns = frame.columns.astype(str)

    def fit(rows_of_one):
        model = HistGBRTRegressor(max_iter=5, random_state=0)
        return model.fit(frame.iloc[rows_of_one], y[rows_of_one], qid=qid[rows_of_one])

    def train(ranks):
        with training_with(ranks):
            return bytes_of(fit(np.flatnonzero(qid % 4 == 3 - ranks.rank if ranks.rank < 3 else qid < 0)))

    expected = bytes_of(fit(np.flatnonzero(qid % 4 > 0)))
    assert together(4, train) == [expected] * 4


def test_an_error_on_one_rank_is_an_error_on_all(rows):
    X, y, qid, _ = rows

    def train(ranks):
        labels = y.astype(float)
        labels[0] = np.nan if ranks.rank == 1 else 0
        error, message = (
            (ValueError, "y") if ranks.rank == 1 else (RankError, "rank 1 failed at the checks: Val")
        )
        with training_with(ranks), pytest.raises(error, match=message):
            LambdaMARTRanker(max_iter=2).fit(X, labels, qid=qid + 1000 * ranks.rank)

    together(2, train)


@pytest.mark.parametrize("parameters", [{"init": Ridge()}, {"init": RandomForestRanker(2), "init_cv": 2}])
def test_what_each_rank_would_fit_alone_is_refused(rows, parameters):
    X, y, qid, _ = rows

    def train(ranks):
        with training_with(ranks), pytest.raises(ValueError, match="would be fitted on each rank's own rows"):
            HistGBRTRegressor(max_iter=2, **parameters).fit(X, y, qid=qid + 1000 * ranks.rank)

    together(2, train)


@pytest.mark.parametrize(
    ("parameters", "more", "message"),
    [
        ({"step": "optimal"}, {}, 'step="optimal" reads all queries together'),
        ({}, {"position": 1}, "position is given, but ranks"),
        ({"loss": "ranknet"}, {"pairs": [[0, 1]]}, "pairs is given, but ranks"),
    ],
)
def test_what_needs_all_queries_in_one_place_is_refused(rows, parameters, more, message):
    X, y, qid, _ = rows
    more = {name: np.ones(len(y), int) if name == "position" else value for name, value in more.items()}

    def train(ranks):
        model = LambdaMARTRanker(max_iter=2, **parameters)
        with training_with(ranks), pytest.raises(ValueError, match=message):
            model.fit(X, y, qid=qid + 1000 * ranks.rank, **more)

    together(2, train)


def test_an_exact_search_of_many_values_is_refused(rows):
    X, y, qid, _ = rows

    def train(ranks):
        with training_with(ranks), pytest.raises(ValueError, match="ranks that train together"):
            HistGBRTRegressor(max_iter=2, split_search="exact").fit(X, y, qid=qid + 1000 * ranks.rank)

    together(2, train)


def test_sums_that_need_more_bits_than_expected_are_added_up_again(rows, monkeypatch):
    """As where one of many ranks has nearly all rows: its share is all there is."""
    X, y, qid, _ = rows
    said = []

    class Counting(Words):
        def begin(self, bits):
            said.append(0)
            super().begin(bits)

        def add_up(self, *args):
            said[-1] += 1
            super().add_up(*args)

    def train(ranks):
        own = np.minimum(qid % 90, 15) == (15 - ranks.rank) % 16
        with training_with(ranks):
            return bytes_of(clone(model).fit(X[own], y[own]))

    rules = {"max_iter": 5, "max_leaf_nodes": 31, "random_state": 0, "gradient_sampling": None}
    model = HistGBRTRegressor(split_search="coarse_to_fine", **rules)
    expected = bytes_of(clone(model).fit(X, y))
    monkeypatch.setattr(over_ranks, "Words", Counting)
    assert together(16, train) == 16 * [expected]
    assert max(said) > 3  # the root's, two that did not fit, and what follows
