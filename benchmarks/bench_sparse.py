"""Sparse, wide and rare: time, memory and accuracy on data as shops and text have them, beside LightGBM.

    python benchmarks/bench_sparse.py cost [--sets wide zipf words more_words flags] [--trees 100]
    python benchmarks/bench_sparse.py accuracy [--kinds ...] [--draws 5] [--equal]

``cost`` has CSR matrices of float32, of which everybody fits ``--trees`` trees with its own defaults (31
leaves, rate .1):

wide        20,000 rows of 50,000 columns, 30 entries a row, in columns of equal probability
zipf        the same, the n-th column with probability 1/n, entries of -1 and 1
words       FeatureHasher(2**18): 1,000 rows of 40 words, whose frequencies follow Zipf's law
more_words  50,000 rows of these
flags       1,000,000 rows of 2,000 flags, each on in up to 2 % of the rows
shop        200,000 rows of 30 numbers, 400 flags, and categories of 50, 3,000 and 30,000 levels

Each library has a process of its own for each set, pinned to ``--threads`` processors (see turns.py), and the
libraries take turns. Seconds are those of a whole ``fit``; "above" is the peak of the first fit above what
the process had before, in MB, by Linux; scoring is ``predict`` of all rows from CSR. Figures are medians of
repeats, and ratios are of LightGBM's to ours, with the range.

``accuracy`` draws each kind of data anew with each seed, 200 queries of 40 rows to train and 200 to test
(1,500 for a category of 3,000 levels), and prints the mean NDCG@10 of the test queries, with the t of what
ours has more, by query, over all draws.
Everybody has its own defaults, for the number of trees and the rate, too; "all bins" is ours with
split_search="full", and "our trees" is LightGBM with as many trees as ours, of the same rate. With
``--equal`` all have ``--trees`` trees of 31 leaves and the rate .1.
"""

import argparse
import sys
import tempfile
import time
from functools import partial

import numpy as np
from scipy import sparse
from scipy.stats import ttest_1samp
from sklearn.feature_extraction import FeatureHasher
from turns import Process, interleaved, print_refusals, ratio

ROWS_PER_QUERY = 20
TREES, LEAVES, RATE = 100, 31, 0.1


# ------------------------------------------------------------------------------------------------------- rows


def entries(rng, n_rows, n_columns, in_row, law):
    """Rows with so many entries each, at columns drawn by 1 / n**law."""
    shares = np.arange(1, n_columns + 1.0) ** -law
    found = np.searchsorted(np.cumsum(shares / shares.sum()), rng.random(n_rows * in_row))
    columns = rng.permutation(n_columns)[np.minimum(found, n_columns - 1)]
    values = rng.choice([-1.0, 1.0], len(columns)) if law else np.ones(len(columns))
    rows = np.repeat(np.arange(n_rows), in_row)
    return sparse.csr_array((values.astype(np.float32), (rows, columns)), shape=(n_rows, n_columns))


def words(rng, n_rows, n_words=200_000, in_row=40):
    """Hashed words."""
    found = np.minimum(rng.zipf(1.3, (n_rows, in_row)), n_words)
    texts = ([f"word {word}" for word in row] for row in found.tolist())
    return FeatureHasher(2**18, input_type="string", dtype=np.float32).transform(texts)


def flags(rng, n_rows, n_columns, most=0.02):
    """Flags, each on in a share of the rows of its own, up to ``most``."""
    on = rng.binomial(n_rows, most * rng.random(n_columns))
    rows, columns = rng.integers(0, n_rows, on.sum()), np.repeat(np.arange(n_columns), on)
    X = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n_rows, n_columns))
    X.data[:] = 1  # also where a row was drawn twice
    return X


def levels_of(rng, n, numbers):
    """Categories, a column for each number of levels; the k-th level of one has the probability 1/k."""
    laws = (np.cumsum(1 / np.arange(1, number + 1.0)) for number in numbers)
    return np.column_stack([np.searchsorted(law / law[-1], rng.random(n)) for law in laws])


def shop(rng, n):
    shown = sparse.csr_matrix(rng.normal(size=(n, 30)).astype(np.float32))
    return sparse.hstack([shown, flags(rng, n, 400)], "csr")


SETS = {
    "wide": lambda rng, n: entries(rng, n or 20_000, 50_000, 30, 0.0),
    "zipf": lambda rng, n: entries(rng, n or 20_000, 50_000, 30, 1.0),
    "words": lambda rng, n: words(rng, n or 1_000),
    "more_words": lambda rng, n: words(rng, n or 50_000),
    "flags": lambda rng, n: flags(rng, n or 1_000_000, 2_000),
    "shop": lambda rng, n: shop(rng, n or 200_000),
}
LEVELS = {
    "shop": (50, 3_000, 30_000),
    "shop_log": (50, 3_000, 30_000),
    "noise_category": (200,),
    "useful_category": (3_000,),
}  # of the categories in the last columns


