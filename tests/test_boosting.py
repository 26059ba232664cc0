import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from ranktrees import (
    FitWarning,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    as_measure,
    make_ranking,
    tree_table,
)
from ranktrees.estimators import boosted
from ranktrees.model.ensemble import Ensemble
from ranktrees.objectives import as_objective
from ranktrees.rows import FitData
from ranktrees.rows.sampling import RowSampler
from ranktrees.training.boosting import FollowedRows, boost, quantile_values
from reference import growing as slow
from reference.objectives import quantile as slow_quantile

N_QUERIES, N_ROWS = 30, 300
SIZES = np.r_[1, np.random.default_rng(1).multinomial(N_ROWS - 30, np.ones(N_QUERIES - 1) / 29) + 1]
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int64)


class World:
    """Everything that boosting needs, on few rows."""

    def __init__(self, loss="squared_error", *, seed=0, n_threads=1, weights=None, mapper=None, **rules):
        rng = np.random.default_rng(seed)
        n_bins = [12, 30, 5]
        n_rows = int(OFFSETS[-1])
        self.codes = slow.random_codes(rng, n_rows, n_bins)
        self.mapper = slow.mapper_of(n_bins)
        labels = np.minimum(rng.poisson(self.codes[:, 0] / 6), 4).astype(float)
        labels[:2] = 1, 0
        labels += loss == "gamma"
        self.data = FitData(self.codes.astype(float), labels, weights, None, OFFSETS[n_rows >= OFFSETS], True)
        parameters = {"quantile": 0.3} if loss == "quantile" else {}
        self.objective = as_objective(loss, **parameters)
        self.prepared = self.objective.prepare(labels, weights, self.data.offsets, n_threads)
        self.grower = slow.grower_of(
            self.codes, self.mapper, n_threads=n_threads, **{"max_leaf_nodes": 6, **rules}
        )
        self.base = self.prepared.start()

    def followed(self, measure=None, codes=None):
        scores = np.full(len(self.data.labels), self.base)
        return FollowedRows(
            measure, self.prepared, self.data, scores, self.grower.n_threads, codes, self.mapper
        )

    def boost(self, n_rounds=8, *, subsample=1.0, train=None, **options):
        train = self.followed() if train is None else train
        sampler = RowSampler(self.data.offsets, subsample=subsample, seed=5)
        settings = {"learning_rate": 0.3, "rounds": range(n_rounds), "sampler": sampler, "seed": 5}
        settings |= {"leaf_quantile": self.objective.leaf_quantile, "ensemble_of": self.ensemble_of}
        return train, *boost(lambda: self.grower, self.prepared, train, **settings | options)

    def ensemble_of(self, trees):
        nodes, bit_sets = zip(*trees, strict=True) if trees else ((), ())
        return Ensemble.from_trees(nodes, bit_sets, n_features=3, base=self.base)

    def rows(self):
        """The rows whose codes are ``codes``."""
        return np.where(self.codes == self.mapper.missing_codes, np.nan, self.codes.astype(float))


LOSSES = ["squared_error", "absolute_error", "quantile", "poisson", "gamma", "ranknet", "lambdamart"]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("subsample", [1.0, 0.5])
@pytest.mark.parametrize("split_search", ["full", "coarse_to_fine", "exact"])
def test_scores_are_those_of_the_model(loss, subsample, split_search):
    """Rows drawn, rows left out and validation rows are all where the trees lead them, to the last bit."""
    world = World(loss, split_search=split_search)
    validation = world.followed(codes=world.grower.codes)
    train, trees, _, _ = world.boost(subsample=subsample, validation=validation)
    predicted = world.ensemble_of(trees).predict(world.rows())
    assert train.scores.tolist() == validation.scores.tolist() == predicted.tolist()
    assert max(len(nodes) for nodes, _ in trees) > 1


@pytest.mark.parametrize("split_search", ["full", "coarse_to_fine", "exact"])
@pytest.mark.parametrize("loss", LOSSES)
def test_one_step_is_the_tree_of_the_gradients(loss, split_search):
    world = World(loss, split_search=split_search)
    n_rows = len(world.data.labels)
    train, ((nodes, _),), _, _ = world.boost(1)
    gradients, hessians = np.empty(n_rows), np.empty(n_rows)
    world.prepared.gradients(np.full(n_rows, world.base), gradients, hessians)
    grown, _ = slow.grown_on(
        world.codes, world.mapper, gradients, hessians, max_leaf_nodes=6, split_search=split_search
    )
    assert nodes["left"].tolist() == grown.leaves["left"].tolist()
    values = grown.values.copy()
    if world.objective.leaf_quantile is not None:
        for i in np.flatnonzero(grown.is_leaf):
            rows = slow.rows_of(grown, grown.leaves[i])
            residuals = np.sort(world.data.labels[rows] - world.base)
            q = world.objective.leaf_quantile
            inside = (
                residuals[max(0, int(np.ceil(q * len(rows))) - 1)],
                residuals[min(len(rows) - 1, int(q * len(rows)))],
            )
            assert inside[0] <= nodes["value"][i] / 0.3 + 1e-12
            assert nodes["value"][i] / 0.3 - 1e-12 <= inside[1]
    else:
        assert nodes["value"].tolist() == (0.3 * values).tolist()
    walked = [slow.walk(grown, world.mapper.missing_codes, line) for line in world.codes]
    assert train.scores.tolist() == (world.base + nodes["value"][walked]).tolist()


