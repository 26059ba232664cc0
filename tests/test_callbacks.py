import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker, make_ranking
from ranktrees.model.ensemble import Ensemble
from ranktrees.objectives import as_objective
from ranktrees.rows import FitData
from ranktrees.rows.sampling import RowSampler
from ranktrees.training.boosting import FollowedRows, boost
from ranktrees.training.callbacks import EarlyStopping, PrintedLines, Progress, ProgressBar
from reference import growing as slow


def progress_of(iteration, validation_score=None, train_score=None, n_iterations=100):
    return Progress(iteration, n_iterations, train_score, validation_score, lambda: None)


# ---- early stopping ---------------------------------------------------------------------------------


def stopped_at(stopping, scores, first=1):
    """The number of trees when it asks to stop, or None."""
    for iteration, score in enumerate(scores, start=first):
        if stopping(progress_of(iteration, score)):
            return iteration
    return None


def slowly(scores, n_iter_no_change, tol):
    """(iteration of the stop or None, best iteration)."""
    best = 0
    for i, score in enumerate(scores):
        best = i if score > scores[best] + tol else best
        if i - best >= n_iter_no_change:
            return i + 1, best + 1
    return None, best + 1


@given(
    scores=st.lists(st.integers(-3, 6).map(float), min_size=1, max_size=30),
    n_iter_no_change=st.integers(1, 6),
    tol=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_stops_as_the_slow_twin_does(scores, n_iter_no_change, tol):
    stopping = EarlyStopping(n_iter_no_change, tol)
    assert (stopped_at(stopping, scores), stopping.best_iteration) == slowly(scores, n_iter_no_change, tol)


@given(scores=st.lists(st.integers(0, 9).map(float), min_size=2, max_size=20), n_earlier=st.integers(0, 19))
def test_past_scores_count(scores, n_earlier):
    past, rest = scores[:n_earlier], scores[n_earlier:]
    whole, resumed = EarlyStopping(1000, 0.0), EarlyStopping(1000, 0.0, past)
    stopped_at(whole, scores)
    stopped_at(resumed, rest, first=len(past) + 1)
    assert (whole.best_iteration, whole.best_score) == (resumed.best_iteration, resumed.best_score)


def test_the_first_of_equal_scores_is_best():
    stopping = EarlyStopping(3, 0.0)
    assert stopped_at(stopping, [1.0, 2.0, 2.0, 2.0, 2.0]) == 5
    assert (stopping.best_iteration, stopping.best_score) == (2, 2.0)


def test_scores_that_are_no_numbers_are_never_better():
    stopping = EarlyStopping(2, 0.0)
    assert stopped_at(stopping, [1.0, np.nan, np.nan]) == 3
    assert stopping.best_iteration == 1
    stopping = EarlyStopping(3, 0.0)
    assert stopped_at(stopping, [-np.inf, -5.0, -4.0]) is None
    assert stopping.best_iteration == 3


# ---- what the loop tells ----------------------------------------------------------------------------


def boosted(callbacks, *, n_rounds=6, first=0, follow_train=False, validate=False):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, (60, 2)).astype(float)
    mapper = slow.mapper_of([8, 8])
    codes = slow.readable(X.astype(np.uint8))
    data = FitData(X, X[:, 0] + rng.normal(size=60), None, None, np.array([0, 60]), False)
    prepared = as_objective("squared_error").prepare(data.labels, None, data.offsets)
    return boost(
        lambda: slow.grower_of(codes, mapper, max_leaf_nodes=4),
        prepared,
        FollowedRows(None, prepared, data, np.zeros(60)),
        learning_rate=0.3,
        rounds=range(first, n_rounds),
        sampler=RowSampler(data.offsets),
        seed=0,
        validation=FollowedRows(None, prepared, data, np.zeros(60), 1, codes, mapper) if validate else None,
        follow_train=follow_train,
        callbacks=callbacks,
        ensemble_of=lambda trees: Ensemble.from_trees([nodes for nodes, _ in trees], n_features=2),
    )