def with_levels(rng, name, X):
    """(X, worth): X with its categories beside it, and what they add to the worth of a row."""
    numbers = LEVELS.get(name, ())
    worth = np.zeros(X.shape[0])
    if not numbers:
        return X, worth
    levels = levels_of(rng, X.shape[0], numbers)
    for number, of_rows in zip(numbers, levels.T, strict=True):
        worth += rng.normal(size=number)[of_rows] * (name != "noise_category")
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_matrix(levels.astype(np.float32))], "csr"), worth
    return np.column_stack([X, levels]), worth


def labelled(rng, X, worth=0.0, noise=1.0):
    """(X, y, qid): grades by a linear rule and noise, with web search's shares of them."""
    worth = worth + np.asarray(X @ rng.normal(size=X.shape[1])).ravel()
    worth = worth / (worth.std() or 1.0) + noise * rng.normal(size=len(worth))
    y = np.digitize(worth, np.quantile(worth, [0.52, 0.84, 0.97, 0.99]))
    return X, y, np.arange(len(y)) // ROWS_PER_QUERY


# ------------------------------------------------------------------------------------------------------- cost


def ours(n_threads, **parameters):
    from ranktrees import LambdaMARTRanker

    return LambdaMARTRanker(n_jobs=n_threads, random_state=0, **parameters)


def theirs(n_threads, **parameters):
    from lightgbm import LGBMRanker

    return LGBMRanker(n_jobs=n_threads, verbose=-1, **parameters)


def estimator(library, n_trees, n_threads, **parameters):
    """A ranker with its own defaults, but for what all have in common."""
    if library == "LightGBM":
        parameters |= {"n_estimators": n_trees, "num_leaves": LEAVES, "learning_rate": RATE}
        return theirs(n_threads, **parameters)
    parameters |= {"max_iter": n_trees, "max_leaf_nodes": LEAVES, "learning_rate": RATE}
    return ours(n_threads, **parameters)


def fitted(model, X, y, qid, n_categories=0):
    """The model, fitted: queries are told by their sizes or by their ids."""
    categories = list(range(X.shape[1] - n_categories, X.shape[1]))
    if type(model).__name__ == "LGBMRanker":
        sizes = np.unique(qid, return_counts=True)[1]
        return model.fit(X, y, group=sizes, categorical_feature=categories or "auto")
    return model.set_params(categorical_features=categories or None).fit(X, y, qid=qid)


