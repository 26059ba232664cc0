"""Clicks at known positions: unbiased LambdaMART against brute force, and its results in simulations."""

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_validate

from ranktrees import LambdaMARTRanker, QueryKFold, RandomForestRanker, make_clicks, make_ranking
from ranktrees.measures import AP, ERR, NDCG, RR, P
from ranktrees.objectives import LambdaLoss, LambdaMART, RankNet
from ranktrees.objectives.clicks import sums_in_any_order
from reference import feedback as slow

FEW = settings(max_examples=60, deadline=None)


def make_shown(seed, n_queries=40, longest=12, share=0.3):
    """Clicks, weights, offsets, scores without ties, and positions, which need not follow the scores."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, n_queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n = offsets[-1]
    positions = np.concatenate([1 + rng.permutation(size) for size in sizes])
    labels, weights = (rng.random(n) < share).astype(float), rng.integers(1, 5, n) / 2.0
    return labels, weights, offsets, rng.permutation(n) / 40, positions


def gradients_of(prepared, scores, iteration=0):
    out = np.full((2, len(scores)), np.nan)
    prepared.gradients(scores, *out, iteration)
    return out


# ---- the sums over pairs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [None, NDCG, NDCG @ 3, P @ 2, ERR @ 4, AP, RR], ids=repr)
@pytest.mark.parametrize("bias_norm", [0.0, 0.5, 2.0])
def test_two_rounds_equal_brute_force(measure, bias_norm):
    labels, weights, offsets, first, positions = make_shown(1)
    if measure is None:
        objective = RankNet(0.8, 5, bias_norm=bias_norm)
    else:
        objective = LambdaMART(measure, 5, 0.8, "cut", bias_norm=bias_norm)
    prepared = objective.prepare(labels, weights, offsets, positions=positions)
    propensities = np.ones((2, 12))
    for scores in (first, first[::-1].copy()):
        rows = (labels, weights, offsets, scores, positions)
        expected, costs = slow.click_gradients(measure, 5, 0.8, *rows, *propensities)
        np.testing.assert_allclose(gradients_of(prepared, scores), expected, rtol=1e-5, atol=1e-6)
        for known, cost in zip(propensities, costs, strict=True):
            told = np.flatnonzero(cost)
            known[told] = (cost[told] / cost[told[0]]) ** (1 / (1 + bias_norm))
        known = ~np.isnan(prepared.propensities)
        np.testing.assert_allclose(prepared.propensities[known], propensities[known], rtol=1e-5)
        assert (propensities[~known] == 1).all()


@pytest.mark.parametrize(
    "objective",
    [
        LambdaMART("ndcg@5", 7),
        LambdaMART("map", None, query_norm="unit"),
        LambdaMART("err@5", score_gap_norm=0.01, noise=0.5, n_orders=3),
        LambdaMART("kendall_tau", 7, noise=0.5, n_orders=2),
        LambdaLoss("ndcg@3", mu=2.0, query_norm="log", noise=0.2),
        RankNet(0.5, 3, score_gap_norm=0.3, query_norm="log"),
    ],
    ids=repr,
)
def test_positions_that_are_all_seen_alike_change_nothing(objective):
    """t of 1 is what there is without positions: the pairs come from two kernels."""
    labels, weights, offsets, scores, positions = make_shown(2)
    plain = gradients_of(objective.prepare(labels, weights, offsets), scores, 3)
    prepared = objective.prepare(labels, weights, offsets, positions=positions)
    np.testing.assert_allclose(gradients_of(prepared, scores, 3), plain, rtol=1e-5, atol=1e-6)
    seen = type(objective)(**{**vars(objective), "propensities": [0.5] * 12})
    alike = seen.prepare(labels, weights, offsets, positions=positions)
    np.testing.assert_allclose(gradients_of(alike, scores, 3), plain, rtol=1e-5, atol=1e-6)
    assert (alike.propensities == 1).all()


def test_only_the_ratios_of_propensities_matter():
    labels, weights, offsets, scores, positions = make_shown(2)
    known = 1 / np.arange(1.0, 13)
    one, other = (
        LambdaMART("ndcg", propensities=scale * known).prepare(labels, weights, offsets, positions=positions)
        for scale in (1.0, 0.25)
    )
    assert one.propensities.tolist() == other.propensities.tolist() == [known.tolist(), [1.0] * 12]
    np.testing.assert_array_equal(gradients_of(one, scores, 0), gradients_of(other, scores, 0))


def test_threads():
    labels, weights, offsets, scores, positions = make_shown(3, n_queries=200)
    results = []
    for n_threads in (1, 3):
        prepared = LambdaMART("map").prepare(labels, weights, offsets, n_threads, positions=positions)
        results.append([gradients_of(prepared, scores * k, k) for k in range(3)] + [prepared.propensities])
    for one, three in zip(*results, strict=True):
        np.testing.assert_array_equal(one, three)


@FEW
@given(
    st.lists(st.just(0.0) | st.floats(1e-9, 1e9), min_size=1, max_size=200), st.randoms(use_true_random=False)
)
def test_sums_in_any_order(values, random):
    values = np.array(values)
    groups = np.arange(len(values)) % 3
    order = list(range(len(values)))
    random.shuffle(order)
    sums = sums_in_any_order(groups, values, 4)
    np.testing.assert_array_equal(sums, sums_in_any_order(groups[order], values[order], 4))
    exact = [values[groups == g].sum() for g in range(4)]
    np.testing.assert_allclose(sums, exact, rtol=1e-9, atol=1e-12 * values.max())


def test_positions_without_clicks_say_nothing():
    labels, offsets, positions = np.array([0.0, 1, 0, 0]), np.array([0, 4]), np.array([1, 2, 3, 6])
    prepared = LambdaMART("ndcg").prepare(labels, None, offsets, positions=positions)
    gradients_of(prepared, np.array([4.0, 3, 2, 1]))
    clicked, unclicked = prepared.propensities
    np.testing.assert_array_equal(clicked, [np.nan, 1, np.nan, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(np.isnan(unclicked), [False, True, False, True, True, False])
    nothing = LambdaMART("ndcg").prepare(np.zeros(4), None, offsets, positions=positions)
    assert (gradients_of(nothing, np.arange(4.0)) == 0).all()
    assert np.isnan(nothing.propensities).all()


# ---- what is found in clicks -------------------------------------------------------------------------------


def simulated(seed, logger, n_queries=200, n_sessions=20):
    """(X, y, qid) that clicks are drawn of, the log, and rows to test on; logger: "random" or "weak"."""
    X, y, qid = make_ranking(
        2 * n_queries, rows_per_query=20, n_features=20, random_state=seed, return_X_y_qid=True
    )
    train, scores = qid < n_queries, None
    if logger == "weak":
        few = qid < n_queries // 20
        weak = LambdaMARTRanker(max_iter=20, random_state=0).fit(X[few], y[few], qid=qid[few])
        scores = weak.predict(X[train])
    log = make_clicks(y[train], scores, qid=qid[train], n_sessions=n_sessions, random_state=seed)
    return (X[train], y[train], qid[train]), log, (X[~train], y[~train], qid[~train])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_propensities_are_found_where_rows_are_shown_at_random(seed):
    (X, _, _), log, _ = simulated(seed, "random", n_sessions=40)
    ranker = LambdaMARTRanker(max_iter=30, bias_norm=0.0, random_state=0)
    ranker.fit(X[log.rows], log.target, qid=log.qid, position=log.position)
    errors = ranker.propensities_ / log.propensities
    assert ranker.propensities_[0] == 1.0
    assert np.abs(np.log(errors)).max() < np.log(1.35)
    assert np.abs(np.log(errors[:5])).max() < np.log(1.25)
    assert (ranker.unclicked_propensities_[1:] > 1).all()  # good rows are left out more often further down


def test_clicks_are_corrected():
    """Of three sets: each time above the model of clicks as they are, and a quarter of its way to labels."""
    gained, possible = [], []
    for seed in range(3):
        (X, y, qid), log, (X_test, y_test, qid_test) = simulated(seed, "weak")
        clicks = {"X": X[log.rows], "y": log.target, "qid": log.qid}
        ranker = LambdaMARTRanker(max_iter=60, learning_rate=0.1, random_state=0)
        naive, unbiased, labelled = (
            ranker.fit(**rows).score(X_test, y_test, qid=qid_test)
            for rows in (clicks, {**clicks, "position": log.position}, {"X": X, "y": y, "qid": qid})
        )
        assert naive < unbiased < labelled
        gained.append(unbiased - naive)
        possible.append(labelled - naive)
    assert sum(gained) > sum(possible) / 4


@pytest.fixture(scope="module")
def shown():
    (X, _, _), log, _ = simulated(5, "random", n_queries=30, n_sessions=4)
    return X[log.rows], log


def test_the_same_model_whatever_the_threads_and_the_way(shown):
    X, log = shown
    all_rows = {"gradient_sampling": None, "max_features": 1.0, "random_state": 0}
    model = LambdaMARTRanker(max_iter=12, n_jobs=1, **all_rows)
    one = model.fit(X, log.target, qid=log.qid, position=log.position).ensemble_
    learned = model.propensities_
    assert model.set_params(n_jobs=3).fit(X, log.target, qid=log.qid, position=log.position).ensemble_ == one
    order = np.argsort(np.random.default_rng(1).random(len(X)))  # sessions in pieces: rows keep their numbers
    order = order[np.argsort(log.qid[order], kind="stable")]
    again = model.fit(X[order], log.target[order], qid=log.qid[order], position=log.position[order])
    np.testing.assert_allclose(again.propensities_, learned, rtol=0.3)
    growing = LambdaMARTRanker(max_iter=5, warm_start=True, **all_rows)
    growing.fit(X, log.target, qid=log.qid, position=log.position)
    growing.set_params(max_iter=12).fit(X, log.target, qid=log.qid, position=log.position)
    assert growing.ensemble_ == one
    np.testing.assert_array_equal(growing.propensities_, learned)


def test_refitting_without_positions_forgets_them(shown):
    X, log = shown
    model = LambdaMARTRanker(max_iter=3, random_state=0)
    plain = model.fit(X, log.target, qid=log.qid).ensemble_
    assert not hasattr(model, "propensities_")
    assert model.fit(X, log.target, qid=log.qid, position=log.position).ensemble_ != plain
    assert model.propensities_.shape == model.unclicked_propensities_.shape == (10,)
    assert model.fit(X, log.target, qid=log.qid).ensemble_ == plain
    assert not hasattr(model, "propensities_")


def test_known_propensities_stay(shown):
    X, log = shown
    known = LambdaMARTRanker(max_iter=5, propensities=log.propensities, random_state=0)
    known.fit(X, log.target, qid=log.qid, position=log.position)
    np.testing.assert_array_equal(known.propensities_, log.propensities)
    assert (known.unclicked_propensities_ == 1).all()
    flat = LambdaMARTRanker(max_iter=5, propensities=np.ones(10), random_state=0)
    flat.fit(X, log.target, qid=log.qid, position=log.position)
    assert flat.ensemble_ != known.ensemble_


@pytest.mark.parametrize("routing", [False, True])
def test_positions_are_sliced_with_the_rows(shown, routing):
    X, log = shown
    model = LambdaMARTRanker(max_iter=3, random_state=0)
    metadata = {"qid": log.qid, "position": log.position}
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing:
            found = cross_validate(
                model,
                X,
                log.target,
                cv=QueryKFold(2),
                params={**metadata, "groups": log.qid},
                return_estimator=True,
            )
        else:
            folds = list(QueryKFold(2).split(X, log.target, groups=log.qid))
            found = cross_validate(
                model,
                X,
                log.target,
                cv=folds,
                params=metadata,
                return_estimator=True,
                scoring=lambda *_: 0.0,
            )
    (train, _), _ = QueryKFold(2).split(X, log.target, groups=log.qid)
    by_hand = model.fit(X[train], log.target[train], qid=log.qid[train], position=log.position[train])
    assert found["estimator"][0].ensemble_ == by_hand.ensemble_


def test_stopping_early_on_labels_and_on_clicks(shown):
    X, log = shown
    model = LambdaMARTRanker(max_iter=20, early_stopping=True, random_state=0)
    model.fit(X, log.target, qid=log.qid, position=log.position)
    assert len(model.validation_score_) == 20
    model.set_params(scoring="loss").fit(X, log.target, qid=log.qid, position=log.position)
    X_val, y_val, qid_val = make_ranking(10, n_features=20, random_state=9, return_X_y_qid=True)
    qid_val += log.qid.max() + 1
    model.fit(X, log.target, qid=log.qid, position=log.position, X_val=X_val, y_val=y_val, qid_val=qid_val)
    assert model.validation_score_[model.best_iteration_ - 1] == pytest.approx(
        model.score(X_val, y_val, qid=qid_val) - 1
    )


@pytest.mark.parametrize(
    "parameters",
    [
        {"noise": 1.0},
        {"init": RandomForestRanker(30, random_state=0), "init_cv": "oob"},
        {"init": Ridge(), "init_cv": 3},
    ],
    ids=repr,
)
@pytest.mark.parametrize("followed", [True, False], ids=["followed", "not followed"])
def test_a_warm_start_learns_from_the_trees_that_early_stopping_has_kept(shown, parameters, followed):
    X, log = shown
    clicks = {"X": X, "y": log.target, "qid": log.qid, "position": log.position}
    rows = make_ranking(10, n_features=20, random_state=9, return_X_y_qid=True)
    validation = dict(zip(("X_val", "y_val", "qid_val"), rows, strict=True))
    validation["qid_val"] += log.qid.max() + 1
    rules = {"learning_rate": 0.7, "random_state": 0} | parameters
    at_once = LambdaMARTRanker(max_iter=16, **rules).fit(**clicks, **validation)
    model = LambdaMARTRanker(max_iter=6, warm_start=True, **rules)
    model.fit(**clicks, **(validation if followed else {}))
    cut = 0
    for n_trees in (9, 12, 16):
        model.set_params(max_iter=n_trees).fit(**clicks, **validation)
        cut += model.best_iteration_ < model.n_iter_
    assert cut
    assert model.ensemble_ == at_once.ensemble_
    np.testing.assert_array_equal(model.validation_score_, at_once.validation_score_)
    np.testing.assert_array_equal(model.propensities_, at_once.propensities_)


# ---- what is refused ---------------------------------------------------------------------------------------


def label_of_first(labels, scores):
    return float(labels[np.argmax(scores)])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"position": [1, 2]}, r"position has shape \(2,\)"),
        ({"position": 0}, "position holds 0 in row 0; expected the rank .* from 1"),
        ({"position": 1.5}, "position holds 1.5 in row 0"),
        ({"position": np.nan}, "position holds nan in row 0"),
        ({"position": 1 << 40}, "position holds 1099511627776 in row 0"),
        ({"position": "a"}, "position holds values of dtype"),
        ({"position": None, "propensities": [1.0]}, "propensities .* but position is None"),
        ({"position": None, "loss": LambdaMART(propensities=[1.0])}, "propensities .* but position is None"),
        ({"propensities": [1.0, 0.5]}, "position goes up to 10, but there are 2 propensities"),
        ({"propensities": [1.0] * 9 + [0.0]}, "propensities=.*finite numbers > 0"),
        ({"propensities": [1.0] * 9 + [np.nan]}, r"NaN for position 10; .* np\.fmax\(propensities_, 0\.05\)"),
        ({"loss": "xendcg"}, "position is given, but loss='xendcg' .* 'lambdamart', 'lambdaloss', 'ranknet'"),
        ({"loss": "gbrank"}, "position is given, but loss='gbrank'"),
        ({"measure": label_of_first}, "position is given, but swaps of measure=.*label_of_first"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_refused(shown, wrong, message):
    X, log = shown
    position = wrong.get("position", log.position)
    if np.ndim(position) == 0 and position is not None:
        position = np.full(len(X), position)
    parameters = {name: value for name, value in wrong.items() if name != "position"}
    with pytest.raises(ValueError, match=message):
        LambdaMARTRanker(max_iter=2, **parameters).fit(X, log.target, qid=log.qid, position=position)


def test_rows_whose_position_is_masked_were_not_shown(shown):
    X, log = shown
    position = np.ma.array(log.position, mask=log.position == 3)
    row = int(np.argmax(position.mask))
    with pytest.raises(
        ValueError, match=f"position holds nan in row {row}; .*: drop rows that were not shown"
    ):
        LambdaMARTRanker(max_iter=2).fit(X, log.target, qid=log.qid, position=position)


def test_bias_norm_is_checked():
    with pytest.raises(ValueError, match="bias_norm"):
        LambdaMART(bias_norm=-1.0)
    with pytest.raises(ValueError, match="propensities could not be turned"):
        LambdaMART(propensities=["often"])


# ---- make_clicks -------------------------------------------------------------------------------------------


@FEW
@given(st.integers(0, 99), st.integers(1, 5), st.integers(1, 12), st.booleans())
def test_sessions_show_the_best_rows_once(seed, n_sessions, n_shown, at_random):
    rng = np.random.default_rng(seed)
    qid, y = rng.integers(0, 6, 40), rng.integers(0, 4, 40)
    scores = None if at_random else rng.permutation(40) / 7
    log = make_clicks(y, scores, qid=qid, n_sessions=n_sessions, n_shown=n_shown, random_state=seed)
    again = make_clicks(y, scores, qid=qid, n_sessions=n_sessions, n_shown=n_shown, random_state=seed)
    np.testing.assert_array_equal(log.target, again.target)
    assert log.qid.max() + 1 == n_sessions * len(np.unique(qid))
    for session in range(log.qid.max() + 1):
        rows = log.rows[log.qid == session]
        of_query = np.flatnonzero(qid == qid[rows[0]])
        assert len(rows) == len(np.unique(rows)) == min(n_shown, len(of_query))
        assert set(rows) <= set(of_query)
        assert log.position[log.qid == session].tolist() == list(range(1, len(rows) + 1))
        if scores is not None:
            assert rows.tolist() == of_query[np.argsort(-scores[of_query])][:n_shown].tolist()


def test_clicks_are_as_frequent_as_the_model_says():
    y = np.tile([0, 1, 2], 20000)
    log = make_clicks(
        y,
        qid=np.repeat(np.arange(20000), 3),
        n_shown=3,
        propensities=[0.9, 0.5, 0.2],
        noise=0.1,
        random_state=0,
    )
    for position, looked_at in enumerate([0.9, 0.5, 0.2], 1):
        for label, relevance in enumerate([0.1, 0.1 + 0.9 / 3, 1.0]):
            shown = (log.position == position) & (y[log.rows] == label)
            assert log.target[shown].mean() == pytest.approx(looked_at * relevance, abs=0.02)


@pytest.mark.parametrize("best", [0.5, 1, 1100])
def test_the_best_label_is_always_clicked_where_there_is_no_noise(best):
    y = np.tile([0, best], 50)
    log = make_clicks(y, qid=np.zeros(100), n_shown=100, propensities=np.ones(100), noise=0, random_state=0)
    assert (log.target == (y[log.rows] > 0)).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"y": [0, -1]}, "y holds -1"),
        ({"y": ["a", "b"]}, "y must be numbers"),
        ({"qid": [1]}, "qid has length 1"),
        ({"y_score": [1.0]}, "y_score has length 1"),
        ({"n_sessions": 0}, "n_sessions=0"),
        ({"n_shown": 1.5}, "n_shown=1.5"),
        ({"noise": 1.5}, "noise=1.5"),
        ({"propensities": [1.0]}, "propensities="),
        ({"propensities": [1.0, 1.5]}, "propensities="),
        ({"n_shown": True}, "n_shown=True; expected an integer of at least 1"),
        ({"noise": True}, "noise=True; expected a probability, from 0 to 1"),
        ({"random_state": 1.5}, "random_state=1.5; expected an integer of at least 0, a numpy.random"),
    ],
    ids=str,
)
def test_make_clicks_refuses(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_clicks(**{"y": [0, 1], "qid": [0, 0], "n_shown": 2, **wrong})


@pytest.mark.parametrize("argument", ["y", "y_score", "propensities"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ma.array([0.0, 1.0, 0.5], mask=[False, True, False]), "or is not finite; expected"),
        (["0", "1", "0.5"], "strings are not numbers, even if they spell one; convert them; expected"),
        (np.array([0, 1, 2], "m8[D]"), "dates and durations are not numbers"),
        (np.array([0, 1j, 0.5]), "complex numbers have no order"),
    ],
)
def test_make_clicks_reads_numbers_as_fit_does(argument, values, message):
    given = {"y": [0, 1, 2], "qid": [1, 1, 1], "n_shown": 3} | {argument: values}
    with pytest.raises(ValueError, match=message):
        make_clicks(**given)


def test_propensities_that_a_fit_leaves_unknown_are_passed_on_over_a_floor():
    rng = np.random.default_rng(0)
    rows, qid, position = (
        rng.normal(size=(400, 3)),
        np.repeat(np.arange(40), 10),
        np.tile(np.arange(1, 11), 40),
    )
    clicks = (position <= 2) & (rng.random(400) < 0.5)
    fit = {"y": clicks, "qid": qid, "position": position}
    found = LambdaMARTRanker(max_iter=3, random_state=0).fit(rows, **fit).propensities_
    assert np.isnan(found).tolist() == [False] * 2 + [True] * 8
    with pytest.raises(ValueError, match="NaN for position 3; expected how often"):
        LambdaMARTRanker(max_iter=3, propensities=found).fit(rows, **fit)
    known = LambdaMARTRanker(max_iter=3, propensities=np.fmax(found, 0.05)).fit(rows, **fit)
    assert (known.propensities_ == np.fmax(found, 0.05)).all()
