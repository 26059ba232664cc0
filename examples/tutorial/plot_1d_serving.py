"""
From a search log to a served model, 4: serving, watching, training again
=========================================================================

A model that is good today goes into a file, from the file into a service, and is watched from then on. This
page also has what comes four weeks later, when the shop is no longer the same.
"""

# %%
# The model is fitted to the eight weeks of :doc:`the log <plot_1a_log>`, with as many trees as :doc:`early
# stopping <plot_1b_tuning>` has found.

import json
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import matplotlib.pyplot as plt
import pandas as pd
import uvicorn

from ranktrees import (
    Ensemble,
    EnsembleRanker,
    LambdaMARTRanker,
    RecordScorer,
    compare_to_baseline,
    drift,
)
from ranktrees.evaluation import per_query_table
from shop import make_log, to_rows

log = make_log("2025-03-01", n_days=56)
X, y, qid = to_rows(log)
ranker = LambdaMARTRanker(max_iter=150, random_state=0).fit(X, y, qid=qid)
ranker

# %%
# One file
# --------
#
# ``save`` writes the trees, and what they know of the columns: names, their order, and the levels of
# categories. No code is in the file, and nothing is run when it is read.

path = Path(tempfile.mkdtemp(), "shop.rkt")
ranker.save(path)
ensemble = Ensemble.load(path)
print(f"{path.stat().st_size / 1024:.0f} KiB, {len(ensemble)} trees")
print(f"SHA-256: {ensemble.digest()}")
print(textwrap.fill(f"columns: {', '.join(ensemble.feature_names)}", 80))
for column, levels in ensemble.category_levels.items():
    name = ensemble.feature_names[column]
    print(f"{name}: {len(levels)} levels, from {levels[0]!r} to {levels[-1]!r}")

# %%
# What it does not keep are the parameters of the estimator and the rows. Write these down elsewhere: the
# version of the code, the days that were trained on, and the numbers that it was chosen by. The loaded model
# gives the same scores, to the last bit, and refuses a frame whose columns are not those of training:

served = EnsembleRanker(ensemble, n_jobs=1)
print("same scores:", (served.predict(X) == ranker.predict(X)).all())
try:
    served.predict(X.rename(columns={"price": "price_eur"}))
except ValueError as error:
    print(error)

# %%
# Records instead of frames
# -------------------------
#
# A server has records, as JSON has them. :class:`~ranktrees.RecordScorer` takes these as they are, in
# microseconds. A value that lacks, ``None``, and a brand that it has never seen are missing values. A key
# that it does not know is an error, as a misspelt name would pass for a missing value:

score = RecordScorer(served, ignore=["id"])
search = X[qid == qid.iloc[-1]].assign(id=log["product"])
candidates = json.loads(search.to_json(orient="records"))
start = time.perf_counter()
scores = score(candidates)
seconds = time.perf_counter() - start
print(f"{len(scores)} candidates in {1e6 * seconds:.0f} microseconds")
print(score([{"price": 19.9, "text_score": 17.0, "brand": "Nobody"}, {}]))
try:
    score([{"prize": 19.9, "text_score": 17.0}])
except ValueError as error:
    print(textwrap.fill(str(error), 80))

# %%
# A service
# ---------
#
# ``examples/service.py`` is a complete one, in thirty lines of FastAPI (``pip install fastapi uvicorn``):
# ``python service.py shop.rkt --port 8000``. Here it runs in a thread, and answers a request:

sys.path.append("..")  # the folder of service.py
from service import make_app

server = uvicorn.Server(
    uvicorn.Config(make_app(path), port=0, log_level="warning")
)
threading.Thread(target=server.run, daemon=True).start()
while not server.started:
    time.sleep(0.01)
port = server.servers[0].sockets[0].getsockname()[1]


def ask(candidates, k=10):
    url, kind = (
        f"http://127.0.0.1:{port}/rank",
        {"Content-Type": "application/json"},
    )
    body = json.dumps({"candidates": candidates, "k": k}).encode()
    with urlopen(Request(url, body, kind)) as answer:
        return json.load(answer)


print("sent:", json.dumps(candidates[0], indent=1))
pd.DataFrame(ask(candidates, k=5))

# %%
# Faulty requests get the message of the library, with the number of the record and the key:

try:
    ask([{"id": "P1", "price": 19.9}, {"id": "P2", "price": "19,90"}])
except HTTPError as error:
    print(textwrap.fill(f"{error.code} {json.load(error)['detail']}", 80))
server.should_exit = True

