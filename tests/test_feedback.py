"""Preferences between rows: the sums over pairs, fits to them, and arguments that are refused."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ranktrees import LambdaMARTRanker, MissingQueryWarning, QueryKFold, RandomForestRanker, make_ranking
from ranktrees.objectives import GBRank, RankNet
from ranktrees.rows.feedback import Preferences, pairs_among, preference_accuracy_score
from reference import feedback as slow

FEW = settings(max_examples=60, deadline=None)
OBJECTIVES = [RankNet(), RankNet(sigma=0.7), GBRank(), GBRank(margin=0.4)]


def cost_of(objective):
    if isinstance(objective, GBRank):
        return lambda gap: slow.squared_hinge(gap, objective.margin)
    return lambda gap: slow.cross_entropy(gap, objective.sigma)


@st.composite
def judgements(draw):
    """n_rows, pairs, weights and targets; pairs repeat, contradict each other and form cycles."""
    n = draw(st.integers(2, 7))
    pair = st.lists(st.integers(0, n - 1), min_size=2, max_size=2, unique=True)
    pairs = draw(st.lists(pair, min_size=1, max_size=30))
    some = st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=len(pairs), max_size=len(pairs))
    weights = np.array(draw(some)) * 3
    weights[0] = 2.0
    return n, np.array(pairs), weights, np.array(draw(some))


def gradients_of(prepared, scores):
    out = np.full((2, len(scores)), np.nan)
    prepared.gradients(scores, *out)
    return out


def prepare(objective, said, n, n_threads=1):
    return objective.prepare(None, None, np.array([0, n]), n_threads, preferences=said)


@pytest.fixture(scope="module")
def rows():
    return make_ranking(60, rows_per_query=15, n_features=8, random_state=0, return_X_y_qid=True)


@pytest.fixture(scope="module")
def pairs(rows):
    """Two thousand pairs of rows of a query, the better one first."""
    _, y, qid = rows
    i, j = np.random.default_rng(1).integers(0, len(y), (2, 300000))
    kept = (qid[i] == qid[j]) & (y[i] > y[j])
    return np.column_stack([i, j])[kept][:2000]


def ranker(**parameters):
    return LambdaMARTRanker(**{"loss": "ranknet", "max_iter": 30, "random_state": 0, **parameters})


# ---- the sums over pairs -----------------------------------------------------------------------------------


@FEW
@given(judgements(), st.sampled_from(OBJECTIVES), st.integers(0, 99))
def test_gradients_are_the_slopes_of_the_loss(judged, objective, seed):
    n, pairs, weights, targets = judged
    scores = np.random.default_rng(seed).normal(size=n)
    prepared = prepare(objective, Preferences.of(pairs, weights, targets), n)
    gradients, hessians = gradients_of(prepared, scores)
    loss = prepared.loss(scores)
    assert loss == pytest.approx(slow.mean_cost(cost_of(objective), pairs, weights, targets, scores))
    step = 1e-5
    for i in range(n):
        above, below = scores.copy(), scores.copy()
        above[i], below[i] = scores[i] + step, scores[i] - step
        slope = (prepared.loss(above) - prepared.loss(below)) / (2 * step)
        assert gradients[i] / weights.sum() == pytest.approx(slope, abs=1e-7)
    assert (hessians >= 0).all()
    assert gradients.sum() == pytest.approx(0, abs=1e-9)


@FEW
@given(judgements(), st.integers(0, 99))
def test_cross_entropy_equals_its_twin(judged, seed):
    n, pairs, weights, targets = judged
    scores = np.random.default_rng(seed).normal(size=n)
    got = gradients_of(prepare(RankNet(0.7), Preferences.of(pairs, weights, targets), n), scores)
    expected = slow.preference_gradients(0.7, pairs, weights, targets, scores)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@FEW
@given(judgements(), st.randoms(use_true_random=False))
def test_neither_the_order_nor_the_side_of_judgements_matters(judged, random):
    _, pairs, weights, targets = judged
    said = Preferences.of(pairs, weights, targets)
    order = list(range(len(pairs)))
    random.shuffle(order)
    exact = np.isin(targets, [0, 0.5, 1])  # 1 - .1 is not what .9 is
    turned = np.array([random.random() < 0.5 for _ in order]) & exact
    pairs = np.where(turned[:, None], pairs[:, ::-1], pairs)[order]
    again = Preferences.of(pairs, weights[order], np.where(turned, 1 - targets, targets)[order])
    for name in ("first", "second", "for_first", "for_second"):
        np.testing.assert_array_equal(getattr(said, name), getattr(again, name))
    assert (said.first < said.second).all()
    assert len({*zip(said.first.tolist(), said.second.tolist(), strict=True)}) == len(said.first)


def test_ten_judgements_are_one_of_their_share():
    """Seven of ten people prefer row 0: one pair of weight 10 and target .7."""
    pairs = np.array([[0, 1]] * 7 + [[1, 0]] * 3)
    scores = np.array([0.3, -0.2])
    all_ten = prepare(RankNet(), Preferences.of(pairs, np.ones(10), np.ones(10)), 2)
    one = prepare(RankNet(), Preferences.of(pairs[:1], np.array([10.0]), np.array([0.7])), 2)
    np.testing.assert_allclose(gradients_of(all_ten, scores), gradients_of(one, scores), rtol=1e-12)
    odds = math.log(7 / 3)  # where the cross entropy is lowest
    np.testing.assert_allclose(gradients_of(all_ten, np.array([odds, 0.0]))[0], 0, atol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_all_pairs_of_labels_are_what_labels_say(objective):
    rng = np.random.default_rng(3)
    labels, scores, offsets = rng.integers(0, 4, 60).astype(float), rng.normal(size=60), np.arange(0, 61, 20)
    pairs = [
        (i, j)
        for start, stop in itertools.pairwise(offsets)
        for i in range(start, stop)
        for j in range(start, stop)
        if labels[i] > labels[j]
    ]
    said = Preferences.of(np.array(pairs), np.ones(len(pairs)), np.ones(len(pairs)))
    given, labelled = prepare(objective, said, 60), objective.prepare(labels, None, offsets)
    expected = gradients_of(labelled, scores)
    np.testing.assert_allclose(gradients_of(given, scores), expected, rtol=1e-5, atol=1e-6)
    assert given.loss(scores) == pytest.approx(labelled.loss(scores))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_threads_and_scores_far_apart(objective):
    rng = np.random.default_rng(4)
    pairs = np.array([pair for pair in rng.integers(0, 500, (9000, 2)) if pair[0] != pair[1]])
    said = Preferences.of(pairs, rng.random(len(pairs)), rng.random(len(pairs)))
    scores = rng.normal(size=500) * 10.0 ** rng.integers(-3, 4, 500)
    one, three = (prepare(objective, said, 500, n_threads) for n_threads in (1, 3))
    np.testing.assert_array_equal(gradients_of(one, scores), gradients_of(three, scores))
    assert np.isfinite(gradients_of(one, scores)).all()
    assert one.loss(scores) == three.loss(scores) < math.inf


@FEW
@given(judgements(), st.data())
def test_among_keeps_pairs_whose_rows_are_kept(judged, data):
    n, pairs, weights, targets = judged
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    among, kept = pairs_among(pairs, mask)
    rows = np.flatnonzero(mask)
    np.testing.assert_array_equal(rows[among], pairs[kept])
    assert kept.tolist() == [k for k, pair in enumerate(pairs) if mask[pair].all()]
    if len(kept):
        ours = Preferences.of(among, weights[kept], targets[kept])
        theirs = Preferences.of(pairs, weights, targets).among(rows, n)
        np.testing.assert_array_equal(ours.first, theirs.first)
        np.testing.assert_array_equal(ours.for_first, theirs.for_first)


# ---- fitting -----------------------------------------------------------------------------------------------


def test_the_model_depends_on_what_was_said_only(rows, pairs):
    X, _, qid = rows
    rng = np.random.default_rng(5)
    weights = rng.integers(0, 4, len(pairs)) / 2.0
    first = ranker(n_jobs=1).fit(X, pairs=pairs, pair_weight=weights, qid=qid)
    order = rng.permutation(len(pairs))
    turned = ranker(n_jobs=3).fit(
        X, pairs=pairs[order, ::-1], pair_weight=weights[order], pair_target=np.zeros(len(pairs)), qid=qid
    )
    assert turned.ensemble_ == first.ensemble_
    assert ranker().fit(X, pairs=pairs[weights > 0], pair_weight=weights[weights > 0], qid=qid).ensemble_ == (
        first.ensemble_
    )
    assert first.score(X, pairs=pairs, pair_weight=weights) > 0.9


def test_rows_of_queries_may_stand_apart(rows, pairs):
    X, y, qid = rows
    order = np.random.default_rng(6).permutation(len(y))
    place = np.argsort(order)
    model = ranker(subsample=1.0, gradient_sampling=None)
    together, apart = (
        model.fit(X, pairs=pairs, qid=qid).predict(X),
        model.fit(X[order], pairs=place[pairs], qid=qid[order]).predict(X),
    )
    np.testing.assert_allclose(together, apart, atol=0.1)
    assert np.corrcoef(together, apart)[0, 1] > 0.99


def test_without_queries_all_rows_can_be_compared(rows, recwarn):
    X, y, _ = rows
    i, j = np.random.default_rng(7).integers(0, len(y), (2, 4000))
    pairs = np.column_stack([i, j])[y[i] > y[j]]
    model = ranker(max_iter=100).fit(X, pairs=pairs)
    assert not [warning for warning in recwarn if issubclass(warning.category, MissingQueryWarning)]
    assert model.score(X, y) > 0.9
    assert model.score(X, pairs=pairs) == preference_accuracy_score(pairs, model.predict(X))


@pytest.mark.parametrize("loss", ["ranknet", "gbrank", RankNet(sigma=2.0), GBRank(margin=0.5)])
def test_pairs_of_unseen_queries(rows, pairs, loss):
    X, y, qid = rows
    train, test = np.flatnonzero(qid < 40), np.flatnonzero(qid >= 40)
    seen, unseen = pairs_among(pairs, train)[0], pairs_among(pairs, test)[0]
    model = ranker(loss=loss, max_iter=100).fit(X[train], pairs=seen, qid=qid[train])
    assert model.score(X[test], pairs=unseen) > 0.6
    assert model.score(X[test], y[test], qid=qid[test]) > 0.6


def test_stopping_early(rows, pairs):
    X, y, qid = rows
    train, test = np.flatnonzero(qid < 40), np.flatnonzero(qid >= 40)
    seen, unseen = pairs_among(pairs, train)[0], pairs_among(pairs, test)[0]
    fit = {"X": X[train], "pairs": seen, "qid": qid[train], "X_val": X[test], "qid_val": qid[test]}
    quick = {"max_iter": 60, "n_iter_no_change": 5, "learning_rate": 0.3}
    by_pairs = ranker(**quick).fit(**fit, pairs_val=unseen)
    scores = list(by_pairs.staged_predict(X[test]))
    weights = targets = np.ones(len(unseen))
    loss = slow.mean_cost(slow.cross_entropy, unseen, weights, targets, scores[-1])
    assert by_pairs.validation_score_[by_pairs.best_iteration_ - 1] == pytest.approx(-loss)
    by_labels = ranker(**quick).fit(**fit, y_val=y[test])
    best = by_labels.validation_score_[by_labels.best_iteration_ - 1]
    assert best == pytest.approx(by_labels.score(X[test], y[test], qid=qid[test]))
    assert (by_labels.train_score_ < 0).all()  # there are no labels: minus the loss
    both = ranker(**quick, scoring="loss").fit(**fit, y_val=y[test], pairs_val=unseen)
    assert both.ensemble_ == by_pairs.ensemble_
    held_out = ranker(early_stopping=True, max_iter=5).fit(X, pairs=pairs, qid=qid)
    assert len(held_out.validation_score_) == 5
    assert (held_out.validation_score_ < 0).all()


def test_labels_beside_pairs_are_for_measures(rows, pairs):
    X, y, qid = rows
    without = ranker().fit(X, pairs=pairs, qid=qid)
    assert ranker().fit(X, y, pairs=pairs, qid=qid).ensemble_ == without.ensemble_
    followed = ranker(early_stopping=True).fit(X, y, pairs=pairs, qid=qid)
    assert (followed.validation_score_ > 0).all()
    series = pd.Series(y, index=pd.Index(qid, name="qid"))
    assert ranker().fit(X, series, pairs=pairs).ensemble_ == without.ensemble_


def test_going_on_and_starting_from(rows, pairs):
    X, y, qid = rows
    whole = ranker(max_iter=20).fit(X, pairs=pairs, qid=qid)
    model = ranker(max_iter=8, warm_start=True).fit(X, pairs=pairs, qid=qid)
    assert model.set_params(max_iter=20).fit(X, pairs=pairs, qid=qid).ensemble_ == whole.ensemble_
    forest = RandomForestRanker(5, random_state=0)
    with pytest.raises(ValueError, match=r"init is a RandomForestRanker .* but y is None"):
        ranker(init=forest).fit(X, pairs=pairs, qid=qid)
    fitted = ranker(init=forest).fit(X, y, pairs=pairs, qid=qid)
    assert fitted.n_init_trees_ == 5
    again = ranker(init=forest.fit(X, y, qid=qid)).fit(X, pairs=pairs, qid=qid)
    assert again.ensemble_ == fitted.ensemble_


def test_agreement():
    scores = [3.0, 2.0, 2.0, 0.0]
    assert preference_accuracy_score([[0, 1], [1, 2], [3, 2]], scores) == 0.5
    assert preference_accuracy_score([[0, 1], [1, 2], [3, 2]], scores, pair_weight=[2, 0, 2]) == 0.5
    assert preference_accuracy_score([[3, 0]], scores, pair_target=[0.25]) == 0.75
    with pytest.raises(ValueError, match="y_score"):
        preference_accuracy_score([[0, 1]], [np.nan, 1.0])
    with pytest.raises(ValueError, match="y_score"):
        preference_accuracy_score([[0, 1]], np.ma.array([0, 1], mask=[False, True]))


# ---- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pairs": []}, r"pairs has shape \(0,\)"),
        ({"pairs": np.empty((0, 2), int)}, "pairs is empty"),
        ({"pairs": [[0, 1, 2]]}, r"pairs has shape \(1, 3\)"),
        ({"pairs": [[0, 1], [2]]}, "pairs could not be turned"),
        ({"pairs": [[0.0, 1.0]]}, "pairs holds values of dtype float64"),
        ({"pairs": [[True, False]]}, "pairs holds values of dtype bool"),
        (
            {"pairs": [[0, 1], [2, 900]]},
            r"pairs\[1\] names row 900, but X has the rows 0 to 899.*pairs_among",
        ),
        ({"pairs": [[-1, 1]]}, r"pairs\[0\] names row -1"),
        ({"pairs": [[0, 1], [3, 3]]}, r"pairs\[1\] compares row 3 with itself"),
        ({"pairs": [[0, 1], [14, 15]]}, r"pairs\[1\] compares row 14 with row 15, .* different queries"),
        ({"pair_weight": [1.0]}, r"pair_weight has shape \(1,\)"),
        ({"pair_weight": [1.0, -1.0]}, "pair_weight holds -1 at pair 1"),
        ({"pair_weight": [1.0, np.nan]}, "pair_weight holds nan at pair 1"),
        ({"pair_weight": [np.inf, 1.0]}, "pair_weight holds inf at pair 0"),
        ({"pair_weight": np.ma.array([1, 2], mask=[0, 1])}, "pair_weight holds nan at pair 1"),
        ({"pair_target": np.ma.array([1, 0], mask=[0, 1])}, "pair_target holds nan at pair 1"),
        (
            {"pairs": np.ma.array([[0, 1], [2, 3]], mask=[[0, 0], [0, 1]])},
            "pairs holds values of dtype float",
        ),
        ({"pair_weight": [0, 0]}, "every weight is zero"),
        ({"pair_weight": [1e308, 1e308]}, "pair_weight adds up to more than a float can hold"),
        ({"pair_weight": ["a", "b"]}, "pair_weight could not be turned into numbers"),
        ({"pair_target": [0.5, 1.5]}, "pair_target holds 1.5 at pair 1"),
        ({"pairs": None, "pair_weight": [1.0]}, "pair_weight is given, but no pairs"),
        ({"pairs": None}, "requires y to be passed, but the target y is None"),
        ({"sample_weight": np.ones(900)}, "pairs and sample_weight are both given"),
        ({"position": np.ones(900)}, "pairs and position are both given"),
        ({"loss": "lambdamart"}, "pairs is given, but loss='lambdamart' .* 'ranknet', 'gbrank'"),
        ({"loss": lambda labels, scores, offsets: (scores, scores)}, "does not learn from preferences"),
        ({"truncation_level": 7}, "truncation_level=7 .* leave it at 30"),
        ({"loss": RankNet(truncation_level=5)}, "truncation_level=5 .* leave it at None"),
        ({"score_gap_norm": 0.01}, "score_gap_norm=0.01 .* leave it at 0.3"),
        ({"query_norm": "unit"}, "query_norm='unit' .* leave it at 'log'"),
        ({"loss": RankNet(query_norm="log")}, "query_norm='log' .* leave it at 'none'"),
        ({"scoring": "ndcg@5", "early_stopping": True}, "scoring='ndcg@5' is a measure of labels"),
        ({"step": "optimal"}, 'step="optimal" raises the measure of labels'),
        ({"qid": None, "early_stopping": True}, "X holds only one"),
        ({"early_stopping": True}, "no pair of positive weight is left"),
        (
            {"pairs": None, "y": np.ones(900), "pairs_val": [[0, 1]]},
            "pairs_val is given, but fit learns from",
        ),
        ({"pairs_val": [[0, 1]]}, "X_val is None but pairs_val is given"),
        ({"X_val": np.ones((2, 8))}, "y_val is None but X_val is given"),
        ({"X_val": np.ones((2, 8)), "pairs_val": [[0, 2]], "qid_val": [0, 0]}, r"pairs_val\[0\] names row 2"),
        (
            {"X_val": np.ones((2, 8)), "pairs_val": [[0, 1]], "pair_target_val": [2], "qid_val": [0, 0]},
            "pair_target_val holds 2",
        ),
        ({"eval_set": [(np.ones((2, 8)), [0, 1])], "pairs_val": [[0, 1]]}, "pairs_val and eval_set are both"),
        (
            {"X_val": np.ones((2, 8)), "y_val": [0, 1], "qid_val": [0, 0], "scoring": "loss"},
            'scoring="loss" follows the loss of pairs',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_refused(rows, wrong, message):
    X, _, qid = rows
    model = ranker()
    parameters = {name: value for name, value in wrong.items() if name in model.get_params()}
    arguments = {name: value for name, value in wrong.items() if name not in parameters}
    model.set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X, **{"pairs": [[0, 1], [1, 2]], "qid": qid, **arguments})
    assert not hasattr(model, "ensemble_")


def test_scores_of_labels_or_of_pairs(rows, pairs):
    X, y, qid = rows
    model = ranker(max_iter=2).fit(X, pairs=pairs, qid=qid)
    with pytest.raises(ValueError, match="score was given pairs and y"):
        model.score(X, y, pairs=pairs)
    with pytest.raises(ValueError, match="different queries"):
        model.score(X, pairs=[[0, 899]], qid=qid)
    with pytest.raises(ValueError, match="pair_weight is given, but no pairs"):
        model.score(X, pair_weight=[1.0])
    with pytest.raises(ValueError, match=r"neither labels nor pairs; expected y, .* or pairs="):
        model.score(X, qid=qid)


def test_tools_that_slice_rows_do_not_pass_pairs(rows, pairs):
    X, y, qid = rows
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(TypeError, match="pairs"):
            ranker().set_fit_request(pairs=True)
        with pytest.raises(TypeError, match="pairs"):
            cross_validate(ranker(), X, y, cv=QueryKFold(3), params={"groups": qid, "pairs": pairs})


def test_pipelines_pass_pairs(rows, pairs):
    """They keep rows as they stand; with metadata routing, which does not ask, nothing passes pairs."""
    X, _, qid = rows
    pipeline = make_pipeline(FunctionTransformer(), ranker(max_iter=3))
    pipeline.fit(X, lambdamartranker__pairs=pairs, lambdamartranker__qid=qid)
    assert pipeline[-1].ensemble_ == ranker(max_iter=3).fit(X, pairs=pairs, qid=qid).ensemble_


@pytest.mark.parametrize("wrong", [([[0, 1.5]], [0]), ([0, 1], [0]), ([[0, 1]], [[0]]), ([[0, 1]], [0, 0])])
def test_pairs_among_refuses(wrong):
    with pytest.raises(ValueError, match=r"(pairs|rows) has shape"):
        pairs_among(*wrong)


def test_a_mask_of_other_rows_than_the_pairs_are_of():
    with pytest.raises(ValueError, match="rows is a mask of 3 rows, but pairs names row 5"):
        pairs_among([[0, 5], [1, 2]], np.array([True, True, False]))


def test_pairs_among_knows_no_rows_below_zero():
    for pairs, rows, name in (([[9, 0], [-1, 3]], np.arange(10), "pairs"), ([[2, 0]], [0, -1], "rows")):
        with pytest.raises(ValueError, match=f"{name} names row -1; expected rows counted from 0"):
            pairs_among(pairs, rows)
    among, kept = pairs_among([[2, 0]], [])
    assert among.shape == (0, 2)
    assert kept.shape == (0,)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int32])
def test_pairs_among_takes_whole_numbers_of_any_kind(dtype):
    among, kept = pairs_among(np.array([[0, 1], [3, 2], [2, 0]], dtype), np.array([5, 3, 2], dtype))
    assert (among.tolist(), kept.tolist()) == ([[1, 2]], [1])
    assert pairs_among([[0, 10**15]], [0, 1])[1].tolist() == []
    assert pairs_among([[0, 1]], [])[1].tolist() == []
