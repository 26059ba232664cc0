"""Algorithm 2 of Mohan's survey, section 2.2, row by row."""

from itertools import count

import numpy as np


def predicted(X, forest_of, tol):
    """Fill gaps by forests of the features that every row has: (X without gaps, rounds).

    Where the text is in doubt: a feature does not predict itself, although its gaps are filled by then; only
    values that were there from the start are learned from; and predictions have settled when the root of
    their mean squared change, in standard deviations of their features, is at most ``tol``.
    """
    x = X.copy()
    n, f = x.shape
    gaps = {(i, j) for i in range(n) for j in range(f) if np.isnan(x[i, j])}
    for n_rounds in count(1):
        before = x.copy()
        for feature in range(f):
            features_of_rows = [{j for j in range(f) if not np.isnan(x[i, j])} for i in range(n)]
            common = sorted(set.intersection(*features_of_rows) - {feature})
            having = [i for i in range(n) if (i, feature) not in gaps]
            if len(having) < n:
                forest = forest_of(feature).fit(
                    x[having][:, common], x[having, feature], qid=[0] * len(having)
                )
                for i in set(range(n)).difference(having):
                    x[i, feature] = forest.predict(x[i : i + 1, common])[0]
        changes = [(x[i, j] - before[i, j]) / np.nanstd(X[:, j]) for i, j in gaps]
        if np.sqrt(np.mean(np.square(changes))) <= tol:
            return x, n_rounds