@pytest.mark.parametrize("follow_train", [False, True])
@pytest.mark.parametrize("validate", [False, True])
def test_callbacks_see_every_progress(follow_train, validate):
    seen, sizes = [], []

    def look(progress):
        seen.append(progress)
        sizes.append(len(progress.ensemble()))

    _, train_scores, validation_scores = boosted([look], follow_train=follow_train, validate=validate)
    assert [progress.iteration for progress in seen] == [1, 2, 3, 4, 5, 6] == sizes
    assert {progress.n_iterations for progress in seen} == {6}
    none = [None] * 6
    assert [progress.train_score for progress in seen] == (train_scores if follow_train else none)
    assert [progress.validation_score for progress in seen] == (validation_scores if validate else none)
    if follow_train and validate:
        assert train_scores == validation_scores


def test_iterations_count_the_trees_that_were_there():
    seen = []
    boosted([lambda progress: seen.append((progress.iteration, progress.n_iterations))], first=4)
    assert seen == [(5, 6), (6, 6)]


@pytest.mark.parametrize("who", [0, 1, 2])
def test_any_may_stop_and_all_are_called(who):
    calls = [0, 0, 0]

    def callback(number):
        def look(progress):
            calls[number] += 1
            return number == who and progress.iteration == 3

        return look

    trees, _, _ = boosted([callback(number) for number in range(3)])
    assert len(trees) == 3
    assert calls == [3, 3, 3]


def test_progress_cannot_be_changed():
    with pytest.raises(AttributeError):
        progress_of(1).iteration = 2


# ---- what is shown ----------------------------------------------------------------------------------


def test_lines(capsys):
    lines = PrintedLines("Model", 2)
    for iteration in range(1, 6):
        assert lines(progress_of(iteration, 0.25, -0.5, n_iterations=5)) is False
    lines(progress_of(4))
    lines.close()
    assert capsys.readouterr().out.splitlines() == [
        "Model: 2 of 5 trees, train -0.50000, validation 0.25000",
        "Model: 4 of 5 trees, train -0.50000, validation 0.25000",
        "Model: 5 of 5 trees, train -0.50000, validation 0.25000",
        "Model: 4 of 100 trees",
    ]


def test_bar(capsys):
    pytest.importorskip("tqdm")
    bar = ProgressBar("Model", 10)
    for iteration in (3, 4, 10):
        assert bar(progress_of(iteration, 0.25, n_iterations=10)) is False
    assert bar.bar.n == 10
    bar.close()
    shown = capsys.readouterr().err
    assert "Model" in shown
    assert "validation=0.2500" in shown
    assert "train=" not in shown


def test_bar_without_tqdm_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install"):
        ProgressBar("Model", 3)
    for estimator in (LambdaMARTRanker(verbose="bar"), RandomForestRanker(verbose="bar")):
        with pytest.raises(ImportError, match="pip install"):
            estimator.fit("rows that nobody has read")


@pytest.mark.parametrize(
    ("estimator", "every"),
    [
        (HistGBRTRegressor(max_iter=5), r"HistGBRTRegressor: \d of 5 trees, train -\d\.\d{5}"),
        (LambdaMARTRanker(max_iter=5), r"LambdaMARTRanker: \d of 5 trees, train \d\.\d{5}"),
        (RandomForestRanker(5), r"RandomForestRanker: \d of 5 trees"),
    ],
)
def test_verbose(capsys, estimator, every):
    X, y, qid = make_ranking(8, random_state=0, return_X_y_qid=True)
    quiet = estimator.set_params(random_state=0, n_jobs=1).fit(X, y, qid=qid).ensemble_
    assert capsys.readouterr().out == ""
    assert estimator.set_params(verbose=2).fit(X, y, qid=qid).ensemble_ == quiet
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(re.fullmatch(every, line) for line in lines)


