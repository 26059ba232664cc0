"""
From a click log to a ranker
============================

Clicks cost nothing, but people click on what they see, and they see what was shown at the top. This page
shows the bias, estimates it, and tries the ways around it on two kinds of users. The log is drawn, so each
way can be judged by the true labels, which a real log does not have.
"""

# %%
# A log
# -----
# A first ranker, trained on a few labelled queries, has shown its ten best rows in 8 sessions of each of 200
# queries. Rankings differ a little from session to session, as they do where offers come and go. Users
# examine the row at position :math:`k` with probability :math:`1/k`: `~ranktrees.make_clicks` draws what they
# click.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ranktrees import (
    HistGBRTClassifier,
    LambdaMARTRanker,
    as_measure,
    compare_to_baseline,
    make_clicks,
    make_ranking,
)
from ranktrees.displays import PositionBiasDisplay
from ranktrees.inspection import position_bias

SEED = 0  # another number draws other data
X, y, qid = make_ranking(
    500, rows_per_query=20, n_features=20, random_state=SEED, return_X_y_qid=True
)
few, train, test = qid < 8, qid < 200, qid >= 200
first = LambdaMARTRanker(max_iter=20, random_state=0).fit(
    X[few], y[few], qid=qid[few]
)
scores = first.predict(X[train])
rng = np.random.default_rng(SEED)
sessions = []
for number in range(8):
    shown_by = scores + 0.5 * scores.std() * rng.normal(size=len(scores))
    drawn = make_clicks(y[train], shown_by, qid=qid[train], random_state=rng)
    session = drawn.qid + 200 * number
    columns = {
        "session": session,
        "row": drawn.rows,
        "position": drawn.position,
        "clicked": drawn.target,
    }
    sessions.append(pd.DataFrame(columns))
log = pd.concat(sessions, ignore_index=True)
log.head()

# %%
# Other users read from the top, and leave with the first row that they like. What they see depends on the
# other rows, not on the position alone. This is the *cascade* model (Craswell et al. 2008). The same
# sessions, with such users:

attraction = 0.1 + 0.9 * (2.0**y - 1) / (
    2.0 ** y.max() - 1
)  # the one that make_clicks has by default
liked = pd.Series(rng.random(len(log)) < attraction[log["row"]])
log["reached"] = liked.groupby(log["session"]).cumsum() - liked == 0
log["cascade"] = (liked & log["reached"]).astype(int)
print(
    log.groupby("session")[["clicked", "cascade"]]
    .sum()
    .mean()
    .round(2)
    .to_string()
)

# %%
# Position bias
# -------------
# The lower the position, the fewer the clicks. A part of that is deserved, since rows at the top are better:
# the table has the share of rows that users like if they see them. The rest is the bias.

by_position = log.assign(liked=attraction[log["row"]]).groupby("position")
table = by_position[["clicked", "cascade", "liked", "reached"]].mean()
print(table.round(3))
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
table[["liked", "clicked", "cascade"]].plot(
    ax=axes, marker="o", xlabel="position", ylabel="share of rows"
)
plt.show()

# %%
# The estimate
# ------------
# Here a query is a session: rows that were shown together. Given ``position``, `~ranktrees.LambdaMARTRanker`
# estimates how much likelier each position is to be clicked, and not to be clicked, while it learns to rank.
# Beside it is what is true: how often positions are examined by the first kind of users, and reached by the
# second.


settings = {"learning_rate": 0.1, "max_iter": 60, "random_state": 0}
X_log, session, position = (
    X[log["row"]],
    log["session"].to_numpy(),
    log["position"].to_numpy(),
)
truth = {"clicked": 1 / np.arange(1, 11), "cascade": table["reached"].to_numpy()}
corrected = {}
figure, both = plt.subplots(
    1, 2, figsize=(9, 3.5), sharey=True, layout="constrained"
)
for (users, true), axes in zip(truth.items(), both, strict=True):
    ranker = LambdaMARTRanker(**settings).fit(
        X_log, log[users], qid=session, position=position
    )
    PositionBiasDisplay.from_estimator(ranker, ax=axes)
    axes.plot(np.arange(1, 11), true, color="grey", linestyle=":", label="truth")
    axes.set_title(f"users: {users}")
    axes.legend()
    corrected[users] = ranker
plt.show()
print(
    position_bias(corrected["clicked"])
    .to_frame()
    .assign(truth=truth["clicked"])
    .round(2)
    .T
)

# %%
# The ways around it
# ------------------
# Of the rows of the test queries, all labels are known. These ways are tried on both logs, with as many
# trees:
#
# - **clicks** as labels, as if there were no bias,
# - **position**, as above: unbiased LambdaMART,
# - **propensities**: the same with the true propensities. Small ones are raised to a floor, since they make a
#   few clicks very heavy,
# - **pairs** of a clicked row and one that was not, divided by the propensity of the clicked row,
# - **position as a feature**: the trees learn what the position explains, and scores are asked for one and
#   the same position, the first. Once in a ranker, and once in a classifier of clicks.


def pairs_of(clicked, above=False):
    """Pair each clicked row with those of its session that were not, perhaps only with those above it."""
    found = []
    for rows in np.split(
        np.arange(len(log)), np.flatnonzero(np.diff(session)) + 1
    ):
        won, lost = rows[clicked[rows] == 1], rows[clicked[rows] == 0]
        pairs = np.stack(np.meshgrid(won, lost, indexing="ij"), axis=-1).reshape(
            -1, 2
        )
        found.append(pairs[pairs[:, 1] < pairs[:, 0]] if above else pairs)
    return np.concatenate(found)


