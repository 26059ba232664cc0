"""
From a search log to a served model, 1: the log and a first ranker
==================================================================

You rank products for a living, and have a log of searches. These four pages go from there to a model that
answers requests, and that is watched and trained again. This first one reads the log, makes labels, measures
what production does now, and fits a ranker that is better.

All you need is ``pip install "ranktrees[plot]"``. The log is that of a made-up shop: :download:`shop.py
<shop.py>` writes it. Put that file beside this notebook.
"""

# %%
# Look at the log
# ---------------
#
# Each row is a product that was shown in one search. The columns have what was known before (texts that
# match, price, past sales), the score by which production ranks, and what became of it.

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ranktrees import LambdaMARTRanker, QueryTimeSeriesSplit, compare
from ranktrees.displays import ImportanceDisplay, PairedDifferenceDisplay
from ranktrees.measures import NDCG
from shop import make_log

log = make_log("2025-03-01", n_days=56)
log.head(4).T

# %%
# One line per column says what there is: types, values that are missing, and how many different ones.

pd.DataFrame(
    {
        "type": log.dtypes.astype(str),
        "missing": log.isna().mean().map("{:.1%}".format),
        "different": log.nunique(),
        "example": log.iloc[7],
    }
)

# %%
# Products without a review have no rating: no value needs to be filled in, as trees learn what a missing
# value means. ``brand`` has hundreds of levels, which needs no encoding either.
#
# Searches differ. Few texts are asked again and again, most are rare. And what is shown first is clicked
# more, partly because it is first:

searches = log.drop_duplicates("session")
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.plot(searches["query"].value_counts().to_numpy())
left.set(
    xlabel="texts of queries, most frequent first",
    ylabel="searches",
    yscale="log",
)
right.plot(log.groupby("position")["clicked"].mean())
right.set(xlabel="position at which it was shown", ylabel="share clicked", ylim=0)
plt.show()

# %%
# Labels
# ------
#
# A label says how good it was to show this product in this search. Here: 1 for a click, 2 if the product was
# put into the basket, 3 if it was bought. Any grades will do, as long as more is better. A *query* is one
# search: people chose among the products of that search, and only these are ever compared. With
# ``skipna=False`` a click that was not recorded stays missing, and ``fit`` will refuse it, rather than count
# as "not clicked".

y = log[["clicked", "carted", "bought"]].sum(axis=1, skipna=False).rename("grade")
qid = log["session"]
table = y.value_counts().sort_index().to_frame("rows")
table.assign(share=(table["rows"] / len(log)).round(3))

# %%
# Two kinds of searches teach nothing, and will matter when we measure: those without any click, and those in
# which all products have the same grade, such as searches that found a single product.

lowest, highest = y.groupby(qid).min(), y.groupby(qid).max()
print(f"{len(highest)} searches")
print(f"{(highest == 0).mean():6.1%} without a click")
decided_by_none = (highest > 0) & (lowest == highest)
print(f"{decided_by_none.mean():6.1%} all of whose products have the same grade")

# %%
# Split by time
# -------------
#
# The model will rank the searches of tomorrow, so test it on days that come after those of training. Whole
# searches go to one side: with rows of one search on both sides, the test would be too easy.
# :class:`~ranktrees.QueryTimeSeriesSplit` does both, for dates as they are in the log. (If yours are written
# in another way, ``pandas.to_datetime`` reads them.)

two_weeks = QueryTimeSeriesSplit(1, test_size=pd.Timedelta(days=14))
train, test = next(two_weeks.split(log, y, qid=qid, time=log["date"]))
parts = {"training": log.iloc[train], "test": log.iloc[test]}
days = pd.DataFrame(index=["first day", "last day", "searches", "rows"])
for name, rows in parts.items():
    first, last = rows["date"].min(), rows["date"].max()
    days[name] = [first, last, rows["session"].nunique(), len(rows)]
days

# %%
# What production does now
# ------------------------
#
# Measure it first: the number to beat is not 0. Pass a score to a measure, as you would the prediction of a
# model. Higher is better: a price is passed with a minus. ``production_score`` is what ranks today, from the
# texts and from sales.

y_test, qid_test = y.iloc[test], qid.iloc[test]
baselines = {
    "production": log["production_score"].iloc[test],
    "text match alone": log["text_score"].iloc[test],
    "cheapest first": -log["price"].iloc[test],
    "at random": np.random.default_rng(0).random(len(test)),
}
print(compare(y_test, baselines, qid=qid_test, measure=["ndcg@10", "mrr", "p@3"]))

