"""LambdaRank: a net of two layers, trained by the forces that LambdaMART took over from it.

Burges, Ragno, Le, *Learning to rank with nonsmooth cost functions*, NIPS 2006.
"""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from ranktrees import as_measure
from ranktrees.objectives import LambdaMART
from ranktrees.rows import query_offsets

FORCES = LambdaMART("ndcg@10", delta="cut", truncation_level=None)  # those of the paper


class LambdaRankNet(RegressorMixin, BaseEstimator):
    """``tanh(X V + b) w``, moved along `FORCES` by Adam; the epoch best for validation queries is kept.

    Parameters
    ----------
    n_hidden : int, default=10
    learning_rate : float, default=0.003
    batch : int, default=20
        Queries to a step.
    max_epochs : int, default=100
    patience : int, default=10
        Epochs without a better NDCG@10 of the validation queries before training stops.
    random_state : int, default=0
    """

    def __init__(
        self, n_hidden=10, *, learning_rate=0.003, batch=20, max_epochs=100, patience=10, random_state=0
    ):
        self.n_hidden = n_hidden
        self.learning_rate = learning_rate
        self.batch = batch
        self.max_epochs = max_epochs
        self.patience = patience
        self.random_state = random_state

    def fit(self, train, validation):
        """Both are rows of whole queries (`benchmarks.survey.sets.Rows`)."""
        rng = np.random.default_rng(self.random_state)
        n_features = train.X.shape[1]
        self.mean_, self.scale_ = train.X.mean(axis=0), train.X.std(axis=0) + 1e-9
        self.weights_ = [
            rng.normal(0, n_features**-0.5, (n_features, self.n_hidden)),
            np.zeros(self.n_hidden),
            rng.normal(0, self.n_hidden**-0.5, self.n_hidden),
        ]
        moments = [(np.zeros_like(weight), np.zeros_like(weight)) for weight in self.weights_]
        _, offsets = query_offsets(train.qid, len(train.qid))
        _, to_validate = query_offsets(validation.qid, len(validation.qid))
        X, measure = self._standardised(train.X), as_measure("ndcg@10")
        best, kept, n_steps = -np.inf, self.weights_, 0
        for epoch in range(self.max_epochs):
            order = rng.permutation(len(offsets) - 1)
            for start in range(0, len(order), self.batch):
                queries = order[start : start + self.batch]
                rows = np.concatenate([np.arange(*offsets[query : query + 2]) for query in queries])
                sizes = np.diff(offsets)[queries]
                n_steps += 1
                self._step(X[rows], train.y[rows], np.append(0, np.cumsum(sizes)), moments, n_steps)
            reached = measure.mean(validation.y, self.predict(validation.X), to_validate)
            if reached > best:
                best, kept, self.n_epochs_ = reached, self.weights_, epoch + 1
            elif epoch + 1 - self.n_epochs_ >= self.patience:
                break
        self.weights_ = kept
        return self

    def _step(self, X, y, offsets, moments, n_steps):
        V, b, w = self.weights_
        hidden = np.tanh(X @ V + b)
        gradients, hessians = np.empty((2, len(y)))
        FORCES.prepare(y, None, offsets).gradients(hidden @ w, gradients, hessians)
        gradients /= len(offsets) - 1
        back = gradients[:, None] * w * (1 - hidden**2)
        downwards = (X.T @ back, back.sum(axis=0), hidden.T @ gradients)
        moved = []
        for weight, gradient, (first, second) in zip(self.weights_, downwards, moments, strict=True):
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient**2 - second)
            rate = self.learning_rate * np.sqrt(1 - 0.999**n_steps) / (1 - 0.9**n_steps)
            moved.append(weight - rate * first / (np.sqrt(second) + 1e-8))
        self.weights_ = moved

    def _standardised(self, X):
        return (X - self.mean_) / self.scale_

    def predict(self, X):
        V, b, w = self.weights_
        return np.tanh(self._standardised(X) @ V + b) @ w
