"""A learning rate that changes from round to round."""

import copy
import itertools
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from ranks import together
from sklearn.base import clone

from ranktrees import EnsembleRanker, HistGBRTClassifier, HistGBRTRegressor, LambdaMARTRanker, make_ranking
from ranktrees.processes.communicator import training_with

X, Y, QID = make_ranking(30, rows_per_query=20, n_features=6, random_state=0, return_X_y_qid=True)
RULES = {"max_iter": 6, "max_leaf_nodes": 6, "random_state": 0, "n_jobs": 1}
CLASSES = [LambdaMARTRanker, HistGBRTRegressor, HistGBRTClassifier]


def falling(i):
    return 0.4 * 0.5**i


def digests(model):
    return [ensemble.digest() for ensemble in model._ensembles]


@pytest.mark.parametrize("cls", CLASSES)
def test_each_tree_has_the_rate_of_its_round(cls):
    """One constant rate is a schedule, and a warm start that changes the rate another."""
    same = cls(learning_rate=0.1, **RULES).fit(X, Y, qid=QID)
    assert digests(cls(learning_rate=[0.1] * 6, **RULES).fit(X, Y, qid=QID)) == digests(same)
    by_hand = cls(warm_start=True, **RULES)
    for i in range(6):
        by_hand.set_params(max_iter=i + 1, learning_rate=falling(i)).fit(X, Y, qid=QID)
    rates = [falling(i) for i in range(6)]
    for schedule in (falling, rates, np.array(rates), pd.Series(rates), dict(enumerate(rates))):
        model = cls(learning_rate=schedule, **RULES).fit(X, Y, qid=QID)
        assert digests(model) == digests(by_hand)
        assert model.learning_rate_.tolist() == rates


@pytest.mark.parametrize("cls", CLASSES)
def test_copies_and_threads(cls):
    model = cls(learning_rate=falling, **RULES).fit(X, Y, qid=QID)
    assert clone(model).get_params()["learning_rate"] is falling
    assert digests(clone(model).set_params(n_jobs=2).fit(X, Y, qid=QID)) == digests(model)
    for same in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(same.predict(X), model.predict(X))
        assert same.learning_rate_.tolist() == model.learning_rate_.tolist()

    def of_rank(communicator):
        part = slice(0, 300) if communicator.rank else slice(300, None)
        with training_with(communicator):
            return clone(model).fit(X[part], Y[part], qid=QID[part])

    assert [digests(each) for each in together(2, of_rank)] == [digests(model)] * 2


def test_early_stopping_counts_the_rates_of_the_trees_that_were_grown():
    model = LambdaMARTRanker(learning_rate=lambda i: 1.0 / (i + 1), n_iter_no_change=2, **RULES)
    model.set_params(max_iter=sys.maxsize, early_stopping=True).fit(X, Y, qid=QID)  # as many as it takes
    assert model.best_iteration_ < model.n_iter_ == len(model.learning_rate_) < 100


def test_an_interrupted_fit_goes_on_with_the_rates_of_its_rounds(tmp_path):
    calls = itertools.count()

    def scoring(labels, scores):
        if next(calls) == 200:  # of 30 training and 30 validation queries, in the fourth round
            raise KeyboardInterrupt
        return float(labels[np.argmax(scores)])

    model = LambdaMARTRanker(learning_rate=falling, scoring=scoring, **RULES)
    model.set_params(checkpoint=tmp_path / "a.ckpt", checkpoint_every=1, early_stopping=False)
    held_out = {"X_val": X, "y_val": Y, "qid_val": QID + 100}
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, qid=QID, **held_out)
    assert model.checkpoint.exists()
    model.fit(X, Y, qid=QID, **held_out)
    assert digests(model) == digests(LambdaMARTRanker(learning_rate=falling, **RULES).fit(X, Y, qid=QID))


def test_refitted_leaves_have_the_rates_of_their_trees():
    model = HistGBRTRegressor(learning_rate=falling, gradient_sampling=None, **RULES).fit(X, Y)
    again = model.refit_leaves(X, Y, decay=0.0)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-9)
    foreign = EnsembleRanker(model.ensemble_).refit_leaves(X, Y, estimator=clone(model), decay=0.0)
    np.testing.assert_allclose(foreign.predict(X), model.predict(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("schedule", "error", "message"),
    [
        ([0.1] * 5, ValueError, "learning_rate has 5 rates, but max_iter=6; expected one for each round"),
        ([0.1] * 5 + [0.0], ValueError, "learning_rate is 0.0 in round 5, counted from 0; expected a finite"),
        (lambda i: None, ValueError, "learning_rate is None in round 0"),
        (lambda i: -1.0, ValueError, "learning_rate is -1.0 in round 0"),
        ({1: 0.1, 2: 0.1, 3: 0.1, 4: 0.1, 5: 0.1, 6: 0.1}, ValueError, "learning_rate has the keys"),
        (set(range(1, 7)), TypeError, "learning_rate=.* has no order"),
        (0.0, ValueError, "learning_rate"),
    ],
)
def test_rates_that_cannot_be_meant_are_refused(schedule, error, message):
    with pytest.raises(error, match=message):
        HistGBRTRegressor(learning_rate=schedule, **RULES).fit(X, Y)