@pytest.mark.parametrize("make", [HistGBRTRegressor, LambdaMARTRanker])
@pytest.mark.parametrize("n_rows", [39_999, 40_000])
def test_many_rows_bear_a_higher_rate_and_all_features(make, n_rows):
    few = n_rows < 40_000
    rules = {"max_iter": 2, "random_state": 0}
    X, y, qid = (
        np.arange(n_rows)[:, None] % np.arange(5.0, 9.0),
        np.arange(n_rows) % 3.0,
        np.arange(n_rows) // 20,
    )
    model = make(**rules).fit(X, y, qid=qid)
    rate = 0.05 if few else 0.1
    share = {HistGBRTRegressor: 0.5, LambdaMARTRanker: 0.3}[make] if few else 1.0
    same = make(learning_rate=rate, max_features=share, **rules).fit(X, y, qid=qid)
    assert (model.learning_rate_, model.max_features_) == (same.learning_rate_, same.max_features_)
    assert (model.learning_rate_, model.max_features_) == (rate, share)
    assert model.ensemble_ == same.ensemble_
    stopped = make(early_stopping=True, **rules).fit(X, y, qid=qid)
    assert stopped.learning_rate_ == 0.05  # a tenth of the rows is held out
    assert stopped.max_features_ < 1
    refitted = (one.refit_leaves(X, y, decay=0.5, qid=qid).predict(X) for one in (model, same))
    np.testing.assert_array_equal(*refitted)


@pytest.mark.parametrize("shares", [{"subsample": 0.3}, {"query_subsample": 0.4, "subsample": 0.6}])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "lambdamart"])
def test_leaves_count_rows_that_were_not_drawn(loss, shares):
    """A flag that is on in 24 rows can be split on with 20 rows a leaf, whatever was drawn of them."""
    rng = np.random.default_rng(0)
    X, qid = (np.arange(1200) % 50 == 0).astype(float)[:, None], np.arange(1200) // 20
    y = np.clip(3 * X[:, 0] + rng.integers(0, 2, 1200), 0, 4)
    kind = LambdaMARTRanker if loss == "lambdamart" else HistGBRTRegressor
    model = kind(loss, max_iter=5, random_state=0, min_samples_leaf=20, **shares).fit(X, y, qid=qid)
    counts = [sorted(tree.nodes["count"].tolist()) for tree in model.ensemble_]
    assert counts == [[24, 1176, 1200]] * 5
    model.set_params(min_samples_leaf=25).fit(X, y, qid=qid)
    assert {len(tree.nodes) for tree in model.ensemble_} == {1}


@pytest.mark.parametrize("weights", [None, np.full(40, 2.0)])
def test_the_middle_of_large_labels_is_no_infinity(weights):
    regressor = HistGBRTRegressor(loss="absolute_error", max_iter=1, max_leaf_nodes=2, min_samples_leaf=1)
    labels = np.repeat([1e308, 1.1e308], 20)
    assert (regressor.fit(np.arange(40.0)[:, None], labels, weights).predict([[0.0]]) >= 1e308).all()


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "quantile", "poisson", "gamma", "ranknet"]
)
def test_training_lowers_the_loss(loss):
    world = World(loss)
    _, _, scores, _ = world.boost(15, follow_train=True, learning_rate=0.1)
    assert len(scores) == 15
    start = -world.prepared.loss(np.full(len(world.data.labels), world.base))
    assert (np.diff([start, *scores]) > -1e-9).all()
    assert scores[-1] > start