def ways(users):
    """Return the scores of the test rows by each way."""
    target = log[users].to_numpy()
    propensities = np.fmax(truth[users], 0.05)
    known = LambdaMARTRanker(propensities=propensities, **settings)
    pairs = pairs_of(target)
    weights = 1 / propensities[position[pairs[:, 0]] - 1]
    by_pairs = LambdaMARTRanker("ranknet", **settings).fit(
        X_log, pairs=pairs, pair_weight=weights, qid=session
    )
    classifier = HistGBRTClassifier(**settings).fit(with_position, target)
    return {
        "clicks": LambdaMARTRanker(**settings)
        .fit(X_log, target, qid=session)
        .predict(X[test]),
        "position": corrected[users].predict(X[test]),
        "propensities": known.fit(
            X_log, target, qid=session, position=position
        ).predict(X[test]),
        "pairs": by_pairs.predict(X[test]),
        "feature": with_feature[users].predict(at_position(1)),
        "feature, classifier": classifier.predict_proba(at_position(1))[:, 1],
    }


def at_position(k):
    """Return the test rows as if all of them were shown at one position."""
    return np.column_stack([X[test], np.full(test.sum(), k)])


with_position = np.column_stack([X_log, position])
with_feature = {
    users: LambdaMARTRanker(**settings).fit(
        with_position, log[users], qid=session
    )
    for users in truth
}
scores = {users: ways(users) for users in truth}
labels = (
    LambdaMARTRanker(**settings)
    .fit(X[train], y[train], qid=qid[train])
    .predict(X[test])
)
before = first.predict(X[test])

# %%
# Who wins
# --------
# NDCG@10 by the true labels, on 300 queries that nobody has clicked on, against clicks as they are.


comparisons = {}
for users in truth:
    of_users = scores[users] | {"first ranker": before, "labels": labels}
    comparisons[users] = compare_to_baseline(
        y[test], of_users, "clicks", qid=qid[test], measure="ndcg@10"
    )
    print(f"users: {users}\n{comparisons[users]}\n")

figure, both = plt.subplots(
    1, 2, figsize=(10, 3.5), sharex=True, layout="constrained"
)
for (users, comparison), axes in zip(comparisons.items(), both, strict=True):
    comparison.plot(ax=axes)
    axes.set_title(f"users: {users}")
plt.show()

# %%
# One draw says little. For eight of them (``SEED`` from 0 to 7), these are the mean gains over clicks as they
# are, with 95 % intervals of the mean, and in how many draws there was a gain:
#
# ==================== ======================= =======================
# way                  users: clicked          users: cascade
# ==================== ======================= =======================
# position             +.0121 ± .0082, in 7    +.0053 ± .0161, in 6
# propensities         +.0174 ± .0072, in 8    +.0214 ± .0088, in 8
# pairs                +.0165 ± .0055, in 8    +.0162 ± .0054, in 8
# feature              -.0021 ± .0068, in 2    +.0249 ± .0157, in 7
# feature, classifier  +.0101 ± .0095, in 6    +.0182 ± .0159, in 7
# labels               +.0935 ± .0134, in 8    +.1226 ± .0111, in 8
# ==================== ======================= =======================

# %%
# Whoever examines positions with a certain probability is well described by propensities, and the position as
# a feature brings nothing to the ranker. With cascades it is the other way round: whether a row is seen
# depends on the rows above it. There the position as a feature gains most, several times as much as unbiased
# LambdaMART, and as much as the true propensities, which nobody has without an experiment. No way comes near
# the labels.

# %%
# Which position?
# ---------------
# A ranker with the position as a feature has to be told one. All rows get the same, so it is no favour to
# any, but trees mix it with other features. At the first position users have looked at everything, and clicks
# say most.

measure = as_measure("ndcg@10")
for users, ranker in with_feature.items():
    values = {
        k: measure(y[test], ranker.predict(at_position(k)), qid=qid[test])
        for k in (1, 2, 5, 10)
    }
    print(
        f"{users:8}",
        "  ".join(f"at {k}: {value:.4f}" for k, value in values.items()),
    )

# %%
# A way that turns rankings over
# ------------------------------
# Rows above a click have been looked at, so it is tempting to pair a click with those alone. But then the
# better row of each pair is the one that was shown lower. If rows are shown by a model of the same features,
# the easiest thing to learn is the opposite of that model:

for users in truth:
    pairs = pairs_of(log[users].to_numpy(), above=True)
    skipped = LambdaMARTRanker("ranknet", **settings).fit(
        X_log, pairs=pairs, qid=session
    )
    print(
        f"{users:8} NDCG@10 {measure(y[test], skipped.predict(X[test]), qid=qid[test]):.4f}"
    )

# %%
# What clicks cannot tell
# -----------------------
# Which ranker is best? Clicks on the test queries, shown by the first ranker, praise the first ranker, since
# what it had put on top was clicked most. To choose a model, keep queries with labels, or ask users in an
# experiment.

drawn = make_clicks(y[test], before, qid=qid[test], n_sessions=5, random_state=0)
judged = scores["clicked"] | {"first ranker": before, "labels": labels}
by_clicks = {
    name: measure(drawn.target, found[drawn.rows], qid=drawn.qid)
    for name, found in judged.items()
}
by_labels = {
    name: measure(y[test], found, qid=qid[test]) for name, found in judged.items()
}
print(
    pd.DataFrame({"NDCG@10 of clicks": by_clicks, "of labels": by_labels}).round(
        4
    )
)

# %%
# What to do
# ----------
# - Log the position of every row that was shown, clicked or not, and an id for each session.
# - Vary the ranking a little. Where the same rows stand at other positions, position and merit can be told
#   apart.
# - Find out how your users read. If they stop at what they like, try the position as a feature, else
#   ``fit(position=...)``, or propensities from sessions in random order.
# - Judge by labels, if only of some queries. The guide has :doc:`more on each way </guide/clicks>`.