# %%
# Four weeks later
# ----------------
#
# The log has gone on. Nothing has failed, no request was refused. So ask whether the rows of last week are
# like those of training. Keep the latter, or a sample of them, for this:

later = make_log("2025-04-26", n_days=28)
X_later, y_later, qid_later = to_rows(later)
last_week = later["date"] >= "2025-05-17"
changes = drift(X, X_later[last_week])
columns = ["missing_before", "missing", "unseen", "outside", "psi", "ks"]
changes.sort_values("psi", ascending=False)[columns].round(3)

# %%
# By custom a stability index (``psi``) above .25 is much. There are more discounts, the feed of ratings lost
# a third of its values, new products have no click rate yet, and one row in twenty has a brand that no tree
# knows. Such a brand counts as missing:

new_brands = changes.loc["brand", "unseen_categories"]
print(f"{len(new_brands)} new brands: {', '.join(new_brands[:8])} ...")

# %%
# Drift says that rows are others, not that they are ranked worse. Clicks say that, a little later. The model
# is compared with production week by week, on the same searches. Look at the difference: a mean by itself
# also moves because searches get harder or easier.

scores = {
    "model": served.predict(X_later),
    "production": later["production_score"],
}
values = per_query_table(y_later, scores, qid=qid_later).droplevel(1, axis=1)
gain = values["model"] - values["production"]
day = pd.to_datetime(later.groupby("session")["date"].first())
week = day - pd.to_timedelta((day - day.min()).dt.days % 7, "D")
by_week = gain.groupby(week.rename("week from")).agg(["mean", "sem", "count"])
names, error = by_week.index.strftime("%d %b"), 1.96 * by_week["sem"]
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.errorbar(names, by_week["mean"], yerr=error, marker="o", capsize=4)
axes.axhline(0, color="grey", linewidth=1)
axes.set(xlabel="week from", ylabel="NDCG@10 above production")
plt.show()
by_week.round(4)

# %%
# Training again
# --------------
#
# There are three ways, from the cheapest. New values for the leaves of the old trees, more trees on top of
# the old ones, and a new fit. The first two start from the file. All three learn from the first three weeks
# of the new log, the new fit also from the old one, and the last week is the judge. (If you have kept the
# estimator itself, as a pickle, its ``warm_start=True`` adds trees as ``init=`` does here.)

fresh = ~last_week
rows = {"X": X_later[fresh], "y": y_later[fresh], "qid": qid_later[fresh]}
like = LambdaMARTRanker(learning_rate=ranker.learning_rate_)
refitted = served.refit_leaves(**rows, decay=0.5, estimator=like)
more_trees = LambdaMARTRanker(init=served, max_iter=60, random_state=0).fit(
    **rows
)
X_both, y_both, qid_both = to_rows(
    pd.concat([log, later[fresh]], ignore_index=True)
)
new_fit = LambdaMARTRanker(max_iter=150, random_state=0)
new_fit.fit(X_both, y_both, qid=qid_both)
models = {
    "as saved": served,
    "new leaf values": refitted,
    "more trees": more_trees,
    "new fit": new_fit,
}
X_week, y_week, qid_week = (
    X_later[last_week],
    y_later[last_week],
    qid_later[last_week],
)
scores = {name: model.predict(X_week) for name, model in models.items()}
result = compare_to_baseline(y_week, scores, "as saved", qid=qid_week)
print(result)

# %%
result.plot()
plt.show()

# %%
# With 280 searches the interval says how sure this is. Where the old trees are kept, they still do not know
# the brands that are new since; the trees on top and the new fit do:

for name, model in models.items():
    unknown = drift(model, X_week).loc["brand", "unseen_categories"]
    print(f"{name}: {len(unknown)} unknown brands")

# %%
# What to watch
# -------------
#
# - **Every hour**: answers that are not 200, their time, and scores. A score that is the same for all
#   candidates means that features do not arrive.
# - **Every day**: ``drift`` between the rows of training and those that the service got. Log the records that
#   were scored: features that are computed anew for training are the most frequent reason why a model is
#   worse in service than in its test.
# - **Every week**: the difference to production on the same searches, for head and tail.
# - **Before each change**: ``compare_to_baseline`` against what is served, on days that none of them has
#   seen. Keep the old file, as the way back.
#
# In the end only an experiment with users decides: a log is about what was shown. The guide has more on
# :doc:`measures </guide/measures>`, :doc:`comparing </guide/comparing>`, :doc:`saving </guide/saving>` and
# :doc:`scoring </guide/scoring>`.