def test_training_raises_the_measure():
    world = World("lambdamart")
    measure = as_measure("ndcg@5")
    _, _, scores, _ = world.boost(15, train=world.followed(measure), follow_train=True)
    assert scores[-1] > scores[0]
    assert scores[-1] > 0.6


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("split_search", ["full", "coarse_to_fine", "exact"])
def test_threads_do_not_show(every_thread, loss, split_search):
    rng = np.random.default_rng(0)
    seen = set()
    weights = 10 ** rng.uniform(-7, 7, int(OFFSETS[-1]))
    for n_threads in (1, 2, 4):
        world = World(loss, n_threads=n_threads, weights=weights, split_search=split_search)
        _, trees, scores, _ = world.boost(2, subsample=0.8, follow_train=True)
        seen.add((world.ensemble_of(trees).digest(), str(scores)))
    assert len(seen) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_monotone_splits_bound_the_quantiles_below_them(weighted):
    signs = np.array([1, -1, 0], np.int8)
    weights = np.random.default_rng(0).integers(0, 3, int(OFFSETS[-1])).astype(float) if weighted else None
    world = World("quantile", monotone=signs, max_leaf_nodes=12, weights=weights)
    n_rows = len(world.data.labels)
    gradients, hessians = np.empty(n_rows), np.empty(n_rows)
    train = world.followed()
    world.prepared.gradients(train.scores, gradients, hessians)
    grown = world.grower.grow(gradients, hessians)
    residuals, counts = world.data.labels - train.scores, np.ones(n_rows) if weights is None else weights
    rows, starts, stops = grown.leaf_by_leaf()
    rows_of = dict(zip(np.flatnonzero(grown.is_leaf), map(np.arange, starts, stops), strict=True))
    expected, n_bounds = {}, 0

    def rows_below(node):
        record = grown.leaves[node]
        if record["left"] < 0:
            return rows[rows_of[node]]
        return np.concatenate([rows_below(record["left"]), rows_below(record["right"])])

    def best(node, lower, upper):
        own = rows_below(node)
        found = slow_quantile(residuals[own], counts[own].astype(int), 0.3) if counts[own].any() else 0.0
        return min(max(found, lower), upper)

    def visit(node, lower=-np.inf, upper=np.inf):
        nonlocal n_bounds
        record = grown.leaves[node]
        if record["left"] < 0:
            expected[node] = best(node, lower, upper)
            return
        wall = (best(record["left"], lower, upper) + best(record["right"], lower, upper)) / 2
        sign = signs[record["split"]["feature"]] * record["split"]["direction"]
        n_bounds += sign != 0
        visit(record["left"], wall if sign < 0 else lower, wall if sign > 0 else upper)
        visit(record["right"], wall if sign > 0 else lower, wall if sign < 0 else upper)

    visit(0)
    assert n_bounds > 1
    values = quantile_values(grown, train, 0.3, 1, signs)
    np.testing.assert_allclose([values[leaf] for leaf in expected], list(expected.values()), rtol=1e-12)


@pytest.mark.parametrize("least", [1.7e308, np.float16(6e4)])
def test_a_least_hessian_beyond_all_sums_allows_no_split(least):
    X = np.arange(100.0)[:, np.newaxis]
    model = HistGBRTRegressor(max_iter=2, min_samples_leaf=1, min_hessian_to_split=least)
    with pytest.warns(FitWarning, match="no split satisfied min_hessian_to_split"):
        model.fit(X, X[:, 0], np.full(100, 1e-3))


def test_rounds_continue_where_they_were():
    whole = World(seed=3)
    _, trees, _, _ = whole.boost(8, subsample=0.6)
    halves = World(seed=3)
    train, first, _, _ = halves.boost(4, subsample=0.6)
    _, second, _, _ = halves.boost(train=train, rounds=range(4, 8), subsample=0.6)
    assert whole.ensemble_of(trees).digest() == halves.ensemble_of([*first, *second]).digest()


def test_followed_scores_are_higher_where_better():
    world = World()
    worse, better = world.followed(), world.followed()
    better.scores = world.data.labels.copy()
    assert better.score() > worse.score()
    for name in ("ndcg@5", "rmse"):
        worse.measure = better.measure = as_measure(name)
        assert better.score() > worse.score()


def test_zero_gradients_give_trees_of_one_leaf():
    world = World()
    world.prepared.gradients = lambda scores, gradients, hessians, iteration: (
        gradients.fill(0),
        hessians.fill(0),
    )
    train, trees, _, _ = world.boost(3)
    assert [len(nodes) for nodes, _ in trees] == [1, 1, 1]
    assert (train.scores == world.base).all()


@pytest.mark.parametrize("learning_rate", [5.0, 50.0])
def test_diverging_scores_are_reported(learning_rate):
    with pytest.raises(ValueError, match="the scores have diverged"):
        World().boost(800, learning_rate=learning_rate)


@pytest.mark.parametrize("n_rounds", [1, 2])
@pytest.mark.parametrize("callbacks", [[], [lambda progress: progress.ensemble().base == 7]])
def test_values_that_leave_the_floats_are_reported_whichever_tree_has_them(n_rounds, callbacks):
    with pytest.raises(ValueError, match="the scores have diverged"):
        World().boost(n_rounds, learning_rate=1.7e308, callbacks=callbacks)