# ---- scikit-learn's callbacks -----------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [HistGBRTRegressor(max_iter=7), RandomForestRanker(7)])
def test_scikit_learn_callbacks(estimator):
    pytest.importorskip("sklearn.callback")
    X, y, qid = make_ranking(8, random_state=0, return_X_y_qid=True)
    estimator.set_params(random_state=0, n_jobs=1)
    plain = estimator.fit(X, y, qid=qid).ensemble_
    after_four, told = estimator.predict(X, n_trees=4), []

    class Listener:
        """Writes down what it is told, and may stop after four trees."""

        stops = False

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, **arguments):
            told.append(("begin", context.task_name))

        def on_fit_task_end(self, estimator, context, *, y, fitted_estimator, **arguments):
            told.append(("end", context.task_name))
            if context.task_name == "tree 4":
                assert y.tolist() == labels.tolist()
                assert fitted_estimator.predict(X).tolist() == after_four.tolist()
                return self.stops
            return False

    labels, listener = y, Listener()
    assert fresh(estimator).set_callbacks(listener).fit(X, y, qid=qid).ensemble_ == plain
    trees = [(what, name) for what, name in told if name.startswith("tree")]
    assert trees == [(what, f"tree {i}") for i in range(1, 8) for what in ("begin", "end")]
    listener.stops = True
    assert fresh(estimator).set_callbacks(listener).fit(X, y, qid=qid).ensemble_ == plain.first(4)


@pytest.mark.parametrize("estimator", [HistGBRTRegressor(max_iter=3), RandomForestRanker(3)])
def test_a_callback_that_raises_leaves_the_estimator_as_it_was(estimator):
    pytest.importorskip("sklearn.callback")
    X, y, qid = make_ranking(8, random_state=0, return_X_y_qid=True)

    class Raising:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, **arguments):
            if context.task_name == "tree 2":
                raise LookupError("no such tree")

    estimator = fresh(estimator).fit(X, y, qid=qid)
    before = vars(estimator).copy()
    with pytest.raises(LookupError, match="no such tree"):
        estimator.set_callbacks(Raising()).fit(X[:100], y[:100], qid=qid[:100])
    now = vars(estimator)
    assert {name: now[name] for name in before} == before


def test_scikit_learn_callbacks_see_the_scores_that_are_followed():
    pytest.importorskip("sklearn.callback")
    X, y, qid = make_ranking(12, random_state=0, return_X_y_qid=True)
    held_out = {"X_val": X[qid >= 8], "y_val": y[qid >= 8], "qid_val": qid[qid >= 8]}

    class Listener:
        def setup(self, estimator, context):
            self.seen = []

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            if context.task_name != "fit":
                self.seen.append((fitted_estimator.train_score_, fitted_estimator.validation_score_))

    def fitted(ranker, **rows):
        return ranker.set_callbacks(listener).fit(X[qid < 8], y[qid < 8], qid=qid[qid < 8], **rows)

    listener = Listener()
    ranker = LambdaMARTRanker(max_iter=4, early_stopping=False, random_state=0)
    ranker = fitted(ranker, **held_out)
    assert len(listener.seen) == 4
    for n, (of_training, of_validation) in enumerate(listener.seen, start=1):
        assert of_training.tolist() == ranker.train_score_[:n].tolist()
        assert of_validation.tolist() == ranker.validation_score_[:n].tolist()
    ranker = fitted(ranker.set_params(max_iter=6, warm_start=True), **held_out)
    assert [len(scores) for pair in listener.seen for scores in pair] == [5, 5, 6, 6]
    assert listener.seen[-1][1].tolist() == ranker.validation_score_.tolist()
    ranker = fitted(LambdaMARTRanker(max_iter=2, random_state=0))  # follows nothing
    assert [scores.tolist() for pair in listener.seen for scores in pair] == [[]] * 4
    fitted(ranker.set_params(max_iter=3, warm_start=True), **held_out)  # no training scores of trees 1 and 2
    assert [scores.tolist() for scores in listener.seen[0]] == [[], ranker.validation_score_.tolist()]


def fresh(estimator):
    return type(estimator)(**estimator.get_params())
