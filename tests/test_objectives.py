import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import together

from ranktrees import measures
from ranktrees._core.objectives import losses
from ranktrees.objectives import (
    AbsoluteError,
    Gamma,
    LambdaMART,
    Logistic,
    Poisson,
    Quantile,
    RankNet,
    SquaredError,
    as_objective,
)
from ranktrees.objectives.pointwise import Softmax
from ranktrees.processes.sharing import Share
from reference import objectives as slow
from widths import outputs_of

FEW = settings(max_examples=60, deadline=None)

POINTWISE = [
    (SquaredError(), slow.squared_error),
    (AbsoluteError(), slow.absolute_error),
    (Quantile(0.2), slow.pinball(0.2)),
    (Quantile(0.9), slow.pinball(0.9)),
    (Poisson(), slow.poisson),
    (Gamma(), slow.gamma),
    (Logistic(), slow.logistic()),
]
PAIRWISE = [
    RankNet(),
    RankNet(sigma=0.5, truncation_level=3),
    RankNet(sigma=2.0, score_gap_norm=0.3, query_norm="log"),
    LambdaMART(),
    LambdaMART(measure="ndcg", truncation_level=None, query_norm="log"),
    LambdaMART(measure=measures.NDCG(gain="linear") @ 3, truncation_level=4, delta="cut", sigma=2.0),
    LambdaMART(measure="dcg@5", truncation_level=7, score_gap_norm=0.01, query_norm="log"),
    LambdaMART(measure="ndcg@1", truncation_level=1, score_gap_norm=0.01),
]
EVERY = [objective for objective, _ in POINTWISE] + [Logistic(balanced=True), *PAIRWISE]