def memory(field):
    """What the kernel says of this process, in MB: VmRSS, or VmHWM, the most since `forget_peak`."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(field))


def forget_peak():
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")


def work(questions, name, library, n_rows, n_trees, n_threads):
    """Fit and score in each turn: see turns.py."""
    rng = np.random.default_rng(0)
    numbers = sparse.csr_matrix(SETS[name](rng, n_rows))
    X, worth = with_levels(rng, name, numbers)
    _, y, qid = labelled(rng, numbers, worth)
    X.sort_indices()
    n_categories = len(LEVELS.get(name, ()))
    some = slice(0, 10 * ROWS_PER_QUERY)
    fitted(estimator(library, 2, n_threads), X[some].toarray()[:, :5], y[some], qid[some])  # loads libraries
    yield {}
    for _ in questions:
        forget_peak()
        before, began = memory("VmRSS"), time.perf_counter()
        model = fitted(estimator(library, n_trees, n_threads), X, y, qid, n_categories)
        found, above = time.perf_counter() - began, memory("VmHWM") - before
        model.predict(X)
        began = time.perf_counter()
        model.predict(X)
        yield {"fit": found, "score": time.perf_counter() - began, "above": above}


def cost(options):
    print("| set | | fit, s | above, MB | score, s | LightGBM's fit / ours | LightGBM's score / ours |")
    print("|---|---|---|---|---|---|---|")
    libraries, refused = ("ranktrees", "LightGBM"), {}
    for name in options.sets:
        with tempfile.TemporaryDirectory() as logs:

            def start(library, name=name, logs=logs):
                arguments = [name, library, options.rows, options.trees, options.threads]
                return Process(work, arguments, options.threads, f"{logs}/{library}")

            answers, refusals = interleaved(start, libraries, [None] * options.repeats)
        refused |= refusals
        found = {
            library: {key: [turn[key] for turn in turns[1:]] for key in ("fit", "score", "above")}
            for library, turns in answers.items()
        }
        for library, own in found.items():
            seconds = np.median(own["fit"]), np.median(own["score"])
            medians = [f"{seconds[0]:.2f}", f"{own['above'][0]:.0f}", f"{seconds[1]:.4f}"]
            ratios = ["", ""]
            if library == "ranktrees" and "LightGBM" in found:
                ratios = [ratio(found["LightGBM"][key], own[key]) for key in ("fit", "score")]
            print("|", " | ".join([name, library, *medians, *ratios]), "|", flush=True)
    print_refusals(refused)


# --------------------------------------------------------------------------------------------------- accuracy


def rare_flags(rng, n):
    return np.asarray((rng.random((n, 400)) < 0.02 * rng.random(400)).astype(float))


def one_hot(rng, n, n_levels=200):
    return np.eye(n_levels)[rng.integers(0, n_levels, n)]


def mostly_missing(rng, n):
    return np.where(rng.random((n, 200)) < 0.012, rng.normal(size=(n, 200)), np.nan)


def counts(rng, n):
    return np.where(rng.random((n, 200)) < 0.03, rng.exponential(size=(n, 200)), 0.0)


def hashed(rng, n):
    return entries(rng, n, 2_000, 20, 1.0).toarray().astype(float)


def shop_log(rng, n):
    return np.column_stack([rng.normal(size=(n, 30)), rare_flags(rng, n)])


def noise_category(rng, n):
    return rng.normal(size=(n, 8))


def useful_category(rng, n):
    return rng.normal(size=(n, 8))


KINDS = {
    kind.__name__: kind
    for kind in (
        rare_flags,
        one_hot,
        mostly_missing,
        counts,
        hashed,
        noise_category,
        useful_category,
        shop_log,
    )
}
QUERIES = {"useful_category": 1_500}  # of other kinds, 200


def drawn(kind, seed, n_queries=None, rows_per_query=40):
    """Rows of one kind to train and to test, with the same rule: ((X, y, qid), (X, y, qid))."""
    rng = np.random.default_rng(seed)
    n = 2 * (n_queries or QUERIES.get(kind, 200)) * rows_per_query
    numbers = np.column_stack([rng.normal(size=(n, 2)), KINDS[kind](rng, n)])
    spread = np.nanstd(numbers, axis=0)
    X, worth = with_levels(rng, kind, numbers)
    _, y, _ = labelled(rng, np.nan_to_num(numbers) / np.sqrt(np.maximum(spread, 1e-9)), worth)
    qid = np.arange(n) // rows_per_query
    half = n // 2
    return (X[:half], y[:half], qid[:half]), (X[half:], y[half:], qid[half:])


def accuracy(options):
    from ranktrees import as_measure

    measure = as_measure("ndcg@10")
    contenders = {
        "ranktrees": partial(ours, options.threads),
        "all bins": partial(ours, options.threads, split_search="full"),
        "LightGBM": partial(theirs, options.threads),
        "our trees": partial(theirs, options.threads),
    }
    if options.equal:
        both = options.trees, options.threads
        contenders = {
            "ranktrees": partial(estimator, "ranktrees", *both),
            "all bins": partial(estimator, "ranktrees", *both, split_search="full"),
            "LightGBM": partial(estimator, "LightGBM", *both),
        }
    print("| kind |", " | ".join(f"{name} (t)" if k else name for k, name in enumerate(contenders)), "|")
    print("|---" * (1 + len(contenders)) + "|")
    everything = {name: [] for name in contenders}
    for kind in options.kinds:
        found = {name: [] for name in contenders}
        for seed in range(options.first_seed, options.first_seed + options.draws):
            train, (X, y, qid) = drawn(kind, seed, options.queries)
            offsets = np.append(np.unique(qid, return_index=True)[1], len(qid))
            models = {}
            for name, make in contenders.items():
                models[name] = model = make()
                if name == "our trees":
                    own = models["ranktrees"]
                    model.set_params(n_estimators=own.n_iter_, learning_rate=own.learning_rate_)
                scores = fitted(model, *train, len(LEVELS.get(kind, ()))).predict(X)
                found[name] += measure.per_query(y.astype(float), scores, offsets).tolist()
        print(f"| {kind} |", " | ".join(against(found, name) for name in found), "|", flush=True)
        for name, own in found.items():
            everything[name] += own
    print("| all |", " | ".join(against(everything, name) for name in everything), "|")


def against(found, name):
    """The mean of a contender, and the t of what the first has more."""
    own, first = np.array(found[name]), np.array(next(iter(found.values())))
    t = "" if np.array_equal(own, first) else f" ({ttest_1samp(first - own, 0).statistic:+.1f})"
    return f"{own.mean():.4f}{t}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["cost", "accuracy"])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--rows", type=int, help="instead of those of each set")
    parser.add_argument("--queries", type=int, help="instead of those of each kind")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--equal", action="store_true")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--trees", type=int, default=TREES)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    {"cost": cost, "accuracy": accuracy}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