# ---- through the estimators -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranking():
    return make_ranking(25, random_state=0, return_X_y_qid=True)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson"])
@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_warm_start_gives_the_model_of_one_fit(ranking, loss, subsample):
    X, y, _ = ranking
    rules = {"subsample": subsample, "max_features": 0.5, "random_state": 0, "n_jobs": 1}
    at_once = HistGBRTRegressor(loss, max_iter=20, **rules).fit(X, y)
    model = HistGBRTRegressor(loss, max_iter=10, warm_start=True, **rules).fit(X, y)
    assert model.ensemble_.digest() == at_once.ensemble_.first(10).digest()
    model.set_params(max_iter=20).fit(X, y)
    assert model.ensemble_.digest() == at_once.ensemble_.digest()
    with pytest.warns(FitWarning, match="max_iter=20 is the number of trees that .* raise max_iter"):
        model.fit(X, y)  # nothing to add
    assert model.ensemble_.digest() == at_once.ensemble_.digest()
    with pytest.raises(ValueError, match="max_iter=19"):
        model.set_params(max_iter=19).fit(X, y)


def test_warm_start_of_a_ranker(ranking):
    X, y, qid = ranking
    rules = {"query_subsample": 0.7, "subsample": 0.8, "random_state": 0, "n_jobs": 1}
    at_once = LambdaMARTRanker(max_iter=12, **rules).fit(X, y, qid=qid)
    ranker = LambdaMARTRanker(max_iter=5, warm_start=True, **rules).fit(X, y, qid=qid)
    ranker.set_params(max_iter=12).fit(X, y, qid=qid)
    assert ranker.ensemble_.digest() == at_once.ensemble_.digest()


def test_queries_are_not_drawn_where_there_are_none(ranking):
    X, y, qid = ranking
    model = HistGBRTRegressor(query_subsample=0.5, max_iter=2)
    with pytest.raises(
        ValueError, match=r"query_subsample=0.5 draws whole queries, .* pass qid=, or .* subsample"
    ):
        model.fit(X, y)
    model.fit(X, y, qid=qid)
    model.set_params(query_subsample=1.0).fit(X, y)


@pytest.mark.parametrize("cls", [LambdaMARTRanker, HistGBRTRegressor])
def test_every_tree_has_exactly_so_many_rows(ranking, cls, monkeypatch):
    """Stochastic boosting as Friedman has it, the same model for any number of threads."""
    X, y, qid = ranking
    n_drawn = []

    class Counted(RowSampler):
        def draw(self, iteration):
            drawn, left_out = super().draw(iteration)
            n_drawn.append(len(drawn))
            return drawn, left_out

    monkeypatch.setattr(boosted, "RowSampler", Counted)
    rules = {"max_iter": 5, "subsample": 0.3, "random_state": 0}
    models = [cls(exact_subsample=True, n_jobs=n_jobs, **rules).fit(X, y, qid=qid) for n_jobs in (1, 3)]
    assert n_drawn == [round(0.3 * len(y))] * 10
    assert models[0].ensemble_ == models[1].ensemble_ != cls(**rules).fit(X, y, qid=qid).ensemble_


def test_early_stopping_keeps_the_best(ranking):
    X, y, qid = ranking
    rules = {"learning_rate": 0.5, "random_state": 0, "n_jobs": 1}
    ranker = LambdaMARTRanker(max_iter=60, early_stopping=True, n_iter_no_change=5, **rules)
    ranker.fit(X, y, qid=qid)
    scores = ranker.validation_score_
    assert len(scores) == len(ranker.train_score_) == ranker.n_iter_ < 60
    assert ranker.best_iteration_ == np.argmax(scores) + 1 == ranker.n_iter_ - 5
    assert len(ranker.ensemble_) == ranker.best_iteration_


def test_early_stopping_on_given_rows(ranking):
    X, y, qid = ranking
    apart = qid >= np.quantile(qid, 0.7)
    ranker = LambdaMARTRanker(max_iter=40, n_iter_no_change=4, learning_rate=0.5, random_state=0, n_jobs=1)
    ranker.fit(X[~apart], y[~apart], qid=qid[~apart], X_val=X[apart], y_val=y[apart], qid_val=qid[apart])
    best = ranker.score(X[apart], y[apart], qid=qid[apart])
    assert best == max(ranker.validation_score_) == ranker.validation_score_[ranker.best_iteration_ - 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"quantile": 0.9},
            "quantile=0.9 is not a parameter of loss='squared_error': .* None, .* 'quantile'",
        ),
        (
            {"loss": "poisson", "balanced": True},
            "balanced=True is not a parameter of .* False, .* 'logistic'",
        ),
        ({"loss": as_objective("quantile", quantile=0.1), "quantile": 0.9}, r"loss=Quantile\(quantile=0.1\)"),
        ({"loss": "quantile"}, "quantile must be a number between 0 and 1"),
    ],
)
def test_parameters_of_another_loss_are_refused(settings, message, ranking):
    X, y, _ = ranking
    with pytest.raises(ValueError, match=message):
        HistGBRTRegressor(max_iter=1, **settings).fit(X, y)