# %%
# A letter behind a number says that the ranker is better than that of the letter, beyond chance. NDCG@10
# looks at the grades of the first ten products. The reciprocal rank (RR) and the precision (P @ 3) take every
# click for the same.
#
# .. admonition:: Searches that flatter everybody
#
#    A search without a click has no NDCG: it is left out, and counted. A search all of whose products have
#    the same grade has NDCG 1 in any order. These are the same constant in each row of the table. To look
#    only at searches where the order matters, leave them out, too:

decided = NDCG(empty_query="skip_equal") @ 10
for measure in (NDCG @ 10, decided):
    found = measure(y_test, baselines["production"], qid=qid_test)
    print(f"{measure!s:36} {found:.4f}")

# %%
# A first fit, with too much in it
# --------------------------------
#
# It is tempting to pass all columns that are numbers. Some of them are traps, of kinds that every log has.
# Here one is the label itself, under another name, and one is the number of the search. The library says so:

outcomes = ["clicked", "carted", "bought"]
everything = log.select_dtypes(["number", "bool"]).drop(columns=outcomes)
everything["value"] = y
everything["search_number"] = qid.factorize()[0]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    ranker = LambdaMARTRanker(max_iter=20, random_state=0)
    ranker.fit(everything.iloc[train], y.iloc[train], qid=qid.iloc[train])
for warning in caught:
    print(textwrap.fill(f"{warning.category.__name__}: {warning.message}", 80))

# %%
# Without these two, no warning is left, and the result is far too good to be true:

suspects = everything.drop(columns=["value", "search_number"])
leaky = LambdaMARTRanker(max_iter=20, random_state=0)
leaky.fit(suspects.iloc[train], y.iloc[train], qid=qid.iloc[train])
found = leaky.score(suspects.iloc[test], y_test, qid=qid_test)
print(f"NDCG@10 of the test searches: {found:.4f}")
ImportanceDisplay.from_estimator(leaky, kind="gain")
plt.show()

# %%
# If one column has nearly all of the gain, ask when its value is known. Seconds on the page are known after a
# click, and the click rate *of the day* includes the click that is to be predicted. Neither exists at the
# time of the search. ``ctr_30d``, the rate of the thirty days before, does.
#
# ``position`` is known, but it is what the ranker is to choose. And ``production_score`` could be a feature,
# but then production has to compute it for ever. So write down what is known when a search comes in, and pass
# nothing else:

features = [
    "text_score",
    "category_match",
    "price",
    "discount",
    "rating",
    "n_reviews",
]
features += ["sales_30d", "ctr_30d", "age_days", "n_words", "stock", "brand"]
X = log[features].astype({"stock": "category", "brand": "category"})
X.dtypes.astype(str).to_frame("type").T

# %%
# A first ranker
# --------------
#
# With its default parameters. ``random_state`` makes the fit the same, to the last byte, wherever it runs.

ranker = LambdaMARTRanker(random_state=0)
ranker.fit(X.iloc[train], y.iloc[train], qid=qid.iloc[train])
new, old = ranker.predict(X.iloc[test]), baselines["production"]
print(compare(y_test, new, old, qid=qid_test))

# %%
# Here ``a`` is the new ranker, and ``b`` production. The interval of the difference, query by query, is well
# above 0. But a better mean is not a better ranking of each search. The picture has one bar for each, from
# the clearest win to the clearest loss:

PairedDifferenceDisplay.from_predictions(
    y_test, new, old, qid=qid_test, names=("first ranker", "production")
)
plt.show()

# %%
# :meth:`~ranktrees.LambdaMARTRanker.rank` lists the best products of each search. This is the first one of
# the test:

first = log.iloc[test][(qid_test == qid_test.iloc[0]).to_numpy()]
best = ranker.rank(X.loc[first.index], qid=qid.loc[first.index], k=5)
columns = [
    "query",
    "product",
    "brand",
    "price",
    "stock",
    "position",
    "clicked",
    "bought",
]
best[["rank", "score"]].join(first[columns])

# %%
# .. note::
#
#    These labels are clicks on what production showed, and people look at the first rows most. So the log
#    favours production, and a model that learns from it learns some of that, too. If
#    yours is not better than production, this may be why.
#
# What we have decided so far is in one function, which the next pages use:
#
# .. literalinclude:: shop.py
#    :pyobject: to_rows
#
# Next: how many trees, which parameters, and whether the gain is the same for all kinds of searches.