def make_queries(seed, n_queries=30, longest=40, grades=5, weighted=False, ties=False):
    """Labels, weights, offsets and scores; some queries have one row, one label or no relevant row."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, n_queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    labels = rng.integers(0, grades, offsets[-1]).astype(np.float64)
    for q in range(0, n_queries, 7):
        labels[offsets[q] : offsets[q + 1]] = q % 2
    scores = rng.integers(-3, 4, offsets[-1]) / 2.0 if ties else rng.normal(size=offsets[-1])
    weights = rng.integers(0, 5, offsets[-1]) / 2.0 if weighted else None
    return labels, weights, offsets, np.ascontiguousarray(scores, dtype=np.float64)


def labels_for(objective, labels):
    if isinstance(objective, Gamma):
        return labels + 0.5
    return labels / 4.0 if isinstance(objective, Logistic) else labels


def gradients_of(prepared, scores):
    gradients, hessians = np.full(len(scores), np.nan), np.full(len(scores), np.nan)
    prepared.gradients(scores, gradients, hessians)
    return gradients, hessians


def slow_gradients(objective, labels, weights, offsets, scores):
    """The pairwise twin, query by query."""
    out = np.empty((2, len(labels)))
    parameters = {
        "sigma": objective.sigma,
        "truncation_level": objective.truncation_level,
        "score_gap_norm": objective.score_gap_norm,
        "query_norm": objective.query_norm,
    }
    for start, stop in pairwise(offsets):
        y, s = labels[start:stop], scores[start:stop]
        if isinstance(objective, LambdaMART):
            measure = objective.measure
            parameters |= {
                "gains": 2.0**y - 1 if measure.gain == "exp2" else y,
                "discounts": 1 / np.log2(2.0 + np.arange(len(y))),
                "at": measure.at,
                "normalised": measure.name == "NDCG",
                "delta": objective.delta,
            }
        out[:, start:stop] = slow.query_lambdas(y, s, **parameters)
    return out if weights is None else out * weights


# ---- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", EVERY, ids=repr)
def test_an_objective_is_a_value(objective):
    again = pickle.loads(pickle.dumps(objective))
    assert again == objective
    assert hash(again) == hash(objective)
    assert as_objective(objective) == objective
    with pytest.raises(AttributeError):
        objective.sigma = 3.0


def test_as_objective_makes_and_changes():
    assert as_objective("quantile", quantile=0.25) == Quantile(0.25)
    assert as_objective(Quantile(0.25), quantile=0.75) == Quantile(0.75)
    assert as_objective("lambdamart", measure="ndcg@5").measure == measures.NDCG @ 5
    assert as_objective(LambdaMART(sigma=2.0), truncation_level=5) == LambdaMART(
        sigma=2.0, truncation_level=5
    )


def test_unknown_names_list_what_exists():
    with pytest.raises(
        ValueError, match=r"'squared_error', 'absolute_error', .*'lambdamart', .*got 'lambda'"
    ):
        as_objective("lambda")
    with pytest.raises(
        TypeError, match=r"'lambdamart' has no parameter 'alpha': it has measure, truncation_level"
    ):
        as_objective("lambdamart", alpha=1)
    with pytest.raises(TypeError, match="it has none"):
        as_objective("squared_error", sigma=1)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("quantile", {"quantile": 1.0}, "quantile must be a number between 0 and 1"),
        ("quantile", {"quantile": "half"}, "quantile must be a number between 0 and 1"),
        ("ranknet", {"sigma": 0.0}, "sigma must be a number between 0 and inf"),
        ("lambdamart", {"sigma": math.nan}, "sigma must be"),
        ("lambdamart", {"truncation_level": 0}, "truncation_level must be a whole number >= 1"),
        ("lambdamart", {"truncation_level": 2.5}, "truncation_level must be a whole number >= 1"),
        (
            "lambdamart",
            {"measure": "rmse"},
            "measure=RMSE: lambdamart optimises measures of the order of rows",
        ),
        ("lambdamart", {"measure": "p"}, "measure=P is the same for every order.*P @ 10"),
        ("lambdamart", {"noise": -1.0}, "noise must be a number between 0 and inf"),
        ("lambdamart", {"n_orders": 0, "noise": 1.0}, "n_orders must be a whole number >= 1"),
        ("lambdamart", {"n_orders": 3}, "n_orders=3, but noise=0"),
        ("lambdamart", {"seed": -1}, "seed must be a whole number >= 0"),
        ("lambdaloss", {"measure": "map"}, "measure=AP: lambdaloss is a bound on NDCG and DCG"),
        ("lambdaloss", {"mu": -1.0}, "mu must be a finite number >= 0"),
        ("gbrank", {"margin": 0}, "margin must be a number between 0 and inf"),
        ("gbrank", {"truncation_level": 0}, "truncation_level must be a whole number >= 1"),
        ("xendcg", {"gain": "log"}, "gain must be one of 'exp2', 'linear'"),
        ("xendcg", {"seed": 0.5}, "seed must be a whole number >= 0"),
        ("lambdamart", {"delta": "half"}, "delta must be 'full' or 'cut'"),
        ("lambdamart", {"query_norm": "l2"}, "query_norm must be 'none', 'log' or 'unit'"),
        ("lambdamart", {"score_gap_norm": True}, "expected the number that is added to the gap"),
        ("logistic", {"balanced": "yes"}, "balanced must be True or False"),
    ],
)
def test_parameters_out_of_range_raise(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        as_objective(name, **parameters)


@pytest.mark.parametrize(
    ("objective", "labels", "message"),
    [
        (Poisson(), [1, -2], "y has the label -2.*labels >= 0"),
        (Poisson(), [0, 0], "y is 0 throughout"),
        (Gamma(), [1, 0], "y has the label 0.*labels > 0"),
        (Logistic(), [0, 2], "y has the label 2.*from 0"),
        (Logistic(), [-1, 1], "y has the label -1.*from 0"),
        (Logistic(balanced=True), [1, 1], "y is 1 throughout.*both classes"),
        (LambdaMART(), [0, -1], "y has the label -1.*labels >= 0"),
        (LambdaMART(), [0, 2000], "y cannot be ranked by NDCG @ 10.*2000"),
    ],
    ids=lambda value: repr(value) if not isinstance(value, (list, str)) else None,
)
def test_labels_that_do_not_fit_raise(objective, labels, message):
    with pytest.raises(ValueError, match=message):
        objective.check_labels(np.array(labels, dtype=np.float64))


def test_labels_that_fit_pass():
    for objective in EVERY:
        objective.check_labels(np.array([0.0 if objective.name != "gamma" else 0.1, 0.25, 1.0]))
    RankNet().check_labels(np.array([-5.0, 1e300]))
    LambdaMART(measure=measures.NDCG(gain="linear")).check_labels(np.array([0.0, 1e6]))


def test_rows_without_weight_raise():
    labels, weights, offsets = np.array([0.0, 1.0]), np.zeros(2), np.array([0, 2])
    with pytest.raises(ValueError, match="sample_weight has no positive entry"):
        SquaredError().prepare(labels, weights, offsets)
    with pytest.raises(ValueError, match="positive label"):
        Poisson().prepare(labels, np.array([1.0, 0.0]), offsets).start()
    with pytest.raises(ValueError, match="one class"):
        Logistic(balanced=True).prepare(labels, np.array([1.0, 0.0]), offsets)


@pytest.mark.parametrize(
    ("labels", "weights"),
    [
        ([1e308, 1.5e308], None),
        ([1e200, -1e200], [1e200, 1e200]),
        ([1e308, 1e308, -1.0], [1.0, 1.0, 1.0]),
        ([0.0, 1.0], [1e308, 1.5e308]),
    ],
)
def test_sums_that_no_float_holds_are_reported(labels, weights):
    """On all ranks, though none of them may have such a sum."""
    labels, weights = np.array(labels), None if weights is None else np.array(weights)
    with pytest.raises(ValueError, match="Scale y and sample_weight to a smaller range"):
        SquaredError().prepare(labels, weights, np.array([0, len(labels)])).start()

    def start(ranks):
        own = slice(ranks.rank, None, 2)
        offsets = np.array([0, len(labels[own])])
        share = Share.among(ranks, offsets, None)
        with pytest.raises(ValueError, match="Scale y and sample_weight to a smaller range"):
            SquaredError().prepare(
                labels[own], None if weights is None else weights[own], offsets, share=share
            ).start()

    together(2, start)


# ---- pointwise ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("held", "parts"), [("uint8", 4), ("float32", 4), ("float64", 7)])
@pytest.mark.parametrize(
    ("objective", "loss"), POINTWISE, ids=lambda value: repr(value) if hasattr(value, "name") else ""
)
def test_derivatives_agree_with_finite_differences(objective, loss, held, parts, weighted):
    labels, weights, offsets, scores = make_queries(1, n_queries=8, weighted=weighted)
    labels = labels // parts if held == "uint8" else labels / parts
    prepared = objective.prepare(labels, weights, offsets)
    assert prepared.narrow_labels.dtype == held
    np.testing.assert_array_equal(prepared.labels, labels)
    gradients, hessians = gradients_of(prepared, scores)
    w = np.ones(len(labels)) if weights is None else weights
    slopes = np.array([slow.slope(loss, s, y) for s, y in zip(scores, labels, strict=True)])
    np.testing.assert_allclose(gradients, w * slopes, rtol=1e-6, atol=1e-8)
    if objective.constant_hessian:
        np.testing.assert_array_equal(hessians, w)
    else:
        bends = np.array([slow.bend(loss, s, y) for s, y in zip(scores, labels, strict=True)])
        np.testing.assert_allclose(hessians, w * bends, rtol=1e-5, atol=1e-6)
    expected = slow.mean_loss(loss, labels, weights, scores)
    assert prepared.loss(scores) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("objective", [o for o, _ in POINTWISE] + [Logistic(balanced=True)], ids=repr)
def test_start_is_the_best_constant(objective, weighted):
    labels, weights, offsets, _ = make_queries(2, n_queries=9, weighted=weighted)
    labels = labels_for(objective, labels)
    prepared = objective.prepare(labels, weights, offsets)
    start = prepared.start()
    best = prepared.loss(np.full(len(labels), start))
    for step in (-1e-3, 1e-3):
        assert best <= prepared.loss(np.full(len(labels), start + step)) + 1e-15


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("objective", [o for o, _ in POINTWISE] + [Logistic(balanced=True)], ids=repr)
def test_start_and_loss_do_not_depend_on_the_order_of_rows(objective, weighted):
    labels, weights, offsets, scores = make_queries(3, weighted=weighted)
    labels = labels_for(objective, labels) * 0.7
    prepared = objective.prepare(labels, weights, offsets)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(labels))
        again = objective.prepare(labels[order], None if weights is None else weights[order], offsets)
        assert again.start() == prepared.start()
        assert again.loss(scores[order]) == prepared.loss(scores)


def test_balanced_classes_weigh_the_same():
    labels = np.array([0.0] * 9 + [1.0])
    prepared = Logistic(balanced=True).prepare(labels, None, np.array([0, 10]))
    gradients, hessians = gradients_of(prepared, np.zeros(10))
    assert prepared.start() == 0.0
    np.testing.assert_allclose(gradients, [0.5 * 10 / 18] * 9 + [-0.5 * 10 / 2])
    np.testing.assert_allclose(hessians, [0.25 * 10 / 18] * 9 + [0.25 * 10 / 2])
    scores = np.linspace(-2, 2, 10)
    expected = slow.mean_loss(slow.logistic(10 / 2, 10 / 18), labels, None, scores)
    assert prepared.loss(scores) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(("label", "sign"), [(0.0, -1), (1.0, 1)])
def test_one_class_starts_from_a_finite_score(label, sign):
    start = Logistic().prepare(np.full(5, label), None, np.array([0, 5])).start()
    assert 20 < sign * start < 21


def test_extreme_scores_stay_finite():
    labels, offsets = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 4])
    scores = np.array([-1e4, -1e4, 1e4, 1e4])
    for objective in (Logistic(), RankNet(), LambdaMART(), LambdaMART(score_gap_norm=0.01, query_norm="log")):
        prepared = objective.prepare(labels, None, offsets)
        assert np.isfinite(gradients_of(prepared, scores)).all()
        assert (gradients_of(prepared, scores)[1] >= 0).all()
        assert np.isfinite(prepared.loss(scores))


def test_inverse_links():
    scores = np.array([[-2.0, 0.0], [1.0, 30.0]])
    np.testing.assert_array_equal(SquaredError().inverse_link(scores), scores)
    for objective in (Poisson(), Gamma()):
        np.testing.assert_allclose(objective.inverse_link(scores), np.exp(scores), rtol=1e-15)
    np.testing.assert_allclose(Logistic().inverse_link(scores), 1 / (1 + np.exp(-scores)), rtol=1e-15)


# ---- quantiles of leaves -----------------------------------------------------------------------------------


def leaf_quantiles(residuals, weights, order, bounds, quantile, n_threads=1):
    values = np.full(len(bounds), np.nan)
    starts, stops = np.array(bounds, dtype=np.int64).reshape(-1, 2).T.copy()
    losses.leaf_quantiles(
        residuals, weights, order.astype(np.uint32), starts, stops, quantile, values, n_threads
    )
    return values


@FEW
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), min_size=1, max_size=60),
    st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9]),
    st.integers(0, 2**32 - 1),
)
def test_quantiles_agree_with_repeated_rows(rows, quantile, seed):
    residuals, counts = np.array(rows, dtype=np.float64).T.copy()
    order = np.random.default_rng(seed).permutation(len(rows))
    cut = seed % (len(rows) + 1)
    bounds = [(0, cut), (cut, len(rows))]
    expected = [
        slow.quantile(residuals[order[a:b]], counts[order[a:b]].astype(int), quantile) for a, b in bounds
    ]
    np.testing.assert_array_equal(leaf_quantiles(residuals, counts, order, bounds, quantile), expected)
    ones = np.ones(len(rows), dtype=int)
    expected = [slow.quantile(residuals[order[a:b]], ones[order[a:b]], quantile) for a, b in bounds]
    np.testing.assert_array_equal(leaf_quantiles(residuals, None, order, bounds, quantile), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_quantiles_do_not_depend_on_order_or_threads(weighted):
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=3000).round(1)
    weights = rng.random(3000) if weighted else None
    bounds = [(0, 1), (1, 700), (700, 701), (701, 2500), (2600, 3000)]
    order = rng.permutation(3000)
    expected = leaf_quantiles(residuals, weights, order, bounds, 0.3)
    for n_threads in (1, 2, 4):
        for start, stop in bounds:
            rng.shuffle(order[start:stop])
        np.testing.assert_array_equal(
            leaf_quantiles(residuals, weights, order, bounds, 0.3, n_threads), expected
        )


@pytest.mark.parametrize("weighted", [False, True])
def test_each_leaf_has_room_of_its_own(weighted):
    rng = np.random.default_rng(0)
    residuals, order = rng.normal(size=200_000), rng.permutation(200_000)
    weights = rng.random(200_000) if weighted else None
    bounds = [(first, first + 5000) for first in range(0, 200_000, 5000)]
    alone = leaf_quantiles(residuals, weights, order, bounds, 0.3)
    np.testing.assert_array_equal(leaf_quantiles(residuals, weights, order, bounds, 0.3, 3), alone)


@pytest.mark.parametrize("quantile", [0.01, 0.5, 0.99])
@pytest.mark.parametrize("shape", ["sorted", "reversed", "organ", "equal"])
def test_quantiles_of_awkward_orders(shape, quantile):
    values = np.arange(2001.0)
    values = {
        "sorted": values,
        "reversed": values[::-1].copy(),
        "organ": np.minimum(values, values[::-1]),
        "equal": np.ones(2001),
    }[shape]
    expected = np.quantile(values, quantile, method="averaged_inverted_cdf")
    assert leaf_quantiles(values, None, np.arange(2001), [(0, 2001)], quantile) == [expected]


# ---- pairwise ----------------------------------------------------------------------------------------------

QUERY = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from([-2.0, -0.5, 0.0, 0.1, 0.5, 3.0]),
        st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    ),
    min_size=1,
    max_size=24,
)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("objective", PAIRWISE, ids=repr)
@FEW
@given(queries=st.lists(QUERY, min_size=1, max_size=3))
def test_lambdas_agree_with_the_slow_twin(objective, weighted, queries):
    labels, scores, weights = np.array([row for query in queries for row in query], dtype=np.float64).T.copy()
    weights = weights + 0.5 if weighted else None
    offsets = np.concatenate([[0], np.cumsum([len(query) for query in queries])])
    got = gradients_of(objective.prepare(labels, weights, offsets), scores)
    expected = slow_gradients(objective, labels, weights, offsets, scores)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("objective", PAIRWISE, ids=repr)
@pytest.mark.parametrize("ties", [False, True])
def test_lambdas_of_longer_queries_agree_with_the_slow_twin(objective, ties):
    labels, weights, offsets, scores = make_queries(4, n_queries=12, longest=150, weighted=True, ties=ties)
    got = gradients_of(objective.prepare(labels, weights, offsets), scores)
    expected = slow_gradients(objective, labels, weights, offsets, scores)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("objective", PAIRWISE, ids=repr)
def test_lambdas_of_scores_far_apart_agree_with_the_slow_twin(objective):
    """No one scale holds the exponentials of all rows: e^600 apart, but neighbours still differ by little."""
    labels, _, offsets, scores = make_queries(17, n_queries=12, longest=60)
    scores += 300.0 / objective.sigma * np.random.default_rng(0).integers(-1, 2, len(scores))
    got = gradients_of(objective.prepare(labels, None, offsets), scores)
    expected = slow_gradients(objective, labels, None, offsets, scores)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("wrong", [False, True])
def test_the_lambda_of_a_pair_is_right_to_a_few_units_of_single_precision(wrong):
    gaps = np.linspace(0.0, 86.0, 2001)
    scores, offsets = np.stack([gaps / 2, -gaps / 2], axis=1).ravel(), np.arange(0, 2 * len(gaps) + 1, 2)
    labels = np.tile([0.0, 1.0] if wrong else [1.0, 0.0], len(gaps))
    gradients, hessians = gradients_of(RankNet().prepare(labels, None, offsets), scores)
    rho, bend = 1 / (1 + np.exp(-gaps if wrong else gaps)), np.exp(-gaps) / (1 + np.exp(-gaps)) ** 2
    np.testing.assert_allclose(np.abs(gradients), np.repeat(rho, 2), rtol=5e-6)
    np.testing.assert_allclose(hessians, np.repeat(bend, 2), rtol=5e-6)


@pytest.mark.parametrize("factor", [1e-290, 1e-40, 1e40, 1e290])
@pytest.mark.parametrize("query_norm", ["none", "unit"])
@pytest.mark.parametrize("of", ["gain", "discount"])
def test_gains_and_discounts_may_be_of_any_size(of, query_norm, factor):
    """Single precision ends at 1e38: what pairs weigh is told in units of the largest grade and worth."""
    labels, _, offsets, scores = make_queries(15, n_queries=4)
    numbers = np.array([0.0, 1.0, 3.0, 7.0, 15.0] if of == "gain" else [15.0, 7.0, 3.0, 1.0, 0.0])
    plain, scaled = (
        gradients_of(
            LambdaMART(measures.DCG(**{of: own}), query_norm=query_norm).prepare(labels, None, offsets),
            scores,
        )
        for own in (numbers, factor * numbers)
    )
    expected = np.array(plain) if query_norm == "unit" else factor * np.array(plain)
    np.testing.assert_allclose(scaled, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


AWKWARD = {
    "ties": lambda rng, n: rng.integers(0, 9, n) / 4,
    "one far away": lambda rng, n: np.where(np.arange(n) == n // 3, 1e300, rng.normal(size=n)),
    "close together": lambda rng, n: 1e6 + 1e-9 * rng.integers(0, n, n),
    "tiny": lambda rng, n: 5e-324 * rng.integers(0, n, n),
    "huge": lambda rng, n: 1e308 * rng.uniform(-1, 1, n),
    "infinite": lambda rng, n: rng.choice([-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf], n),
    "rising": lambda rng, n: np.arange(n) / n,
    "falling": lambda rng, n: -np.arange(n) / n,
}


@pytest.mark.parametrize("n", [2, 31, 33, 255, 256, 257, 1100])
@pytest.mark.parametrize("shape", AWKWARD)
def test_rows_are_ranked_by_score_then_position(shape, n):
    rng = np.random.default_rng(18)
    labels, scores = rng.integers(0, 5, n).astype(np.float64), AWKWARD[shape](rng, n)
    order, offsets = slow.rank_rows(scores), np.array([0, n])
    got = gradients_of(LambdaMART().prepare(labels, None, offsets), scores)
    ranked = gradients_of(LambdaMART().prepare(labels[order], None, offsets), scores[order])
    np.testing.assert_array_equal([got[0][order], got[1][order]], ranked)


@pytest.mark.parametrize("objective", PAIRWISE, ids=repr)
def test_lambdas_of_a_query_sum_to_zero(objective):
    labels, _, offsets, scores = make_queries(5)
    gradients, hessians = gradients_of(objective.prepare(labels, None, offsets), scores)
    sums = np.add.reduceat(gradients, offsets[:-1])
    assert np.abs(sums).max() <= 1e-7 * np.abs(gradients).max() * np.diff(offsets).max()
    assert (hessians >= 0).all()


@pytest.mark.parametrize("objective", PAIRWISE, ids=repr)
def test_queries_that_teach_nothing_give_zeros(objective):
    labels = np.array([3.0, 2.0, 2.0, 2.0, 0.0, 0.0])
    gradients, hessians = gradients_of(
        objective.prepare(labels, None, np.array([0, 1, 4, 6])), np.arange(6.0)
    )
    np.testing.assert_array_equal(gradients, np.zeros(6))
    np.testing.assert_array_equal(hessians, np.zeros(6))


@pytest.mark.parametrize("objective", EVERY, ids=repr)
def test_threads_do_not_change_a_bit(objective):
    labels, weights, offsets, scores = make_queries(6, n_queries=100, weighted=True)
    labels = labels_for(objective, labels)
    prepared = objective.prepare(labels, weights, offsets, 1)
    gradients, hessians = gradients_of(prepared, scores)
    for n_threads in (2, 3, 4):
        again = objective.prepare(labels, weights, offsets, n_threads)
        np.testing.assert_array_equal(gradients_of(again, scores), (gradients, hessians))
        assert again.start() == prepared.start()
        assert again.loss(scores) == prepared.loss(scores)


def test_widths_of_registers_do_not_change_a_bit():
    program = (
        "import numpy as np, test_objectives as t\n"
        "labels, weights, offsets, scores = t.make_queries(19, longest=300, weighted=True)\n"
        "for objective in t.PAIRWISE:\n"
        "    for scale in (1.0, 100.0):\n"
        "        prepared = objective.prepare(labels, weights, offsets)\n"
        "        print(np.array(t.gradients_of(prepared, scale * scores)).tobytes().hex())\n"
    )
    assert len(outputs_of(program)) == 1


@pytest.mark.parametrize("objective", EVERY, ids=repr)
def test_shuffled_queries_carry_their_gradients_along(objective):
    labels, weights, offsets, scores = make_queries(7, weighted=True)
    labels = labels_for(objective, labels)
    prepared = objective.prepare(labels, weights, offsets)
    queries = np.random.default_rng(0).permutation(len(offsets) - 1)
    order = np.concatenate([np.arange(offsets[q], offsets[q + 1]) for q in queries])
    again = objective.prepare(
        labels[order], weights[order], np.concatenate([[0], np.cumsum(np.diff(offsets)[queries])])
    )
    got, expected = gradients_of(again, scores[order]), gradients_of(prepared, scores)
    np.testing.assert_array_equal(got, [expected[0][order], expected[1][order]])
    assert again.start() == prepared.start()
    assert again.loss(scores[order]) == prepared.loss(scores)


@pytest.mark.parametrize("objective", PAIRWISE, ids=repr)
def test_a_prepared_objective_has_no_memory(objective):
    labels, weights, offsets, scores = make_queries(8, ties=True)
    prepared = objective.prepare(labels, weights, offsets)
    first = gradients_of(prepared, scores)
    gradients_of(prepared, -scores)
    np.testing.assert_array_equal(gradients_of(prepared, scores), first)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("objective", [RankNet(), RankNet(sigma=2.0, truncation_level=4)], ids=repr)
def test_ranknet_loss_agrees_with_the_slow_twin(objective, weighted):
    labels, weights, offsets, scores = make_queries(9, n_queries=10, weighted=weighted, ties=True)
    w = np.ones(len(labels)) if weights is None else weights
    expected = slow.pair_loss(labels, w, offsets, scores, objective.sigma, objective.truncation_level)
    assert objective.prepare(labels, weights, offsets).loss(scores) == pytest.approx(expected, rel=1e-13)


def test_ranknet_gradients_are_the_derivatives_of_its_loss():
    labels, _, offsets, scores = make_queries(10, n_queries=4, longest=8)
    prepared = RankNet(sigma=1.5).prepare(labels, None, offsets)
    gradients, hessians = gradients_of(prepared, scores)
    n_pairs = sum(len(list(slow.pairs(labels[a:b], scores[a:b]))) for a, b in pairwise(offsets))

    def loss(row, step):
        moved = scores.copy()
        moved[row] += step
        return n_pairs * prepared.loss(moved)

    for row in range(len(labels)):
        slope = (loss(row, 1e-5) - loss(row, -1e-5)) / 2e-5
        bend = (loss(row, 1e-3) - 2 * loss(row, 0.0) + loss(row, -1e-3)) / 1e-6
        assert gradients[row] == pytest.approx(slope, rel=1e-6, abs=1e-6)
        assert hessians[row] == pytest.approx(bend, rel=1e-4, abs=1e-5)


def test_lambdamart_loss_is_what_the_measure_lacks():
    labels, weights, offsets, scores = make_queries(11, weighted=True)
    for measure in (measures.NDCG @ 5, measures.DCG @ 5):
        prepared = LambdaMART(measure=measure).prepare(labels, weights, offsets)
        mean = measure.mean(labels, scores, offsets, weights)
        assert prepared.loss(scores) == (1 - mean if measure == measures.NDCG @ 5 else -mean)


def test_cut_deltas_are_the_changes_of_the_measure():
    rng = np.random.default_rng(12)
    labels, scores = rng.integers(0, 5, 12).astype(np.float64), rng.normal(size=12)
    measure = measures.NDCG @ 4
    objective = LambdaMART(measure=measure, truncation_level=None, delta="cut")
    gradients, _ = gradients_of(objective.prepare(labels, None, np.array([0, 12])), scores)
    deltas, expected = np.abs(measure.deltas(labels, scores)), np.zeros(12)
    for _, _, i, j in slow.pairs(labels, scores):
        better, worse = (i, j) if labels[i] > labels[j] else (j, i)
        push = deltas[i, j] / (1 + math.exp(scores[better] - scores[worse]))
        expected[better] -= push
        expected[worse] += push
    np.testing.assert_allclose(gradients, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "objective", [RankNet(), LambdaMART(), LambdaMART(delta="cut", truncation_level=5)], ids=repr
)
@pytest.mark.parametrize("sigma", [0.25, 2.0, 3.0])
def test_sigma_only_scales_the_scores(objective, sigma):
    """The Newton step at scores / sigma is the step at scores, divided by sigma; so are the scores."""
    labels, _, offsets, _ = make_queries(13, n_queries=6)
    leaf = np.random.default_rng(0).integers(0, 4, len(labels))

    def train(sigma):
        prepared = as_objective(objective, sigma=sigma).prepare(labels, None, offsets)
        s = np.zeros(len(labels))
        for round_ in range(4):
            gradients, hessians = gradients_of(prepared, s)
            leaves = (leaf + (labels > round_)) % 4
            values = -np.bincount(leaves, gradients, 4) / np.bincount(leaves, hessians, 4)
            s += 0.3 * values[leaves]
        return s

    np.testing.assert_allclose(sigma * train(sigma), train(1.0), rtol=1e-5, atol=1e-6)


def test_tiny_sums_of_lambdas_are_normed():
    labels, _, offsets, scores = make_queries(4, n_queries=5)
    plain, normed = (
        gradients_of(LambdaMART(sigma=1e-30, query_norm=norm).prepare(labels, None, offsets), scores)[0]
        for norm in ("none", "log")
    )
    np.testing.assert_allclose(normed, plain / np.log(2), rtol=1e-6)


def make_classes(n_classes, n_rows=300, scale=3.0, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_rows).astype(float)
    weights = rng.integers(0, 4, n_rows).astype(float) if weighted else None
    scores = scale * rng.normal(size=(n_classes, n_rows)).round(1)
    return labels, weights, np.array([0, n_rows]), scores


def class_gradients_of(prepared, scores):
    gradients, hessians = np.full((2, *scores.shape), np.nan)
    prepared.gradients(scores, gradients, hessians)
    return gradients, hessians


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize(("n_classes", "scale"), [(2, 3.0), (3, 0.0), (5, 30.0), (300, 3.0)])
def test_classes_agree_with_the_slow_twin(n_classes, scale, balanced, weighted):
    labels, weights, offsets, scores = make_classes(n_classes, 900, scale, weighted)
    labels[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)
    if weighted:
        weights[: 2 * n_classes] = 1.0
    w = np.ones(len(labels)) if weights is None else weights
    prepared = Softmax(n_classes, balanced).prepare(labels, weights, offsets)
    of_class = np.bincount(labels.astype(int), w) / w.sum()
    of_classes = 1 / (n_classes * of_class) if balanced else np.ones(n_classes)
    rows = [slow.softmax(s, int(y), of_classes) for s, y in zip(scores.T, labels, strict=True)]
    gradients, hessians = class_gradients_of(prepared, scores)
    np.testing.assert_allclose(gradients.T, w[:, None] * [row[1] for row in rows], rtol=1e-13)
    np.testing.assert_allclose(hessians.T, w[:, None] * [row[2] for row in rows], rtol=1e-13)
    expected = sum(weight * row[0] for weight, row in zip(w, rows, strict=True)) / w.sum()
    assert prepared.loss(scores) == pytest.approx(float(expected), rel=1e-13)
    shares = np.log(of_class) if not balanced else np.zeros(n_classes)
    np.testing.assert_allclose(prepared.start(), shares, rtol=1e-13)
    np.testing.assert_allclose(Softmax(n_classes).inverse_link(scores).sum(axis=0), 1.0, rtol=1e-13)


def test_gradients_of_classes_are_the_slopes_of_the_loss():
    labels, weights, offsets, scores = make_classes(4, 40, 1.0, weighted=True)
    prepared = Softmax(4).prepare(labels, weights, offsets)
    gradients, _ = class_gradients_of(prepared, scores)
    for k, row in np.ndindex(*scores.shape):
        moved = [scores.copy(), scores.copy()]
        moved[0][k, row] += 1e-5
        moved[1][k, row] -= 1e-5
        slope = (prepared.loss(moved[0]) - prepared.loss(moved[1])) / 2e-5 * prepared.total_weight
        assert slope == pytest.approx(gradients[k, row], rel=1e-5, abs=1e-7)


def test_the_steps_of_two_classes_are_together_that_of_log_odds():
    labels, _, offsets, scores = make_classes(2)
    gradients, hessians = class_gradients_of(Softmax(2).prepare(labels, None, offsets), scores)
    of_odds = gradients_of(Logistic().prepare(labels, None, offsets), scores[1] - scores[0])
    steps = (-gradients / hessians)[:, np.abs(of_odds[0]) > 1e-6]
    expected = (-of_odds[0] / of_odds[1])[np.abs(of_odds[0]) > 1e-6]
    np.testing.assert_allclose(steps[1] - steps[0], expected, rtol=1e-12)


def test_classes_far_apart_stay_finite():
    scores = np.array([[1e300, -1e300, 0.0], [0.0, 1e300, -800.0], [-1e300, 1e300, 800.0]])
    prepared = Softmax(3).prepare(np.array([0.0, 0.0, 1.0]), None, np.array([0, 3]))
    gradients, hessians = class_gradients_of(prepared, scores)
    assert np.isfinite(gradients).all()
    assert (hessians >= 0).all()
    np.testing.assert_allclose(gradients.sum(axis=0), 0.0, atol=1e-15)
    assert np.isfinite(prepared.loss(scores))


def test_threads_and_widths_do_not_change_a_bit_of_classes():
    labels, weights, offsets, scores = make_classes(7, 1001, weighted=True)
    one, more = (class_gradients_of(Softmax(7).prepare(labels, weights, offsets, n), scores) for n in (1, 3))
    np.testing.assert_array_equal(one, more)
    program = (
        "import numpy as np, test_objectives as t\n"
        "labels, weights, offsets, scores = t.make_classes(7, 301, weighted=True)\n"
        "prepared = t.Softmax(7).prepare(labels, weights, offsets)\n"
        "print(np.array(t.class_gradients_of(prepared, scores)).tobytes().hex(), prepared.loss(scores))\n"
        "print(t.Softmax(7).inverse_link(scores).tobytes().hex())\n"
    )
    assert len(outputs_of(program)) == 1


def test_a_class_without_weight_cannot_be_balanced():
    with pytest.raises(ValueError, match="y lacks a class in the rows of positive sample_weight"):
        Softmax(3, balanced=True).prepare(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1, 0]), np.array([0, 3]))


def test_one_grade_more_or_ten_thousand():
    """Labels are any numbers >= 0: only the gains matter to LambdaMART, only the order to RankNet."""
    labels, _, offsets, scores = make_queries(14)
    linear = LambdaMART(measure=measures.NDCG(gain="linear") @ 10)
    np.testing.assert_allclose(
        gradients_of(linear.prepare(labels * 1e4, None, offsets), scores),
        gradients_of(linear.prepare(labels, None, offsets), scores),
        rtol=1e-5,
        atol=1e-7,
    )
    np.testing.assert_array_equal(
        gradients_of(RankNet().prepare(np.exp(labels) - 7, None, offsets), scores),
        gradients_of(RankNet().prepare(labels, None, offsets), scores),
    )


def test_a_long_query_with_truncation():
    rng = np.random.default_rng(15)
    n = 200_000
    labels, scores = rng.integers(0, 3, n).astype(np.float64), rng.normal(size=n)
    gradients, hessians = gradients_of(LambdaMART().prepare(labels, None, np.array([0, n])), scores)
    assert np.isfinite(gradients).all()
    assert abs(math.fsum(gradients)) < 1e-6 * np.abs(gradients).sum()
    assert (hessians >= 0).all()
    assert np.count_nonzero(hessians) > n // 2


@pytest.mark.parametrize(
    "objective",
    [
        RankNet(truncation_level=5),
        LambdaMART("p@5", truncation_level=5),
        LambdaMART("ndcg@5", truncation_level=5, delta="cut"),
        LambdaMART("map@5", truncation_level=5, delta="cut"),
        LambdaMART("err@5", truncation_level=5, delta="cut"),
    ],
    ids=repr,
)
def test_ties_below_the_level_and_the_cutoff_may_stand_in_any_order(objective):
    rng = np.random.default_rng(20)
    labels, scores = (
        rng.integers(0, 5, 60).astype(np.float64),
        np.repeat([3.0, 2.5, 1.0, 0.5, 0.1, 0.0], [1, 1, 1, 1, 1, 55]),
    )
    order = np.append(np.arange(5), 5 + rng.permutation(55))
    got = gradients_of(objective.prepare(labels[order], None, np.array([0, 60])), scores)
    gradients, hessians = gradients_of(objective.prepare(labels, None, np.array([0, 60])), scores)
    np.testing.assert_allclose(got, [gradients[order], hessians[order]], rtol=1e-5, atol=1e-6)


def test_scores_that_are_not_numbers_are_passed_on():
    labels, _, offsets, scores = make_queries(16, n_queries=3, longest=50)
    scores[::5] = np.nan
    for objective in PAIRWISE:
        gradients, _ = gradients_of(objective.prepare(labels, None, offsets), scores)
        assert np.isnan(gradients).any()


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile"])
def test_where_all_hessians_are_one_it_need_be_written_once(loss):
    rng = np.random.default_rng(0)
    labels, scores, offsets = rng.normal(size=50), rng.normal(size=50), np.array([0, 50])
    gradients, hessians = np.empty((2, 50)), (np.full(50, 7.0), np.full(1, 7.0))
    prepared = as_objective(loss).prepare(labels, None, offsets)
    assert prepared.one_hessian
    for own, written in zip(gradients, hessians, strict=True):
        prepared.gradients(scores, own, written)
        assert (written == 1.0).all()
    assert (gradients[0] == gradients[1]).all()
    assert not as_objective(loss).prepare(labels, np.ones(50), offsets).one_hessian
    assert not as_objective("poisson").prepare(np.ones(50), None, offsets).one_hessian