def test_without_early_stopping_validation_rows_are_followed_and_all_trees_kept(ranking):
    X, y, qid = ranking
    apart = qid >= np.quantile(qid, 0.7)
    rows = {"X_val": X[apart], "y_val": y[apart], "qid_val": qid[apart]}
    rules = {"max_iter": 20, "n_iter_no_change": 2, "learning_rate": 0.5, "random_state": 0}
    plain = LambdaMARTRanker(early_stopping=False, **rules).fit(X[~apart], y[~apart], qid=qid[~apart])
    assert len(plain.validation_score_) == len(plain.train_score_) == 0
    followed = clone(plain).fit(X[~apart], y[~apart], qid=qid[~apart], **rows)
    assert followed.ensemble_.digest() == plain.ensemble_.digest()
    assert followed.best_iteration_ == followed.n_iter_ == len(followed.validation_score_) == 20
    assert followed.validation_score_[-1] == followed.score(X[apart], y[apart], qid=qid[apart])
    stopped = clone(plain).set_params(early_stopping=True).fit(X[~apart], y[~apart], qid=qid[~apart], **rows)
    assert stopped.n_iter_ < 20
    assert_array_equal(followed.validation_score_[: stopped.n_iter_], stopped.validation_score_)


def test_labels_that_cannot_be_followed_are_refused(ranking):
    X, y, qid = ranking

    def refused(message, model, y_fit, y_val=None):
        others = [f"other {one}" for one in qid]
        ours = {"X_val": X, "y_val": y_val, "qid_val": others}
        theirs = {"eval_set": [(X, y_val)], "eval_qid": [others]}
        spellings = [("y", {})] if y_val is None else [("y_val", ours), ("y of eval_set", theirs)]
        for name, given in spellings:
            with pytest.raises(ValueError, match=message.format(name)):
                model.set_params(max_iter=2).fit(X, y_fit, qid=qid, **given)

    by_loss = "{} cannot be scored by the loss: y has the label "
    refused("NDCG takes labels >= 0, but {} has label -1", LambdaMARTRanker(), y, y - 1)
    refused(by_loss + "-1, but NDCG @ 10", LambdaMARTRanker(scoring="loss"), y, y - 1)
    refused(by_loss + "4, but the logistic", HistGBRTRegressor("logistic"), y > 2, y)
    refused(by_loss + "-1, but the poisson", HistGBRTRegressor("poisson"), y, y - 1)
    one_class = "{} cannot be scored by the loss: y has one class only"
    refused(one_class, HistGBRTClassifier(balanced=True), y > 2, y > 9)
    last_query = np.where(qid == qid[-1], y > 2, 0)  # it is not held out
    refused(
        one_class.format("y held out"),
        HistGBRTClassifier(balanced=True, early_stopping=True, random_state=0),
        last_query,
    )
    held_out = HistGBRTRegressor(scoring="ndcg@5", early_stopping=True)
    refused("NDCG takes labels >= 0, but {} has label -1", held_out, y - 1)


def test_what_a_loss_begins_with_is_asked_of_training_rows_only(ranking):
    X, y, _ = ranking
    model = HistGBRTRegressor("poisson", max_iter=2).fit(X, y, X_val=X, y_val=0 * y)
    assert np.isfinite(model.validation_score_).all()


def mean_error(labels, scores):
    return -np.abs(labels - scores).mean()


@pytest.mark.parametrize("loss", ["poisson", "logistic", "squared_error"])
@pytest.mark.parametrize("scoring", ["rmse", mean_error, "ndcg@5"])
def test_what_is_followed_is_what_score_says(ranking, loss, scoring):
    """Of predictions, not of their logarithms or log odds."""
    X, y, qid = ranking
    y, apart = y / 4 if loss == "logistic" else y, qid < 8
    model = HistGBRTRegressor(
        loss, max_iter=4, learning_rate=0.3, scoring=scoring, measure=scoring, early_stopping=False
    )
    held_out = {"X_val": X[apart], "y_val": y[apart], "qid_val": qid[apart]}
    model.fit(X[~apart], y[~apart], qid=qid[~apart], **held_out)
    assert model.validation_score_[-1] == pytest.approx(
        model.score(X[apart], y[apart], qid=qid[apart]), rel=1e-12
    )
    assert model.train_score_[-1] == pytest.approx(
        model.score(X[~apart], y[~apart], qid=qid[~apart]), rel=1e-12
    )


