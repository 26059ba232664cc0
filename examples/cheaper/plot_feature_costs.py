"""
What is a feature worth?
========================

Some features are read off the request; others take a fetch, or a model of their own. With ``feature_costs``
and ``cost_rule="worth"`` a split on a feature that nothing has paid for yet must be worth its price. A
feature that is paid for once is free from then on.
"""

# %%
# The data are shaped like web search: text statistics of five streams, and features of the page. A statistic
# costs nothing more once its stream is fetched, so all features of a stream become free together.

import matplotlib.pyplot as plt
import numpy as np

from ranktrees import EarlyExit, HistGBRTRegressor, make_ranking

data = make_ranking(160, "web", noise=0.5, random_state=0)
X, y, qid = data.data, data.target, data.qid
train, test = qid < 80, qid >= 80
price_of = {"body": 200, "anchor": 100, "title": 20, "url": 5, "whole document": 250}
streams = np.array([name.rpartition(", ")[2] for name in data.feature_names])
groups = [np.flatnonzero(streams == stream) for stream in price_of]
of_the_page = np.random.default_rng(0).choice([1, 5, 20, 50], len(streams))
costs = [price_of.get(stream, cost) for stream, cost in zip(streams, of_the_page, strict=True)]

# %%
# There is one model for each weight of the costs. The plot shows what it reaches with 1, 2, ... trees on
# queries it has not seen.

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
models = {}
for weight in (0, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3):
    model = HistGBRTRegressor(
        max_iter=60,
        learning_rate=0.1,
        measure="ndcg@10",
        feature_costs=costs,
        cost_rule="worth",
        cost_weight=weight,
        feature_groups=groups,
        random_state=0,
    )
    models[weight] = model.fit(X[train], y[train], qid=qid[train])
    curve = model.cost_curve(X[test], y[test], qid=qid[test])
    curve.plot(axes, label=f"cost_weight={weight:g}")
    print(f"cost_weight={weight:<6g} costs {curve.cost[-1]:3.0f}, NDCG@10 {curve.value[-1]:.3f}")
axes.legend()
plt.show()

# %%
# Each line begins with the first tree and ends with the last. Without a weight the first trees buy
# everything. With a weight they begin with features that are cheap for what they tell, and buy the rest
# later, or never.
#
# The most expensive features are often needed for few rows only: with an early exit the other rows do not pay
# for what comes later. Here four fifths of each query leave after three trees, before the expensive stream is
# fetched.

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
early_exit = EarlyExit(at=[3], drop=0.8, keep_at_least=10)
for name, exits in (("all rows", None), ("with early exit", early_exit)):
    curve = models[3e-4].cost_curve(X[test], y[test], qid=qid[test], early_exit=exits)
    curve.plot(axes, label=name)
    print(f"{name}: {curve.cost[-1]:.0f} per row, NDCG@10 {curve.value[-1]:.3f}")
axes.legend()
plt.show()
