"""
A model for few queries
=======================

Another market has many labelled queries, and a model of them, the *background*. Ours, the *target*, has few
labelled queries. Boosting can start from the background's scores (LambdaSMART, Wu et al. 2010), its leaves
can get new values, or it can be blended with a model of our own queries.
"""

# %%
# Both markets have the same rule of relevance, but they count differently: over there every feature is
# larger, each by a factor of its own, and nothing is known of clicks. Of our queries, 60 choose what has to
# be chosen (when to stop, the decay, the weight of a blend), and 600 test. Results with few queries depend on
# luck, so each number of queries is drawn three times.

import matplotlib.pyplot as plt
import numpy as np

from ranktrees import LambdaMARTRanker, as_measure, compare_to_baseline, make_ranking, optimal_weight

web = {"kind": "web", "rows_per_query": 25, "n_features": 30, "noise": 0.5, "return_X_y_qid": True}
X_theirs, y_theirs, qid_theirs = make_ranking(400, random_state=1, **web)
X_theirs *= np.linspace(1, 2, 30, dtype=np.float32)
X_theirs[:, -3:] = 0
X, y, qid = make_ranking(900, random_state=0, **web)
validation, test = (qid >= 240) & (qid < 300), qid >= 300

ranker = {"max_leaf_nodes": 15, "random_state": 0}
background = LambdaMARTRanker(max_iter=200, **ranker).fit(X_theirs, y_theirs, qid=qid_theirs)


def ndcg(scores, rows):
    return as_measure("ndcg@10")(y[rows], scores[rows], qid=qid[rows])


def best(candidates):
    return max(candidates, key=lambda scores: ndcg(scores, validation))


def all_models(n_queries, draw):
    ours = (qid >= 80 * draw) & (qid < 80 * draw + n_queries)
    stop_early = {"X_val": X[validation], "y_val": y[validation], "qid_val": qid[validation]}

    def boosted(init):
        model = LambdaMARTRanker(init=init, max_iter=150, subsample=0.7, **ranker)
        return model.fit(X[ours], y[ours], qid=qid[ours], **stop_early).predict(X)

    def refitted(decay):
        return background.refit_leaves(X[ours], y[ours], qid=qid[ours], decay=decay).predict(X)

    theirs, alone = background.predict(X), boosted(None)
    weight = optimal_weight(y[validation], theirs[validation], alone[validation], qid=qid[validation]).weight
    return {
        "background": theirs,
        "in-domain": alone,
        "interpolation": (1 - weight) * theirs + weight * alone,
        "new leaf values": best(map(refitted, [0, 0.5, 0.9, 1])),
        "more trees": boosted(background),
    }


sizes = [5, 20, 80]
scores = {n_queries: [all_models(n_queries, draw) for draw in range(3)] for n_queries in sizes}

# %%
# With five queries of ours, a model of them alone is far behind the background; with eighty it has overtaken
# it. More trees on top of the background are best throughout, and the blend of two finished models is next.
# New leaf values improve little here, because it is the splits that are wrong: they ask for counts that our
# features do not reach.

figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
for name in scores[sizes[0]][0]:
    values = [np.mean([ndcg(drawn[name], test) for drawn in scores[n_queries]]) for n_queries in sizes]
    axes.plot(sizes, values, "o--" if name in ("background", "in-domain") else "o-", label=name)
axes.set(xscale="log", xlabel="labelled queries of ours", ylabel="NDCG@10 of test queries")
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
axes.legend()
plt.show()

# %%
# Is the difference real? Here the models of the first twenty queries of ours are compared with the
# background:

of_test_rows = {name: of_rows[test] for name, of_rows in scores[20][0].items()}
print(compare_to_baseline(y[test], of_test_rows, "background", qid=qid[test]))