def test_early_stopping_goes_on_with_warm_start(ranking):
    X, y, qid = ranking
    rules = {
        "early_stopping": True,
        "n_iter_no_change": 30,
        "random_state": 0,
        "n_jobs": 1,
        "learning_rate": 0.03,
    }
    at_once = LambdaMARTRanker(max_iter=16, **rules).fit(X, y, qid=qid)
    ranker = LambdaMARTRanker(max_iter=8, warm_start=True, **rules).fit(X, y, qid=qid)
    if ranker.best_iteration_ == 8:
        assert ranker.set_params(max_iter=16).fit(X, y, qid=qid).ensemble_ == at_once.ensemble_
    ranker.set_params(max_iter=16).fit(X, y, qid=qid)
    assert ranker.best_iteration_ == np.argmax(ranker.validation_score_) + 1 == len(ranker.ensemble_)


@pytest.mark.parametrize("estimator", [HistGBRTRegressor, LambdaMARTRanker])
@pytest.mark.parametrize("split_search", ["full", "coarse_to_fine", "exact"])
def test_models_do_not_depend_on_threads(every_thread, ranking, estimator, split_search):
    X, y, qid = ranking
    weights = 10 ** np.random.default_rng(0).uniform(-7, 7, len(y))
    digests = {
        estimator(
            max_iter=2, max_leaf_nodes=8, subsample=0.7, max_features=0.5, early_stopping=True,
            split_search=split_search, random_state=0, n_jobs=n_jobs,
        )
        .fit(X, y, sample_weight=weights, qid=qid)
        .ensemble_.digest()
        for n_jobs in (1, 2, 3, 4)
    }  # fmt: skip
    assert len(digests) == 1


def test_models_do_not_depend_on_the_order_of_queries_rows(ranking):
    """A sum of squares knows no order; the bytes are the same for any, where rows draw no numbers."""
    X, y, _ = ranking
    order = np.random.default_rng(0).permutation(len(y))
    model = HistGBRTRegressor(max_iter=5, gradient_sampling=None, random_state=0, n_jobs=1)
    one, two = clone(model).fit(X, y), clone(model).fit(X[order], y[order])
    assert one.ensemble_.digest() == two.ensemble_.digest()


@pytest.mark.parametrize("weights", [None, 1.0])
def test_odd_data_can_be_learned(weights):
    for X in (np.zeros((1, 1)), np.full((30, 2), 7.0), np.full((30, 2), np.nan)):
        y = np.arange(len(X), dtype=float)
        sample_weight = None if weights is None else np.full(len(X), weights)
        model = HistGBRTRegressor(max_iter=3, min_samples_leaf=1, n_jobs=1).fit(
            X, y, sample_weight=sample_weight
        )
        assert model.predict(X) == pytest.approx(np.full(len(X), y.mean()))


@pytest.mark.parametrize("scale", [1e-150, 1e100, 1e150, 1e160])
@pytest.mark.parametrize("weight", [1.0, 1e110, 1e-200])
def test_labels_and_weights_of_any_size_are_learned_or_refused(scale, weight):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] + rng.normal(size=100)) * scale
    model = HistGBRTRegressor(max_iter=3, max_features=1.0, n_jobs=1)
    try:
        model.fit(X, y, sample_weight=np.full(100, weight))
    except ValueError as error:
        assert "sample_weight" in str(error)  # noqa: PT017
        assert scale >= 1e150 or scale * scale * weight > 1e290
        return
    if 1e-280 < scale * scale * weight < 1e290:
        assert np.corrcoef(model.predict(X) / scale, y / scale)[0, 1] > 0.3


