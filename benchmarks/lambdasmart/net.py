"""LambdaRank: a net of two layers, trained by the gradients that LambdaMART took over from it.

Burges, Ragno, Le, *Learning to rank with nonsmooth cost functions*, NIPS 2006.
"""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from ranktrees import as_measure
from ranktrees.measures import discounts, gains
from ranktrees.rows import query_offsets


def lambdas(labels, scores):
    r"""What pushes each row up, and those below it down.

    .. math:: \lambda_i = \sum_{j: y_j < y_i} \frac{|\Delta_{ij}|}{1 + e^{s_i - s_j}}
              - \sum_{j: y_j > y_i} \frac{|\Delta_{ij}|}{1 + e^{s_j - s_i}},

    where :math:`\Delta_{ij}` is what NDCG changes when the two swap places.

    Parameters
    ----------
    labels, scores : ndarray of shape (n_queries, n_rows)

    Returns
    -------
    ndarray of float64, shape (n_queries, n_rows)
        A row sums to 0.
    """
    places = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)
    discount = discounts(labels.shape[1])
    gain = gains(labels.ravel()).reshape(labels.shape)
    ideal = (-np.sort(-gain, axis=1) * discount).sum(axis=1)
    gain = gain / np.maximum(ideal, 1)[:, None]
    worth = discount[places]
    better = gain[:, :, None] - gain[:, None, :]
    change = np.abs(better * (worth[:, :, None] - worth[:, None, :]))
    side = np.sign(better)
    gap = scores[:, :, None] - scores[:, None, :]
    return (side * change / (1 + np.exp(side * gap))).sum(axis=2)


class LambdaRankNet(RegressorMixin, BaseEstimator):
    """``tanh(X V + b) w``, raised along `lambdas` by Adam; the epoch best for validation queries is kept.

    Parameters
    ----------
    n_hidden : int, default=32
    learning_rate : float, default=0.003
    batch : int, default=20
        Queries to a step; all queries have the same number of rows.
    max_epochs : int, default=100
    patience : int, default=10
        Epochs without a better NDCG@10 of the validation queries before training stops.
    random_state : int, default=0
    """

    def __init__(
        self, n_hidden=32, *, learning_rate=0.003, batch=20, max_epochs=100, patience=10, random_state=0
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
        n_rows = np.count_nonzero(train.qid == train.qid[0])
        X = train.X.reshape(-1, n_rows, train.X.shape[1])
        y = train.y.reshape(-1, n_rows)
        n_features = X.shape[2]
        self.mean_, self.scale_ = train.X.mean(axis=0), train.X.std(axis=0) + 1e-9
        self.weights_ = [
            rng.normal(0, n_features**-0.5, (n_features, self.n_hidden)),
            np.zeros(self.n_hidden),
            rng.normal(0, self.n_hidden**-0.5, self.n_hidden),
        ]
        moments = [(np.zeros_like(weight), np.zeros_like(weight)) for weight in self.weights_]
        _, offsets = query_offsets(validation.qid, len(validation.qid))
        measure = as_measure("ndcg@10")
        best, kept, n_steps = -np.inf, self.weights_, 0
        for epoch in range(self.max_epochs):
            order = rng.permutation(len(X))
            for start in range(0, len(X), self.batch):
                queries = order[start : start + self.batch]
                n_steps += 1
                self._step(X[queries], y[queries], moments, n_steps)
            reached = measure.mean(validation.y, self.predict(validation.X), offsets)
            if reached > best:
                best, kept, self.n_epochs_ = reached, self.weights_, epoch + 1
            elif epoch + 1 - self.n_epochs_ >= self.patience:
                break
        self.weights_ = kept
        return self

    def _step(self, X, y, moments, n_steps):
        rows = self._standardised(X.reshape(-1, X.shape[2]))
        V, b, w = self.weights_
        hidden = np.tanh(rows @ V + b)
        push = lambdas(y, (hidden @ w).reshape(y.shape)).ravel() / len(y)
        back = push[:, None] * w * (1 - hidden**2)
        upwards = (rows.T @ back, back.sum(axis=0), hidden.T @ push)
        raised = []
        for weight, gradient, (first, second) in zip(self.weights_, upwards, moments, strict=True):
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient**2 - second)
            rate = self.learning_rate * np.sqrt(1 - 0.999**n_steps) / (1 - 0.9**n_steps)
            raised.append(weight + rate * first / (np.sqrt(second) + 1e-8))
        self.weights_ = raised

    def _standardised(self, X):
        return (X - self.mean_) / self.scale_

    def predict(self, X):
        V, b, w = self.weights_
        return np.tanh(self._standardised(X) @ V + b) @ w