@pytest.mark.filterwarnings("ignore:a leaf adds:ranktrees.FitWarning")
@pytest.mark.parametrize("learning_rate", [1.0, 5.0])
def test_confident_rows_do_no_harm(learning_rate):
    """Hessians fall to e^-score; their products must not fall to zero before the others'."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=300) > 0) * 1.0
    model = HistGBRTRegressor(
        "logistic", max_iter=60, learning_rate=learning_rate, max_features=1.0, n_jobs=1
    )
    model.fit(X, y)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("light", [1e-2, 1e-4, 1e-6])
def test_rows_of_little_weight_keep_their_mean(light):
    """What a leaf of light rows says does not depend on how much the other leaves weigh."""
    X = (np.arange(50_000) % 2).astype(float)[:, None]
    y = 1.0 + 2.0 * X[:, 0]
    model = HistGBRTRegressor(max_iter=1, learning_rate=1.0, gradient_sampling=None, n_jobs=1)
    model.fit(X, y, sample_weight=np.where(X[:, 0] == 1, light, 1.0))
    assert model.predict([[0.0], [1.0]]) == pytest.approx([1.0, 3.0], abs=1e-3)


@pytest.mark.parametrize("kind", [HistGBRTRegressor, LambdaMARTRanker])
def test_a_share_of_one_is_all_however_it_is_spelt(kind):
    X, y, qid = make_ranking(30, n_features=5, random_state=0, return_X_y_qid=True)
    fits = [kind(max_iter=5, max_features=share, random_state=0).fit(X, y, qid=qid) for share in (1, 1.0)]
    assert fits[0].ensemble_ == fits[1].ensemble_


@pytest.mark.parametrize(
    "losses", [("poisson", "squared_error"), ("squared_error", "logistic"), ("logistic", "poisson")]
)
def test_going_on_with_scores_on_another_scale_is_refused(losses):
    X, y, _ = make_ranking(30, n_features=5, random_state=0, return_X_y_qid=True)
    before, after = losses
    model = HistGBRTRegressor(before, max_iter=3, warm_start=True, random_state=0).fit(X, y > 1)
    digest = model.ensemble_.digest()
    with pytest.raises(ValueError, match="warm_start continues from scores on a different scale"):
        model.set_params(loss=after, max_iter=4).fit(X, y > 1)
    assert model.ensemble_.digest() == digest
    assert model.set_params(loss=before).fit(X, y > 1).n_iter_ == 4


ALL_AT_ONCE = {"max_features": 1.0, "gradient_sampling": None}
SEARCHES = pytest.mark.parametrize("split_search", ["full", "coarse_to_fine", "exact", "streaming"])


@SEARCHES
@pytest.mark.parametrize("kind", [HistGBRTRegressor, HistGBRTClassifier, LambdaMARTRanker])
def test_splits_gain_more_than_the_least(kind, split_search):
    X, y, qid = make_ranking(30, n_features=5, random_state=0, return_X_y_qid=True)
    grades = y > 1 if kind is HistGBRTClassifier else y
    rules = {"max_iter": 10, "subsample": 1.0, "split_search": split_search, "random_state": 0, **ALL_AT_ONCE}
    gains = tree_table(kind(**rules).fit(X, grades, qid=qid))["gain"].dropna()
    least = gains.median()
    model = kind(min_gain_to_split=least, **rules).fit(X, grades, qid=qid)
    assert 0 < len(tree_table(model)["gain"].dropna()) < len(gains)
    assert tree_table(model)["gain"].min() > least


def stump(kind, X, y, qid, weights, **parameters):
    """A sixth tree of one split: (the rows of its first leaf, gradients, hessians, what it adds)."""
    rules = {"max_iter": 6, "max_leaf_nodes": 2, "min_samples_leaf": 1, "learning_rate": 0.5, **ALL_AT_ONCE}
    model = clone(kind).set_params(**rules | parameters).fit(X, y, weights, qid=qid)
    before, after = (model.ensemble_.first(n).predict(X) for n in (5, 6))
    offsets = np.flatnonzero(np.diff(qid, prepend=-1, append=-1))
    prepared = model._objective().prepare(y.astype(float), weights, offsets)
    gradients, hessians = np.empty((2, len(y)))
    prepared.gradients(before, gradients, hessians, 5)
    leaves = model.ensemble_.leaves(X)[:, 5]
    return leaves == leaves[0], gradients, hessians, after - before


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "kind",
    [LambdaMARTRanker(), LambdaMARTRanker("ranknet"), HistGBRTClassifier(), HistGBRTRegressor("poisson")],
    ids=repr,
)
@pytest.mark.parametrize("split_search", ["full", "exact"])
def test_splits_by_least_squares_have_newton_leaves(kind, weighted, split_search):
    """Both as in LambdaSMART's algorithm 1, steps 9 and 11."""
    differ = 0
    for seed in range(6):
        X, grades, qid = make_ranking(
            8, rows_per_query=10, n_features=4, random_state=seed, return_X_y_qid=True
        )
        y = grades > 1 if isinstance(kind, HistGBRTClassifier) else grades
        weights = np.random.default_rng(seed).uniform(0.5, 3, 8)[qid] if weighted else None
        rows = kind, X, y, qid, weights
        first, gradients, hessians, added = stump(
            *rows, split_criterion="squared_error", split_search=split_search
        )
        counts = np.ones(len(y)) if weights is None else weights
        expected = slow.least_squares_stump(X, -gradients / counts, counts)
        assert_array_equal(first, expected == expected[0])
        for side in (first, ~first):
            newton = -gradients[side].sum() / hessians[side].sum()
            np.testing.assert_allclose(added[side], 0.5 * newton, rtol=1e-9)
        differ += (stump(*rows, split_search=split_search)[0] != first).any()
    assert differ


@pytest.mark.parametrize("weighted", [False, True])
def test_of_the_squared_error_newton_steps_are_least_squares(weighted):
    X, y, _ = make_ranking(30, n_features=5, random_state=0, return_X_y_qid=True)
    weights = np.random.default_rng(0).uniform(0.1, 2.0, len(y)) if weighted else None
    for sampled in ({"subsample": 0.5}, {"gradient_sampling": None}):
        models = [
            HistGBRTRegressor(max_iter=5, split_criterion=criterion, random_state=0, **sampled)
            for criterion in ("newton", "squared_error")
        ]
        one, other = (model.fit(X, y, weights).ensemble_ for model in models)
        assert one == other


@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_that_are_means_of_forces(weighted):
    X, y, qid = make_ranking(8, rows_per_query=10, n_features=4, random_state=0, return_X_y_qid=True)
    weights = np.random.default_rng(0).uniform(0.5, 3, 8)[qid] if weighted else None
    for criterion in ("newton", "squared_error"):
        means = {"leaf_values": "mean", "split_criterion": criterion, "l2_regularization": 2.0}
        first, gradients, _, added = stump(LambdaMARTRanker(), X, y, qid, weights, **means)
        counts = np.ones(len(y)) if weights is None else weights
        for side in (first, ~first):
            mean = -gradients[side].sum() / (counts[side].sum() + 2.0)
            np.testing.assert_allclose(added[side], 0.5 * mean, rtol=1e-9)


def test_bounds_are_of_the_values_that_leaves_get():
    X, y, qid = make_ranking(8, n_features=4, random_state=0, return_X_y_qid=True)
    rules = {"max_iter": 20, "monotonic_cst": [1, -1, 0, 0], "random_state": 0}
    for wrong in ({"split_criterion": "squared_error"}, {"leaf_values": "mean"}):
        with pytest.raises(ValueError, match="monotonic_cst bounds leaves by the values that splits are"):
            LambdaMARTRanker(**rules, **wrong).fit(X, y, qid=qid)
    model = LambdaMARTRanker(**rules, split_criterion="squared_error", leaf_values="mean").fit(X, y, qid=qid)
    higher, lower = X.copy(), X.copy()
    higher[:, 0] += 1
    lower[:, 1] += 1
    assert (model.predict(higher) >= model.predict(X)).all()
    assert (model.predict(lower) <= model.predict(X)).all()


@SEARCHES
def test_both_sides_of_a_split_hold_the_least_hessian(split_search):
    """That of a row is its weight, for the squared error."""
    X, y, _ = make_ranking(30, n_features=5, random_state=0, return_X_y_qid=True)
    weights = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    rules = {"max_iter": 10, "min_samples_leaf": 1, "split_search": split_search, **ALL_AT_ONCE}
    least = 60.0
    model = HistGBRTRegressor(min_hessian_to_split=least, **rules).fit(X, y, weights)
    in_leaves = [np.bincount(leaves, weights) for leaves in model.ensemble_.leaves(X).T]
    assert min(sums[sums > 0].min() for sums in in_leaves) > least - 1e-6
    assert min(len(sums) for sums in in_leaves) > 1
    by_weight = HistGBRTRegressor(min_hessian_to_split=7, **rules).fit(X, y)
    by_rows = HistGBRTRegressor(**rules | {"min_samples_leaf": 7}).fit(X, y)
    assert by_weight.ensemble_ == by_rows.ensemble_


def test_least_gains_and_hessians_are_those_of_lightgbm():
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, (3000, 6)).astype(float)
    y = X[:, 0] * X[:, 1] / 10 + rng.normal(size=3000)
    weights = rng.uniform(0.5, 2.0, 3000)
    sizes = []
    for gain, hessian in (0, 0), (40, 0), (0, 60), (0, 300):
        model = HistGBRTRegressor(
            max_iter=5,
            max_leaf_nodes=14,
            learning_rate=0.5,
            min_samples_leaf=1,
            min_gain_to_split=gain,
            min_hessian_to_split=hessian,
            **ALL_AT_ONCE,
        ).fit(X, y, weights)
        judge = lightgbm.LGBMRegressor(
            n_estimators=5,
            num_leaves=14,
            learning_rate=0.5,
            min_child_samples=1,
            min_split_gain=gain,
            min_child_weight=hessian,
            min_data_in_bin=1,
            verbose=-1,
        ).fit(X, y, weights)
        np.testing.assert_allclose(model.predict(X), judge.predict(X), atol=1e-5)
        sizes.append(len(tree_table(model)))
    assert sizes[1] < sizes[0]
    assert sizes[3] < sizes[0]
